"""The picture to share: one card, one ladder, and a title that says what holds."""

import pytest
import synthetic
from matplotlib.image import imread
from synthetic import row, write_folder
from test_figures import assert_legible, drawn_texts, two_units

from plots.__main__ import main
from plots.data.results import load
from plots.data.selection import tables
from plots.data.units import Shape, ratio, tflops
from plots.figures import share

SIZE = Shape(4096, 4096, 4096)
VERSIONS = {"driver": "1.2.3", "CUDA": "13.0", "cuBLAS": "13.1"}


def draw(table):
    return share.draw(table, synthetic.GPU, VERSIONS)


def test_it_says_what_was_measured_on_what_how_and_when(table, monkeypatch):
    fig = draw(table)
    assert_legible(fig, monkeypatch)
    said = " ".join(text.replace("\n", " ") for text, _ in drawn_texts(fig, monkeypatch))
    assert f"08_warp_tiling runs at 1.01 of cuBLAS in FP32 at 4096³ on {synthetic.GPU}" in said
    assert (
        "FP32 operands, FP32 results, alpha 1, beta 0, normal data, cold L2, rounds protocol: a rung and cuBLAS in turn" in said
    )
    assert "driver 1.2.3, CUDA 13.0, cuBLAS 13.1." in said and "GEMM Ladder, 2001-02-03" in said
    for kernel, factor in synthetic.RATIOS.items():
        assert f"{kernel} " in said and f"{ratio(factor)} " in said and tflops(float(row(kernel, SIZE)["gflops"])) in said


def test_bars_are_the_shares_of_cublas(table):
    bars = draw(table).axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx(list(synthetic.RATIOS.values()))


def test_sittings_give_their_range_in_the_title(tmp_path, monkeypatch):
    rows = [*synthetic.sittings(row("05_float4", SIZE), [0.64, 0.65, 0.67]), row("01_naive", SIZE)]
    (table,) = tables(load(write_folder(tmp_path, rows)))
    fig = draw(table)
    assert_legible(fig, monkeypatch)
    assert share.title(table, "a card") == "05_float4 runs at 0.650 (0.640–0.670) of cuBLAS in FP32 at 4096³ on a card"
    assert "median of 3 sittings" in share.protocol(table, {})


def test_the_longest_ladder_is_chosen_and_its_own_protocol_told(tmp_path):
    steady = [r | {"protocol": "steady", "out": "same"} for r in two_units()]
    f32, bf16 = tables(load(write_folder(tmp_path, [row("01_naive", SIZE), *steady])))
    assert share.chosen([f32, bf16]) is bf16
    assert share.title(bf16, "a card").startswith(f"{synthetic.WGMMA} runs at ")
    said = share.protocol(bf16, {})
    assert said.startswith("BF16 operands, BF16 results") and "steady protocol: blocks of a rung and of cuBLAS in turn" in said


def test_many_rungs_and_few_fit(tmp_path, monkeypatch):
    stems = [*synthetic.RATIOS, *synthetic.TENSOR, synthetic.WGMMA]
    many = [row("08_warp_tiling", SIZE) | {"kernel": f"{place:02}_{stem[3:]}"} for place, stem in enumerate(2 * stems, 1)]
    for name, rows in (("many", many), ("one", [row("01_naive", SIZE)])):
        (table,) = tables(load(write_folder(tmp_path / name, rows)))
        assert_legible(draw(table), monkeypatch)


def test_a_long_name_of_a_card_fits(table, monkeypatch):
    assert_legible(share.draw(table, "NVIDIA GeForce RTX 4090 Laptop GPU with a long name", VERSIONS), monkeypatch)


def test_the_report_writes_it_where_there_is_a_ratio(folder, tmp_path, capsys):
    assert main(["report", "--results", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert f"{tmp_path}/out/share.png" in capsys.readouterr().out
    high, wide, _ = imread(tmp_path / "out/share.png").shape
    assert (wide, high) == tuple(int(inches * share.DPI) for inches in share.SIZE)
    without = write_folder(tmp_path / "without", [r | {"ratio_cublas": ""} for r in synthetic.all_rows()])
    assert main(["report", "--results", str(without), "--out", str(tmp_path / "none")]) == 0
    assert not (tmp_path / "none/share.png").exists()
