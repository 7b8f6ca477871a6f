"""How numbers are written: three significant digits, one unit for throughput (TFLOP/s) everywhere."""

import math
from statistics import median
from typing import NamedTuple

MISSING = "–"
TYPES = {"f32": "FP32", "tf32": "TF32", "bf16": "BF16", "f16": "FP16", "e4m3": "E4M3", "e5m2": "E5M2"}


class Shape(NamedTuple):
    """The sizes of one GEMM: C is m x n, the inner dimension is k; in elements."""

    m: int
    n: int
    k: int

    @property
    def is_square(self) -> bool:
        """True where all three sizes are equal."""
        return self.m == self.n == self.k

    @property
    def flop(self) -> float:
        """Floating-point operations: a multiply and an add for each of m*n*k terms."""
        return 2.0 * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}³" if self.is_square else f"{self.m}×{self.n}×{self.k}"


def gflops(shape: Shape, ms: float) -> float:
    """Throughput in GFLOP/s of `shape` done in `ms` milliseconds: 2*M*N*K / time."""
    return shape.flop / (ms * 1e6)


def quotient(value: float, by: float) -> float:
    """value / by; NaN where `by` is zero."""
    return value / by if by else math.nan


def compulsory_bytes(shape: Shape, operand_bytes: int, out_bytes: int, reads_c: bool) -> float:
    """Bytes that any implementation must move: A and B read once, C written once, and read once where beta != 0."""
    operands = shape.m * shape.k + shape.k * shape.n
    return operands * operand_bytes + shape.m * shape.n * out_bytes * (2 if reads_c else 1)


def type_name(kind: str) -> str:
    """ "BF16" of bf16."""
    return TYPES.get(kind, kind.upper())


def digits(value: float, significant: int = 3) -> str:
    """`value` in plain decimal with `significant` digits; a dash where it is not a number."""
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    decimals = significant - 1 - math.floor(math.log10(abs(value)))
    decimals = significant - 1 - math.floor(math.log10(abs(round(value, decimals))))
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def tflops(value: float) -> str:
    """A throughput given in GFLOP/s, written in TFLOP/s without the unit."""
    return digits(value / 1000)


def ratio(value: float) -> str:
    """A ratio with as many decimals as it is known to: two from 0.1 on, else two significant digits."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:.2f}" if value >= 0.0995 else digits(value, 2)


def hundredths(value: float) -> str:
    """A ratio with two decimals."""
    return f"{value:.2f}" if math.isfinite(value) else MISSING


def thousandths(value: float) -> str:
    """A ratio with three decimals."""
    return f"{value:.3f}" if math.isfinite(value) else MISSING


def ranged(values: list[float]) -> str:
    """The median of a ratio's sittings and, in brackets, their range; of one sitting, the ratio."""
    if len(values) < 2:
        return ratio(values[0] if values else math.nan)
    middle, low, high = (_three(value) for value in (median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def _three(value: float) -> str:
    """A ratio known from several sittings: three decimals from 0.1 on, else three significant digits."""
    return f"{value:.3f}" if value >= 0.09995 else digits(value)


def whole(value: float) -> str:
    """A count, without decimals."""
    return f"{value:.0f}" if math.isfinite(value) else MISSING


def kib(value: float) -> str:
    """A number of bytes in KiB."""
    return f"{value / 1024:.3g}" if math.isfinite(value) else MISSING
