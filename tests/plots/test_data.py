import csv

import pandas.testing
import pytest
import synthetic
from synthetic import HEADER, row, write_folder, write_rows

from plots.data.results import COLUMNS, COUNTERS, NEWER, is_simulation, load, load_simulation, read_rows
from plots.data.selection import tables
from plots.data.units import Shape
from plots.errors import InputError
from tests.checkout import LADDER, needs_simulator, run

SIZE = Shape(4096, 4096, 4096)


@needs_simulator
def test_the_harness_writes_the_columns_that_are_read(tmp_path):
    file = tmp_path / "check.csv"
    run(LADDER, "--sim", "--kernels", "01", "16", "16", "16", "--csv", file)
    with file.open(newline="") as lines:
        assert {*COLUMNS, *NEWER} <= set(next(csv.reader(lines)))
    assert set(read_rows(file, [])["kernel"]) == {"01_naive"}


def test_columns_may_stand_in_any_order_and_beside_others(folder):
    path = folder / "ladder.csv"
    before = load(folder).ladder
    with path.open(newline="") as lines:
        records = [[*reversed(record), "x"] for record in csv.reader(lines)]
    path.write_text("".join(",".join(record) + "\n" for record in records))
    pandas.testing.assert_frame_equal(load(folder).ladder, before)


def test_every_number_comes_back(folder):
    frame = read_rows(folder / "ladder.csv", [])
    assert len(frame) == len(synthetic.all_rows())
    written = row("05_float4", SIZE)
    read = frame[(frame["kernel"] == "05_float4") & (frame["shape"] == SIZE)].iloc[0]
    assert read["gflops"] == written["gflops"]
    assert read["ratio_cublas"] == written["ratio_cublas"]


def test_the_latest_of_two_rows_of_a_cell_wins_wherever_it_stands(tmp_path):
    new = row("01_naive", SIZE, utc="2001-02-04T00:00:00Z", ratio_cublas=0.2)
    old = row("01_naive", SIZE, utc="2001-02-03T00:00:00Z", ratio_cublas=0.1)
    for rows in ([new, old], [old, new]):
        assert read_rows(write_rows(tmp_path / "l.csv", rows), [])["ratio_cublas"].tolist() == [0.2]


def test_rows_under_other_conditions_are_counted_not_mixed(tmp_path):
    rows = [*synthetic.all_rows(), row("01_naive", SIZE, l2="warm", gflops=1.0)]
    table = tables(load(write_folder(tmp_path, rows)))[0]
    assert table.left_out == 1
    assert table.value("01_naive", SIZE) == row("01_naive", SIZE)["gflops"]


def test_the_layouts_of_a_product_are_told_apart(tmp_path):
    """A rung that takes any layout has a row for each; tables show the one that it is listed with, or the only one there is."""
    rates = {"nn": 2.0, "tn": 1.0, "nt": 3.0}
    layouts = [row("08_warp_tiling", SIZE, layout=layout, gflops=rate) for layout, rate in rates.items()]
    own = row("01_naive", SIZE)
    both = tables(load(write_folder(tmp_path / "both", [own, *layouts])))[0]
    assert both.left_out == 2 and both.value("08_warp_tiling", SIZE) == 2.0 and "layout" not in str(both.condition)
    one = tables(load(write_folder(tmp_path / "one", layouts[1:2])))[0]
    assert one.value("08_warp_tiling", SIZE) == 1.0 and "layout tn" in str(one.condition)


def test_epilogues_are_told_apart_and_older_files_have_none(tmp_path):
    rows = [row("01_naive", SIZE), row("01_naive", SIZE, epilogue="bias,gelu", gflops=1.0)]
    table = tables(load(write_folder(tmp_path / "both", rows)))[0]
    assert table.left_out == 1 and table.condition.epilogue == "none" and "epilogue" not in str(table.condition)
    older = tables(load(write_folder(tmp_path / "older", [row("01_naive", SIZE, epilogue="")])))[0]
    assert older.condition == table.condition


def test_scales_are_told_apart(tmp_path):
    """A product with scales and one without are two cells, and a table shows those that most rungs have."""
    rates = {"none": 2.0, "rows": 1.0}
    both = [row("08_warp_tiling", SIZE, scales=scales, gflops=rate) for scales, rate in rates.items()]
    (table,) = tables(load(write_folder(tmp_path / "both", both)))
    assert table.left_out == 1 and table.value("08_warp_tiling", SIZE) == 2.0 and "scales" not in str(table.condition)
    (table,) = tables(load(write_folder(tmp_path / "one", both[1:])))
    assert table.value("08_warp_tiling", SIZE) == 1.0 and "scales per row" in str(table.condition)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kernel,type", "kernel,kind", ":1: no column type"),
        ("gflops,cublas_ms,cublas_gflops", "g,cublas_ms,c", ":1: no column gflops, cublas_gflops"),
        ("f32,f32,none,256", "f32,f32,none,", ":2: m is not a positive whole number: ''"),
        (",ok,", ",fine,", ":2: status is 'fine'"),
        (",128,16384,", ",many,16384,", ":2: registers is not a number: 'many'"),
        (",abc1234,", ",", f":2: {len(HEADER) - 1} fields, the header has {len(HEADER)}"),
        ("01_naive,", "naive,", ":2: kernel does not start with a rung's number: 'naive'"),
    ],
)
def test_a_bad_line_is_named(folder, old, new, said):
    path = folder / "ladder.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load(folder)
    assert f"{path}{said}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("absent", [COUNTERS, ["flop_clk_sm"], ["ratio_clk", "sitting"], NEWER])
def test_a_file_from_before_there_were_some_columns_is_read(folder, absent):
    path = folder / "ladder.csv"
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name not in absent], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    results = load(folder)
    assert len(results.ladder) == len(synthetic.all_rows()) and set(results.ladder["max_error"]) == {1.2e-7}
    unknown = results.ladder[[name for name in absent if name not in ("sitting", "scales", "epilogue")]]
    assert (unknown.isna() | (unknown == "")).all(axis=None)
    assert set(results.ladder["sitting"]) == {1} and set(results.ladder["scales"]) == {"none"}
    assert set(results.ladder["epilogue"]) == {"none"}
    assert tables(results)[0].knows("flop_clk_sm") == ("flop_clk_sm" not in absent)


def test_a_cell_is_the_median_of_its_sittings(tmp_path):
    ratios = [0.1, 0.13, 0.11, 0.125, 0.12]
    (table,) = tables(load(write_folder(tmp_path, synthetic.sittings(row("01_naive", SIZE), ratios))))
    assert table.sittings == 5 and table.value("01_naive", SIZE, "ratio_cublas") == pytest.approx(0.12)
    assert table.numbers("01_naive", SIZE, "ratio_cublas") == pytest.approx(ratios)
    assert table.value("01_naive", SIZE) == pytest.approx(row("01_naive", SIZE)["gflops"])


def test_a_cell_that_was_wrong_in_one_sitting_has_no_number(tmp_path):
    first, *others = synthetic.sittings(row("01_naive", SIZE), [0.12, 0.121, 0.122])
    rows = [first | {"status": "wrong"}, *others, row("02_smem_tiling", SIZE)]
    (table,) = tables(load(write_folder(tmp_path, rows)))
    assert table.cells["01_naive", SIZE].status == "wrong" and table.numbers("01_naive", SIZE, "gflops") == []


def test_a_folder_of_the_simulator_is_told_from_one_of_a_gpu(folder, tmp_path):
    simulated = synthetic.write_simulation(tmp_path / "simulated")
    assert is_simulation(simulated) and not is_simulation(folder)
    simulation = load_simulation(simulated)
    assert simulation.gpu == synthetic.SIMULATOR
    assert simulation.counts["median_ms"].isna().all() and len(simulation.counts) == 2 * len(synthetic.RATIOS)


def test_rows_of_two_gpus_are_refused(tmp_path):
    with pytest.raises(InputError, match="rows from 2 GPUs"):
        load(write_folder(tmp_path, [row("01_naive", SIZE), row("02_smem_tiling", SIZE, gpu="Other")]))


def test_a_cut_off_last_line_is_left_out_and_noted(folder):
    path = folder / "ladder.csv"
    path.write_text(path.read_text()[:-30])
    results = load(folder)
    assert len(results.ladder) == len(synthetic.all_rows()) - 1
    assert any("cut off" in note for note in results.notes)


def test_gflops_that_contradict_the_time_are_noted(tmp_path):
    results = load(write_folder(tmp_path, [row("01_naive", SIZE, gflops=1e5)]))
    assert any("2·M·N·K / median_ms in 1 rows" in note for note in results.notes)


def test_good_rows_raise_no_note(results):
    assert results.notes == []


def test_a_bad_ceiling_is_named(folder):
    path = folder / "ceilings.csv"
    path.write_text(path.read_text().replace("3970", "-3970"))
    with pytest.raises(InputError, match=r"ceilings.csv:3: value is not a positive number: '-3970'"):
        load(folder)


def test_cutlass_is_a_baseline_where_it_was_measured(tmp_path):
    rows = [row("01_naive", SIZE), row("02_smem_tiling", SIZE)]
    (table,) = tables(load(write_folder(tmp_path / "without", rows)))
    assert list(table.baselines) == ["cuBLAS", "cuBLASLt"]
    with_it = [r | {"cutlass_gflops": 48_000 + i, "ratio_cutlass": 0.2} for i, r in enumerate(rows)]
    (table,) = tables(load(write_folder(tmp_path / "with", with_it)))
    assert list(table.baselines) == ["cuBLAS", "cuBLASLt", "CUTLASS"]
    assert table.span("CUTLASS", SIZE) == (48_000, 48_000.5, 48_001)
