"""What the compiler makes of every rung, for sm_90a, against what the chapters claim. Needs no GPU.

The chapters' tables of machine code are generated, and stale where another compiler makes something else. Here stand the
relations that their words claim, whatever the compiler unrolls.
"""

import csv
import json
import math
import os
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from plots.data import rungs
from plots.data.cubin import Kernel, compiler, kernels

ROOT = Path(__file__).parents[2]
RUNGS = sorted((ROOT / "kernels").glob("*.cu"))
ARCH = "sm_90a"  # a build without a GPU has machine code for no other, but of rungs that run on sm_100a alone
REGISTERS_AN_SM = 65536
COUNTED = "13.0"  # the map's numbers are of this compiler

# ---- what the chapters claim, by rung -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """Instructions that are in the rung's machine code, and that are not."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    barriers: bool | None = None  # of the block, in the loop over k tiles


WIDE_GLOBAL = (r"LDG\.E\.128", r"STG\.E\.128")  # 16-byte loads and stores of global memory
WIDE = (*WIDE_GLOBAL, r"LDS\.128")
TENSOR = "HMMA|HGMMA|QGMMA|UTCHMMA|UTCQMMA|UTCOMMA"  # of the tensor cores: mma.sync, wgmma, wgmma of FP8, and tcgen05.mma
COPY = r"LDGSTS\.E\.BYPASS\.(?:LTC128B\.)?128"  # cp.async.cg, 16 bytes
FRAGMENT = r"LDSM\.16\.M88\.4"  # ldmatrix.x4
LOCAL = "LDL|STL"  # local memory
PREFETCH = r"CCTL\.E\.PF2"  # prefetch.global.L2
MULTISTAGE = ("HMMA", FRAGMENT, COPY)
TMA = ("UTMALDG", r"SYNCS.*TRYWAIT")  # a bulk tensor copy to shared memory; an mbarrier's wait
PRODUCER = (*TMA, "USETMAXREG")
MULTICAST = r"UTMALDG.*MULTICAST"
WARPGROUP = ("HGMMA", "WARPGROUP")
THREADS_LOAD = ("HMMA", "LDSM", "LDGSTS")  # what wgmma and TMA do without
TENSOR_MEMORY = (*TMA, "UTCATOMSWS", "LDTM")  # allocated, loaded from
PAIR = (r"UTCHMMA\.2CTA", r"UTCBAR\.2CTA\.MULTICAST", r"UTMALDG\.2D\.2CTA")  # of blocks
NO_THREAD = ("LDS", "STS")  # touches shared memory
LANE_BY_LANE = r"BRA\.U\.ANY"  # a copy in a loop over the lanes that issue it: what elect.sync avoids

NAIVE = Claim(present=("LDG",), absent=("LDS", "STS", *WIDE_GLOBAL), barriers=False)
TILED = Claim(present=("LDS", "STS"), absent=WIDE_GLOBAL, barriers=True)
FLOAT4 = Claim(present=WIDE, barriers=True)
WMMA_TILES = Claim(present=("HMMA", r"LDG\.E\.128", r"STS\.128"), absent=("LDGSTS",), barriers=True)
ASYNCHRONOUS = Claim(present=("HMMA", "LDS", COPY), absent=("LDSM", "STS"), barriers=True)  # past the registers
STAGES = Claim(present=MULTISTAGE, absent=(*NO_THREAD, PREFETCH), barriers=True)
EPILOGUE = Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, PREFETCH), absent=NO_THREAD, barriers=True)

CLAIMS = {
    **dict.fromkeys(("01", "01b"), NAIVE),
    **dict.fromkeys(("02", "03", "04"), TILED),
    **dict.fromkeys(("05", "06", "06b", "07", "08", "17f", "18f"), FLOAT4),
    "09": Claim(present=("HMMA",), absent=("LDGSTS", *WIDE_GLOBAL), barriers=False),
    **dict.fromkeys(("09a", "09b"), WMMA_TILES),
    "09c": Claim(present=("HMMA", COPY), barriers=True),
    "10": Claim(present=("HMMA", "LDS", r"LDG\.E\.128", r"STS\.128"), absent=("LDSM", "LDGSTS"), barriers=True),
    "10b": Claim(present=("HMMA", r"LDS\.64", r"STS\.64"), absent=("LDSM", "LDGSTS"), barriers=True),
    **dict.fromkeys(("11", "12"), ASYNCHRONOUS),
    "13": Claim(present=("HMMA", FRAGMENT, COPY), absent=("STS",), barriers=True),
    **dict.fromkeys(("14", "15"), STAGES),
    **dict.fromkeys(("16", "17", "17b", "18"), EPILOGUE),
    # FP8 as Hopper multiplies it: both halves of each word become FP16.
    "40": Claim(
        present=(*MULTISTAGE, *WIDE_GLOBAL, PREFETCH, r"F2FP\.F16\.E4M3\.UNPACK_B", r"HMMA\.16816\.F32", "FADD"),
        absent=(*NO_THREAD, "QMMA"),
        barriers=True,
    ),
    "16b": Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, r"STS\.128", r"LDS\.128", PREFETCH), barriers=True),
    "19": Claim(present=("HMMA", "LDG"), absent=("LDSM", "LDGSTS", *NO_THREAD, *WIDE_GLOBAL), barriers=False),
    # C through shared memory, in 16-byte accesses of it and of C.
    "20": Claim(present=(*MULTISTAGE, *WIDE_GLOBAL, r"LDS\.128", PREFETCH), barriers=True),
    # TMA's tiles: no copy by threads. With a producer, mbarriers take the place of the block's barrier.
    "21": Claim(
        present=("HMMA", FRAGMENT, *TMA, *WIDE_GLOBAL, PREFETCH), absent=("LDGSTS", LANE_BY_LANE, *NO_THREAD), barriers=True
    ),
    "21b": Claim(
        present=("HMMA", FRAGMENT, *PRODUCER, *WIDE_GLOBAL, PREFETCH), absent=("LDGSTS", LANE_BY_LANE, *NO_THREAD), barriers=False
    ),
    "22": Claim(present=(*WARPGROUP, *TMA, PREFETCH), absent=(*THREADS_LOAD, LANE_BY_LANE, *NO_THREAD), barriers=True),
    "23": Claim(present=(*WARPGROUP, *PRODUCER, PREFETCH), absent=(*THREADS_LOAD, LANE_BY_LANE, *NO_THREAD), barriers=False),
    "24": Claim(present=(*WARPGROUP, *PRODUCER, MULTICAST), absent=(*THREADS_LOAD, LANE_BY_LANE, *NO_THREAD), barriers=False),
    **dict.fromkeys(
        ("25", "26", "27", "28", "29", "30"),
        Claim(
            present=(*WARPGROUP, *PRODUCER, MULTICAST, "UTMASTG", "STSM?", "FENCE"),
            absent=(*THREADS_LOAD, LANE_BY_LANE),
            barriers=False,
        ),
    ),
    # Tiles that split K over the grid multicast nothing, and store C themselves.
    **dict.fromkeys(
        ("31", "32"), Claim(present=(*WARPGROUP, *PRODUCER, "FENCE"), absent=(*THREADS_LOAD, LANE_BY_LANE), barriers=False)
    ),
    # Of all configurations: those with split-K store C themselves, those without a cluster multicast nothing.
    **dict.fromkeys(("33", "39"), Claim(present=(*WARPGROUP, *PRODUCER), absent=(*THREADS_LOAD, LANE_BY_LANE))),
    # Its scales of rows come by cp.async.
    "41": Claim(present=("QGMMA", "WARPGROUP", *PRODUCER), absent=("HGMMA", "F2FP.F16.E4M3", LANE_BY_LANE)),
    # Their promotion: FFMA.
    **dict.fromkeys(
        ("42", "43", "43b", "46"),
        Claim(present=("QGMMA", "WARPGROUP", *PRODUCER, "FFMA"), absent=(*THREADS_LOAD, "HGMMA", LANE_BY_LANE)),
    ),
    **dict.fromkeys(("44", "45"), Claim(present=(*WARPGROUP, *PRODUCER), absent=("LDGSTS", LANE_BY_LANE))),
    # FP32: TMA's tiles, and no barrier in the loop of FFMAs. 34's stands around it, once per tile.
    **dict.fromkeys(("34", "35", "36"), Claim(present=(*PRODUCER, *WIDE), absent=("LDGSTS", LANE_BY_LANE), barriers=False)),
    # With an elected lane, 37 is 0.7 % slower at 4096 cubed: its loop of FFMAs is scheduled anew.
    **dict.fromkeys(("47", "48", "49"), Claim(present=(*TENSOR_MEMORY, "UTCHMMA", "UTCBAR"), absent=THREADS_LOAD)),
    **dict.fromkeys(("50", "51"), Claim(present=(*TENSOR_MEMORY, *PAIR), absent=THREADS_LOAD)),
    "52": Claim(present=(*TENSOR_MEMORY, *PAIR, "UGETNEXTWORKID"), absent=THREADS_LOAD),
    "53": Claim(present=(*TENSOR_MEMORY, "UTCQMMA", "UTCCP"), absent=THREADS_LOAD),
    "54": Claim(present=(*TENSOR_MEMORY, "UTCOMMA", "UTCCP"), absent=THREADS_LOAD),
    "37": Claim(present=(*PRODUCER, *WIDE, "FENCE"), absent=("LDGSTS",), barriers=False),
    # The kernel with most instructions: B along k, where a thread has two neighbouring columns.
    "38": Claim(present=(*PRODUCER, r"LDG\.E\.64", r"STG\.E\.64", "FENCE"), absent=("LDGSTS",), barriers=False),
}

# ---- the tests ------------------------------------------------------------------------------------------------------


def nvcc() -> str:
    return os.environ.get("CUDACXX", "nvcc")


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory):
    """Reads a rung's kernels once, by its number: those of the build, or, where that is for another GPU, compiled for sm_90a."""
    built = {rung["stem"].partition("_")[0]: rung for rung in json.loads((ROOT / "build/generated/kernels.json").read_text())}
    known: dict[str, list[Kernel]] = {}

    def compiled(number: str) -> list[Kernel]:
        if number not in known:
            rung, result = built[number], tmp_path_factory.mktemp("code") / f"{number}.o"
            arch = rung["arch"] if rung["arch"] == "sm_100a" else ARCH
            if arch.removeprefix("sm_") in rung["architectures"]:
                result = Path(rung["object"])
            else:
                options = [
                    f"--generate-code=arch={arch.replace('sm', 'compute')},code=[{arch.replace('sm', 'compute')},{arch}]",
                    "-isystem",
                    ROOT / ".deps/cutlass/include",
                ]
                compiles(rung["source"], result, "-c", *options)
            known[number] = [kernel for kernel in kernels(result) if kernel.arch == arch]
        if not known[number] and Path(built[number]["source"]).with_suffix(".options").exists():
            pytest.skip("built without CUTLASS's headers")
        return known[number]

    return compiled


def compiles(source: Path | str, result: Path, *options: object) -> None:
    command = [nvcc(), "-std=c++20", "-O3", f"-I{ROOT}", *options, source, "-o", result]
    subprocess.run(list(map(str, command)), check=True)


def multiplying(found: list[Kernel]) -> list[Kernel]:
    """The rung's kernels: those that use the tensor cores, for whichever types; in FP32, beside helpers, the longest."""
    return [k for k in found if k.count(TENSOR)] or [max(found, key=lambda kernel: len(kernel.instructions))]


def of_type(found: list[Kernel], operand: str) -> list[Kernel]:
    """Those for a type of operands: one for each type of the result, and for each tile."""
    return [kernel for kernel in found if MANGLED[operand] in kernel.symbol and kernel.count("HMMA")]


def once(kernel: Kernel) -> Kernel:
    """A usual round of the main loop, in which no tile of C begins."""
    if kernel.count(TENSOR):
        return kernel.usual_round(TENSOR, f"{TENSOR}|{COPY}")
    return kernel.usual_round("FFMA", "FFMA|LDS|STS")


def per_multiply(kernel: Kernel, pattern: str) -> float:
    """How many instructions of a kind the main loop has for one FFMA or HMMA, however often it is unrolled."""
    usual = once(kernel)
    return usual.count(pattern) / usual.count("HMMA" if usual.count("HMMA") else "FFMA")


# Operand types as their enumerators are mangled into the name of a kernel (common/problem.h).
MANGLED = {"tf32": "4TypeE1", "bf16": "4TypeE2", "f16": "4TypeE3"}
MANGLED_FP8 = {"e4m3": "4TypeE4", "e5m2": "4TypeE5"}
NUMBERS = [source.stem.partition("_")[0] for source in RUNGS]
FACTS = {rung.number: rung for rung in rungs.of_checkout().rungs.values() if rung.number in NUMBERS}


def test_every_claim_is_about_a_rung():
    assert set(CLAIMS) == set(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing_is_spilled_and_the_launch_bounds_hold(number, machine_code):
    for kernel in machine_code(number):
        assert (kernel.local_bytes, kernel.stack_bytes, kernel.count(LOCAL)) == (0, 0, 0), f"{kernel.symbol} uses local memory"
    for kernel in multiplying(machine_code(number)):
        assert kernel.threads > 0, "no __launch_bounds__"
        registers = -(-kernel.registers // 8) * 8  # handed out in eights
        assert registers * kernel.threads * kernel.min_blocks <= REGISTERS_AN_SM


@pytest.mark.parametrize("number", NUMBERS)
def test_instructions_are_what_the_chapter_claims(number, machine_code):
    claim, in_fp32 = CLAIMS[number], FACTS[number].instruction == "FFMA"
    for kernel in multiplying(machine_code(number)):
        missing = [pattern for pattern in [*claim.present, *["FFMA"] * in_fp32] if not kernel.count(pattern)]
        unwanted = [pattern for pattern in [*claim.absent, *[TENSOR] * in_fp32] if kernel.count(pattern)]
        assert not missing and not unwanted, f"{kernel.symbol}: missing {missing}, there but should not be {unwanted}"
        if claim.barriers is not None:
            around = None if once(kernel).count("LDG|STS|LDGSTS|UTMALDG") else kernel.around_main_loop(f"FFMA|{TENSOR}")
            barriers = once(kernel).count("BAR") + (around.count("BAR") if claim.barriers and around else 0)
            assert (barriers > 0) == claim.barriers, kernel.symbol
    types = FACTS[number].types
    for kind in types if len(types) > 1 and not in_fp32 else []:  # a kernel for one type need not name it
        assert any((MANGLED | MANGLED_FP8)[kind] in kernel.symbol for kernel in multiplying(machine_code(number))), kind


@pytest.mark.parametrize("number", ["40", "41"])
def test_a_is_e5m2_in_the_kernels_of_that_type_alone(number, machine_code):
    """F2FP.F16.E5M2, and QGMMA.64x128x32.F32.E5M2.E4M3, whose types stand behind what is read as its name."""
    for kernel in multiplying(machine_code(number)):
        takes = any("E5M2" in part for part in (*kernel.instructions, *kernel.operands))
        assert takes == (MANGLED_FP8["e5m2"] in kernel.symbol), kernel.symbol


@pytest.mark.parametrize("number", [number for number in NUMBERS if FACTS[number].arch == "sm_100a"])
def test_copies_and_products_of_sm_100a_stand_in_no_loop_over_lanes(number, machine_code):
    for kernel in machine_code(number):
        assert kernel.count(LANE_BY_LANE) <= 1, "the loop over tiles of the epilogue may end in one"


@pytest.mark.parametrize(("number", "waits"), [("31", True), ("32", False), ("33", False)])
def test_arrivals_at_a_clusters_barrier_wait_for_memory_up_to_31(number, waits, machine_code):
    """Chapter 32: .release makes a MEMBAR of the GPU, whose last instruction stands before the arrival; .relaxed none."""
    before = [
        "CGAERRBAR" in kernel.instructions[place - 3 : place]
        for kernel in multiplying(machine_code(number))
        for place, instruction in enumerate(kernel.instructions)
        if instruction == "UCGABAR_ARV"
    ]
    assert before and set(before) == {waits}


@pytest.mark.parametrize(("number", "before"), [("07", "06"), ("09c", "09b"), ("11", "10")])
def test_a_tile_ahead_takes_one_barrier_in_place_of_two(number, before, machine_code):
    for kernel, other in zip(*(multiplying(machine_code(one)) for one in (number, before)), strict=True):
        assert per_multiply(kernel, "BAR") == per_multiply(other, "BAR") / 2


def test_09c_computes_the_addresses_of_its_copies_between_the_barrier_and_the_first_fragment(machine_code):
    """Chapter 09c: 11 keeps them in registers, and 09b has its copies before the barrier. The division takes a reciprocal."""

    def after_the_barrier(kernel: Kernel) -> int:
        names = [name.partition(".")[0] for name in once(kernel).instructions]
        first = next(place for place, name in enumerate(names) if name in ("LD", "LDS", "LDSM"))
        return names[:first][::-1].index("BAR")

    found = {number: multiplying(machine_code(number)) for number in ("09b", "09c", "11")}
    for before, own, later in zip(*found.values(), strict=True):
        assert after_the_barrier(own) > 5 * after_the_barrier(before)
        assert after_the_barrier(own) > 3 * after_the_barrier(later)
    for number, divides in (("09b", False), ("09c", True), ("11", False)):
        assert all((once(kernel).count("MUFU") > 0) == divides for kernel in found[number]), number


def test_a_larger_thread_tile_saves_shared_loads_and_the_share_of_ffma_grows(machine_code):
    """Chapter 08: 16x8 results per thread take three quarters of the loads that 8x8 do. 17f, 18f, 34 to 38 multiply alike."""

    def share(number: str, pattern: str) -> float:
        return per_multiply(multiplying(machine_code(number))[0], pattern)

    assert share("08", r"LDS\.128") == 3 / 4 * share("07", r"LDS\.128") == share("08", "LDS")
    assert share("08", ".*") < share("07", ".*") and share("37", ".*") < share("08", ".*")
    for number in ("17f", "18f", "34", "35", "36", "37", "38"):
        assert share(number, r"LDS\.128") == share("08", r"LDS\.128")


def tiles_in_fp32(number: str, machine_code) -> dict[tuple[str, bool], list[Kernel]]:
    """The kernels of 37 and 38 by tile, such as "128x256", and by whether B is read along k."""
    found = defaultdict(list)
    for kernel in machine_code(number):
        if tile := re.search(r"TileILi(\d+)ELi(\d+)E(?:Li\d+E)*(?:Lb[01]ELb([01])ELb[01]E)?", kernel.symbol):
            found[f"{tile[1]}x{tile[2]}", tile[3] == "1"].append(kernel)
    return found


def conflicts(kernel: Kernel) -> int:
    """How many FFMAs of the main loop read two registers from one bank. `.reuse` keeps an operand, by its place and its bank."""
    kept: dict[tuple[int, int], int] = {}
    conflicting = 0
    loop = kernel.main_loop("FFMA")
    for name, operands in zip(kernel.instructions[loop.start : loop.stop], kernel.operands[loop.start : loop.stop], strict=True):
        if name != "FFMA":
            continue
        banks = []
        for place, (register, reuse) in enumerate(re.findall(r"R(\d+)(\.reuse)?", operands)[1:]):
            key = (place, int(register) % 2)
            if kept.pop(key, None) != int(register):
                banks.append(key[1])
            if reuse:
                kept[key] = int(register)
        conflicting += len(banks) > len(set(banks))
    return conflicting


def test_38_multiplies_as_37_does_in_every_layout(machine_code):
    """Chapter 38: the loop of FFMAs of the largest tile. The exit and, where B is read along k, the swizzle take a few
    instructions more than 37. Along k there are tt, nn, nt with either operand transposed; and tt and nt for short K."""
    ((_, (kernel,)),) = ((key, found) for key, found in tiles_in_fp32("37", machine_code).items() if key[0] == "128x256")
    loop = once(kernel)
    for along_k in (False, True):
        found = [once(one) for one in tiles_in_fp32("38", machine_code)["128x256", along_k]]
        assert len(found) == (6 if along_k else 1)
        for other in found:
            assert all(other.count(one) == loop.count(one) for one in ("FFMA", r"LDS\.128"))
            assert 1 <= other.count("EXIT") <= 2
            assert loop.count(".*") < other.count(".*") < 1.01 * loop.count(".*")


def test_banks_conflict_less_in_38(machine_code):
    """Chapter 38: in each tile and layout less than in 37. Of 100 FFMAs at most 6 conflict, or 11 where a swapped tile reads
    B across k. Where B is read along k layouts differ by 2 at most: so much may a layout's loop be slower, if a conflict costs
    the clock of an FFMA."""

    def most(kernel: Kernel) -> float:  # TRANSPOSE_A, B_ALONG_K, SWAPPED, EVERY_FOURTH
        return 0.11 if re.search("Lb[01]ELb0ELb1ELb0E", kernel.symbol) else 0.06

    before, now = tiles_in_fp32("37", machine_code), tiles_in_fp32("38", machine_code)
    tiles = {tile for tile, _ in now}
    assert len(tiles) == 8
    for tile in tiles:
        found = [kernel for along_k in (False, True) for kernel in now[tile, along_k]]
        if tile != "64x128":  # 37 does not have it
            (of_37,) = map(conflicts, before[tile, False])
            assert max(map(conflicts, found)) < of_37, tile
        assert all(conflicts(kernel) <= most(kernel) * once(kernel).count("FFMA") for kernel in found), tile
        along = [conflicts(kernel) for kernel in now[tile, True]]
        assert max(along) - min(along) <= 0.02 * once(now[tile, True][0]).count("FFMA"), (tile, along)


def test_39_multiplies_alike_in_every_layout(machine_code):
    """Chapter 39: a pass of the main loop of each tile has the same wgmma, and about as many other instructions."""
    loops = defaultdict(dict)
    for kernel in multiplying(machine_code("39")):
        tile, layout, types = re.search(r"TileILi(\d+)E(Lb\dELb\d)EEE(.+)EEvi", kernel.symbol).groups()
        loops[tile, types][layout] = once(kernel)
    assert len(loops) == 8 * 4 and all(len(of) == 4 for of in loops.values())
    for of in loops.values():
        assert len({loop.count("HGMMA") for loop in of.values()}) == 1
        lengths = [len(loop.instructions) for loop in of.values()]
        assert max(lengths) <= 1.15 * min(lengths)


# Shared loads of 4 bytes per FFMA in the source. With fewer docs/sim.md explains what a GPU counts less than the simulator, which
# sees the PTX.
SHARED_LOADS_IN_SOURCE = {"02": 2, "03": 1 + 1 / 8, "04": 2 / 8}


@pytest.mark.parametrize("number", SHARED_LOADS_IN_SOURCE)
def test_shared_loads_are_merged_as_the_simulators_chapter_says(number, machine_code):
    (kernel,) = multiplying(machine_code(number))
    assert per_multiply(kernel, "LDS") < SHARED_LOADS_IN_SOURCE[number]


# By rung: what the loop of a k tile loads and stores per HMMA. Types that differ have an entry of their own.
PER_HMMA = {
    "09a bf16": {r"LD\.E": 4},
    "09a f16": {FRAGMENT: 1},
    "09a tf32": {r"LD\.E": 2},
    "09b bf16": {r"LD\.E": 1},
    "09b f16": {FRAGMENT: 1 / 4},
    "09b tf32": {r"LD\.E": 1 / 2},
    "10": {"LDS": 1},
    "10b": {"LDS": 1 + 1 / 2, r"LDS\.64": 1 / 2, r"STS\.64": 1 / 2},  # of C, half a load and half a store
    "11": {COPY: 1 / 8, FRAGMENT: 0, "LDS": 1},
    "12": {COPY: 1 / 8, FRAGMENT: 0, "LDS": 1},
    "13": {COPY: 1 / 8, FRAGMENT: 1 / 4, "LDS": 0},
}
MULTIPLY = {"bf16": r"HMMA\.16816", "f16": r"HMMA\.16816", "tf32": r"HMMA\.1688"}
OF_WMMA = MULTIPLY | {"tf32": r"HMMA\.1684"}


@pytest.mark.parametrize(
    ("number", "operand"),
    [(number, one) for number, *kind in map(str.split, PER_HMMA) for one in kind or MANGLED],
)
def test_fragments_are_loaded_as_the_chapter_claims(number, operand, machine_code):
    claim = PER_HMMA.get(number) or PER_HMMA[f"{number} {operand}"]
    multiply = (OF_WMMA if number < "10" else MULTIPLY)[operand]
    for kernel in of_type(machine_code(number), operand):
        assert {pattern: per_multiply(kernel, pattern) for pattern in claim} == claim
        assert per_multiply(kernel, multiply) == 1


ADDRESSES = r"U?LOP3|U?IADD3|VIADD|U?IMAD|U?LEA"


@pytest.mark.parametrize("operand", MANGLED)
def test_a_swizzle_costs_addresses_and_ldmatrix_saves_them(operand, machine_code):
    """Chapter 12: the XOR is several times the address arithmetic, and more stands before the first HMMA. Chapter 13: half of
    12's instructions, under half of its address arithmetic, and fewer of them between the copies and the first HMMA. Chapter 14:
    fewer addresses still."""

    def most(number: str, count) -> float:
        return max(map(count, of_type(machine_code(number), operand)))

    def addresses(kernel: Kernel) -> float:
        return per_multiply(kernel, ADDRESSES)

    def before_hmma(kernel: Kernel) -> int:
        code = once(kernel).instructions
        return next(place for place, name in enumerate(code) if name.startswith("HMMA")) - code.index("LDGDEPBAR")

    def all_instructions(kernel: Kernel) -> float:
        return per_multiply(kernel, ".*")

    assert most("12", addresses) > 3 * most("11", addresses)
    assert most("13", addresses) < most("12", addresses) / 2
    assert most("12", all_instructions) > 1.25 * most("11", all_instructions)
    assert most("13", all_instructions) < 0.55 * most("12", all_instructions)
    assert most("12", before_hmma) > 1.5 * most("11", before_hmma)
    assert most("13", before_hmma) < 0.6 * most("12", before_hmma)
    large = [addresses(found.kernel) for found in multistage("14", operand, machine_code) if found.block_rows == 256]
    assert max(large) < most("13", addresses)


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


def multistage(number: str, operand: str, machine_code) -> list[Multistage]:
    found = []
    for kernel in of_type(machine_code(number), operand):
        rows, columns, result, residue = TEMPLATE.search(kernel.symbol).groups()
        found.append(Multistage(kernel, int(rows), int(columns), 4 if result == "f" else 2, residue == "1"))
    tiles, results, kinds = 2, 1 if operand == "tf32" else 2, 1 if number == "14" else 2
    assert len(found) == tiles * results * kinds
    return found


@pytest.mark.parametrize("operand", MANGLED)
@pytest.mark.parametrize("number", MULTISTAGE_RUNGS)
def test_a_k_tile_of_the_multistage_loop_takes_what_its_source_says(number, operand, machine_code):
    for found in multistage(number, operand, machine_code):
        copies = (found.block_rows + BLOCK_COLUMNS) // COPIED_ROWS
        claim = {
            MULTIPLY[operand]: WARP_ROWS // ROWS * (found.warp_columns // COLUMNS) * K_STEPS,
            FRAGMENT: (WARP_ROWS // ROWS + found.warp_columns // (2 * COLUMNS)) * K_STEPS,
            COPY: copies,
            FILLED: copies if found.residue else 0,
            **dict.fromkeys(("LDGDEPBAR", "DEPBAR", "BAR"), 1),
            **dict.fromkeys(("LD|LDG|LDS|ST|STG|STS", PRODUCTS), 0),
        }
        per_hmma = {pattern: count / claim[MULTIPLY[operand]] for pattern, count in claim.items()}
        assert {pattern: per_multiply(found.kernel, pattern) for pattern in claim} == per_hmma, found.kernel.symbol


@pytest.mark.parametrize("operand", ["bf16", "f16"])
def test_a_k_tile_in_cute_takes_what_that_of_16_takes(operand, machine_code):
    """20, in the tile for 144 KB: the same instructions for the same work, and few more of all together."""
    work = (MULTIPLY[operand], FRAGMENT, COPY, "LDGDEPBAR", "DEPBAR", "BAR")
    in_cute = [kernel for kernel in of_type(machine_code("20"), operand) if "TileConfigILi256E" in kernel.symbol]
    by_hand = [m for m in multistage("16", operand, machine_code) if m.block_rows == 256]
    for residue, most in ((False, 1.05), (True, 1.35)):
        (hand, *_) = (m.kernel for m in by_hand if m.residue == residue)
        kinds = [kernel for kernel in in_cute if f"Lb{int(residue)}E" in kernel.symbol]
        assert len(kinds) == 2, "FP32 and 16-bit results"
        for kernel in kinds:
            assert {name: per_multiply(kernel, name) for name in work} == {name: per_multiply(hand, name) for name in work}
            assert per_multiply(kernel, ".*") <= most * per_multiply(hand, ".*")


def overwritten(kernel: Kernel, within: int) -> int:
    """Registers that an LDGSTS takes as addresses, and that are written again not more than so many HMMA later."""
    loop = kernel.main_loop("HMMA")
    skips = {s.start: s.stop for s in kernel.skips if s.stop <= loop.stop and not kernel.count("HMMA|LDGSTS", s)}
    multiplied, count, place = 0, 0, loop.start
    taken: dict[int, int] = {}  # register -> the HMMA before the last copy that took it
    while place < loop.stop:
        name, operands = kernel.instructions[place], kernel.operands[place]
        multiplied += name.startswith("HMMA")
        if name.startswith("LDGSTS"):
            to, source = re.search(r"\[R(\d+).*\[R(\d+)\.64\]", operands).groups()
            taken |= dict.fromkeys((int(to), int(source), int(source) + 1), multiplied)
        elif written := re.match(r"\s*R(\d+),", operands):
            count += multiplied - taken.pop(int(written[1]), -within - 1) <= within
        place = skips.get(place + 1, place + 1)
    return count


@pytest.mark.parametrize("operand", ["bf16", "f16"])
def test_additions_overwrite_addresses_of_copies_as_20_says(operand, machine_code):
    """In 20 most of the additions do so soon after the copies; in 16 none does."""
    chapter = (ROOT / "docs/20_cute_multistage.md").read_text(encoding="utf-8")
    stated = int(re.search(r"In 20 there are (\d+)\b", chapter)[1])
    usual = re.compile(r"TileConfigILi256E.*TypeE\dEfLb0E")
    (in_cute,) = (kernel for kernel in of_type(machine_code("20"), operand) if usual.search(kernel.symbol))
    (by_hand,) = (kernel for kernel in of_type(machine_code("16"), operand) if usual.search(kernel.symbol))
    assert overwritten(by_hand, 16) == 0 < overwritten(in_cute, 16)
    made_by_counted("20", lambda: overwritten(in_cute, 16) == stated)


def test_the_warp_of_the_elected_lane_executes_more_as_21_says(machine_code):
    """The chapter's table; in warp 0 about one more per k tile, since a new tile of C has its row and column computed."""
    chapter = (ROOT / "docs/21_tma.md").read_text(encoding="utf-8")
    row = re.search(r"^\| \*\*together\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \|$", chapter, re.M)
    (kernel,) = (kernel for kernel in of_type(machine_code("21"), "bf16") if "EfEE" in kernel.symbol)
    (hand,) = (k for k in of_type(machine_code("16"), "bf16") if re.search(r"TileConfigILi256E.*TypeE\dEfLb0E", k.symbol))
    others, first = (kernel.usual_round("HMMA", keep) for keep in ("HMMA", "HMMA|UTMALDG"))
    counts = [once(hand).count(".*"), others.count(".*"), first.count(".*") + 1]
    assert first.count("UTMALDG") == 2 and others.count("UTMALDG|ELECT") == 0 and counts[1] < counts[0]
    made_by_counted("21", lambda: counts == list(map(int, row.groups())))


def made_by_counted(number: str, holds) -> None:
    """What a chapter states in numbers is of one compiler; others may make something else."""
    built = {rung["stem"].partition("_")[0]: rung for rung in json.loads((ROOT / "build/generated/kernels.json").read_text())}
    if (made_by := compiler(Path(built[number]["object"]))) != COUNTED:
        pytest.skip(f"the chapter's numbers are of nvcc {COUNTED}, and this is {made_by}")
    assert holds()


def width(instruction: str) -> int:
    """Bytes of a load or store per thread."""
    parts = instruction.split(".")
    return next((size for part, size in (("128", 16), ("64", 8), ("U16", 2)) if part in parts), 4)


@pytest.mark.parametrize("operand", MANGLED)
@pytest.mark.parametrize("number", MULTISTAGE_RUNGS)
def test_c_is_read_and_written_as_the_chapters_say(number, operand, machine_code):
    """14 and 15 write pairs and read single elements; 16 and 16b do both 16 bytes at a time."""
    for found in multistage(number, operand, machine_code):
        loads, stores = ({width(i) for i in found.kernel.instructions if i.startswith(f"{name}.")} for name in ("LDG", "STG"))
        wide = number in ("16", "16b")
        assert max(stores) == (16 if wide else 2 * found.result_bytes), found.kernel.symbol
        assert loads == {16 if wide else found.result_bytes}


# ---- the map ---------------------------------------------------------------------------------------------------------


def instructions_per_multiply(part: str) -> dict[str, str]:
    """What the map's table of a part states, by rung."""
    text = (ROOT / "docs/00_map.md").read_text().split(f"## {part}:")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if re.match(r"\| \[?\d\d[a-z]? ", line)]
    return {re.match(r"\[?(\d\d[a-z]?)", row[1])[1]: row[4] for row in rows}


STATED = instructions_per_multiply("Part I") | instructions_per_multiply("Part II")


def test_the_map_has_every_rung_of_its_first_parts():
    assert set(STATED) == {number for number in NUMBERS if number < "17"}


@pytest.mark.parametrize("number", STATED)
def test_the_map_states_the_instructions_per_multiplication(number, machine_code):
    built = {rung["stem"].partition("_")[0]: rung for rung in json.loads((ROOT / "build/generated/kernels.json").read_text())}
    if (made_by := compiler(Path(built[number]["object"]))) != COUNTED:
        pytest.skip(f"the map's numbers are of nvcc {COUNTED}, and this is {made_by}")
    found = multiplying(machine_code(number))
    if number >= "09":
        found = [kernel for kernel in found if f"{MANGLED['bf16']}Ef" in kernel.symbol]  # FP32 results
    kernel = max(found, key=lambda kernel: (kernel.count("HMMA"), -kernel.count(FILLED)))  # the large tile, whole k tiles
    instructions = per_multiply(kernel, ".*")
    if number < "09" and (around := kernel.around_main_loop("FFMA")):  # executed once per k tile
        instructions += len(around.instructions) / (fmas_per_k_tile(built[number]["stem"]) / kernel.threads)
    rounding = 0.5001 * 10 ** -len(STATED[number].partition(".")[2])
    assert abs(instructions - float(STATED[number])) <= rounding


def fmas_per_k_tile(stem: str) -> int:
    """Of a block: its tile as the harness recorded it, such as 128x128x16."""
    with (ROOT / "bench/recorded/nvidia-h200/ladder.csv").open(newline="") as file:
        return math.prod(
            map(int, next(row["tile"] for row in csv.DictReader(file) if row["kernel"] == stem and row["tile"]).split("x"))
        )


# ---- other GPUs, and proof that the tests above can fail ---------------------------------------------------------------


@pytest.mark.parametrize("number", ["09", "09a", "09b", "10"])
def test_fp16_is_multiplied_from_sm_75_on(number, tmp_path):
    """The other types compile, too, without an instruction of the tensor cores: refuses() keeps them away. From the PTX in the
    build, where that is for all GPUs: most of nvcc's time goes into making PTX."""
    (built,) = (r for r in json.loads((ROOT / "build/generated/kernels.json").read_text()) if r["stem"].startswith(f"{number}_"))
    source = Path(built["source"])
    if "75-virtual" in built["architectures"]:
        subprocess.run(["cuobjdump", "-xptx", "all", built["object"]], cwd=tmp_path, check=True, capture_output=True)
        (source,) = tmp_path.glob("*.sm_75.ptx")
    compiles(source, tmp_path / "rung.fatbin", "-arch=sm_75", "--fatbin")
    found = kernels(tmp_path / "rung.fatbin")
    assert found
    for kernel in found:
        assert (kernel.count("HMMA") > 0) == (MANGLED["f16"] in kernel.symbol), kernel.symbol
        assert (kernel.stack_bytes, kernel.local_bytes) == (0, 0)


PROOFS = """
__global__ void __launch_bounds__(1024) spills(const float* in, float* out, int n) {
  float kept[128];
  for (int i = 0; i < 128; ++i) kept[i] = in[i * 1024 + threadIdx.x];
  for (int i = 0; i < n; ++i) kept[i % 128] *= kept[(i * 7) % 128];
  for (int i = 0; i < 128; ++i) out[i * 1024 + threadIdx.x] = kept[i];
}

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

__global__ void skips(float* out, int n, int p) {
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    if (i % 7 == p)
      for (int j = 0; j < 100; ++j) out[j] = sqrtf(out[j] + i);
    atomicAdd(out + i, 1.0F);
  }
}
"""


@pytest.fixture(scope="module")
def proofs(tmp_path_factory) -> dict[str, Kernel]:
    source = tmp_path_factory.mktemp("proofs") / "proofs.cu"
    source.write_text(PROOFS)
    compiles(source, source.with_suffix(".o"), "-c", "--generate-code=arch=compute_80,code=[compute_80,sm_80]")
    return {re.search(r"spills|loops|skips", kernel.symbol)[0]: kernel for kernel in kernels(source.with_suffix(".o"))}


def test_local_memory_is_seen(proofs):
    kernel = proofs["spills"]
    assert kernel.stack_bytes > 0 and kernel.count("LDL") > 0 and kernel.count("STL") > 0
    assert kernel.threads == 1024


def test_loops_are_told_apart(proofs):
    kernel = proofs["loops"]
    assert [count for loop in kernel.loops if (count := kernel.count("FFMA", loop))] == [1, 2]
    assert kernel.count("FFMA") == 4


def test_what_branches_skip_is_seen(proofs):
    kernel = proofs["skips"]
    loop = max(kernel.loops, key=len)
    (add,) = (place for place in loop if kernel.instructions[place].startswith(("RED", "ATOM")))
    skipped = [skip for skip in kernel.skips if skip.start in loop and kernel.count("MUFU", skip)]
    assert skipped and not any(add in skip for skip in skipped)
    added = kernel.instructions[add]
    usual, kept = kernel.usual_round(added, added), kernel.usual_round(added, f"{added}|MUFU")
    assert usual.count(added) == kept.count(added) == 1
    assert kept.count("MUFU") > usual.count("MUFU") == 0


def test_mnemonics_match_by_whole_parts():
    kernel = Kernel("sm_80", "k", 1, 0, 0, 0, 1, 1, ("LDG.E.128.CONSTANT", "LDGSTS.E", "BAR.SYNC"))
    assert kernel.count("LDG") == 1
    assert kernel.count(r"LDG\.E\.128") == 1
    assert kernel.count(r"LDG\.E\.12") == 0
