"""Chapters 19 and 20 set each line of CuTe beside the lines by hand: both stand in the sources."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = "| CuTe, {} | by hand | in |"


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def source(number: str) -> str:
    (path,) = (ROOT / "kernels").glob(f"{number}_*.cu")
    return one_line(path.read_text(encoding="utf-8"))


def table(number: str) -> list[list[str]]:
    (path,) = (ROOT / "docs").glob(f"{number}_*.md")
    lines = path.read_text(encoding="utf-8").splitlines()
    first = lines.index(HEAD.format(number)) + 2
    last = next(place for place in range(first, len(lines)) if not lines[place].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[first:last]]


@pytest.mark.parametrize("number", ["19", "20"])
def test_both_sides_stand_in_the_sources(number):
    compared = table(number)
    assert len(compared) >= 10
    for in_cute, by_hand, where in compared:
        for code, rung in ((in_cute, number), (by_hand, where)):
            (quoted,) = re.fullmatch(r"`([^`]+)`", code).groups()
            assert one_line(quoted) in source(rung), f"{rung}: {quoted}"


def test_20_says_how_long_both_kernels_are():
    """Lines of code: neither empty nor a comment."""
    chapter = (ROOT / "docs/20_cute_multistage.md").read_text(encoding="utf-8")
    stated = re.search(r"20 has (\d+) lines of code, 16 has (\d+)", chapter).groups()
    for number, lines in zip(("20", "16"), stated, strict=True):
        (path,) = (ROOT / "kernels").glob(f"{number}_*.cu")
        code = [line for line in path.read_text(encoding="utf-8").splitlines() if not re.match(r"\s*(//.*)?$", line)]
        assert len(code) == int(lines)
