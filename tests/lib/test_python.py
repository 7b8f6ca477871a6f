"""lib/python/gemm_ladder.py: on the simulator by tests/lib/on_simulator.py, and with each framework where it and a GPU are."""

import importlib
import re
import subprocess
import sys

import pytest

from plots.data.gpu import has_gpu
from tests.checkout import ROOT, needs_simulator, run

LIBRARY, MODULES = ROOT / "build/lib/libgemm_ladder.so", ROOT / "lib/python"
ON_SIMULATOR = ROOT / "tests/lib/on_simulator.py"
CHECKS = re.findall(r"^def (check_\w+)", ON_SIMULATOR.read_text(encoding="utf-8"), re.MULTILINE)

needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="libgemm_ladder.so is not built here")


def python(*words: object, **environment: str) -> subprocess.CompletedProcess:
    """A program that finds the module and, in place of the CUDA runtime, the simulator."""
    simulator = {"LD_LIBRARY_PATH": str(ROOT / "build/sim"), "GEMM_LADDER_SIM_CHECKS": "all=error,exited=off"}
    return run(sys.executable, *words, **{"PYTHONPATH": str(MODULES), "GEMM_LADDER_LIBRARY": ""} | simulator | environment)


@pytest.fixture(scope="module")
def on_simulator() -> str:
    done = python(ON_SIMULATOR)
    return done.stdout + done.stderr


@needs_library
@needs_simulator
@pytest.mark.parametrize("check", CHECKS)
def test_on_the_simulator(check, on_simulator):
    assert re.search(rf"^{check}: ok$", on_simulator, re.MULTILINE), on_simulator


LOAD = "import gemm_ladder\ntry: gemm_ladder.Library.get()\nexcept OSError as error: print(error)"


@pytest.mark.parametrize("named", ["/nowhere/libgemm_ladder.so", str(ON_SIMULATOR)])
def test_a_library_that_is_none_is_named(named):
    done = python("-c", LOAD, GEMM_LADDER_LIBRARY=named)
    (line,) = done.stdout.splitlines()
    assert done.returncode == 0 and named in line, done.stderr


# ---- on a GPU ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def gemm_ladder(monkeypatch):
    if not has_gpu():
        pytest.skip("no GPU here")
    if not LIBRARY.exists():
        pytest.skip("libgemm_ladder.so is not built here")
    monkeypatch.syspath_prepend(str(MODULES))
    return importlib.import_module("gemm_ladder")


def framework(name: str):
    return pytest.importorskip(name, reason=f"there is no {name} here")


def close(got, want, k: int, unit: float = 2.0**-23) -> bool:
    """Of NumPy arrays in FP64; numbers are of the order of 1."""
    return float(abs(got - want).max()) <= (8 * k**0.5 * 2.0**-24 + unit) * float(abs(want).max() + k)


def test_torch(gemm_ladder):
    torch = framework("torch")
    a, b = torch.randn(264, 136, device="cuda"), torch.randn(136, 520, device="cuda")
    want = (a.double() @ b.double()).cpu().numpy()
    for left in (a, a.T.contiguous().T):
        for right in (b, b.T.contiguous().T):
            assert close(gemm_ladder.matmul(left, right).double().cpu().numpy(), want, 136)
    for dtype, unit in ((torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)):
        left, right = a.to(dtype), b.to(dtype)
        of_16_bits = (left.double() @ right.double()).cpu().numpy()
        assert close(gemm_ladder.matmul(left, right).double().cpu().numpy(), of_16_bits, 136, unit)
        out = torch.empty(264, 520, device="cuda")
        assert close(gemm_ladder.matmul(left, right, out=out).double().cpu().numpy(), of_16_bits, 136)
    with pytest.raises(ValueError, match="requires a gradient"):
        gemm_ladder.matmul(a.clone().requires_grad_(), b)
    with pytest.raises(TypeError, match="a is on cpu"):
        gemm_ladder.matmul(a.cpu(), b)


def test_torch_streams_and_graphs(gemm_ladder):
    """The product waits for its operands on the current stream of PyTorch, and can be captured there."""
    torch = framework("torch")
    a, b = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    out = torch.zeros(1024, 1024, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(20_000_000)
        now = a * 2
        got = gemm_ladder.matmul(now, b)
        torch.cuda.current_stream().synchronize()
    want = (a.double() @ b.double()).cpu().numpy()
    assert close(got.double().cpu().numpy() / 2, want, 1024)
    graph = torch.cuda.CUDAGraph()
    gemm_ladder.matmul(a, b, out=out)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        gemm_ladder.matmul(a, b, out=out)
    out.fill_(float("nan"))
    graph.replay()
    assert close(out.double().cpu().numpy(), want, 1024)


def test_cupy(gemm_ladder):
    cupy = framework("cupy")
    a, b = cupy.random.standard_normal((264, 136), cupy.float32), cupy.random.standard_normal((136, 520), cupy.float32)
    want = cupy.asnumpy(a.astype(float) @ b.astype(float))
    for left in (a, cupy.asfortranarray(a)):
        for right in (b, cupy.asfortranarray(b)):
            assert close(cupy.asnumpy(gemm_ladder.matmul(left, right)), want, 136)
    with cupy.cuda.Stream(non_blocking=True):
        assert close(cupy.asnumpy(gemm_ladder.matmul(a, b)), want, 136)


def test_jax(gemm_ladder):
    jax = framework("jax")
    numpy = framework("numpy")
    if jax.default_backend() != "gpu":
        pytest.skip("this jax has no GPU")
    host = numpy.random.default_rng(1)
    a, b = host.standard_normal((264, 136), numpy.float32), host.standard_normal((136, 520), numpy.float32)
    left, right = jax.numpy.asarray(a), jax.numpy.asarray(b)
    got = gemm_ladder.matmul(left, right)
    assert isinstance(got, jax.Array)
    assert close(numpy.asarray(got, float), a.astype(float) @ b.astype(float), 136)
    assert gemm_ladder.matmul(left.astype("bfloat16"), right.astype("bfloat16")).dtype == "bfloat16"
    with pytest.raises(TypeError, match="never changes"):
        gemm_ladder.matmul(left, right, out=got)
    with pytest.raises(TypeError, match="traced"):
        jax.jit(gemm_ladder.matmul)(left, right)
