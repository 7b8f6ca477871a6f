"""The module gemm_ladder on the simulator: matrices in the memory of its GPU, and their products against NumPy's.

usage: LD_LIBRARY_PATH=build/sim PYTHONPATH=lib/python python3 tests/lib/on_simulator.py   (tests/lib/test_python.py calls it)

Each function named check_... is one case: a line `name: ok`, or `name: ` and what is wrong; exit status 1 where one is.
"""

import ctypes
import sys
import threading
import traceback

# Global, so that the library sees the simulator and does without cuBLAS.
cuda = ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)

import gemm_ladder  # noqa: E402
import numpy as np  # noqa: E402

TO_DEVICE, TO_HOST = 1, 2
random = np.random.default_rng(5)


class Memory:
    """A copy of an array's bytes on the device."""

    def __init__(self, host: np.ndarray):
        self.pointer, self.bytes = ctypes.c_void_p(), host.nbytes
        assert cuda.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(max(1, self.bytes))) == 0
        assert cuda.cudaMemcpy(self.pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.bytes), TO_DEVICE) == 0


class Array:
    """A matrix on the device with the strides of one of the host, as a view of the memory that this one is a view of."""

    def __init__(self, host: np.ndarray):
        base = host
        while isinstance(base.base, np.ndarray):
            base = base.base
        self.host, self.base, self.memory = host, base, Memory(base)
        offset = host.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.__cuda_array_interface__ = {
            "shape": host.shape,
            "strides": host.strides,
            "typestr": host.dtype.str,
            "data": (self.memory.pointer.value + offset, False),
            "version": 3,
            "stream": 1,
        }

    def numpy(self) -> np.ndarray:
        """What it holds now, with all that its memory holds beside it."""
        assert cuda.cudaDeviceSynchronize() == 0
        at = ctypes.c_void_p(self.base.__array_interface__["data"][0])
        assert cuda.cudaMemcpy(at, self.memory.pointer, ctypes.c_size_t(self.memory.bytes), TO_HOST) == 0
        return self.host


def stored(rows: int, columns: int, order: str = "C", padding: int = 0, dtype: type = np.float32) -> np.ndarray:
    """Random numbers, by rows ("C") or columns ("F"), with so many others between them."""
    shape = (rows, columns + padding) if order == "C" else (columns, rows + padding)
    whole = random.standard_normal(shape).astype(dtype)
    return whole[:, :columns] if order == "C" else whole[:, :rows].T


def close(got: np.ndarray, want: np.ndarray, k: int, unit: float = 0) -> None:
    """Numbers are of the order of 1: the error is that of k sums in FP32, and of the result's rounding."""
    error = np.abs(got.astype(np.float64) - want).max()
    assert error <= 8 * np.sqrt(k) * (k + 8) * 2.0**-24 + unit * np.abs(want).max(), error


def double(*arrays: np.ndarray) -> np.ndarray:
    first, second = (one.astype(np.float64) for one in arrays)
    return first @ second


def raises(error: type, words: str, call) -> None:
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
        assert "\n" not in str(raised)
    else:
        raise AssertionError(f"nothing was raised: {words}")


def check_all_layouts_without_a_copy():
    m, n, k = 72, 136, 40
    for order_a in "CF":
        for order_b in "CF":
            for order_c in "CF":
                for padding in (0, 4, 3):  # 3: rows do not begin at multiples of 16 bytes
                    a, b = stored(m, k, order_a, padding), stored(k, n, order_b, padding)
                    out = Array(stored(m, n, order_c, padding))
                    before = out.base.copy()
                    assert gemm_ladder.matmul(Array(a), Array(b), out=out) is out
                    close(out.numpy(), double(a, b), k)
                    lines = m if order_c == "C" else n
                    line = n if order_c == "C" else m
                    assert (out.base[:lines, line:] == before[:lines, line:]).all(), "what lies between the rows has changed"


def check_alpha_and_beta():
    a, b, c = stored(40, 24), stored(24, 72, "F"), stored(40, 72)
    out = Array(c.copy())
    gemm_ladder.matmul(Array(a), Array(b), out=out, alpha=-1.5, beta=0.5)
    close(out.numpy(), -1.5 * double(a, b) + 0.5 * c, 24)


def check_vectors_and_nothing():
    for m, n, k in ((1, 1, 1), (1, 8, 16), (8, 1, 16), (5, 7, 1)):
        for order in "CF":
            a, b, out = stored(m, k, order), stored(k, n, order), Array(stored(m, n))
            gemm_ladder.matmul(Array(a), Array(b), out=out)
            close(out.numpy(), double(a, b), k)
    out = Array(stored(5, 7))
    gemm_ladder.matmul(Array(stored(5, 0)), Array(stored(0, 7)), out=out)
    assert (out.numpy() == 0).all()
    gemm_ladder.matmul(Array(stored(0, 7)), Array(stored(7, 5)), out=Array(stored(0, 5)))


def check_tf32_and_fp16():
    a, b, out = stored(64, 32), stored(32, 64, "F"), Array(stored(64, 64))
    gemm_ladder.matmul(Array(a), Array(b), out=out, kind="tf32")
    error = np.abs(out.numpy() - double(a, b)).max()
    assert 1e-5 < error < 0.1, f"{error}: TF32 has ten bits"
    half = [stored(64, 32, "C", dtype=np.float16), stored(32, 64, "F", dtype=np.float16)]
    for dtype, unit in ((np.float16, 2.0**-11), (np.float32, 0)):
        out = Array(stored(64, 64, dtype=dtype))
        gemm_ladder.matmul(*map(Array, half), out=out)
        close(out.numpy(), double(*half), 32, unit)


def check_numpy():
    for order_a in "CF":
        for order_b in "CF":
            a, b, out = stored(40, 24, order_a), stored(24, 72, order_b), stored(40, 72, order_b)
            close(gemm_ladder.matmul(a, b), double(a, b), 24)
            want = -1.5 * double(a, b) + 0.5 * out
            assert gemm_ladder.matmul(a, b, out=out, alpha=-1.5, beta=0.5) is out
            close(out, want, 24)
    half = [stored(64, 32, "C", dtype=np.float16), stored(32, 64, "F", dtype=np.float16)]
    got = gemm_ladder.matmul(*half)
    assert got.dtype == np.float16
    close(got, double(*half), 32, 2.0**-11)
    assert gemm_ladder.explain(*half).startswith("33_cost_model:\n")


def nearest_e4m3(x: np.ndarray) -> np.ndarray:
    """The bits of the nearest numbers of E4M3, ties to even; the largest where x is too large."""
    codes = np.arange(127)
    known = np.where(codes < 8, codes % 8 * 2.0**-9, (8 + codes % 8) * 2.0 ** (codes // 8 - 10))
    above = np.searchsorted(known, np.abs(x)).clip(1, 126)
    up, down = known[above] - np.abs(x), np.abs(x) - known[above - 1]
    nearest = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    return (nearest | np.signbit(x) << 7).astype(np.uint8)


def check_quantise():
    for dtype in (np.float32, np.float16):
        for rows, columns in ((7, 131), (130, 264), (0, 8)):
            x = stored(rows, columns, dtype=dtype) * np.exp2(random.integers(-6, 6, (rows, 1))).astype(dtype)
            of = x.astype(np.float32)
            sizes = {"all": (rows + 1, columns), "row": (1, columns), "1x128": (1, 128), "128x128": (128, 128)}
            for block, (high, wide) in sizes.items():
                got, scales = gemm_ladder.quantise(x, block)
                assert (got.shape, got.dtype, scales.dtype) == (x.shape, np.uint8, np.float32)
                for top in range(0, rows, high):
                    for left in range(0, columns, wide):
                        part = np.s_[top : top + high, left : left + wide]
                        scale = max(np.abs(of[part]).max() / np.float32(448), np.float32(2.0**-126))
                        at = {"all": 0, "row": top, "1x128": (left // 128, top), "128x128": (top // 128, left // 128)}[block]
                        assert scales[at] == scale, (block, top, left)
                        assert (got[part] == nearest_e4m3(of[part] * (1 / scale))).all(), (block, top, left)


def check_quantise_refuses():
    x = stored(8, 16)
    raises(ValueError, "block is '64': it is 'all' or 'row'", lambda: gemm_ladder.quantise(x, "64"))
    raises(ValueError, "a is stored by columns", lambda: gemm_ladder.quantise(stored(8, 16, "F"), "row"))
    raises(ValueError, "a has 1 dimensions", lambda: gemm_ladder.quantise(x[0], "row"))
    raises(TypeError, "a is of <f8", lambda: gemm_ladder.quantise(x.astype(np.float64), "row"))
    raises(TypeError, "a is Array: quantise() takes arrays of PyTorch", lambda: gemm_ladder.quantise(Array(x), "row"))


class OfDLPack:
    """The same through DLPack alone, with another word for its type where one is given."""

    def __init__(self, array: Array, code: int = 2, bits: int = 32):
        host, facts = array.host, array.__cuda_array_interface__
        numbers = ctypes.c_int64 * host.ndim
        self.array, self.streams = array, []
        self.shape, self.strides = numbers(*host.shape), numbers(*(one // host.itemsize for one in host.strides))
        offset = 8
        data = facts["data"][0] - offset
        self.tensor = gemm_ladder.DLTensor(data, 2, 0, host.ndim, code, bits, 1, self.shape, self.strides, offset)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes, new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def bfloat16(array: np.ndarray) -> np.ndarray:
    """The upper halves of numbers, and these numbers again."""
    return (array.view(np.uint32) >> 16).astype(np.uint16)


def check_dlpack():
    a, b, out = stored(40, 24), stored(24, 72, "F"), Array(stored(40, 72, "C", 4))
    left = OfDLPack(Array(a))
    gemm_ladder.matmul(left, OfDLPack(Array(b)), out=OfDLPack(out))
    close(out.numpy(), double(a, b), 24)
    assert left.streams == [1], "the default stream, which DLPack calls 1"


def check_bf16():
    a, b = stored(64, 32), stored(64, 32)
    halves = [bfloat16(a), bfloat16(b)]
    for one, bits in zip((a, b), halves, strict=True):
        one.view(np.uint32)[:] = bits.astype(np.uint32) << 16
    out = Array(stored(64, 64))
    operands = [OfDLPack(Array(bits), 4, 16) for bits in (halves[0], halves[1].T)]
    gemm_ladder.matmul(*operands, out=out)
    close(out.numpy(), double(a, b.T), 32)
    assert gemm_ladder.explain(*operands).startswith("33_cost_model:\n")


def e4m3(rows: int, columns: int) -> np.ndarray:
    """Bits of random numbers from 1/4 to 4, of either sign."""
    return (random.integers(0, 2, (rows, columns)) << 7 | random.integers(5 << 3, 9 << 3, (rows, columns))).astype(np.uint8)


def value(bits: np.ndarray) -> np.ndarray:
    """Of normal numbers of E4M3."""
    exponent, mantissa = bits >> 3 & 15, bits & 7
    return np.where(bits >> 7, -1.0, 1.0) * (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7)


def spread(scale: np.ndarray, rows: int, columns: int, high: int, wide: int) -> np.ndarray:
    """Scales of blocks of high x wide, one for each number of a matrix."""
    return np.repeat(np.repeat(scale, high, -2), wide, -1)[..., :rows, :columns]


def scales(*shape: int) -> np.ndarray:
    return random.uniform(0.5, 2, shape).astype(np.float32)


def close_fp8(got: np.ndarray, want: np.ndarray, k: int) -> None:
    """Sums keep 13 bits of their largest term, which is up to 64."""
    error = np.abs(got.astype(np.float64) - want).max(initial=0)
    assert error <= np.sqrt(k) * 64 * 2.0**-10, error


def check_scaled_products():
    for m, n, k in ((70, 264, 272), (72, 128, 128), (1, 5, 100)):
        a, b = e4m3(m, k), e4m3(n, k)
        kb, nb = -(-k // 128), -(-n // 128)
        close_fp8(gemm_ladder.matmul(a, b.T, kind="e4m3"), value(a) @ value(b).T, k)
        for scale_a, scale_b, whole_a, whole_b in (
            (scales(), scales(1, 1), (m, k), (k, n)),
            (scales(m, 1), scales(1, n), (1, k), (k, 1)),
            (scales(m), scales(n), (1, k), (k, 1)),
            (scales(m, kb), scales(kb, nb), (1, 128), (128, 128)),
            (scales(kb, m).T, scales(nb, kb).T, (1, 128), (128, 128)),
        ):
            of_a = spread(scale_a.reshape(-1, 1) if scale_a.ndim < 2 else scale_a, m, k, *whole_a)
            of_b = spread(scale_b.reshape(1, -1) if scale_b.ndim < 2 else scale_b, k, n, *whole_b)
            want = (value(a) * of_a) @ (value(b).T * of_b)
            got = gemm_ladder.matmul(a, b.T, kind="e4m3", scale_a=scale_a, scale_b=scale_b)
            assert got.dtype == np.float32
            close_fp8(got / of_a.max() / of_b.max(), want / of_a.max() / of_b.max(), k)


def check_scaled_products_take_arrays_of_the_gpu():
    m, n, k = 64, 128, 256
    a, b, out = e4m3(m, k), e4m3(n, k), Array(stored(m, n))
    scale_a, scale_b = np.zeros((2, m), np.float32).T, np.zeros((1, 4), np.float32)[:, :2].T
    scale_a[:], scale_b[:] = scales(m, 2), scales(2, 1)
    arguments = {"kind": "e4m3", "scale_a": Array(scale_a), "scale_b": Array(scale_b)}
    gemm_ladder.matmul(Array(a), Array(b.T), out=out, **arguments)
    want = (value(a) * spread(scale_a, m, k, 1, 128)) @ (value(b).T * spread(scale_b, k, n, 128, 128))
    close_fp8(out.numpy() / 4, want / 4, k)
    assert not gemm_ladder.explain(Array(a), Array(b.T), out=out, **arguments).startswith("plain")
    other = arguments | {"scale_b": Array(scales(2, 1))}
    gemm_ladder.matmul(Array(a), Array(b.T), out=out, **other)  # one column of scales has no stride that could be wrong
    wrong = arguments | {"scale_a": Array(scales(m, 2))}
    raises(
        TypeError,
        "scale_a must be copied, and how Array does that",
        lambda: gemm_ladder.matmul(Array(a), Array(b.T), out=out, **wrong),
    )


def check_grouped_products():
    groups, n, k = 5, 72, 40
    ends = np.array([3, 3, 40, 41, 70], np.int32)
    a, b = stored(70, k, dtype=np.float16), random.standard_normal((groups, n, k)).astype(np.float16)
    got = gemm_ladder.grouped_matmul(a, b.transpose(0, 2, 1), ends)
    of_row = np.searchsorted(ends, np.arange(70), "right")
    want = np.einsum("mk,mnk->mn", a.astype(float), b[of_row].astype(float))
    assert got.dtype == np.float16
    close(got, want, k, 2.0**-11)
    out = stored(70, n)
    want += 0.5 * out
    gemm_ladder.grouped_matmul(a, b.transpose(0, 2, 1), ends, out=out, beta=0.5)
    close(out, want, k)
    assert gemm_ladder.explain(a, b.transpose(0, 2, 1)).startswith("44_grouped:")

    k = 272
    a, b = e4m3(70, k), np.stack([e4m3(n, k) for _ in range(groups)])
    for scale_a, scale_b in ((scales(70), scales(groups, n)), (scales(70, 3), scales(groups, 3, 1))):
        got = gemm_ladder.grouped_matmul(a, b.transpose(0, 2, 1), ends, kind="e4m3", scale_a=scale_a, scale_b=scale_b)
        of_a = scale_a.reshape(70, -1).repeat(128 if scale_a.ndim > 1 else k, 1)[:, :k]
        of_b = scale_b[:, None] if scale_b.ndim == 2 else scale_b.repeat(128, 1)[:, :k]
        whole_b = value(b).transpose(0, 2, 1) * of_b
        close_fp8(got / 4, np.einsum("mk,mkn->mn", value(a) * of_a, whole_b[of_row]) / 4, k)
        kernel = gemm_ladder.explain(a, b.transpose(0, 2, 1), kind="e4m3", scale_a=scale_a, scale_b=scale_b).split(":")[0]
        assert kernel == ("plain kernel" if scale_a.ndim == 1 else "46_grouped_fp8"), kernel


def check_refusals_of_scales_and_groups():
    a, b, ends = e4m3(8, 32), e4m3(16, 32).T, np.array([3, 8], np.int32)
    both = {"scale_a": scales(8, 1), "scale_b": scales(1, 16)}
    pair = np.stack([b.T, b.T])
    refused = {
        "kind='e4m3' says": (TypeError, lambda: gemm_ladder.matmul(a, b)),
        "scale_a and scale_b come together": (ValueError, lambda: gemm_ladder.matmul(a, b, kind="e4m3", scale_a=scales())),
        "scale_a is 8 x 2 and scale_b 1 x 16: they are": (
            ValueError,
            lambda: gemm_ladder.matmul(a, b, kind="e4m3", scale_a=scales(8, 2), scale_b=both["scale_b"]),
        ),
        "scale_b is of <f8": (
            TypeError,
            lambda: gemm_ladder.matmul(a, b, kind="e4m3", scale_a=scales(8, 1), scale_b=both["scale_b"].astype(float)),
        ),
        "row-major, with op_a N and op_b T": (
            gemm_ladder.GemmLadderError,
            lambda: gemm_ladder.matmul(a, np.ascontiguousarray(b), kind="e4m3", **both),
        ),
        "scales are for GEMM_LADDER_E4M3": (
            gemm_ladder.GemmLadderError,
            lambda: gemm_ladder.matmul(stored(8, 32), stored(16, 32).T, **both),
        ),
        "b has 2 dimensions": (ValueError, lambda: gemm_ladder.grouped_matmul(a, b, ends, kind="e4m3")),
        "columns must be contiguous": (
            ValueError,
            lambda: gemm_ladder.grouped_matmul(a, np.ascontiguousarray(pair.transpose(0, 2, 1)), ends, kind="e4m3"),
        ),
        "offs is 3 of int32: it is 2": (
            ValueError,
            lambda: gemm_ladder.grouped_matmul(a, pair.transpose(0, 2, 1), np.zeros(3, np.int32), kind="e4m3"),
        ),
        "out is of float16": (
            TypeError,
            lambda: gemm_ladder.matmul(a, b, kind="e4m3", out_dtype=np.float16, **both),
        ),
    }
    for words, (error, call) in refused.items():
        raises(error, words, call)


def check_explain():
    a, b = Array(stored(256, 64)), Array(stored(64, 128))
    text = gemm_ladder.explain(a, b)
    assert text.startswith("38_sgemm_layouts:\n"), text
    odd = gemm_ladder.explain(Array(stored(256, 63)), Array(stored(63, 128)))
    assert "rows do not begin at multiples of 16 bytes" in odd, odd
    half = [Array(stored(64, 64, dtype=np.float16)) for _ in range(2)]
    assert gemm_ladder.explain(*half).startswith("39_layouts_16bit:\n")
    assert gemm_ladder.explain(a, b, kind="tf32").startswith("33_cost_model:\nB is transposed first\n")


def check_threads_have_their_own_handles():
    a, b = stored(64, 64), stored(64, 64)
    outs, handles = [Array(stored(64, 64)) for _ in range(3)], []

    def work(out: Array) -> None:
        for _ in range(2):
            gemm_ladder.matmul(Array(a), Array(b), out=out)
        handles.append(gemm_ladder.Library.get().handle(0))

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(handles) == 3 and gemm_ladder.Library.get().handle(0) == gemm_ladder.Library.get().handle(0)
    for out in outs:
        close(out.numpy(), double(a, b), 64)


def check_streams_wait_for_one_another():
    a, b, out, stream, waited = Array(stored(8, 16)), Array(stored(16, 24)), Array(stored(8, 24)), ctypes.c_void_p(), []
    assert cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
    library, wait = gemm_ladder.Library.get(), gemm_ladder.Library.synchronize
    library.synchronize = lambda one: (waited.append(one), wait(library, one))
    try:
        gemm_ladder.matmul(a, b, out=out)
        assert waited == [], "all three are on one"
        out.__cuda_array_interface__["stream"] = stream.value
        gemm_ladder.matmul(a, b, out=out)
        assert waited == [stream.value, 1], "for the work before on out's, and then for the product on a's"
    finally:
        del library.synchronize


def read_only() -> np.ndarray:
    array = stored(8, 8)
    array.flags.writeable = False
    return array


def check_refusals():
    a, b, out = Array(stored(8, 16)), Array(stored(16, 24)), Array(stored(8, 24))
    refused = {
        "a is 8 x 16 and b 8 x 16": (ValueError, lambda: gemm_ladder.matmul(a, a, out=out)),
        "out is 8 x 16, and the product 8 x 24": (ValueError, lambda: gemm_ladder.matmul(a, b, out=a)),
        "a has 3 dimensions": (ValueError, lambda: gemm_ladder.matmul(Array(random.random((2, 8, 16), np.float32)), b)),
        "a has strides 64 and 2": (ValueError, lambda: gemm_ladder.matmul(Array(stored(8, 64)[:, ::2]), b)),
        "a has strides -16 and 1": (ValueError, lambda: gemm_ladder.matmul(Array(stored(8, 16)[::-1]), b)),
        "b is of <f8": (TypeError, lambda: gemm_ladder.matmul(a, Array(stored(16, 24, dtype=np.float64)), out=out)),
        "a is of float32, and b of float16": (
            TypeError,
            lambda: gemm_ladder.matmul(a, Array(stored(16, 24, dtype=np.float16)), out=out),
        ),
        "out is of float16": (TypeError, lambda: gemm_ladder.matmul(a, b, out=Array(stored(8, 24, dtype=np.float16)))),
        "kind is 'bf16': of float32 it is 'f32' or 'tf32'": (ValueError, lambda: gemm_ladder.matmul(a, b, out=out, kind="bf16")),
        "beta is 0.5": (ValueError, lambda: gemm_ladder.matmul(a, b, beta=0.5)),
        "give matmul() one as out": (TypeError, lambda: gemm_ladder.matmul(a, b)),
        "b is not in a GPU's memory": (TypeError, lambda: gemm_ladder.matmul(a, stored(16, 24), out=out)),
        "a is an array of NumPy, and b is Array": (TypeError, lambda: gemm_ladder.matmul(stored(8, 16), b)),
        "b has 1 dimensions": (ValueError, lambda: gemm_ladder.matmul(stored(8, 16), stored(16, 24)[0])),
        "out is read-only": (
            ValueError,
            lambda: gemm_ladder.matmul(read_only(), read_only(), out=read_only()),
        ),
        "b has gaps between its rows": (ValueError, lambda: gemm_ladder.matmul(stored(8, 16), stored(16, 24, "C", 4))),
        "a is list": (TypeError, lambda: gemm_ladder.matmul([[1.0]], b, out=out)),
        "out overlaps a or b": (ValueError, lambda: gemm_ladder.matmul(*[square := Array(stored(8, 8))] * 2, out=square)),
    }
    for words, (error, call) in refused.items():
        raises(error, words, call)


def check_what_the_library_refuses_is_its_sentence():
    library = gemm_ladder.Library.get()
    problem = gemm_ladder.Problem(m=8, n=8, k=8, lda=7, ldb=8, ldc=8, batch=1)
    operands = gemm_ladder.Operands(1, 8, 8, 0, 8)
    raises(gemm_ladder.GemmLadderError, "lda is smaller than a stored row", lambda: library.run(0, 0, problem, operands))


def main() -> int:
    failed = 0
    for name, check in [(name, value) for name, value in globals().items() if name.startswith("check_")]:
        try:
            check()
            print(f"{name}: ok")
        except Exception:
            failed += 1
            print(f"{name}: {traceback.format_exc()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
