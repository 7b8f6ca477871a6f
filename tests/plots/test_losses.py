"""What takes a rung's peak away: of invented rows, to be computed by hand, and of the recorded ones."""

import json
from pathlib import Path

import pytest
import synthetic
from synthetic import SMS, row, write_rows
from test_figures import assert_legible, drawn_texts
from test_profiled import write

from plots.__main__ import main
from plots.data.losses import (
    CASES,
    CEILING,
    CLOCK,
    INSTRUCTIONS,
    REST,
    SHARES,
    WAVES,
    read,
    wave_efficiency,
    waves_needed,
)
from plots.data.results import load
from plots.data.units import Shape
from plots.documents.numbers import GPU
from plots.figures import losses as figure
from plots.figures import style
from plots.tables import losses

RECORDED = Path(__file__).parents[2] / "bench/recorded" / GPU
MHZ = 1500
RATES = {"08_warp_tiling": 40_000.0, "33_cost_model": 600_000.0}


def stated():
    """The synthetic facts, and a rung 33."""
    facts = synthetic.stated()
    last = next(rung for rung in facts["rungs"] if rung["stem"] == synthetic.WGMMA)
    return facts | {"rungs": [*facts["rungs"], last | {"number": "33", "name": "cost_model", "stem": "33_cost_model"}]}


@pytest.fixture
def folder(tmp_path):
    """Recorded: 08 and 33 in the steady protocol, each with four waves of 132 tiles, of which 512 are there."""
    folder = synthetic.write_folder(tmp_path / "bench/recorded" / GPU)
    made = []
    for (kernel, rate), tile in zip(RATES.items(), ("128x256x8", "128x256x64"), strict=True):
        shape = Shape(4096, 4096, 4096)
        of = {"kernel": kernel, "gflops": rate, "median_ms": shape.flop / rate / 1e6, "clock_mhz": MHZ, "tile": tile}
        kind = {"type": "bf16" if kernel == "33_cost_model" else "f32", "protocol": "steady"}
        made.append(row("08_warp_tiling", shape) | of | kind)
    write_rows(folder / "steady.csv", made)
    (folder / "rungs.json").write_text(json.dumps(stated()), encoding="utf-8")
    return folder


def test_each_cause_takes_its_part(folder):
    of_08, of_33 = read(load(folder))
    assert (of_08.name, of_33.name) == ("08, FP32, 4096³", "33, BF16, 4096³")
    assert of_08.left[CLOCK] == pytest.approx(256 * SMS * MHZ / 1e3) and of_08.peak == 67_000
    assert of_08.left[CEILING] / of_08.left[CLOCK] == pytest.approx(synthetic.PEAK / 67_000, rel=0.01), "67,000 is rounded"
    assert of_08.left[WAVES] / of_08.left[CEILING] == pytest.approx(512 / 528)
    assert list(of_08.left) == [CLOCK, CEILING, WAVES, REST] and of_08.left[REST] == RATES["08_warp_tiling"]
    assert of_08.before(REST) == of_08.left[WAVES] and of_08.before(CLOCK) == of_08.peak
    assert of_33.left[WAVES] / of_33.left[CLOCK] == pytest.approx(synthetic.WGMMA_PEAK / (4096 * SMS * 1.98) * 512 / 528)


def test_a_last_wave_of_tiles_or_of_shares():
    shape, tile = Shape(4096, 4096, 4096), (128, 256, 32)
    assert waves_needed(shape, tile, 132) == 4 and waves_needed(shape, tile, 132, SHARES) == 497 / 128, "32 · 16 tiles"
    assert waves_needed(Shape(132, 64, 64), (1, 64, 64), 132) == 1, "no wave is left"
    assert wave_efficiency(shape, tile, 132, SHARES) == pytest.approx(512 * 128 / 497 / 132)


def test_instructions_that_are_no_fmas_take_issue_slots(folder, tmp_path):
    write(tmp_path, "profile_f32.csv", 4096, ["08_warp_tiling"])
    path = tmp_path / "bench/recorded" / GPU / "profile_f32.csv"
    lines = [line for line in path.read_text().splitlines() if ",issue," not in line]
    cell = "08_warp_tiling,4096,4096,4096,issue"
    path.write_text("\n".join([*lines, f"{cell},instructions,125,warp inst,x", f"{cell},FFMA,3200,thread inst,x", ""]))
    of_08, _ = read(load(folder))
    assert of_08.left[INSTRUCTIONS] / of_08.left[WAVES] == pytest.approx(100 / 125)


def test_a_row_without_a_tile_has_no_waves_and_no_column(folder):
    path = folder / "steady.csv"
    path.write_text(path.read_text().replace("128x256x64", ""))
    assert [of.kernel for of in read(load(folder))] == ["08_warp_tiling"]


def test_the_picture_and_the_table_have_the_same_rates(folder, monkeypatch):
    found = read(load(folder))
    fig = figure.draw(found)
    assert_legible(fig, monkeypatch)
    texts = [text for text, _ in drawn_texts(fig, monkeypatch)]
    assert {"40.0 TFLOP/s", "600 TFLOP/s"} <= set(texts)
    assert f"{100 * (found[0].left[CLOCK] - 67_000) / 67_000:+.1f}".replace("-", "−") in texts
    assert style.svg(fig) == style.svg(figure.draw(found))
    text = losses.grid(found).markdown()
    assert "| measured | 40.0 (" in text and "| 600 (" in text and "1500 MHz" in text


def test_it_is_committed_and_generated(folder, tmp_path, capsys):
    synthetic.write_program(tmp_path, stated())
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/99_x.md"
    page.write_text(f"<!-- generated: losses {GPU} -->\n<!-- end generated -->\n")
    assert main(["docs", "--root", str(tmp_path)]) == 0 and main(["recorded", "--root", str(tmp_path)]) == 0
    assert "peak by the data sheet | 67.0 | 989 |" in page.read_text()
    assert (tmp_path / "docs/img/recorded/losses.svg").is_file()
    (folder / "ceilings.csv").write_text((folder / "ceilings.csv").read_text().replace("fp32", "fp64"))
    capsys.readouterr()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 1
    assert "losses.svg" in capsys.readouterr().out


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded results")
def test_the_recorded_losses_end_at_the_recorded_rate_and_nothing_gains():
    found = read(load(RECORDED))
    assert not found or len(found) == len(CASES), "all of them were recorded, or none was yet"
    for case in found:
        assert all(case.left[cause] <= 1.01 * case.before(cause) for cause in case.left), case.name
