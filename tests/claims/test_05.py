"""Numbers in the prose of chapter 05 against the recorded results."""

import pytest
from recorded import agrees, gain, metric, said, stalls

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def per_pair(number: str) -> float:
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def test_the_profile_counts_the_wavefronts_of_the_table():
    millions, each = said("05", r"The (\d+) million shared wavefronts of 05 are (\d+) per pair: the 384 .*? without the 24")
    counted = metric("f32", "05", "shared", "wavefronts")
    assert agrees(millions, counted, 1e6) and int(each) == counted / PAIRS == 384 - 24


def test_the_gain_over_04():
    (times,) = said("05", r"The gain is (\d+\.\d+), not the expected 1\.10")
    assert agrees(times, gain("f32", "05", "04", 4096))


def test_clocks_per_pair_of_05():
    runs, clocks, pairs, each = said(
        "05", r"132 SMs runs for ([\d,]+) clocks\. Per pair these are ([\d,]+) · 132 / ([\d,]+) = (\d+) clocks of an SM"
    )
    assert runs == clocks and agrees(clocks, metric("f32", "05", "time", "clocks")) and int(pairs.replace(",", "")) == PAIRS
    assert agrees(each, per_pair("05"))


def test_clocks_of_a_launch_above_the_bound_of_04():
    (bound,) = said("05", r"\[L1\]\(\S+\) \| (\d+) \|")
    clocks, above = said("05", r"a pair every (\d+) clocks\. These are (\d+) more than the bound")
    assert agrees(clocks, per_pair("04")) and int(above) == int(clocks) - int(bound)


def test_how_long_a_k_tile_of_a_warp_lasts():
    each, clocks = said("05", r"a k tile of one warp lasts 16 · (\d+) = (\d+) clocks")
    assert agrees(each, per_pair("05")) and int(clocks) == 16 * int(each)


@pytest.mark.parametrize("number", ["04", "05"])
def test_clocks_per_pair_beside_the_bound(number):
    bound, clocks, part = said("05", rf"\| {number} \| (\d+) \| (\d+) \| (0\.\d+) \|")
    assert agrees(clocks, per_pair(number)) and agrees(part, int(bound) / per_pair(number))


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("issuing its instructions", ()),
        (r"ready, but another warp was chosen \(\*not selected\*; not in the profile's table\)", ("not selected",)),
        (r"\*dispatch stall\*", ("dispatch stall",)),
        (r"\*short scoreboard\* \(data from shared memory\)", ("short scoreboard",)),
        (r"\*long scoreboard\* \(data from global memory\) and \*barrier\*", ("long scoreboard", "barrier")),
    ],
)
def test_clocks_of_a_warp_per_k_tile(row, names):
    said_of = said("05", rf"\| {row} \| (\d+) \| (\d+) \|")
    for number, instructions, clocks in zip(("04", "05"), (1293, 1125), said_of, strict=True):
        assert abs(int(clocks) - instructions * (stalls("f32", number, *names) if names else 1)) < 10


def test_waiting_for_shared_memory_is_in_the_first_place():
    others = ("long scoreboard", "barrier", "mio throttle", "math pipe throttle", "dispatch stall", "wait", "lg throttle")
    assert all(stalls("f32", "05", "short scoreboard") > 2 * stalls("f32", "05", name) for name in others)


def test_one_row_of_the_table_as_arithmetic():
    each, instructions, clocks = said("05", r"For \*short scoreboard\* in 05 they are (\d\.\d+) · (\d+) = (\d+)")
    assert agrees(each, stalls("f32", "05", "short scoreboard")) and abs(float(each) * int(instructions) - int(clocks)) < 10


@pytest.mark.parametrize("number", ["04", "05"])
def test_how_busy_shared_memory_is(number):
    wavefronts, clocks, part = said("05", rf"\| {number} \| (\d+) \| (\d+) \| (\d+) % \|")
    assert agrees(wavefronts, metric("f32", number, "shared", "wavefronts") / PAIRS) and agrees(clocks, per_pair(number))
    assert agrees(part, 100 * int(wavefronts) / per_pair(number))


def test_sectors_of_the_stores_and_what_reaches_dram():
    requests, sectors, megabytes = said(
        "05", r"has ([\d,]+) \[requests\]\(\S+\) and ([\d,]+) sectors\. As whole .*? But only (\d+) MB are written to DRAM"
    )
    assert agrees(requests, metric("f32", "05", "global", "store requests"))
    assert agrees(sectors, metric("f32", "05", "global", "store sectors"))
    assert agrees(megabytes, metric("f32", "05", "memory", "DRAM written"), 1e6)
