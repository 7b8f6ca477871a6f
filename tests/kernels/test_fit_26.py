"""The configurations of rung 26: right on the simulator, each with what the fit to the recorded sweep makes of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import fit_26
from bench.sweep import SWEEPS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "bench/recorded/nvidia-h200"
KINDS = ["c256x192h", "p128x192q", "p128x160t", "p64x16ts", "p64x32s", "k2_128x160t", "k4_128x64", "k8_128x64", "g128x128"]
BF16 = ("--type", "bf16", "--out", "same")
CHAPTER = (ROOT / "docs/26_fast.md").read_text(encoding="utf-8")
SIMULATED = pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")


def test_clocks_are_those_of_the_fit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fit_26.py", str(RECORDED / "sweep_26.csv"), str(RECORDED / "plans_26.txt")])
    assert fit_26.main() == 0
    said = dict(re.findall(r"^(\w+) +\{([\d, ]+)\}", capsys.readouterr().out, re.MULTILINE))
    assert {name: list(map(int, clocks.split(","))) for name, clocks in said.items()} == {
        name: [numbers[clocks] for clocks in ("fixed", "k_tile", "tile")] for name, numbers in SWEEPS["26"].configurations.items()
    }


def test_no_shape_of_the_map_is_in_the_fit():
    shapes = {
        name: set(re.findall(r"^\d+x\d+x\d+", (ROOT / f"bench/shapes/{name}.txt").read_text(), re.M))
        for name in ("fit_26", "map")
    }
    assert not shapes["fit_26"] & shapes["map"] and len(shapes["map"]) >= 60
    times = pd.read_csv(RECORDED / "sweep_26.csv")
    assert shapes["fit_26"] == set(times.m.astype(str) + "x" + times.n.astype(str) + "x" + times.k.astype(str))


def losses() -> pd.Series:
    """Per shape of the sweep: the time of what the cost model chooses over that of the fastest configuration."""
    chosen = {}
    for line in (RECORDED / "plans_26.txt").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"26_fast \w+ (\d+)x(\d+)x(\d+):", line):
            shape = tuple(map(int, found.groups()))
        elif found := re.match(r" +(\w+) +[\d.]+ us:", line):
            chosen.setdefault(shape, found[1])  # the fastest stands first
    times = pd.read_csv(RECORDED / "sweep_26.csv").query("status == 'ok'")
    times["name"] = times.kernel.str.partition("_")[2]
    times = times[times.name.isin(list(SWEEPS["26"].configurations))].set_index(["m", "n", "k"])
    picked = times[[chosen[shape] == name for shape, name in times.name.items()]].median_ms
    return (picked / times.median_ms.groupby(level=[0, 1, 2]).min()).sort_values()


def test_what_the_choice_loses():
    text = " ".join(CHAPTER.split())
    mean, worst, percent = re.search(
        r"on average ([\d.]+) % longer .*? choice is that for ([\d ×]+), where it takes (\d+) %", text
    ).groups()
    found = losses()
    assert round((np.exp(np.log(found).mean()) - 1) * 100, 1) == float(mean)
    assert " × ".join(map(str, found.index[-1])) == worst and round((found.iloc[-1] - 1) * 100) == int(percent)


def explained(shapes: str, *options: str) -> str:
    """What the program says of these shapes on a described GPU, the simulator's H200 unless the options name another one."""
    command = [ROOT / "build/bin/26_fast", "--sim", "--explain", "--shapes", ROOT / shapes if "/" in shapes else shapes]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@SIMULATED
def test_plans_recorded_are_those_of_the_kernel():
    """The simulator's H200 has room for as many clusters as the one that was measured."""
    said = explained("bench/shapes/fit_26.txt", *BF16)
    assert said == (RECORDED / "plans_26.txt").read_text(encoding="utf-8")


@SIMULATED
@pytest.mark.parametrize(("gpu", "column"), [("h200", 0), ("h100", 1)])
def test_rates_are_the_cards_own(gpu, column):
    table = re.findall(r"^\| (?:reached|memory rate|memory clock|SM clock)\b[^|]+\| ([^|]+) \| ([^|]+) \|$", CHAPTER, re.M)
    clock, reached_clock, memory, rate, reached_rate = (row[column] for row in table)
    said = explained("3072x3072x3072", *BF16, "--sim-gpu", gpu)
    assert f"predicted at {reached_clock} MHz and {reached_rate} GB/s of DRAM" in said
    memory_mhz, bits = map(int, memory.split(" · "))
    stated = 2 * memory_mhz * bits / 8 / 1e3
    assert round(stated) == int(rate) and round(stated * 4200 / 4813.824) == int(reached_rate)
    assert round(int(clock) * 1750 / 1980) == int(reached_clock)


@SIMULATED
def test_the_chapter_shows_what_explain_prints():
    block = re.search(r"3072 3072 3072 --type bf16 --out same --explain\n```\n\n```text\n(.*?)```", CHAPTER, re.DOTALL)[1]
    assert block in explained("3072x3072x3072", *BF16)


@SIMULATED
def test_rates_do_not_change_the_choice():
    """Both described GPUs have room for as many clusters. Of all shapes: each configuration and its time, the fastest first."""
    of_h200, of_h100 = (
        re.findall(r"^ +(\w+) +([\d.]+) us", explained("bench/shapes/map.txt", *BF16, "--sim-gpu", gpu), re.M)
        for gpu in ("h200", "h100")
    )
    assert of_h200 != of_h100 and [name for name, _ in of_h200] == [name for name, _ in of_h100]


@pytest.fixture(scope="module")
def program():
    command = [sys.executable, "bench/sweep.py", "26", "--build-only", "--arch", "compute_90a", *KINDS]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return SWEEPS["26"].folder / "ladder"


@SIMULATED
@pytest.mark.parametrize("problem", ["--type bf16 --out same", "--type f16 --out f32 --alpha 1.25 --beta 0.5", "--type tf32"])
def test_each_kind_is_right(program, problem):
    shapes = "129x264x520,130x267x520,7x33x520,1100x1400x520"
    command = [program, "--sim", "--check-only", "--shapes", shapes, "--ld-pad", "align", *problem.split()]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    no_room = sum(name.startswith("g") for name in KINDS)  # slices over the grid, where the tiles alone are as many as the SMs
    assert done.stdout.count("  ok") == len(KINDS) * 4 - no_room
    assert done.stdout.count("1100x1400x520") == len(KINDS) and done.stdout.count("waived: no room for splits") == no_room
