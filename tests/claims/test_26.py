"""Numbers in the prose of chapter 26 against the recorded results."""

import math
import re

import pytest
from recorded import ROOT, agrees, chosen, gain, said

KERNEL = (ROOT / "kernels/26_fast.cu").read_text(encoding="utf-8")
CLOCKS = {name: tuple(map(int, of)) for name, *of in re.findall(r'"(\w+)",.*\{(\d+), (\d+), (\d+)\}\}', KERNEL)}


USED = [
    ((8192, 8192, 8192), 1024, 0.97),
    ((3072, 3072, 3072), 144, 0.73),
    ((1024, 1024, 1024), 16, 0.24),
    ((128, 4096, 14336), 16, 0.12),
]


@pytest.mark.parametrize(("shape", "tiles", "used"), USED)
def test_what_25_uses(shape, tiles, used):
    m, n, _ = shape
    assert math.ceil(m / 256) * math.ceil(n / 256) == tiles
    share = m * n / 256**2 / (math.ceil(tiles / 66) * 66)
    assert share == pytest.approx(used, abs=0.005)
    label = f"{m}³" if len(set(shape)) == 1 else " × ".join(map(str, shape))
    said("26", rf"\| {label}[^|]*\| {tiles} \|[^|]*\| {used} \|")


def test_gains():
    (at_3072,) = said("26", r"26 is ([\d.]+) times 25 at 3072³")
    at_1024, long_k = said("26", r"At 1024³ it is ([\d.]+) times as fast, at 128 × 4096 × 14336 ([\d.]+) times")
    (at_8192,) = said("26", r"At 8192³ it is ([\d.]+) times 25\. There the fit prefers p128x176 to p128x192")
    assert chosen("ladder.csv", "gflops", kernel="26_fast", type="bf16", m=8192, tile="128x176x64") > 0
    sizes = {at_8192: 8192, at_3072: 3072, at_1024: 1024, long_k: (128, 4096, 14336)}
    assert all(agrees(text, gain("bf16", "26", "25", size)) for text, size in sizes.items())


def test_predictions():
    for edge, widths in ((8192, 128), (3072, 48)):
        for tile, epilogues_hidden, label in ((256, False, 1024), (192, True, 768)):
            tiles = (edge // 256) * math.ceil(edge / tile)
            waves = math.ceil(tiles / 66)
            said("26", rf"\| {edge}³: waves [^|]*\|.*?{waves} · {widths} · {label:,} \|")
            total = waves * widths * label + (1 if epilogues_hidden else waves) * 5800
            assert f"{total:,}" in (ROOT / "docs/26_fast.md").read_text(encoding="utf-8")


def test_steady():
    at_8192, at_4096 = said("26", r"26 reaches ([\d.]+) of cuBLAS at 8192³ and ([\d.]+) at 4096³")
    for text, size in ((at_8192, 8192), (at_4096, 4096)):
        assert agrees(text, chosen("steady_same.csv", "ratio_cublas", kernel="26_fast", m=size, out="same"))


@pytest.mark.parametrize(
    ("pattern", "shape"),
    [
        (r"level with the best library: ([\d.]+) at 8192³ with BF16 results", (8192, 8192, 8192)),
        (r"([\d.]+) at 4096 × 7168 × 16384", (4096, 7168, 16384)),
        (r"([\d.]+) of the best library at 512 × 512 × 16384", (512, 512, 16384)),
        (r"At 3000³ it is ([\d.]+)", (3000, 3000, 3000)),
        (r"limited by DRAM, and 26 reaches (\d\.\d+)", (16, 14336, 4096)),
    ],
)
def test_against_the_best_library(pattern, shape):
    (text,) = said("26", pattern)
    ratio = chosen("map.csv", "ratio_best", type="bf16", out="same", **dict(zip("mnk", shape, strict=True)))
    assert agrees(text, ratio)


def test_clocks_of_slices_and_of_clusters():
    pattern = r"k2_128x128 takes ([\d,]+) clocks and g128x128 takes ([\d,]+). p128x128s has one split and takes ([\d,]+)"
    for clocks, name in zip(said("26", pattern), ["k2_128x128", "g128x128", "p128x128s"], strict=True):
        assert agrees(clocks.removesuffix("00").replace(",", ""), CLOCKS[name][0], 100)
    (more,) = said("26", r"([\d,]+) clocks in p64x128 against p64x128s")
    assert agrees(more.removesuffix("00").replace(",", ""), CLOCKS["p64x128"][0] - CLOCKS["p64x128s"][0], 100)


def test_bytes_per_clock_of_split_rows():
    """In the recorded sweep: bytes that a block copies per k tile over the clocks of one, of tiles whose copies limit them."""
    low, high = said("26", r"received (\d+) to (\d+) bytes per clock")
    per_clock = []
    for name, wm, bn, turns, cluster_m, cluster_n in re.findall(r'"(\w+)", (\d+), (\d+), (\w+), (\d), (\d), 1,', KERNEL):
        bm = int(wm) * (1 if turns == "TAKE_TURNS" else 2)
        milliseconds, clock = (
            chosen("sweep_26.csv", column, kernel=f"26_{name}", m=5128, n=5112) for column in ("median_ms", "clock_mhz")
        )
        rows, columns = (5112, 5128) if name.endswith(("t", "ts")) else (5128, 5112)
        clusters = {1: 132, 2: 66, 4: 30}[int(cluster_m) * int(cluster_n)]
        tiles = math.ceil(rows / (bm * int(cluster_m))) * math.ceil(columns / (int(bn) * int(cluster_n)))
        waves, k_tiles = math.ceil(tiles / clusters), math.ceil(2056 / 64)
        clocks = ((milliseconds * 1e3 - 4.9) * clock - CLOCKS[name][0]) / waves / k_tiles
        multiply = bm * int(bn) * 64 * 2 / 4096
        if clocks > 1.25 * multiply and waves > 4:
            per_clock.append((bm / int(cluster_n) + int(bn) / int(cluster_m)) * 128 / clocks)
    assert len(per_clock) >= 8
    assert (round(min(per_clock)), round(max(per_clock))) == (int(low), int(high))


POWER = {"p128x192": "128x192x64", "p128x176": "128x176x64", "c256x192h": "256x192x64"}


def at_8192(tile: str, protocol: str, column: str) -> float:
    """Of BF16 results; the tile that 26 chooses today is in the records of its own."""
    file = "power_26.csv"
    if tile == POWER["p128x176"]:
        file = {"steady": "steady_same.csv", "rounds": "map.csv"}[protocol]
    where = {"kernel": "26_fast", "type": "bf16", "out": "same", "protocol": protocol, "tile": tile}
    return chosen(file, column, m=8192, n=8192, k=8192, **where)


@pytest.mark.parametrize(
    ("line", "protocol", "column"),
    [
        ("steady: watts", "steady", "power_w"),
        ("steady: FLOP per clock, over that of cuBLAS", "steady", "ratio_clk"),
        ("steady: of cuBLAS", "steady", "ratio_cublas"),
        ("rounds: of the best library", "rounds", "ratio_best"),
    ],
)
def test_power(line, protocol, column):
    for text, tile in zip(said("26", rf"\| {line} \|" + r" ([\d.]+) \|" * 3), POWER.values(), strict=True):
        assert agrees(text, at_8192(tile, protocol, column))


def test_clocks_at_the_limit():
    for text, tile in zip(
        said("26", r"\| steady: clock, over that of cuBLAS \|" + r" ([\d.]+) \|" * 3), POWER.values(), strict=True
    ):
        assert agrees(text, at_8192(tile, "steady", "clock_mhz") / at_8192(tile, "steady", "cublas_clock_mhz"))


def test_bytes_per_clock_of_each():
    copied = said("26", r"\| bytes that a block copies per clock of `wgmma` \|" + r" (\d+) \|" * 3)
    for text, tile in zip(copied, POWER.values(), strict=True):
        height, width, _ = map(int, tile.split("x"))
        assert agrees(text, (height + width / 2) * 128 / (height * width * 64 * 2 / 4096))


def test_the_fewest_bytes_are_the_fastest():
    said("26", r"it does the least per clock\. But it copies the fewest bytes, keeps the highest clock, and is the fastest\.")
    of = {
        column: [at_8192(tile, "steady", column) for tile in POWER.values()]
        for column in ("ratio_clk", "ratio_cublas", "clock_mhz", "cublas_clock_mhz")
    }
    clocks = [own / other for own, other in zip(of["clock_mhz"], of["cublas_clock_mhz"], strict=True)]
    assert min(of["ratio_clk"]) == of["ratio_clk"][2]
    assert max(of["ratio_cublas"]) == of["ratio_cublas"][2] and max(clocks) == clocks[2]
