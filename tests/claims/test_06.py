"""Numbers in the prose of chapter 06 against the recorded results."""

from recorded import agrees, cell, gain, metric, said

PAIRS = 1024 * 8 * 256  # of a warp and a k tile, at 4096 cubed


def stalls(number: str, *names: str) -> float:
    return sum(metric("f32", number, "stalls", name) for name in names)


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
    assert agrees(before, stalls("05", "short scoreboard")) and agrees(after, stalls("06", "short scoreboard"))


def test_the_ratios_from_which_w_follows():
    (of_05,) = said("06", r"\| 4096 / \((\d+\.\d+) · 0\.779\) = 7010, measured \|")
    (of_06,) = said("06", r"At (\d+\.\d+) of cuBLAS, a k tile of both blocks takes")
    assert agrees(of_05, cell("f32", "05", 4096, "ratio_cublas"))
    assert agrees(of_06, cell("f32", "06", 4096, "ratio_cublas"))


def test_the_gain_over_05():
    (times,) = said("06", r"The gain is (\d+\.\d+), not 1\.30")
    assert agrees(times, gain("f32", "06", "05", 4096))


def test_waits_between_k_tiles_are_not_longer():
    before, after = said("06", r"are together (\d+\.\d+) clocks per instruction in 05 and (\d+\.\d+) in 06")
    waits = [stalls(number, "long scoreboard", "barrier") for number in ("05", "06")]
    assert agrees(before, waits[0]) and agrees(after, waits[1]) and waits[1] <= waits[0]


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
    per_pair, percent = said("06", r"The profile has (\d+) per pair, and 06b is (\d) % slower than 06")
    assert int(per_pair) == metric("f32", "06b", "shared", "wavefronts") / PAIRS
    assert agrees(percent, 100 * (1 - gain("f32", "06b", "06", 4096)))


def test_the_row_of_06_in_the_table_of_variants():
    (ratio,) = said("06", r"\| 06 \| (\d+\.\d+) \| \| BK = 8")
    assert agrees(ratio, cell("f32", "06", 4096, "ratio_cublas"))
