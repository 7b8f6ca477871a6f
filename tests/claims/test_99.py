"""Numbers in the prose of chapter 99 against the recorded results."""

import math
import re

import pytest
from recorded import RECORDED, ROOT, agrees, cell, chosen, metric, rows, said, stem, table

from plots.data import losses
from plots.data.results import load
from plots.data.units import Shape
from plots.figures.timeline import read as read_timelines
from plots.tables import losses as losses_table

RESULTS = load(RECORDED)
SMS, HIGHEST = RESULTS.environment["sm_count"], RESULTS.environment["max_sm_clock_mhz"]
CEILING = RESULTS.ceilings["wgmma_bf16_per_clk"][0]
TYPES = {"FP32": "f32", "BF16": "bf16"}
CLUSTER = {"22": 1, "23": 1, "24": 2, "25": 2, "p128x192": 2, "p128x176": 2, "c256x192h": 2}  # blocks that share the tile of B
TILES = {"p128x192": "128x192x64", "p128x176": "128x176x64", "c256x192h": "256x192x64"}  # of 26, at different commits
CHOSEN = "p128x176"  # of today's 26, at 8192³
K_TILE = 64  # of BF16, in 128 bytes


def steady(number: str, size: int, column: str, type: str = "bf16") -> float:
    return chosen("steady.csv", column, kernel=stem(number), type=type, out="f32", m=size, n=size, k=size)


def steady_row(number: str, size: int, type: str) -> dict[str, str]:
    (row,) = (r for r in rows("steady.csv") if (r["kernel"], r["type"], r["m"]) == (stem(number), type, str(size)))
    return row


def at_the_limit(name: str) -> dict[str, str]:
    """The steady row at 8192³, BF16, FP32 results, of a rung or of a configuration of 26."""
    if name == CHOSEN or name not in TILES:
        row = steady_row("26" if name in TILES else name, 8192, "bf16")
        assert row["tile"] == TILES.get(name, row["tile"])
        return row
    (row,) = (r for r in rows("power_26.csv") if (r["tile"], r["out"], r["protocol"]) == (TILES[name], "f32", "steady"))
    return row


def held(row: dict[str, str]) -> bool:
    return "sw_power_cap" in row["throttle"]


def test_limits_of_the_card():
    clock, watts = said("99", r"highest clock is (\d+) MHz, its power limit (\d+) W")
    assert (int(clock), int(watts)) == (HIGHEST, RESULTS.environment["power_limit_w"])


@pytest.mark.parametrize(
    ("number", "type", "size"),
    [
        ("08", "FP32", 4096),
        ("27", "FP32", 4096),
        ("25", "BF16", 8192),
        ("26", "BF16", 4096),
        ("26", "BF16", 8192),
    ],
)
def test_clocks(number, type, size):
    cells = r" \| (\d+) \| (\d+) \| (\d) of (\d) \| (\d+) \| (\d+) \| (yes|no) \|"
    mhz, watts, limited, of, steady_mhz, steady_watts, limit = said("99", rf"\| {number}, {type}, {size}³{cells}")
    kind = TYPES[type]
    assert agrees(mhz, cell(kind, number, size, "clock_mhz")) and agrees(watts, cell(kind, number, size, "power_w"))
    sittings = table(kind).cells[stem(number), Shape(size, size, size)].sittings
    assert (int(limited), int(of)) == (sum("sw_power_cap" in sitting.throttle for sitting in sittings), len(sittings))
    assert agrees(steady_mhz, steady(number, size, "clock_mhz", kind)) and agrees(
        steady_watts, steady(number, size, "power_w", kind)
    )
    assert (limit == "yes") == held(steady_row(number, size, kind))


def test_peaks_at_the_clock_held():
    at_4096, at_8192 = said("99", r"26 holds (\d+) MHz at 4096³ and (\d+) MHz at 8192³")
    lost = said("99", r"the clock alone takes (\d+) % and (\d+) % of the peak")
    for mhz, percent, size in ((at_4096, lost[0], 4096), (at_8192, lost[1], 8192)):
        assert agrees(mhz, steady("26", size, "clock_mhz"))
        (of,) = (case for case in losses_table.read(RESULTS) if (case.type, case.shape.m) == ("bf16", size))
        assert agrees(percent, 100 * (1 - of.left[losses.CLOCK] / of.peak))
    assert max(steady("08", size, "clock_mhz", "f32") for size in (4096, 8192)) > 0.998 * HIGHEST
    assert steady("27", 4096, "clock_mhz", "f32") > 0.998 * HIGHEST


def test_the_data_sheets_clock():
    """Its 989 TFLOP/s are those of 4096 FLOP per clock and SM at the clock that the chapter names."""
    (mhz,) = said("99", r"data sheet counts with \[(\d+) MHz\]\S+ in BF16")
    gflops, per_clock = losses.PEAKS["bf16"]
    assert gflops == pytest.approx(per_clock * SMS * float(mhz) / 1e3, rel=0.001)


def test_two_rungs_in_rounds():
    columns = {"gflops": 1e3, "clock_mhz": 1, "flop_clk_sm": 1, "ratio_cublas": 1}
    quotients = said("99", r"\| 26 over 25 \|" + r" ([\d.]+) \|" * len(columns))
    values = {number: [cell("bf16", number, 8192, column) for column in columns] for number in ("25", "26")}
    for number, of_rung in values.items():
        texts = said("99", rf"\| {number} \|" + r" ([\d.]+) \|" * len(columns) + r" \|")
        assert all(agrees(*cells) for cells in zip(texts, of_rung, columns.values(), strict=True))
    for text, of_26, of_25 in zip(quotients, values["26"], values["25"], strict=True):
        assert agrees(text, of_26 / of_25)


def test_energy_per_flop():
    fp32 = said("99", r"In FP32 08 needs about ([\d.]+) pJ, 27 about ([\d.]+)\.")
    for number, text in zip(("08", "27"), fp32, strict=True):
        for size in (4096, 8192):
            assert agrees(text, steady(number, size, "power_w", "f32") / steady(number, size, "gflops", "f32") * 1e3)


def test_two_recordings_of_one_kernel():
    one, other = said("99", r"16 at 8192³ did (\d+) TFLOP/s in one recording and (\d+) in another")
    assert agrees(one, steady("16", 8192, "gflops"), 1e3)
    where = {"kernel": stem("16"), "type": "bf16", "out": "f32", "m": 8192, "n": 8192, "protocol": "steady"}
    assert agrees(other, chosen("conditions.csv", "gflops", **where), 1e3)


def copied(rows: int, columns: int, blocks: int) -> tuple[float, float]:
    """Bytes per 1000 FLOP of a k tile: what a block asks for itself, and what its shared memory takes in."""
    flop = 2 * rows * columns * K_TILE / 1000
    return (rows + columns / blocks) * 128 / flop, (rows + columns) * 128 / flop


@pytest.mark.parametrize("number", ["24", "25"])
def test_blocks_per_cluster(number):
    assert "constexpr int CLUSTER = 2;" in (ROOT / f"kernels/{stem(number)}.cu").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CLUSTER)
def test_clocks_and_bytes_at_the_limit(name):
    row = r"[^|]*\| (\d+) × (\d+), (\d) \|" + r" ([\d.]+) \|" * 6
    of_row = at_the_limit(name)
    height, width, blocks, asked, taken, clocks, per_clock, ratio, energy = said("99", rf"\| (?:26, \[)?{name}{row}")
    assert of_row["tile"] == f"{height}x{width}x{K_TILE}" and int(blocks) == CLUSTER[name]
    bytes_of = copied(int(height), int(width), int(blocks))
    assert agrees(asked, bytes_of[0]) and agrees(taken, bytes_of[1])
    assert agrees(clocks, float(of_row["clock_mhz"]) / float(of_row["cublas_clock_mhz"]))
    assert agrees(per_clock, float(of_row["ratio_clk"])) and agrees(ratio, float(of_row["ratio_cublas"]))
    assert agrees(energy, float(of_row["power_w"]) / float(of_row["gflops"]) * 1e3)
    least, most = said("99", r"at (\d+) to (\d+) W\.")
    assert int(least) <= round(float(of_row["power_w"])) <= int(most) and held(of_row)


def changes(name: str, before: str) -> tuple[float, float, float]:
    """In per cent, each beside cuBLAS: the clock, the FLOP per clock, the speed."""
    own, other = (
        {column: float(at_the_limit(rung)[column]) for column in ("clock_mhz", "cublas_clock_mhz", "ratio_clk", "ratio_cublas")}
        for rung in (name, before)
    )
    clock = own["clock_mhz"] / own["cublas_clock_mhz"] / (other["clock_mhz"] / other["cublas_clock_mhz"])
    of_others = (clock, *(own[column] / other[column] for column in ("ratio_clk", "ratio_cublas")))
    return tuple(100 * (part - 1) for part in of_others)


@pytest.mark.parametrize(("number", "before"), [("24", "23"), ("23", "22"), ("p128x192", "25"), ("c256x192h", "p128x192")])
def test_from_rung_to_rung(number, before):
    fewer, more, rises, faster = said("99", rf"\| {before} to {number} \|" + r" ([−+]?[\d.]+) \|" * 4)
    asked, asked_before = (
        copied(*map(int, at_the_limit(rung)["tile"].split("x")[:2]), CLUSTER[rung])[0] for rung in (number, before)
    )
    assert agrees(fewer, 100 * (asked / asked_before - 1))
    clock, per_clock, speed = changes(number, before)
    assert agrees(rises, clock) and agrees(more, per_clock) and agrees(faster, speed)


def test_what_saves_energy():
    assert changes("24", "23")[0] > 1 and abs(changes("24", "23")[1]) < 0.2
    clock, _, speed = changes("p128x192", "25")
    assert clock < 0 < speed and copied(128, 192, 2)[0] > copied(128, 256, 2)[0]


def test_results_in_bf16_gain_more():
    said("99", r"With BF16 results it gains \[more\]")
    cooler, busier = (
        chosen("power_26.csv", "ratio_cublas", out="same", tile=TILES[tile], protocol="steady")
        for tile in ("c256x192h", "p128x192")
    )
    assert 100 * (cooler / busier - 1) > changes("c256x192h", "p128x192")[2]


@pytest.mark.parametrize(("number", "type"), [("08", "FP32"), ("23", "BF16"), ("25", "BF16")])
def test_memories(number, type):
    hits, through, read, l2, dram = said("99", rf"\| {number}, {type} \|" + r" ([\d.]+) \|" * 5)
    kind = TYPES[type]
    ms = cell(kind, number, 4096, "median_ms")
    counted = {name: metric(kind, number, "memory", name) for name in ("L2 hit rate", "L2 bytes", "DRAM read", "DRAM written")}
    assert agrees(hits, counted["L2 hit rate"])
    assert agrees(through, counted["L2 bytes"], 1e9) and agrees(read, counted["DRAM read"], 1e9)
    assert agrees(l2, counted["L2 bytes"] / (RESULTS.ceilings["l2"][0] * 1e6) / ms)
    assert agrees(dram, (counted["DRAM read"] + counted["DRAM written"]) / (RESULTS.ceilings["dram"][0] * 1e6) / ms)


def test_bytes_per_clock():
    (asked,) = said("99", r"p128x192 requests (\d+) bytes per clock")
    assert agrees(asked, copied(128, 192, 2)[0] * 4.096)
    at_highest, highest, at_held, held_clock = said(
        "99", r"L2 delivers (\d+) bytes per clock and SM at (\d+) MHz, and (\d+) at (\d+) MHz"
    )
    assert int(highest) == HIGHEST and agrees(held_clock, float(at_the_limit("p128x192")["clock_mhz"]))
    for text, mhz in ((at_highest, highest), (at_held, held_clock)):
        assert agrees(text, RESULTS.ceilings["l2"][0] * 1e3 / SMS / float(mhz))
    assert copied(128, 192, 2)[0] * 4.096 > RESULTS.ceilings["l2"][0] * 1e3 / SMS / HIGHEST


def tile_of(number: str, size: int) -> tuple[int, int]:
    height, width, _ = map(int, steady_row(number, size, "f32" if number == "08" else "bf16")["tile"].split("x"))
    return height, width


def waves(size: int, tile: tuple[int, int]) -> float:
    return math.ceil(size / tile[0]) * math.ceil(size / tile[1]) / SMS


def test_waves_are_counted():
    needed, of, used = said("99", r"fill ([\d.]+) of (\d) \[waves\]\S+ ([\d.]+) of them\.")
    for number in ("08", "26"):
        tile = tile_of(number, 4096)
        assert agrees(needed, waves(4096, tile)) and int(of) == math.ceil(waves(4096, tile))
        assert agrees(used, losses.wave_efficiency(Shape(4096, 4096, 4096), tile, SMS))
    height, width, filled, of, useful = said(
        "99", r"At 8192³ the (\d+) × (\d+) tiles of 26 fill ([\d.]+) of (\d+) waves\. .*?so ([\d.]+) is useful"
    )
    tile, shape = tile_of("26", 8192), Shape(8192, 8192, 8192)
    assert tile == (int(height), int(width)) and agrees(filled, waves(8192, tile)) and int(of) == math.ceil(waves(8192, tile))
    assert shape.n % tile[1] and agrees(useful, losses.wave_efficiency(shape, tile, SMS))
    (shared,) = said("99", r"27 computes the last wave by \[stream-K\]\([^)]*\): ([\d.]+)\.")
    of_27 = tuple(map(int, steady_row("27", 4096, "f32")["tile"].split("x")))
    assert agrees(shared, losses.wave_efficiency(Shape(4096, 4096, 4096), of_27, SMS, losses.SHARES))


def test_waves_are_measured():
    k, k_of_08 = said("99", r"K is (\d+) for 16, (\d+) for 08")
    percent_fp32, percent_bf16 = map(float, said("99", r"to about (\d) % in FP32 and (\d) % in BF16"))
    lines = re.findall(r"\| (\d+) to (\d+) \|", " ".join(said("99", r"(\| 2048 to 2176 .*?) The count is")))
    assert len(lines) == 3
    for small, large in lines:
        first, second, counted, of_16, of_08 = said(
            "99", rf"\| {small} to {large} \|" + r" ([\d.]+), ([\d.]+) \|" + r" ([\d.]+) \|" * 3
        )
        edges = [int(small), int(large)]
        used = [losses.wave_efficiency(Shape(edge, edge, 1), (128, 256), SMS) for edge in edges]
        assert agrees(first, waves(edges[0], (128, 256))) and agrees(second, waves(edges[1], (128, 256)))
        assert agrees(counted, used[1] / used[0])
        for text, number, depth, percent in ((of_16, "16", k, percent_bf16), (of_08, "08", k_of_08, percent_fp32)):
            before, after = (chosen("waves.csv", "flop_clk_sm", kernel=stem(number), m=edge, n=edge, k=depth) for edge in edges)
            assert agrees(text, after / before)
            assert abs(after / before / (used[1] / used[0]) - 1) < (percent + 0.5) / 100


def test_the_start():
    clocks, longer = said(
        "99", r"issues its first `wgmma` after ([\d,]+) clocks\. \(Recording makes the launch (\d+) % longer\.\)"
    )
    assert int(clocks.replace(",", "")) == losses.first_wgmma(RESULTS)
    (found,) = (found for found in read_timelines(RECORDED) if found.kernel == losses.TIMED)
    assert agrees(longer, 100 * found.cost)
    (epilogue,) = said("99", r"An \[epilogue\]\S+ costs \[([\d,]+) clocks\]")
    assert int(epilogue.replace(",", "")) == losses.EPILOGUE
    said("25", rf"\| 25: more with its epilogue \| [\d,]+ \| {losses.EPILOGUE:,} \|")


def parts(size: int, tile: tuple[int, int], epilogues: str = losses.EVERY) -> tuple[float, float]:
    """Clocks of the waves of wgmma at its ceiling, and of the start and the epilogues that nothing hides."""
    needed = losses.waves_needed(Shape(size, size, size), tile, SMS)
    ends = losses.first_wgmma(RESULTS) + losses.epilogues(epilogues, needed, tile)
    return needed * tile[0] * tile[1] * size * 2 / CEILING, ends


def launch(flop_clk_sm: float, size: int) -> float:
    return 2 * size**3 / SMS / flop_clk_sm


def test_what_is_left_over():
    columns = [(2048, "rounds"), (4096, "rounds"), (4096, "steady"), (8192, "steady")]
    heads = " ".join(rf"{size}³, {protocol} \|" for size, protocol in columns)
    numbers = {
        name: said("99", rf"\| {name} \|" + r" ([−\d,.]+) \|" * 4)
        for name in ("waves at the ceiling of `wgmma`", "start and epilogues", "left over", "left over, µs")
    }
    said("99", rf"clocks per launch \| {heads}")
    more, counted = said(
        "99", r"One warpgroup stores ([\d.]+) times as many results there as in 25, so .*? counted as ([\d,]+) clocks"
    )
    of_8192, results_in_25 = tile_of("26", 8192), 128 * 256 / 2
    assert f"{CHOSEN[1:]}x64" == steady_row("26", 8192, "bf16")["tile"] and math.prod(of_8192) / results_in_25 == float(more)
    assert agrees(counted, losses.epilogues(losses.LAST, 23, of_8192))
    assert said("99", r"\| epilogues \|" + r" (\d) \|" * 4) == ["1", "4", "4", "1"]
    for place, (size, protocol) in enumerate(columns):
        value = {
            "rounds": lambda column, size=size: cell("bf16", "26", size, column),
            "steady": lambda c, size=size: steady("26", size, c),
        }
        tile = (128, 256) if size == 2048 else tile_of("26", size)
        pipe, ends = parts(size, tile, losses.LAST if size == 8192 else losses.EVERY)
        left = launch(value[protocol]("flop_clk_sm"), size) - pipe - ends
        for name, expected in zip(numbers, (pipe, ends, left, left / value[protocol]("clock_mhz")), strict=True):
            assert agrees(numbers[name][place], expected), (name, size, protocol)


def test_what_a_launch_takes_in_the_cost_model():
    (us,) = said("99", r"of 26 takes ([\d.]+) µs for a launch")
    assert f"LAUNCH_US = {us};" in (ROOT / "kernels/26_fast.cu").read_text(encoding="utf-8")


def test_all_of_it():
    cases = {(case.kernel[:2], case.shape.m): case for case in losses_table.read(RESULTS)}
    for size in (4096, 8192):
        case = cases["26", size]
        assert case.peak - case.left[losses.CLOCK] > case.left[losses.CLOCK] - case.left[losses.REST], (
            "the clock takes more than the others"
        )
    (percent,) = said("99", r"and (\d) % are left over: waiting")
    times, of_27 = said("99", r"is ([\d.]+) times as fast: it fills the last wave, issues fewer .*? and (\d) % are left over\.")
    for text, number in ((percent, "08"), (of_27, "27")):
        case = cases[number, 4096]
        assert agrees(text, 100 * (1 - case.left[losses.REST] / case.before(losses.REST)))
    before, after = cases["08", 4096], cases["27", 4096]
    assert agrees(times, after.left[losses.REST] / before.left[losses.REST])
    for cause in (losses.WAVES, losses.INSTRUCTIONS, losses.REST):
        assert after.left[cause] / after.before(cause) > before.left[cause] / before.before(cause), cause


def test_what_is_not_known():
    limited, of, watts, mhz = said(
        "99", r"In (\w+) of (\w+) sittings of 26 at 4096³ NVML names no reason\. It reports (\d+) W, but the SMs count (\d+) MHz"
    )
    assert agrees(watts, cell("bf16", "26", 4096, "power_w")) and agrees(mhz, cell("bf16", "26", 4096, "clock_mhz"))
    sittings = table("bf16").cells[stem("26"), Shape(4096, 4096, 4096)].sittings
    assert [limited, of] == ["four", "five"]
    assert (sum(sitting.throttle == "none" for sitting in sittings), len(sittings)) == (4, 5)
    (more,) = said("99", r"For 25 at 8192³ its parts add up to more clocks than were measured, by ([\d,]+)\.")
    assert agrees(more, sum(parts(8192, tile_of("25", 8192))) - launch(steady("25", 8192, "flop_clk_sm"), 8192))
    least, most, peak = said(
        "99", r"Two rows of p128x192 in `power_26.csv` have (\d+) and (\d+) FLOP/clk/SM, and `wgmma` can do (\d+)"
    )
    rates = [float(row["flop_clk_sm"]) for row in rows("power_26.csv")]
    above = [rate for rate in rates if rate > losses.PEAKS["bf16"][1]]
    assert (int(peak), len(above)) == (losses.PEAKS["bf16"][1], 2)
    assert agrees(least, min(above)) and agrees(most, max(above))


def test_exercise_of_the_parts():
    needed, whole = said("99", r"48 · 24 tiles are ([\d.]+) waves of 132, so (\d)")
    assert agrees(needed, waves(6144, (128, 256))) and int(whole) == math.ceil(waves(6144, (128, 256)))
    pipe, ends = parts(6144, (128, 256))
    of_pipe, of_ends = said("99", r"= ([\d,]+) clocks, 9 epilogues and the start ([\d,]+)")
    assert agrees(of_pipe, pipe) and agrees(of_ends, ends)
    predicted, recorded, left = said("99", r"That is (\d+) FLOP/clk/SM\. Recorded in rounds are (\d+): ([\d,]+) clocks")
    rate = cell("bf16", "25", 6144, "flop_clk_sm")
    assert agrees(predicted, launch(pipe + ends, 6144)) and agrees(recorded, rate)
    assert agrees(left, launch(rate, 6144) - pipe - ends)


def test_exercise_of_the_clocks():
    found = said(
        "99",
        r"p128x176 ran at (\d+) MHz and did ([\d.]+) times as much per clock as cuBLAS, which ran at (\d+) MHz\. "
        r"c256x192h ran at (\d+) MHz and did ([\d.]+) times as much, beside (\d+) MHz",
    )
    answers = said("99", r"((?:[\d.]+ / [\d.]+ · [\d.]+)) = ([\d.]+) and ([\d.]+ / [\d.]+ · [\d.]+) = ([\d.]+), as recorded")
    files = {CHOSEN: "steady_same.csv", "c256x192h": "power_26.csv"}
    for (tile, file), given, product, ratio in zip(
        files.items(), (found[:3], found[3:]), answers[::2], answers[1::2], strict=True
    ):
        columns = (*zip(given, ("clock_mhz", "ratio_clk", "cublas_clock_mhz"), strict=True), (ratio, "ratio_cublas"))
        where = {"kernel": stem("26"), "type": "bf16", "out": "same", "m": 8192, "tile": TILES[tile], "protocol": "steady"}
        assert all(agrees(text, chosen(file, column, **where)) for text, column in columns)
        mhz, per_clock, of_cublas = given
        assert product == f"{mhz} / {of_cublas} · {per_clock}" and agrees(ratio, float(mhz) / float(of_cublas) * float(per_clock))
