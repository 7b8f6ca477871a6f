"""Which shapes the library wins: at each shape of a run, its best rung against the fastest library."""

import pandas as pd

from plots.data.selection import Table
from plots.data.units import MISSING, Shape, ratio
from plots.tables.grid import Grid

AS_FAST = 0.995  # of the library's rate: 1.00 as it is written


def of_ladder(tables: list[Table]) -> pd.DataFrame:
    """A row per type and shape, as tables.wins has them of one rung: the ratio of the best rung, which is named."""
    rows = []
    for table in tables:
        results = table.type if table.condition.out == "same" else table.condition.out
        column = "ratio_best" if table.knows("ratio_best") else "ratio_cublas"
        for shape in table.shapes:
            known = [(value, kernel) for kernel in table.kernels if (value := table.value(kernel, shape, column)) > 0]
            if known:
                best, kernel = max(known)
                rows.append((kernel, table.type, results, *shape, best))
    return pd.DataFrame(rows, columns=["kernel", "type", "results", "m", "n", "k", "ratio_best"])


def grid(found: pd.DataFrame) -> Grid:
    """A line per type: how many shapes each side wins, and where the library is furthest ahead."""
    head = ["type", "shapes", "a rung is as fast", "the library is faster", "furthest at", "where the best rung is"]
    lines = []
    for kind, own in found.groupby("type", sort=False):
        least = own.loc[own["ratio_best"].idxmin()]
        lost = int((own["ratio_best"] < AS_FAST).sum())
        where = [str(Shape(least.m, least.n, least.k)), f"{least.kernel}, {ratio(least.ratio_best)} of the library"]
        lines.append([str(kind), str(len(own)), str(len(own) - lost), str(lost), *(where if lost else [MISSING] * 2)])
    return Grid(head, lines)
