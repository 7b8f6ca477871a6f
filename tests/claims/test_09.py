"""Numbers in the prose of chapter 09 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, metric, said

TYPES = {"tf32": "TF32", "bf16": "BF16", "f16": "FP16"}


def accuracy(what: str, data: str, k: int, column: str) -> float:
    return chosen("../accuracy.csv", column, what=what, data=data, k=k)


@pytest.mark.parametrize("type", TYPES)
def test_the_ceilings_of_the_table_of_types(type):
    (ceiling,) = said("09", rf"\| {TYPES[type]}: [^|]* \| \d+ \| (\d+) \|")
    assert agrees(ceiling, chosen("ceilings.csv", "value", name=f"mma_{type}_per_clk"))


def test_the_ceiling_of_part_i():
    (ceiling,) = said("09", r"\| FP32 lanes \(Part I\) \| FP32 \| \| (\d+) \|")
    assert agrees(ceiling, chosen("ceilings.csv", "value", name="fp32_fma_per_clk"))


def test_what_limits_08_is_the_fmas():
    said("09", r"08 uses nine of ten \[issue slots\]")
    slots, pipe = (metric("f32", "08", "issue", name) for name in ("issue active", "FMA pipe"))
    assert 85 < slots < 95 and pipe > 0.9 * slots


def test_cublas_does_a_quarter_more_per_clock_than_the_ceiling():
    said("09", r"cuBLAS does a quarter more per clock than the `HMMA` ceiling")
    cublas = cell("bf16", "09", 4096, "flop_clk_sm") / cell("bf16", "09", 4096, "ratio_clk")
    assert 1.2 < cublas / chosen("ceilings.csv", "value", name="mma_bf16_per_clk") < 1.3


def test_09_does_almost_what_its_bound_allows():
    (rate,) = said("09", r"at (\d+) of at most 128 FLOP per clock and SM in BF16 and FP16, and at half of that in TF32")
    assert agrees(rate, cell("bf16", "09", 4096, "flop_clk_sm")) and agrees(rate, cell("f16", "09", 4096, "flop_clk_sm"))
    assert abs(2 * cell("tf32", "09", 4096, "flop_clk_sm") - int(rate)) < 2


def test_the_wavefronts_take_almost_all_clocks():
    per_request, part = said("09", r"counts (\d+) sectors per load request .*? they take ([\d.]+) of an SM's clocks")
    sectors = metric("bf16", "09", "global", "load sectors")
    assert agrees(per_request, sectors / metric("bf16", "09", "global", "load requests"))
    assert agrees(part, sectors / 132 / metric("bf16", "09", "time", "clocks"))


def test_two_stall_reasons_are_much_larger_than_all_others():
    said("09", r"Two \[stall reasons\]\(glossary\.md#stall-reason\) are much larger than all others")
    stalls = {name: metric("bf16", "09", "stalls", name) for name in ("long scoreboard", "lg throttle")}
    others = ("short scoreboard", "barrier", "mio throttle", "math pipe throttle", "dispatch stall", "wait", "not selected")
    assert min(stalls.values()) > 5 * max(metric("bf16", "09", "stalls", name) for name in others)
    assert metric("bf16", "09", "issue", "tensor pipe") < 5


def test_how_much_cutting_off_loses():
    (percent,) = said("09", r"every product smaller, by ([\d.]+) % in the mean")
    for data in ("normal", "positive"):
        assert agrees(percent, accuracy("tf32_cut", data, 4096, "shrink"), 0.01)


def test_how_many_times_the_error_of_rounding_cutting_off_has():
    both, short, long = said(
        "09",
        r"signs, cutting off has ([\d.]+) times .*? has (\d+) times the error at K = 512, and (\d+) times at K = 4096",
    )
    for text, data, k in ((both, "normal", 512), (both, "normal", 4096), (short, "positive", 512), (long, "positive", 4096)):
        assert agrees(text, accuracy("tf32_cut", data, k, "rms") / accuracy("tf32_rounded", data, k, "rms"))


def test_sums_lose_most_of_what_rounded_results_lack():
    (percent,) = said("09", r"rounded results are still too small by ([\d.]+) %")
    rounded = accuracy("tf32_rounded", "positive", 4096, "shrink")
    assert agrees(percent, rounded, 0.01) and accuracy("f32", "positive", 4096, "shrink") > rounded / 2


def test_the_answer_on_errors_as_a_part_of_the_bound():
    numbers = said("09", r"accuracy table has ([\d.]+) and ([\d.]+) for K = 512, ([\d.]+) and ([\d.]+) for K = 4096")
    of = [(what, k) for k in (512, 4096) for what in ("tf32_rounded", "tf32_cut")]
    for text, (what, k) in zip(numbers, of, strict=True):
        assert agrees(text, accuracy(what, "positive", k, "largest") / accuracy(what, "positive", k, "bound"))
