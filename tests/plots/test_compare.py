"""Two results folders side by side: the table, what is outside the noise, and whether the two recordings agree."""

from pathlib import Path

import pytest
import synthetic
from synthetic import write_folder

from plots.__main__ import main
from plots.data.results import load
from plots.data.selection import PUBLISHED, tables
from plots.documents.chapters import GPU, other_recordings
from plots.tables.compare import pairs

RECORDED = Path(__file__).parents[2] / "bench/recorded"


def moved(**factors: float) -> list[dict[str, object]]:
    """All rows, with some columns off by a factor."""
    return [row | {name: factor * float(row[name]) for name, factor in factors.items()} for row in synthetic.all_rows()]


@pytest.fixture
def folders(tmp_path):
    return write_folder(tmp_path / "first"), write_folder(tmp_path / "second", moved(ratio_clk=1.002))


def compare(folders, capsys) -> tuple[int, str]:
    status = main(["compare", *map(str, folders)])
    return status, capsys.readouterr().out


def test_both_values_their_difference_and_the_largest_at_the_end(folders, capsys):
    status, said = compare(folders, capsys)
    assert status == 0
    assert said.count("| 4096³ |") == said.count("| 8192³ |") == len(synthetic.RATIOS) and "1024³" not in said
    assert "| 08_warp_tiling | 4096³ | 0.9999 | 1.0019 | +0.20 % | 1.0100 | 1.0100 | +0.00 % |" in said
    last = said.splitlines()[-1]
    assert last.startswith("Largest differences: of cuBLAS in clocks +0.20 % (f32, ") and "; 0.3 % allowed)" in last
    assert last.endswith("None of 60 outside the noise.")


def test_what_is_outside_the_noise_is_bold_and_status_1(folders, capsys):
    write_folder(folders[1], moved(ratio_cublas=0.996))
    status, said = compare(folders, capsys)
    assert status == 1
    assert said.count("**-0.40 %**") == 3 * len(synthetic.RATIOS) and "**+0.00 %**" not in said
    assert said.splitlines()[-1].endswith("30 of 60 outside the noise.")


@pytest.mark.parametrize(("factor", "noise"), [(1.009, True), (0.991, True), (1.011, False), (0.989, False)])
def test_tensor_cores_may_lie_further_apart(tmp_path, factor, noise):
    rows = [synthetic.tensor_row(kernel, 0.8, shape) for kernel in synthetic.TENSOR for shape in PUBLISHED]
    first = write_folder(tmp_path / "first", rows)
    second = write_folder(tmp_path / "second", [row | {"ratio_clk": factor * row["ratio_clk"]} for row in rows])
    found = pairs(tables(load(first)), tables(load(second)))
    assert {pair.is_noise for pair in found if pair.column == "ratio_clk"} == {noise}


def test_the_median_over_sittings_is_compared(tmp_path, capsys):
    rows = synthetic.sittings(synthetic.row("05_float4", PUBLISHED[1]), [0.6, 0.65, 0.7])
    folders = write_folder(tmp_path / "first"), write_folder(tmp_path / "second", rows)
    assert "| 05_float4 | 4096³ | 0.6435 | 0.6435 | +0.00 % | 0.6500 | 0.6500 | +0.00 % |" in compare(folders, capsys)[1]


def test_folders_without_a_common_cell_are_refused(tmp_path, capsys):
    folders = [write_folder(tmp_path / str(n), [synthetic.row("01_naive", PUBLISHED[n])]) for n in (0, 1)]
    assert main(["compare", *map(str, folders)]) == 2
    assert "have no cell in common" in capsys.readouterr().err


def test_the_chapter_counts_what_agrees(tmp_path):
    page = tmp_path / "docs/methodology.md"
    page.parent.mkdir()
    page.write_text("<!-- generated: compared -->\n<!-- end generated -->\n")
    synthetic.write_program(tmp_path, synthetic.stated())
    write_folder(tmp_path / "bench/recorded" / GPU)
    assert main(["docs", "--root", str(tmp_path)]) == 0 and "*No second recording yet.*" in page.read_text()
    write_folder(tmp_path / "bench/recorded" / f"{GPU}-second")
    write_folder(tmp_path / "bench/recorded" / f"{GPU}-third", moved(ratio_clk=1.004))
    assert main(["docs", "--root", str(tmp_path)]) == 0
    text = page.read_text()
    assert "| beside card 01234567 | card 01234567 | card 01234567 |" in text
    clocks = next(line for line in text.splitlines() if line.startswith("| FP32, of cuBLAS in clocks: within 0.3 % |"))
    assert "| 30 of 30; at most +0.00 %" in clocks and "| 0 of 30; at most +0.40 %" in clocks
    assert f"recorded in `bench/recorded/{GPU}-third/`" in text


OTHERS = other_recordings(RECORDED.parents[1])


@pytest.mark.skipif(not OTHERS, reason=f"{RECORDED} holds no recording of another machine yet")
def test_every_published_cell_was_recorded_on_each_machine():
    """Of the rungs that there were when the machine was recorded, up to 20: later ones have one recording, the book's."""
    first = tables(load(RECORDED / GPU))
    for other in OTHERS:
        known = load(other).facts.rungs
        expected = {
            (t.type, kernel, shape)
            for t in first
            for kernel in t.kernels
            if kernel in known and kernel < "21"
            for shape in PUBLISHED
        }
        assert len(expected) >= 46 * len(PUBLISHED)
        found = pairs(first, tables(load(other)))
        for column in ("ratio_clk", "ratio_cublas"):
            assert {(pair.type, pair.kernel, pair.shape) for pair in found if pair.column == column} == expected


@pytest.mark.skipif(len(OTHERS) < 2, reason="fewer than three machines are recorded")
def test_what_the_methodology_says_of_them():
    first = tables(load(RECORDED / GPU))
    found = [pairs(first, tables(load(other))) for other in OTHERS]  # the fourth, the second, the third
    for other, share, apart in zip(found, (0.92, 0.95, 0.95), (0.033, 0.025, 0.025), strict=True):  # the tensor cores, in clocks
        in_clocks = [pair for pair in other if pair.type != "f32" and pair.column == "ratio_clk"]
        assert sum(pair.is_noise for pair in in_clocks) >= share * len(in_clocks)
        assert all(abs(pair.apart) < apart for pair in in_clocks)
    assert all(abs(pair.apart) < 0.018 for other in found for pair in other if pair.type == "f32")
    assert all(abs(pair.apart) < 0.053 for other in found for pair in other)
    fourth, agree, apart = ([pair.is_noise for pair in other if pair.type == "f32"] for other in found)
    assert sum(agree) >= 0.95 * len(agree) and sum(fourth) >= 0.85 * len(fourth) and sum(apart) < 0.6 * len(apart)
