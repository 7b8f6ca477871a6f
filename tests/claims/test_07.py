"""Numbers in the prose of chapter 07 against the recorded results."""

import pytest
from recorded import agrees, cell, gain, metric, said

PAIRS = 2_097_152  # of a warp and a k tile at 4096 cubed: the same in 06 and 07
FINAL_WAVE = 1 - 1024 / 132 / 8  # of the time: SMs have 7.76 blocks on average, some have 8


def clocks_per_pair(number: str) -> float:
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def test_a_fifth_of_the_slots_of_06_is_empty():
    (used,) = said("07", r"It uses ([\d.]+) %, so a fifth of them stays empty")
    assert agrees(used, metric("f32", "06", "issue", "issue active"))
    assert abs(1 - metric("f32", "06", "issue", "issue active") / 100 - 1 / 5) < 0.03


def test_three_largest_stall_reasons_of_06():
    said("07", r"The three largest \[stall reasons\]\(.*?\) are \*long scoreboard\*, .*? \*barrier\*, and \*short scoreboard\*")
    others = ("mio throttle", "lg throttle", "math pipe throttle", "dispatch stall", "wait")
    largest = max(metric("f32", "06", "stalls", name) for name in others)
    assert all(metric("f32", "06", "stalls", name) > largest for name in ("long scoreboard", "barrier", "short scoreboard"))


def test_what_becomes_of_the_waiting():
    said("07", r"\*long scoreboard\* has nearly vanished, and \*barrier\* is less than half")
    before, now = (
        {name: metric("f32", rung, "stalls", name) for name in ("long scoreboard", "barrier")} for rung in ("06", "07")
    )
    assert now["long scoreboard"] < before["long scoreboard"] / 5 and now["barrier"] < before["barrier"] / 2


@pytest.mark.parametrize("place, rung, slots", [(0, "06", 283), (1, "07", 289)])
def test_clocks_per_warp_and_k_tile(place, rung, slots):
    measured = clocks_per_pair(rung)
    assert agrees(said("07", r"\| measured \| ([\d.]+) \| ([\d.]+) \|")[place], measured)
    assert float(said("07", r"\| instructions, four per clock \| ([\d.]+) \| ([\d.]+) \|")[place]) == slots
    assert agrees(said("07", r"\| last wave, 3\.0 % .*? \| ([\d.]+) \| ([\d.]+) \|")[place], measured * FINAL_WAVE)
    rest = measured * (1 - FINAL_WAVE) - slots
    assert agrees(said("07", r"\| the rest: .*? \| ([\d.]+) \| ([\d.]+) \|")[place], rest)


def test_shared_wavefronts_per_warp_and_k_tile():
    (predicted,) = said("07", r"per warp and k tile: (\d+) for shared memory")
    for rung in ("06", "07"):
        assert agrees(predicted, metric("f32", rung, "shared", "wavefronts") / PAIRS)


def test_bytes_that_the_blocks_fetch():
    (gigabytes,) = said("07", r"rate: ([\d.]+) GB for 132 SMs")
    assert abs(float(gigabytes) * 1e9 / metric("f32", "07", "memory", "L2 bytes") - 1) < 0.1  # L2 counts C, too


def test_the_ratio_of_06_from_which_the_gain_is_predicted():
    (ratio,) = said("07", r"06, which reaches ([\d.]+) of cuBLAS: ")
    assert agrees(ratio, cell("f32", "06", 4096, "ratio_cublas"))


def test_the_gain_beside_its_prediction():
    (gained,) = said("07", r"07 gains ([\d.]+) over 06; the prediction allows 1\.23")
    assert agrees(gained, gain("f32", "07", "06", 4096))


def test_nearly_half_of_the_waiting():
    before, now = (float(number) for number in said("07", r"\| the rest: waiting \| ([\d.]+) \| ([\d.]+) \|"))
    said("07", r"\*\*Nearly half of the waiting is gone\.\*\*")
    assert 0.5 < now / before < 0.6


def test_the_exercise_with_the_measured_rate():
    flop, rate, clocks = said("07", r"A warp does ([\d,]+) FLOP per k tile.*?With (\d+) FLOP/clk/SM: [\d,]+ / \d+ = (\d+)\.")
    measured = cell("f32", "07", 4096, "flop_clk_sm")
    assert int(flop.replace(",", "")) == 2 * 32 * 1024 and agrees(rate, measured) and agrees(clocks, 65536 / measured)


def test_the_range_that_is_expected_of_one_stage():
    low, high = said("07", r"Expect a ratio between ([\d.]+) and ([\d.]+)\.")
    assert agrees(low, cell("f32", "06", 4096, "ratio_cublas")) and agrees(high, cell("f32", "07", 4096, "ratio_cublas"))
