"""The checkout that is tested: what is built of it, and how its programs are called."""

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = ROOT / "build/bin"
LADDER, BROKEN = BIN / "ladder", BIN / "broken_ladder"
SIMULATOR = ROOT / "build/sim/libcudart.so.13"
needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="the simulator is not built here")


def embeds_ptx_of_every_gpu() -> bool:
    """A build for the GPU at hand holds code for that one alone."""
    facts = ROOT / "build/generated/kernels.json"
    return facts.exists() and any("75-virtual" in rung["architectures"] for rung in json.loads(facts.read_text()))


needs_ptx_for_all = pytest.mark.skipif(
    not embeds_ptx_of_every_gpu(), reason="this build is for the GPU here; one without a GPU embeds PTX for all"
)

WRONG, USAGE, WAIVED, INTERRUPTED = 1, 2, 77, 130  # exit statuses


def run(
    program: str | Path, *arguments: object, folder: Path | None = None, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess:
    """What a program says, with these variables beside those of the environment."""
    command, env = [program, *map(str, arguments)], {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)


def run_all(*arguments: object, checkout: Path = ROOT, **more) -> subprocess.CompletedProcess:
    """run_all.sh of a checkout."""
    return run(checkout / "run_all.sh", *arguments, **more)


def one_line(done: subprocess.CompletedProcess, status: int = USAGE) -> str:
    """The line with which a program refuses."""
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


def rows(file: Path) -> list[dict[str, str]]:
    """Of a table in CSV."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))
