"""Numbers in the prose of chapter 04 against the recorded results."""

import pytest
from recorded import agrees, cell, metric, said, stalls

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def test_most_of_the_waiting_of_03_is_for_shared_memory():
    shared, all_stalls = said(
        "04", r"\*mio throttle\*\. Together they are (\d+\.\d+) of the (\d+\.\d+) clocks per instruction in the table"
    )
    others = ("long scoreboard", "barrier", "math pipe throttle", "dispatch stall", "wait")
    of_shared = stalls("f32", "03", "short scoreboard", "mio throttle")
    assert agrees(shared, of_shared) and agrees(all_stalls, of_shared + stalls("f32", "03", *others))


def test_the_profile_counts_the_wavefronts_of_the_table():
    pairs, millions, per_pair, ideal, others = said(
        "04",
        r"are (\d+\.\d+) million pairs .*? (\d+) million shared wavefronts are (\d+) per pair"
        r".*? calls (\d+) of these 400 \[ideal\]\S+ The other (\d+) are the conflicts",
    )
    counted, least = (metric("f32", "04", "shared", name) for name in ("wavefronts", "ideal wavefronts"))
    assert agrees(pairs, PAIRS, 1e6) and agrees(millions, counted, 1e6)
    assert [int(per_pair), int(ideal), int(others)] == [counted / PAIRS, least / PAIRS, (counted - least) / PAIRS]


def test_the_time_per_pair_and_its_part_that_the_bound_leaves_out():
    percent, clocks, bound, of_a_warp = said(
        "04",
        r"leaves out (\d+) % of the time.*? = (\d+) clocks per pair, and the bound is (\d+)\."
        r".*? a k tile of one warp lasts 16 · 549 = (\d+) clocks",
    )
    measured = metric("f32", "04", "time", "clocks") * 132 / PAIRS
    assert agrees(clocks, measured) and agrees(percent, 100 * (1 - int(bound) / measured))
    assert abs(int(of_a_warp) - 16 * measured) <= 10


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (r"\*short scoreboard\* \(data from shared memory\)", ["short scoreboard"]),
        (r"\*long scoreboard\* \(data from global memory\) and \*barrier\*", ["long scoreboard", "barrier"]),
        (r"\*dispatch stall\*", ["dispatch stall"]),
    ],
)
def test_for_what_a_warp_waits(row, names):
    per_instruction, per_tile = said("04", rf"\| {row} \| (\d+\.\d+) \| (\d+) \|")
    assert agrees(per_instruction, stalls("f32", "04", *names))
    assert abs(int(per_tile) - 1293 * stalls("f32", "04", *names)) <= 10


def test_short_scoreboard_is_the_largest_stall_reason():
    said("04", r"\*short scoreboard\*, the largest, is expected")
    others = ("long scoreboard", "mio throttle", "barrier", "math pipe throttle", "dispatch stall", "wait")
    assert stalls("f32", "04", "short scoreboard") > max(stalls("f32", "04", name) for name in others)


def test_dispatch_stall_in_05():
    (of_05,) = said("04", r"\*dispatch stall\* is only (\d+\.\d+) clocks per instruction")
    assert agrees(of_05, stalls("f32", "05", "dispatch stall"))


def test_the_ratio_that_a_smaller_square_cannot_reach():
    (ratio,) = said("04", r"but 04 reaches more: (\d+\.\d+)\.")
    assert agrees(ratio, cell("f32", "04", 4096, "ratio_cublas"))


def test_l2_traffic_is_half_of_that_of_03():
    (gigabytes,) = said("04", r"All 1024 blocks fetch (\d+\.\d+) GB at 4096³, half of what 03 fetches")
    assert abs(metric("f32", "04", "memory", "L2 bytes") / 1e9 / float(gigabytes) - 1) < 0.05
    assert abs(metric("f32", "04", "memory", "L2 bytes") / metric("f32", "03", "memory", "L2 bytes") - 0.5) < 0.06


def test_the_row_of_04_in_the_table_of_variants():
    (ratio,) = said("04", r"\| 04 \| 16 \| (\d+\.\d+) \|")
    assert agrees(ratio, cell("f32", "04", 4096, "ratio_cublas"))
