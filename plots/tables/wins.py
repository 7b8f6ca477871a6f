"""How rungs stand against the best library over every shape of the map: bench/shapes/map.txt, recorded in map.csv."""

from pathlib import Path

import numpy as np
import pandas as pd

from plots.data.results import read_rows
from plots.data.rungs import Facts, order
from plots.data.units import Shape, ratio, type_name
from plots.tables.grid import Grid

FILE = "map.csv"
LEAST = 0.95  # below it a library clearly wins
SAME = {"e4m3": "bf16", "e5m2": "bf16"}  # with --out same, results have the type of the operands, but for these


def read(path: Path, facts: Facts) -> pd.DataFrame:
    """A row per type, in the facts' order, results and shape: the medians over sittings of the ratios to the libraries.

    Of several rungs with the same types the last."""
    place = {kind: number for number, kind in enumerate(facts.types)}
    rows = read_rows(path, [])
    rows = rows[rows["status"] == "ok"].sort_values("type", key=lambda kinds: kinds.map(place), kind="stable")
    rows = rows.assign(results=rows["out"].where(rows["out"] != "same", rows["type"].replace(SAME)))
    last = rows.groupby(["type", "results"])["kernel"].transform(lambda kernels: max(kernels, key=order, default=""))
    rows = rows[rows["kernel"] == last]
    keys = ["kernel", "type", "results", "m", "n", "k"]
    return rows.groupby(keys, sort=False)[["ratio_best", "ratio_cublas"]].median().reset_index()


def mean(ratios: pd.Series) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


def grid(found: pd.DataFrame) -> Grid:
    """A line per rung, type and results."""
    head = ["rung", "operands", "results", "shapes", "of the best library, mean", "of cuBLAS, mean", "least, at"]
    head += [f"under {LEAST}", "1.00 or more"]
    lines = []
    for (kernel, kind, results), own in found.groupby(["kernel", "type", "results"], sort=False):
        means = ratio(mean(own["ratio_best"])), ratio(mean(own["ratio_cublas"]))
        least, lost = _least(own), str(int((own["ratio_best"] < LEAST).sum()))
        won = str(int((own["ratio_best"] >= 1).sum()))
        lines.append([kernel.partition("_")[0], kind, results, str(len(own)), *means, least, lost, won])
    return Grid(head, lines, left=3)


def short_grid(found: pd.DataFrame) -> Grid:
    """The same in four columns, for the first page."""
    lines = []
    for (kernel, kind, results), own in found.groupby(["kernel", "type", "results"], sort=False):
        what = f"{kernel.partition('_')[0]}: {type_name(kind)}" + (f", {type_name(results)} results" if results != kind else "")
        lost = f"{(own['ratio_best'] < LEAST).sum()} of {len(own)}"
        lines.append([what, ratio(mean(own["ratio_best"])), _least(own), lost])
    return Grid(["rung", "of the best library, mean", "least, at", f"under {LEAST}"], lines)


def _least(own: pd.DataFrame) -> str:
    row = own.loc[own["ratio_best"].idxmin()]
    return f"{ratio(row.ratio_best)}, {Shape(row.m, row.n, row.k)}"
