"""Numbers in the prose of chapter 24 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, gain, metric, rows, said, stem


def steady(number: str, column: str) -> float:
    return chosen("steady.csv", column, kernel=stem(number), type="bf16", m=8192)


def clocks(number: str, size: int, type: str = "bf16") -> float:
    """Thousand clocks per launch."""
    return 2 * size**3 / 132 / cell(type, number, size, "flop_clk_sm") / 1000


def first(number: str, kinds: tuple[str, ...], column: str) -> int:
    """The first clock at which something of these kinds begins or ends in block 0."""
    return min(int(row[column]) for row in rows("timeline.csv") if row["kernel"] == stem(number) and row["kind"] in kinds)


def test_fewer_bytes():
    (value,) = said("24", r"sends ([\d.]+) GB less. All traffic of L2")
    assert agrees(value, metric("bf16", "23", "memory", "DRAM read") - metric("bf16", "24", "memory", "DRAM read"), 1e9)
    for value, number in zip(said("24", r"profile\) falls from ([\d.]+) to ([\d.]+) GB"), ("23", "24"), strict=True):
        assert agrees(value, metric("bf16", number, "memory", "L2 bytes"), 1e9)
    percent, more = said(
        "24", r"single launches 24 takes ([\d.]+) % fewer clocks; the \[sittings\]\([^)]*\) above say ([\d.]+) % more"
    )
    assert agrees(percent, (1 - metric("bf16", "24", "time", "clocks") / metric("bf16", "23", "time", "clocks")) * 100)
    assert agrees(more, (1 / gain("bf16", "24", "23", 4096) - 1) * 100)
    (read,) = said("24", r"With groups of 8, DRAM sends ([\d.]+) GB")
    assert agrees(read, metric("bf16", "24", "memory", "DRAM read"), 1e9)


@pytest.mark.parametrize("number", ["23", "24"])
def test_steady(number: str):
    values = said("24", rf"\| {number} \| (\d+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \| (\d+) \|")
    units = {"gflops": 1e3, "ratio_cublas": 1, "ratio_clk": 1, "clock_mhz": 1, "power_w": 1}
    for value, (column, unit) in zip(values, units.items(), strict=True):
        assert agrees(value, steady(number, column), unit)


def test_gain_in_power():
    clock, rate = said("24", r"24 runs at a ([\d.]+) % higher clock with the same watts, so it does ([\d.]+) % more")
    assert agrees(clock, (steady("24", "clock_mhz") / steady("23", "clock_mhz") - 1) * 100)
    assert agrees(rate, (steady("24", "gflops") / steady("23", "gflops") - 1) * 100)


def test_the_prediction_missed():
    times, *ratios = said("24", r"24 is ([\d.]+) times 23 in FLOP per clock. In time they tie: ([\d.]+) and ([\d.]+) of cuBLAS")
    assert agrees(times, gain("bf16", "24", "23", 4096))
    for value, number in zip(ratios, ("24", "23"), strict=True):
        assert agrees(value, cell("bf16", number, 4096, "ratio_cublas"))


@pytest.mark.parametrize("size", [2048, 4096, 8192])
def test_clocks_of_a_launch(size: int):
    before, after, more = said("24", rf"\| {size}³: [^|]* k tiles \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
    assert agrees(before, clocks("23", size)) and agrees(after, clocks("24", size))
    assert agrees(more, clocks("24", size) - clocks("23", size))


def test_noise_at_8192():
    f16, tf32 = said("24", r"\(F16 takes (\d) thousand more, TF32 (\d) thousand fewer\)")
    assert agrees(f16, clocks("24", 8192, "f16") - clocks("23", 8192, "f16"))
    assert agrees(tf32, clocks("23", 8192, "tf32") - clocks("24", 8192, "tf32"))


def test_timeline():
    (percent,) = said("24", r"makes this launch (\d+) % longer")
    (run,) = [row for row in rows("timeline_runs.csv") if row["kernel"] == stem("24")]
    assert agrees(percent, (float(run["recorded_ms"]) / float(run["plain_ms"]) - 1) * 100)
    later, earlier = said("24", r"block 0 ends (\d+)0 clocks later in 24.* `wgmma` then comes (\d+)0 clocks earlier")
    barrier = ("bar_sync", "cluster_wait")
    assert agrees(later, first("24", barrier, "end") - first("23", barrier, "end"), 10)
    wgmma = ("wgmma_commit_group",)
    assert agrees(earlier, first("23", wgmma, "begin") - first("24", wgmma, "begin"), 10)


def test_warps_at_barriers():
    values = said("24", r"wait there on average: ([\d.]+) in 23, ([\d.]+) in 24")
    for value, number in zip(values, ("23", "24"), strict=True):
        warps = metric("bf16", number, "stalls", "barrier") * metric("bf16", number, "issue", "instructions") / 132
        assert agrees(value, warps / metric("bf16", number, "time", "clocks"))
