"""Chapter 27 shows what `--explain` prints."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build/bin/27_sgemm_hopper"


@pytest.mark.skipif(not PROGRAM.exists() or not (ROOT / "build/sim").exists(), reason="27 or the simulator is not built here")
def test_what_the_chapter_shows_is_printed():
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    command = [PROGRAM, "--sim", "--explain", "--shapes", "1024x1024x1024"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    printed = done.stdout.partition("\n")[2].rstrip("\n")
    assert f"```text\n{printed}\n```" in (ROOT / "docs/27_sgemm_hopper.md").read_text(encoding="utf-8")
