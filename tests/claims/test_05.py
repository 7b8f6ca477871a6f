"""Numbers in the prose of chapter 05 against the recorded results."""

import pytest
from recorded import agrees, gain, metric, said

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def per_pair(number: str) -> float:
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def stalls(number: str, *names: str) -> float:
    return sum(metric("f32", number, "stalls", name) for name in names)


def test_the_profile_counts_the_wavefronts_of_the_table():
    millions, each, ideal = said(
        "05", r"(\d+) million shared wavefronts are (\d+) per pair.*?global loads\. (\d+) of them are ideal"
    )
    counted = metric("f32", "05", "shared", "wavefronts")
    assert agrees(millions, counted, 1e6) and int(each) == counted / PAIRS
    assert int(ideal) == metric("f32", "05", "shared", "ideal wavefronts") / PAIRS


def test_the_gain_over_04():
    (times,) = said("05", r"The gain is (\d+\.\d+), more than either limit explains")
    assert agrees(times, gain("f32", "05", "04", 4096))


@pytest.mark.parametrize("number", ["04", "05"])
def test_clocks_per_pair_beside_the_bound(number):
    bound, clocks, part = said("05", rf"\| {number} \| (\d+) \| (\d+) \| (0\.\d+) \|")
    assert agrees(clocks, per_pair(number)) and agrees(part, int(bound) / per_pair(number))


def test_waits_for_global_memory_and_the_barrier_are_not_shorter():
    of_04, of_05 = said("05", r"and \*barrier\* are together (\d+\.\d+) clocks per instruction in 04, and (\d+\.\d+) in 05")
    waits = [stalls(number, "long scoreboard", "barrier") for number in ("04", "05")]
    assert agrees(of_04, waits[0]) and agrees(of_05, waits[1]) and waits[1] * 1125 > waits[0] * 1293


def test_dispatch_stall_falls():
    before, after = said("05", r"nearly gone\.\*\* It falls from (\d+\.\d+) clocks per instruction to (\d+\.\d+)")
    assert agrees(before, stalls("04", "dispatch stall")) and agrees(after, stalls("05", "dispatch stall"))


def test_waiting_for_shared_memory_rises_to_the_first_place():
    before, after = said(
        "05", r"\*short scoreboard\*, waiting for its data, rises from (\d+\.\d+) to (\d+\.\d+) clocks per instruction"
    )
    assert agrees(before, stalls("04", "short scoreboard")) and agrees(after, stalls("05", "short scoreboard"))
    others = ("long scoreboard", "barrier", "mio throttle", "math pipe throttle", "dispatch stall", "wait", "lg throttle")
    assert all(stalls("05", "short scoreboard") > 2 * stalls("05", name) for name in others)


def test_how_busy_shared_memory_is():
    of_05, of_04 = said("05", r"it serves 360 wavefronts in 445 clocks, (\d+) % of the time\. In 04, .*? in 549 clocks, (\d+) %")
    assert agrees(of_05, 100 * 360 / per_pair("05")) and agrees(of_04, 100 * 400 / per_pair("04"))


def test_sectors_of_the_stores_and_what_reaches_dram():
    requests, sectors, megabytes = said(
        "05", r"has ([\d,]+) requests and ([\d,]+) sectors\. L2 .*? only (\d+) MB are written to DRAM"
    )
    assert agrees(requests, metric("f32", "05", "global", "store requests"))
    assert agrees(sectors, metric("f32", "05", "global", "store sectors"))
    assert agrees(megabytes, metric("f32", "05", "memory", "DRAM written"), 1e6)
