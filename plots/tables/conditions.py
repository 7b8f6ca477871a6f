"""The chapters' tables of some rungs under other conditions: large shapes, results of both types, beta, both protocols."""

import pandas as pd

from plots.data.rungs import number
from plots.data.selection import Cell, cells
from plots.data.units import MISSING, digits, ratio, whole
from plots.tables.grid import Grid

FILE = "conditions.csv"
CONDITION = ["shape", "out", "beta"]  # one row for each, in the order of the file


def grids(rows: pd.DataFrame, kernels: list[str]) -> list[Grid]:
    """One table per type and protocol, of these kernels."""
    rows = rows[rows["kernel"].isin(kernels)]
    return [_grid(own, *group, kernels) for group, own in rows.groupby(["type", "protocol"], sort=False)]


def _grid(rows: pd.DataFrame, type: str, protocol: str, kernels: list[str]) -> Grid:
    head = [f"{type}, {protocol}", "results", "beta", *(f"{number(kernel)}: ms (of cuBLAS), MHz" for kernel in kernels)]
    lines = []
    for (shape, out, beta), own in rows.groupby(CONDITION, sort=False):
        found = cells(own)
        of_kernels = [found.get((kernel, shape)) for kernel in kernels]
        lines.append(
            [
                str(shape),
                type if out == "same" else out,
                f"{beta:g}",
                *(_time(cell) for cell in of_kernels),
                *(_per_clock(cell) for cell in of_kernels),
            ]
        )
    return Grid([*head, *(f"{number(kernel)}: FLOP/clk/SM" for kernel in kernels)], lines, left=2)


def _time(cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    if cell.status != "ok":
        return cell.status
    return f"{digits(cell.value('median_ms'))} ({ratio(cell.value('ratio_cublas'))}), {whole(cell.value('clock_mhz'))}"


def _per_clock(cell: Cell | None) -> str:
    return whole(cell.value("flop_clk_sm")) if cell else MISSING
