"""Numbers in the prose of chapter 18 against the recorded results, and those of the model against the kernels' constants."""

import re
from functools import cache
from statistics import median

import pytest
from recorded import RECORDED, ROOT, agrees, cell, gain, prose, rows, said, stem

from plots.figures import waves

RUNGS = {"BF16": ("16", "17", "18"), "FP32": ("08", "17f", "18f")}  # whole tiles, slices, shares
NAMES = {"BF16": "bf16", "FP32": "f32"}
SMALL = [(128, 4096), (256, 256), (512, 512), (1024, 1024)]
SQUARE = (3072, 3072, 3072)
PRODUCT = r"(\d+)×(\d+)×(\d+)"
Product = tuple[int, ...]


@cache
def swept() -> dict[tuple[str, Product], dict[str, str]]:
    """The rows of waves.csv by rung and product."""
    return {(row["kernel"].split("_")[0], tuple(int(row[x]) for x in "mnk")): row for row in rows(waves.FILE)}


def value(rung: str, product: Product, column: str) -> float:
    return float(swept()[rung, product][column])


def products(kind: str) -> list[Product]:
    return sorted(product for rung, product in swept() if rung == RUNGS[kind][2])


def speed(kind: str, product: Product) -> float:
    """Of the rung with shares, over that of the better of the other two."""
    whole, slices, shares = (value(rung, product, "median_ms") for rung in RUNGS[kind])
    return min(whole, slices) / shares


def tiles_of_16(product: Product) -> int:
    return -(-product[0] // 256) * -(-product[1] // 128)


LIMITS = re.findall(rf"\| {PRODUCT} \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", prose("18"))
MEASURED = re.findall(rf"\| {PRODUCT} \| (BF16|FP32)" + r" \| ([\d.]+)" * 6 + r" \|", prose("18"))
BELOW = re.findall(rf"\| {PRODUCT} \| (16|17f?|08) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", prose("18"))


def test_the_tables_are_there():
    assert (len(LIMITS), len(MEASURED), len(BELOW)) == (6, 15, 15)


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: "x".join(row[:3]))
def test_what_limits_17(row: tuple[str, ...]):
    *sizes, tiles, in_waves, whole, slices, of_whole, of_slices = row
    product = tuple(map(int, sizes))
    assert int(tiles) == tiles_of_16(product) and agrees(in_waves, value("16", product, "waves"))
    for text, rung in ((whole, "16"), (slices, "17")):
        assert agrees(text, value(rung, product, "median_ms"), 1e-3)
    for text, rung in ((of_whole, "16"), (of_slices, "17")):
        assert agrees(text, value(rung, product, "ratio_cublas"))


def test_three_waves_take_the_same_time():
    (times,) = said("18", r"3584 has ([\d.]+) times the results")
    assert agrees(times, (3584 / 3072) ** 2)
    few, many = (value("16", (edge, edge, 4096), "median_ms") for edge in (3072, 3584))
    assert few == pytest.approx(many, rel=0.03)


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: "x".join(row[:4]))
def test_what_was_measured(row: tuple[str, ...]):
    *sizes, kind = row[:4]
    product = tuple(map(int, sizes))
    for text, ratio, rung in zip(row[4:7], row[7:], RUNGS[kind], strict=True):
        assert agrees(text, value(rung, product, "median_ms"), 1e-3), rung
        assert agrees(ratio, value(rung, product, "ratio_cublas")), rung


def test_the_saw_tooth_of_fp32():
    count, percent = said("18", r"In FP32 all (\d+) sizes of 08 lie within (\d) % of it")
    (sweep,) = (sweep for sweep in waves.read(RECORDED / waves.FILE) if sweep.type == "f32")
    predicted = sweep.predicted()
    assert len(predicted) == int(count)
    assert all(abs(sweep.gflops[sweep.kernels[0], at] / rate - 1) < int(percent) / 100 for at, rate in predicted.items())


def kernel(number: str) -> str:
    return (ROOT / f"kernels/{stem(number)}.cu").read_text(encoding="utf-8")


def test_the_predictions_have_the_kernels_constants():
    text = kernel("18")
    for constant in (".start = 14400", "BM == 256 ? 1745 : 1040", "BM == 256 ? 4400 : 1500", ".fix_up = 20000, .other = 2000"):
        assert constant in text
    assert "1790 : 1040" in kernel("17") and "{.k_tile = 2700, .fix_up = 16000, .other = 2000}" in kernel("18f")
    whole, shared = 14400 + 3 * (48 * 1790 + 4400), 14400 + 48 * 1745 + 4400 + 57 * 1745 + 20000
    assert said("18", r"\*\*together\*\* \| \*\*(285,360)\*\* \| \*\*(222,025)\*\*") == [f"{whole:,}", f"{shared:,}"]
    assert agrees("1.29", whole / shared) and agrees("1.22", (14400 + 5 * (48 * 1040 + 1500)) / shared)
    slices = 6300 + 11 * (77 * 2505 + 6700) + 3000 + 5 * 160 + 4 * 5 * 3072**2 / 132 / 11.5
    shares = [6300 + 2 * (384 * k_tile + 6700) + 70 * k_tile + 16000 + 5 * 2000 for k_tile in (2505, 2700)]
    assert said("18", r"\*\*together\*\* \| \*\*(2,329,872)\*\* \| \*\*(2,144,890)\*\*") == [f"{slices:,.0f}", f"{shares[0]:,}"]
    assert said("18", r"Then shares cost (2,308,300) clocks") == [f"{shares[1]:,}"] and shares[1] > 0.98 * slices


def test_clocks_predicted_and_measured():
    found = {}
    for kind, (_, *numbers) in RUNGS.items():
        for number in numbers:
            (text,) = said("18", rf"\| {number} \| [\d,]{{7,}}(?:; with `Deep` [\d,]+)? \| ([\d,]+) \|")
            ms, mhz = (cell(NAMES[kind], number, SQUARE, column) for column in ("median_ms", "clock_mhz"))
            found[number] = ms * mhz * 1e3
            assert agrees(text, found[number])
    first, second = said("18", r"\| quotient \| 1\.29; with `Deep` 1\.22 \| ([\d.]+) \|.*?\| quotient \| 1\.09 \| ([\d.]+) \|")
    assert agrees(first, found["17"] / found["18"]) and agrees(second, found["17f"] / found["18f"])
    (in_time,) = said("18", r"In time the quotient is ([\d.]+)")
    assert agrees(in_time, cell("bf16", "17", SQUARE, "median_ms") / cell("bf16", "18", SQUARE, "median_ms"))
    (slower,) = said("18", r"slower than 17f, too: ([\d.]+) % at 4096³")
    assert agrees(slower, (1 - gain("f32", "18f", "17f", 4096)) * 100)


def test_the_aim_at_4096_is_missed():
    ratio, aim = said("18", r"reaches ([\d.]+) of cuBLAS\. The aim was ([\d.]+)")
    assert agrees(ratio, cell("bf16", "18", 4096, "ratio_cublas")) and float(ratio) < float(aim)
    (full,) = said("18", r"The last wave is (\d+) % full")
    assert agrees(full, (tiles_of_16((4096, 4096)) % 132) / 132 * 100)


def test_small_shapes():
    slower, of, middle = said("18", r"slower than 17 in (\d+) of (\d+) products, by ([\d.]+) % in the median")
    slower_f, of_f, middle_f = said("18", r"18f is slower than 17f in (\d+) of (\d+), by ([\d.]+) %")
    for kind, count, all_of, text in (("BF16", slower, of, middle), ("FP32", slower_f, of_f, middle_f)):
        _, slices, shares = RUNGS[kind]
        small = [product for product in products(kind) if product[:2] in SMALL]
        quotients = [value(slices, p, "median_ms") / value(shares, p, "median_ms") for p in small]
        assert len(quotients) == int(all_of) and sum(quotient < 1 for quotient in quotients) == int(count)
        assert agrees(text, (1 - median(quotients)) * 100)


def test_squares_at_which_18f_is_the_fastest():
    of, count = said("18", r"Of the (\d+) squares, 18f is faster than both 08 and 17f at (\d+)")
    squares = [p for p in products("FP32") if p[0] == p[1] >= 1024 and p[2] == 2048]
    assert len(squares) == int(of) and sum(speed("FP32", p) > 1 for p in squares) == int(count)


def test_those_under_0_95_are_listed():
    numbers = said("18", r"Of (\d+) products per type, 18 is under ([\d.]+) times .*? at (\d+), and 18f at (\d+):")
    total, limit, counts = int(numbers[0]), float(numbers[1]), dict(zip(RUNGS, map(int, numbers[2:]), strict=True))
    for kind, count in counts.items():
        under = {product for product in products(kind) if speed(kind, product) < limit}
        listed = [row for row in BELOW if row[3] in RUNGS[kind]]
        assert len(products(kind)) == total and len(under) == count
        assert {tuple(map(int, row[:3])) for row in listed} == under
        for *sizes, better, before, after, quotient, in_clocks in listed:
            product, shares = tuple(map(int, sizes)), RUNGS[kind][2]
            assert better == min(RUNGS[kind][:2], key=lambda rung: value(rung, product, "median_ms"))
            assert agrees(before, value(better, product, "median_ms"), 1e-3)
            assert agrees(after, value(shares, product, "median_ms"), 1e-3)
            assert agrees(quotient, speed(kind, product))
            clock = value(better, product, "clock_mhz") / value(shares, product, "clock_mhz")
            assert agrees(in_clocks, speed(kind, product) * clock)


def test_the_large_ones_lose_by_the_clock_rate():
    (percent,) = said("18", r"In clocks they lose (\d) % at most")
    large = [row for row in BELOW if row[3] in ("16", "17") and int(row[0]) > 4096]
    assert len(large) == 3 and all(round((1 - float(row[-1])) * 100) <= int(percent) for row in large)


@pytest.mark.parametrize(("kind", "product"), [("BF16", "3072³, BF16"), ("FP32", "3072³, FP32")])
def test_the_map(kind: str, product: str):
    _, before, after = RUNGS[kind]
    ratios = said("00_map", rf"{product} \| ([\d.]+) \({before}\) \| ([\d.]+)")
    for text, number in zip(ratios, (before, after), strict=True):
        assert agrees(text, cell(NAMES[kind], number, SQUARE, "ratio_cublas"))
