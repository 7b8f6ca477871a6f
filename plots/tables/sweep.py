"""The chapters' tables of variants, from what bench/sweep.py measured."""

from pathlib import Path

from plots.data.sweeps import SPILLS, Row, read, variants
from plots.data.units import MISSING, Shape, kib, whole
from plots.errors import InputError
from plots.tables.grid import Grid

AS_WRITTEN = "as_written"

Cell = tuple[str, Shape]  # a type and a shape


def table(path: Path, rung: str) -> str:
    """The variants of a rung, the fastest first; in bold the one that the kernel's file has."""
    known, rows = variants(rung), read(path)
    if strange := {row["kernel"] for row in rows} - set(known):
        raise InputError(f"{path}: bench/variants/{rung}.csv has no variant {min(strange)}")
    cells = list(dict.fromkeys(cell_of(row) for row in rows))
    found = {(row["kernel"], cell_of(row)): row for row in rows}
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    names.sort(key=lambda name: [-per_clock(found.get((name, cell))) for cell in cells])
    body = [
        [
            f"**{name}**" if name == AS_WRITTEN else name,
            known[name].what,
            *resources(next(row for row in rows if row["kernel"] == name)),
            *(said(found.get((name, cell))) for cell in cells),
        ]
        for name in names
    ]
    head = [
        "variant",
        "what it changes",
        "registers",
        "smem KiB",
        *(f"{type} at {shape}, FLOP/clk/SM (of cuBLAS, in clocks)" for type, shape in cells),
    ]
    last = rows[-1]
    source = (
        f"*`bench/sweep.py {rung}`, {last['protocol']} protocol, on {last['gpu']}, {last['utc'][:10]}: CUDA {last['cuda']}, "
        f"cuBLAS {last['cublas']}, driver {last['driver']}, commit {last['commit']}; recorded in "
        f"`bench/recorded/{path.parent.name}/{path.name}`.*"
    )
    return f"{Grid(head, body, left=2).markdown()}\n\n{source}"


def cell_of(row: Row) -> Cell:
    return row["type"], Shape(*(int(row[size]) for size in "mnk"))


def per_clock(row: Row | None) -> float:
    """FLOP per clock and SM, which power and temperature do not move; 0 where it was not timed."""
    return float(row["flop_clk_sm"] or 0) if row and row["status"] == "ok" else 0.0


def said(row: Row | None) -> str:
    """That, and what the variant reaches of cuBLAS, which they do move; or why there is none."""
    if row is None:
        return MISSING
    return f"{whole(per_clock(row))} ({float(row['ratio_clk']):.3f})" if row["status"] == "ok" else row["status"]


def resources(row: Row) -> list[str]:
    """Registers per thread and what did not fit into them, shared memory per block in KiB."""
    registers, shared = (float(row[name] or "nan") for name in ("registers", "smem_bytes"))
    spills = f" and {row[SPILLS]} bytes spilled" if row[SPILLS] not in ("", "0") else ""
    return [whole(registers) + spills, kib(shared)]
