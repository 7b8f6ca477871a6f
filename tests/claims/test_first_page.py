"""The first page: short, in the order in which a reader asks, and with the recorded numbers."""

import re

import pytest
from recorded import ROOT, agrees, cell, rows

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(TEXT.split())
LINES = 120


def test_it_is_short():
    assert len(TEXT.splitlines()) <= LINES


def test_what_it_is_comes_first_then_the_picture_then_the_clone():
    asked = ["A course for", "](docs/img/recorded/stairs.svg)", "git clone", "./run_all.sh run 06", "## What you need"]
    asked += ["## Start here", "<!-- generated: steps f32", "<!-- generated: steps bf16", "## Where it loses", "](LICENSE)"]
    places = [TEXT.index(text) for text in asked]
    assert places == sorted(places)


@pytest.mark.parametrize(("pattern", "type", "number"), [("FP32 kernel", "f32", "27"), ("tensor cores", "bf16", "26")])
def test_where_the_last_rungs_stand(pattern, type, number):
    found = re.findall(rf"{pattern} runs at ([\d.]+) times the speed of cuBLAS at 4096³ and ([\d.]+) times at 8192³", PROSE)
    (shares,) = found
    for share, size in zip(shares, (4096, 8192), strict=True):
        assert agrees(share, cell(type, number, size, "ratio_cublas"))


def test_bank_conflicts_are_those_of_the_output_shown():
    shown = dict(re.findall(r"^(0[56])_\w+ +f32 .*? (\d+) +[\d.]+ +[\d.e-]+/[\d.e-]+  ok$", TEXT, re.MULTILINE))
    with_conflicts, without = re.findall(r"Kernel 05 makes (\d+) bank conflicts.*? Kernel 06 .*? makes (\d+)\.", PROSE)[0]
    assert shown == {"05": with_conflicts, "06": without}


def test_the_shapes_of_the_map_are_counted():
    shapes = {(row["m"], row["n"], row["k"]) for row in rows("map.csv")}
    for page in ("README.md", "docs/results.md"):
        (counted,) = re.findall(r"over (\d+) shapes", (ROOT / page).read_text(encoding="utf-8"))
        assert int(counted) == len(shapes)
