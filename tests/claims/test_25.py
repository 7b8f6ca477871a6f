"""Numbers in the prose of chapter 25 against the recorded results."""

import pytest
from recorded import RECORDED, agrees, cell, chosen, gain, metric, said

from plots.figures import timeline

TILES = 4  # of C per SM at 4096 cubed
WITHOUT_EPILOGUE = 281_025  # clocks of 24, in a run that is not recorded
SMS = 132


def clocks(number: str) -> float:
    """Of a launch at 4096 cubed, as Nsight Compute counts them."""
    return metric("bf16", number, "time", "clocks")


def variant(name: str, size: int = 4096) -> float:
    """What a variant reaches of cuBLAS in clocks, relative to the kernel as written."""
    of = {edge: size for edge in "mnk"}
    ratio = {kernel: chosen("sweep_25.csv", "ratio_clk", kernel=f"25_{kernel}", **of) for kernel in (name, "as_written")}
    return ratio[name] / ratio["as_written"]


def with_bf16_results(number: str, beta: str) -> float:
    of = dict(kernel={"24": "24_cluster_multicast", "25": "25_persistent"}[number], out="same", beta=beta, protocol="rounds")
    return chosen("conditions.csv", "flop_clk_sm", type="bf16", m=4096, n=4096, k=4096, **of)


def test_what_was_reached():
    (times,) = said("25", r"25 / 24, FP32 results \| [\d.]+ \| ([\d.]+) \|")
    (ratio,) = said("25", r"of cuBLAS, FP32 results \| [\d.]+ \| ([\d.]+) \|")
    assert agrees(times, gain("bf16", "25", "24", 4096)) and agrees(ratio, cell("bf16", "25", 4096, "ratio_cublas"))
    (ratio,) = said("25", r"At 8192³ with FP32 results, 25 reached ([\d.]+) of cuBLAS in \[both protocols")
    steady = chosen("steady.csv", "ratio_cublas", kernel="25_persistent", type="bf16", m=8192, n=8192, k=8192)
    assert agrees(ratio, steady) and agrees(ratio, cell("bf16", "25", 8192, "ratio_cublas"))
    (read,) = said("25", r"DRAM read, GB \| [\d.]+ \| ([\d.]+) \|")
    assert agrees(read, metric("bf16", "25", "memory", "DRAM read"), 1e9)


def test_clocks_of_the_main_loop_and_of_the_epilogues():
    (without,) = said("25", r"Nsight Compute counted ([\d,]+) clocks")
    assert int(without.replace(",", "")) == WITHOUT_EPILOGUE
    (loop,) = said("25", r"without its epilogue \| 73,900 \| ([\d,]+) \|")
    assert agrees(loop.removesuffix("00").replace(",", ""), WITHOUT_EPILOGUE / TILES, 100)
    for number in ("24", "25"):
        (more,) = said("25", rf"\| {number}: more with its epilogue \| [\d,]+ \| ([\d,]+) \|")
        assert agrees(str(int(more.replace(",", "")) // 100), (clocks(number) - WITHOUT_EPILOGUE) / TILES, 100)


def test_bf16_results():
    predicted, measured = said("25", r"25 / 24, BF16 results \| ([\d.]+) \| ([\d.]+) \|")
    assert agrees(measured, with_bf16_results("25", "0") / with_bf16_results("24", "0")) and float(measured) < float(predicted)
    assert said("25", r"beta costs 24 and 25 about a (quarter) more clocks")
    assert all(with_bf16_results(n, "0") / with_bf16_results(n, "0.5") == pytest.approx(1.25, abs=0.03) for n in ("24", "25"))


def test_one_tile_per_sm_and_sixteen():
    saved, percent = said("25", r"25 still saves ([\d,]+) clocks, (\d) %")
    assert agrees(percent, (gain("bf16", "25", "24", 2048) - 1) * 100)
    of_launch = {n: 2 * 2048**3 / SMS / cell("bf16", n, 2048, "flop_clk_sm") for n in ("24", "25")}
    assert of_launch["24"] - of_launch["25"] == pytest.approx(float(saved.replace(",", "")), rel=0.1)
    assert said("25", r"there (24 and 25 are equally fast)\.") and abs(gain("bf16", "25", "24", 8192) - 1) < 0.005


def test_timeline():
    (found,) = (found for found in timeline.read(RECORDED) if found.kernel == "25_persistent")
    most, epilogue = said(
        "25", r"wait for a buffer \(blue\) takes at most (\d+) clocks. But the recording lengthens an epilogue to ([\d,]+)"
    )
    waits = [record for lane in found.lanes for record in lane.records if record.kind == "bulk_wait_group"]
    assert max(record.end - record.begin for record in waits) <= int(most)
    lengths = [end - begin for lane in found.lanes if lane.multiplies for begin, end in lane.epilogues]
    assert all(length == pytest.approx(float(epilogue.replace(",", "")), rel=0.1) for length in lengths)
    (percent,) = said("25", r"makes the launch (\d+) % longer")
    assert agrees(percent, found.cost * 100)


def test_lessons_of_the_sweep():
    slower, each = said("25", r"That costs ([\d.]+) %, (\d+) clocks per part")
    assert agrees(slower, (1 - variant("buffers_1")) * 100)
    assert (1 / variant("buffers_1") - 1) * clocks("25") / TILES / 8 == pytest.approx(float(each), rel=0.1)
    assert variant("stages_3_buffers_4") < variant("stages_3_buffers_2") + 0.003  # four buffers are no better
    for name, pattern in {
        "stages_3_buffers_2": r"The fourth stage\*\* is worth (\d) %",
        "conflict_free": r"Stores without \[bank conflicts\]\([^)]*\)\*\* lose (\d) %",
        "without_setmaxnreg": r"the kernel loses (\d) %, although",
    }.items():
        (percent,) = said("25", pattern)
        assert round((1 - variant(name)) * 100) == int(percent), name
    assert max(variant("late_1"), variant("late_2")) < 1
    (noise,) = said("25", r"differ by up to ([\d.]+) %")
    assert agrees(noise, max(abs(variant("again", size) - 1) for size in (4096, 8192)) * 100)
