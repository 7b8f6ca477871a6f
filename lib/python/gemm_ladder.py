"""Products of matrices on the GPU by libgemm_ladder.so, for arrays of PyTorch, CuPy, JAX, NumPy, and whatever has DLPack or
__cuda_array_interface__; and FP8 of a matrix. Needs nothing but Python and the library. docs/use.md has examples.

    import gemm_ladder
    c = gemm_ladder.matmul(a, b)
    e4m3, scales = gemm_ladder.quantise(a, "1x128")

The library is that of the checkout, build/lib/libgemm_ladder.so, or the file that the variable GEMM_LADDER_LIBRARY names.
"""

import ctypes
import math
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["GemmLadderError", "Library", "explain", "grouped_matmul", "matmul", "quantise"]

# Values of include/gemm_ladder.h.
ROW_MAJOR, COL_MAJOR = 0, 1
N, T = 0, 1
RESULT_F32, RESULT_SAME = 0, 1
TYPES = {"f32": 0, "tf32": 1, "bf16": 2, "f16": 3, "e4m3": 4}
SCALES_NONE, SCALES_TENSOR, SCALES_ROWS, SCALES_BLOCKS = range(4)
QUANTISE_BLOCKS = {"all": 0, "row": 1, "1x128": 2, "128x128": 3}  # values of gemm_ladder_scale_t
BLOCK = 128  # numbers along k that share a scale, and columns of b
KINDS = {  # of a dtype; the first is the default
    "float32": ("f32", "tf32"),
    "bfloat16": ("bf16",),
    "float16": ("f16",),
    "float8_e4m3fn": ("e4m3",),
    "uint8": ("e4m3",),  # its bits, for frameworks without such a type: it must be asked for
}
RESULTS = {"float8_e4m3fn": "bfloat16", "uint8": "float32"}  # of a dtype, where it is not itself
# Of __cuda_array_interface__, which has no word for bfloat16 and float8_e4m3fn.
DTYPES = {"<f4": "float32", "<f2": "float16", "|u1": "uint8", "<i4": "int32"}
CUDA_DEVICES = (2, 13)  # of DLPack: memory of the GPU, and managed memory


class GemmLadderError(RuntimeError):
    """The library refused a call, or the call failed; `status` is its gemm_ladder_status_t."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class Problem(ctypes.Structure):
    """gemm_ladder_problem_t."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("order", "type", "result", "op_a", "op_b")),
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc")),
        *((name, ctypes.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c")),
        ("scales", ctypes.c_int),
        ("groups", ctypes.c_int64),
    )


class Operands(ctypes.Structure):
    """gemm_ladder_operands_t."""

    _fields_ = (
        ("alpha", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("a", "b")),
        ("beta", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("c", "scale_a", "scale_b", "first_row")),
    )


class PointerAttributes(ctypes.Structure):
    """cudaPointerAttributes, with room for fields to come."""

    _fields_ = (("type", ctypes.c_int), ("device", ctypes.c_int), ("rest", ctypes.c_byte * 120))


class DLTensor(ctypes.Structure):
    """How DLPack describes an array; strides are in elements, and null where rows are dense."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DL_DTYPES = {
    (2, 32, 1): "float32",
    (2, 16, 1): "float16",
    (4, 16, 1): "bfloat16",
    (10, 8, 1): "float8_e4m3fn",
    (1, 8, 1): "uint8",
    (0, 32, 1): "int32",
}


class Library:
    """libgemm_ladder.so and its handles, one per device and thread. Raises OSError where it cannot be loaded."""

    _loaded: "Library | None" = None
    _loading = threading.Lock()

    @classmethod
    def get(cls) -> "Library":
        """The one of this process, loaded at the first call."""
        with cls._loading:
            cls._loaded = cls._loaded or cls()
            return cls._loaded

    def __init__(self) -> None:
        named = os.environ.get("GEMM_LADDER_LIBRARY")
        path = Path(named or Path(__file__).resolve().parents[2] / "build/lib/libgemm_ladder.so")
        if not path.is_file():
            how = "GEMM_LADDER_LIBRARY names no file" if named else "build it, or name another by GEMM_LADDER_LIBRARY"
            raise FileNotFoundError(f"there is no {path}: {how}")
        try:
            self._c = ctypes.CDLL(str(path))
        except OSError as error:
            raise OSError(f"{path} cannot be loaded: {error}") from None
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self._c.gemm_ladder_create.argtypes = (pointer,)
        self._c.gemm_ladder_destroy.argtypes = (pointer,)
        self._c.gemm_ladder_set_stream.argtypes = (pointer, pointer)
        self._c.gemm_ladder_run_operands.argtypes = (pointer, ctypes.POINTER(Problem), ctypes.POINTER(Operands))
        self._c.gemm_ladder_explain.argtypes = (pointer, ctypes.POINTER(Problem), pointer, ctypes.c_size_t)
        number, size = ctypes.c_int, ctypes.c_int64
        self._c.gemm_ladder_quantise.argtypes = (pointer, number, number, size, size, pointer, size, pointer, size, pointer)
        self._c.gemm_ladder_status_string.restype = text
        self._c.gemm_ladder_last_error.argtypes = (pointer,)
        self._c.gemm_ladder_last_error.restype = text
        self._c.cudaStreamSynchronize.argtypes = (pointer,)  # of the CUDA runtime that the library is linked with
        self._c.cudaPointerGetAttributes.argtypes = (pointer, pointer)
        self._c.cudaMalloc.argtypes = (pointer, ctypes.c_size_t)
        self._c.cudaFree.argtypes = (pointer,)
        self._c.cudaMemcpy.argtypes = (pointer, pointer, ctypes.c_size_t, ctypes.c_int)
        self._own = threading.local()

    def handle(self, device: int) -> int:
        """This thread's handle for a device. It is destroyed when the thread ends."""
        if not hasattr(self._own, "handles"):
            self._own.handles = {}
        if device not in self._own.handles:
            before, handle = ctypes.c_int(), ctypes.c_void_p()
            self._cuda(self._c.cudaGetDevice(ctypes.byref(before)))
            self._cuda(self._c.cudaSetDevice(device))
            try:
                status = self._c.gemm_ladder_create(ctypes.byref(handle))
            finally:
                self._cuda(self._c.cudaSetDevice(before))
            if status:
                raise GemmLadderError(status, self._c.gemm_ladder_status_string(status).decode())
            self._own.handles[device] = owner = Handle(handle.value)
            weakref.finalize(owner, self._c.gemm_ladder_destroy, handle.value).atexit = False
        return self._own.handles[device].value

    def run(self, device: int, stream: int, problem: Problem, operands: Operands) -> None:
        """Enqueues a product on a stream. Raises GemmLadderError."""
        handle = self.handle(device)
        self._check(handle, self._c.gemm_ladder_set_stream(handle, stream))
        self._check(handle, self._c.gemm_ladder_run_operands(handle, problem, operands))

    def explain(self, device: int, problem: Problem) -> str:
        """Which kernel such a product runs, and why. Raises GemmLadderError."""
        handle, text = self.handle(device), ctypes.create_string_buffer(1 << 14)
        self._check(handle, self._c.gemm_ladder_explain(handle, problem, text, len(text)))
        return text.value.decode()

    def quantise(self, stream: int, x: "Matrix", scales: int, to: int, scale: int) -> None:
        """Enqueues E4M3 of a row-major matrix, dense, and its scales on a stream. Raises GemmLadderError."""
        handle, kind, ld = self.handle(x.device), TYPES[KINDS[x.dtype][0]], x.ld(ROW_MAJOR)
        self._check(handle, self._c.gemm_ladder_set_stream(handle, stream))
        self._check(
            handle,
            self._c.gemm_ladder_quantise(handle, kind, scales, *x.shape, x.pointer, ld, to, max(1, x.shape[1]), scale),
        )

    def synchronize(self, stream: int) -> None:
        """Waits for what was enqueued on a stream."""
        self._cuda(self._c.cudaStreamSynchronize(stream))

    def device_of(self, pointer: int) -> int:
        """The device that an address belongs to; −1: to none."""
        found = PointerAttributes()
        self._cuda(self._c.cudaPointerGetAttributes(ctypes.byref(found), pointer))
        return found.device if found.type in (2, 3) else -1  # device and managed memory

    def allocate(self, size: int) -> int:
        """The address of memory on the current device."""
        found = ctypes.c_void_p()
        self._cuda(self._c.cudaMalloc(ctypes.byref(found), max(1, size)))
        return found.value or 0

    def free(self, pointer: int) -> None:
        self._c.cudaFree(pointer)

    def copy(self, to: int, source: int, size: int) -> None:
        """Between the host and the device, after all that the default stream does."""
        self._cuda(self._c.cudaMemcpy(to, source, size, 4))  # either way: the addresses say which

    def _check(self, handle: int, status: int) -> None:
        if status:
            raise GemmLadderError(status, self._c.gemm_ladder_last_error(handle).decode())

    def _cuda(self, status: int) -> None:
        if status:
            raise GemmLadderError(3, f"a call of CUDA failed with status {status}")


class Handle:
    """What a thread holds for as long as it uses a handle of the library."""

    def __init__(self, value: int):
        self.value = value


# ---- arrays of all frameworks ------------------------------------------------------------------------------------------


class Matrix(NamedTuple):
    """An array, most often of two dimensions; strides in elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    owner: Any  # of the memory

    def ld(self, order: int) -> int | None:
        """The leading dimension in this order; None where the array is not stored so."""
        lines, line = self.shape if order == ROW_MAJOR else self.shape[::-1]
        far, near = self.strides if order == ROW_MAJOR else self.strides[::-1]
        if lines <= 1:
            far = max(1, line)
        if (line <= 1 or near == 1) and far >= max(1, line):
            return far
        return max(1, line) if 0 in self.shape else None


class Copied:
    """A copy of a NumPy array on the GPU, with its strides."""

    def __init__(self, host: Any, name: str):
        far_first = sorted(range(host.ndim), key=lambda one: -host.strides[one])
        if not host.transpose(far_first).flags.c_contiguous:
            raise ValueError(f"{name} has gaps between its rows: numpy.ascontiguousarray() makes a copy without")
        self.host, library = host, Library.get()
        self.pointer = library.allocate(host.nbytes)
        weakref.finalize(self, library.free, self.pointer).atexit = False
        library.copy(self.pointer, host.ctypes.data, host.nbytes)
        self.__cuda_array_interface__ = {**host.__array_interface__, "data": (self.pointer, False), "strides": host.strides}

    def fetch(self) -> Any:
        """The NumPy array, with what the GPU's copy holds now."""
        Library.get().copy(self.host.ctypes.data, self.pointer, self.host.nbytes)
        return self.host


def _is(array: Any, module: str, name: str) -> bool:
    """Whether it is of a framework's type. A framework that nobody imported has no arrays."""
    return module in sys.modules and isinstance(array, getattr(sys.modules[module], name, ()))


def _framework(array: Any) -> str:
    known = {"torch": "Tensor", "cupy": "ndarray", "jax": "Array", "numpy": "ndarray"}
    return next((module for module, name in known.items() if _is(array, module, name)), "")


def _stream(array: Any) -> int:
    """The stream on which its framework works with it: for JAX, whose streams nobody else sees, the default one."""
    framework = _framework(array)
    if framework == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream if array.is_cuda else 0
    if framework == "cupy":
        with array.device:
            return sys.modules["cupy"].cuda.get_current_stream().ptr
    if framework == "jax":
        return 0
    return getattr(array, "__cuda_array_interface__", {}).get("stream") or 0


def _array(array: Any, name: str, stream: int) -> Matrix:
    """What there is to know of an array of any type and as many dimensions, which `stream` may then use. Raises TypeError or
    ValueError, naming it."""
    framework = _framework(array)
    if (own := _stream(array)) != stream:
        Library.get().synchronize(own)  # of another framework
    if framework == "torch":
        return _of_torch(array, name)
    if framework == "jax":
        return _of_dlpack(_ready(array, name), name, None)
    if framework == "cupy" and array.dtype.name == "bfloat16":
        strides = tuple(one // 2 for one in array.strides)
        return Matrix(array.data.ptr, array.shape, strides, "bfloat16", array.device.id, array)
    if hasattr(array, "__cuda_array_interface__"):
        return _of_interface(array, name)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array, name, stream)
    raise TypeError(f"{name} is {type(array).__name__}, which has neither DLPack nor __cuda_array_interface__")


def _multiplied(found: Matrix, name: str) -> Matrix:
    """The same, of a dtype that the library multiplies."""
    if found.dtype not in KINDS:
        raise TypeError(f"{name} is of {found.dtype}: the library multiplies float32, bfloat16, float16 and float8_e4m3fn")
    return found


def _matrix(array: Any, name: str, stream: int) -> Matrix:
    """_array() of a matrix whose rows or columns are contiguous."""
    found = _multiplied(_array(array, name, stream), name)
    if len(found.shape) != 2:
        raise ValueError(f"{name} has {len(found.shape)} dimensions, and a matrix has 2")
    if found.ld(ROW_MAJOR) is None and found.ld(COL_MAJOR) is None:
        raise ValueError(
            f"{name} has strides {found.strides[0]} and {found.strides[1]}: its rows or its columns must be contiguous; copy it"
        )
    return found


def _stacked(array: Any, name: str, stream: int) -> tuple[Matrix, int]:
    """Matrices by columns, one after another: the first one, and how many there are."""
    found = _multiplied(_array(array, name, stream), name)
    if len(found.shape) != 3:
        raise ValueError(f"{name} has {len(found.shape)} dimensions, and the matrices of groups have 3")
    groups, _, columns = found.shape
    first = found._replace(shape=found.shape[1:], strides=found.strides[1:])
    ld = first.ld(COL_MAJOR)
    if groups == 0 or ld is None or (groups > 1 and found.strides[0] != columns * ld):
        raise ValueError(
            f"{name} is {_by(found.shape)} with strides {_by(found.strides)}: columns must be contiguous, and one matrix follow "
            f"the other, as in PyTorch's {name}.transpose(1, 2).contiguous().transpose(1, 2)"
        )
    return first, groups


def _of_torch(array: Any, name: str) -> Matrix:
    torch = sys.modules["torch"]
    if not array.is_cuda:
        raise TypeError(f"{name} is on {array.device}, not on a GPU")
    if array.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient, and gemm_ladder has none: detach() it, or use torch.no_grad()")
    dtype = str(array.dtype).removeprefix("torch.")
    return Matrix(array.data_ptr(), tuple(array.shape), array.stride(), dtype, array.device.index, array)


def _ready(array: Any, name: str) -> Any:
    """A JAX array whose numbers are there."""
    if _is(array, "jax.core", "Tracer"):
        raise TypeError(f"{name} is being traced by jit, and has no numbers: call gemm_ladder outside")
    return array.block_until_ready()


def _of_interface(array: Any, name: str) -> Matrix:
    facts = array.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise TypeError(f"{name} has a mask")
    dtype = DTYPES.get(facts["typestr"], facts["typestr"])
    size, shape = int(facts["typestr"][2:]), tuple(facts["shape"])
    in_bytes = facts.get("strides") or tuple(_dense(shape, size))
    strides = tuple(one // size for one in in_bytes)
    pointer = facts["data"][0]
    device = Library.get().device_of(pointer) if pointer else 0
    if device < 0:
        raise TypeError(f"{name} is not in a GPU's memory")
    return Matrix(pointer, shape, strides, dtype, device, array)


def _dense(shape: tuple[int, ...], size: int) -> list[int]:
    """The strides of an array whose last index is the fastest."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return strides


def _of_dlpack(array: Any, name: str, stream: int | None) -> Matrix:
    kind, _ = array.__dlpack_device__()
    if kind not in CUDA_DEVICES:
        raise TypeError(f"{name} is not in a GPU's memory")
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream or 1)
    find = ctypes.pythonapi.PyCapsule_GetPointer
    find.argtypes, find.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    found = DLTensor.from_address(find(capsule, b"dltensor"))
    shape = tuple(found.shape[: found.ndim])
    strides = tuple(found.strides[: found.ndim] if found.strides else _dense(shape, 1))
    dtype = DL_DTYPES.get((found.code, found.bits, found.lanes), f"{found.bits} bits of DLPack's type {found.code}")
    return Matrix((found.data or 0) + found.byte_offset, shape, strides, dtype, found.device_id, capsule)


def _new(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An array of the framework and device of another."""
    framework = _framework(like)
    if framework == "torch":
        return like.new_empty(shape, dtype=getattr(sys.modules["torch"], dtype))
    if framework == "cupy":
        with like.device:
            return sys.modules["cupy"].empty(shape, like.dtype if like.dtype.name == dtype else dtype)
    if framework == "jax":
        jax = sys.modules["jax"]
        with jax.default_device(next(iter(like.devices()))):
            return jax.numpy.zeros(shape, dtype)
    if framework == "numpy":
        return sys.modules["numpy"].empty(shape, dtype)
    raise TypeError(f"how {type(like).__name__} makes an array is not known: give matmul() one as out")


def _padded(array: Any, name: str, before: int, after: int, swapped: bool = False) -> Any:
    """A copy without gaps, with so many zeros before and after its last index's; `swapped`: after the last two were swapped."""
    framework = _framework(array)
    if framework == "":
        raise TypeError(
            f"{name} must be copied, and how {type(array).__name__} does that is not known: gemm_ladder.h says how it lies"
        )
    array = array.swapaxes(-1, -2) if swapped else array
    if framework == "torch":
        return sys.modules["torch"].nn.functional.pad(array, (before, after)).contiguous()
    module = sys.modules["jax"].numpy if framework == "jax" else sys.modules[framework]
    padded = module.pad(array, [(0, 0)] * (array.ndim - 1) + [(before, after)])
    return padded if framework == "jax" else module.ascontiguousarray(padded)


# ---- scales and groups -------------------------------------------------------------------------------------------------


def _scales_of(scale_a: Any, scale_b: Any, m: int, n: int, k: int, groups: int) -> int:
    """Which scales the shapes of these are; b has so many matrices, or is one where there are 0. Raises ValueError."""
    if scale_a is None and scale_b is None:
        return SCALES_NONE
    if scale_a is None or scale_b is None:
        raise ValueError("scale_a and scale_b come together")
    of_a, of_b = (
        tuple(one.shape if hasattr(one, "shape") else one.__cuda_array_interface__["shape"]) for one in (scale_a, scale_b)
    )
    blocks_k, blocks_n, each = -(-k // BLOCK), -(-n // BLOCK), (groups,) if groups else ()
    if math.prod(of_a) == math.prod(of_b) == 1:
        return SCALES_TENSOR
    if of_a in ((m,), (m, 1)) and of_b in ((*each, n), (*each, 1, n)):
        return SCALES_ROWS
    if of_a == (m, blocks_k) and of_b == (*each, blocks_k, blocks_n):
        return SCALES_BLOCKS
    raise ValueError(
        f"scale_a is {_by(of_a)} and scale_b {_by(of_b)}: they are 1 and 1, or {_by((m, 1))} and {_by((*each, 1, n))}, "
        f"or {_by((m, blocks_k))} and {_by((*each, blocks_k, blocks_n))}"
    )


def _laid_out(scale: Any, name: str, scales: int, stream: int) -> Any:
    """Scales as gemm_ladder.h has them: these, or a copy. Blocks are stored by columns, which begin at multiples of 4 floats."""
    found = _array(_described(scale), name, stream)
    if found.dtype != "float32":
        raise TypeError(f"{name} is of {found.dtype}: scales are float32")
    by_columns = scales == SCALES_BLOCKS
    wanted, rows = _dense(found.shape, 1), found.shape[-2] if by_columns else 0
    if by_columns:
        ld = (rows + 3) // 4 * 4
        wanted = [found.shape[-1] * ld, 1, ld][-len(found.shape) :]
    if all(has == want for extent, has, want in zip(found.shape, found.strides, wanted, strict=True) if extent > 1):
        return scale
    return _padded(scale, name, 0, ld - rows, swapped=True) if by_columns else _padded(scale, name, 0, 0)


def _first_rows(offs: Any, groups: int, stream: int) -> Any:
    """Where each group begins, of where each ends."""
    found = _array(_described(offs), "offs", stream)
    if found.dtype != "int32" or found.shape != (groups,):
        raise ValueError(f"offs is {_by(found.shape)} of {found.dtype}: it is {groups} of int32, the end of each group in a")
    return _padded(offs, "offs", 1, 0)


# ---- the functions -----------------------------------------------------------------------------------------------------


def _problem(a: Matrix, b: Matrix, c: Matrix, kind: str | None, scales: int, groups: int) -> Problem:
    """The library's words for C = A B. Raises TypeError or ValueError."""
    for other, name in ((b, "b"), (c, "out")):
        if other.device != a.device:
            raise ValueError(f"{name} is on device {other.device}, and a on device {a.device}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a is {_by(a.shape)} and b {_by(b.shape)}: the columns of a must be as many as the rows of b")
    if c.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"out is {_by(c.shape)}, and the product {_by((a.shape[0], b.shape[1]))}")
    if b.dtype != a.dtype:
        raise TypeError(f"a is of {a.dtype}, and b of {b.dtype}")
    same = "bfloat16" if a.dtype == "uint8" else _result_dtype(a)
    if c.dtype not in (same, "float32"):
        raise TypeError(f"out is of {c.dtype}: the product of {a.dtype} is {same} or float32")
    kinds = KINDS[a.dtype]
    if kind is not None and kind not in kinds:
        raise ValueError(f"kind is {kind!r}: of {a.dtype} it is {' or '.join(map(repr, kinds))}")
    if kind is None and a.dtype == "uint8":
        raise TypeError("a is of uint8: kind='e4m3' says that it holds the bits of E4M3")
    order = ROW_MAJOR if c.ld(ROW_MAJOR) is not None else COL_MAJOR
    transposed = [one.ld(order) is None for one in (a, b)]
    if scales or groups:  # of a row or a column, either is true
        transposed[1] = b.ld(COL_MAJOR) is not None
    lda, ldb = (one.ld(1 - order if other else order) for one, other in zip((a, b), transposed, strict=True))
    result = RESULT_SAME if c.dtype == same else RESULT_F32
    ops = [T if other else N for other in transposed]
    sizes = (*c.shape, a.shape[1])
    return Problem(order, TYPES[kind or kinds[0]], result, *ops, *sizes, lda, ldb, c.ld(order), 1, 0, 0, 0, scales, groups)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


def _result_dtype(a: Matrix, out_dtype: Any = None) -> str:
    """The name of a dtype of any framework; without one, that of the product."""
    if out_dtype is None:
        return RESULTS.get(a.dtype, a.dtype)
    return getattr(out_dtype, "name", None) or getattr(out_dtype, "__name__", None) or str(out_dtype).removeprefix("torch.")


def _product(
    a: Any, b: Any, offs: Any, out: Any, out_dtype: Any, alpha: float, beta: float, kind: str | None, *scales: Any
) -> Any:
    """matmul(), or with `offs` grouped_matmul()."""
    if out is None and beta != 0:
        raise ValueError(f"beta is {beta}, and there is no out to be multiplied by it")
    copies = _framework(a) == "numpy"
    if copies:
        for array, name in zip((b, out, offs, *scales), ("b", "out", "offs", "scale_a", "scale_b"), strict=True):
            if array is not None and _framework(array) != "numpy":
                raise TypeError(f"a is an array of NumPy, and {name} is {type(array).__name__}: all must be NumPy's, or none")
        if out is not None and not out.flags.writeable:
            raise ValueError("out is read-only")
    elif out is not None and _framework(out) == "jax":
        raise TypeError("out is an array of JAX, which never changes")

    def on_gpu(array: Any, name: str) -> Any:
        return Copied(array, name) if copies else array

    stream, given = _stream(a), a
    a, b = on_gpu(a, "a"), on_gpu(b, "b")
    left = _matrix(a, "a", stream)
    right, groups = (_matrix(b, "b", stream), 0) if offs is None else _stacked(b, "b", stream)
    sizes = (left.shape[0], right.shape[1])
    mode = _scales_of(*scales, *sizes, left.shape[1], groups)
    target = on_gpu(_new(given, sizes, _result_dtype(left, out_dtype)) if out is None else out, "out")
    result = _matrix(target, "out", stream)
    problem = _problem(left, right, result, kind, mode, groups)
    if result.pointer and result.pointer in (left.pointer, right.pointer):
        raise ValueError("out overlaps a or b")
    operands = Operands(alpha, left.pointer, right.pointer, beta, result.pointer)
    others = []  # which live until the product is enqueued
    if mode != SCALES_NONE:
        others = [
            on_gpu(_laid_out(one, name, mode, stream), name) for one, name in zip(scales, ("scale_a", "scale_b"), strict=True)
        ]
        operands.scale_a, operands.scale_b = (_array(one, "a scale", stream).pointer for one in others)
    if offs is not None:
        others.append(on_gpu(_first_rows(offs, groups, stream), "offs"))
        operands.first_row = _array(others[-1], "offs", stream).pointer
    library = Library.get()
    library.run(left.device, stream, problem, operands)
    if "jax" in (_framework(a), _framework(b)) or {_stream(one) for one in (b, target, *others)} != {stream}:
        library.synchronize(stream)  # what another stream does next with these arrays does not wait for this one
    return target.fetch() if copies else target


def matmul(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    kind: str | None = None,
    scale_a: Any = None,
    scale_b: Any = None,
    out_dtype: Any = None,
) -> Any:
    """alpha · a · b + beta · out, on the GPU.

    a is m x k, b is k x n, the result m x n. All are matrices on one GPU, of float32, bfloat16, float16 or float8_e4m3fn. Either
    their rows or their columns are contiguous; none is copied. `kind` says how float32 is multiplied: "f32", the default, loses
    no bits; "tf32" rounds both operands to TF32 for the tensor cores. Sums are FP32, but those of float8_e4m3fn have 13 bits
    where it has no scales of blocks. Arrays of uint8 hold the bits of float8_e4m3fn where `kind` is "e4m3".

    Numbers of float8_e4m3fn may have scales, in float32. Their shapes say which numbers share one, as in torch._scaled_mm: 1 and
    1, all; m x 1 and 1 x n, a row of a, a column of b; m x k/128 and k/128 x n/128, 128 numbers of a along k, and 128 x 128 of b.
    The last are copied where they do not lie as gemm_ladder.h says. Those of torch._scaled_mm do where m is a multiple of 4, and
    the columns of scale_b begin at multiples of 4. With scales the rows of a and out and the columns of b are contiguous.

    The result is `out`, or without it a new array of a's framework, of `out_dtype`. It has a's type or float32; of float8_e4m3fn
    bfloat16, the default, or float32. It must not overlap a or b. JAX's arrays never change, so they cannot be `out`. NumPy's
    are copied to the GPU and back.

    The product is enqueued on the current stream of a's framework. For JAX, and where the arrays are used on different streams,
    matmul() waits until the result is there. There is no gradient.

    Raises TypeError (a type, no GPU), ValueError (shapes, strides, devices, kind), GemmLadderError (the library refused or
    failed), OSError (there is no library).
    """
    return _product(a, b, None, out, out_dtype, alpha, beta, kind, scale_a, scale_b)


def grouped_matmul(
    a: Any,
    b: Any,
    offs: Any,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    kind: str | None = None,
    scale_a: Any = None,
    scale_b: Any = None,
    out_dtype: Any = None,
) -> Any:
    """The product of each group of rows of a with a matrix of its own, as torch._grouped_mm: offs[g - 1] to offs[g] with b[g].

    a is m x k, b is groups x k x n, and its columns are contiguous. `offs` has `groups` numbers of int32 on the GPU: they ascend,
    and the last is m. A group may have no rows. Scales are those of matmul() for a, and for b those of each of its matrices: 1
    for all, or groups x n, or groups x k/128 x n/128. All else is as with matmul().
    """
    return _product(a, b, offs, out, out_dtype, alpha, beta, kind, scale_a, scale_b)


class Described:
    """A NumPy array as its copy on the GPU would be."""

    def __init__(self, host: Any):
        self.__cuda_array_interface__ = {**host.__array_interface__, "data": (0, False), "strides": host.strides}


def _described(array: Any) -> Any:
    return Described(array) if _framework(array) == "numpy" else array


def explain(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    kind: str | None = None,
    scale_a: Any = None,
    scale_b: Any = None,
    out_dtype: Any = None,
) -> str:
    """Which kernel matmul() with these arguments runs, and why: text of one line or more. Nothing is run. Where b has three
    dimensions: grouped_matmul().

    Arrays are taken to be aligned to 256 bytes; without `out`, the result to be row-major. Raises as matmul().
    """
    a, b, out = map(_described, (a, b, out))
    stream = _stream(a)
    left = _matrix(a, "a", stream)
    grouped = len(_array(b, "b", stream).shape) == 3
    right, groups = _stacked(b, "b", stream) if grouped else (_matrix(b, "b", stream), 0)
    shape = (left.shape[0], right.shape[1])
    new = Matrix(0, shape, (max(1, shape[1]), 1), _result_dtype(left, out_dtype), left.device, None)
    result = new if out is None else _matrix(out, "out", stream)
    scales = _scales_of(scale_a, scale_b, *shape, left.shape[1], groups)
    return Library.get().explain(left.device, _problem(left, right, result, kind, scales, groups))


def quantise(a: Any, block: str) -> tuple[Any, Any]:
    """E4M3 of a matrix, on the GPU, and the scales by which its numbers are multiplied to get a again, nearly.

    a is of float32, bfloat16 or float16, and its rows are contiguous. `block` says which numbers share a scale, and so which
    shape the array of scales has:

        "all"      all                        (1,)
        "row"      a row                      (rows,)
        "1x128"    128 neighbours in a row    (columns / 128, rows); rows are rounded up to a multiple of 4
        "128x128"  a square                   (rows / 128, columns / 128); columns / 128 is rounded up to a multiple of 4

    Quotients are rounded up. Scales past the last row or column are not written. include/gemm_ladder.h says what a scale is, and
    how numbers are rounded.

    Both are new arrays of a's framework. Scales are float32. E4M3 is float8_e4m3fn in PyTorch and JAX; CuPy and NumPy get its
    bits, as uint8. The work is enqueued on the current stream of a's framework; for JAX and NumPy, quantise() waits. There is no
    gradient.

    Raises TypeError, ValueError, GemmLadderError, OSError, as matmul().
    """
    if block not in QUANTISE_BLOCKS:
        raise ValueError(f"block is {block!r}: it is {' or '.join(map(repr, QUANTISE_BLOCKS))}")
    framework = _framework(a)
    if not framework:
        raise TypeError(f"a is {type(a).__name__}: quantise() takes arrays of PyTorch, CuPy, JAX and NumPy")
    on_gpu = (lambda array, name: Copied(array, name)) if framework == "numpy" else (lambda array, name: array)
    stream, source = _stream(a), on_gpu(a, "a")
    x = _matrix(source, "a", stream)
    if x.ld(ROW_MAJOR) is None:
        raise ValueError("a is stored by columns, and quantise() takes contiguous rows: copy it")
    rows, columns = x.shape
    across, down = -(-columns // 128), -(-rows // 128)
    shape = {"all": (1,), "row": (rows,), "1x128": (across, -(-rows // 4) * 4), "128x128": (down, -(-across // 4) * 4)}[block]
    made = [on_gpu(_new(a, *words), "") for words in ((x.shape, "uint8"), (shape, "float32"))]
    library = Library.get()
    library.quantise(stream, x, QUANTISE_BLOCKS[block], *(_array(one, "", stream).pointer for one in made))
    if framework == "numpy":
        return tuple(one.fetch() for one in made)
    if framework == "jax":
        library.synchronize(stream)
    to, scale = made
    typed = {"torch": "torch", "jax": "jax.numpy"}
    return to.view(sys.modules[typed[framework]].float8_e4m3fn) if framework in typed else to, scale
