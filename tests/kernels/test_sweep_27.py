"""The variants of bench/sweep_27.py differ, and are right on the simulator; the rung's clocks are those of the fit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import fit_27
from bench.sweep_27 import CONFIGURATIONS, SWEEP, VARIANTS, tile_of

ROOT = Path(__file__).parents[2]
FIRST = f"tile_{tile_of(CONFIGURATIONS[0])}"  # is what as_written is
RECORDED = ROOT / "bench/recorded/nvidia-h200"
SIMULATED = pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")


def test_clocks_are_those_of_the_fit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fit_27.py", str(RECORDED / "fit_27.csv"), str(RECORDED / "plans_27.txt")])
    assert fit_27.main() == 0
    said = dict(re.findall(r"^(\w+) +(\{[\d, ]+\})", capsys.readouterr().out, re.MULTILINE))
    assert said == {tile_of(line): re.search(r"\{[\d, ]+\}", line)[0] for line in CONFIGURATIONS}


def test_no_shape_of_the_map_is_in_the_fit():
    shapes = {
        name: set(re.findall(r"^\d+x\d+x\d+", (ROOT / f"bench/shapes/{name}.txt").read_text(), re.M))
        for name in ("fit_27", "map")
    }
    assert not shapes["fit_27"] & shapes["map"]
    times = pd.read_csv(RECORDED / "fit_27.csv")
    assert shapes["fit_27"] == set(times.m.astype(str) + "x" + times.n.astype(str) + "x" + times.k.astype(str))


@SIMULATED
def test_what_the_choice_loses():
    """The time of what the rung chooses, per shape of the fit, over that of its fastest tile."""
    command = [ROOT / "build/bin/27_sgemm_hopper", "--sim", "--explain", "--shapes", ROOT / "bench/shapes/fit_27.txt"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^27_sgemm_hopper \w+ (\d+)x(\d+)x(\d+):(?:.*\n)(?: .*\n)*\* (\d+) x (\d+),", printed, re.MULTILINE)
    times = fit_27.measured(RECORDED / "fit_27.csv").pivot(index=fit_27.SHAPE, columns="tile", values="clocks")
    losses = {
        (m, n, k): times.loc[(int(m), int(n), int(k)), f"{bm}x{bn}"] / times.loc[(int(m), int(n), int(k))].min()
        for m, n, k, bm, bn in found
    }
    assert len(losses) == len(times)
    text = " ".join((ROOT / "docs/27_sgemm_hopper.md").read_text(encoding="utf-8").split())
    mean, *worst, percent = re.search(
        r"on average ([\d.]+) % longer .*? choice is that for (\d+) × (\d+) × (\d+), where it takes (\d+) %", text
    ).groups()
    assert round((np.exp(np.log(list(losses.values())).mean()) - 1) * 100, 1) == float(mean)
    assert max(losses, key=losses.get) == tuple(worst) and round((max(losses.values()) - 1) * 100) == int(percent)


def test_variants_differ_in_more_than_their_names():
    texts = {name: SWEEP.varied(name).replace(f'"{name}"', "") for name in VARIANTS if name not in ("again", FIRST)}
    assert len(set(texts.values())) == len(texts)
    assert len({variant.what for variant in VARIANTS.values()}) == len(VARIANTS)
    assert not VARIANTS["again"].changes and list(VARIANTS)[-1] == "again"


@SIMULATED
def test_variants_are_right():
    names = ["one_lane_arrives", *(name for name in VARIANTS if name.startswith("tile_"))]
    command = [sys.executable, "bench/sweep_27.py", "--build-only", "--arch", "compute_90a", *names]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    command = [SWEEP.folder / "ladder", "--sim", "--check-only", "--shapes", "3x5x7,129x257x33,300x520x200,128x512x1048"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run([*command, "--ld-pad", "align"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == len(names) * 4
