"""What the sweeps bench/sweep_NN.py measured, and what their variants change, as each sweep states it."""

import csv
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from plots.data.rungs import ROOT
from plots.errors import InputError

SPILLS = "spill_bytes"  # the column that a sweep adds to the harness's: what a thread stores, as ptxas counts it
Row = dict[str, str]


def read(path: Path) -> list[Row]:
    """The rows of a sweep, the variant's name in `kernel`."""
    needed = {"kernel", "type", *"mnk", "protocol", "ratio_clk", "flop_clk_sm", "status", "registers", "smem_bytes", SPILLS}
    with path.open(newline="", encoding="utf-8") as lines:
        rows = [row | {"kernel": row["kernel"].partition("_")[2]} for row in csv.DictReader(lines) if row.get("kernel")]
    if not rows or (absent := needed - set(rows[0])):
        raise InputError(f"{path}: {f'no column {min(absent)}' if rows else 'no rows'}; bench/{path.stem}.py writes it anew")
    return rows


@cache
def variants(rung: str) -> dict[str, str]:
    """By name, what each variant of a rung changes; the sweep is asked, as the ladder is for the facts of rungs."""
    sweep = f"bench/sweep_{rung}.py"
    done = subprocess.run([sys.executable, ROOT / sweep, "--list"], capture_output=True, text=True)
    stated = {} if done.returncode else json.loads(done.stdout)
    if not stated:
        raise InputError(f"no table of the variants of '{rung}': {sweep} --list states none")
    return stated
