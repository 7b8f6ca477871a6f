"""Numbers in the prose of chapter 16 against the recorded results."""

import re

import pytest
from recorded import agrees, chosen, gain, metric, rows, said, stem

RUNGS = ("15", "16", "16b")
TYPES = ("tf32", "bf16", "f16")


def rate(number: str, protocol: str, beta: str) -> float:
    """FLOP/clk/SM with BF16 results at 4096 cubed."""
    sizes = dict.fromkeys("mnk", 4096)
    own = dict(kernel=stem(number), type="bf16", out="same", protocol=protocol, beta=beta, **sizes)
    return chosen("conditions.csv", "flop_clk_sm", **own)


def variant(name: str) -> float:
    """How many times the kernel as written a variant is, per clock."""
    return chosen("sweep_16.csv", "flop_clk_sm", kernel=f"16_{name}") / chosen(
        "sweep_16.csv", "flop_clk_sm", kernel="16_as_written"
    )


def within(least: str, most: str, percents: list[float]) -> bool:
    """True where the percentages, rounded, begin and end as the prose says."""
    return (round(min(percents)), round(max(percents))) == (int(least), int(most))


def test_tensor_cores_of_15_rest():
    (rest,) = said("16", r"rest for (\d+) % of the clocks")
    assert agrees(rest, 100 - metric("bf16", "15", "issue", "tensor pipe"))


@pytest.mark.parametrize("protocol", ["rounds", "steady"])
@pytest.mark.parametrize("beta", ["0", "0.5"])
def test_table_of_bf16_results(protocol: str, beta: str):
    values = said("16", rf"\| {protocol}, beta {re.escape(beta)} \| (\d+) \| (\d+) \| (\d+) \|")
    for number, value in zip(RUNGS, values, strict=True):
        assert agrees(value, rate(number, protocol, beta))


@pytest.mark.parametrize(
    ("pattern", "beta"),
    [(r"16-bit results the gain is (\d+) to (\d+) %", "0"), (r"With beta the gain is (\d+) to (\d+) %", "0.5")],
)
def test_gains_with_bf16_results(pattern: str, beta: str):
    gains = [(rate("16", protocol, beta) / rate("15", protocol, beta) - 1) * 100 for protocol in ("rounds", "steady")]
    assert within(*said("16", pattern), gains)


def test_gains_with_fp32_results():
    numbers = iter(said("16", r"\| gain over 15, % \| (\d) to (\d) \| (\d) to (\d) \| (\d) to (\d) \|"))
    for size in (2048, 4096, 8192):
        gains = [(gain(type, "16", "15", size) - 1) * 100 for type in TYPES]
        assert within(next(numbers), next(numbers), gains)


def test_what_beta_costs():
    numbers = iter(said("16", r"more clocks with beta than without, % \| (\d+) to (\d+) \| (\d) to (\d) \|"))
    for number in ("15", "16"):
        costs = [(rate(number, protocol, "0") / rate(number, protocol, "0.5") - 1) * 100 for protocol in ("rounds", "steady")]
        assert within(next(numbers), next(numbers), costs)


def test_what_beta_costs_in_the_exercise():
    costs = [(rate("16", protocol, "0") / rate("16", protocol, "0.5") - 1) * 100 for protocol in ("rounds", "steady")]
    assert within(*said("16", r"four times the (\d) to (\d) % that beta costs"), costs)


def test_16b_against_16():
    (more,) = said("16", r"Without beta 16b\*\* needs at most (\d) % more clocks than 16,")
    without = [(rate("16", protocol, "0") / rate("16b", protocol, "0") - 1) * 100 for protocol in ("rounds", "steady")]
    without += [(1 / gain(type, "16b", "16", 4096) - 1) * 100 for type in TYPES]
    assert min(without) > -0.5 and round(max(without)) == int(more)
    fewer = [(rate("16b", protocol, "0.5") / rate("16", protocol, "0.5") - 1) * 100 for protocol in ("rounds", "steady")]
    assert within(*said("16", r"With beta it needs (\d) to (\d) % fewer"), fewer)


def test_noise_of_the_sweep():
    (percent,) = said("16", r"They differ by ([\d.]+) %, so smaller differences")
    assert agrees(percent, abs(variant("again") - 1) * 100)


def test_lessons_of_the_sweep():
    one, others = said("16", r"All copies in one step cost (\d) %, copies in two or four steps (\d) %")
    assert round((1 - variant("copy_steps_1")) * 100) == int(one)
    assert {round((1 - variant(f"copy_steps_{steps}")) * 100) for steps in (2, 4)} == {int(others)}
    assert all(abs(variant(f"warps_16_of_{tile}") - 0.5) < 0.02 for tile in ("64x32", "32x64"))
    (percent,) = said("16", r"128×256 is within ([\d.]+) % of 256×128")
    assert abs(variant("block_128x256") - 1) * 100 < float(percent)


def test_smaller_tiles_lose():
    (least,) = said("16", r"All smaller tiles of a block lose (\d+) % and more")
    names = [row["kernel"].removeprefix("16_") for row in rows("sweep_16.csv")]
    smaller = [name for name in names if name.startswith("block_") and not name.startswith("block_128x256")]
    assert round((1 - max(map(variant, smaller))) * 100) == int(least)
