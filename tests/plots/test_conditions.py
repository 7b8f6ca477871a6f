"""The chapters' tables of some rungs under other conditions, from invented rows in the harness's format."""

import pytest
import synthetic
from synthetic import OTHER, tensor_row, write_rows

from plots.__main__ import main
from plots.data.units import Shape
from plots.documents.numbers import GPU

RUNGS = {"16_epilogue": 0.78, "14_multistage": 0.72, "15_block_raster": 0.75}
LARGE, HEADLINE = Shape(16384, 16384, 4096), Shape(4096, 4096, 4096)
CONDITIONS = [(LARGE, "f32", 0), (HEADLINE, "same", 0), (HEADLINE, "same", 0.5)]


def rows(protocol):
    factor = 1 if protocol == "rounds" else 0.9
    return [
        tensor_row(kernel, of_ceiling * factor, shape) | {"out": out, "beta": beta, "protocol": protocol}
        for shape, out, beta in CONDITIONS
        for kernel, of_ceiling in RUNGS.items()
    ]


@pytest.fixture
def root(tmp_path):
    """A checkout of one chapter, nothing recorded."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/16_epilogue.md").write_text("<!-- generated: conditions 14 15 16 -->\n<!-- end generated -->\n")
    synthetic.write_program(tmp_path, synthetic.stated())
    return tmp_path


def record(root, *made, gpu=GPU):
    write_rows(root / "bench/recorded" / gpu / "conditions.csv", [row for rows in made for row in rows])


def rendered(root):
    assert main(["docs", "--root", str(root)]) == 0
    text = (root / "docs/16_epilogue.md").read_text()
    return text, [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def test_without_a_record_of_these_rungs_the_chapter_says_so(root):
    assert "*No recorded results yet.*" in rendered(root)[0]
    record(root, [row | {"kernel": "13_ldmatrix"} for row in rows("rounds")])
    assert "*No recorded results yet.*" in rendered(root)[0]


def test_a_table_per_protocol_and_a_row_per_condition(root):
    record(root, rows("rounds"), rows("steady"))
    text, lines = rendered(root)
    times, clocks = ([f"{number}: {what}" for number in (14, 15, 16)] for what in ("ms (of cuBLAS), MHz", "FLOP/clk/SM"))
    assert lines[0] == ["bf16, rounds", "results", "beta", *times, *clocks]
    assert lines[5] == ["bf16, steady", *lines[0][1:]]
    assert [line[:3] for line in lines[2:5]] == [
        ["16384×16384×4096", "f32", "0"],
        ["4096³", "bf16", "0"],
        ["4096³", "bf16", "0.5"],
    ]
    assert lines[3][3:] == ["0.318 (0.60), 1980", "0.305 (0.62), 1980", "0.294 (0.65), 1980", "1653", "1722", "1791"]
    assert lines[8][3:6] == ["0.353 (0.54), 1980", "0.339 (0.56), 1980", "0.326 (0.59), 1980"]
    assert f"Measured on {synthetic.GPU}, 2001-02-03" in text and f"`bench/recorded/{GPU}/conditions.csv`" in text


def test_the_folder_of_another_card(root):
    chapter = root / "docs/16_epilogue.md"
    record(root, rows("rounds"), gpu=OTHER)
    assert "*No recorded results yet.*" in rendered(root)[0]
    chapter.write_text(chapter.read_text().replace("14 15 16", f"14 15 16 {OTHER}"))
    text, lines = rendered(root)
    assert lines[0][0] == "bf16, rounds" and len(lines) == 5 and f"`bench/recorded/{OTHER}/conditions.csv`" in text


def test_what_was_not_timed_says_why(root):
    first, second, *others = rows("rounds")
    record(root, [first | {"status": "wrong"}, second, *others[1:]], rows("steady"))
    lines = rendered(root)[1]
    assert lines[2][4:] == ["–", "wrong", lines[2][6], "–", "–"]
