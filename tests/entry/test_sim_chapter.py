"""The commands of docs/sim.md do what it shows, and its table of GPUs is the simulator's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, run

CHAPTER = (ROOT / "docs/sim.md").read_text(encoding="utf-8")
NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc"))
needs_nvcc = pytest.mark.skipif(not NVCC, reason="there is no nvcc here")


def commands() -> list[str]:
    """Those for a program of one's own, in the chapter's order."""
    lines = "".join(re.findall(r"```sh\n(.*?)```", CHAPTER, re.DOTALL)).splitlines()
    return [line for line in lines if not line.startswith("./run_all.sh") or line.startswith("./run_all.sh sim")]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, str]:
    """What each command prints, of nvcc nothing; where one fails, its words are the failure."""
    folder = tmp_path_factory.mktemp("commands")
    for name in ("build", "plots", "run_all.sh", "sim", "tools"):
        (folder / name).symlink_to(ROOT / name)
    paths = [str(Path(sys.executable).parent), str(Path(NVCC).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(paths), "COLUMNS": "200"}
    said: dict[str, str] = {}
    for line in commands():
        done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == ("=error" in line), f"{line}: {done.stdout}{done.stderr}"
        said[line] = done.stderr + done.stdout
    return said


@needs_simulator
def test_the_first_command_prints_what_is_shown():
    command, shown = re.search(r"## Run one rung\n\n```sh\n(.*?)\n```.*?```text\n(.*?)```", CHAPTER, re.DOTALL).groups()
    number, *arguments = command.removeprefix("./run_all.sh run ").split()
    done = run(next(BIN.glob(f"{number}_*")), *arguments)
    assert (done.returncode, done.stdout) == (0, shown)


@needs_simulator
@needs_nvcc
def test_a_program_of_ones_own_runs_and_is_counted(printed):
    runs = [text for line, text in printed.items() if line.endswith("./vector_add")]
    assert runs == ["passed\n"] * 4, "by run_all.sh, without it, counted, and on another GPU"
    (table,) = (text for line, text in printed.items() if "tools.counts" in line)
    assert "c[i] = a[i] + b[i]" in table and "in total" in table


@needs_simulator
@needs_nvcc
@pytest.mark.parametrize("case", ["mistakes race", "planted same_value"])
def test_mistakes_are_reported_as_shown(printed, case):
    (report,) = (text for line, text in printed.items() if line.endswith(f"build/sim ./{case}"))
    (shown,) = re.findall(rf"<!-- simulator: {case} -->\n```text\n(.*?)```", CHAPTER, re.DOTALL)
    # Standard error and output come apart here.
    assert sorted(re.sub(r", PTX line \d+|/\S*/(?=sim/tests/)", "", report).splitlines()) == sorted(shown.splitlines())


@needs_simulator
@needs_nvcc
def test_a_warning_becomes_an_error(printed):
    (report,) = (text for line, text in printed.items() if "same-value=error" in line)
    assert "which writes the same value" in report and report.endswith("cudaErrorLaunchFailure\n")


@needs_simulator
def test_the_gpus_are_those_that_the_simulator_describes(tmp_path):
    ladder, file = ROOT / "build/bin/ladder", tmp_path / "environment.json"
    table = re.findall(r"^\| `(\w+)` \| [^|]+ \| sm_(\d+)a? \| (\d+) \| (\d+) KiB \| (\d+) MiB \| (\d+) GiB \|$", CHAPTER, re.M)
    refused = subprocess.run([ladder, "--sim", "--sim-gpu", "none"], capture_output=True, text=True).stderr
    assert f"--sim-gpu takes {', '.join(key for key, *_ in table)}, got" in refused
    for key, *numbers in table:
        command = [ladder, "--sim", "--sim-gpu", key, "--kernels", "01", "--environment", file, "16", "16", "16"]
        subprocess.run(command, check=True, capture_output=True)
        said = json.loads(file.read_text(encoding="utf-8"))
        found = said["sm"], said["sm_count"], said["smem_block_bytes"] >> 10, said["l2_bytes"] >> 20, said["memory_bytes"] / 2**30
        assert [round(number) for number in found] == list(map(int, numbers)), key
