"""Two results folders side by side: two GPUs, drivers or commits, and what lies outside the noise."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from plots.data.rungs import number, order
from plots.data.selection import PUBLISHED, Cell, Table
from plots.data.units import Shape, digits
from plots.tables.grid import Grid

RATE = "gflops"
# How far apart two recordings on the same model of GPU may lie, for a ratio's median over sittings. FP32, which no power
# limit slows down, repeats better.
LIMITS = {"ratio_clk": 0.01, "ratio_cublas": 0.02, RATE: 0.02}
FP32_LIMIT = 0.003
RATIOS = {"ratio_clk": "of cuBLAS in clocks", "ratio_cublas": "of cuBLAS"}
NAMES = RATIOS | {RATE: "TFLOP/s"}


def limit(type: str, column: str) -> float:
    """The largest difference of a number that is noise from one card to the next, as a part of it."""
    return FP32_LIMIT if type == "f32" else LIMITS[column]


@dataclass(frozen=True)
class Pair:
    """One number of one cell in both folders."""

    type: str
    kernel: str
    shape: Shape
    column: str
    first: float
    second: float
    spreads: tuple[float, float]  # of the sittings of each, or of the rounds of one sitting; as a part of the median

    @property
    def apart(self) -> float:
        """The difference, as a part of the first."""
        return self.second / self.first - 1

    @property
    def agrees(self) -> bool:
        """True where two cards of one model may differ by as much."""
        return abs(self.apart) <= limit(self.type, self.column)

    @property
    def noise(self) -> float:
        """What either folder wanders by itself, or two cards of one model may."""
        return max(limit(self.type, self.column), *(spread for spread in self.spreads if spread == spread))

    @property
    def is_noise(self) -> bool:
        return abs(self.apart) <= self.noise


@dataclass(frozen=True)
class Turned:
    """A cell that came out otherwise: right in one folder, and not in the other."""

    type: str
    kernel: str
    shape: Shape
    first: str
    second: str


def published(found: list[Pair]) -> list[Pair]:
    """Those of the published cells, or, where there are none of those, all."""
    return [pair for pair in found if pair.shape in PUBLISHED] or found


def comparable(first: list[Table], second: list[Table]) -> list[tuple[Table, Table]]:
    """The tables of each type that were measured under the same conditions in both."""
    return [(one, other) for one in first for other in second if (one.type, one.condition) == (other.type, other.condition)]


def pairs(first: list[Table], second: list[Table], columns: Sequence[str] = tuple(RATIOS)) -> list[Pair]:
    """What both folders measured."""
    return [pair for one, other in comparable(first, second) for pair in _of_type(one, other, columns)]


def _common(one: Table, other: Table) -> list[tuple[str, Shape]]:
    return sorted(one.cells.keys() & other.cells.keys(), key=lambda place: (order(place[0]), place[1]))


def _of_type(one: Table, other: Table, columns: Sequence[str]) -> Iterable[Pair]:
    for place in _common(one, other):
        cells = one.cells[place], other.cells[place]
        for column in columns:
            first, second = (median(cell.numbers(column) or [math.nan]) for cell in cells)
            if math.isfinite(first) and math.isfinite(second) and first > 0:
                yield Pair(one.type, *place, column, first, second, tuple(_spread(cell, column) for cell in cells))


def _spread(cell: Cell, column: str) -> float:
    """How far apart the sittings' numbers are; of one sitting, the 10th and the 90th percentile of its rounds' times."""
    numbers = cell.numbers(column)
    if len(numbers) > 1:
        return (max(numbers) - min(numbers)) / median(numbers)
    return (cell.value("p90_ms") - cell.value("p10_ms")) / cell.value("median_ms")


def turned(first: list[Table], second: list[Table]) -> list[Turned]:
    """The cells whose status is another one."""
    return [
        Turned(one.type, *place, one.cells[place].status, other.cells[place].status)
        for one, other in comparable(first, second)
        for place in _common(one, other)
        if one.cells[place].status != other.cells[place].status
    ]


def outside(found: list[Pair]) -> list[Pair]:
    """What is more than noise, the clearest first."""
    return sorted((pair for pair in found if not pair.is_noise), key=lambda pair: -abs(pair.apart) / pair.noise)


def grid(found: list[Pair], changed: list[Turned]) -> Grid:
    """A line per number: both medians, their ratio, and beside it the spreads that make the noise."""
    head = ["rung", "type", "M × N × K", "what", "A", "B", "B / A", "spread of A", "of B", "noise"]
    rows = [
        [
            *(pair.kernel, pair.type, str(pair.shape), NAMES[pair.column]),
            *(digits(value / 1000 if pair.column == RATE else value, 4) for value in (pair.first, pair.second)),
            digits(pair.second / pair.first, 4),
            *(f"{digits(100 * value, 2)} %" for value in (*pair.spreads, pair.noise)),
        ]
        for pair in found
    ]
    statuses = [[cell.kernel, cell.type, str(cell.shape), "status", cell.first, cell.second, *[""] * 4] for cell in changed]
    return Grid(head, statuses + rows, left=4)


def summary(found: list[Pair]) -> dict[str, str]:
    """For each limit, in words: how many pairs are within it, and the largest difference."""
    said = {}
    for unit, is_f32 in (("FP32", True), ("tensor cores", False)):
        for column, name in RATIOS.items():
            own = [pair for pair in found if (pair.type == "f32", pair.column) == (is_f32, column)]
            if own:
                worst = max(own, key=lambda pair: abs(pair.apart))
                where = f"{number(worst.kernel)}, {worst.shape}" + (f", {worst.type}" if not is_f32 else "")
                said[f"{unit}, {name}: within {100 * limit(worst.type, column):g} %"] = (
                    f"{sum(pair.agrees for pair in own)} of {len(own)}; at most {100 * worst.apart:+.2f} % ({where})"
                )
    return said


def verdict(found: list[Pair], changed: list[Turned]) -> str:
    """How many are more than noise, and the largest difference, in one line."""
    most = max(found, key=lambda pair: abs(pair.apart), default=None)
    beyond = len(outside(found))
    said = f"{beyond or 'None'} of {len(found)} numbers outside the noise"
    if changed:
        said += f", and {len(changed)} cells with another status"
    if most:
        said += f"; the largest difference {100 * most.apart:+.2f} % ({NAMES[most.column]}, {most.kernel}, {most.type} at "
        said += f"{most.shape}; noise {digits(100 * most.noise, 2)} %)"
    return said + "."
