"""PyTorch's products under libgemm_ladder_blas.so against FP64, for what Hypothesis draws: calls, sizes, layouts, types, NaN.

usage: LD_PRELOAD=build/lib/libgemm_ladder_blas.so python3 tests/lib/hypothesis_products.py [--count N] [--seed N]

With GEMM_LADDER_TYPES=f32,tf32,bf16,f16 in the environment rungs compute 16-bit types, too. Prints how many products were right.
Where one is wrong: the simplest that Hypothesis finds, and exit status 1. 77 without PyTorch, Hypothesis, a GPU, or the library.
"""

import argparse
import ctypes
import sys
from collections import Counter
from typing import NamedTuple

WAIVED = 77


def waive(why: str) -> None:
    print(f"hypothesis_products.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


try:
    import torch
except ImportError:
    waive("needs PyTorch")
try:
    from hypothesis import HealthCheck, errors, given, seed, settings
    from hypothesis import strategies as st
except ImportError:
    waive("needs Hypothesis")

TYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
OPERANDS = {"tf32": 2.0**-9}  # what rounding both may change in a product, relative to it
RESULTS = {"f32": 2.0**-22, "tf32": 2.0**-22, "bf16": 2.0**-8, "f16": 2.0**-10}  # two roundings of the result
SUM = 2.0**-23  # each addition in FP32, by tensor cores, too


class Layout(NamedTuple):
    """Where a batch of matrices lies; lines are rows, or columns."""

    by_columns: bool
    padding: int  # elements between lines
    gap: int  # between matrices
    offset: int  # before the first one
    step: int  # from an element of a line to the next one
    expanded: bool  # all lines, or in a batch all matrices, are one


class Case(NamedTuple):
    call: str
    type: str
    batch: int
    m: int
    n: int
    k: int
    a: Layout
    b: Layout
    c: Layout
    alpha: float
    beta: float
    poison: str  # the operand with a number that is none
    seed: int


# Most numbers are multiples of 4, of which a line has a multiple of 16 bytes: only these go to rungs.
SIZES = st.one_of(st.sampled_from([1, 8, 64, 128, 256, 1024]), st.integers(0, 128).map(lambda i: 4 * i), st.integers(0, 300))
FACTORS = st.one_of(st.sampled_from([1.0, 0.0, -1.0, 0.5]), st.floats(-4, 4, width=32, allow_subnormal=False))
LAYOUTS = st.builds(
    Layout,
    by_columns=st.booleans(),
    padding=st.sampled_from([0, 4, 8, 0, 1, 5]),
    gap=st.sampled_from([0, 4, 8, 0, 3]),
    offset=st.sampled_from([0, 4, 8, 0, 1, 2]),
    step=st.sampled_from([1, 1, 1, 1, 1, 2]),
    expanded=st.sampled_from([False, False, False, False, False, True]),
)
CALLS = ["mm", "out", "addmm", "addmm_", "linear", "bias", "bmm", "baddbmm", "baddbmm_", "matmul", "gradients"]
CASES = st.builds(
    Case,
    call=st.sampled_from([*CALLS, *CALLS, "graph"]),  # a capture takes longer, and has a workspace of its own
    type=st.sampled_from(list(TYPES)),
    batch=st.integers(1, 5),
    m=SIZES,
    n=SIZES,
    k=SIZES,
    a=LAYOUTS,
    b=LAYOUTS,
    c=LAYOUTS,
    alpha=FACTORS,
    beta=FACTORS,
    poison=st.sampled_from(["", "", "", "a", "b", "c"]),
    seed=st.integers(0, 2**31),
)


def stored(batch: int, rows: int, columns: int, layout: Layout, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Random matrices of a layout, and all the memory that they lie in; what lies between them is not-a-number."""
    lines, line = (columns, rows) if layout.by_columns else (rows, columns)
    ld = max(1, line * layout.step + layout.padding)
    far = lines * ld + layout.gap
    whole = torch.full((layout.offset + batch * far + 1,), float("nan"), dtype=dtype, device="cuda")
    found = whole.as_strided((batch, lines, line), (far, ld, layout.step), layout.offset)
    found.copy_(torch.randn(batch, lines, line, device="cuda"))
    if layout.expanded:
        found = found[:1].expand(batch, -1, -1) if batch > 1 else found[:, :1].expand(-1, lines, -1)
    return (found.mT if layout.by_columns else found), whole


def captured(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Their product by a CUDA graph."""
    got = torch.mm(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mm(a, b, out=got)
    got.fill_(float("nan"))
    graph.replay()
    return got


def wrong(got: torch.Tensor, a, b, kind: str, alpha: float = 1, beta: float = 0, c: torch.Tensor | None = None) -> str:
    """What is wrong with alpha a b + beta c. The bound is that of sums in FP32, and of rounding operands and results."""
    a, b = a.double(), b.double()
    product = alpha * (a @ b)
    addend = torch.zeros_like(product) if beta == 0 else beta * c.double()  # where beta is 0, c is not read
    want = product + addend
    scale = abs(alpha) * (a.abs() @ b.abs()) + addend.abs()
    allowed = scale * (OPERANDS.get(kind, 0) + (a.shape[-1] + 8) * SUM)
    allowed += RESULTS[kind] * (want.abs() + product.abs() + addend.abs()) + 1e-6
    got, finite = got.double(), want.isfinite()
    if got.shape != want.shape:
        return f"its shape is {tuple(got.shape)}"
    if not torch.equal(got[~finite].nan_to_num(7), want[~finite].nan_to_num(7)):
        return "infinities or not-a-numbers were lost"
    over = ((got - want).abs() / allowed)[finite]  # not-a-number, which is not below 1, where got is
    return (
        ""
        if (over <= 1).all()
        else f"of {over.numel()} elements {int((~(over <= 1)).sum())} are wrong, by {over.max():.3g} bounds"
    )


def check(case: Case) -> str:
    """What is wrong with a product of PyTorch's."""
    torch.manual_seed(case.seed)
    torch.backends.cuda.matmul.allow_tf32 = case.type == "tf32"
    call, kind, alpha, beta, dtype = case.call, case.type, case.alpha, case.beta, TYPES[case.type]
    batch = case.batch if call in ("bmm", "baddbmm", "baddbmm_", "matmul") else 1
    in_place = call in ("out", "addmm_", "baddbmm_")
    a, _ = stored(batch, case.m, case.k, case.a, dtype)
    b, _ = stored(1 if call == "matmul" else batch, case.k, case.n, case.b, dtype)
    c, whole = stored(batch, case.m, case.n, case.c._replace(expanded=case.c.expanded and not in_place), dtype)
    poisoned = {"a": a, "b": b, "c": c}.get(case.poison)
    if (
        poisoned is not None and poisoned.numel() and (alpha != 0 or case.poison == "c")
    ):  # where alpha is 0, a and b need not be read
        poisoned[0, -1, -1] = float("nan" if case.seed % 2 else "inf")
    if batch == 1 and call not in ("bmm", "baddbmm", "baddbmm_", "matmul"):
        a, b, c = a[0], b[0], c[0]

    old = c.clone()
    before = whole.clone()
    if call in ("mm", "bmm"):
        return wrong(getattr(torch, call)(a, b), a, b, kind)
    if call == "matmul":
        return wrong(torch.matmul(a, b[0]), a, b, kind)
    if call in ("addmm", "baddbmm"):
        return wrong(getattr(torch, call)(c, a, b, alpha=alpha, beta=beta), a, b, kind, alpha, beta, old)
    if in_place:
        if call == "out":
            alpha, beta = 1, 0
            torch.mm(a, b, out=c)
        else:
            getattr(c, call)(a, b, alpha=alpha, beta=beta)
        told = wrong(c, a, b, kind, alpha, beta, old)
        c.copy_(old)
        return told or (
            "" if torch.equal(whole.nan_to_num(7), before.nan_to_num(7)) else "what lies between the rows has changed"
        )
    if call == "linear":
        return wrong(torch.nn.functional.linear(a, b.mT), a, b, kind)
    if call == "bias":
        bias = torch.randn(case.n, dtype=dtype, device="cuda")
        return wrong(torch.nn.functional.linear(a, b.mT, bias), a, b, kind, 1, 1, bias.expand(case.m, case.n))
    if call == "gradients":
        left, right = a.detach().requires_grad_(), b.detach().requires_grad_()
        (left @ right).backward(c)
        return wrong(left.grad, c, b.mT, kind) or wrong(right.grad, a.mT, c, kind)
    return wrong(captured(a, b), a, b, kind)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many products")
    parser.add_argument("--seed", type=int, default=3, help="others are drawn with another one")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        waive("needs a GPU")
    if not hasattr(ctypes.CDLL(None), "gemm_ladder_blas_off"):
        waive("libgemm_ladder_blas.so is not preloaded: LD_PRELOAD=build/lib/libgemm_ladder_blas.so")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    right = Counter()

    @seed(options.seed)
    @settings(
        max_examples=options.count, deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=HealthCheck
    )
    @given(CASES)
    def each(case: Case) -> None:
        told = check(case)
        assert not told, f"{told}: {case}"
        right[case.type] += 1

    try:
        each()
    except (AssertionError, errors.Flaky) as error:  # a product that was wrong once, and then right, is flaky
        print(f"wrong: {error}")
        return 1
    print(f"{right.total()} of {right.total()} products right: {', '.join(f'{right[name]} {name}' for name in TYPES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
