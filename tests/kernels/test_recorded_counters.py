"""The wavefronts and sectors that chapters 09 to 13 count are those of the recorded profiles."""

import csv
from functools import cache
from pathlib import Path

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
