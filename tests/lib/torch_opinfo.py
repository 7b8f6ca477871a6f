"""PyTorch's products on a GPU against FP64 on the CPU, as its OpInfos draw them: torch_suites.py runs these tests with pytest.

An OpInfo describes a function of PyTorch for tests: it draws arguments, and knows which are errors. OpInfos are part of the
package torch. Their samples are small, so a rung takes few of them. Therefore products also get each sample with all its sizes
multiplied, and the plain ones matrices of all layouts, whole and as slices.

The error that is allowed is a part of the largest element, and of 1 where all are smaller. In FP32 it is a tenth of what
PyTorch's test_ops.py allows. A test counts what it has compared as its property `samples`.
"""

import importlib.util
import os
import sys
import unittest
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from types import ModuleType

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

if not importlib.util.find_spec("expecttest"):  # PyTorch's modules name it, and nothing here calls it
    sys.modules["expecttest"] = ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

DEVICE = os.environ.get("PYTORCH_TESTING_DEVICE_ONLY_FOR", "cuda")  # PyTorch's own tests read this variable, too
ATTENTION = "nn.functional.multi_head_attention_forward"
PLAIN = ["mm", "addmm", "bmm", "baddbmm", "matmul", "nn.functional.linear"]
PRODUCTS = [*PLAIN, "addmm.decomposed", "addbmm", "__rmatmul__", "einsum", "tensordot", "inner", "linalg.multi_dot"]
PRODUCTS += ["cov", "corrcoef", "nn.functional.bilinear", "nn.functional.scaled_dot_product_attention"]
# Convolutions are products where cuDNN is off. Of the last ones the gradients are, or products are in cuSOLVER.
OTHERS = [f"nn.functional.conv{kind}{dimensions}d" for kind in ("", "_transpose") for dimensions in (1, 2, 3)]
OTHERS += [ATTENTION, "cdist", "linalg.matrix_power", "linalg.householder_product", "ormqr"]
OTHERS += ["linalg.inv", "linalg.solve", "linalg.solve_triangular", "linalg.lu_solve", "linalg.cholesky", "linalg.tensorinv"]
OTHERS += ["linalg.tensorsolve", "cholesky_inverse", "cholesky_solve"]
NOT_RANDOM = {ATTENTION: {"training": False}, "nn.functional.scaled_dot_product_attention": {"dropout_p": 0.0}}


@dataclass(frozen=True)
class Kind:
    """How a product is computed, and the error that is allowed."""

    name: str
    dtype: torch.dtype
    allowed: float


KINDS = [
    Kind("f32", torch.float32, 1e-4),
    Kind("tf32", torch.float32, 5e-3),
    Kind("bf16", torch.bfloat16, 5e-2),
    Kind("f16", torch.float16, 1e-2),
]
OPS = [op for op in op_db if op.full_name in (*PRODUCTS, *OTHERS)]
CASES = [
    pytest.param(op, kind, id=f"{op.full_name}-{kind.name}")
    for op in OPS
    for kind in KINDS
    if kind.dtype in op.supported_dtypes(DEVICE) and (op.full_name != "cov" or kind.name == "f32")  # it divides by almost 0
]


def takes_out(op, kind: Kind) -> bool:
    """And PyTorch does not expect its own test of it to fail."""
    return op.supports_out and unittest.expectedFailure not in op.get_decorators("TestCommon", "test_out", DEVICE, kind.dtype, {})


# ---- samples -----------------------------------------------------------------------------------------------------------


def by_lines(shape, order) -> torch.Tensor:
    """Random numbers; the dimension that order names last has neighbours in memory."""
    found = torch.randn([shape[dimension] for dimension in order])
    return found.permute([order.index(dimension) for dimension in range(len(shape))])


def times_as_large(sample: SampleInput) -> SampleInput:
    """All sizes but 1 multiplied by one number, so that they fit one another as before."""
    dimensions = max(one.dim() for one in tree_leaves([sample.input, sample.args, sample.kwargs]) if torch.is_tensor(one))
    times = 16 if dimensions < 3 else 4

    def larger(old):
        if not torch.is_tensor(old):
            return old
        shape = [size if size == 1 else size * times for size in old.shape]
        order = sorted(range(old.dim()), key=lambda dimension: (-old.stride(dimension), dimension))
        new = by_lines(shape, order)
        if old.dtype == torch.bool:
            return new > -1
        return (new.abs() if (old >= 0).all() else new).to(old.dtype)  # weights stay positive

    return sample.transform(larger)


def layouts(name: str, dtype: torch.dtype):
    """Of a plain product in all layouts, of whole matrices and of slices with other leading dimensions."""
    batch = [2] if "bmm" in name else []
    sizes = [(2048, 2176, 64)] if batch else [(2048, 512, 256), (300, 204, 1000)]  # of a batch rungs compute large C alone
    for (m, n, k), transposed_a, transposed_b, padding in product(
        [(256, 256, 256), *sizes], (False, True), (False, True), (0, 4, 1)
    ):

        def matrix(rows, columns, transposed=False, padding=padding):
            lines, line = (columns, rows) if transposed else (rows, columns)
            found = torch.randn([*batch, lines, line + padding], dtype=dtype)[..., :line]
            return found.mT if transposed else found

        a, b, c = matrix(m, k, transposed_a), matrix(k, n, transposed_b), matrix(m, n)
        if name == "nn.functional.linear":
            yield SampleInput(a, b.mT)
            yield SampleInput(a, b.mT, torch.randn(n, dtype=dtype))
        elif "add" in name:
            yield SampleInput(c, a, b)
            yield SampleInput(c, a, b, alpha=0.6, beta=0.2)
        else:
            yield SampleInput(a, b)


def samples(op, kind: Kind):
    """Each with what it is, in tensors on the CPU."""
    torch.manual_seed(3)
    for i, sample in enumerate(op.sample_inputs("cpu", kind.dtype)):
        sample.kwargs = {**sample.kwargs, **NOT_RANDOM.get(op.full_name, {})}
        if op.full_name == ATTENTION:  # else the arguments of softmax are so far apart that gradients are mostly roundings
            sample = sample.transform(lambda one: one / 8)
        yield f"sample {i}", sample
        if op.full_name in PRODUCTS:
            yield f"sample {i}, larger", times_as_large(sample)
    if op.full_name in PLAIN:
        for i, sample in enumerate(layouts(op.full_name, kind.dtype)):
            yield f"layout {i}", sample


def on_device(sample: SampleInput, dtype: torch.dtype, device: str, differentiable: bool = False) -> SampleInput:
    """Its tensors there, as they lie in memory, of another type where they have fractions."""

    def moved(old):
        if not torch.is_tensor(old):
            return old
        new = torch.empty_strided(old.size(), old.stride(), dtype=dtype if old.is_floating_point() else old.dtype, device=device)
        return new.copy_(old).requires_grad_(differentiable and new.is_floating_point())

    return sample.transform(moved)


# ---- what is compared --------------------------------------------------------------------------------------------------


def call(op, sample: SampleInput, **more):
    return op(sample.input, *sample.args, **sample.kwargs, **more)


def values(op, sample: SampleInput) -> list[torch.Tensor]:
    return [one.detach() for one in tree_leaves(sample.output_process_fn_grad(call(op, sample))) if torch.is_tensor(one)]


def gradients(op, sample: SampleInput) -> list[torch.Tensor | None]:
    """Of all its tensors, for a random gradient of the results."""

    def differentiable(tree):
        return [one for one in tree_leaves(tree) if torch.is_tensor(one) and one.requires_grad]

    results = differentiable(sample.output_process_fn_grad(call(op, sample)))
    inputs = differentiable([sample.input, sample.args, sample.kwargs])
    torch.manual_seed(7)
    above = [torch.randn(one.shape).to(one) for one in results]
    return torch.autograd.grad(results, inputs, above, allow_unused=True) if results and inputs else []


def wrong(got: list, want: list, allowed: float) -> str:
    if len(got) != len(want):
        return f"{len(got)} results in place of {len(want)}"
    for one, other in zip(got, want, strict=True):
        if (one is None) != (other is None):
            return "a gradient is missing"
        if one is None or other.numel() == 0:
            continue
        largest = other.nan_to_num(0, 0, 0).abs().max().clamp(min=1).item()
        bounds = {"rtol": allowed, "atol": allowed * largest, "equal_nan": True}
        try:
            torch.testing.assert_close(one.cpu().to(other.dtype), other, **bounds)
        except AssertionError as error:
            return " ".join(str(error).split())
    return ""


def verdict(comparisons, record_property) -> None:
    """Of pairs of what was compared and what is wrong with it."""
    comparisons = list(comparisons)
    told = [f"{name}: {message}" for name, message in comparisons if message]
    record_property("samples", len(comparisons))
    assert not told, f"{len(told)} of {len(comparisons)} are wrong; " + "; ".join(told)


@pytest.fixture
def computed():
    """As a kind says, by products: not by cuDNN, and not by an attention that is one kernel."""
    with ExitStack() as stack:
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))

        def set_kind(kind: Kind) -> None:
            old = torch.backends.cuda.matmul.allow_tf32
            stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", old)
            torch.backends.cuda.matmul.allow_tf32 = kind.name == "tf32"

        yield set_kind


def test_each_name_has_an_opinfo():
    assert {op.full_name for op in OPS} == {*PRODUCTS, *OTHERS}


@pytest.mark.parametrize(("op", "kind"), CASES)
def test_values(op, kind, computed, record_property):
    def comparisons():
        for name, sample in samples(op, kind):
            want = values(op, on_device(sample, torch.float64, "cpu"))
            ours = on_device(sample, kind.dtype, DEVICE)
            yield name, wrong(values(op, ours), want, kind.allowed)
            yield f"{name}, not contiguous", wrong(values(op, ours.noncontiguous()), want, kind.allowed)
            if op.inplace_variant and not sample.broadcasts_input:
                yield f"{name}, in place", wrong(values(op.inplace_variant, ours), want, kind.allowed)

    computed(kind)
    verdict(comparisons(), record_property)


@pytest.mark.parametrize(("op", "kind"), [case for case in CASES if takes_out(*case.values)])
def test_out(op, kind, computed, record_property):
    def comparisons():
        for name, sample in samples(op, kind):
            want = values(op, on_device(sample, torch.float64, "cpu"))
            ours = on_device(sample, kind.dtype, DEVICE)
            for padding in (0, 4) if want[0].dim() else (0,):
                line = want[0].shape[-1:]
                whole = torch.full([*want[0].shape[:-1], *(one + padding for one in line)], torch.nan, dtype=kind.dtype)
                out = whole.to(DEVICE)[..., : line[0]] if line else whole.to(DEVICE)
                call(op, ours, out=out)
                yield f"{name}, out with {padding} elements between rows", wrong([out], want, kind.allowed)

    computed(kind)
    verdict(comparisons(), record_property)


@pytest.mark.parametrize(("op", "kind"), [case for case in CASES if case.values[0].supports_autograd])
def test_gradients(op, kind, computed, record_property):
    def comparisons():
        for name, sample in samples(op, kind):
            want = gradients(op, on_device(sample, torch.float64, "cpu", differentiable=True))
            ours = gradients(op, on_device(sample, kind.dtype, DEVICE, differentiable=True))
            yield name, wrong(ours, want, kind.allowed)

    computed(kind)
    verdict(comparisons(), record_property)


@pytest.mark.parametrize("op", [pytest.param(op, id=op.full_name) for op in OPS if op.error_inputs_func])
def test_errors(op, record_property):
    def comparisons():
        for i, error in enumerate(op.error_inputs(DEVICE)):
            with pytest.raises(error.error_type, match=error.error_regex):
                call(op, error.sample_input)
            yield f"error {i}", ""

    verdict(comparisons(), record_property)
