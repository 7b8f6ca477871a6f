"""Numbers in the prose of chapter 19 against the recorded results and against what CuTe prints."""

import re

from recorded import ROOT, accuracy, agrees, cell, chosen, gain, metric, rows, said

from plots.maps import cute

WAVEFRONTS = {"09": 32, "19": 12}  # of L1, per HMMA: chapter 19 derives them
FLOP = 2 * 16 * 8 * 16  # of an HMMA


def bound(number: str) -> float:
    return FLOP / WAVEFRONTS[number]


def test_warps_of_09_wait_for_l1():
    said("19", r"wait for these loads \(\*long scoreboard\*\), and that the queue of loads is full \(\*lg throttle\*\)")
    waits = {
        name: metric("bf16", "09", "stalls", name) for name in ("long scoreboard", "lg throttle", "wait", "short scoreboard")
    }
    assert list(waits) == sorted(waits, key=lambda name: -waits[name])
    (clocks,) = said("19", r"which itself needs ([\d.]+) clocks")
    assert agrees(clocks, FLOP / chosen("ceilings.csv", "value", name="mma_bf16_per_clk"))


def test_the_bound_of_l1():
    flop, wavefronts, most = said("19", r"an SM does at most (\d+) / (\d+) = (\d+) FLOP per clock")
    assert int(flop) == FLOP and int(wavefronts) == WAVEFRONTS["19"] and agrees(most, bound("19"))
    before, own = said("19", r"\*\*wavefronts per `HMMA`\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \|")
    assert (int(before), int(own)) == (WAVEFRONTS["09"], WAVEFRONTS["19"])
    first, second, factor = said("19", r"19 should be (\d+) / (\d+) = \*\*([\d.]+) times 09\*\*")
    assert (first, second) == (before, own) and agrees(factor, int(before) / int(own))


def test_both_reach_nearly_their_bound():
    bounds = said("19", r"\| bound of L1, FLOP per clock and SM \| (\d+) \| (\d+) \|")
    rates = said("19", r"\| measured \| (\d+) \| (\d+) \|")
    parts = said("19", r"\| measured / bound \| ([\d.]+) \| ([\d.]+) \|")
    for number, most, rate, part in zip(("09", "19"), bounds, rates, parts, strict=True):
        measured = cell("bf16", number, 4096, "flop_clk_sm")
        assert agrees(most, bound(number)) and agrees(rate, measured) and agrees(part, measured / bound(number))


def test_the_gain():
    (factor,) = said("19", r"So the gain is nearly the ratio of the two bounds: ([\d.]+) at 4096³")
    assert agrees(factor, gain("bf16", "19", "09", 4096)) and agrees(factor, gain("f16", "19", "09", 4096))


def test_the_type_of_the_sums_changes_registers_and_not_the_speed():
    of_fp16, of_fp32 = said("19", r"fewer \[registers\]\S*, (\d+) in place of (\d+)\.")
    assert int(of_fp16) == cell("f16", "19", 4096, "registers") and int(of_fp32) == cell("bf16", "19", 4096, "registers")
    assert abs(cell("f16", "19", 4096, "flop_clk_sm") / cell("bf16", "19", 4096, "flop_clk_sm") - 1) < 0.01
    assert cell("bf16", "19", 4096, "blocks_per_sm") == 1
    (again,) = said("19", r"with BF16 about (\d+) \+ 80 = 250")
    assert again == of_fp32


def test_of_cublas():
    (ratio,) = said("19", r"19 has ([\d.]+) of the speed of cuBLAS")
    assert agrees(ratio, cell("bf16", "19", 4096, "ratio_cublas")) and agrees(ratio, cell("f16", "19", 4096, "ratio_cublas"))


def test_what_fp16_sums_cost():
    least, most = (float(number) for number in said("19", r"Its error is (\d+) to (\d+) times that of FP32 sums"))
    cells = {(row["data"], int(row["k"])) for row in rows("../accuracy.csv")}
    times = [accuracy("f16", data, k, "rms") / accuracy("f32", data, k, "rms") for data, k in cells]
    assert abs(min(times) - least) < 5 and abs(max(times) - most) < 50


def test_the_largest_errors_of_the_checks():
    for kernel, type, pattern in (
        ("19_cute_simple", "f16", "19, FP16 operands, FP16 sums"),
        ("16_epilogue", "f16", "16, FP16 operands, FP32 sums"),
        ("19_cute_simple", "bf16", "19, BF16 operands, FP32 sums"),
    ):
        number, power = said("19", rf"\| {pattern} \| ([\d.]+)·10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]) \|")
        errors = [row["max_error"] for row in rows("check.csv") if (row["kernel"], row["type"]) == (kernel, type)]
        assert agrees(number, max(map(float, filter(None, errors))), 10.0 ** -"⁰¹²³⁴⁵⁶⁷⁸⁹".index(power))


def test_layouts_are_those_that_cute_prints():
    printed = (ROOT / cute.PRINTED).read_text(encoding="utf-8").splitlines()
    quoted = re.findall(r"```text\n(.*?)```", (ROOT / "docs/19_cute_simple.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [f"# {line}" in printed for block in quoted for line in block.splitlines()] == [True]


def test_answers_about_layouts():
    maps = cute.read(ROOT)
    row, stride, first = said("19", r"so the first offset is (\d+) · (\d+) = (\d+)")
    assert {touch.word for touch in maps["offset", "tensor"] if (touch.row, touch.col) == (int(row), 0)} == {int(first)}
    assert int(row) * int(stride) == int(first)
    (m, n) = said("19", r"Which thread holds result \((\d+), (\d+)\) of the atom")
    (thread, value) = said("19", r"This is thread 4 · 5 \+ 3 = (\d+), value (\d)\.")
    (held,) = [touch for touch in maps["c", "cute"] if (touch.row, touch.col) == (int(m), int(n))]
    assert (held.thread, held.word) == (int(thread), int(value))
