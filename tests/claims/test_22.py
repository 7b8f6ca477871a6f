"""Numbers in the prose of chapter 22 against the recorded results."""

from recorded import RECORDED, agrees, cell, gain, metric, prose, rows, said

from plots.figures import timeline


def test_the_rate_of_cublas():
    rate, total, own, ratio, quotient = said(
        "22", r"\| 21 \| (\d+) \| \| ceiling of `mma.sync` \| (\d+) \| \| cuBLAS: (\d+) / ([\d.]+) \| (\d+) \|"
    )
    assert rate == own and agrees(rate, cell("bf16", "21", 4096, "flop_clk_sm"))
    assert agrees(ratio, cell("bf16", "21", 4096, "ratio_clk")) and [ratio] == said("22", r"21 \[reaches ([\d.]+)\]")
    assert agrees(quotient, float(own) / float(ratio)) and float(quotient) > float(total)


def test_the_predictions():
    expected, times = said("22", r"22 / 21, FLOP/clk/SM \| ([\d.]+) \| ([\d.]+) \|")
    assert agrees(times, gain("bf16", "22", "21", 4096)) and [expected] == said("22", r"22 should be \*\*([\d.]+) times 21")
    for what, column in [("time", "ratio_cublas"), ("clocks", "ratio_clk")]:
        expected, ratio = said("22", rf"of cuBLAS, in {what} \| ([\d.]+) \| ([\d.]+) \|")
        assert agrees(ratio, cell("bf16", "22", 4096, column)) and [expected] == said("22", r"\*\*([\d.]+) of cuBLAS\*\*")
    (tf32,) = said("22", r"With TF32, 22 is (\d\.\d+) times 21")
    assert agrees(tf32, gain("tf32", "22", "21", 4096))


def test_the_factor_of_16():
    kernel, factor = said("22", r"16, floor by `mma.sync` \| 64 · 1541 = 98,600 \| ([\d,]+) \| ([\d.]+) \|")
    assert agrees(kernel.removesuffix("00"), metric("bf16", "16", "time", "clocks") / 4, 100)
    assert agrees(factor, metric("bf16", "16", "time", "clocks") / 4 / (64 * 1541))


def test_where_a_tile_of_c_goes():
    quarter, percent, active, rests = said(
        "22",
        r"a quarter of the launch \| ([\d,]+) \| \| the tensor pipe is active, (\d+) % \| ([\d,]+) \| \| it rests \| ([\d,]+) \|",
    )
    clocks, pipe = metric("bf16", "22", "time", "clocks") / 4, metric("bf16", "22", "issue", "tensor pipe")
    assert agrees(quarter.removesuffix(",000"), clocks, 1e3) and agrees(percent, pipe)
    assert agrees(active.removesuffix(",000"), clocks * pipe / 100, 1e3)
    assert agrees(rests.removesuffix(",000"), clocks * (1 - pipe / 100), 1e3)
    (barrier,) = said("22", r"There a warp waits for ([\d.]+) clocks per instruction")
    assert agrees(barrier, metric("bf16", "22", "stalls", "barrier"))


def test_what_recording_costs():
    (percent,) = said("22", r"makes the launch (\d+) % longer")
    (run,) = [row for row in rows("timeline_runs.csv") if row["kernel"] == "22_wgmma"]
    assert agrees(percent, (float(run["recorded_ms"]) / float(run["plain_ms"]) - 1) * 100)


def test_who_waits_for_whom():
    (found,) = [found for found in timeline.read(RECORDED) if found.kernel == "22_wgmma"]
    first, second = found.lanes
    assert first.copies and not second.copies and "waits there for warp 0 (pink)" in prose("22")
    assert second.waited(found.window)[timeline.BARRIER] > 5 * first.waited(found.window)[timeline.BARRIER]
    (begins, ends), (also_begins, also_ends) = first.epilogues[0], second.epilogues[0]
    assert max(begins, also_begins) < min(ends, also_ends) and "Both warpgroups store C at the same time" in prose("22")


def test_l2_without_the_epilogue():
    with_it, share, without = said(
        "22", r"not recorded\) \| ([\d,]+) \| .*?: [\d,]+ · \[([\d./ ]+)\]\(#what-failed\) \| ([\d,]+) \|"
    )
    (flying,) = said("22", r"\| a k tile in flight \| 3 \| 1 \| ([\d.]+) \|")
    (bare,) = said("22", r"\| a k tile in flight, no epilogue \(C is then wrong\) \| 3 \| 1 \| ([\d.]+) \|")
    assert share == f"{flying} / {bare}"
    assert agrees(without.removesuffix("00"), float(with_it.replace(",", "")) * float(flying) / float(bare), 100)
