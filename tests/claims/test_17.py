"""Numbers in the prose of chapter 17 against the recorded results, and those of the model against the kernels' constants."""

import re

import pytest
from recorded import ROOT, agrees, cell, chosen, prose, said, stem

TYPES = {"17": "bf16", "17b": "bf16", "16": "bf16", "17f": "f32", "08": "f32"}
BEFORE = {"17": "16", "17b": "16", "17f": "08"}
PRODUCT = r"(\d+)×(\d+)×(\d+)"


def value(number: str, shape: tuple[int, ...], column: str) -> float:
    return cell(TYPES[number], number, shape, column)


def of_cublas(number: str, shape: tuple[int, ...]) -> float:
    """The time of cuBLAS beside a rung."""
    of = dict(zip("mnk", shape, strict=True))
    return chosen("ladder.csv", "cublas_ms", kernel=stem(number), type=TYPES[number], out="f32", protocol="rounds", **of)


def clocks(number: str, shape: tuple[int, ...]) -> float:
    return value(number, shape, "median_ms") * value(number, shape, "clock_mhz") * 1e3


def swept(number: str, tile: str, shape: tuple[int, int, int], slices: int, way: str) -> float:
    of = dict(zip("mnk", shape, strict=True))
    return chosen("sweep_17.csv", "median_ms", kernel=stem(number), tile=tile, slices=slices, way=way, **of)


def kernel(number: str) -> str:
    return (ROOT / f"kernels/{stem(number)}.cu").read_text(encoding="utf-8")


LIMITS = re.findall(rf"\| {PRODUCT} \| (16|08), \w+ \| (\d+) · (\d+) = (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|", prose("17"))
MEASURED = re.findall(
    rf"\| {PRODUCT} \| (17[bf]?), \w+ \| (\d+(?:, serial)?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|",
    prose("17"),
)


def test_both_tables_are_there():
    assert len(LIMITS) == 6 and len(MEASURED) == 13


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: "x".join(row[:4]))
def test_what_limits_16_and_08(row: tuple[str, ...]):
    *sizes, number, down, across, tiles, busy, time, ratio = row
    shape = tuple(map(int, sizes))
    height, width = (256, 128) if number == "16" else (128, 256)
    assert (int(down), int(across)) == (-(-shape[0] // height), -(-shape[1] // width))
    assert int(tiles) == int(busy) == int(down) * int(across)
    assert agrees(time, value(number, shape, "median_ms"), 1e-3) and agrees(ratio, value(number, shape, "ratio_cublas"))


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: "x".join(row[:4]))
def test_what_was_measured(row: tuple[str, ...]):
    *sizes, number, _, before, time, library, ratio_before, ratio = row  # tests/kernels asks the program for the slices
    shape = tuple(map(int, sizes))
    for text, rung, column, unit in (
        (before, BEFORE[number], "median_ms", 1e-3),
        (time, number, "median_ms", 1e-3),
        (ratio_before, BEFORE[number], "ratio_cublas", 1),
        (ratio, number, "ratio_cublas", 1),
    ):
        assert agrees(text, value(rung, shape, column), unit), (rung, column)
    assert agrees(library, of_cublas(number, shape), 1e-3)


def test_17f_against_cublas():
    ratios = [float(row[-1]) for row in MEASURED if row[3] == "17f"]
    assert all(ratio >= 1 for ratio in ratios[:-2]) and all(ratio < 1 for ratio in ratios[-2:])
    (best,) = said("17", r"At 1024³ it is also ([\d.]+) times as fast as the best of \[cuBLASLt\]")
    assert agrees(best, value("17f", (1024,) * 3, "ratio_best"))


def test_17_stays_below_cublas():
    ratios = said("17", r"17 stays below cuBLAS: ([\d.]+) at 128×4096×4096 and ([\d.]+) at 512×512×16384")
    for text, shape in zip(ratios, ((128, 4096, 4096), (512, 512, 16384)), strict=True):
        assert agrees(text, value("17", shape, "ratio_cublas"))
    assert all(float(row[-1]) < 1 for row in MEASURED if row[3] in ("17", "17b"))


def test_the_gain_of_17b():
    (gain,) = said("17", r"At 1024³ 17b is ([\d.]+) times as fast as 17 in time\.")
    assert agrees(gain, value("17", (1024,) * 3, "median_ms") / value("17b", (1024,) * 3, "median_ms"))


def test_17_is_16_where_there_are_enough_tiles():
    (within,) = said("17", r"17 does as many FLOP per clock as 16, within (\d) %")
    for kind in ("tf32", "bf16", "f16"):
        for size in (2048, 4096, 8192):
            quotient = cell(kind, "17", size, "flop_clk_sm") / cell(kind, "16", size, "flop_clk_sm")
            assert round(abs(quotient - 1), 2) <= int(within) / 100
    said("17", r"The TFLOP/s differ more, because the clock rates differ")
    assert abs(cell("bf16", "17", 8192, "gflops") / cell("bf16", "16", 8192, "gflops") - 1) > int(within) / 100
    (percent,) = said("17", r"At 4096³ 17f is (\d) % slower than 08")
    assert round((1 - value("17f", (4096,) * 3, "flop_clk_sm") / value("08", (4096,) * 3, "flop_clk_sm")) * 100) == int(percent)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_prediction_has_the_kernels_constants():
    text = kernel("17")
    for constant in ("start = 14400", "k_tile = Tile::BM == 256 ? 1790 : 1040", "unit = Tile::BM == 256 ? 4400 : 1500"):
        assert f".{constant}" in text and f".{constant}" in kernel("17b")
    assert re.search(r"\.add = 3600,\s+\.add_slice = 140,\s+\.add_byte = 1 / 14\.0", text)
    assert "(slices - 1) * (1850 + tile_bytes / 35)" in kernel("17b")
    assert agrees("32,540", 14400 + 16 * 1040 + 1500) and agrees("27,942", 14400 + 8 * 1040 + 1500 + 1850 + 4 * 128 * 128 / 35)
    assert agrees("133,360", 14400 + 64 * 1790 + 4400) and agrees("4,539", 4 * 4 * 128 * 4096 / 132 / 14)
    assert agrees("41,239", 14400 + 16 * 1040 + 1500 + 3600 + 140 * 4 + 4 * 4 * 128 * 4096 / 132 / 14)
    text = kernel("17f")
    assert re.search(
        r"\.start = 6300, \.k_tile = 2505, \.unit = 6700, \.add = 3000, \.add_slice = 160, \.add_byte = 1 / 11\.5", text
    )
    assert agrees("333,640", 6300 + 128 * 2505 + 6700) and agrees("11,052", 4 * 4 * 1024**2 / 132 / 11.5)
    assert agrees("107,852", 6300 + 32 * 2505 + 6700 + 3000 + 640 + 4 * 4 * 1024**2 / 132 / 11.5)


def test_clocks_predicted_and_measured():
    expected = []
    for rung, shape in (("16", r"128×4096×4096"), ("17", r"128×4096×4096"), ("08", "1024³"), ("17f", "1024³")):
        (want, found) = said("17", rf"\| {rung}, {shape} \| ([\d,]+) \| ([\d,]+) \|")
        measured = clocks(rung, (1024,) * 3 if shape == "1024³" else (128, 4096, 4096))
        assert agrees(found, measured)
        expected.append((number(want), measured))
    quotients = said("17", r"\| quotient \| (3\.23) \| ([\d.]+) \|.*?\| quotient \| (3\.09) \| ([\d.]+) \|")
    pairs = (*zip(*expected[:2], strict=True), *zip(*expected[2:], strict=True))
    assert all(agrees(text, before / after) for text, (before, after) in zip(quotients, pairs, strict=True))
    (in_time,) = said("17", r"In time the first quotient is ([\d.]+)")
    assert agrees(in_time, value("16", (128, 4096, 4096), "median_ms") / value("17", (128, 4096, 4096), "median_ms"))
    clock_rates = said("17", r"the clock rate was higher for 17 \((\d+) and (\d+) MHz\)")
    for text, rung in zip(clock_rates, ("17", "16"), strict=True):
        assert agrees(text, value(rung, (128, 4096, 4096), "clock_mhz"))
    of_16, of_17b, within = said(
        "17", r"clocks are (\d+) % too low for 16\. For 17b they are (\d+) % too low\. The others are right within (\d) %"
    )
    assert round((1 - expected[0][0] / expected[0][1]) * 100) == int(of_16)
    assert round((1 - 27942 / clocks("17b", (1024,) * 3)) * 100) == int(of_17b)
    others = (*expected[1:], (32540, clocks("17", (1024,) * 3)))
    assert all(round(abs(want / measured - 1) * 100) <= int(within) for want, measured in others)


def test_clocks_of_17b():
    shape = (1024,) * 3
    for rung in ("17", "17b"):
        (measured,) = said("17", rf"\| {rung}, 1024³ \| [\d,]+ \| ([\d,]+) \|")
        assert agrees(measured, clocks(rung, shape))
    (quotient,) = said("17", r"\| quotient \| 1\.16 \| ([\d.]+) \|")
    assert agrees(quotient, clocks("17", shape) / clocks("17b", shape))


def test_the_terms_of_the_model():
    for term, of_17, of_17f in (
        ("start", "14,400", "6,300"),
        ("k_tile", "1790, 1040", "2505"),
        ("unit", "4400, 1500", "6700"),
        ("add", "3600", "3000"),
        ("add_slice", "140", "160"),
        ("add_byte", "1 / 14", "1 / 11.5"),
    ):  # the kernels have these constants: the test before
        assert said("17", rf"\| `{term}` \|[^|]*\| ([\d, /]+) \| ([\d,./ ]+) \|") == [of_17, of_17f]


def test_a_k_tile_in_the_trace():
    begins, ends = map(float, said("17", r"first k tile in shared memory \| ([\d.]+) .*? main loop ends \| ([\d.]+)"))
    loop, per_k_tile, mhz = said("17", r"([\d.]+) µs are (\d+) clocks per k tile at (\d+) MHz")
    assert agrees(loop, ends - begins) and agrees(per_k_tile, float(loop) / 16 * float(mhz), 1)
    assert agrees(mhz, value("17", (128, 4096, 4096), "clock_mhz"))


def test_fp32_needs_nine_times_as_long():
    of_08, of_16 = said("17", r"At 4096³ 08 reaches ([\d.]+) TFLOP/s, and 16 reaches (\d+)\. So a product takes about nine times")
    speeds = [cell(kind, rung, 4096, "gflops") / 1e3 for kind, rung in (("f32", "08"), ("bf16", "16"))]
    assert agrees(of_08, speeds[0]) and agrees(of_16, speeds[1]) and round(speeds[1] / speeds[0]) == 9


def test_main_loop_of_17f():
    loop, total, percent = said("17", r"main loop is ([\d,]+) of the ([\d,]+) clocks of 17f, (\d+) %")
    assert agrees(total, clocks("17f", (1024,) * 3)) and number(loop) == 32 * 2505
    assert agrees(percent, number(loop) / number(total) * 100)


def test_ways_of_adding():
    tile = "128x128x64"
    for name, shape, slices in (
        ("1024³", (1024, 1024, 1024), 2),
        ("256×4096×4096", (256, 4096, 4096), 2),
        ("128×4096×4096", (128, 4096, 4096), 4),
        ("512×512×16384", (512, 512, 16384), 8),
    ):
        one, second, turn = said("17", rf"\| {name}, {slices} splits \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
        assert agrees(one, swept("17", tile, shape, 1, "none"), 1e-3)
        assert agrees(second, swept("17", tile, shape, slices, "second_kernel"), 1e-3)
        assert agrees(turn, swept("17", tile, shape, slices, "in_turn"), 1e-3)


def test_what_failed_in_the_sweep():
    large, deep = said("17", r"`Large` in place of `Deep`, four splits \| ([\d.]+) \| ([\d.]+) \|")
    assert agrees(large, swept("17", "256x128x64", (128, 4096, 4096), 4, "second_kernel"), 1e-3)
    assert agrees(deep, swept("17", "128x128x64", (128, 4096, 4096), 4, "second_kernel"), 1e-3)


@pytest.mark.parametrize(
    ("product", "before", "after", "shape"),
    [(r"128×4096×4096, BF16", "16", "17", (128, 4096, 4096)), (r"1024³, FP32", "08", "17f", (1024,) * 3)],
)
def test_the_map(product: str, before: str, after: str, shape: tuple[int, ...]):
    ratios = said("00_map", rf"{product} \| ([\d.]+) \({before}\) \| ([\d.]+)")
    for text, number in zip(ratios, (before, after), strict=True):
        assert agrees(text, value(number, shape, "ratio_cublas"))
