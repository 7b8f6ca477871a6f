"""The variants of bench/sweep_25.py fit the kernel that they change, fit its shared memory, and are right on the simulator."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.sweep_25 import SWEEP, VARIANTS

ROOT = Path(__file__).parents[2]
SHARED_BYTES = 227 * 1024  # of a block of sm_90a, at most


@pytest.mark.parametrize("name", VARIANTS)
def test_every_substitution_applies(name):
    assert f'.name = "{name}"' in SWEEP.varied(name)  # ends the process where a line is not there


def test_variants_differ_in_more_than_their_names():
    texts = {name: SWEEP.varied(name).replace(f'"{name}"', "") for name in VARIANTS if name != "again"}
    assert len(set(texts.values())) == len(texts)
    assert len({variant.what for variant in VARIANTS.values()}) == len(VARIANTS)
    assert not VARIANTS["again"].changes and list(VARIANTS)[-1] == "again"


@pytest.mark.parametrize("name", VARIANTS)
def test_tiles_and_buffers_fit_into_shared_memory(name):
    text = SWEEP.varied(name)
    bm, bn, stages, buffers = (int(re.search(rf" {of} = (\d+);", text)[1]) for of in ("BM", "BN", "STAGES", "BUFFERS"))
    buffer = 64 * 128  # 64 rows of 128 bytes of C, of each of two warpgroups
    assert stages * (bm + bn) * 128 + 2 * buffers * buffer + 1024 <= SHARED_BYTES


@pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")
def test_variants_are_right():
    names = ["wait_0", "conflict_free_late_1"]
    command = [sys.executable, "bench/sweep_25.py", "--build-only", "--arch", "compute_90a", *names]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    command = [SWEEP.folder / "ladder", "--sim", "--check-only", "--type", "bf16", "--shapes", "72x136x200,300x520x264"]
    done = subprocess.run([*command, "--beta", "0.5"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == len(names) * 2
