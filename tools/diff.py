"""What changed between two rungs: their code side by side, then what the compiler and the GPU made of it.

usage: python3 -m tools.diff FROM TO   (stems such as 05_float4; their programs must be built)
"""

import csv
import json
import sys
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from plots.data import rungs
from plots.data.cubin import Kernel, blocks_per_sm, kernels, sm_number
from plots.errors import InputError

BUILT = Path("build/generated/kernels.json")  # CMake's list of rungs, with their objects
CONTEXT = 2  # unchanged lines shown around a change


def side_by_side(old: list[str], new: list[str], names: tuple[str, str]) -> Table:
    table = Table(expand=True, pad_edge=False)
    for name in names:
        table.add_column("", justify="right", style="dim", no_wrap=True)
        table.add_column(name, ratio=1, overflow="fold")
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT)
    for group in groups:
        for tag, old_from, old_to, new_from, new_to in group:
            rows = max(old_to - old_from, new_to - new_from)
            for row in range(rows):
                at_old = old_from + row if old_from + row < old_to else None
                at_new = new_from + row if new_from + row < new_to else None
                left = old[at_old] if at_old is not None else None
                right = new[at_new] if at_new is not None else None
                if tag == "equal":
                    cells = Text(left, style="dim"), Text(right, style="dim")
                else:
                    cells = changed(left, right, "red"), changed(right, left, "green")
                table.add_row(line_number(at_old), cells[0], line_number(at_new), cells[1])
        table.add_section()
    return table


def line_number(index: int | None) -> str:
    return "" if index is None else str(index + 1)


def changed(line: str | None, other: str | None, colour: str) -> Text:
    """The line in colour; in bold what the line opposite does not have, where the two are alike at all."""
    if line is None:
        return Text("")
    text = Text(line, style=colour)
    matcher = SequenceMatcher(None, line, other or "", autojunk=False)
    if matcher.ratio() > 0.5:
        for tag, start, end, _, _ in matcher.get_opcodes():
            if tag in ("delete", "replace"):
                text.stylize("bold underline", start, end)
    return text


class NoMachineCode(Exception):
    """In one line, which rung has none."""


def object_of(stem: str) -> Path | None:
    """What the build made of a rung's file, wherever that lies now; None where it is not built."""
    rungs_built = json.loads(BUILT.read_text(encoding="utf-8")) if BUILT.is_file() else []
    objects = (Path(rung["object"]) for rung in rungs_built if rung["stem"] == stem)
    return next((file for file in objects if file.is_file()), None)


def built_kernels(stem: str) -> list[Kernel]:
    """The rung's kernels for the newest architecture that it was built for: one, or one per type."""
    built = object_of(stem)
    if built is None:
        raise InputError(f"kernel_{stem} is not built")
    found = kernels(built)
    if not found:
        raise NoMachineCode(f"{stem} has no machine code, so no registers: it is built for the simulator alone")
    newest = max(sm_number(kernel.arch) for kernel in found)
    return [kernel for kernel in found if sm_number(kernel.arch) == newest]


def built_kernel(stem: str) -> Kernel:
    """The longest of them."""
    return max(built_kernels(stem), key=lambda kernel: len(kernel.instructions))


def timed_rows(stems: tuple[str, str]) -> tuple[str, dict[str, dict[str, str]]]:
    """Where both rungs were timed at 4096, and their rows: this machine's results first, then the recorded ones."""
    for file in [*sorted(Path("results").glob("*/ladder.csv")), *sorted(Path("bench/recorded").glob("*/ladder.csv"))]:
        by_type: dict[str, dict[str, list[dict[str, str]]]] = {}  # a row for each sitting
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                if row["m"] == row["n"] == row["k"] == "4096" and row["gflops"]:
                    by_type.setdefault(row["type"], {}).setdefault(row["kernel"], []).append(row)
        for rows in by_type.values():
            if all(stem in rows for stem in stems):
                return str(file), {stem: of_sittings(rows[stem]) for stem in stems}
    return "", {}


def of_sittings(rows: list[dict[str, str]]) -> dict[str, str]:
    """The last row, with medians of what was timed."""
    return rows[-1] | {column: str(median(float(row[column]) for row in rows)) for column in ("gflops", "ratio_cublas")}


def made(stems: tuple[str, str]) -> Table:
    """What the compiler and the GPU made of both."""
    built = [built_kernel(stem) for stem in stems]
    file, rows = timed_rows(stems)
    table = Table(title=f"Compiled for {built[0].arch}", title_justify="left")
    table.add_column("")
    for stem in stems:
        table.add_column(stem, justify="right")

    def add(name: str, values: list) -> None:
        table.add_row(name, *("-" if value is None else f"{value:,}" for value in values))

    add("threads per block", [kernel.threads or None for kernel in built])
    add("registers per thread", [kernel.registers for kernel in built])
    add("shared memory, bytes per block", [kernel.shared_bytes for kernel in built])
    add("blocks per SM", [occupancy(kernel) for kernel in built])
    add("warps per SM", [(occupancy(kernel) or 0) * kernel.threads // 32 or None for kernel in built])
    add("instructions", [len(kernel.instructions) for kernel in built])
    for multiply in ("FFMA", "HMMA"):
        if any(kernel.count(multiply) for kernel in built):
            add(f"{multiply} among them", [kernel.count(multiply) for kernel in built])
    if rows:
        row = rows[stems[1]]
        add("GFLOP/s at 4096", [round(float(rows[stem]["gflops"])) for stem in stems])
        table.add_row("ratio to cuBLAS", *(f"{float(rows[stem]['ratio_cublas']):.3f}" for stem in stems))
        table.caption = f"times: {row['gpu']}, {row['utc'][:10]}, commit {row['commit']} ({file})"
    else:
        table.caption = "times: none yet for both; ./run_all.sh on a GPU measures them"
    return table


def occupancy(kernel: Kernel) -> int | None:
    return blocks_per_sm(sm_number(kernel.arch), kernel.threads, kernel.registers, kernel.shared_bytes)


def source(stem: str) -> list[str]:
    """The lines of a rung's file, wherever it lies: its program says."""
    return Path(rungs.of_checkout(stem=stem).rungs[stem].source).read_text().splitlines()


def main(stems: tuple[str, str]) -> int:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    try:
        old, new = map(source, stems)
        console.print(side_by_side(old, new, stems))
        console.print(made(stems))
    except NoMachineCode as reason:
        console.print(str(reason))
    except InputError as error:
        print(f"diff: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main((sys.argv[1], sys.argv[2])))
