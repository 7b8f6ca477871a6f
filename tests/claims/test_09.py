"""Numbers in the prose of chapter 09 against the recorded results."""

import pytest
from recorded import accuracy, agrees, cell, chosen, metric, said

TYPES = {"tf32": "TF32", "bf16": "BF16", "f16": "FP16"}


@pytest.mark.parametrize("type", TYPES)
def test_the_ceilings_of_the_table_of_types(type):
    (ceiling,) = said("09", rf"\| {TYPES[type]}: [^|]* \| \d+ \| (\d+) \|")
    assert agrees(ceiling, chosen("ceilings.csv", "value", name=f"mma_{type}_per_clk"))


def test_the_ceiling_of_part_i():
    (ceiling,) = said("09", r"\| FP32 lanes \(Part I\) \| FP32 \| \| (\d+) \|")
    assert agrees(ceiling, chosen("ceilings.csv", "value", name="fp32_fma_per_clk"))


def test_what_limits_08_is_the_fmas():
    (percent,) = said("09", r"08 uses nine of ten \[issue slots\].*? active for (\d+) % of the clocks")
    slots, pipe = (metric("f32", "08", "issue", name) for name in ("issue active", "FMA pipe"))
    assert 85 < slots < 95 and pipe > 0.9 * slots and agrees(percent, pipe)


def test_cublas_does_a_quarter_more_per_clock_than_the_ceiling():
    said("09", r"cuBLAS does a quarter more per clock than the `HMMA` ceiling")
    cublas = cell("bf16", "09", 4096, "flop_clk_sm") / cell("bf16", "09", 4096, "ratio_clk")
    assert 1.2 < cublas / chosen("ceilings.csv", "value", name="mma_bf16_per_clk") < 1.3


def test_09_does_almost_what_its_bound_allows():
    rate, of_tf32 = said("09", r"In BF16 and FP16 it does (\d+) of at most 128 FLOP .*? In TF32 it does (\d+) of at most 64")
    for text, type in ((rate, "bf16"), (rate, "f16"), (of_tf32, "tf32")):
        assert agrees(text, cell(type, "09", 4096, "flop_clk_sm"))


def test_the_wavefronts_take_almost_all_clocks():
    (per_load,) = said("09", r"counts (\d+) sectors per load,")
    of_l1, again, measured, part = said("09", r"/ 132 SMs \| ([\d.]+) \| .*? measured: ([\d.]+) / ([\d.]+) \| ([\d.]+) \|")
    sectors, clocks = metric("bf16", "09", "global", "load sectors"), metric("bf16", "09", "time", "clocks")
    assert agrees(per_load, sectors / metric("bf16", "09", "global", "load requests"))
    assert of_l1 == again and agrees(of_l1, sectors / 132, 1e6) and agrees(of_l1, 65536 * 256 * 64 / 132, 1e6)
    assert agrees(measured, clocks, 1e6) and agrees(part, sectors / 132 / clocks)


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
        r"has ([\d.]+) times the error of rounding\. .*? about (\d+) times the error at K = 512, and (\d+) times at K = 4096",
    )
    ratios = {
        (data, k): accuracy("tf32_cut", data, k, "rms") / accuracy("tf32_rounded", data, k, "rms")
        for data in ("normal", "positive")
        for k in (512, 4096)
    }
    assert agrees(both, ratios["normal", 512]) and agrees(both, ratios["normal", 4096])
    assert abs(ratios["positive", 512] - int(short)) < 3 and agrees(long, ratios["positive", 4096])


def test_sums_lose_most_of_what_rounded_results_lack():
    (percent,) = said("09", r"rounded results are still too small by ([\d.]+) %")
    rounded = accuracy("tf32_rounded", "positive", 4096, "shrink")
    assert agrees(percent, rounded, 0.01) and accuracy("f32", "positive", 4096, "shrink") > rounded / 2


@pytest.mark.parametrize(
    ("row", "what", "named", "number"),
    [("rounded", "tf32_rounded", "09", "09"), ("cut off", "tf32_cut", r"\[11\]\(11_cp_async\.md\)", "11")],
)
def test_the_answer_on_errors_as_a_part_of_the_bound(row, what, named, number):
    *neighbours, at_1024 = said("09", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \| {named}: ([\d.]+) \|")
    for text, k in zip(neighbours, (512, 4096), strict=True):
        assert agrees(text, accuracy(what, "normal", k, "largest") / accuracy(what, "normal", k, "bound"))
    assert agrees(at_1024, cell("tf32", number, 1024, "max_error") / cell("tf32", number, 1024, "bound"))
