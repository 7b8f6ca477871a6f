"""Numbers in the prose of chapter 04 against the recorded results."""

from recorded import agrees, cell, metric, said

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def stalls(number: str, *names: str) -> float:
    return sum(metric("f32", number, "stalls", name) for name in names)


def test_most_of_the_waiting_of_03_is_for_shared_memory():
    said("04", r"\*short scoreboard\* and \*mio throttle\*\. Together they are more than half of the stalled warps in the table")
    others = ("long scoreboard", "barrier", "math pipe throttle", "dispatch stall", "wait")
    assert stalls("03", "short scoreboard", "mio throttle") > stalls("03", *others)


def test_the_profile_counts_the_wavefronts_of_the_table():
    pairs, millions, per_pair, ideal, others = said(
        "04",
        r"are (\d+\.\d+) million pairs .*? (\d+) million shared wavefronts are (\d+) per pair"
        r".*? calls (\d+) of them ideal\. The other (\d+) are the conflicts",
    )
    counted, least = (metric("f32", "04", "shared", name) for name in ("wavefronts", "ideal wavefronts"))
    assert agrees(pairs, PAIRS, 1e6) and agrees(millions, counted, 1e6)
    assert [int(per_pair), int(ideal), int(others)] == [counted / PAIRS, least / PAIRS, (counted - least) / PAIRS]


def test_the_time_per_pair_and_its_part_that_the_bound_leaves_out():
    percent, clocks, bound = said("04", r"time, (\d+) % is not in the bound.*? = (\d+) clocks per pair, and the bound is (\d+)")
    measured = metric("f32", "04", "time", "clocks") * 132 / PAIRS
    assert agrees(clocks, measured) and agrees(percent, 100 * (1 - int(bound) / measured))


def test_waiting_between_k_tiles():
    (waiting,) = said("04", r"and \*barrier\* are together (\d+\.\d+) clocks per instruction")
    assert agrees(waiting, stalls("04", "long scoreboard", "barrier"))


def test_dispatch_stall_in_04_and_05():
    of_04, of_05 = said("04", r"\*dispatch stall\* is (\d+\.\d+) clocks per instruction here and (\d+\.\d+) in")
    assert agrees(of_04, stalls("04", "dispatch stall")) and agrees(of_05, stalls("05", "dispatch stall"))


def test_l2_traffic_is_half_of_that_of_03():
    (gigabytes,) = said("04", r"All 1024 blocks fetch (\d+\.\d+) GB at 4096³, half of what 03 fetches")
    assert abs(metric("f32", "04", "memory", "L2 bytes") / 1e9 / float(gigabytes) - 1) < 0.05
    assert abs(metric("f32", "04", "memory", "L2 bytes") / metric("f32", "03", "memory", "L2 bytes") - 0.5) < 0.06


def test_the_row_of_04_in_the_table_of_variants():
    (ratio,) = said("04", r"\| 04 \| 16 \| (\d+\.\d+) \|")
    assert agrees(ratio, cell("f32", "04", 4096, "ratio_cublas"))
