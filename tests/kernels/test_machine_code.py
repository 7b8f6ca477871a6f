"""What the compiler makes of every rung, for sm_90a, against what the chapters claim. Needs no GPU."""

import csv
import json
import math
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from plots.data import rungs
from plots.data.cubin import Kernel, kernels

ROOT = Path(__file__).parents[2]
RUNGS = sorted((ROOT / "kernels").glob("*.cu"))
ARCHS = ["sm_90a"]  # a build without a GPU has machine code for no other
REGISTERS_AN_SM = 65536

# ---- what the chapters claim, by rung -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """Instructions that are in the rung's machine code, and that are not."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    barriers: int | None = None  # BAR instructions in the whole kernel
    main_loop: "MainLoop | None" = None
    spilled: int = 0  # bytes per thread that the chapter owns up to, at most


@dataclass(frozen=True)
class MainLoop:
    """The one loop of the rung that has FFMAs."""

    ffma: int
    wide_shared_loads: int
    fma_share: float  # of its instructions, at least


LOOPS_OF = "release 13.0"  # of nvcc; another one may unroll and schedule otherwise

WIDE_GLOBAL = (r"LDG\.E\.128", r"STG\.E\.128")  # 16-byte loads and stores of global memory
WIDE_SHARED = (r"LDS\.128",)
SHARED = (r"LDS", r"STS", r"BAR")
COPY = r"LDGSTS\.E\.BYPASS\.(?:LTC128B\.)?128"  # cp.async.cg, 16 bytes
FRAGMENT = r"LDSM\.16\.M88\.4"  # ldmatrix.x4
LOCAL = ("LDL", "STL")  # local memory
PREFETCH = r"CCTL\.E\.PF2"  # prefetch.global.L2
MULTISTAGE = ("HMMA", FRAGMENT, COPY)
SCRATCH = (r"STS\.128", r"LDS\.128")

TMA = ("UTMALDG", r"SYNCS.*TRYWAIT")  # a bulk tensor copy to shared memory; an mbarrier's wait
PRODUCER = (*TMA, "USETMAXREG")
MULTICAST = r"UTMALDG.*MULTICAST"
WARPGROUP = ("HGMMA", "WARPGROUP")
NO_THREAD = ("LDS", "STS", *LOCAL)  # touches shared memory

CLAIMS = {
    "01": Claim(present=("LDG",), absent=(*SHARED, *WIDE_GLOBAL)),
    "01b": Claim(present=("LDG",), absent=(*SHARED, *WIDE_GLOBAL)),
    "02": Claim(present=SHARED, absent=WIDE_GLOBAL, barriers=2),
    "03": Claim(present=SHARED, absent=WIDE_GLOBAL, barriers=2),
    "04": Claim(present=SHARED, absent=WIDE_GLOBAL, barriers=2),
    "05": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2),
    "06": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2),
    "06b": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2),
    # Barriers: one before the loop, one per tile.
    "07": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2, main_loop=MainLoop(1024, 64, fma_share=0.88)),
    "08": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2, main_loop=MainLoop(1024, 48, fma_share=0.92)),
    "09": Claim(present=("HMMA",), absent=("BAR", "LDGSTS", *WIDE_GLOBAL)),
    "09a": Claim(present=("HMMA", r"LDG\.E\.128", r"STS\.128"), absent=("LDGSTS",), barriers=2),
    "09b": Claim(present=("HMMA", r"LDG\.E\.128", r"STS\.128"), absent=("LDGSTS",), barriers=2),
    "09c": Claim(present=("HMMA", COPY), barriers=1),
    "10": Claim(present=("HMMA", "LDS", r"LDG\.E\.128", r"STS\.128"), absent=("LDSM", "LDGSTS"), barriers=2),
    "10b": Claim(present=("HMMA", r"LDS\.64", r"STS\.64"), absent=("LDSM", "LDGSTS"), barriers=2),
    # Past the registers: no store of a tile. One barrier per tile.
    "11": Claim(present=("HMMA", "LDS", COPY), absent=("LDSM", "STS"), barriers=1),
    "12": Claim(present=("HMMA", "LDS", COPY), absent=("LDSM", "STS"), barriers=1),
    "13": Claim(present=("HMMA", FRAGMENT, COPY), absent=("STS",), barriers=1),
    # Barriers: one before the loop, one per k tile; in 16b one more after the epilogue, whose scratch is a stage.
    "14": Claim(present=MULTISTAGE, absent=("LDS", "STS", PREFETCH, *LOCAL), barriers=2),
    "15": Claim(present=MULTISTAGE, absent=("LDS", "STS", PREFETCH, *LOCAL), barriers=2),
    "16": Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, PREFETCH), absent=("LDS", "STS", *LOCAL), barriers=2),
    "16b": Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, *SCRATCH, PREFETCH), absent=LOCAL, barriers=3),
    **dict.fromkeys(
        ("17", "17b", "18"), Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, PREFETCH), absent=("LDS", "STS", *LOCAL), barriers=2)
    ),
    "17f": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), barriers=2, main_loop=MainLoop(1024, 48, fma_share=0.92)),
    "18f": Claim(present=(*WIDE_GLOBAL, *WIDE_SHARED), main_loop=MainLoop(1024, 48, fma_share=0.9)),
    "19": Claim(present=("HMMA", "LDG"), absent=("LDSM", "LDGSTS", *SHARED, *WIDE_GLOBAL)),
    # C through shared memory, in 16-byte accesses of it and of C.
    "20": Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, r"LDS\.128", PREFETCH), absent=LOCAL),
    # TMA's tiles: no copy by threads. Barriers of the block: after the setting up; in 21 and 22 one per k tile; from
    # 24 on the cluster's. Those of 25 are its warpgroups', two per part of a tile of C.
    "21": Claim(present=("HMMA", FRAGMENT, *TMA, *WIDE_GLOBAL, PREFETCH), absent=("LDGSTS", *NO_THREAD), barriers=2),
    "21b": Claim(
        present=("HMMA", FRAGMENT, *PRODUCER, *WIDE_GLOBAL, PREFETCH), absent=("LDGSTS", "LDS", "STS", *LOCAL), barriers=1
    ),
    "22": Claim(present=(*WARPGROUP, *TMA, PREFETCH), absent=("HMMA", "LDSM", "LDGSTS", "LDS", "STS", *LOCAL), barriers=2),
    "23": Claim(present=(*WARPGROUP, *PRODUCER, PREFETCH), absent=("HMMA", "LDSM", "LDGSTS", "LDS", "STS", *LOCAL), barriers=1),
    "24": Claim(present=(*WARPGROUP, *PRODUCER, MULTICAST), absent=("HMMA", "LDSM", "LDGSTS", "LDS", "STS", *LOCAL), barriers=0),
    "25": Claim(present=(*WARPGROUP, *PRODUCER, MULTICAST, "UTMASTG", "STS", "FENCE"), absent=("HMMA", "LDSM", "LDGSTS", *LOCAL)),
    # Of all configurations: those with split-K store C themselves, those without a cluster multicast nothing.
    "26": Claim(present=(*WARPGROUP, *PRODUCER), absent=("HMMA", "LDSM", "LDGSTS", *LOCAL)),
    "27": Claim(
        present=(*PRODUCER, *WIDE_GLOBAL, *WIDE_SHARED, "FENCE"), absent=("LDGSTS",), main_loop=MainLoop(1024, 48, 0.948)
    ),
}
# In every rung in FP32: FFMA, nothing in local memory.
IN_FP32 = Claim(present=("FFMA",), absent=(r"HMMA", r"HGMMA", *LOCAL))

# Shared loads per FFMA in the innermost loop for sm_90a. The source has 4-byte loads; ptxas merges neighbours. With this
# docs/sim.md explains what the GPU counts less than the simulator, which sees the PTX.
MERGED_SHARED_LOADS = {"02": 1.25, "03": 0.375, "04": 12 / 128}

# ---- the tests ------------------------------------------------------------------------------------------------------


def nvcc() -> str:
    return os.environ.get("CUDACXX", "nvcc")


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory):
    """Reads a rung's kernels once: those of the build, or, where that is for another GPU, of a compilation for sm_90a."""
    built = {rung["stem"]: rung for rung in json.loads((ROOT / "build/generated/kernels.json").read_text())}
    known: dict[Path, list[Kernel]] = {}

    def compiled(source: Path) -> list[Kernel]:
        if source not in known:
            rung, result = built[source.stem], tmp_path_factory.mktemp("code") / f"{source.stem}.o"
            if "90a" in rung["architectures"]:
                result = Path(rung["object"])
            else:
                architecture = "--generate-code=arch=compute_90a,code=[compute_90a,sm_90a]"
                include = ["-isystem", ROOT / ".deps/cutlass/include"]
                command = [nvcc(), "-std=c++20", "-O3", architecture, f"-I{ROOT}", *include, "-c", source, "-o", result]
                subprocess.run(list(map(str, command)), check=True)
            known[source] = kernels(result)
        if not known[source] and source.with_suffix(".options").exists():
            pytest.skip("built without CUTLASS's headers")
        return known[source]

    return compiled


def one_kernel(found: list[Kernel], arch: str) -> Kernel:
    """The rung's kernel: its only one, or, with helpers beside it, the longest."""
    of_arch = [kernel for kernel in found if kernel.arch == arch]
    assert of_arch, f"no kernel for {arch}"
    return max(of_arch, key=lambda kernel: len(kernel.instructions))


def multiplying(found: list[Kernel], arch: str) -> list[Kernel]:
    """The rung's kernels: in Part I its one, from rung 09 on all that use the tensor cores, for whichever types."""
    return [k for k in found if k.arch == arch and (k.count("HMMA") or k.count("HGMMA"))] or [one_kernel(found, arch)]


def by_stem(path: Path) -> str:
    return path.stem


def in_fp32(source: Path) -> bool:
    return rungs.of_checkout().rungs[source.stem].instruction == "FFMA"


def claimed(source: Path) -> Claim:
    return CLAIMS.get(source.stem.partition("_")[0], Claim())


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_nothing_is_spilled(source, arch, machine_code):
    for kernel in machine_code(source):
        if kernel.arch == arch:
            assert kernel.local_bytes == 0 and kernel.stack_bytes <= claimed(source).spilled, f"{kernel.symbol} uses local memory"
            loop = kernel.main_loop("HMMA") if kernel.stack_bytes else range(0)
            assert kernel.count("LDL", loop) <= 1 and kernel.count("STL", loop) <= 1, (
                f"{kernel.symbol} spills more than its chapter says"
            )


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_registers_keep_the_promise_of_the_launch_bounds(source, arch, machine_code):
    for kernel in multiplying(machine_code(source), arch):
        assert kernel.threads > 0, "no __launch_bounds__"
        registers = -(-kernel.registers // 8) * 8  # handed out in eights
        assert registers * kernel.threads * kernel.min_blocks <= REGISTERS_AN_SM


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_instructions_are_what_the_chapter_claims(source, arch, machine_code):
    for kernel in multiplying(machine_code(source), arch):
        for claim in [claimed(source)] + [IN_FP32] * in_fp32(source):
            missing = [pattern for pattern in claim.present if not kernel.count(pattern)]
            unwanted = [pattern for pattern in claim.absent if kernel.count(pattern)]
            assert not missing and not unwanted, f"{kernel.symbol}: missing {missing}, there but should not be {unwanted}"
            if claim.barriers is not None:
                assert kernel.count("BAR") == claim.barriers


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", [source for source in RUNGS if not in_fp32(source)], ids=by_stem)
def test_every_type_is_multiplied_by_the_tensor_cores(source, arch, machine_code):
    symbols = [kernel.symbol for kernel in multiplying(machine_code(source), arch)]
    for kind in rungs.of_checkout().rungs[source.stem].types:
        assert any(MANGLED[kind] in symbol for symbol in symbols), kind


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", [source for source in RUNGS if claimed(source).main_loop], ids=by_stem)
def test_main_loop_is_what_the_chapter_claims(source, arch, machine_code):
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    kernel, claim = one_kernel(machine_code(source), arch), claimed(source).main_loop
    loop = min((loop for loop in kernel.loops if kernel.count("FFMA", loop)), key=len)  # 18f has one more, over segments
    assert (kernel.count("FFMA", loop), kernel.count(r"LDS\.128", loop)) == (claim.ffma, claim.wide_shared_loads)
    assert kernel.count("FFMA", loop) >= claim.fma_share * len(loop)


# Operand types as their enumerators are mangled into the name of a kernel (common/problem.h).
MANGLED = {"tf32": "4TypeE1", "bf16": "4TypeE2", "f16": "4TypeE3"}
# By rung and type: what the loop of a k tile of 128 bytes multiplies and loads, in the chapters.
FRAGMENTS = {
    ("09a", "bf16"): {r"HMMA\.16816": 8, r"LD\.E": 32},
    ("09a", "f16"): {r"HMMA\.16816": 8, FRAGMENT: 8},
    ("09a", "tf32"): {r"HMMA\.1684": 16, r"LD\.E": 32},
    ("09b", "bf16"): {r"HMMA\.16816": 128, r"LD\.E": 128},
    ("09b", "f16"): {r"HMMA\.16816": 128, FRAGMENT: 32},
    ("09b", "tf32"): {r"HMMA\.1684": 256, r"LD\.E": 128},
    ("10", "bf16"): {r"HMMA\.16816": 128, r"LDS": 128},
    ("10", "f16"): {r"HMMA\.16816": 128, r"LDS": 128},
    ("10", "tf32"): {r"HMMA\.1688": 128, r"LDS": 128},
    ("10b", "bf16"): {r"HMMA\.16816": 128, r"LDS": 128 + 64, r"LDS\.64": 64, r"STS\.64": 64},
}
# From 11 on the loop has one path, so it can be counted as a whole.
MULTIPLY = {"bf16": r"HMMA\.16816", "f16": r"HMMA\.16816", "tf32": r"HMMA\.1688"}
ADDRESSES = r"U?LOP3|U?IADD3|VIADD|U?IMAD|U?LEA"
WHOLE_LOOPS = {
    "11": {COPY: 16, "BAR": 1, FRAGMENT: 0, "LDS": 128},
    "12": {COPY: 16, "BAR": 1, FRAGMENT: 0, "LDS": 128},
    "13": {COPY: 16, "BAR": 1, FRAGMENT: 32, "LDS": 0},
}
FRAGMENTS |= {(number, operand): {MULTIPLY[operand]: 128} | WHOLE_LOOPS[number] for number in WHOLE_LOOPS for operand in MANGLED}


def of_type(number: str, operand: str, machine_code) -> list[Kernel]:
    """The kernels of a rung for a type of operands, for sm_90a: one for each type of the result."""
    (source,) = (source for source in RUNGS if source.stem.startswith(f"{number}_"))
    found = [k for k in machine_code(source) if k.arch == "sm_90a" and MANGLED[operand] in k.symbol]
    assert found
    return found


def multiplying_loop(kernel: Kernel) -> range:
    (loop,) = (loop for loop in kernel.loops if kernel.count("HMMA", loop))
    return loop


@pytest.mark.parametrize(("number", "operand"), FRAGMENTS)
def test_fragments_are_loaded_as_the_chapter_claims(number, operand, machine_code):
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    for kernel in of_type(number, operand, machine_code):
        loop = multiplying_loop(kernel)
        assert {pattern: kernel.count(pattern, loop) for pattern in FRAGMENTS[number, operand]} == FRAGMENTS[number, operand]


@pytest.mark.parametrize("operand", MANGLED)
def test_a_swizzle_costs_addresses_and_ldmatrix_saves_them(operand, machine_code):
    """Chapter 12: the XOR is several times the address arithmetic, and more stands before the first HMMA. Chapter 13: half of
    12's instructions, under half of its address arithmetic, and fewer of them between the copies and the first HMMA."""
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")

    def most(number: str, count) -> int:
        return max(count(kernel, multiplying_loop(kernel)) for kernel in of_type(number, operand, machine_code))

    def addresses(kernel: Kernel, loop: range) -> int:
        return kernel.count(ADDRESSES, loop)

    def before_hmma(kernel: Kernel, loop: range) -> int:
        code = kernel.instructions[loop.start : loop.stop]
        return next(place for place, name in enumerate(code) if name.startswith("HMMA")) - code.index("LDGDEPBAR")

    assert most("12", addresses) > 3 * most("11", addresses)
    assert most("12", lambda kernel, loop: len(loop)) > 1.25 * most("11", lambda kernel, loop: len(loop))
    assert most("13", addresses) < most("12", addresses) / 2
    assert most("13", lambda kernel, loop: len(loop)) < 0.55 * most("12", lambda kernel, loop: len(loop))
    assert most("12", before_hmma) > 1.5 * most("11", before_hmma)
    assert most("13", before_hmma) < 0.6 * most("12", before_hmma)


# ---- 14 to 16b: what a warp executes per k tile, and how C is read and written --------------------------------------

# One kernel per tile and type of result; from 15 on another one where K is not a whole number of k tiles.
TEMPLATE = re.compile(r"TileConfigILi(\d+)ELi(\d+)EEELN6ladder4TypeE\dE(f|6__half|13__nv_bfloat16)(?:Lb([01])E)?EEv")
MULTISTAGE_RUNGS = ["14", "15", "16", "16b"]
ROWS, COLUMNS = 16, 8  # of an mma
WARP_ROWS, BLOCK_COLUMNS, K_STEPS, COPIED_ROWS = 64, 128, 4, 32  # of either tile: COPIED_ROWS by one copy of each thread
FILLED = rf"{COPY}\.ZFILL"
PRODUCTS = r"MUFU|I2F|(?:IMAD|UIMAD)(?!\.(?:MOV|X|SHL|IADD))[\w.]*"  # of integers, and what divisions are made of


@dataclass(frozen=True)
class Multistage:
    """A kernel, and what its name says of it."""

    kernel: Kernel
    block_rows: int
    warp_columns: int
    result_bytes: int
    residue: bool  # K is not a whole number of k tiles

    @property
    def results(self) -> int:  # per lane
        return WARP_ROWS * self.warp_columns // 32


def multistage(number: str, operand: str, machine_code) -> list[Multistage]:
    found = []
    for kernel in of_type(number, operand, machine_code):
        rows, columns, result, residue = TEMPLATE.search(kernel.symbol).groups()
        found.append(Multistage(kernel, int(rows), int(columns), 4 if result == "f" else 2, residue == "1"))
    tiles, results, kinds = 2, 1 if operand == "tf32" else 2, 1 if number == "14" else 2
    assert len(found) == tiles * results * kinds
    return found


def store_bytes(instruction: str) -> int:
    parts = instruction.split(".")
    return next((size for part, size in (("128", 16), ("64", 8), ("U16", 2)) if part in parts), 4)


def a_k_tile(kernel: Kernel) -> Kernel:
    """A round of the k loop in which no tile of C begins."""
    return kernel.usual_round("HMMA", f"HMMA|{COPY}")


@pytest.mark.parametrize("operand", MANGLED)
@pytest.mark.parametrize("number", MULTISTAGE_RUNGS)
def test_a_k_tile_of_the_multistage_loop_takes_what_its_source_says(number, operand, machine_code):
    for found in multistage(number, operand, machine_code):
        once = a_k_tile(found.kernel)
        claim = {
            MULTIPLY[operand]: WARP_ROWS // ROWS * (found.warp_columns // COLUMNS) * K_STEPS,
            FRAGMENT: (WARP_ROWS // ROWS + found.warp_columns // (2 * COLUMNS)) * K_STEPS,
            COPY: (found.block_rows + BLOCK_COLUMNS) // COPIED_ROWS,
            FILLED: (found.block_rows + BLOCK_COLUMNS) // COPIED_ROWS if found.residue else 0,
            "LDGDEPBAR": 1,
            "DEPBAR": 1,
            "BAR": 1,
            "LD|LDG|LDS|LDL|ST|STG|STS|STL": 0,
            PRODUCTS: 0,
        }
        assert {pattern: once.count(pattern) for pattern in claim} == claim, found.kernel.symbol


@pytest.mark.parametrize("operand", ["bf16", "f16"])
def test_a_k_tile_in_cute_takes_what_that_of_16_takes(operand, machine_code):
    """20, in the tile for 144 KB: the same instructions for the same work, and few more of all together."""
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    work = (MULTIPLY[operand], FRAGMENT, COPY, "LDGDEPBAR", "DEPBAR", "BAR")
    in_cute = [kernel for kernel in of_type("20", operand, machine_code) if kernel.count("HMMA")]
    by_hand = [m for m in multistage("16", operand, machine_code) if m.block_rows == 256]
    for residue, most in ((False, 1.05), (True, 1.35)):
        (hand, *_) = (a_k_tile(m.kernel) for m in by_hand if m.residue == residue)
        kinds = [a_k_tile(kernel) for kernel in in_cute if f"Lb{int(residue)}E" in kernel.symbol]
        assert len(kinds) == 2, "FP32 and 16-bit results"
        for once in kinds:
            assert {name: once.count(name) for name in work} == {name: hand.count(name) for name in work}
            assert len(once.instructions) <= most * len(hand.instructions)


@pytest.mark.parametrize("operand", MANGLED)
def test_the_loop_of_14_has_fewer_addresses_than_that_of_13(operand, machine_code):
    def addresses(kernel: Kernel) -> float:
        once = a_k_tile(kernel)
        return once.count(ADDRESSES) / once.count("HMMA")

    before = min(addresses(kernel) for kernel in of_type("13", operand, machine_code))
    large = [found.kernel for found in multistage("14", operand, machine_code) if found.block_rows == 256]
    assert max(map(addresses, large)) < before


@pytest.mark.parametrize("operand", MANGLED)
@pytest.mark.parametrize("number", MULTISTAGE_RUNGS)
def test_c_is_read_and_written_as_the_chapters_say(number, operand, machine_code):
    """14 and 15 write pairs and read single elements; 16 and 16b do both 16 bytes at a time."""
    for found in multistage(number, operand, machine_code):
        stores = [store_bytes(name) for name in found.kernel.instructions if name.startswith("STG")]
        wide = number in ("16", "16b")
        assert max(stores) == (16 if wide else 2 * found.result_bytes), found.kernel.symbol
        assert found.kernel.count("LDG") == found.results // (16 // found.result_bytes if wide else 1)
        if number != "16b":  # which has a loop there
            all_results = found.results * found.result_bytes // max(stores)
            assert stores.count(max(stores)) in (all_results, 2 * all_results)  # with beta and without, or for both


def instructions_per_multiply(part: str) -> dict[str, str]:
    """What the map's table of a part states, by rung."""
    text = (ROOT / "docs/00_map.md").read_text().split(f"## {part}:")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if re.match(r"\| \[?\d\d[a-z]? ", line)]
    return {re.match(r"\[?(\d\d[a-z]?)", row[1])[1]: row[4] for row in rows}


PER_FFMA, PER_HMMA = instructions_per_multiply("Part I"), instructions_per_multiply("Part II")


@pytest.mark.parametrize("number", PER_HMMA)
def test_the_map_states_the_instructions_per_hmma(number, machine_code):
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    stated = PER_HMMA[number]
    rounding = 0.5001 * 10 ** -len(stated.partition(".")[2])
    fp32_results = [kernel for kernel in of_type(number, "bf16", machine_code) if f"{MANGLED['bf16']}Ef" in kernel.symbol]
    large_and_whole = max(fp32_results, key=lambda kernel: (kernel.count("HMMA"), -kernel.count(FILLED)))
    once = a_k_tile(large_and_whole)
    assert abs(len(once.instructions) / once.count("HMMA") - float(stated)) <= rounding


@pytest.mark.parametrize("number", PER_FFMA)
def test_the_map_states_the_instructions_per_ffma(number, machine_code):
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    stated = PER_FFMA[number]
    (source,) = (source for source in RUNGS if source.stem.startswith(f"{number}_"))
    kernel = one_kernel(machine_code(source), "sm_90a")
    once = kernel.usual_round("FFMA", "FFMA|LDS|STS")
    instructions = len(once.instructions)
    if around := kernel.around_main_loop("FFMA"):  # executed once per k tile
        rounds = fmas_per_k_tile(source.stem) / kernel.threads / once.count("FFMA")
        instructions += len(around.instructions) / rounds
    rounding = 0.5001 * 10 ** -len(stated.partition(".")[2])
    assert abs(instructions / once.count("FFMA") - float(stated)) <= rounding


def fmas_per_k_tile(stem: str) -> int:
    """Of a block: its tile as the harness recorded it, such as 128x128x16."""
    with (ROOT / "bench/recorded/nvidia-h200/ladder.csv").open(newline="") as file:
        return math.prod(
            map(int, next(row["tile"] for row in csv.DictReader(file) if row["kernel"] == stem and row["tile"]).split("x"))
        )


def test_the_map_states_them_for_every_rung_of_part_one():
    assert set(PER_FFMA) == {source.stem.partition("_")[0] for source in RUNGS if source.stem < "09"}


def test_the_map_states_them_for_every_rung_of_part_two():
    assert set(PER_HMMA) == {source.stem.partition("_")[0] for source in RUNGS if "09" <= source.stem < "17"}


@pytest.mark.parametrize("number", MERGED_SHARED_LOADS)
def test_shared_loads_are_merged_as_the_simulator_s_chapter_says(number, machine_code):
    if LOOPS_OF not in subprocess.run([nvcc(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip(f"the main loops are claimed of nvcc {LOOPS_OF}")
    (source,) = (source for source in RUNGS if source.stem.startswith(f"{number}_"))
    kernel = one_kernel(machine_code(source), "sm_90a")
    loop = min((loop for loop in kernel.loops if kernel.count("FFMA", loop)), key=len)
    assert kernel.count("LDS", loop) / kernel.count("FFMA", loop) == MERGED_SHARED_LOADS[number]


@pytest.mark.parametrize("number", ["09", "09a", "09b", "10"])
def test_fp16_is_multiplied_from_sm_75_on(number, tmp_path):
    """The other types compile, too, without an instruction of the tensor cores: refuses() keeps them away."""
    (source,) = (source for source in RUNGS if source.stem.startswith(f"{number}_"))
    found = kernels(compiled_for_sm_75(source, tmp_path))
    assert found
    for kernel in found:
        assert (kernel.count("HMMA") > 0) == (MANGLED["f16"] in kernel.symbol), kernel.symbol
        assert (kernel.stack_bytes, kernel.local_bytes) == (0, 0)


def compiled_for_sm_75(source: Path, folder: Path) -> Path:
    """From the PTX in the build, where that is for all GPUs: most of nvcc's time goes into making PTX."""
    (built,) = (rung for rung in json.loads((ROOT / "build/generated/kernels.json").read_text()) if rung["stem"] == source.stem)
    if "75-virtual" in built["architectures"]:
        subprocess.run(["cuobjdump", "-xptx", "all", built["object"]], cwd=folder, check=True, capture_output=True)
        (source,) = folder.glob("*.sm_75.ptx")
    command = [nvcc(), "-std=c++20", "-O3", "-arch=sm_75", f"-I{ROOT}", "--fatbin", source, "-o", folder / "rung.fatbin"]
    subprocess.run(list(map(str, command)), check=True)
    return folder / "rung.fatbin"


def test_every_claim_is_about_a_rung():
    assert set(CLAIMS) == {source.stem.partition("_")[0] for source in RUNGS}


# ---- proof that the tests above can fail ----------------------------------------------------------------------------

SPILLS = """
__global__ void __launch_bounds__(1024) spills(const float* in, float* out, int n) {
  float kept[128];
  for (int i = 0; i < 128; ++i) kept[i] = in[i * 1024 + threadIdx.x];
  for (int i = 0; i < n; ++i) kept[i % 128] *= kept[(i * 7) % 128];
  for (int i = 0; i < 128; ++i) out[i * 1024 + threadIdx.x] = kept[i];
}
"""


def test_local_memory_is_seen(tmp_path):
    source, result = tmp_path / "spills.cu", tmp_path / "spills.o"
    source.write_text(SPILLS)
    command = [nvcc(), "-O3", "--generate-code=arch=compute_80,code=[compute_80,sm_80]", "-c", source, "-o", result]
    subprocess.run(list(map(str, command)), check=True)
    (kernel,) = kernels(result)
    assert kernel.stack_bytes > 0 and kernel.count("LDL") > 0 and kernel.count("STL") > 0
    assert kernel.threads == 1024


LOOPS = """
__global__ void loops(float* out, float y, float z, int n) {
  float x = y;
#pragma unroll 1
  for (int i = 0; i < n; ++i) x = x * y + z;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    x = x * y + z;
    x = x * z + y;
  }
  out[0] = x * y + z;
}
"""


def test_loops_are_told_apart(tmp_path):
    source, result = tmp_path / "loops.cu", tmp_path / "loops.o"
    source.write_text(LOOPS)
    command = [nvcc(), "-O3", "--generate-code=arch=compute_80,code=[compute_80,sm_80]", "-c", source, "-o", result]
    subprocess.run(list(map(str, command)), check=True)
    (kernel,) = kernels(result)
    assert [count for loop in kernel.loops if (count := kernel.count("FFMA", loop))] == [1, 2]
    assert kernel.count("FFMA") == 4


SKIPS = """
__global__ void skips(float* out, int n, int p) {
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    if (i % 7 == p)
      for (int j = 0; j < 100; ++j) out[j] = sqrtf(out[j] + i);
    atomicAdd(out + i, 1.0F);
  }
}
"""


def test_what_branches_skip_is_seen(tmp_path):
    source, result = tmp_path / "skips.cu", tmp_path / "skips.o"
    source.write_text(SKIPS)
    command = [nvcc(), "-O3", "--generate-code=arch=compute_80,code=[compute_80,sm_80]", "-c", source, "-o", result]
    subprocess.run(list(map(str, command)), check=True)
    (kernel,) = kernels(result)
    loop = max(kernel.loops, key=len)
    (add,) = (place for place in loop if kernel.instructions[place].startswith(("RED", "ATOM")))
    skipped = [skip for skip in kernel.skips if skip.start in loop and kernel.count("MUFU", skip)]
    assert skipped and not any(add in skip for skip in skipped)
    added = kernel.instructions[add]
    once, kept = kernel.usual_round(added, added), kernel.usual_round(added, f"{added}|MUFU")
    assert once.count(added) == kept.count(added) == 1
    assert kept.count("MUFU") > once.count("MUFU") == 0


def test_mnemonics_match_by_whole_parts():
    kernel = Kernel("sm_80", "k", 1, 0, 0, 0, 1, 1, ("LDG.E.128.CONSTANT", "LDGSTS.E", "BAR.SYNC"))
    assert kernel.count("LDG") == 1
    assert kernel.count(r"LDG\.E\.128") == 1
    assert kernel.count(r"LDG\.E\.12") == 0
