"""Rung 37's clocks are those of the fit, and what its choice loses is what the chapter says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import fit_37
from bench.sweep import SWEEPS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "bench/recorded/nvidia-h200"
SIMULATED = pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")


def test_clocks_are_those_of_the_fit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fit_37.py", str(RECORDED / "fit_37.csv"), str(RECORDED / "plans_37.txt")])
    assert fit_37.main() == 0
    said = dict(re.findall(r"^(\w+) +\{([\d, ]+)\}", capsys.readouterr().out, re.MULTILINE))
    assert {tile: list(map(int, clocks.split(","))) for tile, clocks in said.items()} == {
        tile: [numbers[term] for term in fit_37.TERMS] for tile, numbers in SWEEPS["37"].configurations.items()
    }


def test_no_shape_of_the_map_is_in_the_fit():
    shapes = {
        name: set(re.findall(r"^\d+x\d+x\d+", (ROOT / f"bench/shapes/{name}.txt").read_text(), re.M))
        for name in ("fit_37", "map")
    }
    assert not shapes["fit_37"] & shapes["map"]
    times = pd.read_csv(RECORDED / "fit_37.csv")
    assert shapes["fit_37"] == set(times.m.astype(str) + "x" + times.n.astype(str) + "x" + times.k.astype(str))


@SIMULATED
def test_what_the_choice_loses():
    """The time of what the rung chooses, per shape of the fit, over that of its fastest tile."""
    command = [ROOT / "build/bin/37_sgemm_hopper", "--sim", "--explain", "--shapes", ROOT / "bench/shapes/fit_37.txt"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^37_sgemm_hopper \w+ (\d+)x(\d+)x(\d+):(?:.*\n)(?: .*\n)*\* (\d+) x (\d+),", printed, re.MULTILINE)
    times = fit_37.measured(RECORDED / "fit_37.csv").pivot(index=fit_37.SHAPE, columns="tile", values="clocks")
    losses = {
        (m, n, k): times.loc[(int(m), int(n), int(k)), f"{bm}x{bn}"] / times.loc[(int(m), int(n), int(k))].min()
        for m, n, k, bm, bn in found
    }
    assert len(losses) == len(times) - printed.count("* few rows")  # which takes no tile
    text = " ".join((ROOT / "docs/37_sgemm_hopper.md").read_text(encoding="utf-8").split())
    mean, *worst, percent = re.search(
        r"on average ([\d.]+) % longer .*? choice is that for (\d+) × (\d+) × (\d+), where it takes (\d+) %", text
    ).groups()
    assert round((np.exp(np.log(list(losses.values())).mean()) - 1) * 100, 1) == float(mean)
    assert max(losses, key=losses.get) == tuple(worst) and round((max(losses.values()) - 1) * 100) == int(percent)
