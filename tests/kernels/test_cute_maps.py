"""CuTe's layouts in 19 and 20 are the hand-written maps of 10, 12 and 13: what both programs print is compared."""

import csv
import re

import pytest

from tests.checkout import BIN, ROOT, run


def printed(program: str) -> dict[tuple[str, str], set[tuple[str, ...]]]:
    """By map and rung, the lines from the thread on."""
    text = run(BIN / program).stdout
    maps: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for row in csv.reader(line for line in text.splitlines()[1:] if not line.startswith("#")):
        maps.setdefault((row[0], row[1]), set()).add(tuple(row[2:]))
    return maps


@pytest.fixture(scope="module")
def cute():
    if not (BIN / "cute_maps").exists():
        pytest.skip("needs CUTLASS's headers")
    return printed("cute_maps")


@pytest.fixture(scope="module")
def ours():
    return printed("maps")


def test_the_figures_are_drawn_of_what_cute_says(cute):
    """bench/cute_maps.csv has all that the program prints but the map C."""
    text = run(BIN / "cute_maps").stdout
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("C,"))
    assert kept == (ROOT / "bench/cute_maps.csv").read_text(), "build/bin/cute_maps | grep -v ^C, >bench/cute_maps.csv"


def test_swizzle_3_3_3_is_the_128_byte_swizzle(cute, ours):
    assert cute["row_place", "20"] == ours["row_place", "12"]


@pytest.mark.parametrize("matrix", "abc")
def test_the_atom_knows_the_fragments(matrix, cute, ours):
    assert cute[matrix, "cute"] == ours[matrix, "16bit"]


def test_ldmatrix_of_a_is_that_of_13(cute, ours):
    assert cute["ldsm_a", "20"] == ours["ldsm_a", "13"]


def test_ldmatrix_of_b_has_the_columns_of_a_warp_16_apart(cute, ours):
    """Two warps take turns of 8 columns, so the second 8 of a warp begin at 16 instead of 8."""
    moved = {(lane, str(int(row) + 8 * (int(row) >= 8)), *rest) for lane, row, *rest in ours["ldsm_b", "13"]}
    assert cute["ldsm_b", "20"] == moved


@pytest.mark.parametrize(("rung", "rows"), [("19", 128), ("20", 256)])
def test_every_result_has_one_thread(rung, rows, cute):
    places = {(int(row), int(col)) for _, row, col, *_ in cute["C", rung]}
    assert len(cute["C", rung]) == len(places) == rows * 128
    assert places == {(row, col) for row in range(rows) for col in range(128)}


@pytest.mark.parametrize(("chapter", "count"), [("19_cute_simple", 1), ("20_cute_multistage", 1)])
def test_the_layouts_in_a_chapter_are_those_that_cute_prints(chapter, count):
    known = (ROOT / "bench/cute_maps.csv").read_text(encoding="utf-8").splitlines()
    quoted = re.findall(r"```text\n(.*?)```", (ROOT / f"docs/{chapter}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [f"# {line}" in known for block in quoted for line in block.splitlines()] == [True] * count
