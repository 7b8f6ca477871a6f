"""Numbers in the prose of chapter 27 against the recorded results, and against the kernel's text."""

import math
import os
import re
import subprocess

import pytest
from recorded import ROOT, agrees, cell, chosen, metric, prose, rows, said, stalls

PAIRS = 2_097_152  # of a warp and 8 k steps at 4096 cubed, each 1024 FMAs per thread: the same in 08 and 27
FINAL_WAVE = 1 - 512 / 132 / 4  # of the time of 08: 3.88 waves take the time of 4
SHARES = 1 - 512 * 128 / 132 / 497  # of the time of 27: the longest share has 497 k tiles
KERNEL = (ROOT / "kernels/27_sgemm_hopper.cu").read_text(encoding="utf-8")
CONFIGURATIONS = re.findall(r"configuration<Tile<(\d+), (\d+), (\d+), (\d+), (\d), (\d)>>\(\{(\d+),", KERNEL)
IN_THE_LOOP = {name: cell for name, cell in zip(("08", "27"), (1109 / 4, 4343 / 16), strict=True)}


def table_line(words: str, count: int) -> list[str]:
    return said("27", rf"\| {words} \| " + r" \| ".join([r"\**([\d.]+)\**"] * count) + r" \|")


def counted(kernel: str) -> int:
    """All instructions of the main loop in the generated table, per warp."""
    text = (ROOT / "docs/27_sgemm_hopper.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| {kernel} \| f32 \| (.*) \|$", text, re.MULTILINE)
    return int(line.split(" | ")[5])


def test_instructions_per_stage():
    unit, around, of_08 = counted("27_sgemm_hopper"), counted("27_sgemm_hopper, around it"), counted("08_warp_tiling")
    assert table_line("`FFMA`", 2) == ["4096", "4096"] and table_line("shared loads", 2) == ["192", "192"]
    assert int(*said("27", r"others, per 8 k steps: 4 · 8 \| (\d+)")) == 4 * (unit - 1024 - 48)
    assert int(*said("27", r"between stages: wait, arrive, next stage \| (\d+)")) == around
    assert list(map(int, table_line("together", 2))) == [4 * unit + around, 4 * of_08]
    for text, all_of_them in zip(table_line("`FFMA`s among them", 2), (4 * unit + around, 4 * of_08), strict=True):
        assert agrees(text, 4096 / all_of_them)


def test_prediction():
    of_08, of_27 = map(float, table_line("issue slots", 2))
    waves_08, waves_27 = map(float, said("27", r"\| last wave \| (0\.\d+) \| (0\.\d+) \|"))
    both_08, both_27 = table_line("both", 2)
    assert agrees(both_08, of_08 * waves_08) and agrees(both_27, of_27 * waves_27)
    assert agrees(f"{waves_08}", 1 - FINAL_WAVE) and agrees(f"{waves_27}", 1 - SHARES)
    share, waits, reached = said("27", rf"it reaches ({both_27}) · ([\d.]+) = ([\d.]+)\. If it does not")
    assert agrees(reached, float(share) * float(waits))
    least, most = said("27", r"predict \*\*between ([\d.]+) and ([\d.]+) of cuBLAS\*\*")
    (library,) = said("27", r"cuBLAS reaches ([\d.]+)\. So predict")
    assert agrees(least, float(share) * float(waits) / float(library)) and agrees(most, float(both_27) / float(library))
    expect = re.search(r"^// Expect +(.*)", KERNEL, re.MULTILINE)[1]
    assert f"between {least} and {most} of cuBLAS" in expect


def test_the_results_lie_in_the_middle_of_the_prediction():
    said("27", "The results at 4096³ lie in the middle of the prediction")
    least, most = map(float, said("27", r"predict \*\*between ([\d.]+) and ([\d.]+) of cuBLAS\*\*"))
    reached = cell("f32", "27", 4096, "ratio_cublas")
    assert least + (most - least) / 4 < reached < most - (most - least) / 4
    waiting, not_waiting = map(float, said("27", r"= ([\d.]+)\. If it does not wait at all, it reaches ([\d.]+)\. cuBLAS"))
    reached = cell("f32", "27", 4096, "ceiling_fraction")
    assert waiting + (not_waiting - waiting) / 4 < reached < not_waiting - (not_waiting - waiting) / 4


def test_clocks_of_a_pair():
    measured = {rung: metric("f32", rung, "time", "clocks") * 132 / PAIRS for rung in ("08", "27")}
    parts = {"08": FINAL_WAVE, "27": SHARES}
    for place, rung in enumerate(("08", "27")):
        issue, wave = IN_THE_LOOP[rung], measured[rung] * parts[rung]
        assert agrees(table_line("measured", 3)[place], measured[rung])
        assert agrees(table_line("instructions, four per clock: [^|]*", 3)[place], issue)
        assert agrees(said("27", r"\| last wave \| (\d[\d.]*) \| ([\d.]+) \| \d[\d.]* \|")[place], wave)
        assert agrees(table_line("the rest: waiting", 3)[place], measured[rung] - issue - wave)


def test_the_difference_of_each_row_of_clocks():
    for row in ("measured", "instructions, four per clock: [^|]*", "last wave", "the rest: waiting"):
        before, now, difference = map(float, table_line(row, 3))
        assert difference == pytest.approx(before - now, abs=0.11)  # of rounded numbers


def test_instructions_per_pair():
    million, per_pair, of_the_loop, others = said(
        "27",
        r"The profile counts ([\d,]+) million instructions, ([\d,]+) per pair\. ([\d,]+) of them .*? All else takes only (\d+)\.",
    )
    found = metric("f32", "27", "issue", "instructions")
    assert agrees(million, found, 1e6) and agrees(per_pair, found / PAIRS)
    assert agrees(of_the_loop, 4343 / 4)
    assert int(others) == int(per_pair.replace(",", "")) - int(of_the_loop.replace(",", ""))


def test_what_warps_wait_for():
    said("27", r"hardly wait for shared memory \(\*short scoreboard\*\)")
    assert stalls("f32", "27", "short scoreboard") < 0.2 * stalls("f32", "08", "short scoreboard")
    said("27", r"\*Dispatch stall\*, the wait for operands, is two thirds of what it was")
    assert 0.6 < stalls("f32", "27", "dispatch stall") / stalls("f32", "08", "dispatch stall") < 0.73


def test_steady():
    for text, size in zip(said("27", r"27 reaches ([\d.]+) of cuBLAS at 4096³ and (\d.\d+) at 8192³"), (4096, 8192), strict=True):
        assert agrees(text, chosen("steady.csv", "ratio_cublas", kernel="27_sgemm_hopper", m=size))


def test_the_map():
    ratios = {tuple(r[k] for k in "mnk"): float(r["ratio_best"]) for r in rows("map.csv") if r["kernel"] == "27_sgemm_hopper"}
    shapes, wins, mean = said(
        "27", r"has (\d+) products\. In (\d+) of them, 27 is faster than both .*?; the geometric mean of the ratios is (\d\.\d+)"
    )
    assert len(ratios) == int(shapes) and sum(ratio >= 1 for ratio in ratios.values()) == int(wins)
    assert agrees(mean, math.exp(sum(map(math.log, ratios.values())) / len(ratios)))
    weak = re.findall(r"\| (\d+) × (\d+) × (\d+) \| (0\.\d+) \| (\d+) × (\d+) \|", prose("27"))
    assert {tuple(line[:3]) for line in weak} == {shape for shape, ratio in ratios.items() if ratio < 0.95}
    said("27", "The ratio is below 0.95 in one")
    for *shape, ratio, bm, bn in weak:
        assert agrees(ratio, ratios[tuple(shape)])
        found = [r["tile"] for r in rows("map.csv") if r["kernel"] == "27_sgemm_hopper" and [r[k] for k in "mnk"] == shape]
        assert found[0].startswith(f"{bm}x{bn}x")


@pytest.mark.parametrize(
    ("pattern", "variant"),
    [
        (r"at 4096³: stream-K ([\d.]+) %", "no_shares"),
        (r"room for a second tile of rows ([\d.]+) %", "one_tile_of_rows"),
        (r"the lane map ([\d.]+) % \(`lanes_of_08`\)", "lanes_of_08"),
        (r"differ by up to (\d+) %", "no_serpentine"),
    ],
)
def test_what_the_sweep_says(pattern, variant):
    (text,) = said("27", pattern)
    written, changed = (chosen("sweep_27.csv", "ratio_clk", kernel=f"27_{name}", m=4096) for name in ("as_written", variant))
    assert agrees(text, (written / changed - 1) * 100)


def test_ideas_that_gain_nothing():
    said("27", r"\(missing in `guarded_epilogue`\) gains nothing")
    said("27", r"The 32 arrivals take no time \(`one_lane_arrives`")
    for size in (4096, 2048):
        ratios = [
            chosen("sweep_27.csv", "ratio_clk", kernel=f"27_{name}", m=size)
            for name in ("as_written", "guarded_epilogue", "one_lane_arrives")
        ]
        assert all(other < 1.002 * ratios[0] for other in ratios)


def test_what_the_tiles_are():
    assert len(CONFIGURATIONS) == 6 and ("32", "64", "64", "32", "8") in [tile[:5] for tile in CONFIGURATIONS]


def test_shared_memory_is_busy():
    m, n, k = (int(text) for text in CONFIGURATIONS[0][:3])
    fmas = m * n * k / 128  # clocks
    pieces, wavefronts = said("27", r"A k tile of 128 × 256 has (\d) pieces, (\d+) wavefronts, and 8192 clocks of FMAs")
    (loads,) = said("27", r"Its consumers load for (\d+) clocks")
    assert fmas == 8192 and int(pieces) == m * k / 1024 and int(wavefronts) == int(pieces) * (8 + 8) * 4
    assert int(loads) == 8 * 192 * 4  # warps, loads of each per stage, wavefronts of each
    with_them, without = said("27", r"is busy for (\d+) % of the time in place of (\d+) %")
    assert agrees(with_them, (int(loads) + int(wavefronts)) / fmas * 100) and agrees(without, int(loads) / fmas * 100)


def test_what_explain_prints():
    program = ROOT / "build/bin/27_sgemm_hopper"
    if not program.exists() or not (ROOT / "build/sim").exists():
        pytest.skip("build/bin/27_sgemm_hopper or the simulator is not built")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    command = [program, "--sim", "--explain", "--shapes", "1024x1024x1024"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    printed = done.stdout.partition("\n")[2].rstrip("\n")
    assert f"```text\n{printed}\n```" in (ROOT / "docs/27_sgemm_hopper.md").read_text(encoding="utf-8")


def test_08_reached():
    (reached,) = said("27", r"\| reached \| ([\d.]+) \| \|")
    fraction = cell("f32", "08", 4096, "ceiling_fraction")
    assert agrees(reached, fraction)
