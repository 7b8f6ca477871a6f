"""A rung of any unit and architecture is drawn from what its program states: tests/gpu/stand_ins, with invented times."""

import subprocess
from pathlib import Path

import pytest
import synthetic
from synthetic import write_folder
from test_report import Page, report

from plots.data.rungs import parse
from plots.data.units import Shape

STAND_INS = Path(__file__).parents[2] / "build/bin/stand_ins"
SIZES = [Shape(n, n, n) for n in (2048, 4096, 8192)]

pytestmark = [
    pytest.mark.skipif(not STAND_INS.exists(), reason="build/bin/stand_ins is not built here"),
    pytest.mark.usefixtures("without_png"),
]


@pytest.fixture
def stated():
    return subprocess.run([STAND_INS, "--list", "--json"], capture_output=True, text=True, check=True).stdout


def test_the_report_holds_each_under_its_own_ceiling(stated, tmp_path):
    facts = parse(stated, "stand_ins")
    rows = []
    for place, rung in enumerate(facts.rungs.values(), 1):
        own = {"kernel": rung.stem, "type": rung.types[0], "unit": rung.instruction, "ceiling": rung.ceilings[rung.types[0]]}
        rate = 10_000.0 * place
        own |= {"gflops": rate, "flop_clk_sm": 1000.0 * place, "ratio_cublas": 0.1 * place, "ratio_clk": 0.11 * place}
        rows += [synthetic.row("01_naive", s) | own | {"median_ms": s.flop / rate / 1e6} for s in SIZES]
    folder = write_folder(tmp_path / "results", rows)
    (folder / "rungs.json").write_text(stated)
    html, summary = report(folder, tmp_path / "out")
    lines = {cells[0]: cells for cells in Page(html).rows if len(cells) == 15 and cells[0] in facts.rungs}
    assert set(lines) == set(facts.rungs)
    wgmma, mma = (
        next(rung for rung in facts.rungs.values() if rung.instruction == instruction) for instruction in ("wgmma", "mma.sync")
    )
    assert lines[wgmma.stem][7] == f"1.50 × {mma.number}"
    assert "ceilings.csv is missing" not in summary and "wgmma 900 TFLOP/s" in html and "mma.sync 600 TFLOP/s" in html
    share = 1000.0 * 3 / (synthetic.WGMMA_PEAK * 1e3 / (synthetic.SMS * synthetic.CLOCK))
    assert lines[wgmma.stem][9] == f"3000 ({share:.2f})"
