"""Numbers in the prose of chapter 15 against the recorded results."""

import json

import pytest
from recorded import RECORDED, agrees, cell, chosen, gain, metric, prose, rows, said, stem

LARGE = {"m": 16384, "n": 16384, "k": 4096}
SHAPES = {"16384 × 16384 × 4096": ("conditions.csv", LARGE)} | {
    f"8192³ in `{file}`": (file, dict.fromkeys("mnk", 8192)) for file in ("conditions.csv", "steady.csv")
}


def steady(file: str, column: str, number: str, shape: dict[str, int]) -> float:
    return chosen(file, column, kernel=stem(number), type="bf16", out="f32", protocol="steady", **shape)


def test_14_is_held_by_the_power_limit():
    watts, limit = said("15", r"14 draws (\d+) W at 8192³\. The card's limit is (\d+) W")
    clock, highest = said("15", r"It holds the clock at (\d+) of (\d+) MHz")
    card = json.loads((RECORDED / "environment.json").read_text(encoding="utf-8"))
    assert (card["power_limit_w"], card["max_sm_clock_mhz"]) == (int(limit), int(highest))
    shape = dict.fromkeys("mnk", 8192)
    assert agrees(watts, steady("conditions.csv", "power_w", "14", shape))
    assert agrees(clock, steady("conditions.csv", "clock_mhz", "14", shape))


def test_14_reads_nine_times_the_operands():
    operands, read = said("15", r"A and B together are ([\d.]+) GB\. 14 reads nearly nine times as much: .*?([\d.]+) GB")
    measured = metric("bf16@8192", "14", "memory", "DRAM read")
    assert agrees(read, measured, 1e9)
    assert abs(measured / (float(operands) * 1e9) - 9) < 0.5


def test_tensor_cores_of_14_are_active():
    (active,) = said("15", r"are active for ([\d.]+) % of the time")
    assert agrees(active, metric("bf16@8192", "14", "issue", "tensor pipe"))


@pytest.mark.parametrize(("what", "size"), [("bf16", "4096"), ("bf16@8192", "8192")])
@pytest.mark.parametrize("number", ["14", "15"])
def test_bytes_from_dram(what: str, size: str, number: str):
    predicted, counted = said("15", rf"\| {size}³, {number} \| ([\d.]+) \| ([\d.]+) \|")
    measured = metric(what, number, "memory", "DRAM read")
    assert agrees(counted, measured, 1e9)
    assert abs(measured / 1e9 / float(predicted) - 1) < 0.04  # "as predicted"


def test_hit_rate():
    (rate,) = said("15", r"The profiler reports (\d+) %")
    assert agrees(rate, metric("bf16@8192", "15", "memory", "L2 hit rate"))


def test_gain_in_clocks():
    least, most = map(float, said("15", r"at 4096³ is (\d) to (\d) %, about twice the prediction"))
    for type in ("tf32", "bf16", "f16"):
        assert least - 0.5 <= (gain(type, "15", "14", 4096) - 1) * 100 <= most + 0.5


def test_nothing_overlaps_at_2048():
    (slower,) = said("15", r"There 15 is (\d) % slower than 14 in BF16 and FP16")
    for type in ("bf16", "f16"):
        assert round((1 - gain(type, "15", "14", 2048)) * 100) == int(slower)


def test_variants_of_16():
    as_written = chosen("sweep_16.csv", "flop_clk_sm", kernel="16_as_written")
    found = {
        "one_kernel": r"rung 16 is (\d) % slower \(variant `one_kernel`",
        "without_keep": r"which has the same loop, is (\d) % slower \(variant `without_keep`\)",
        "blocks_that_end": r"with a block for each tile is (\d) % slower \(variant `blocks_that_end`\)",
    }
    for variant, pattern in found.items():
        (slower,) = said("15", pattern)
        assert round((1 - chosen("sweep_16.csv", "flop_clk_sm", kernel=f"16_{variant}") / as_written) * 100) == int(slower)
    for size in (1, 4, 16):
        assert abs(chosen("sweep_16.csv", "flop_clk_sm", kernel=f"16_group_size_{size}") / as_written - 1) < 0.003


@pytest.mark.parametrize("shape", SHAPES)
def test_clock_and_time_in_the_steady_protocol(shape: str):
    file, sizes = SHAPES[shape]
    line = next(line for line in prose("15").split("| |") if line.strip().startswith(shape))
    _, _, before, after, change, *_ = (part.strip() for part in line.split("|"))
    assert agrees(before, steady(file, "clock_mhz", "14", sizes))
    assert agrees(after, steady(file, "clock_mhz", "15", sizes))
    assert agrees(change, (steady(file, "median_ms", "15", sizes) / steady(file, "median_ms", "14", sizes) - 1) * 100)


def test_times_and_clocks_in_rounds():
    longer, of = said("15", r"15 takes longer than 14 in (\w+) of the (\w+) rows of the conditions table for rounds")
    own = [row for row in rows("conditions.csv") if row["protocol"] == "rounds"]
    first, second = ([row for row in own if row["kernel"] == kernel] for kernel in ("14_multistage", "15_block_raster"))
    pairs = list(zip(first, second, strict=True))
    assert [longer, of] == ["three", "six"] and len(pairs) == 6
    assert sum(float(b["median_ms"]) > float(a["median_ms"]) for a, b in pairs) == 3
    assert all(float(b["flop_clk_sm"]) > float(a["flop_clk_sm"]) for a, b in pairs)


def test_cublas_at_the_largest_shape():
    (ms,) = said("15", r"cuBLAS takes ([\d.]+) ms \(`cublas_ms` beside 15")
    assert agrees(ms, chosen("conditions.csv", "cublas_ms", kernel="15_block_raster", protocol="steady", **LARGE))


def test_clocks_of_8192_gain_too():
    assert cell("bf16", "15", 8192, "flop_clk_sm") > cell("bf16", "14", 8192, "flop_clk_sm")
