"""The recorded sweep of splits is complete and right, and the models of 17, 17b and 17f choose its fastest plans."""

import csv
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from bench.sweep_17 import RUNGS, SHAPES, split_counts

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "bench/recorded/nvidia-h200/sweep_17.csv"
CHAPTER = ROOT / "docs/17_split_k.md"
SERIAL_CHAPTER = ROOT / "docs/17b_serial_split_k.md"
# The rows of tensor cores are of 17 when it had both ways of adding, as 17b has them now.
CELLS = [(number, shape) for number in RUNGS for shape in SHAPES]
NOT_IN_THE_SWEEP = {("17b", "256x256x65536"): 33, ("17f", "3072x3072x3072"): 2}  # and the number of splits that is fastest in it
WITHIN = 1.005  # of the fastest
Plan = tuple[str, int, str]  # tile, slices, way


@pytest.fixture(scope="module")
def times() -> dict[tuple[str, str], dict[Plan, float]]:
    """Rung and shape -> plan -> ms."""
    found: dict[tuple[str, str], dict[Plan, float]] = defaultdict(dict)
    with RECORDED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert row["status"] == "ok", row
            number = row["kernel"].partition("_")[0].replace("17", "17b") if "fp32" not in row["kernel"] else "17f"
            plan = row["tile"].rpartition("x")[0], int(row["slices"]), row["way"]
            of = found[number, f"{row['m']}x{row['n']}x{row['k']}"]
            assert plan not in of, "one row per plan"
            of[plan] = float(row["median_ms"])
    return found


@pytest.mark.parametrize(("number", "shape"), CELLS)
def test_the_sweep_is_complete(number, shape, times):
    rung, (m, n, k) = RUNGS[number], map(int, shape.split("x"))
    wanted = set()
    for tile_m, tile_n in rung.tiles.values():
        for splits in split_counts(-(-m // tile_m) * -(-n // tile_n), -(-k // rung.k_tile)):
            wanted |= {(f"{tile_m}x{tile_n}", splits, way) for way in (rung.ways if splits > 1 else ("none",))}
    assert set(times[number, shape]) == wanted


def planned(number: str, shape: str) -> Plan:
    """What the rung's program says that it would do on an H200."""
    rung = RUNGS.get(number, RUNGS["17b"])
    program = ROOT / "build/bin" / next(ROOT.glob(f"kernels/{number}_*.cu")).stem
    if not program.exists():
        pytest.skip(f"{program} is not built here")
    command = [program, "--shapes", shape, "--type", rung.type, "--explain", "--sim", "--sim-gpu", "h200"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tile = re.search(r"tiles of (\d+) x (\d+),", said)
    splits, serial = re.search(r"^(\d+) splits?(, serial)?", said, re.MULTILINE).groups()
    way = "none" if splits == "1" else "in_turn" if serial else "second_kernel"
    return f"{tile[1]}x{tile[2]}", int(splits), way


@pytest.mark.parametrize(("number", "shape"), CELLS)
def test_the_model_chooses_the_fastest_plan(number, shape, times):
    chosen, of = planned(number, shape), times[number, shape]
    fastest = min(of, key=of.get)
    if (number, shape) in NOT_IN_THE_SWEEP:
        assert chosen not in of and fastest[::2] == chosen[::2]
        assert fastest[1] == NOT_IN_THE_SWEEP[number, shape]
    else:
        assert of[chosen] <= WITHIN * of[fastest], f"{chosen} takes {of[chosen]} ms, {fastest} {of[fastest]} ms"


def test_the_chapter_says_how_often_and_how_near():
    text = " ".join(CHAPTER.read_text(encoding="utf-8").split())
    held, cells = re.search(r"In (\d+) of (\d+) pairs of product and rung, the sweep has the chosen plan", text).groups()
    assert (int(held), int(cells)) == (len(CELLS) - len(NOT_IN_THE_SWEEP), len(CELLS))
    assert "no other is over 0.5 % faster" in text
    for (number, _), slices in NOT_IN_THE_SWEEP.items():
        assert re.search(rf"\| [\d×³]+, {number} \| \d+ splits \| {slices} splits \|", text)


@pytest.mark.parametrize(("number", "shape"), [("17b", "256x256x65536"), ("17f", "3072x3072x3072")])
def test_the_chapter_says_what_the_model_chooses_there(number, shape):
    text = CHAPTER.read_text(encoding="utf-8")
    m, n, k = shape.split("x")
    product = f"{m}³" if m == n == k else f"{m}×{n}×{k}"
    assert int(re.search(rf"\| {product}, {number} \| (\d+) splits \|", text)[1]) == planned(number, shape)[1]


@pytest.mark.parametrize(("chapter", "count"), [(CHAPTER, 9), (SERIAL_CHAPTER, 2)])
def test_slices_in_the_chapters_table(chapter, count):
    text = chapter.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+)×(\d+)×(\d+) \| (17[bf]?), \w+ \| (\d+)(, serial)? \|", text, re.M)
    assert len(rows) == count
    for *sizes, number, slices, turn in rows:
        _, chosen, way = planned(number, "x".join(sizes))
        assert (chosen, way == "in_turn") == (int(slices), bool(turn)), sizes


@pytest.mark.parametrize("shape", ["16384x128x4096", "128x16384x4096", "1024x1024x1024", "2048x1024x4096", "4096x256x8192"])
def test_split_k_is_serial_only_with_the_tile_whose_kernel_does_it(shape):
    tile, _, way = planned("17b", shape)
    assert way != "in_turn" or tile == "128x128"
