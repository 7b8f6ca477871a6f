"""The variants of bench/sweep_27.py differ, and are right on the simulator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.sweep_27 import SWEEP, VARIANTS

ROOT = Path(__file__).parents[2]


def test_variants_differ_in_more_than_their_names():
    texts = {name: SWEEP.varied(name).replace(f'"{name}"', "") for name in VARIANTS if name != "again"}
    assert len(set(texts.values())) == len(texts)
    assert len({variant.what for variant in VARIANTS.values()}) == len(VARIANTS)
    assert not VARIANTS["again"].changes and list(VARIANTS)[-1] == "again"


@pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")
def test_variants_are_right():
    names = ["transposed_before", *(name for name in VARIANTS if name.startswith("tile_"))]
    command = [sys.executable, "bench/sweep_27.py", "--build-only", "--arch", "compute_90a", *names]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    command = [SWEEP.folder / "ladder", "--sim", "--check-only", "--shapes", "3x5x7,129x257x33,300x520x200,128x512x1048"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run([*command, "--ld-pad", "align"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == len(names) * 4
