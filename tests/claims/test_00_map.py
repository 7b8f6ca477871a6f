"""Numbers in the prose of the map against the recorded results."""

import pytest
from recorded import agrees, cell, metric, said


@pytest.mark.parametrize("size", [512, 1024])
def test_small_products(size):
    ratios = said("00_map", rf"\| {size}³ \| [\d, ]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
    for number, ratio in zip(("02", "07", "08"), ratios, strict=True):
        assert agrees(ratio, cell("f32", number, size, "ratio_cublas"))


def test_a_fifth_wave():
    at_tail, at_4096 = said("00_map", r"There 08 reaches (\d+) TFLOP/s, against (\d+) at 4096³")
    assert agrees(at_tail, cell("f32", "08", (4097, 4100, 4100), "gflops"), 1e3)
    assert agrees(at_4096, cell("f32", "08", 4096, "gflops"), 1e3)


def test_within_a_part_each_numbered_rung_is_faster_than_the_one_before():
    for type, rungs in (("f32", range(1, 9)), ("bf16", range(10, 17))):
        rates = [cell(type, f"{rung:02}", 4096, "gflops") for rung in rungs]
        assert rates == sorted(rates)


def test_07_is_faster_than_08_at_3072():
    assert cell("f32", "07", 3072, "gflops") > cell("f32", "08", 3072, "gflops")


def test_what_the_blocks_ask_of_l2():
    (counted,) = said("00_map", r"\| GB through L2, counted \| ([\d. |]+) \|")
    for rung, gigabytes in enumerate(counted.split(" | "), 1):
        assert agrees(gigabytes, metric("f32", f"{rung:02}", "memory", "L2 bytes"), 1e9)


@pytest.mark.parametrize(("number", "before"), [("19", "09"), ("20", "16")])
def test_part_iv(number, before):
    ratios = said("00_map", rf"\| \[{number} CuTe[^|]*\|[^|]*\| ([\d.]+) \({before}\) \| ([\d.]+) \|")
    for text, rung in zip(ratios, (before, number), strict=True):
        assert agrees(text, cell("bf16", rung, 4096, "ratio_cublas"))


@pytest.mark.parametrize(
    ("number", "type"), [("21", "bf16"), ("21b", "bf16"), *((str(n), "bf16") for n in range(22, 27)), ("27", "f32")]
)
def test_parts_v_and_vi(number, type):
    found = said("00_map", rf"\| \[{number}[ ,][^|]*\|[^|]*\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
    for text, size, column in zip(found, (4096, 4096, 8192), ("ratio_cublas", "ratio_clk", "ratio_cublas"), strict=True):
        assert agrees(text, cell(type, number, size, column))


def test_index_says_what_is_reached():
    (fp32,) = said("index", r"an eighth of the speed of cuBLAS, to ([\d.]+) times its speed")
    assert agrees(fp32, cell("f32", "27", 4096, "ratio_cublas"))
    assert 1 / 9 < cell("f32", "01", 4096, "ratio_cublas") < 1 / 7
    for text, size in zip(
        said("index", r"with Hopper's own ([\d.]+) of it at 4096³ and (\d.\d+) at 8192³"), (4096, 8192), strict=True
    ):
        assert agrees(text, cell("bf16", "26", size, "ratio_cublas"))
