"""Numbers in the prose of chapter 12 against the recorded results."""

import pytest
from recorded import agrees, gain, metric, said

TYPES = ("bf16", "f16", "tf32")
PAIRS = 1024 * 4 * 64  # of a warp and a k tile, in BF16 at 4096 cubed


def of_both(group: str, name: str) -> list[float]:
    return [metric("bf16", number, group, name) for number in ("11", "12")]


def in_table(row: str) -> list[str]:
    return said("12", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \|")


def test_what_limits_11():
    counted, ideal = said("12", r"serves ([\d.]+) million .*?, and ([\d.]+) million would be")
    assert agrees(counted, metric("bf16", "11", "shared", "wavefronts"), 1e6)
    assert agrees(ideal, metric("bf16", "11", "shared", "ideal wavefronts"), 1e6)


@pytest.mark.parametrize("type", TYPES)
def test_the_gain_in_each_type(type):
    (text,) = said("12", r"Per clock 12 is ([\d.]+) times as fast as 11 at 4096³, in each type")
    assert agrees(text, gain(type, "12", "11", 4096))


def test_it_executes_more_instructions():
    (text,) = said("12", r"although it executes ([\d.]+) times the instructions")
    before, after = of_both("issue", "instructions")
    assert agrees(text, after / before)


def test_wavefronts_per_copy():
    counted, ideal = of_both("shared", "wavefronts"), of_both("shared", "ideal wavefronts")
    for text, all_of_them, least in zip(in_table("wavefronts per copy"), counted, ideal, strict=True):
        assert float(text) == (64 + (all_of_them - least) / PAIRS) / 16


def test_sectors_per_copy():
    for text, number in zip(in_table(r"\[sectors\]\(glossary\.md#sector\) per copy"), ("11", "12"), strict=True):
        requests = metric("bf16", number, "global", "load requests")
        assert float(text) == metric("bf16", number, "global", "load sectors") / requests


def test_bytes_of_l2():
    for text, value in zip(in_table("moved by L2, GB"), of_both("memory", "L2 bytes"), strict=True):
        assert agrees(text, value, 1e9)


def test_share_of_the_clocks_with_a_wavefront():
    cells = in_table("share of the clocks with a wavefront of shared memory")
    for text, wavefronts, clocks in zip(cells, of_both("shared", "wavefronts"), of_both("time", "clocks"), strict=True):
        assert agrees(text, wavefronts / 132 / clocks)


def test_clocks_per_k_tile():
    """1024 blocks are four waves of two blocks on each of 132 SMs, the fourth not quite full."""
    cells, clocks = in_table("clocks per k tile of two blocks"), of_both("time", "clocks")
    for text, value in zip(cells, clocks, strict=True):
        assert agrees(text, value / (4 * 64))
    saved, fewer = said("12", r"save 8 · 104 = (\d+) wavefronts per k tile, but only (\d+) clocks")
    before, after = of_both("shared", "wavefronts")
    assert int(saved) == 8 * (before - after) / PAIRS
    assert abs(int(fewer) - (clocks[0] - clocks[1]) / (4 * 64)) < 5


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("number", ["09b", "10", "12"])
def test_nothing_is_above_ideal_without_the_skewed_copies(type, number):
    assert metric(type, number, "shared", "wavefronts") == metric(type, number, "shared", "ideal wavefronts")
