"""The methodology explains every column of the harness's CSV."""

import re

from tests.checkout import LADDER, ROOT, needs_simulator, run

RECORDED = ROOT / "bench/recorded/nvidia-h200/ladder.csv"


@needs_simulator
def test_every_column_is_explained(tmp_path):
    written = tmp_path / "ladder.csv"
    run(LADDER, "--sim", "--kernels", "01", "16", "16", "16", "--csv", written)
    header = written.read_text(encoding="utf-8").splitlines()[0].split(",")
    page = (ROOT / "docs/methodology.md").read_text(encoding="utf-8").partition("## The columns of ladder.csv")[2]
    names = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert sorted(re.findall(r"`(\w+)`", names)) == sorted(header)
    assert set(RECORDED.read_text(encoding="utf-8").splitlines()[0].split(",")) <= set(header), (
        "what is recorded has no other columns"
    )
