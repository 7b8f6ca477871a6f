"""The chapters' tables of rungs 14 to 16 at large shapes, with results of both types and beta, in both protocols."""

import pandas as pd

from plots.data.rungs import number, order
from plots.data.units import MISSING, digits, ratio, whole
from plots.tables.grid import Grid

PROTOCOLS = ("rounds", "steady")
CONDITION = ["shape", "out", "beta"]  # a row each, in the order of the file


def grids(rows: pd.DataFrame) -> list[Grid]:
    """One table for each type and protocol."""
    return [_grid(own) for _, own in rows.groupby(["type", "protocol"], sort=False)]


def _grid(rows: pd.DataFrame) -> Grid:
    kernels = sorted(set(rows["kernel"]), key=order)
    type, protocol = rows["type"].iloc[0], rows["protocol"].iloc[0]
    head = [f"{type}, {protocol}", "results", "beta", *(f"{number(kernel)}: ms (of cuBLAS)" for kernel in kernels)]
    lines = []
    for (shape, out, beta), own in rows.groupby(CONDITION, sort=False):
        cells = {row.kernel: row for row in own.itertuples()}
        lines.append(
            [
                str(shape),
                type if out == "same" else out,
                f"{beta:g}",
                *(_time(cells.get(kernel)) for kernel in kernels),
                *(_per_clock(cells.get(kernel)) for kernel in kernels),
            ]
        )
    return Grid([*head, *(f"{number(kernel)}: FLOP/clk/SM" for kernel in kernels)], lines, left=2)


def _time(row) -> str:
    if row is None:
        return MISSING
    return f"{digits(row.median_ms)} ({ratio(row.ratio_cublas)})" if row.status == "ok" else row.status


def _per_clock(row) -> str:
    return whole(row.flop_clk_sm) if row is not None and row.status == "ok" else MISSING
