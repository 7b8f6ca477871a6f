"""What chapters 09 to 13 say of the recorded profiles and rates is what stands there."""

import csv
from functools import cache
from pathlib import Path
from statistics import median

import pytest

RECORDED = Path(__file__).parents[2] / "bench/recorded/nvidia-h200"
TYPES = ["bf16", "f16", "tf32"]
WARPS = 1024 * 4  # at 4096 cubed, 128 x 128 results per block of four warps
RUNGS = ["09_wmma", "09b_wmma_smem", "09c_wmma_async", "10_mma_ptx", "10b_c_in_smem", "11_cp_async", "12_swizzle", "13_ldmatrix"]

pytestmark = pytest.mark.skipif(not (RECORDED / "profile_tf32.csv").exists(), reason="not recorded yet")


@cache
def profile(type_: str) -> dict[tuple[str, str], float]:
    with (RECORDED / f"profile_{type_}.csv").open(encoding="utf-8") as lines:
        return {(row["kernel"], row["metric"]): float(row["value"]) for row in csv.DictReader(lines)}


@cache
def rates(type_: str) -> dict[str, list[float]]:
    """FLOP/clk/SM at 4096 cubed, one per sitting."""
    found: dict[str, list[float]] = {}
    with (RECORDED / "ladder.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["type"] == type_ and row["m"] == row["n"] == row["k"] == "4096":
                found.setdefault(row["kernel"], []).append(float(row["flop_clk_sm"]))
    return found


def warp_tiles(type_: str) -> int:
    return WARPS * (128 if type_ == "tf32" else 64)


def pieces(row: int, skew: int = 1) -> list[list[int]]:
    """The chunks of a row of eight, by the 128-byte line of shared memory in which the skew lays them."""
    chunks = list(range(8))
    ends = 8 - row * skew % 8
    return [piece for piece in (chunks[:ends], chunks[ends:]) if piece]


def sectors(row: int, skew: int = 1) -> int:
    return sum(len({chunk // 2 for chunk in piece}) for piece in pieces(row, skew))


def wavefronts(row: int, skew: int = 1) -> int:
    """Chapter 11's rule: a piece takes two where the chunks of its sectors go to two different 32 bytes."""
    torn = row * skew % 2
    return sum(2 if torn and len(piece) > 1 else 1 for piece in pieces(row, skew))


def test_the_rule_for_copies_into_skewed_rows():
    assert [sectors(row) for row in range(8)] == [4, 5, 4, 5, 4, 5, 4, 5]
    assert [wavefronts(row) for row in range(8)] == [1, 3, 2, 4, 2, 4, 2, 3]
    assert sum(len(pieces(row)) for row in range(8)) == 15
    assert sum(wavefronts(row, skew=2) for row in range(8)) == 14 and sum(sectors(row, skew=2) for row in range(8)) == 32


@pytest.mark.parametrize("type_", TYPES)
def test_wavefronts_of_shared_memory(type_):
    copies = 16 * sum(wavefronts(row) for row in range(8)) // 2
    assert copies == 168
    tile = {"09b": 192, "09c": 128 + copies, "10": 192, "10b": 448, "11": 128 + copies, "12": 192, "13": 192}
    once = {"09b": 256, "09c": 256, "10": 0, "10b": 256, "11": 64, "12": 64, "13": 64}
    for rung in RUNGS[1:]:
        number = rung.partition("_")[0]
        beside = once[number] * WARPS
        assert profile(type_)[rung, "wavefronts"] == tile[number] * warp_tiles(type_) + beside, rung
        ideal = min(tile[number], 192) if copies + 128 == tile[number] else tile[number]
        assert profile(type_)[rung, "ideal wavefronts"] == ideal * warp_tiles(type_) + beside, rung


@pytest.mark.parametrize("type_", TYPES)
def test_sectors_of_a_load(type_):
    torn = sum(sectors(row) for row in range(8)) // 2
    for rung in RUNGS:
        each = 8 if rung == "09_wmma" else torn if rung in ("09c_wmma_async", "11_cp_async") else 16
        assert profile(type_)[rung, "load sectors"] == each * profile(type_)[rung, "load requests"], rung


def share(type_: str, rung: str, stall: str) -> float:
    """Of a warp's time: the warps of a scheduler, 16 of them at most, over those in this stall, per instruction issued."""
    metrics = profile(type_)
    warps = metrics[rung, "warps active"] * 16 / metrics[rung, "issue active"]
    return metrics[rung, stall] / warps


@pytest.mark.parametrize("type_", TYPES)
def test_copies_that_run_ahead_hide_most_of_the_wait_for_global_memory(type_):
    long = "long scoreboard"
    assert share(type_, "09b_wmma_smem", long) > 0.2
    assert share(type_, "09c_wmma_async", long) < 2 / 3 * share(type_, "09b_wmma_smem", long)
    if type_ != "tf32":
        assert share(type_, "11_cp_async", long) < 3 / 4 * share(type_, "10_mma_ptx", long)
    assert share(type_, "12_swizzle", long) < share(type_, "13_ldmatrix", long), "a faster loop has less time to hide it in"


@pytest.mark.parametrize("type_", TYPES)
def test_what_is_waited_for_in_13(type_):
    """The fragments and the barrier a little, global memory most."""
    barrier, short, long = (share(type_, "13_ldmatrix", stall) for stall in ("barrier", "short scoreboard", "long scoreboard"))
    assert max(barrier, short) < long < 0.3


def test_only_in_bf16_does_09c_wait_at_its_barrier():
    of_type = {type_: share(type_, "09c_wmma_async", "barrier") for type_ in TYPES}
    assert of_type["bf16"] > 3 * max(of_type["f16"], of_type["tf32"])


# By rung and predecessor: between which numbers the gain in FLOP/clk/SM lies, in every type.
GAINS = {
    ("09b", "09"): (6, 11),
    ("09c", "09b"): (0.8, 1),
    ("10", "09b"): (0.97, 1.7),  # in FP16 a draw: wmma loads its fragments by LDSM there
    ("10b", "10"): (0.5, 2 / 3),
    ("11", "10"): (1, 1.2),
    ("12", "11"): (1.05, 1.25),
    ("13", "12"): (1.15, 1.3),
}


@pytest.mark.parametrize("type_", TYPES)
def test_gains_per_clock(type_):
    """In the medians over sittings; and no sitting is far from its cell's median."""
    named = {rung.partition("_")[0]: rung for rung in RUNGS}
    sittings = rates(type_)
    for (rung, before), (least, most) in GAINS.items():
        assert least < median(sittings[named[rung]]) / median(sittings[named[before]]) < most, (rung, before)
    for rung in RUNGS:
        assert sittings[rung] == pytest.approx([median(sittings[rung])] * len(sittings[rung]), rel=0.05), rung
