"""The session of tests fails where one of them changes the checkout, and names the file."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("script", "named", "workers"),
    [
        ("touch build/made results.txt", "results.txt", []),
        ("mkdir -p kernels/local; touch kernels/local/90_mine.cu", "kernels/local/90_mine.cu", ["-n", "2"]),
        ("echo more >>README.md", "README.md", []),
        ("rm README.md", "README.md", []),
        ("touch build/made .deps/made", "", []),
    ],
    ids=["new", "workers", "changed", "removed", "none"],
)
def test_a_session_that_changes_the_checkout_fails(script, named, workers, tmp_path):
    if workers:
        pytest.importorskip("xdist")
    for folder in ("tests", "build", ".deps"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("words\n")
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    (tmp_path / "tests/test_it.py").write_text(f"import os\n\n\ndef test_it():\n    assert os.system({script!r}) == 0\n")
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in done.stdout
    assert done.returncode == bool(named)
    assert (f"the tests changed the checkout: {named}" in done.stdout) == bool(named)
