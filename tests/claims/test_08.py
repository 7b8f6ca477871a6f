"""Numbers in the prose of chapter 08 against the recorded results."""

import pytest
from recorded import agrees, cell, chosen, metric, rows, said

from plots.tables import profiled

PAIRS = 2_097_152  # of a warp and a k tile at 4096 cubed, each 1024 FMAs per thread: the same in 07 and 08
FINAL_WAVE = 1 - 512 / 132 / 4  # of the time: 3.88 waves take the time of 4


def test_what_is_left_of_07():
    (used,) = said("08", r"\*\*\[Issue slots\]\(.*?\)\.\*\* (\d+) % are used")
    assert agrees(used, metric("f32", "07", "issue", "issue active"))
    said("08", r"\*long scoreboard\*, is too small for the table")
    assert metric("f32", "07", "stalls", "long scoreboard") < profiled.LEAST["long scoreboard"]


@pytest.mark.parametrize("place, rung, slots", [(0, "07", 1156 / 4), (1, "08", 1109 / 4)])
def test_clocks_per_warp_and_k_tile(place, rung, slots):
    measured = metric("f32", rung, "time", "clocks") * 132 / PAIRS
    assert agrees(said("08", r"\| measured \| ([\d.]+) \| ([\d.]+) \|")[place], measured)
    assert agrees(said("08", r"\| instructions, four per clock \| ([\d.]+) \| ([\d.]+) \|")[place], slots)
    assert agrees(said("08", r"\| last wave, 3\.0 % .*? \| ([\d.]+) \| ([\d.]+) \|")[place], measured * FINAL_WAVE)
    rest = measured * (1 - FINAL_WAVE) - slots
    assert agrees(said("08", r"\| the rest: .*? \| ([\d.]+) \| ([\d.]+) \|")[place], rest)


def test_the_difference_of_each_row_of_clocks():
    for row in ("measured", "instructions, four per clock", "last wave, 3\\.0 % .*?", "the rest: waiting"):
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


def test_what_warps_wait_for():
    now, before = ({name: metric("f32", rung, "stalls", name) for name in profiled.STALLS} for rung in ("08", "07"))
    said("08", r"\*short scoreboard\* is half of what it was")
    assert 0.4 < now["short scoreboard"] / before["short scoreboard"] < 0.6
    said("08", r"\*barrier\* falls even more; the profile does not show why")
    assert now["barrier"] / before["barrier"] < now["short scoreboard"] / before["short scoreboard"]
    said("08", r"\*dispatch stall\* falls by more than half")
    assert now["dispatch stall"] < before["dispatch stall"] / 2
    said("08", r"After \*short scoreboard\*, the largest wait is now \*dispatch stall\*")
    assert sorted(now, key=now.get, reverse=True)[:2] == ["short scoreboard", "dispatch stall"]


def test_every_operand_is_fetched_or_reused():
    names = (
        "operands: 3 · 1024",
        r"operands marked `\.reuse`, not fetched again",
        *(f"operands fetched from the {b} bank" for b in ("even", "odd")),
    )
    for operands, *parts in zip(*(map(int, said("08", rf"\| {name} \| (\d+) \| (\d+) \|")) for name in names), strict=True):
        assert operands == sum(parts)


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
    most, of_bk = said("08", r"\*\*The step of the store\*\* is worth up to (\d+) %, and BK = 16 costs (\d+) %")
    assert agrees(most, (1 - min(ratio[f"08_store_at_{k}"] for k in (3, 4, 6)) / ratio["08_as_written"]) * 100)
    assert agrees(of_bk, (1 - ratio["08_bk_16"] / ratio["08_as_written"]) * 100)
    said("08", r"differ by about 1 %, and more wavefronts \(196\) are not slower than fewer \(164\)")
    assert ratio["08_lanes_by_column"] > ratio["08_lanes_by_row"]
    said("08", r"\(`lanes_diagonal`\) is about 1 % below that of `lanes_by_column`")
    assert 0.005 < 1 - ratio["08_lanes_diagonal"] / ratio["08_lanes_by_column"] < 0.015
    written, straight = said("08", r"The ratio falls from ([\d.]+) to ([\d.]+) \(`no_snake`\)")
    assert agrees(written, ratio["08_as_written"]) and agrees(straight, ratio["08_no_snake"])


def test_answers_of_the_exercises():
    higher, base, factor = said("08", r"recorded rates are ([\d.]+) and ([\d.]+) TFLOP/s; their quotient is ([\d.]+)\.")
    rates = [cell("f32", "08", size, "gflops") for size in ((4224, 4096, 4096), 4096)]
    assert agrees(higher, rates[0], 1e3) and agrees(base, rates[1], 1e3) and agrees(factor, rates[0] / rates[1])
    own, of_02 = said("08", r"3\.3 TFLOP/s; ([\d.]+) TFLOP/s are recorded\. 02 is the fastest, at ([\d.]+) TFLOP/s")
    small = {rung: cell("f32", rung, 512, "gflops") for rung in ("01", "02", "03", "04", "05", "06", "07", "08")}
    assert agrees(own, small["08"], 1e3) and agrees(of_02, small["02"], 1e3) and max(small, key=small.get) == "02"
