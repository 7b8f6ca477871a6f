"""Numbers in the prose of chapter 03 against the recorded results."""

import pytest
from recorded import agrees, cell, metric, said


def test_the_profile_counts_the_wavefronts_of_the_table():
    millions, per_pair = said("03", r"are 33\.55 million pairs .*? (\d+) million shared wavefronts are (\d+) per pair\.")
    assert agrees(millions, metric("f32", "03", "shared", "wavefronts"), 1e6)
    assert agrees(per_pair, metric("f32", "03", "shared", "wavefronts") / 33.55e6)


def test_the_time_per_pair_and_its_part_that_is_waiting():
    millions, clocks = said("03", r"take 132 · ([\d.]+) million clocks\. This is (\d+) clocks per pair")
    bound, waiting, whole = said("03", r"The bound is (\d+), so (\d+) of the (\d+) clocks are waiting")
    assert agrees(millions, metric("f32", "03", "time", "clocks"), 1e6)
    assert agrees(clocks, metric("f32", "03", "time", "clocks") * 132 / 33.55e6)
    assert whole == clocks and int(waiting) == int(clocks) - int(bound) and abs(int(waiting) / int(clocks) - 1 / 7) < 0.02


def test_the_largest_stall_of_02():
    (text,) = said("03", r"is \*mio throttle\*, ([\d.]+) clocks per instruction")
    assert agrees(text, metric("f32", "02", "stalls", "mio throttle"))


@pytest.mark.parametrize(
    ("row", "stalls"),
    [
        (r"for shared memory: mio throttle \+ short scoreboard", ("mio throttle", "short scoreboard")),
        (r"for global memory and other warps: long scoreboard \+ barrier", ("long scoreboard", "barrier")),
        ("for the other three reasons", ("math pipe throttle", "dispatch stall", "wait")),
    ],
)
def test_the_table_of_stalls(row, stalls):
    for number, text in zip(("02", "03"), said("03", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \|"), strict=True):
        assert agrees(text, sum(metric("f32", number, "stalls", stall) for stall in stalls))


def test_waiting_for_shared_memory_is_more_than_all_other_waiting():
    stalls = {name: metric("f32", "03", "stalls", name) for name in ("mio throttle", "short scoreboard")}
    others = ("long scoreboard", "barrier", "math pipe throttle", "dispatch stall", "wait", "lg throttle")
    assert sum(stalls.values()) > sum(metric("f32", "03", "stalls", name) for name in others)


def test_l2_traffic_is_half_of_that_of_02():
    assert abs(metric("f32", "03", "memory", "L2 bytes") / metric("f32", "02", "memory", "L2 bytes") - 0.5) < 0.06


def test_the_row_of_03_in_the_table_of_variants():
    (ratio,) = said("03", r"\| 03: 64×64, TM = 8, BK = 8 \| 64 \| 47 \| 0\.34 \| 2 \| ([\d.]+) \|")
    assert agrees(ratio, cell("f32", "03", 4096, "ratio_cublas"))
