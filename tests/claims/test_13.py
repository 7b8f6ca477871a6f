"""Numbers in the prose of chapter 13 against the recorded results."""

import re

import pytest
from recorded import agrees, cell, chosen, gain, metric, profile, prose, said, stem

PAIRS = 1024 * 4 * 64  # of a warp and a k tile, at 4096 cubed
TYPES = ("bf16", "f16", "tf32")


def of_ceiling(type: str, number: str) -> float:
    return cell(type, number, 4096, "flop_clk_sm") / chosen("ceilings.csv", "value", name=f"mma_{type}_per_clk")


def test_no_unit_of_12_is_full():
    tensor, issue = said("13", r"\| \[tensor cores\]\S* \| (\d+) \| \| \[issue slots\]\S* \| ([\d.]+) \|")
    millions, clocks, shared = said("13", r"([\d.]+) million \[wavefronts\]\S* / 132 SMs / ([\d,]+) clocks \| (\d+) \|")
    wavefronts = metric("bf16", "12", "shared", "wavefronts")
    assert agrees(tensor, metric("bf16", "12", "issue", "tensor pipe"))
    assert agrees(issue, metric("bf16", "12", "issue", "issue active"))
    assert agrees(millions, wavefronts, 1e6) and agrees(clocks, metric("bf16", "12", "time", "clocks"))
    assert agrees(shared, 100 * wavefronts / 132 / metric("bf16", "12", "time", "clocks"))


def test_the_prediction_starts_from_what_12_reaches():
    reached, work, lost = said("13", r"reaches ([\d.]+) of the \[ceiling\].*? So ([\d.]+) of its time .*? and ([\d.]+) is lost")
    assert agrees(reached, of_ceiling("bf16", "12")) and work == reached and agrees(lost, 1 - of_ceiling("bf16", "12"))
    rate, ceiling = said("13", r"of `mma\.sync`: (\d+) of (\d+) FLOP per clock and SM")
    assert agrees(rate, cell("bf16", "12", 4096, "flop_clk_sm"))
    assert agrees(ceiling, chosen("ceilings.csv", "value", name="mma_bf16_per_clk"))
    guessed_work, guessed_loss, guessed_time = said(
        "13", r"\| 13, a guess \| ([\d.]+) \| [^|]* = ([\d.]+) \| [^|]* = ([\d.]+) \|"
    )
    assert guessed_work == reached and agrees(guessed_loss, float(lost) / 2)
    assert agrees(guessed_time, float(guessed_work) + float(guessed_loss))
    divisor, factor, bold = said("13", r"factor 1 / ([\d.]+) = ([\d.]+)\. The prediction for 13 is \*\*([\d.]+) times 12\*\*")
    assert divisor == guessed_time and agrees(factor, 1 / float(divisor)) and agrees(bold, 1 / float(divisor))


def test_two_fifths_of_the_lost_time_are_gone():
    measured, before = gain("bf16", "13", "12", 4096), of_ceiling("bf16", "12")
    per_clock, divisor, time = said("13", r"13 does ([\d.]+) times the work of 12 per clock\. .*? 1 / ([\d.]+) = ([\d.]+)")
    assert agrees(per_clock, measured) and divisor == per_clock and agrees(time, 1 / measured)
    work, rest, together = said("13", r"\| 13, measured \| ([\d.]+) \| [^|]* = ([\d.]+) \| ([\d.]+) \|")
    left = 1 / measured - before
    assert agrees(work, before) and together == time and agrees(rest, left)
    assert abs(left / (1 - before) - 3 / 5) < 0.05
    lost, still, divisor, gone = said("13", r"not half:\*\* \(([\d.]+) − ([\d.]+)\) / ([\d.]+) = (\d\.\d+)")
    assert agrees(lost, 1 - before) and still == rest and divisor == lost and agrees(gone, 1 - left / (1 - before))
    rows = re.findall(r"\| 12 \| ([\d.]+) \| ([\d.]+) \| 1 \|", prose("13"))
    assert len(rows) == 2 and all(agrees(work, before) and agrees(lost, 1 - before) for work, lost in rows)


@pytest.mark.parametrize(
    ("row", "stall"),
    [
        ("issuing its own instructions, one clock each", ""),
        *(
            (rf"\*{stall}\*: [^|]*", stall)
            for stall in ("wait", "math pipe throttle", "mio throttle", "short scoreboard", "barrier", "long scoreboard")
        ),
    ],
)
def test_the_clocks_of_a_warp_per_k_tile(row, stall):
    for number, clocks in zip(("12", "13"), said("13", rf"\| {row} \| (\d+) \| (\d+) \|"), strict=True):
        per_issue = metric("bf16", number, "stalls", stall) if stall else 1
        assert agrees(clocks, per_issue * metric("bf16", number, "issue", "instructions") / PAIRS)


def test_the_clocks_of_a_warp_that_are_left():
    rest = said("13", r"\| \*not selected\* [^|]* \| (\d+) \| (\d+) \|")
    together = said("13", r"\| \*\*together\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \|")
    for number, few, all_of_them in zip(("12", "13"), rest, together, strict=True):
        per_pair = metric("bf16", number, "issue", "instructions") / PAIRS
        stalls = {name: value for (group, name), value in profile("bf16")[stem(number)].items() if group == "stalls"}
        assert abs(int(few) - per_pair * (stalls["not selected"] + stalls["dispatch stall"])) < 3
        assert abs(int(all_of_them) - per_pair * (1 + sum(stalls.values()))) < 8


def test_the_example_of_12():
    pairs = said("13", r"1024 blocks · 4 warps · 64 k tiles = ([\d,]+)")[0]
    millions, divisor, issued = said("13", r"([\d.]+) million / ([\d,]+) = (\d+) -")
    again, stall, clocks = said("13", r"per pair: (\d+) · ([\d.]+) clocks, about (\d+)")
    instructions, wait = metric("bf16", "12", "issue", "instructions"), metric("bf16", "12", "stalls", "wait")
    assert int(pairs.replace(",", "")) == PAIRS and divisor == pairs and again == issued
    assert agrees(millions, instructions, 1e6) and agrees(issued, instructions / PAIRS)
    assert agrees(stall, wait) and agrees(clocks, wait * instructions / PAIRS)


def test_13_issues_half_of_what_12_issues():
    assert abs(metric("bf16", "13", "issue", "instructions") / metric("bf16", "12", "issue", "instructions") - 0.5) < 0.03


def test_what_13_reaches_of_the_ceiling():
    least, most = said("13", r"13 reaches ([\d.]+) to ([\d.]+) of the ceiling")
    reached = [of_ceiling(type, "13") for type in TYPES]
    assert agrees(least, min(reached)) and agrees(most, max(reached))
