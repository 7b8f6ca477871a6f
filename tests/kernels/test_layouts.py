"""Chapter 38: what layouts cost in shared memory, and few rows. Chapter 39: what its model expects."""

import re

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, rows, run

RUNG = BIN / "38_sgemm_layouts"
LAYOUTS_16BIT = BIN / "39_layouts_16bit"
PIECES = {"tn": 0, "nn": 0, "tt": 0, "nt": 4}  # of A, per k tile of 128x256x32
FIRST_LOADS = {"tn": 2, "nn": 8, "tt": 8, "nt": 8}  # of B, before the main loop: one k step across k, four along k


@needs_simulator
def test_a_piece_takes_64_wavefronts_a_first_load_4_and_none_conflicts(tmp_path):
    """132 tiles of C, 16 k tiles each: exercise 1, with the numbers of its answer. Of each tile, 8 warps load."""
    file = tmp_path / "counts.csv"
    for layout in PIECES:
        assert run(RUNG, "--sim", "1536", "2816", "512", "--layout", layout, "--csv", file).returncode == 0
    counted = {row["layout"]: row for row in rows(file)}
    tiles = {layout: row["tile"] for layout, row in counted.items()}
    assert tiles == {"nn": "256x128x32"} | dict.fromkeys(("nt", "tn", "tt"), "128x256x32")  # nn is swapped: still 132 tiles
    assert all(row["sim_shared_wavefronts"] == row["sim_shared_ideal"] for row in counted.values())
    wavefronts = {layout: int(row["sim_shared_wavefronts"]) for layout, row in counted.items()}
    assert {layout: count - wavefronts["tn"] for layout, count in wavefronts.items()} == {
        layout: 132 * (16 * 64 * pieces + 8 * 4 * (FIRST_LOADS[layout] - FIRST_LOADS["tn"])) for layout, pieces in PIECES.items()
    }
    text = (ROOT / "docs/38_sgemm_layouts.md").read_text(encoding="utf-8")
    assert f"{wavefronts['nt'] - wavefronts['nn']:,} together" in text and f" = {wavefronts['nn'] - wavefronts['tn']:,}." in text
    assert f"The simulator counts {wavefronts['nt']:,}, {wavefronts['nn']:,} and {wavefronts['tn']:,}." in text


@needs_simulator
@pytest.mark.parametrize("shape", ["256x256x512", "1024x1024x128", "65536x64x64", "64x2048x128", "32x512x256", "16x256x512"])
def test_b_along_k_is_loaded_without_bank_conflicts(tmp_path, shape):
    """In tt nothing is transposed: all wavefronts are loads of fragments, and sums of slices."""
    file = tmp_path / "counts.csv"
    assert run(RUNG, "--sim", "--check", "off", "--shapes", shape, "--layout", "tt", "--csv", file).returncode == 0
    (row,) = rows(file)
    assert row["sim_shared_wavefronts"] == row["sim_shared_ideal"]


@needs_simulator
@pytest.mark.parametrize("layout", PIECES)
def test_few_rows_are_right_in_every_layout(layout):
    """Every M up to 8. K in one split and in many, and longer than what shared memory holds of A; N beside a strip's columns."""
    shapes = "1x1x1,1x130x2053,2x65x5,3x67x517,4x129x131,5x63x1026,6x259x1003,7x1x257,8x64x128,8x8512x1027"
    for factors in (("1", "0"), ("-1.5", "0.5")):
        options = ["--layout", layout, "--ld-pad", "align", "--alpha", factors[0], "--beta", factors[1]]
        done = run(RUNG, "--sim", "--shapes", shapes, *options)
        assert done.returncode == 0, done.stdout


@needs_simulator
@pytest.mark.parametrize("layout", PIECES)
def test_few_rows_and_few_columns_take_small_tiles(tmp_path, layout):
    """Chapter 38: 16 or 32 rows of a tile are rows of C, or, swapped, its columns. With K of 1160 several blocks sum a tile."""
    few = ["13x2244x72", "27x4228x72", "32x2244x200", "16x2244x1160"]
    swapped = ["x".join((n, m, k)) for m, n, k in (shape.split("x") for shape in few)]
    for number, factors in enumerate((("1", "0"), ("-1.5", "0.5"))):
        file = tmp_path / f"{number}.csv"
        options = ["--layout", layout, "--ld-pad", "align", "--alpha", factors[0], "--beta", factors[1], "--csv", file]
        done = run(RUNG, "--sim", "--shapes", ",".join(few + swapped), *options)
        assert done.returncode == 0, done.stdout
        for row in rows(file):
            tile = dict(zip("mn", map(int, row["tile"].split("x")), strict=False))
            assert tile["m" if int(row["m"]) < int(row["n"]) else "n"] <= 32, row["tile"]


@needs_simulator
def test_few_rows_need_fewer_instructions_along_k():
    """Chapter 38: per 8 loads of B, those along k need 8 loads of A, those across k 8 loads and 64 shuffles."""
    printed = {
        layout: run(RUNG, "--sim", "--check", "off", "8", "2048", "4096", "--layout", layout).stdout for layout in ("nn", "nt")
    }
    per_fma = {layout: float(re.search(r" ([\d.]+) +-/-  ok", text)[1]) for layout, text in printed.items()}
    assert per_fma["nt"] < per_fma["nn"]


def predicted(rung, product: str) -> tuple[str, str]:
    """The plan that a rung's model takes for a product on an H200, and its microseconds."""
    options = ["--sim", "--sim-gpu", "h200", "--explain", "--type", "bf16", "--out", "same", "--shapes", product]
    printed = run(rung, *options).stdout
    first = re.search(r"the fastest first:\n +(.+?) +([\d.]+) us:", printed)
    assert first, printed
    return first[1], first[2]


@needs_simulator
def test_39_expects_33s_times_where_it_has_33s_tile():
    """The table of chapter 39's prediction."""
    text = (ROOT / "docs/39_layouts_16bit.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d+×\d+×\d+) \| (.+?) \| ([\d.]+) \| (.+?) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(table) == 7
    for product, plan33, us33, plan39, us39, ratio in table:
        shape = product.replace("×", "x")
        assert predicted(BIN / "33_cost_model", shape) == (plan33, us33)
        assert predicted(LAYOUTS_16BIT, shape) == (plan39, us39)
        assert float(ratio) == pytest.approx(float(us33) / float(us39), abs=0.006)


@needs_simulator
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_39_is_right_in_every_layout_at_the_edges_of_boxes(kind):
    """One row less and more than a box, in each dimension."""
    shapes = "63x65x64,65x63x8,64x128x65,129x191x127,1x1x1"
    for layout in PIECES:
        options = ["--type", kind, "--layout", layout, "--ld-pad", "align", "--beta", "0.5"]
        done = run(LAYOUTS_16BIT, "--sim", "--shapes", shapes, *options)
        assert done.returncode == 0, done.stdout
