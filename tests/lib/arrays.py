"""The module gemm_ladder with arrays of PyTorch, CuPy and JAX on a GPU: its products against NumPy's in FP64.

usage: PYTHONPATH=lib/python python3 tests/lib/arrays.py [torch] [cupy] [jax]   (without a name: each that is there)

A line per check and framework: `name, framework: ok`, or what is wrong; exit status 1 where something is. 77 without the library,
NumPy, or a framework with a GPU. tests/lib/on_simulator.py has the refusals that need none.
"""

import importlib
import os
import sys
import traceback
from contextlib import nullcontext

WAIVED = 77
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves memory to the others


def waive(why: str) -> None:
    print(f"arrays.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


try:
    import numpy as np
except ImportError:
    waive("needs NumPy")
try:
    import gemm_ladder

    gemm_ladder.Library.get()
except ImportError:
    waive("gemm_ladder is not found: PYTHONPATH=lib/python")
except OSError as error:
    waive(str(error))

random = np.random.default_rng(7)
UNIT = {"float32": 2.0**-22, "bfloat16": 2.0**-8, "float16": 2.0**-10}
FP8 = 2.0**-9  # how far a sum of E4M3 is off, of normal numbers, over the root of its length: it keeps 13 bits


class Torch:
    writes = True  # into out

    def __init__(self):
        self.module = importlib.import_module("torch")

    def has_gpu(self) -> bool:
        return self.module.cuda.is_available()

    def array(self, host, dtype="float32"):
        return self.module.from_numpy(host).cuda().to(getattr(self.module, dtype))

    def numpy(self, array):
        return array.double().cpu().numpy()

    def bits(self, e4m3):
        return e4m3.view(self.module.uint8).cpu().numpy()

    def stream(self):
        return self.module.cuda.stream(self.module.cuda.Stream())

    def capture(self, call):
        graph = self.module.cuda.CUDAGraph()
        with self.module.cuda.graph(graph):
            call()
        return graph.replay


class Cupy:
    writes = True

    def __init__(self):
        self.module = importlib.import_module("cupy")

    def has_gpu(self) -> bool:
        return self.module.cuda.is_available()

    def array(self, host, dtype="float32"):
        return self.module.asarray(host).astype(importlib.import_module("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)

    def numpy(self, array):
        return self.module.asnumpy(array).astype(np.float64)

    def bits(self, e4m3):
        return self.module.asnumpy(e4m3)

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def capture(self, call):
        stream = self.module.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            call()
            graph = stream.end_capture()

        def replay():
            graph.launch(stream)
            stream.synchronize()

        return replay


class Jax:
    writes = False

    def __init__(self):
        self.module = importlib.import_module("jax")

    def has_gpu(self) -> bool:
        return self.module.default_backend() == "gpu"

    def array(self, host, dtype="float32"):
        return self.module.numpy.asarray(host).astype(dtype)

    def numpy(self, array):
        return np.asarray(array.astype("float32"), np.float64)

    def bits(self, e4m3):
        return np.asarray(e4m3).view(np.uint8)

    def stream(self):
        return nullcontext()  # its own, which nobody else sees


def stored(of, rows: int, columns: int, order: str = "C", padding: int = 0, dtype: str = "float32"):
    """Random numbers on the GPU, by rows ("C") or columns ("F"), with so many others between them, and all of these."""
    shape = (rows, columns + padding) if order == "C" else (columns, rows + padding)
    whole = of.array(random.standard_normal(shape, np.float32), dtype)
    return (whole[:, :columns] if order == "C" else whole[:, :rows].T), whole


def close(of, got, want, k: int, dtype: str = "float32", operands: float = 0) -> None:
    """Numbers are of the order of 1: the error is that of k sums in FP32, of rounding operands, and of rounding results."""
    got = of.numpy(got)
    assert got.shape == want.shape, f"its shape is {got.shape}, not {want.shape}"
    error, size = np.abs(got - want).max(initial=0), np.abs(want).max(initial=0)
    assert error <= 8 * ((k + 8) * 2.0**-24 + np.sqrt(k) * operands) + UNIT[dtype] * size, f"it is {error} off"


def product(of, a, b):
    return of.numpy(a) @ of.numpy(b)


def check_layouts(of):
    for order_a in "CF":
        for order_b in "CF":
            for padding in (0, 4, 3):  # 3: rows do not begin at multiples of 16 bytes
                for m, n, k in ((264, 520, 136), (65, 33, 257)):
                    (a, _), (b, _) = stored(of, m, k, order_a, padding), stored(of, k, n, order_b, padding)
                    got = gemm_ladder.matmul(a, b)
                    assert type(got) is type(a), f"it is {type(got)}"
                    close(of, got, product(of, a, b), k)


def check_out(of):
    for order in "CF":
        for padding in (0, 4, 3):
            (a, _), (b, _), (out, whole) = stored(of, 72, 40), stored(of, 40, 136), stored(of, 72, 136, order, padding)
            before, old = of.numpy(whole), of.numpy(out)
            assert gemm_ladder.matmul(a, b, out=out, alpha=-1.5, beta=0.5) is out
            close(of, out, -1.5 * product(of, a, b) + 0.5 * old, 40)
            line = 136 if order == "C" else 72
            assert (of.numpy(whole)[:, line:] == before[:, line:]).all(), "what lies between the rows has changed"
            out[:] = float("nan")
            gemm_ladder.matmul(a, b, out=out)
            close(of, out, product(of, a, b), 40)


def check_types(of):
    for dtype in ("float16", "bfloat16"):
        for order in "CF":
            (a, _), (b, _) = stored(of, 264, 136, dtype=dtype), stored(of, 136, 520, order, dtype=dtype)
            got = gemm_ladder.matmul(a, b)
            assert got.dtype == a.dtype, f"it is of {got.dtype}"
            close(of, got, product(of, a, b), 136, dtype)
            if of.writes:
                out, _ = stored(of, 264, 520)
                close(of, gemm_ladder.matmul(a, b, out=out), product(of, a, b), 136)
    (a, _), (b, _) = stored(of, 264, 136), stored(of, 136, 520, "F")
    close(of, gemm_ladder.matmul(a, b, kind="tf32"), product(of, a, b), 136, operands=2.0**-9)


def check_vectors_and_nothing(of):
    for m, n, k in ((1, 1, 1), (1, 8, 16), (8, 1, 16), (5, 7, 1), (5, 7, 0), (0, 5, 7), (7, 0, 5)):
        for order in "CF":
            (a, _), (b, _) = stored(of, m, k, order), stored(of, k, n, order)
            close(of, gemm_ladder.matmul(a, b), product(of, a, b), k)


def check_order_of_work(of):
    """A product waits for its operands on the current stream, and what comes after it there waits for the product."""
    (a, _), (b, _) = stored(of, 1024, 1024), stored(of, 1024, 1024)
    want = product(of, a, b)
    with of.stream():
        for _ in range(5):
            busy = a
            for _ in range(50):
                busy = busy @ b * 0 + a
            twice = busy + a  # not there yet
            close(of, gemm_ladder.matmul(twice, b) + 1, 2 * want + 1, 1024)


def check_results_do_not_share_memory(of):
    (a, _), (b, _) = stored(of, 64, 64), stored(of, 64, 64)
    first, second = gemm_ladder.matmul(a, b), gemm_ladder.matmul(b, a)
    close(of, first, product(of, a, b), 64)
    close(of, second, product(of, b, a), 64)
    if not of.writes:
        assert not np.asarray(of.module.numpy.zeros((64, 64), a.dtype)).any(), "another array of zeros has changed"


def check_graph(of):
    (a, _), (b, _), (out, _) = stored(of, 256, 512), stored(of, 512, 256), stored(of, 256, 256)
    gemm_ladder.matmul(a, b, out=out)
    of.numpy(out)
    replay = of.capture(lambda: gemm_ladder.matmul(a, b, out=out))
    out[:] = float("nan")
    of.numpy(out)
    replay()
    close(of, out, product(of, a, b), 512)


def scaled(of, high: int, wide: int, rows: int, columns: int):
    """Scales of blocks of high x wide of a matrix, and one for each of its numbers."""
    host = random.uniform(0.5, 1, (-(-rows // high), -(-columns // wide))).astype(np.float32)
    return of.array(host), host.repeat(high, 0)[:rows].repeat(wide, 1)[:, :columns]


def check_scaled_products(of):
    for m, n, k in ((264, 520, 1168), (65, 33, 257), (264, 520, 100), (1, 16, 256)):
        a, b = stored(of, m, k, dtype="float8_e4m3fn")[0], stored(of, k, n, "F", dtype="float8_e4m3fn")[0]
        close(of, gemm_ladder.matmul(a, b), product(of, a, b), k, "bfloat16", FP8)
        for shape_a, shape_b in (((m, k), (k, n)), ((1, k), (k, 1)), ((1, 128), (128, 128))):
            (scale_a, whole_a), (scale_b, whole_b) = scaled(of, *shape_a, m, k), scaled(of, *shape_b, k, n)
            want = (of.numpy(a) * whole_a) @ (of.numpy(b) * whole_b)
            for one in (scale_a, scale_a.T.contiguous().T):
                got = gemm_ladder.matmul(a, b, scale_a=one, scale_b=scale_b)
                assert got.dtype == of.module.bfloat16, f"it is of {got.dtype}"
                close(of, got, want, k, "bfloat16", FP8)
            got = gemm_ladder.matmul(a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=of.module.float32)
            close(of, got, want, k, "float32", FP8)


def check_grouped_products(of):
    ends = np.array([3, 3, 200, 201, 264], np.int32)
    of_row = np.searchsorted(ends, np.arange(264), "right")
    offs = of.array(ends, "int32")
    for dtype in ("bfloat16", "float16", "float32", "float8_e4m3fn"):
        k, n = 144, 264
        a = stored(of, 264, k, dtype=dtype)[0]
        b = of.array(random.standard_normal((5, n, k), np.float32), dtype).transpose(1, 2)
        want, fp8 = np.einsum("mk,mkn->mn", of.numpy(a), of.numpy(b)[of_row]), FP8 if dtype == "float8_e4m3fn" else 0
        result = "bfloat16" if fp8 else dtype
        close(of, gemm_ladder.grouped_matmul(a, b, offs), want, k, result, fp8)
        out = of.array(np.ones((264, n), np.float32))
        gemm_ladder.grouped_matmul(a, b, offs, out=out, beta=2.0)
        close(of, out, want + 2, k, "float32", fp8)
    scale_a, scale_b = of.array(random.uniform(0.5, 1, 264), "float32"), of.array(random.uniform(0.5, 1, (5, n)), "float32")
    want = want * of.numpy(scale_a)[:, None] * of.numpy(scale_b)[of_row]
    close(of, gemm_ladder.grouped_matmul(a, b, offs, scale_a=scale_a, scale_b=scale_b), want, k, "bfloat16", FP8)


def check_graph_of_scaled_and_grouped_products(of):
    m, n, k = 256, 384, 512
    a, b = stored(of, m, k, dtype="float8_e4m3fn")[0], stored(of, k, n, "F", dtype="float8_e4m3fn")[0]
    (scale_a, whole_a), (scale_b, whole_b) = scaled(of, 1, 128, m, k), scaled(of, 128, 128, k, n)
    x, w = stored(of, m, k, dtype="bfloat16")[0], of.array(random.standard_normal((2, n, k), np.float32), "bfloat16")
    outs = [stored(of, m, n, dtype="bfloat16")[0] for _ in range(2)]
    offs = of.array(np.array([100, m], np.int32), "int32")

    def both():
        gemm_ladder.matmul(a, b, scale_a=scale_a, scale_b=scale_b, out=outs[0])
        gemm_ladder.grouped_matmul(x, w.transpose(1, 2), offs, out=outs[1])

    both()
    replay = of.capture(both)
    for out in outs:
        out[:] = float("nan")
    replay()
    close(of, outs[0], (of.numpy(a) * whole_a) @ (of.numpy(b) * whole_b), k, "bfloat16", FP8)
    of_row = of.numpy(w).transpose(0, 2, 1)[(np.arange(m) >= 100).astype(int)]
    close(of, outs[1], np.einsum("mk,mkn->mn", of.numpy(x), of_row), k, "bfloat16")


def refused(error: type, words: str, call) -> None:
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(f"nothing was raised: {words}")


def check_refusals(of):
    (a, whole), (b, _) = stored(of, 64, 64), stored(of, 64, 64)
    refused(ValueError, "a is 64 x 64 and b 32 x 64", lambda: gemm_ladder.matmul(a, b[:32]))
    refused(TypeError, "the library multiplies float32", lambda: gemm_ladder.matmul(a, of.array(np.ones((64, 64)), "int32")))
    if of.writes:
        refused(ValueError, "must be contiguous", lambda: gemm_ladder.matmul(whole[:, ::2], b[:32]))
        refused(ValueError, "overlaps", lambda: gemm_ladder.matmul(a, b, out=a))
    else:
        refused(TypeError, "never changes", lambda: gemm_ladder.matmul(a, b, out=b))
        refused(TypeError, "traced", lambda: of.module.jit(gemm_ladder.matmul)(a, b))


def check_quantise(of):
    """As of NumPy's copy, bit by bit."""
    host = random.standard_normal((130, 264), np.float32)
    for block in gemm_ladder.QUANTISE_BLOCKS:
        wanted, wanted_scales = gemm_ladder.quantise(host, block)
        got, scales = gemm_ladder.quantise(of.array(host), block)
        assert (of.bits(got) == wanted).all(), block
        part = np.s_[:, :130] if block == "1x128" else np.s_[:, :3] if block == "128x128" else np.s_[:]
        assert (of.numpy(scales)[part] == wanted_scales[part]).all(), block


def check_explain(of):
    (a, _), (b, _) = stored(of, 512, 512), stored(of, 512, 512)
    assert ":\n" in gemm_ladder.explain(a, b), gemm_ladder.explain(a, b)


def check_with_others(of, others):
    """Operands, and where it can be the result, of two frameworks; each on a stream of its own."""
    for other in others:
        with of.stream(), other.stream():
            (a, _), (b, _) = stored(of, 264, 136), stored(other, 136, 520)
            want = of.numpy(a) @ other.numpy(b)
            got = gemm_ladder.matmul(a, b)
            del b
            close(of, got, want, 136)
            if other.writes:
                b, (out, _) = stored(other, 136, 520)[0], stored(other, 264, 520)
                gemm_ladder.matmul(a, b, out=out)
                close(other, out * 1, of.numpy(a) @ other.numpy(b), 136)


def takes(of, check) -> bool:
    """Whether a framework has what a check is about."""
    if check in (check_scaled_products, check_grouped_products, check_graph_of_scaled_and_grouped_products):
        return isinstance(of, Torch)  # others have no E4M3, or no matrices by columns
    return of.writes or check not in (check_out, check_graph)


def main() -> int:
    frameworks, named = [], sys.argv[1:]
    known = {"torch": Torch, "cupy": Cupy, "jax": Jax}
    for name in named or known:
        if name not in known:
            print(f"arrays.py: there is no framework {name}: {', '.join(known)}", file=sys.stderr)
            return 2
        try:
            of = known[name]()
        except ImportError:
            if named:
                waive(f"needs {name}")
            continue
        if of.has_gpu():
            frameworks.append(of)
        elif named:
            waive(f"{name} needs a GPU")
    if not frameworks:
        waive("needs PyTorch, CuPy or JAX, and a GPU")
    failed = 0
    for name, check in [(name, value) for name, value in globals().items() if name.startswith("check_")]:
        for of in [one for one in frameworks if takes(one, check)]:
            others = ([other for other in frameworks if other is not of],) if check is check_with_others else ()
            try:
                check(of, *others)
                print(f"{name}, {of.module.__name__}: ok", flush=True)
            except Exception:
                failed += 1
                print(f"{name}, {of.module.__name__}: {traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
