"""Numbers in the prose of chapter 22 against the recorded results."""

from recorded import agrees, cell, gain, metric, rows, said


def test_the_predictions():
    times, expected = said("22", r"22 is ([\d.]+) times 21 in clocks, where ([\d.]+) was predicted")
    assert agrees(times, gain("bf16", "22", "21", 4096)) and [expected] == said("22", r"22 should be \*\*([\d.]+) times 21")
    ratio, expected = said("22", r"and ([\d.]+) of cuBLAS, where ([\d.]+) was\.")
    assert agrees(ratio, cell("bf16", "22", 4096, "ratio_cublas")) and [expected] == said("22", r"\*\*([\d.]+) of cuBLAS\*\*")
    (tf32,) = said("22", r"With TF32 the gain in clocks is (\d\.\d+)")
    assert agrees(tf32, gain("tf32", "22", "21", 4096))


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
    (percent,) = said("22", r"That makes the launch (\d+) % longer")
    (run,) = [row for row in rows("timeline_runs.csv") if row["kernel"] == "22_wgmma"]
    assert agrees(percent, (float(run["recorded_ms"]) / float(run["plain_ms"]) - 1) * 100)
