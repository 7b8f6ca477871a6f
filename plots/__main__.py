"""python3 -m plots COMMAND. Exit 0 all right, 1 something is stale or outside the noise, 2 bad input, said in one line."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from plots.data import rungs
from plots.data.counters import counted
from plots.data.results import Results, is_simulation, load, load_simulation
from plots.data.rungs import ROOT
from plots.data.selection import tables
from plots.documents import chapters, committed, pages, report
from plots.documents.markers import Untrue, defining
from plots.documents.numbers import Numbers, Recording, listed
from plots.errors import InputError
from plots.figures import counters, style, use
from plots.figures.kinds import KINDS
from plots.tables import compare

GENERATED = {
    "readme": ("fill the generated blocks and the numbers of README.md", pages.update_readme),
    "docs": ("fill the generated blocks and the numbers of docs/*.md", pages.update_docs),
    "recorded": ("the figures of the recorded results, into docs/img/recorded", committed.update_recorded),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except InputError as error:
        print(f"plots: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plots", description="Figures, report and generated blocks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, kind in KINDS.items():
        command = commands.add_parser(name, help=kind.purpose)
        _folders(command)
        command.set_defaults(run=_draw, name=name)
    command = commands.add_parser("counters", help="what the simulator counted, rung by rung")
    _folders(command)
    command.set_defaults(run=_draw_counters)
    command = commands.add_parser("report", help="report.html, summary.md and all plots of a results folder")
    _folders(command)
    command.add_argument("--recorded", action="store_true", help="label the results as not from this machine")
    command.set_defaults(run=_report)
    for name, (purpose, update) in GENERATED.items():
        command = commands.add_parser(name, help=purpose)
        _generated(command)
        command.add_argument(
            "--rungs", type=Path, metavar="FILE", help="what build/bin/ladder --list --json printed; it is run otherwise"
        )
        command.set_defaults(run=_update, update=update)
    command = commands.add_parser("maps", help="the chapters' figures of index maps, into docs/img")
    _generated(command)
    command.add_argument("--maps", type=Path, metavar="FILE", help="what build/bin/maps printed; it is run otherwise")
    command.set_defaults(run=_update_maps)
    command = commands.add_parser("number", help="what an expression of a document's markers yields")
    command.add_argument("expression", nargs="?", metavar="EXPRESSION", help="without one, the functions are listed")
    command.add_argument("--type", default="", help="f32, tf32, bf16 or f16")
    command.add_argument("--size", default="", metavar="N", help="the edge of a cube; default 4096")
    command.add_argument("--of", type=Path, metavar="FILE", help="a document, with what it defines and its tables")
    command.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout; default this one")
    command.set_defaults(run=_number)
    command = commands.add_parser("use", help="PyTorch's products with and without the library, as use.svg beside the table")
    command.add_argument("table", type=Path, metavar="FILE", help="what bench/use.py wrote")
    command.set_defaults(run=_draw_use)
    command = commands.add_parser("compare", help="two results folders side by side, with what is outside the noise")
    command.add_argument("first", type=Path, metavar="A")
    command.add_argument("second", type=Path, metavar="B")
    command.set_defaults(run=_compare)
    return parser


def _folders(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, required=True, metavar="DIR", help="folder with ladder.csv")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write into")


def _generated(command: argparse.ArgumentParser) -> None:
    command.add_argument("--check", action="store_true", help="change nothing; exit 1 and name what is stale")
    command.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout; default this one")


def _draw(options: argparse.Namespace) -> int:
    found = tables(load(options.results))
    if not found:
        raise InputError(f"{options.results}: ladder.csv holds no timed row")
    kind = KINDS[options.name]
    for table in found:
        if kind.lacking(table):
            raise InputError(f"{options.results}: no {options.name} of {table.type}: {kind.lacking(table)}")
        style.save(kind.draw(table), options.out, f"{options.name}_{table.type}")
        print(options.out / f"{options.name}_{table.type}.svg")
    return 0


def _draw_counters(options: argparse.Namespace) -> int:
    if not is_simulation(options.results):
        raise InputError(f"{options.results}: no counts.csv of the simulator in it")
    found = [table for sizes in counted(load_simulation(options.results)) for table in sizes]
    if not found:
        raise InputError(f"{options.results}: counts.csv holds no counters")
    for table in found:
        style.save(counters.draw(table), options.out, counters.file_stem(table))
        print(options.out / f"{counters.file_stem(table)}.svg")
    return 0


def _draw_use(options: argparse.Namespace) -> int:
    style.save(use.draw(use.read(options.table)), options.table.parent, "use")
    print(options.table.parent / "use.svg")
    return 0


def _report(options: argparse.Namespace) -> int:
    if is_simulation(options.results):
        simulation = load_simulation(options.results)
        written = report.write_simulation(simulation, chapters.recorded(ROOT), options.out)
        print(report.verdict(simulation))
        for path in written:
            print(path)
        return 0
    results = load(options.results)
    recorded = options.recorded or "recorded" in options.results.resolve().parts
    written = report.write(results, options.out, recorded)
    console = Console(highlight=False, soft_wrap=True)
    for table in tables(results):
        console.print(report.headline(table), markup=False)
    for path in written:
        print(path)
    return 0


def _compare(options: argparse.Namespace) -> int:
    folders = (options.first, options.second)
    runs = [_timed(folder) for folder in folders]
    first, second = (tables(run) for run in runs)
    found, turned = compare.pairs(first, second, tuple(compare.NAMES)), compare.turned(first, second)
    if not found and not turned:
        raise InputError(f"{options.first} and {options.second} have no cell in common: no rung, type, shape and conditions")
    outside = compare.outside(found)
    if outside or turned:
        for name, run in zip("AB", runs, strict=True):
            print(f"{name}: {report.origin(run)}, in {run.folder}")
        print(f"\n{compare.grid(outside, turned).markdown()}\n")
    print(compare.verdict(found, turned))
    return 1 if outside or turned else 0


def _timed(folder: Path) -> Results:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if is_simulation(folder):
        raise InputError(f"{folder}: counted on the simulator, not timed; compare takes folders with a ladder.csv")
    return load(folder)


def _update(options: argparse.Namespace) -> int:
    facts = rungs.read(options.rungs) if options.rungs else None
    return _told(options.update(options.root, options.check, facts), options.check)


def _update_maps(options: argparse.Namespace) -> int:
    return _told(committed.update_maps(options.root, options.check, options.maps), options.check)


def _told(stale: list[str], check: bool) -> int:
    untrue = [name for name in stale if isinstance(name, Untrue)]
    for name in stale:
        print(f"{'untrue' if isinstance(name, Untrue) else 'stale' if check else 'updated'}: {name}")
    return 1 if untrue or (stale and check) else 0


def _number(options: argparse.Namespace) -> int:
    recording = Recording(options.root)
    if not options.expression:
        print(listed(recording))
        return 0
    numbers = defining(options.of, recording) if options.of else Numbers(recording)
    numbers.set(options.type, options.size)
    print(numbers.evaluate(options.expression))
    return 0


if __name__ == "__main__":
    sys.exit(main())
