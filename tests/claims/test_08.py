"""Numbers in the prose of chapter 08 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, metric, rows, said

PAIRS = 2_097_152  # of a warp and a k tile at 4096 cubed, each 1024 FMAs per thread: the same in 07 and 08
FINAL_WAVE = 1 - 512 / 132 / 4  # of the time: 3.88 waves take the time of 4


def test_what_is_left_of_07():
    (used,) = said("08", r"\*\*\[Issue slots\]\(.*?\)\.\*\* (\d+) % are used")
    assert agrees(used, metric("f32", "07", "issue", "issue active"))
    (least,) = said("08", r"\[stall reason\]\([^)]*\) \*long scoreboard\* is below ([\d.]+) and has no row")
    assert metric("f32", "07", "stalls", "long scoreboard") < float(least)


@pytest.mark.parametrize("place, rung, slots", [(0, "07", 1156 / 4), (1, "08", 1109 / 4)])
def test_clocks_per_warp_and_k_tile(place, rung, slots):
    measured = metric("f32", rung, "time", "clocks") * 132 / PAIRS
    assert agrees(said("08", r"\| measured \| ([\d.]+) \| ([\d.]+) \|")[place], measured)
    assert agrees(said("08", r"\| instructions, four per clock \| ([\d.]+) \| ([\d.]+) \|")[place], slots)
    assert agrees(said("08", r"\| final wave, 3\.0 % .*? \| ([\d.]+) \| ([\d.]+) \|")[place], measured * FINAL_WAVE)
    rest = measured * (1 - FINAL_WAVE) - slots
    assert agrees(said("08", r"\| the rest: .*? \| ([\d.]+) \| ([\d.]+) \|")[place], rest)


def test_a_whole_number_of_waves():
    (percent,) = said("08", r"exactly 4 waves, and its rate is ([\d.]+) % higher")
    assert agrees(percent, (cell("f32", "08", (4224, 4096, 4096), "gflops") / cell("f32", "08", 4096, "gflops") - 1) * 100)
    assert cell("f32", "07", 3072, "gflops") > cell("f32", "08", 3072, "gflops")


def test_the_difference_of_each_row_of_clocks():
    for row in ("measured", "instructions, four per clock", "final wave, 3\\.0 % .*?", "the rest: waiting"):
        before, now, difference = (float(number) for number in said("08", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|"))
        assert round(before - now, 1) == difference


def test_the_ratio_beside_its_prediction():
    (reached,) = said("08", r"08 reaches ([\d.]+) of cuBLAS; the prediction allows 1\.15")
    assert agrees(reached, cell("f32", "08", 4096, "ratio_cublas"))


def test_shared_wavefronts_are_those_of_the_table_and_ideal():
    million, counted, together, of_global = said(
        "08", r"The (\d+) million shared wavefronts are (\d+) per pair: the predicted (\d+) without the (\d+) of global"
    )
    assert agrees(million, metric("f32", "08", "shared", "wavefronts"), 1e6)
    assert agrees(counted, metric("f32", "08", "shared", "wavefronts") / PAIRS)
    assert int(counted) == int(together) - int(of_global)
    assert metric("f32", "08", "shared", "wavefronts") == metric("f32", "08", "shared", "ideal wavefronts")


def test_stalls_on_memory():
    (long,) = said("08", r"\*long scoreboard\* is ([\d.]+), so it has no row")
    assert agrees(long, metric("f32", "08", "stalls", "long scoreboard"))
    short = {rung: metric("f32", rung, "stalls", "short scoreboard") for rung in ("07", "08")}
    said("08", r"\*short scoreboard\* is half of what it was")
    assert 0.4 < short["08"] / short["07"] < 0.6


def test_what_the_profile_does_not_explain():
    before, now = said("08", r"\*barrier\* falls from ([\d.]+) to ([\d.]+)")
    assert agrees(before, metric("f32", "07", "stalls", "barrier")) and agrees(now, metric("f32", "08", "stalls", "barrier"))
    said("08", r"\*dispatch stall\* falls by more than half")
    assert metric("f32", "08", "stalls", "dispatch stall") < metric("f32", "07", "stalls", "dispatch stall") / 2


def test_l2_traffic():
    (gigabytes,) = said("08", r"4096 · 1536 bytes = ([\d.]+) GB")
    assert abs(float(gigabytes) * 1e9 / metric("f32", "08", "memory", "L2 bytes") - 1) < 0.1  # L2 counts C, too


def test_power_in_steady():
    percent, of_08, of_07 = said("08", r"08 does ([\d.]+) % more work per second than 07 .*?: (\d+) W; 07 draws (\d+) W")

    def steady(kernel: str, column: str) -> float:
        return chosen("steady.csv", column, kernel=kernel, type="f32", m=4096, n=4096, k=4096)

    assert agrees(of_08, steady("08_warp_tiling", "power_w")) and agrees(of_07, steady("07_double_buffer", "power_w"))
    rate = {kernel: steady(kernel, "gflops") for kernel in ("07_double_buffer", "08_warp_tiling")}
    assert agrees(percent, (rate["08_warp_tiling"] / rate["07_double_buffer"] - 1) * 100)


@pytest.mark.parametrize("variant", sorted({row["kernel"].partition("_")[2] for row in rows("sweep_08.csv")}))
def test_row_of_a_variant(variant):
    registers, *ratios = said("08", rf"\| `{variant}` \| [^|]* \| (\d+) \| ([\d.]+) \| ([\d.]+) \|")
    for ratio, size in zip(ratios, (4096, 8192), strict=True):
        assert agrees(ratio, chosen("sweep_08.csv", "ratio_cublas", kernel=f"08_{variant}", m=size))
    assert int(registers) == chosen("sweep_08.csv", "registers", kernel=f"08_{variant}")


def test_what_the_prose_concludes_from_the_variants():
    ratio = {row["kernel"]: float(row["ratio_cublas"]) for row in rows("sweep_08.csv") if row["m"] == "4096"}
    (percent,) = said("08", r"Yet the epilogue of 07 costs (\d+) %")
    assert agrees(percent, (1 - ratio["08_epilogue_of_07"] / ratio["08_as_written"]) * 100)
    (most,) = said("08", r"\*\*The step of the store\*\* is worth up to (\d+) %")
    assert agrees(most, (1 - min(ratio[f"08_store_at_{k}"] for k in (3, 4, 6)) / ratio["08_as_written"]) * 100)
    said("08", r"differ by about 1 %, and more wavefronts \(196\) are not slower than fewer \(164\)")
    assert ratio["08_lanes_by_column"] > ratio["08_lanes_by_row"]
    written, straight = said("08", r"The ratio falls from ([\d.]+) to ([\d.]+) \(`no_snake`\)")
    assert agrees(written, ratio["08_as_written"]) and agrees(straight, ratio["08_no_snake"])


def test_answers_of_the_exercises():
    higher, base, factor = said("08", r"recorded rates are ([\d.]+) and ([\d.]+) TFLOP/s; their quotient is ([\d.]+)\.")
    rates = [cell("f32", "08", size, "gflops") for size in ((4224, 4096, 4096), 4096)]
    assert agrees(higher, rates[0], 1e3) and agrees(base, rates[1], 1e3) and agrees(factor, rates[0] / rates[1])
    own, of_02 = said("08", r"3\.3 TFLOP/s; ([\d.]+) TFLOP/s are recorded\. 02 is the fastest, at ([\d.]+) TFLOP/s")
    small = {rung: cell("f32", rung, 512, "gflops") for rung in ("01", "02", "03", "04", "05", "06", "07", "08")}
    assert agrees(own, small["08"], 1e3) and agrees(of_02, small["02"], 1e3) and max(small, key=small.get) == "02"
