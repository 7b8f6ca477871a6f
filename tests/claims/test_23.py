"""Numbers in the prose of chapter 23 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, gain, metric, rows, said, stem

PAIR = ("22", "23")


def busy(number: str) -> tuple[float, float]:
    """Clocks per tile of C, four of which a block has: in all, and with the tensor pipe active."""
    clocks = metric("bf16", number, "time", "clocks") / 4
    return clocks, clocks * metric("bf16", number, "issue", "tensor pipe") / 100


def timed(column: str) -> float:
    return chosen("timeline_runs.csv", column, kernel=stem("23"), type="bf16")


def rounded(text: str, value: float, to: float) -> bool:
    return abs(float(text.replace(",", "")) - value) <= to


def test_tensor_cores_of_22_rest():
    (rest,) = said("23", r"rest for (\d+) % of the clocks")
    assert agrees(rest, 100 - metric("bf16", "22", "issue", "tensor pipe"))


def test_22_of_cublas_in_the_prediction():
    (ratio,) = said("23", r"22 reaches ([\d.]+) of cuBLAS at 4096³\.")
    assert agrees(ratio, cell("bf16", "22", 4096, "ratio_cublas"))


@pytest.mark.parametrize(("row", "column"), [("time", "ratio_cublas"), ("clocks", "ratio_clk")])
def test_steady(row: str, column: str):
    for text, size in zip(said("23", rf"\| in {row} \| (0\.\d+) \| ([01]\.\d+) \|"), (4096, 8192), strict=True):
        of = dict.fromkeys("mnk", size)
        assert agrees(text, chosen("steady.csv", column, kernel=stem("23"), type="bf16", protocol="steady", **of))


def test_what_recording_costs():
    percent, plain, recorded = said("23", r"lengthens this launch by (\d+) %, from ([\d.]+) to ([\d.]+) ms")
    assert agrees(plain, timed("plain_ms")) and agrees(recorded, timed("recorded_ms"))
    assert agrees(percent, (timed("recorded_ms") / timed("plain_ms") - 1) * 100)


def test_both_warpgroups_store_at_the_same_time():
    apart, long = said("23", r"within (\d+) clocks of each other\. Then both store for about ([\d,]+) clocks")
    begins = []
    block = [row for row in rows("timeline.csv") if row["kernel"] == stem("23") and row["block"] == "0"]
    for warp in ("4", "8"):
        of_warp = [row for row in block if row["warp"] == warp]
        last = next(place for place, row in enumerate(of_warp) if (row["kind"], row["detail"]) == ("wgmma_wait_group", "0"))
        begins.append(int(of_warp[last]["end"]))
        after = next(row for row in of_warp[last:] if row["kind"] == "mbarrier_wait")
        assert rounded(long, int(after["begin"]) - begins[-1], 500)
    assert abs(begins[0] - begins[1]) < int(apart)


def test_where_the_clocks_go():
    active = said("23", r"\| tensor pipe active \| ([\d,]+) \| ([\d,]+) \|")
    idle = said("23", r"\| not active \| ([\d,]+) \| ([\d,]+) \|")
    together = said("23", r"\| together \| (98,000) \| (78,000) \|")
    for number, *texts in zip(PAIR, active, idle, together, strict=True):
        clocks, of_pipe = busy(number)
        for text, value in zip(texts, (of_pipe, clocks - of_pipe, clocks), strict=True):
            assert rounded(text, value, 250)


def test_predicted_and_measured():
    (per_clock,) = said("23", r"\| 23 / 22, in FLOP per clock \| 1\.17 \| ([\d.]+) \|")
    assert agrees(per_clock, gain("bf16", "23", "22", 4096))
    (in_time,) = said("23", r"\| 23 / 22, in time \| 1\.17 \| ([\d.]+) \|")
    assert agrees(in_time, cell("bf16", "22", 4096, "median_ms") / cell("bf16", "23", 4096, "median_ms"))
    for number, other in (PAIR, PAIR[::-1]):
        (clock_rate,) = said("23", rf"\| clock rate of {number}, MHz \| same as {other} \| (\d+) \|")
        assert agrees(clock_rate, cell("bf16", number, 4096, "clock_mhz"))
        (clocks,) = said("23", rf"\| clocks per tile of C in {number} \| [\d,]+ \| ([\d,]+) \|")
        assert rounded(clocks, busy(number)[0], 250)
    (ghz,) = said("23", r"Nsight Compute ran 23 at ([\d.]+) GHz")
    assert agrees(ghz, metric("bf16", "23", "time", "SM clock"), 1e9)


def test_other_sizes_of_cublas():
    ratios = said("23", r"There 23 reaches ([\d.]+) of cuBLAS in BF16\. At 2048³ .*? There 23 reaches only ([\d.]+)\.")
    for text, size in zip(ratios, (8192, 2048), strict=True):
        assert agrees(text, cell("bf16", "23", size, "ratio_cublas"))


@pytest.mark.parametrize("reason", ["barrier", "long scoreboard", "MIO throttle"])
def test_warps_that_wait(reason: str):
    for text, number in zip(said("23", rf"\| {reason} \| ([\d.]+) \| ([\d.]+) \|"), PAIR, strict=True):
        per_instruction = metric("bf16", number, "stalls", reason.lower())
        instructions, clocks = metric("bf16", number, "issue", "instructions"), metric("bf16", number, "time", "clocks")
        assert agrees(text, per_instruction * instructions / clocks / 132)
