"""Two results folders side by side: two GPUs, drivers or commits, and what lies outside the noise."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from plots.data.rungs import number, order
from plots.data.selection import PUBLISHED, Table
from plots.data.units import Shape
from plots.tables.grid import Grid

# How far apart two recordings on the same model of GPU may lie, for a ratio's median over sittings. FP32, which no power
# limit slows down, repeats better.
LIMITS = {"ratio_clk": 0.01, "ratio_cublas": 0.02}
FP32_LIMIT = 0.003
NAMES = {"ratio_clk": "of cuBLAS in clocks", "ratio_cublas": "of cuBLAS"}


def limit(type: str, column: str) -> float:
    """The largest difference of a ratio that is noise, as a part of the ratio."""
    return FP32_LIMIT if type == "f32" else LIMITS[column]


@dataclass(frozen=True)
class Pair:
    """One ratio of one cell in both folders."""

    type: str
    kernel: str
    shape: Shape
    column: str
    first: float
    second: float

    @property
    def apart(self) -> float:
        """The difference, as a part of the first."""
        return self.second / self.first - 1

    @property
    def is_noise(self) -> bool:
        return abs(self.apart) <= limit(self.type, self.column)


def pairs(first: list[Table], second: list[Table]) -> list[Pair]:
    """What both folders measured of the published cells, or, where they share none of those, of all their cells."""
    found = [pair for one in first for other in second if one.type == other.type for pair in _of_type(one, other)]
    return [pair for pair in found if pair.shape in PUBLISHED] or found


def _of_type(one: Table, other: Table) -> Iterable[Pair]:
    for kernel, shape in sorted(one.cells.keys() & other.cells.keys(), key=lambda place: (order(place[0]), place[1])):
        for column in NAMES:
            values = (table.value(kernel, shape, column) for table in (one, other))
            pair = Pair(one.type, kernel, shape, column, *values)
            if math.isfinite(pair.first) and math.isfinite(pair.second) and pair.first > 0:
                yield pair


def grids(found: list[Pair], names: tuple[str, str]) -> list[Grid]:
    """One table per type: both values of each ratio and their difference, in bold where it is more than noise."""
    grids = []
    for type in dict.fromkeys(pair.type for pair in found):
        own = {(pair.kernel, pair.shape, pair.column): pair for pair in found if pair.type == type}
        columns = [column for column in NAMES if any(place[2] == column for place in own)]
        head = [type, "size"]
        for column in columns:
            head += [f"{NAMES[column]}: {names[0]}", names[1], "difference"]
        rows = [
            [kernel, str(shape), *(text for column in columns for text in _said(own.get((kernel, shape, column))))]
            for kernel, shape in dict.fromkeys(place[:2] for place in own)
        ]
        grids.append(Grid(head, rows, left=2))
    return grids


def _said(pair: Pair | None) -> list[str]:
    if pair is None:
        return [""] * 3
    apart = f"{100 * pair.apart:+.2f} %"
    return [f"{pair.first:.4f}", f"{pair.second:.4f}", apart if pair.is_noise else f"**{apart}**"]


def summary(found: list[Pair]) -> dict[str, str]:
    """For each limit, in words: how many pairs are within it, and the largest difference."""
    said = {}
    for unit, is_f32 in (("FP32", True), ("tensor cores", False)):
        for column, name in NAMES.items():
            own = [pair for pair in found if (pair.type == "f32", pair.column) == (is_f32, column)]
            if own:
                worst = max(own, key=lambda pair: abs(pair.apart))
                where = f"{number(worst.kernel)}, {worst.shape}" + (f", {worst.type}" if not is_f32 else "")
                said[f"{unit}, {name}: within {100 * limit(worst.type, column):g} %"] = (
                    f"{sum(pair.is_noise for pair in own)} of {len(own)}; at most {100 * worst.apart:+.2f} % ({where})"
                )
    return said


def verdict(found: list[Pair]) -> str:
    """The largest difference under each limit, and how many are more than noise, in one line."""
    largest = {(pair.column, limit(pair.type, pair.column)): pair for pair in sorted(found, key=lambda pair: abs(pair.apart))}
    parts = [
        f"{NAMES[column]} {100 * pair.apart:+.2f} % ({pair.type}, {pair.kernel} at {pair.shape}; {100 * allowed:g} % allowed)"
        for (column, allowed), pair in sorted(largest.items())
    ]
    outside = sum(not pair.is_noise for pair in found)
    return f"Largest differences: {'; '.join(parts)}. {outside or 'None'} of {len(found)} outside the noise."
