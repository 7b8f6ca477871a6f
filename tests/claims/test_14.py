"""Numbers in the prose of chapter 14 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, gain, metric, said

TYPES = ("bf16", "f16")
PREDICTED = 106_300  # clocks per tile of C


def of_sweep(variant: str) -> float:
    """How fast a variant of rung 16 is per clock, relative to the rung as written."""
    as_written, changed = (chosen("sweep_16.csv", "flop_clk_sm", kernel=f"16_{name}") for name in ("as_written", variant))
    return changed / as_written


def clocks(number: str) -> float:
    return metric("bf16", number, "time", "clocks")


def test_the_clocks_of_13_per_k_tile_of_both_blocks():
    profiled, per_k_tile = said("14", r"The profile's ([\d,]+) clocks are (\d+) for each pair")
    assert agrees(profiled, clocks("13")) and agrees(per_k_tile, clocks("13") * 132 / (1024 / 2 * 64))


def test_13_multiplies_for_less_than_three_quarters_of_the_clocks():
    said("14", "active for less than three quarters of the clocks")
    assert 70 < metric("bf16", "13", "issue", "tensor pipe") < 75


def test_the_share_of_l2_is_at_the_measured_clock():
    rate, clock, bytes_per_clock = said("14", r"share of L2 is ([\d.]+) TB/s / 132 / ([\d.]+) GHz = (\d+) bytes per clock")
    assert agrees(rate, chosen("ceilings.csv", "value", name="l2"), 1e3)
    assert abs(cell("bf16", "14", 4096, "clock_mhz") / float(clock) / 1e3 - 1) < 0.02
    assert agrees(bytes_per_clock, float(rate) * 1e12 / 132 / (float(clock) * 1e9))


@pytest.mark.parametrize("size", [4096, 8192])
@pytest.mark.parametrize("protocol", ["rounds", "steady"])
def test_clocks_and_ratios_by_protocol(size, protocol):
    def value(column: str) -> float:
        if protocol == "rounds":
            return cell("bf16", "14", size, column)
        return chosen("steady.csv", column, kernel="14_multistage", type="bf16", out="f32", m=size, n=size, k=size)

    cublas, own, power, ratio, in_clocks = said("14", rf"\| {size}³, {protocol} " + r"\| ([\d.]+) " * 5 + r"\|")
    assert agrees(cublas, value("clock_mhz") * value("ratio_clk") / value("ratio_cublas")) and agrees(own, value("clock_mhz"))
    assert agrees(power, value("power_w"))
    assert agrees(ratio, value("ratio_cublas")) and agrees(in_clocks, value("ratio_clk"))


def test_the_avoidable_stalls_are_small():
    said("14", r"falls to a tenth of its value in 13, \*short scoreboard\* to a sixteenth, \*barrier\* to a third")

    def left(stall: str) -> float:
        return metric("bf16", "14", "stalls", stall) / metric("bf16", "13", "stalls", stall)

    assert abs(left("long scoreboard") - 1 / 10) < 0.02
    assert abs(left("short scoreboard") - 1 / 16) < 0.01
    assert abs(left("barrier") - 1 / 3) < 0.05
    before, after = said("14", r"\*math pipe throttle\* rises from ([\d.]+) to ([\d.]+): of a scheduler's two warps")
    assert agrees(before, metric("bf16", "13", "stalls", "math pipe throttle"))
    assert agrees(after, metric("bf16", "14", "stalls", "math pipe throttle"))


def test_the_gain_and_the_clocks_that_were_not_predicted():
    times, profiled, per_tile, more = said(
        "14", r"the gain is ([\d.]+), not 1\.28\.\*\* .*? The profile's ([\d,]+) clocks / 4 are ([\d,]+) per tile, ([\d,]+) more"
    )
    assert all(agrees(times, gain(type, "14", "13", 4096)) for type in TYPES)
    assert agrees(profiled, clocks("14"))
    assert abs(float(per_tile.replace(",", "")) - clocks("14") / 4) < 100
    assert abs(float(more.replace(",", "")) - (clocks("14") / 4 - PREDICTED)) < 100


def test_the_table_of_lost_clocks_adds_up():
    names = ("`HMMA`", "copies", "barriers", "`ldmatrix`", "main loop, not explained", "ends of a block: .*?")
    rows = [said("14", rf"\| (?:{name}) " + r"\| ([\d,]+) " * 3 + r"\|") for name in names]
    columns = [[int(number.replace(",", "")) for number in column] for column in zip(*rows, strict=True)]
    together = said("14", r"\| \*\*together\*\* " + r"\| \*\*([\d,]+)\*\* " * 3 + r"\|")
    assert [f"{sum(column):,}" for column in columns] == together


def test_stages_in_the_sweep():
    said("14", r"Four \(`stages_4`, 192 KB\) are no faster than three.*? With two \(`stages_2`\) the kernel is a third slower")
    (speed,) = said("14", r"On rung 16 \(`stages_2`\) it is ([\d.]+), for")
    assert agrees(speed, of_sweep("stages_2"))
    assert abs(of_sweep("stages_4") - 1) < 0.005 and abs(of_sweep("stages_2") - 2 / 3) < 0.02


def test_pointers_advanced_one_step_earlier():
    (slower,) = said("14", r"the same 24 additions and is (\d+) % slower")
    assert agrees(slower, 100 * (1 - of_sweep("advanced_last")))


def test_the_fourth_stage_loses_more_than_half_of_the_gain():
    said("14", "With the fourth stage more than half of that gain is lost again")
    block = "block_128x128_twice"
    after, before = said("14", r"active for ([\d.]+) % of the clocks in place of ([\d.]+) %")
    active = [tensor_active(variant) for variant in (f"{block}_stages_2", block, f"{block}_stages_4")]
    assert agrees(before, active[0]) and agrees(after, active[1])
    assert 0.5 < (active[1] - active[2]) / (active[1] - active[0]) < 0.7


def tensor_active(variant: str) -> float:
    return chosen("profile_sweep_16.csv", "value", kernel=f"sweep_16/{variant}", metric="tensor pipe")


def test_serpentine_makes_no_difference():
    assert abs(of_sweep("mma_serpentine") - 1) < 0.005


def test_exactly_four_waves():
    full, before, more = said("14", r"(\d+) were recorded, where N = 4096 has (\d+)\. That is (\d+) % more")
    measured = chosen(
        "conditions.csv", "flop_clk_sm", kernel="14_multistage", m=4096, n=4224, k=4096, out="f32", beta=0, protocol="rounds"
    )
    assert agrees(full, measured) and agrees(before, cell("bf16", "14", 4096, "flop_clk_sm"))
    assert agrees(more, 100 * (measured / cell("bf16", "14", 4096, "flop_clk_sm") - 1))


def test_the_smaller_tile():
    (speed,) = said("14", r"this tile \(`block_128x128`\) has ([\d.]+) of the speed")
    assert agrees(speed, of_sweep("block_128x128"))
