"""Two results folders side by side: the table, what is outside the noise, and whether the two recordings agree."""

from pathlib import Path

import pytest
import synthetic
from synthetic import write_folder

from plots.__main__ import main
from plots.data.results import load
from plots.data.selection import PUBLISHED, tables
from plots.documents.chapters import GPU, other_recordings
from plots.tables.compare import pairs, published

RECORDED = Path(__file__).parents[2] / "bench/recorded"


def moved(**factors: float) -> list[dict[str, object]]:
    """All rows, with some columns off by a factor."""
    return [row | {name: factor * float(row[name]) for name, factor in factors.items()} for row in synthetic.all_rows()]


def changed(of: list[dict[str, object]], **cells: dict[str, object]) -> list[dict[str, object]]:
    """Rows of which some kernels' at 4096 cubed have other fields; `cells` by the kernel's number after "k"."""
    at = PUBLISHED[1]
    return [row | (cells.get(f"k{row['kernel'][:2]}", {}) if (row["m"], row["n"], row["k"]) == at else {}) for row in of]


@pytest.fixture
def folders(tmp_path):
    return write_folder(tmp_path / "first"), write_folder(tmp_path / "second", moved(ratio_clk=1.002))


def compare(folders, capsys) -> tuple[int, str]:
    status = main(["compare", *map(str, folders)])
    return status, capsys.readouterr().out


def lines(said: str) -> list[list[str]]:
    """The table's cells, a list per line, without its head."""
    return [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| ")][2:]


def test_one_line_where_nothing_is_outside_the_noise(folders, capsys):
    status, said = compare(folders, capsys)
    assert (status, said.count("\n")) == (0, 1)
    cells = len(synthetic.RATIOS) * (len(synthetic.SQUARES) + len(synthetic.OTHERS))
    assert said.startswith(
        f"None of {3 * cells} numbers outside the noise; the largest difference +0.20 % (of cuBLAS in clocks, "
    )


def test_what_is_outside_stands_sorted_beside_the_spread_of_the_rounds(folders, capsys):
    slower = {name: 0.9 * float(synthetic.row("05_float4", PUBLISHED[1])[name]) for name in ("ratio_cublas", "ratio_best")}
    faster = {"ratio_cublas": 1.2 * float(synthetic.row("07_double_buffer", PUBLISHED[1])["ratio_cublas"])}
    write_folder(folders[1], changed(synthetic.all_rows(), k05=slower, k07=faster))
    status, said = compare(folders, capsys)
    assert status == 1
    rounds = ["3.0 %", "3.0 %", "3.0 %"]  # from p10 to p90
    assert lines(said) == [
        ["07_double_buffer", "f32", "4096³", "of cuBLAS", "0.9300", "1.116", "1.200", *rounds],
        ["05_float4", "f32", "4096³", "of cuBLAS", "0.6500", "0.5850", "0.9000", *rounds],
    ]
    origin = f"{synthetic.GPU}, 2001-02-03, driver 1.2.3, CUDA 13.0, cuBLAS 13.1, commit abc1234, in {folders[0]}"
    assert said.startswith(f"A: {origin}\nB: ")
    assert said.splitlines()[-1].startswith("2 of 480 numbers outside the noise; the largest difference +20.00 % (of cuBLAS, 07_")


def test_a_slower_rung_is_told_though_cublas_is_slower_too(folders, capsys):
    slow = synthetic.row("08_warp_tiling", PUBLISHED[1])
    slow = {"gflops": 0.8 * float(slow["gflops"]), "median_ms": float(slow["median_ms"]) / 0.8}
    slow |= {"p10_ms": slow["median_ms"], "p90_ms": slow["median_ms"]}
    write_folder(folders[1], changed(synthetic.all_rows(), k08=slow))
    status, said = compare(folders, capsys)
    ((kernel, *_, what, _, _, by, _, spread, _),) = lines(said)
    assert (status, kernel, what, by, spread) == (1, "08_warp_tiling", "TFLOP/s", "0.8000", "0 %")


@pytest.mark.parametrize(("apart", "noise"), [(0.5, True), (2.0, False)])
def test_the_spread_of_sittings_is_noise_and_the_median_is_compared(tmp_path, apart, noise):
    row = synthetic.row("05_float4", PUBLISHED[1])
    spread = 0.08
    sat = [synthetic.sittings(row, [0.65 * by for by in (f - spread / 2, f, f + spread / 2)]) for f in (1, 1 + apart * spread)]
    folders = [write_folder(tmp_path / str(n), rows) for n, rows in enumerate(sat)]
    (pair,) = pairs(*(tables(load(folder)) for folder in folders), ["ratio_cublas"])
    assert (pair.first, pair.apart) == (pytest.approx(0.65), pytest.approx(apart * spread))
    assert pair.spreads[0] == pytest.approx(spread) and pair.is_noise == noise and not pair.agrees


@pytest.mark.parametrize(("factor", "agrees"), [(1.009, True), (0.991, True), (1.011, False), (0.989, False)])
def test_tensor_cores_may_lie_further_apart(tmp_path, factor, agrees):
    rows = [synthetic.tensor_row(kernel, 0.8, shape) for kernel in synthetic.TENSOR for shape in PUBLISHED]
    first = write_folder(tmp_path / "first", rows)
    second = write_folder(tmp_path / "second", [row | {"ratio_clk": factor * row["ratio_clk"]} for row in rows])
    found = pairs(tables(load(first)), tables(load(second)))
    assert {pair.agrees for pair in found if pair.column == "ratio_clk"} == {agrees}


def test_a_rung_that_is_not_right_any_more_is_told_first(folders, capsys):
    write_folder(folders[1], changed(synthetic.all_rows(), k06={"status": "wrong", "reason": "1 element"}))
    status, said = compare(folders, capsys)
    assert status == 1
    assert lines(said)[0][:6] == ["06_bank_conflict_free", "f32", "4096³", "status", "ok", "wrong"]
    assert "2 cells with another status" in said, "06 and 06b"


def test_other_conditions_are_not_compared(folders, capsys):
    write_folder(folders[1], [row | {"protocol": "steady"} for row in synthetic.all_rows()])
    assert main(["compare", *map(str, folders)]) == 2
    assert "have no cell in common" in capsys.readouterr().err


def test_folders_without_a_common_cell_are_refused(tmp_path, capsys):
    folders = [write_folder(tmp_path / str(n), [synthetic.row("01_naive", PUBLISHED[n])]) for n in (0, 1)]
    assert main(["compare", *map(str, folders)]) == 2
    assert "have no cell in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.mkdir(), "no ladder.csv in it"),
        (synthetic.write_simulation, "counted on the simulator, not timed"),
        (lambda path: synthetic.write_rows(path / "ladder.csv", [{"kernel": "x"}]), "ladder.csv:2: "),
    ],
)
def test_a_bad_folder_is_one_line_and_status_2(folders, capsys, tmp_path, make, said):
    make(tmp_path / "bad")
    assert main(["compare", str(folders[0]), str(tmp_path / "bad")]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'bad'}" in error and said in error and error.count("\n") == 1


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
    """Of the rungs up to 20; on the first of these machines, of 37. 21 to 30 have one recording, the book's."""
    first = tables(load(RECORDED / GPU))
    for other in OTHERS:
        known, fifth = load(other).facts.rungs, other.name.endswith("-fifth")
        expected = {
            (t.type, kernel, shape)
            for t in first
            for kernel in t.kernels
            if (kernel.startswith("37") if fifth else kernel in known and kernel < "21")
            for shape in PUBLISHED
        }
        assert len(expected) >= (1 if fifth else 46) * len(PUBLISHED)
        found = published(pairs(first, tables(load(other))))
        for column in ("ratio_clk", "ratio_cublas"):
            assert {(pair.type, pair.kernel, pair.shape) for pair in found if pair.column == column} == expected


@pytest.mark.skipif(len(OTHERS) < 2, reason="fewer than three machines are recorded")
def test_what_the_methodology_says_of_them():
    first = tables(load(RECORDED / GPU))
    fifth, *found = (published(pairs(first, tables(load(other)))) for other in OTHERS)  # then the fourth, the second, the third
    assert all(abs(pair.apart) < 0.006 for pair in fifth)
    for other, share, apart in zip(found, (0.89, 0.93, 0.93), (0.029, 0.016, 0.028), strict=True):  # the tensor cores, in clocks
        in_clocks = [pair for pair in other if pair.type != "f32" and pair.column == "ratio_clk"]
        assert sum(pair.agrees for pair in in_clocks) >= share * len(in_clocks)
        assert all(abs(pair.apart) < apart for pair in in_clocks)
    assert all(abs(pair.apart) < 0.02 for other in found for pair in other if pair.type == "f32")
    assert all(abs(pair.apart) < 0.064 for other in found for pair in other)
    fourth, agree, apart = ([pair.agrees for pair in other if pair.type == "f32"] for other in found)
    assert sum(agree) >= 0.95 * len(agree) and sum(fourth) >= 0.85 * len(fourth) and sum(apart) <= 0.6 * len(apart)
