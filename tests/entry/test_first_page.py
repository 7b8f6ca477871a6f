"""The first page: short, and in the order in which a reader asks. Its numbers have markers (plots readme)."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LINES = 130


def test_it_is_short():
    assert len(TEXT.splitlines()) <= LINES


def test_what_it_is_comes_first_then_the_picture_then_the_clone():
    asked = ["A course for", "](docs/img/recorded/stairs.svg)", "git clone", "./run_all.sh run 06", "## What you need"]
    asked += ["## Start here", "<!-- generated: steps f32", "<!-- generated: steps bf16", "## Where it loses", "](LICENSE)"]
    places = [TEXT.index(text) for text in asked]
    assert places == sorted(places)


def test_bank_conflicts_are_those_of_the_output_shown():
    shown = dict(re.findall(r"^(0[56])_\w+ +f32 .*? (\d+) +[\d.]+ +[\d.e-]+/[\d.e-]+  ok$", TEXT, re.MULTILINE))
    prose = " ".join(TEXT.split())
    with_conflicts, without = re.findall(r"Kernel 05 makes (\d+) bank conflicts.*? Kernel 06 .*? makes (\d+)\.", prose)[0]
    assert shown == {"05": with_conflicts, "06": without}
