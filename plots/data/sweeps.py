"""What bench/sweep.py measured, and the variants of a rung, which bench/variants lists."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

from plots.data.rungs import ROOT
from plots.errors import InputError

VARIANTS = ROOT / "bench/variants"
SPILLS = "spill_bytes"  # the column that a sweep adds to the harness's: what a thread stores, as ptxas counts it
Row = dict[str, str]


@dataclass(frozen=True)
class Variant:
    what: str  # what it changes, for the chapter's table
    constants: dict[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()  # names of diffs


def variants(rung: str) -> dict[str, Variant]:
    """Those of a rung by name, in the order in which they are timed."""
    listed = VARIANTS / f"{rung}.csv"
    if not listed.exists():
        raise InputError(f"no table of the variants of '{rung}': there is no bench/variants/{rung}.csv")
    with listed.open(newline="", encoding="utf-8") as file:
        return {
            row["name"]: Variant(
                row["what"], dict(one.split("=", 1) for one in row["constants"].split()), tuple(row["changes"].split())
            )
            for row in csv.DictReader(file)
        }


def read(path: Path) -> list[Row]:
    """The rows of a sweep, the variant's name in `kernel`."""
    needed = {"kernel", "type", *"mnk", "protocol", "ratio_clk", "flop_clk_sm", "status", "registers", "smem_bytes", SPILLS}
    with path.open(newline="", encoding="utf-8") as lines:
        rows = [row | {"kernel": row["kernel"].partition("_")[2]} for row in csv.DictReader(lines) if row.get("kernel")]
    if not rows or (absent := needed - set(rows[0])):
        raise InputError(f"{path}: {f'no column {min(absent)}' if rows else 'no rows'}; bench/sweep.py writes it anew")
    return rows
