"""docs/blackwell_without_one.md: its commands and options exist, and what it computes by hand is what the simulator counts.

CUTLASS is not fetched here. Rung 47 has the block tile of the page's kernel.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from math import prod

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, one_line, rows, run, run_all

PAGE = (ROOT / "docs/blackwell_without_one.md").read_text(encoding="utf-8")
NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc"))
COMMANDS = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ").splitlines()
IN_TEXT = [" ".join(command.split()) for command in re.findall(r"`((?:\./run_all\.sh|python3 -m) [^`]*)`", PAGE)]
SIZES = {"M": 512, "N": 1024, "K": 256}


def commands(start: str) -> list[list[str]]:
    """The arguments of those that begin so, on lines of their own and within sentences."""
    found = [shlex.split(line.partition("|")[0])[len(start.split()) :] for line in COMMANDS + IN_TEXT if line.startswith(start)]
    assert found, start
    return found


def by_hand() -> dict[str, int]:
    """The table's rows: what they are of, and the number."""
    table = PAGE.partition("| what | by hand | |")[2].partition("\n\n")[0]
    return {what: int(value.replace(",", "")) for what, value in re.findall(r"^\| ([^|]+) \|[^|]+\| ([\d,]+) \|$", table, re.M)}


def test_run_all_has_the_commands():
    known = re.findall(r"^  \./run_all\.sh ([a-z]+)", run_all("help").stdout, re.MULTILINE)
    assert {command for command, *_ in commands("./run_all.sh ")} <= set(known)


@needs_simulator
def test_sim_takes_the_options(tmp_path):
    for *options, _program, m, n, k in commands("./run_all.sh sim "):
        assert (int(m), int(n), int(k)) == tuple(SIZES.values())
        options = [str(tmp_path / "counts.csv") if option.startswith("build/") else option for option in options]
        assert one_line(run_all("sim", *options, "nowhere")).endswith("there is no such program")


@pytest.mark.skipif(not NVCC, reason="there is no nvcc here")
def test_nvcc_takes_the_options(tmp_path):
    (tmp_path / "empty.cu").touch()
    for arguments in commands("nvcc "):
        options = [argument for argument in arguments if argument.startswith("-") and argument != "-o"]
        options.insert(options.index("-cudart") + 1, arguments[arguments.index("-cudart") + 1])
        done = run(NVCC, "--dryrun", *options, "empty.cu", folder=tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_modules_have_the_options():
    for module, usage in (("tools.counts", []), ("tests.sim.blackwell_kernels", ["--help"])):
        done = subprocess.run([sys.executable, "-m", module, *usage], cwd=ROOT, capture_output=True, text=True)
        for arguments in commands(f"python3 -m {module} "):
            assert all(option in done.stdout + done.stderr for option in arguments if option.startswith("--"))


def test_what_is_quoted_are_the_simulators_words():
    sources = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "sim/executor").glob("*.cpp")))
    joined = re.sub(r'"\s*\n\s*"', "", sources).replace("{}", "")
    quoted = re.findall(r"^\| \d+ \| `\w+` \| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(quoted) == 3
    for words in [*quoted, "nobody has waited for it", "deadlock: every warp waits, or has ended"]:
        assert words in joined, words


def test_the_sectors_hold_the_bytes_of_a():
    requests, sectors = re.search(r"^\| 274 \| [^|]+ \| ([\d,]+) \| (\d+) \|", PAGE, re.MULTILINE).groups()
    loaded = by_hand()["bytes of A that line 274 loads"]
    assert loaded == int(requests.replace(",", "")) * int(sectors) * 32
    assert loaded == SIZES["M"] * SIZES["K"] * 2 * SIZES["N"] // 256


@pytest.mark.skipif(not (BIN / "47_tcgen05").exists(), reason="rung 47 is not built here")
@needs_simulator
def test_the_simulator_counts_what_is_computed_by_hand(tmp_path):
    file = tmp_path / "counts.csv"
    done = run(BIN / "47_tcgen05", *SIZES.values(), "--type", "f16", "--sim", "--sim-gpu", "b200", "--sim-counts", file)
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = (row for row in rows(file) if row["line"] == "0" and not row["file"] and int(row["mma_f16"]))
    hand = by_hand()
    assert int(total["mma_f16"]) == hand["`tcgen05.mma`"] == prod(SIZES.values()) // (128 * 256 * 16)
    assert int(total["mma_shared_bytes"]) == hand["bytes that they read"]
    assert int(total["tensor_load_bytes"]) == hand["bytes loaded from tensor memory"]
