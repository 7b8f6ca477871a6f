"""Choosing the rows that one figure or table compares: one type, one set of conditions, one row a kernel and shape."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from plots.data.families import family
from plots.data.results import Results
from plots.data.rungs import order
from plots.data.units import Shape

NAN = float("nan")
HEADLINE = Shape(4096, 4096, 4096)
PER_CLK = "_per_clk"  # after the name of a ceiling: the same in FLOP/clk/SM
OPERAND_BYTES = {"f32": 4, "tf32": 4, "bf16": 2, "f16": 2}


class Condition(NamedTuple):
    """What must be equal for two rows to be comparable."""

    out: str
    alpha: float
    beta: float
    ld_pad: str  # elements, or "align"
    init: str
    l2: str
    protocol: str

    def __str__(self) -> str:
        pad = f", ld_pad {self.ld_pad}" if self.ld_pad != "0" else ""
        return (
            f"{self.protocol} protocol, {self.init} data, {self.l2} L2, alpha {self.alpha:g}, beta {self.beta:g}"
            f"{pad}, out {self.out}"
        )


@dataclass(frozen=True)
class Ceiling:
    """A measured limit of compute: in GFLOP/s, and in FLOP a clock and SM, which power does not move; NaN where unknown."""

    name: str
    gflops: float
    flop_clk_sm: float


@dataclass(frozen=True)
class Table:
    """The comparable rows of one type. Rates are GFLOP/s."""

    type: str
    condition: Condition
    cells: dict[tuple[str, Shape], Any]  # (kernel, shape) -> row with the CSV's columns as attributes
    kernels: list[str]  # in ladder order
    shapes: list[Shape]  # squares by size, then the others
    baselines: dict[str, dict[Shape, float]]  # "cuBLAS", "cuBLASLt" -> shape -> median over kernels' rows
    ceiling: Ceiling | None
    dram_gbs: float  # GB/s, NaN where not measured
    left_out: int  # timed rows of this type under other conditions

    @property
    def squares(self) -> list[Shape]:
        """The shapes of the family `square`, ascending."""
        return sorted(shape for shape in self.shapes if family(shape) == "square")

    @property
    def headline(self) -> Shape:
        """The shape of headline and ladder: 4096³ if measured, else the largest square, else the largest shape."""
        timed = [shape for shape in self.shapes if any(self.value(k, shape) > 0 for k in self.kernels)] or self.shapes
        squares = [shape for shape in timed if shape in self.squares]
        return HEADLINE if HEADLINE in timed else max(squares or timed, key=lambda shape: shape.flop)

    @property
    def operand_bytes(self) -> int:
        """Bytes of an element of A or B."""
        return OPERAND_BYTES[self.type]

    @property
    def out_bytes(self) -> int:
        """Bytes of an element of C."""
        return self.operand_bytes if self.condition.out == "same" else 4

    def value(self, kernel: str, shape: Shape, column: str = "gflops") -> float:
        """A number of a cell that came out right; NaN for any other."""
        row = self.cells.get((kernel, shape))
        return float(getattr(row, column)) if row is not None and row.status == "ok" else NAN

    @property
    def counts_clocks(self) -> bool:
        """True where it is known of some cell how many clocks it took."""
        return any(row.flop_clk_sm > 0 for row in self.cells.values())

    def baseline(self, name: str, shape: Shape) -> float:
        """GFLOP/s of "cuBLAS" or "cuBLASLt"; NaN where not measured."""
        return self.baselines[name].get(shape, NAN)


def tables(results: Results) -> list[Table]:
    """One table a type, in the order of DESIGN's types."""
    timed = results.ladder[results.ladder["protocol"] != "check"]
    return [_table(kind, timed[timed["type"] == kind], results) for kind in OPERAND_BYTES if kind in set(timed["type"])]


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
    shapes = sorted(set(chosen["shape"]), key=lambda s: (not s.is_square, s.m * s.n * s.k, s))
    return Table(
        type=kind,
        condition=condition,
        cells={(row.kernel, row.shape): row for row in chosen.itertuples()},
        kernels=sorted(set(chosen["kernel"]), key=order),
        shapes=shapes,
        baselines={
            name: chosen.groupby("shape")[column].median().dropna().to_dict()
            for name, column in (("cuBLAS", "cublas_gflops"), ("cuBLASLt", "cublaslt_gflops"))
        },
        ceiling=_ceiling(chosen, results),
        dram_gbs=results.ceilings.get("dram", (NAN, ""))[0],
        left_out=len(rows) - len(chosen),
    )


def _is_default(condition: Condition) -> bool:
    return condition[1:] == (1.0, 0.0, 0.0, "normal", "cold", "rounds")


def _ceiling(rows: pd.DataFrame, results: Results) -> Ceiling | None:
    """The compute ceiling that the rows name; from ceilings.csv, else from what the rows say of their fraction."""
    named = rows[(rows["ceiling"] != "") & (rows["ceiling"] != "dram")]
    if named.empty:
        return None
    name = named["ceiling"].mode()[0]
    per_clock = results.ceilings.get(name + PER_CLK, (NAN, ""))[0]
    if name in results.ceilings:
        return Ceiling(name, results.ceilings[name][0], per_clock)
    implied = (named["gflops"] / named["ceiling_fraction"])[named["ceiling"] == name].median()
    return Ceiling(name, float(implied), per_clock) if implied > 0 else None
