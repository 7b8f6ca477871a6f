"""Predicted against measured: what a header is read to predict, and the numbers and dots of the figure."""

from pathlib import Path

import pytest
import synthetic
from synthetic import write_folder
from test_figures import assert_legible

from plots.__main__ import main
from plots.data.expectations import Expectation, expected, field
from plots.data.results import load
from plots.data.selection import tables
from plots.data.units import Shape
from plots.documents.chapters import GPU
from plots.figures import predicted, style

ROOT = Path(__file__).parents[2]


def header(text):
    """A header with a field Expect of this text, broken into lines."""
    words, lines = text.split(), [""]
    for word in words:
        lines[-1] = f"{lines[-1]} {word}".strip()
        if len(lines[-1]) > 60:
            lines.append("")
    first, *more = [line for line in lines if line]
    rest = "".join(f"//                   {line}\n" for line in more)
    return (
        f"// 07_x · y\n//\n// Idea              9 times 01\n// Expect            {first}\n{rest}// Limiter now       3 times 02\n"
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1.23 times 06, 1.10 of cuBLAS at most: 06 stands still", Expectation(("1.23",), "06", False, "f32")),
        ("0.16 of cuBLAS at most: every FMA needs two loads", Expectation(("0.16",), "", True, "f32")),
        ("0.77 of cuBLAS (03: 0.44)", Expectation(("0.77",), "", False, "f32")),
        (
            "0.86 of cuBLAS at most: 1.15 times 04 by this, 1.10 times 04 by that",
            Expectation(("1.10", "1.15"), "04", False, "f32"),
        ),
        (
            "1.0 times 09b: the same wavefronts, and then some more words than one line has",
            Expectation(("1.0",), "09b", False, "f32"),
        ),
        (
            "with 16-bit results a quarter of the stores: 1.02 times 15. With FP32 the same",
            Expectation(("1.02",), "15", False, "same"),
        ),
        ("16-bit results gain nothing. 2 times 15", Expectation(("2",), "15", False, "f32")),
        (
            "128 x 4096 x 4096 in BF16: 3.2 times 16. 64 x 64 x 64 too",
            Expectation(("3.2",), "16", False, "f32", Shape(128, 4096, 4096)),
        ),
        ("64 x 64 x 64 stands still. 1.1 times 06", Expectation(("1.1",), "06", False, "f32")),
        (
            "25 multiplies for 16,400 of 19,200 clocks per tile at 8192x8192x1024; here the epilogue hides: 1.17 times 25",
            Expectation(("1.17",), "25", False, "f32", Shape(8192, 8192, 1024)),
        ),
        (
            "2048 cubed has 88 tiles of 128x192 for 66 clusters; 64 of 128x256 are one wave: 1.4 times 26",
            Expectation(("1.4",), "26", False, "f32", Shape(2048, 2048, 2048)),
        ),
        (
            "At 4096 x 4096 x 4096 the model says 1.90; of that power takes 3 %, 1.8 times 33",
            Expectation(("1.8",), "33", False, "f32"),
        ),
        ("a little more than before", None),
    ],
)
def test_what_a_header_predicts(text, want):
    assert expected(header(text)) == want
    assert field(header(text)) == text, "the field alone, in one line"


def test_without_the_field_nothing_is_predicted():
    assert field("int x;\n") == "" and expected("// 2 times 01\n") is None


@pytest.mark.parametrize("source", sorted((ROOT / "kernels").glob("*.cu")), ids=lambda path: path.stem)
def test_every_rung_of_the_repository_has_a_prediction_where_it_can_be_measured(source):
    text = source.read_text(encoding="utf-8")
    assert (expected(text) is None) == ('.arch = "sm_100a"' in text)


EXPECTED = {
    "01_naive": Expectation(("0.16",), "", True, "f32"),
    "06_bank_conflict_free": Expectation(("1.30",), "05", False, "f32"),
    "07_double_buffer": Expectation(("1.10", "1.25"), "06", False, "f32"),
}


@pytest.fixture
def found(table):
    return predicted.outcomes([table], [], EXPECTED)


def test_the_measured_number_is_of_what_the_header_names(found):
    ratios = synthetic.RATIOS
    assert [outcome.kernel for outcome in found] == list(EXPECTED), "rungs without a prediction have no line"
    assert found[0].measured == pytest.approx(ratios["01_naive"]), "of cuBLAS"
    assert found[1].measured == pytest.approx(ratios["06_bank_conflict_free"] / ratios["05_float4"])
    assert found[2].reached == pytest.approx((0.93 / 0.78 / 1.25, 0.93 / 0.78 / 1.10))


def test_a_prediction_for_16_bit_results_is_held_to_them(tmp_path):
    def recorded(name, rows):
        return tables(load(write_folder(tmp_path / name, rows)))

    factors = {"15_block_raster": 0.8, "16_epilogue": 0.82}
    size = predicted.HEADLINE
    ladder = recorded("ladder", [synthetic.tensor_row(kernel, factor, size) for kernel, factor in factors.items()])
    other = [synthetic.tensor_row(kernel, factor, size) | {"out": "same"} for kernel, factor in factors.items()]
    other[1] |= {"flop_clk_sm": 2 * float(other[0]["flop_clk_sm"])}
    expectation = {"16_epilogue": Expectation(("1.02",), "15", False, "same")}
    (outcome,) = predicted.outcomes(ladder, recorded("other", other), expectation)
    assert outcome.measured == pytest.approx(2)
    (outcome,) = predicted.outcomes(ladder, [], expectation)
    assert outcome.measured == pytest.approx(0.82 / 0.8), "where none were recorded, the ladder's"


def test_a_prediction_for_another_shape_is_held_to_it(tmp_path, monkeypatch):
    shape = Shape(128, 4096, 4096)
    factors = {"15_block_raster": 0.2, "16_epilogue": 0.7}
    rows = [synthetic.tensor_row(kernel, 0.8, predicted.HEADLINE) for kernel in factors]
    rows += [synthetic.tensor_row(kernel, factor, shape) for kernel, factor in factors.items()]
    expectations = {
        "15_block_raster": Expectation(("0.8",), "", False, "f32"),
        "16_epilogue": Expectation(("3.2",), "15", False, "f32", shape),
    }
    found = predicted.outcomes(tables(load(write_folder(tmp_path, rows))), [], expectations)
    assert [outcome.measured for outcome in found] == pytest.approx([0.8 / 1.2, 3.5])
    fig = predicted.draw(found)
    assert_legible(fig, monkeypatch)
    svg = style.svg(fig)
    assert ">3.50 †<" in svg and f">† not at {predicted.HEADLINE} but at {shape} (16)<" in svg


def test_a_prediction_for_a_shape_without_a_number_is_no_dot(tmp_path):
    """It is never held to 4096 cubed instead."""
    rows = [synthetic.tensor_row(kernel, 0.8, predicted.HEADLINE) for kernel in ("15_block_raster", "16_epilogue")]
    expectations = {"16_epilogue": Expectation(("3.2",), "15", False, "f32", Shape(1024, 1024, 1024))}
    assert predicted.outcomes(tables(load(write_folder(tmp_path, rows))), [], expectations) == []


def test_the_figure_shows_every_prediction(found, monkeypatch):
    fig = predicted.draw(found)
    assert_legible(fig, monkeypatch)
    svg = style.svg(fig)
    for text in ("≤ 0.16 of cuBLAS", "1.30 × 05", "1.10–1.25 × 06", "0.120", "1.20", "1.19", *EXPECTED):
        assert f">{text}<" in svg
    dots = [line for line in fig.axes[0].get_lines() if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == pytest.approx([outcome.reached[0] for outcome in found])
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [True, False, False], "a bound is hollow"


def test_the_committed_figure_follows_the_headers(tmp_path, capsys):
    write_folder(tmp_path / "bench/recorded" / GPU)
    synthetic.write_program(tmp_path, synthetic.stated())
    kernel = tmp_path / "kernels/07_double_buffer.cu"
    kernel.parent.mkdir()
    kernel.write_text(header("1.23 times 06"))
    assert main(["recorded", "--root", str(tmp_path)]) == 0
    assert ">1.23 × 06<" in (tmp_path / "docs/img/recorded/predicted.svg").read_text()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 0
    kernel.write_text(header("1.24 times 06"))
    capsys.readouterr()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == "stale: docs/img/recorded/predicted.svg\n"
