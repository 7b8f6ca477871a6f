"""What the compiler made of the rungs' main loops, counted in the objects that the build left."""

import json
import re
import shutil
from functools import cache
from pathlib import Path

from plots.data import cubin
from plots.data.cubin import Kernel
from plots.data.rungs import Facts
from plots.errors import InputError, Unavailable
from plots.tables.grid import Grid

BUILT = Path("build/generated/kernels.json")  # CMake's list of rungs, with their objects
ARCH = "sm_90a"  # of the GPU whose results the chapters show
# How the instruction that multiplies operands of a type is called.
MULTIPLIES = {
    "f32": "FFMA",
    "tf32": r"HMMA\.\d+\.F32\.TF32",
    "bf16": r"HMMA\.\d+\.F32\.BF16",
    "f16": r"HMMA\.\d+\.F32(?!\.[A-Z])",
    "e4m3": r"HMMA\.\d+\.F32(?!\.[A-Z])",  # of FP16, on this GPU
}
FP32_RESULTS = re.compile(r"TypeE\d+Ef|sgemm")  # in the name of a kernel: the type of operands, then float
# A column is left out where it is 0 in all rows. LD is a load that is not told which memory it loads from.
COLUMNS = {
    "`FFMA`": "FFMA",
    "`HMMA`": "HMMA",
    "`F2FP`": r"F2FP\.F16\.E[45]M[23]",
    "`FADD`": "FADD",
    "`LD`": "LD",
    "`LDS`": "LDS",
    "`LDSM`": "LDSM",
    "`LDG`": "LDG",
    "`STS`": "STS",
    "`LDGSTS`": "LDGSTS",
    "`LOP3`, `IADD3`": "LOP3|IADD3",
    "all": ".*",
}


def table(root: Path, facts: Facts, kinds: list[str], words: list[str], compiler: str | None) -> str:
    """A row per rung and type of its own: instructions per warp and k tile, registers. Types that are alike share a row.

    Raises Unavailable where these objects cannot be read here, or another compiler than `compiler` (such as 13.0) made them.
    """
    found: list[tuple[str, list[str], list[int]]] = []
    for rung in map(facts.find, words):
        path = _object(root, rung.stem)
        made_by = _compiler(path)
        if compiler not in (None, made_by):
            raise Unavailable(f"kernel_{rung.stem} is of CUDA {made_by}, the recorded results are of {compiler}")
        for kind in [kind for kind in kinds if kind in rung.types] or kinds:
            for name, numbers in _numbers(rung.stem, _kernel(path, kind)):
                if found and found[-1][0] == name and found[-1][2] == numbers:
                    found[-1][1].append(kind)
                else:
                    found.append((name, [kind], numbers))
    shown = [i for i, _ in enumerate(COLUMNS) if any(numbers[i] for _, _, numbers in found)]
    head = [
        "per warp and pass of the main loop",
        "type",
        *(list(COLUMNS)[i] for i in shown),
        "registers",
    ]
    rows = [[name, ", ".join(types), *(str(numbers[i]) for i in shown), str(numbers[-1])] for name, types, numbers in found]
    source = f"*Counted in the machine code that CUDA {made_by} makes for {ARCH}, FP32 results; registers per thread.*"
    return f"{Grid(head, rows, left=2).markdown()}\n\n{source}"


def _numbers(stem: str, kernel: Kernel) -> list[tuple[str, list[int]]]:
    """Rows of the table, each a name and numbers by COLUMNS, then registers. A rung on FFMA may have a loop around
    its main loop: the one over k tiles, which is a row of its own."""
    pattern, keep = ("HMMA", "HMMA|LDGSTS") if kernel.count("HMMA") else ("FFMA", "FFMA|LDS|STS")
    parts = [(stem, kernel.usual_round(pattern, keep))]
    if pattern == "FFMA" and (around := kernel.around_main_loop(pattern)):
        parts.append((f"{stem}, around it", around))
    return [(name, [*(part.count(columns) for columns in COLUMNS.values()), kernel.registers]) for name, part in parts]


def _object(root: Path, stem: str) -> Path:
    if not shutil.which("cuobjdump") or not shutil.which("nvdisasm"):
        raise Unavailable("there is no cuobjdump, which needs nvdisasm, on the PATH")
    if not (root / BUILT).is_file():
        raise Unavailable("nothing is built here")
    built = {rung["stem"]: rung for rung in json.loads((root / BUILT).read_text(encoding="utf-8"))}
    if stem not in built or not Path(built[stem]["object"]).is_file():
        raise Unavailable(f"kernel_{stem} is not built")
    if ARCH.removeprefix("sm_") not in built[stem]["architectures"]:
        raise Unavailable(f"kernel_{stem} is not built for {ARCH}")
    return Path(built[stem]["object"])


@cache
def _kernels(path: Path) -> list[Kernel]:
    return cubin.kernels(path)


@cache
def _compiler(path: Path) -> str:
    return cubin.compiler(path)


def _kernel(path: Path, kind: str) -> Kernel:
    """The rung's kernel for operands of a type and FP32 results; of several, the one with the largest tile, and of these the
    one whose copies need not fill with zeros."""
    multiplying = [k for k in _kernels(path) if k.arch == ARCH and FP32_RESULTS.search(k.symbol) and k.count(MULTIPLIES[kind])]
    if not multiplying:
        raise InputError(f"machine-code: no kernel in {path.name} multiplies {kind}")
    return max(multiplying, key=lambda kernel: (kernel.count("HMMA|FFMA"), -kernel.count(r"LDGSTS.*\.ZFILL")))
