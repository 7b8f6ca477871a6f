"""Drafts are right on the simulator: one configuration of each kind, over shapes with edges and with several tiles per block."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

KINDS = ["c256x192", "p128x176", "p64x64s", "k4_128x64"]


@pytest.fixture(scope="module")
def program():
    if not (ROOT / "build/sim/libcudart.so.13").exists():
        pytest.skip("the simulator is not built here")
    built = subprocess.run(
        [sys.executable, "drafts/sweep_26.py", "--simulator", *KINDS], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return ROOT / "build/drafts/ladder"


@pytest.mark.parametrize("problem", ["--type bf16 --out same", "--type f16 --out f32 --alpha 1.25 --beta 0.5", "--type tf32"])
def test_configurations_of_26_are_right(program, problem):
    shapes = "129x264x520,130x267x264,1100x1400x260"
    command = [program, "--sim", "--shapes", shapes, "--ld-pad", "align", *problem.split()]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == (len(KINDS) + 1) * 3
