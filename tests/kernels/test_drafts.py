"""Drafts are right on the simulator, over shapes with edges and with shares; every variant of their sweeps can be made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drafts.sweep_27 import SWEEP, VARIANTS

ROOT = Path(__file__).parents[2]


def test_every_variant_of_27_is_another_text():
    texts = {name: SWEEP.varied(name).replace(f'"{name}"', "") for name in VARIANTS if name != "again"}
    assert len(set(texts.values())) == len(texts)


@pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")
@pytest.mark.parametrize("factors", ["", "--alpha 1.25 --beta 0.5"])
def test_27_is_right(factors):
    names = ["as_written", "lanes_of_08"]
    command = [sys.executable, "drafts/sweep_27.py", "--build-only", "--arch", "compute_90a", *names]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    command = [SWEEP.folder / "ladder", "--sim", "--check-only", "--shapes", "3x5x7,129x257x33,300x520x200,128x512x2048"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run([*command, "--ld-pad", "align", *factors.split()], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == len(names) * 4
