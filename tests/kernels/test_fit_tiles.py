"""The clocks of rungs 37 and 38 are those of the fit, and what the choice of 37 loses is what its chapter says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import fit_tiles
from bench.sweep import SWEEPS
from plots.data import rungs

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "bench/recorded/nvidia-h200"
SIMULATED = pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")


LAYOUTS = ["tt", "tn", "nt"]  # nn is computed as tt is
FILES = {
    "37": ["fit_37.csv", "plans_37.txt"],
    "38": [name for layout in LAYOUTS for name in (f"fit_38_{layout}.csv", f"plans_38_{layout}.txt")],
}


@pytest.mark.parametrize("rung", FILES)
def test_clocks_are_those_of_the_fit(rung, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fit_tiles.py", rung, *(str(RECORDED / name) for name in FILES[rung])])
    assert fit_tiles.main() == 0
    said = dict(re.findall(r"^(\w+) +\{([\d, ]+)\}", capsys.readouterr().out, re.MULTILINE))
    stated = {
        tile: [numbers[term] for term in fit_tiles.TERMS if term in numbers]
        for tile, numbers in SWEEPS[rung].configurations.items()
    }
    if rung == "38":  # 64x128 has the loop of 128x64 and half as many rows to transpose. Chapter 38 says what that takes.
        *of_the_loop, transpose = stated.pop("64x128")
        assert of_the_loop == stated["128x64"][:-1] and transpose < stated["128x64"][-1] / 2
    assert {tile: list(map(int, clocks.split(","))) for tile, clocks in said.items()} == stated


def test_no_shape_of_the_map_is_in_the_fit():
    shapes = {
        name: set(re.findall(r"^\d+x\d+x\d+", (ROOT / f"bench/shapes/{name}.txt").read_text(), re.M))
        for name in ("fit_37", "map")
    }
    assert not shapes["fit_37"] & shapes["map"]
    times = pd.read_csv(RECORDED / "fit_37.csv")
    assert shapes["fit_37"] == set(times.m.astype(str) + "x" + times.n.astype(str) + "x" + times.k.astype(str))


def losses(rung: str, times: Path, layout: str = "nn") -> dict[tuple[str, ...], float]:
    """The time of what the rung chooses, per shape of the fit, over that of its fastest tile."""
    stem = rungs.of_checkout().find(rung).stem
    command = [ROOT / "build/bin" / stem, "--sim", "--explain", "--shapes", ROOT / "bench/shapes/fit_37.txt", "--layout", layout]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    clocks = fit_tiles.measured(times).pivot(index=["m", "n", "k"], columns="tile", values="clocks")
    found = {}
    for m, n, k, lines in re.findall(rf"^{stem} \w+ (\d+)x(\d+)x(\d+):.*\n((?:[* ] .*\n?)+)", printed, re.MULTILINE):
        # A swapped tile has no times of its own: what would be chosen without.
        expected = re.findall(r"^[* ] (\d+) x (\d+), .* (\d+) clocks expected$", lines, re.MULTILINE)
        tiles = {f"{rows}x{columns}": int(expected) for rows, columns, expected in expected}
        if not lines.startswith("* few rows"):
            chosen = min(tiles.keys() & set(clocks), key=tiles.get)  # 64x128 was not timed
            of_shape = clocks.loc[(int(m), int(n), int(k))]
            found[m, n, k] = of_shape[chosen] / of_shape.min()
    assert len(found) == len(clocks) - printed.count("* few rows")  # which takes no tile
    return found


def percent_of_mean(values) -> float:
    return round((np.exp(np.log(list(values)).mean()) - 1) * 100, 1)


@SIMULATED
def test_what_the_choice_of_37_loses():
    lost = losses("37", RECORDED / "fit_37.csv")
    text = " ".join((ROOT / "docs/37_sgemm_hopper.md").read_text(encoding="utf-8").split())
    mean, *worst, percent = re.search(
        r"on average ([\d.]+) % longer .*? choice is that for (\d+) × (\d+) × (\d+), where it takes (\d+) %", text
    ).groups()
    assert percent_of_mean(lost.values()) == float(mean)
    assert max(lost, key=lost.get) == tuple(worst) and round((max(lost.values()) - 1) * 100) == int(percent)


@SIMULATED
def test_what_the_choice_of_38_loses():
    lost = [value for layout in LAYOUTS for value in losses("38", RECORDED / f"fit_38_{layout}.csv", layout).values()]
    text = " ".join((ROOT / "docs/38_sgemm_layouts.md").read_text(encoding="utf-8").split())
    mean, percent = re.search(
        r"the chosen tile takes on average ([\d.]+) % longer than the fastest, at most ([\d.]+) %", text
    ).groups()
    assert percent_of_mean(lost) == float(mean) and round((max(lost) - 1) * 100, 1) == float(percent)
