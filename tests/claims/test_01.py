"""Numbers in the prose of chapter 01 against the recorded results."""

from recorded import agrees, cell, metric, profile, said, stem

PAIRS = 2**31  # of a warp and a k


def clocks(number: str) -> float:
    """Of an SM, per warp and k."""
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def share(number: str, name: str) -> float:
    """Of all warps that wait, those that wait for this reason."""
    stalls = {reason: value for (group, reason), value in profile("f32")[stem(number)].items() if group == "stalls"}
    return stalls[name] / sum(stalls.values())


def test_clocks_per_warp_and_k():
    (of_01b,) = said("01", r"33 clocks were predicted, and it takes ([\d.]+)\.")
    (of_01,) = said("01", r"2 clocks were predicted, and it takes ([\d.]+)\.")
    assert agrees(of_01b, clocks("01b")) and agrees(of_01, clocks("01"))
    (times,) = said("01", r"So 01b takes (\d+) times as long")
    assert agrees(times, clocks("01b") / clocks("01"))


def test_how_busy_l1_and_the_issue_slots_of_01_are():
    of, l1, slots = said("01", r"Of ([\d.]+) clocks, L1 is busy for 2 \((\d+) %\) and the issue slots for 1\.66 \((\d+) %\)")
    assert agrees(of, clocks("01")) and agrees(l1, 200 / clocks("01"))
    assert agrees(slots, metric("f32", "01", "issue", "issue active"))


def test_what_waits():
    (slots,) = said("01", r"The schedulers use (\d+) % of their issue slots")
    assert agrees(slots, metric("f32", "01b", "issue", "issue active"))
    said("01", r"Six of seven warps of 01b that wait are in \*lg throttle\*")
    assert abs(share("01b", "lg throttle") - 6 / 7) < 0.04
    said("01", r"Half of the waiting warps wait for data \(\*long scoreboard\*\), and a sixth are in \*lg throttle\*")
    assert abs(share("01", "long scoreboard") - 1 / 2) < 0.06 and abs(share("01", "lg throttle") - 1 / 6) < 0.04


def test_instructions_and_sectors():
    million, per_fma = said("01", r"and ([\d,]+) million / 2³¹ = ([\d.]+) instructions per FMA")
    counted = metric("f32", "01", "issue", "instructions")
    assert abs(counted / 1e6 / int(million.replace(",", "")) - 1) < 0.01 and agrees(per_fma, counted / PAIRS)
    assert agrees("5", metric("f32", "01", "global", "load sectors") / PAIRS)
    for number, per_request in zip(
        ("01", "01b"), said("01", r"sectors per request: ([\d.]+) on average in 01, ([\d.]+) in 01b"), strict=True
    ):
        sectors, requests = (metric("f32", number, "global", f"load {what}") for what in ("sectors", "requests"))
        assert agrees(per_request, sectors / requests)


def test_l2_and_dram():
    said("01", r"one sector in seven")
    through_l2 = metric("f32", "01", "memory", "L2 bytes")
    assert abs(through_l2 / 32 / metric("f32", "01", "global", "load sectors") - 1 / 7) < 0.02
    said("01", r"L2 moved nearly 50 GB, and more than a quarter of it came from DRAM")
    assert 46e9 < through_l2 < 50e9 and 0.25 < metric("f32", "01", "memory", "DRAM read") / through_l2 < 0.35
    seconds = metric("f32", "01", "time", "duration") * 1e-9
    assert abs(through_l2 / seconds / 9.4e12 - 1 / 4) < 0.03


def test_the_row_of_01_among_the_blocks():
    (ratio,) = said("01", r"\| 8×64 \| 72 \| 512 \| 38\.7 \| ([\d.]+) \|")
    assert agrees(ratio, cell("f32", "01", 4096, "ratio_cublas"))
