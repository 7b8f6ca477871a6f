"""Numbers in the prose of chapter 01 against the recorded results."""

from recorded import agrees, cell, metric, profile, said, stem

PAIRS = 2**31  # of a warp and a k


def clocks(number: str) -> float:
    """Of an SM, per warp and k."""
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def row(name: str) -> list[str]:
    """The numbers in a row of the chapter's own tables."""
    (cells,) = said("01", rf"\| {name} \| ([\d. |]+) \|")
    return cells.strip(" |").split(" | ")


def test_work_and_clocks_per_warp_and_k():
    for name, counted in (
        ("clocks of an SM", clocks),
        ("instructions", lambda number: metric("f32", number, "issue", "instructions") / PAIRS),
        ("sectors asked for", lambda number: metric("f32", number, "global", "load sectors") / PAIRS),
    ):
        _, of_01, _, of_01b = row(name)
        assert agrees(of_01, counted("01")) and agrees(of_01b, counted("01b"))
    (times,) = said("01", r"So 01b takes (\d+) times as long")
    assert agrees(times, clocks("01b") / clocks("01"))


def test_how_busy_l1_and_the_issue_slots_of_01_are():
    of, l1 = said("01", r"Of its ([\d.]+) clocks, L1 is busy for 2, or (\d+) %")
    (slots,) = said("01", r"The issue slots are busy for (\d+) %")
    assert agrees(of, clocks("01")) and agrees(l1, 200 / clocks("01"))
    assert agrees(slots, metric("f32", "01", "issue", "issue active"))


def test_the_longest_waits():
    for number, longest in (("01", "long scoreboard"), ("01b", "lg throttle")):
        stalls = {name: value for (group, name), value in profile("f32")[stem(number)].items() if group == "stalls"}
        assert max(stalls, key=stalls.get) == longest
    assert stalls["lg throttle"] > 0.8 * sum(stalls.values())  # of 01b: "almost only"


def test_bytes():
    seconds = metric("f32", "01", "time", "duration") * 1e-9
    rows_of = {"L2 bytes": (r"through L2 \(`L2 bytes`\)", 9.4e12), "DRAM read": ("from DRAM", 3.91e12)}
    for name, (named, ceiling) in rows_of.items():
        gigabytes, rate, part = row(named)
        counted = metric("f32", "01", "memory", name)
        assert (
            agrees(gigabytes, counted, 1e9)
            and agrees(rate, counted / seconds, 1e12)
            and agrees(part, counted / seconds / ceiling)
        )
    (times,) = said("01", r"The bytes through L2 are ([\d.]+) times as many as predicted")
    assert agrees(times, metric("f32", "01", "memory", "L2 bytes") / 38.7e9)
    assert metric("f32", "01b", "memory", "L2 bytes") < metric("f32", "01", "memory", "L2 bytes")


def test_sectors_per_request():
    for number, per_request in zip(
        ("01", "01b"), said("01", r"mean over loads of A and B: ([\d.]+) in 01, ([\d.]+) in 01b"), strict=True
    ):
        sectors, requests = (metric("f32", number, "global", f"load {what}") for what in ("sectors", "requests"))
        assert agrees(per_request, sectors / requests)


def test_the_row_of_01_among_the_blocks():
    (ratio,) = said("01", r"\| 8×64 \| 72 \| 512 \| 38\.7 \| ([\d.]+) \|")
    assert agrees(ratio, cell("f32", "01", 4096, "ratio_cublas"))
