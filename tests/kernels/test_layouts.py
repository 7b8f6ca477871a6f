"""Chapter 38: what the layouts of A and B cost in shared memory, and where B is transposed before."""

import re

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, rows, run

RUNG = BIN / "38_sgemm_layouts"
PIECES = {"tn": 0, "nn": 4, "tt": 8, "nt": 12}  # per k tile of 128x256x32


@needs_simulator
def test_a_piece_takes_64_wavefronts_and_none_conflicts(tmp_path):
    """132 tiles of C, 16 k tiles each: exercise 1, with the numbers of its answer."""
    file = tmp_path / "counts.csv"
    for layout in PIECES:
        assert run(RUNG, "--sim", "1536", "2816", "512", "--layout", layout, "--csv", file).returncode == 0
    counted = {row["layout"]: row for row in rows(file)}
    assert {row["tile"] for row in counted.values()} == {"128x256x32"}
    assert all(row["sim_shared_wavefronts"] == row["sim_shared_ideal"] for row in counted.values())
    wavefronts = {layout: int(row["sim_shared_wavefronts"]) for layout, row in counted.items()}
    assert {layout: count - wavefronts["tn"] for layout, count in wavefronts.items()} == {
        layout: 132 * 16 * 64 * pieces for layout, pieces in PIECES.items()
    }
    text = (ROOT / "docs/38_sgemm_layouts.md").read_text(encoding="utf-8")
    assert f"{wavefronts['nt'] - wavefronts['tn']:,}. The simulator counts {wavefronts['nt']:,} and {wavefronts['tn']:,}." in text


@needs_simulator
@pytest.mark.parametrize("layout", ["nt", "tt"])
def test_b_is_transposed_before_where_c_has_many_rows(layout):
    """As the chapter's tables say it for N = K = 4096."""
    shapes = ",".join(f"{m}x4096x4096" for m in (128, 1024, 2048, 4096))
    printed = run(RUNG, "--sim", "--sim-gpu", "h200", "--explain", "--layout", layout, "--shapes", shapes).stdout
    before = re.findall(r"^38_sgemm_layouts f32 (\d+)x.*\nB is transposed before", printed, re.MULTILINE)
    assert before == ["2048", "4096"]
