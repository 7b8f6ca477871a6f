"""Choosing the rows that one figure or table compares: one type, one set of conditions, one cell per kernel and shape."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean, median
from typing import Any, NamedTuple

import pandas as pd

from plots.data.families import family
from plots.data.results import Results
from plots.data.rungs import Facts, order
from plots.data.units import Shape, digits, quotient

NAN = float("nan")
WITHIN = 0.01  # of the published ratio the rates of one sitting stand for all
HEADLINE = Shape(4096, 4096, 4096)
PUBLISHED = [Shape(n, n, n) for n in (2048, 4096, 8192)]  # measured in several sittings; the documents show them
PER_CLK = "_per_clk"  # after the name of a ceiling: the same in FLOP/clk/SM


class Condition(NamedTuple):
    """What must be equal for two rows to be comparable."""

    out: str
    scales: str  # of the operands: "none", "tensor", "rows", "blocks", "mx" or "nv"
    alpha: float
    beta: float
    epilogue: str  # "none", or its steps
    layout: str  # of A and B: "nn", "nt", "tn" or "tt"; empty: each rung's own
    groups: str  # how many, and how rows are distributed; empty: none
    ld_pad: str  # elements, or "align"
    init: str
    l2: str
    protocol: str

    def __str__(self) -> str:
        steps = f", epilogue {self.epilogue}" if self.epilogue != "none" else ""
        pad = (f", layout {self.layout}" if self.layout else "") + (f", {self.groups} groups" if self.groups else "")
        pad += f", ld_pad {self.ld_pad}" if self.ld_pad != "0" else ""
        pad += f", scales per {self.scales.removesuffix('s')}" if self.scales != "none" else ""
        return (
            f"{self.protocol} protocol, {self.init} data, {self.l2} L2, alpha {self.alpha:g}, beta {self.beta:g}{steps}"
            f"{pad}, out {self.out}"
        )


BASELINES = {"cuBLAS": "cublas_gflops", "cuBLASLt": "cublaslt_gflops", "CUTLASS": "cutlass_gflops"}  # their columns
RATES = {"gflops", *BASELINES.values()}  # the columns in GFLOP/s


@dataclass(frozen=True)
class Ceiling:
    """A measured limit of compute: in GFLOP/s, and in FLOP/clk/SM, which power does not move; NaN where unknown."""

    name: str
    instruction: str  # that it is the limit of: "FFMA", "mma.sync", "wgmma" or "tcgen05.mma"; a library may use another
    gflops: float
    flop_clk_sm: float


@dataclass(frozen=True)
class Cell:
    """One kernel at one shape: a row per sitting, with the CSV's columns as attributes."""

    sittings: list[Any]

    @cached_property
    def shown(self) -> list[Any]:
        """The sitting whose rates are published, or the two whose mean rates are: those whose quotient is nearest to the ratio.

        Rates of one sitting are of the same rounds, so that the library's beside the rung's is what the ratio says. Two are
        shown where a sitting's ratio, a median over rounds, is far from the quotient of its rates."""
        ratio = median(self.numbers("ratio_cublas") or [NAN])
        if ratio != ratio:
            rate = median(self.numbers("gflops") or [NAN])
            return [min(self.sittings, key=lambda row: abs(float(row.gflops) - rate) if rate == rate else 0)]

        def apart(rows: tuple[Any, ...]) -> float:
            rates = [sum(float(getattr(row, column)) for row in rows) for column in ("gflops", "cublas_gflops")]
            return abs(quotient(*rates) / ratio - 1)

        one = min(((row,) for row in self.sittings), key=apart)
        return list(min([one, *combinations(self.sittings, 2)], key=apart) if apart(one) > WITHIN else one)

    @property
    def status(self) -> str:
        """ "ok" where every sitting came out right, else what the first other one says."""
        return next((row.status for row in self.sittings if row.status != "ok"), "ok")

    def numbers(self, column: str) -> list[float]:
        """What is known of a column, a number per sitting; nothing of a cell that did not come out right."""
        values = [float(getattr(row, column)) for row in self.sittings] if self.status == "ok" else []
        return [value for value in values if value == value]

    def value(self, column: str) -> float:
        """The published number, NaN where there is none: a rate of the sittings `shown`, else the median over sittings."""
        if column in RATES:
            return fmean(float(getattr(row, column)) for row in self.shown) if self.status == "ok" else NAN
        return median(self.numbers(column) or [NAN])


@dataclass(frozen=True)
class Table:
    """The comparable rows of one type. Rates are GFLOP/s."""

    type: str
    condition: Condition
    facts: Facts
    cells: dict[tuple[str, Shape], Cell]
    kernels: list[str]  # in ladder order
    shapes: list[Shape]  # squares by size, then the others
    baselines: dict[str, dict[Shape, list[float]]]  # name -> shape -> beside each kernel
    measured_ceilings: dict[str, Ceiling]
    dram_gbs: float  # GB/s, NaN where not measured
    left_out: int  # timed rows of this type under other conditions

    @property
    def squares(self) -> list[Shape]:
        """The shapes of the family `square`, ascending."""
        return sorted(shape for shape in self.shapes if family(shape, self.facts) == "square")

    @cached_property
    def headline(self) -> Shape:
        """The shape of headline and ladder: 4096³ if measured, else the largest square, else the largest shape."""
        timed = [shape for shape in self.shapes if any(self.value(k, shape) > 0 for k in self.kernels)] or self.shapes
        squares = [shape for shape in timed if shape in self.squares]
        return HEADLINE if HEADLINE in timed else max(squares or timed, key=lambda shape: shape.flop)

    @property
    def operand_bytes(self) -> int:
        """Bytes of an element of A or B."""
        return self.facts.types[self.type].bytes

    @property
    def out_bytes(self) -> int:
        """Bytes of an element of C."""
        return self.facts.types[self.type].result_bytes[self.condition.out]

    def value(self, kernel: str, shape: Shape, column: str = "gflops") -> float:
        """A cell's published number; NaN where it did not come out right or was not measured."""
        cell = self.cells.get((kernel, shape))
        return cell.value(column) if cell else NAN

    def numbers(self, kernel: str, shape: Shape, column: str) -> list[float]:
        """A cell's numbers, one per sitting."""
        cell = self.cells.get((kernel, shape))
        return cell.numbers(column) if cell else []

    def knows(self, column: str) -> bool:
        """True where a column has a number in some cell."""
        return any(cell.numbers(column) for cell in self.cells.values())

    @property
    def sittings(self) -> int:
        """The most sittings that a cell was measured in."""
        return max(len(cell.sittings) for cell in self.cells.values())

    @property
    def gain_column(self) -> str:
        """What gains are quotients of: FLOP/clk/SM, which power does not move; the rate where no clocks were counted."""
        return "flop_clk_sm" if self.knows("flop_clk_sm") else "gflops"

    def gain(self, kernel: str, shape: Shape) -> tuple[float, str]:
        """How many times its stated predecessor a kernel reaches, and the predecessor's number; NaN where not measured."""
        before = self.facts.predecessor(kernel)
        if before is None:
            return NAN, ""
        return quotient(*(self.value(k, shape, self.gain_column) for k in (kernel, before.stem))), before.number

    def gain_text(self, kernel: str, shape: Shape) -> str:
        """The gain as text, "1.24 × 05"; empty where it is not known."""
        step, before = self.gain(kernel, shape)
        return f"{digits(step)} × {before}" if math.isfinite(step) else ""

    def ceiling(self, kernel: str) -> Ceiling | None:
        """The measured ceiling of a kernel's instruction; None where it was not measured."""
        rung = self.facts.rungs.get(kernel)
        return self.measured_ceilings.get(rung.ceilings.get(self.type, "")) if rung else None

    def share(self, kernel: str, shape: Shape) -> float:
        """What a kernel reaches of its instruction's ceiling: in FLOP/clk/SM, in GFLOP/s where no clocks were counted; or NaN."""
        ceiling = self.ceiling(kernel)
        if ceiling is None:
            return NAN
        per_clock = self.value(kernel, shape, "flop_clk_sm") / ceiling.flop_clk_sm
        return per_clock if per_clock == per_clock else self.value(kernel, shape) / ceiling.gflops

    @property
    def front(self) -> list[Shape]:
        """The sizes that an overview shows: the published ones that were timed, or the headline's."""
        return [shape for shape in PUBLISHED if shape in self.shapes] or [self.headline]

    @property
    def ceilings(self) -> list[Ceiling]:
        """The ceilings of the kernels in this table, the lowest first."""
        found = {ceiling.name: ceiling for k in self.kernels if (ceiling := self.ceiling(k))}
        return sorted(found.values(), key=lambda ceiling: ceiling.gflops)

    def cublas(self, kernel: str, shape: Shape) -> float:
        """GFLOP/s of cuBLAS in the rounds of a kernel; NaN where there are none."""
        return self.value(kernel, shape, BASELINES["cuBLAS"])

    def span(self, name: str, shape: Shape) -> tuple[float, float, float]:
        """The least, the median and the most GFLOP/s of a library beside the kernels of this table; NaN where not measured."""
        rates = self.baselines[name].get(shape, [NAN])
        return min(rates), median(rates), max(rates)


def tables(results: Results) -> list[Table]:
    """One table per type, in the order in which the facts name the types."""
    timed = results.ladder[results.ladder["protocol"] != "check"]
    own = [results.facts.layout(kernel) for kernel in timed["kernel"]]
    timed = timed.assign(layout=["" if other in ("", one) else one for one, other in zip(timed["layout"], own, strict=True)])
    return [_table(kind, timed[timed["type"] == kind], results) for kind in results.facts.types if kind in set(timed["type"])]


def cells(rows: pd.DataFrame) -> dict[tuple[str, Shape], Cell]:
    """The cells of comparable rows, in the order of the file."""
    found: dict[tuple[str, Shape], list[Any]] = {}
    for row in rows.itertuples():
        found.setdefault((row.kernel, row.shape), []).append(row)
    return {place: Cell(sittings) for place, sittings in found.items()}


def select(frame: pd.DataFrame, condition: Condition) -> pd.DataFrame:
    """The rows of `frame` that were measured under `condition`."""
    wanted = pd.Series(True, index=frame.index)
    for name, value in zip(condition._fields, condition, strict=True):
        wanted &= frame[name] == value
    return frame[wanted]


def _table(kind: str, rows: pd.DataFrame, results: Results) -> Table:
    counts = rows.groupby(list(Condition._fields), sort=True).size()
    condition = Condition(*max(counts.index, key=lambda group: (counts[group], _is_default(Condition(*group)))))
    chosen = select(rows, condition)
    found = cells(chosen)
    limits = results.ceilings
    instructions = {name: rung.instruction for rung in results.facts.rungs.values() for name in rung.ceilings.values()}
    return Table(
        type=kind,
        condition=condition,
        facts=results.facts,
        cells=found,
        kernels=sorted(set(chosen["kernel"]), key=order),
        shapes=sorted(set(chosen["shape"]), key=lambda s: (not s.is_square, s.m * s.n * s.k, s)),
        baselines=_baselines(found),
        measured_ceilings={
            name: Ceiling(name, instruction, limits[name][0], limits.get(name + PER_CLK, (NAN, ""))[0])
            for name, instruction in instructions.items()
            if name in limits
        },
        dram_gbs=limits.get("dram", (NAN, ""))[0],
        left_out=len(rows) - len(chosen),
    )


def _baselines(found: dict[tuple[str, Shape], Cell]) -> dict[str, dict[Shape, list[float]]]:
    """GFLOP/s beside each kernel by library and shape; CUTLASS, which not every build has, where it was measured."""
    rates: dict[str, dict[Shape, list[float]]] = {name: {} for name in BASELINES}
    for (_, shape), cell in found.items():
        for name, column in BASELINES.items():
            if (rate := cell.value(column)) == rate:
                rates[name].setdefault(shape, []).append(rate)
    return {name: of_shapes for name, of_shapes in rates.items() if of_shapes or name != "CUTLASS"}


def _is_default(condition: Condition) -> bool:
    return condition[1:] == ("none", 1.0, 0.0, "none", "", "", "0", "normal", "cold", "rounds")
