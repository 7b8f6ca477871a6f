"""Numbers in the prose of chapter 13 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, gain, metric, profile, said, stem

PAIRS = 1024 * 4 * 64  # of a warp and a k tile, at 4096 cubed
TYPES = ("bf16", "f16", "tf32")


def of_ceiling(type: str, number: str) -> float:
    return cell(type, number, 4096, "flop_clk_sm") / chosen("ceilings.csv", "value", name=f"mma_{type}_per_clk")


def test_no_unit_of_12_is_full():
    tensor, issue, millions, shared = said(
        "13",
        r"active for (\d+) % of the clocks\. .*? used for ([\d.]+) %\. .*? ([\d.]+) million wavefronts on 132 SMs take (\d+) %",
    )
    wavefronts = metric("bf16", "12", "shared", "wavefronts")
    assert agrees(tensor, metric("bf16", "12", "issue", "tensor pipe"))
    assert agrees(issue, metric("bf16", "12", "issue", "issue active"))
    assert agrees(millions, wavefronts, 1e6)
    assert agrees(shared, 100 * wavefronts / 132 / metric("bf16", "12", "time", "clocks"))


def test_the_prediction_starts_from_what_12_reaches():
    reached, waiting = said("13", r"FLOP/clk/SM, ([\d.]+) of the \[ceiling\].*? and for ([\d.]+) the tensor cores are idle")
    assert agrees(reached, of_ceiling("bf16", "12")) and agrees(waiting, 1 - of_ceiling("bf16", "12"))


def test_two_fifths_of_the_waiting_are_gone():
    per_clock, time = said("13", r"gain per clock is ([\d.]+)\. So 13 takes ([\d.]+) of the clocks of 12")
    work, rest = said("13", r"still need ([\d.]+) of the clocks of 12\. So .*? = ([\d.]+) is left as idle time")
    measured = gain("bf16", "13", "12", 4096)
    assert agrees(per_clock, measured) and agrees(time, 1 / measured) and agrees(work, of_ceiling("bf16", "12"))
    left = 1 / measured - of_ceiling("bf16", "12")
    assert agrees(rest, left) and abs(left / (1 - of_ceiling("bf16", "12")) - 3 / 5) < 0.05


@pytest.mark.parametrize(
    ("row", "stall"),
    [
        ("issuing its own instructions", ""),
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


def test_13_issues_half_of_what_12_issues():
    assert abs(metric("bf16", "13", "issue", "instructions") / metric("bf16", "12", "issue", "instructions") - 0.5) < 0.03


def test_what_13_reaches_of_the_ceiling():
    least, most = said("13", r"13 reaches ([\d.]+) to ([\d.]+) of the ceiling")
    reached = [of_ceiling(type, "13") for type in TYPES]
    assert agrees(least, min(reached)) and agrees(most, max(reached))


@pytest.mark.parametrize(("type", "label"), [("f16", "FP16"), ("bf16", "BF16")])
def test_the_rungs_from_09b_to_13(type, label):
    *rates, times = said("13", rf"\| {label} " + r"\| ([\d.]+) " * 6 + r"\|")
    numbers = ("09b", "10", "11", "12", "13")
    assert all(agrees(rate, cell(type, number, 4096, "flop_clk_sm")) for number, rate in zip(numbers, rates, strict=True))
    assert agrees(times, gain(type, "13", "09b", 4096))
