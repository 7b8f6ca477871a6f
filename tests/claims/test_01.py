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
    of, wavefronts = said("01", r"Of its ([\d.]+) clocks, the wavefronts explain (\d+)\.")
    assert agrees(of, clocks("01b")) and wavefronts == "33"
    of_01b, of_01, times = said("01", r"So 01b takes ([\d.]+) / ([\d.]+) = (\d+) times as long")
    assert agrees(of_01b, clocks("01b")) and agrees(of_01, clocks("01")) and agrees(times, clocks("01b") / clocks("01"))


def test_rates_below_the_bounds():
    for number, wavefronts in (("01", 2), ("01b", 33)):
        bound, measured = row(number)
        assert agrees(bound, 64 / wavefronts)
        assert agrees(measured, cell("f32", number, 4096, "flop_clk_sm"))
        assert cell("f32", number, 4096, "flop_clk_sm") < 64 / wavefronts
    in_teraflops = row("TFLOP/s on 132 SMs at 1.98 GHz, the highest clock")
    for number, wavefronts, bound in zip(("01", "01b"), (2, 33), in_teraflops, strict=True):
        assert agrees(bound, 64 / wavefronts * 132 * 1.98e9, 1e12)
        assert cell("f32", number, 4096, "gflops") * 1e9 < 64 / wavefronts * 132 * 1.98e9


def test_01b_where_a_row_is_not_a_multiple_of_all_banks():
    rate, same_rate, clocks_of_it = said("01", r"Measured are ([\d.]+) FLOP per clock and SM, so 64 / ([\d.]+) = (\d+) clocks")
    (faster,) = said("01", r"01b is ([\d.]+) times as fast as at 4096³")
    uneven = cell("f32", "01b", (4097, 4100, 4100), "flop_clk_sm")
    assert rate == same_rate and agrees(rate, uneven) and agrees(clocks_of_it, 64 / uneven)
    assert agrees(faster, uneven / cell("f32", "01b", 4096, "flop_clk_sm"))
    assert 64 / uneven > 8 + 1  # the clocks in which L1 looks up the lines


def test_how_busy_l1_and_the_issue_slots_of_01_are():
    of, l1, slots = said("01", r"L1 is busy for 2 / ([\d.]+) = (\d+) % of the clocks, and the issue slots for (\d+) %")
    assert agrees(of, clocks("01")) and agrees(l1, 200 / clocks("01"))
    assert agrees(slots, metric("f32", "01", "issue", "issue active"))


def test_the_longest_waits():
    for number, longest in (("01", "long scoreboard"), ("01b", "lg throttle")):
        stalls = {name: value for (group, name), value in profile("f32")[stem(number)].items() if group == "stalls"}
        assert max(stalls, key=stalls.get) == longest
    assert stalls["lg throttle"] > 0.8 * sum(stalls.values())  # of 01b: "mostly"


def test_bytes():
    seconds = metric("f32", "01", "time", "duration") * 1e-9
    rows_of = {"L2 bytes": ("through L2", 9.4e12), "DRAM read": ("from DRAM", 3.91e12)}
    for name, (named, ceiling) in rows_of.items():
        gigabytes, rate, part = row(named)
        counted = metric("f32", "01", "memory", name)
        assert (
            agrees(gigabytes, counted, 1e9)
            and agrees(rate, counted / seconds, 1e12)
            and agrees(part, counted / seconds / ceiling)
        )
    (predicted,) = said("01", r"More bytes pass through L2 than the ([\d.]+) GB predicted")
    assert float(predicted) * 1e9 < metric("f32", "01", "memory", "L2 bytes")
    of_01b, of_01 = said("01", r"([\d.]+) GB pass through L2, and ([\d.]+) GB in 01")
    for number, gigabytes in (("01b", of_01b), ("01", of_01)):
        assert agrees(gigabytes, metric("f32", number, "memory", "L2 bytes"), 1e9)
    assert float(of_01b) < float(of_01)


def test_01_is_faster_where_its_matrices_fit_into_l2():
    (megabytes,) = said(
        "01", r"At 2048³, A, B and C together \((\d+) MB\) fit into L2\. So fewer loads wait for DRAM, and 01 is faster"
    )
    assert agrees(megabytes, 3 * 2048**2 * 4, 1e6)
    assert cell("f32", "01", 2048, "flop_clk_sm") > cell("f32", "01", 4096, "flop_clk_sm")


def test_the_row_of_01_among_the_blocks():
    (ratio,) = said("01", r"\| 8×64 \| 72 \| 512 \| 38\.7 \| ([\d.]+) \|")
    assert agrees(ratio, cell("f32", "01", 4096, "ratio_cublas"))
