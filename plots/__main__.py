"""python3 -m plots COMMAND. Exit 0 all right, 1 something is stale, 2 bad input, said in one line."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console

from plots import documents, gflops, heatmap, ladder, maps, pictures, report, roofline, style
from plots.data import load
from plots.errors import InputError
from plots.rungs import ROOT
from plots.selection import Table, tables

FIGURES: dict[str, tuple[str, Callable[[Table], Figure]]] = {
    "gflops": ("throughput against size, every rung and cuBLAS", gflops.draw),
    "ladder": ("the ladder at one size with the gain of each step", lambda table: ladder.draw(table, table.headline)),
    "roofline": ("the rungs under the measured roofs", roofline.draw),
    "heatmap": ("ratio to cuBLAS over shapes and rungs", heatmap.draw),
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
    for name, (purpose, draw) in FIGURES.items():
        command = commands.add_parser(name, help=purpose)
        _folders(command)
        command.set_defaults(run=_draw, name=name, draw=draw)
    command = commands.add_parser("report", help="report.html, summary.md and all plots of a results folder")
    _folders(command)
    command.add_argument("--recorded", action="store_true", help="label the results as not from this machine")
    command.set_defaults(run=_report)
    for name, update in (("readme", documents.update_readme), ("docs", documents.update_docs)):
        command = commands.add_parser(name, help=f"fill the generated blocks of {name}")
        command.add_argument("--check", action="store_true", help="change nothing; exit 1 and name what is stale")
        command.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
        command.set_defaults(run=_update, update=update)
    command = commands.add_parser("maps", help="the chapters' figures of index maps, into docs/img")
    command.add_argument("--maps", type=Path, metavar="FILE", help="what build/bin/maps printed; it is run otherwise")
    command.add_argument("--out", type=Path, default=ROOT / "docs" / "img", metavar="DIR", help="default docs/img")
    command.add_argument("--check", action="store_true", help="change nothing; exit 1 and name what is stale")
    command.set_defaults(run=_maps)
    return parser


def _folders(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, required=True, metavar="DIR", help="folder with ladder.csv")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write into")


def _draw(options: argparse.Namespace) -> int:
    found = tables(load(options.results))
    if not found:
        raise InputError(f"{options.results}: ladder.csv holds no timed row")
    for table in found:
        if options.name == "roofline" and not roofline.possible(table):
            raise InputError(f"{options.results}: no roofline without ceilings.csv (dram and the compute ceiling)")
        if options.name == "gflops" and not table.squares:
            raise InputError(f"{options.results}: no square shape of type {table.type}")
        style.save(options.draw(table), options.out, f"{options.name}_{table.type}")
        print(options.out / f"{options.name}_{table.type}.svg")
    return 0


def _report(options: argparse.Namespace) -> int:
    results = load(options.results)
    recorded = options.recorded or "recorded" in options.results.resolve().parts
    written = report.write(results, options.out, recorded)
    console = Console(highlight=False, soft_wrap=True)
    for table in tables(results):
        console.print(report.headline(table), markup=False)
    for path in written:
        print(path)
    return 0


def _update(options: argparse.Namespace) -> int:
    return _tell(options.update(options.root, options.check), options.check)


def _maps(options: argparse.Namespace) -> int:
    program = ROOT / "build" / "bin" / "maps"
    printed = _read(options.maps) if options.maps else maps.run(program)
    drawings = maps.figures(maps.parse(printed, str(options.maps or program))) | pictures.figures(ROOT)
    stale = []
    for name, drawing in drawings.items():
        path = options.out / f"{name}.svg"
        if path.is_file() and path.read_text(encoding="utf-8") == drawing.svg():
            continue
        stale.append(str(path))
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(drawing.svg(), encoding="utf-8")
    return _tell(stale, options.check)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _tell(stale: list[str], check: bool) -> int:
    for name in stale:
        print(f"{'stale' if check else 'updated'}: {name}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
