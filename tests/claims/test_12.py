"""Numbers in the prose of chapter 12 against the recorded results."""

import pytest
from recorded import agrees, gain, metric, profile, said

TYPES = ("bf16", "f16", "tf32")
PAIRS = 1024 * 4 * 64  # of a warp and a k tile, in BF16 at 4096 cubed


def of_both(group: str, name: str) -> list[float]:
    return [metric("bf16", number, group, name) for number in ("11", "12")]


def of_rung(number: str) -> dict[tuple[str, str], float]:
    return next(metrics for kernel, metrics in profile("bf16").items() if kernel.startswith(number))


def in_table(row: str) -> list[str]:
    return said("12", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \|")


def test_what_limits_11():
    counted, ideal = said("12", r"counts ([\d.]+) million .*?, and ([\d.]+) million are")
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
    for text, number in zip(in_table("sectors per copy"), ("11", "12"), strict=True):
        requests = metric("bf16", number, "global", "load requests")
        assert float(text) == metric("bf16", number, "global", "load sectors") / requests


def test_bytes_of_l2():
    for text, value in zip(in_table("moved by L2, GB"), of_both("memory", "L2 bytes"), strict=True):
        assert agrees(text, value, 1e9)


def test_share_of_the_clocks_with_a_wavefront():
    cells = in_table("busy shared memory: wavefronts / 132 SMs / clocks")
    for text, wavefronts, clocks in zip(cells, of_both("shared", "wavefronts"), of_both("time", "clocks"), strict=True):
        assert agrees(text, wavefronts / 132 / clocks)


def test_clocks_per_k_tile():
    """1024 blocks are four waves of two blocks on each of 132 SMs, the fourth not quite full."""
    cells, clocks = in_table("clocks per k tile of an SM's two blocks"), of_both("time", "clocks")
    for text, value in zip(cells, clocks, strict=True):
        assert agrees(text, value / (4 * 64))
    saved, *of_two_blocks, fewer = said("12", r"save 8 · 104 = (\d+) wavefronts, but only (\d+) − (\d+) = (\d+) clocks")
    before, after = of_both("shared", "wavefronts")
    assert int(saved) == 8 * (before - after) / PAIRS
    assert of_two_blocks == cells and int(fewer) == int(cells[0]) - int(cells[1])


@pytest.mark.parametrize("stall", ["mio throttle", "long scoreboard", "barrier", "wait"])
def test_the_waiting_of_all_warps(stall):
    cells = said("12", rf"\| {stall} \| ([\d.]+) · ([\d.]+) = (\d+) \| ([\d.]+) · ([\d.]+) = (\d+) \|")
    both = zip(of_both("stalls", stall), of_both("issue", "instructions"), strict=True)
    for (per_instruction, millions, together), (value, instructions) in zip((cells[:3], cells[3:]), both, strict=True):
        assert agrees(per_instruction, value) and agrees(millions, instructions, 1e6)
        assert agrees(together, value * instructions, 1e6)


def test_mio_throttle_is_the_largest_stall_of_11_after_wait():
    stalls = {name: value for (group, name), value in of_rung("11").items() if group == "stalls"}
    assert sorted(stalls, key=stalls.get)[-2:] == ["mio throttle", "wait"]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("number", ["09b", "10", "12"])
def test_nothing_is_above_ideal_without_the_skewed_copies(type, number):
    assert metric(type, number, "shared", "wavefronts") == metric(type, number, "shared", "ideal wavefronts")
