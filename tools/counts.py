"""What each source line of a kernel did, counted by the simulator, beside the line itself.

usage: python3 -m tools.counts STEM [M N K] [options of the rung] [--csv FILE]    runs build/bin/STEM on the simulator
       python3 -m tools.counts --from FILE [--csv FILE]                           any program's GEMM_LADDER_SIM_COUNTS
"""

import csv
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2  # lines that did nothing and are shown all the same, between lines that did something
SECTOR_BYTES = 32


@dataclass
class Counts:
    """Sums of columns of the simulator's CSV."""

    columns: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.columns.get(name, 0)

    def both(self, before: str, after: str) -> int:
        """Of loads and of stores: both("global_", "_sectors")."""
        return self[f"{before}load{after}"] + self[f"{before}store{after}"]

    @property
    def flops(self) -> int:
        return sum(value for name, value in self.columns.items() if name.startswith("flops_"))

    @property
    def requests(self) -> int:
        return self["global_loads"] + self["global_stores"]

    @property
    def products(self) -> dict[str, int]:
        """tcgen05.mma of each kind."""
        kinds = {name.removeprefix("mma_"): n for name, n in self.columns.items() if name.startswith("mma_") and n}
        return {kind: n for kind, n in kinds.items() if kind != "shared_bytes"}

    def tensor_cells(self) -> list[str]:
        """As TENSOR_COLUMNS."""
        return [
            "; ".join(f"{n:,} {kind}" for kind, n in self.products.items()),
            readable(self["mma_shared_bytes"]),
            readable(self["tensor_load_bytes"]),
            readable(self["tensor_store_bytes"]),
        ]

    def cells(self) -> list[str]:
        """As the columns of the table."""
        sectors, wavefronts = self.both("global_", "_sectors"), self.both("shared_", "_wavefronts")
        wanted = self.both("global_", "_bytes") / SECTOR_BYTES
        ideal = self.both("shared_", "_ideal")
        return [
            readable(self["warp_instructions"]),
            readable(self.requests),
            f"{sectors / self.requests:.4g}" if self.requests else "",
            f"{wanted / self.requests:.4g}" if self.requests else "",
            readable(wavefronts),
            readable(ideal),
            f"{wavefronts / ideal:.3g}" if ideal else "",
            readable(self["barriers"]),
            readable(self.flops),
        ]


COLUMNS = [
    "warp instr.",
    "global requests",
    "sectors each",
    "for its bytes",
    "shared wavefronts",
    "ideal",
    "ratio",
    "barrier arrivals",
    "FLOP",
]
TENSOR_COLUMNS = ["tcgen05 .mma", "shared bytes read", "tensor bytes loaded", "tensor bytes stored"]  # of kernels that use them


@dataclass
class Kernel:
    name: str
    launches: int
    total: Counts
    lines: dict[tuple[str, int], Counts]

    @property
    def on_tensor_memory(self) -> bool:
        return any(self.total[name] for name in ("mma_shared_bytes", "tensor_load_bytes", "tensor_store_bytes"))

    def columns(self) -> list[str]:
        return COLUMNS + (TENSOR_COLUMNS if self.on_tensor_memory else [])

    def cells(self, counts: Counts) -> list[str]:
        return counts.cells() + (counts.tensor_cells() if self.on_tensor_memory else [])


def readable(value: int) -> str:
    return f"{value:,}" if value else ""


def read(file: Path) -> list[Kernel]:
    """Of the simulator's CSV: a row for each kernel as a whole (line 0), and one for each of its lines."""
    kernels: dict[str, Kernel] = {}
    with file.open(newline="") as rows:
        for row in csv.DictReader(rows):
            name, source, line = row["kernel"], row["file"], int(row["line"])
            known = ("kernel", "launches", "file", "line")
            counts = Counts({column: int(value) for column, value in row.items() if column not in known})
            if name not in kernels:
                kernels[name] = Kernel(name, int(row["launches"]), Counts(), {})
            if source or line:
                kernels[name].lines[source, line] = counts
            else:
                kernels[name].total = counts
    return list(kernels.values())


def source_lines(file: str) -> list[str]:
    try:
        return Path(file).read_text().splitlines()
    except OSError:
        return []


def table_of(kernel: Kernel, title: str) -> Table:
    table = Table(title=title, title_justify="left", pad_edge=False, expand=True)
    table.add_column("line", justify="right", style="dim", no_wrap=True)
    table.add_column("source", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in kernel.columns():
        table.add_column(name, justify="right", min_width=min(len(word) for word in name.split()))
    for file in dict.fromkeys(file for file, _ in kernel.lines):
        text = source_lines(file)
        table.add_row("", Text(file or "(no source line; compile with -lineinfo)", style="bold"))
        before = None
        for line in sorted(line for where, line in kernel.lines if where == file):
            if before is not None and line - before > GAP + 1:
                table.add_row("", Text("⋮", style="dim"))
            elif before is not None:
                for between in range(before + 1, line):
                    table.add_row(str(between), Text(code(text, between), style="dim"))
            counts = kernel.lines[file, line]
            bad = counts.both("shared_", "_wavefronts") > counts.both("shared_", "_ideal")
            table.add_row(str(line), Text(code(text, line)), *kernel.cells(counts), style="red" if bad else None)
            before = line
        table.add_section()
    table.add_row("", Text("in total", style="bold"), *kernel.cells(kernel.total), style="bold")
    return table


def code(text: list[str], line: int) -> str:
    return text[line - 1] if 0 < line <= len(text) else ""


def write(kernels: list[Kernel], file: Path) -> None:
    """The table as CSV, with the source text as its last column."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        tensor = any(kernel.on_tensor_memory for kernel in kernels)
        writer.writerow(["kernel", "file", "line", *COLUMNS, *(TENSOR_COLUMNS if tensor else []), "source"])
        for kernel in kernels:
            for (source, line), counts in kernel.lines.items():
                plain = [cell.replace(",", "") for cell in counts.cells() + (counts.tensor_cells() if tensor else [])]
                writer.writerow([kernel.name, source, line, *plain, code(source_lines(source), line).strip()])
            total = kernel.total.cells() + (kernel.total.tensor_cells() if tensor else [])
            writer.writerow([kernel.name, "", "", *(cell.replace(",", "") for cell in total), "in total"])


def run(stem: str, arguments: list[str]) -> list[Kernel]:
    """One rung on the simulator; its own words on failure, and its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.csv"
        done = subprocess.run(
            [f"build/bin/{stem}", *arguments, "--sim", "--sim-counts", str(file)], capture_output=True, text=True
        )
        if done.returncode != 0 or not file.exists():
            print(done.stdout + done.stderr, end="", file=sys.stderr)
            sys.exit(done.returncode or 1)
        return read(file)


def option(arguments: list[str], name: str) -> str | None:
    """Takes `name VALUE` out of the arguments."""
    if name not in arguments:
        return None
    place = arguments.index(name)
    if place + 1 == len(arguments):
        print(f"counts: {name} takes a file", file=sys.stderr)
        sys.exit(2)
    value = arguments[place + 1]
    del arguments[place : place + 2]
    return value


def main(arguments: list[str]) -> None:
    target, source = option(arguments, "--csv"), option(arguments, "--from")
    if not source and not arguments:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    if source and not Path(source).is_file():
        print(f"counts: there is no file {source}", file=sys.stderr)
        sys.exit(2)
    kernels = read(Path(source)) if source else run(arguments[0], arguments[1:])
    width = 260 if any(kernel.on_tensor_memory for kernel in kernels) else 200
    console = Console(highlight=False, width=None if sys.stdout.isatty() else width)
    for kernel in kernels:
        launches = f"{kernel.launches} launch" + ("es" if kernel.launches != 1 else "")
        what = source if source else " ".join(arguments)
        console.print(table_of(kernel, f"{what}: {kernel.name}, {launches}"))
    if target:
        write(kernels, Path(target))
        print(f"CSV: {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
