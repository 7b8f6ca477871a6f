"""Numbers in the prose of chapter 06 against the recorded results."""

import pytest
from recorded import agrees, cell, gain, metric, said, stalls

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def test_wavefronts_of_05_and_the_ideal():
    counted, ideal = said("06", r"serves (\d+) million \[wavefronts\]\S+, of which (\d+) million are \[ideal\]")
    assert agrees(counted, metric("f32", "05", "shared", "wavefronts"), 1e6)
    assert agrees(ideal, metric("f32", "05", "shared", "ideal wavefronts"), 1e6)


def test_all_wavefronts_of_06_are_ideal():
    millions, per_pair = said(
        "06", r"(\d+) million shared wavefronts are (\d+) per pair, as predicted, and all of them are ideal"
    )
    counted = metric("f32", "06", "shared", "wavefronts")
    assert agrees(millions, counted, 1e6) and int(per_pair) == counted / PAIRS
    assert counted == metric("f32", "06", "shared", "ideal wavefronts")


def test_waiting_for_shared_memory_falls():
    before, after = said("06", r"\*short scoreboard\* falls from (\d+\.\d+) clocks per instruction to (\d+\.\d+)")
    assert agrees(before, stalls("f32", "05", "short scoreboard")) and agrees(after, stalls("f32", "06", "short scoreboard"))


def test_the_ratio_of_05_from_which_that_of_06_is_predicted():
    (of_05,) = said("06", r"05 reaches (\d+\.\d+) of cuBLAS, so 06 should reach")
    assert agrees(of_05, cell("f32", "05", 4096, "ratio_cublas"))


@pytest.mark.parametrize(("place", "rung", "bound"), [(0, "05", 384), (2, "06", 283)])
def test_clocks_per_warp_and_k_tile(place, rung, bound):
    measured = metric("f32", rung, "time", "clocks") * 132 / PAIRS
    rows = said(
        "06",
        r"\| time \| (\d+) \| (\d+) \| (\d+) \| \| bound \| (\d+) \| (\d+) \| (\d+) \| \| rest \| (\d+) \| (\d+) \| (\d+) \|",
    )
    time, least, rest = (rows[start + place] for start in (0, 3, 6))
    assert agrees(time, measured) and int(least) == bound and agrees(rest, measured - bound)


def test_the_exercise_with_the_measured_rates():
    of_05, of_06 = said("06", r"05 has (\d+) FLOP/clk/SM: .*? It reaches (\d+)\.")
    assert agrees(of_05, cell("f32", "05", 4096, "flop_clk_sm")) and agrees(of_06, cell("f32", "06", 4096, "flop_clk_sm"))


def test_the_gain_over_05():
    (times,) = said("06", r"The gain is (\d+\.\d+), not 1\.29")
    assert agrees(times, gain("f32", "06", "05", 4096))


def test_waits_between_k_tiles_are_not_longer():
    before, after, wait_before, wait_after = said(
        "06",
        r"\| clocks per instruction \| (\d+\.\d+) \| (\d+\.\d+) \| \| instructions per warp and k tile \| 1125 \| 1132 \|"
        r" \| product: [^|]+ \| (\d+) \| (\d+) \|",
    )
    waits = [stalls("f32", number, "long scoreboard", "barrier") for number in ("05", "06")]
    assert agrees(before, waits[0]) and agrees(after, waits[1]) and waits[1] <= waits[0]
    assert abs(int(wait_before) - waits[0] * 1125) <= 10
    assert abs(int(wait_after) - waits[1] * 1132) <= 10


def test_the_largest_stall_reasons_of_06():
    said("06", r"The largest stall reasons of 06 are \*long scoreboard\* \([^)]+\) and \*barrier\*")
    largest = min(stalls("f32", "06", name) for name in ("long scoreboard", "barrier"))
    assert largest > max(stalls("f32", "06", name) for name in ("short scoreboard", "mio throttle", "dispatch stall", "wait"))


def test_a_fifth_of_the_issue_slots_is_empty():
    said("06", r"a fifth of the slots is empty")
    assert abs(1 - metric("f32", "06", "issue", "issue active") / 100 - 0.2) < 0.03


def test_sectors_of_the_stores_of_c():
    of_05, of_06 = said("06", r"\| \[sectors\]\S+ \| ([\d,]+) \| ([\d,]+) \|")
    each_05, each_06 = said("06", r"\| sectors per store of a warp \| (\d+), each half filled \| (\d+), each filled \|")
    for number, sectors, each in (("05", of_05, each_05), ("06", of_06, each_06)):
        stored = metric("f32", number, "global", "store sectors")
        assert agrees(sectors, stored) and int(each) == stored / metric("f32", number, "global", "store requests")


def test_padding_has_a_few_more_wavefronts_and_is_slower():
    per_pair, percent = said("06", r"The profile confirms the (\d+) wavefronts, and 06b is (\d) % slower than 06")
    assert int(per_pair) == metric("f32", "06b", "shared", "wavefronts") / PAIRS
    assert agrees(percent, 100 * (1 - gain("f32", "06b", "06", 4096)))


def test_the_row_of_06_in_the_table_of_variants():
    (ratio,) = said("06", r"\| 06 \| (\d+\.\d+) \| \| BK = 8")
    assert agrees(ratio, cell("f32", "06", 4096, "ratio_cublas"))
