"""The commands of docs/sim.md do what it shows, and its numbers in prose are those of the recorded results and of the sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import ROOT, agrees, chosen, metric, rows, said, stem

CHAPTER = (ROOT / "docs/sim.md").read_text(encoding="utf-8")
BUILT = (ROOT / "build/sim/libcudart.so.13").exists() and (ROOT / f"build/bin/{stem('06')}").exists()
NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc"))
needs_simulator = pytest.mark.skipif(not BUILT, reason="the simulator is not built here")


# ---- the commands ----------------------------------------------------------------------------------------------------


def commands() -> list[str]:
    """Those for a program of one's own, in the chapter's order."""
    lines = "".join(re.findall(r"```sh\n(.*?)```", CHAPTER, re.DOTALL)).splitlines()
    return [line for line in lines if not line.startswith("./run_all.sh") or line.startswith("./run_all.sh sim")]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, str]:
    """What each command prints, of nvcc nothing; where one fails, its words are the failure."""
    folder = tmp_path_factory.mktemp("commands")
    for name in ("build", "plots", "run_all.sh", "tests", "tools"):
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
    done = subprocess.run([ROOT / "build/bin" / stem(number), *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, shown)


@needs_simulator
@pytest.mark.skipif(not NVCC, reason="there is no nvcc here")
def test_a_program_of_ones_own_runs_and_is_counted(printed):
    runs = [text for line, text in printed.items() if line.endswith("./vector_add")]
    assert runs == ["passed\n"] * 4, "by run_all.sh, without it, counted, and on another GPU"
    (table,) = (text for line, text in printed.items() if "tools.counts" in line)
    assert "c[i] = a[i] + b[i]" in table and "in total" in table


@needs_simulator
@pytest.mark.skipif(not NVCC, reason="there is no nvcc here")
@pytest.mark.parametrize("case", ["mistakes race", "planted same_value"])
def test_mistakes_are_reported_as_shown(printed, case):
    (report,) = (text for line, text in printed.items() if line.endswith(f"build/sim ./{case}"))
    (shown,) = re.findall(rf"<!-- simulator: {case} -->\n```text\n(.*?)```", CHAPTER, re.DOTALL)
    # Standard error and output come apart here.
    assert sorted(re.sub(r", PTX line \d+|/\S*/(?=tests/)", "", report).splitlines()) == sorted(shown.splitlines())


@needs_simulator
@pytest.mark.skipif(not NVCC, reason="there is no nvcc here")
def test_a_warning_becomes_an_error(printed):
    (report,) = (text for line, text in printed.items() if "same-value=error" in line)
    assert "which writes the same value" in report and report.endswith("cudaErrorLaunchFailure\n")


# ---- the numbers -----------------------------------------------------------------------------------------------------


def test_the_gpus_are_those_of_the_source():
    source = (ROOT / "sim/gpu.cpp").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| [^|]+ \| sm_(\d+)a? \| (\d+) \| (\d+) KiB \| (\d+) MiB \| (\d+) GiB \|$", CHAPTER, re.M)
    entries = re.findall(
        r'\.key = "(\w+)".*?\.sm = (\d+).*?\.sms = (\d+).*?\.memory_bytes = ([^,]+).*?\.l2_bytes = (\d+) \* MiB'
        r".*?\.smem_per_block_optin = (\d+) \* KiB",
        source,
        re.DOTALL,
    )
    assert len(table) == source.count('.key = "')
    for (key, sm, sms, smem, l2, memory), (of_key, of_sm, of_sms, bytes_, of_l2, of_smem) in zip(table, entries, strict=True):
        assert (key, sm, sms, smem, l2) == (of_key, of_sm, of_sms, of_smem, of_l2)
        gigabytes = int(bytes_.removesuffix(" * GiB")) if "GiB" in bytes_ else int(bytes_.replace("'", "")) / 2**30
        assert round(gigabytes) == int(memory)


@pytest.mark.parametrize(("number", "results"), [("02", 1), ("03", 8), ("04", 64)])
def test_merged_loads_explain_the_whole_difference(number, results):
    """`results` per thread: FMAs of a warp in one k."""
    pattern = rf"\| {number}, %s \| (\d+) k \| (\d+)[^|·]*· (\d+) \| (\d+)[^|·]*· (\d+) \| (\d+) \|"
    of_ptx, of_sass = ([int(text) for text in said("sim", pattern % code)] for code in ("PTX", "SASS"))
    for _, a, each_a, b, each_b, together in (of_ptx, of_sass):
        assert a * each_a + b * each_b == together
    assert of_ptx[0] == of_sass[0]
    loads = 512**3 // 32 // (of_ptx[0] * results) * of_ptx[-1]
    counted, simulated = (
        int(text.replace(",", "")) for text in said("sim", rf"\| {stem(number)} (?:\| [\d,]+ ){{4}}\| ([\d,]+) \| ([\d,]+) \|")
    )
    assert counted == chosen("counters_512.csv", "value", kernel=stem(number), group="shared", metric="wavefronts")
    assert (simulated - counted) * of_ptx[-1] == loads * (of_ptx[-1] - of_sass[-1])


def test_every_other_rung_has_the_wavefronts_and_sectors_of_the_gpu():
    table = re.findall(r"^\| (\d\d[a-z]?)_\w+ ((?:\| [\d,]+ ){6})\|$", CHAPTER, re.M)
    assert {number for number, _ in table} == {row["kernel"].split("_")[0] for row in rows("counters_512.csv")}
    differ = set()
    for number, cells in table:
        numbers = cells.replace("|", " ").split()
        assert numbers[0] == numbers[1] and numbers[2] == numbers[3]
        if numbers[4] != numbers[5]:
            differ.add(number)
    (named,) = said("sim", r"The wavefronts are equal, too, except in ([\d, and]+)\.")
    assert set(re.findall(r"\d+", named)) == differ


def test_a_copy_into_skewed_rows():
    by_banks, on_gpu = said("sim", r"\| wavefronts \| (\d+) \| ([\d.]+) \|")
    whole, touched = said("sim", r"\| sectors \| (\d+) \| (\d+) \|")
    for number in ("09c", "11"):
        requests = metric("bf16", number, "global", "load requests")
        above = metric("bf16", number, "shared", "wavefronts") - metric("bf16", number, "shared", "ideal wavefronts")
        assert agrees(on_gpu, int(by_banks) + above / requests)
        assert agrees(touched, metric("bf16", number, "global", "load sectors"), requests)
    assert int(by_banks) == 32 * 16 // 128 and int(whole) == 32 * 16 // 32


def test_how_slow_it_is():
    cores, small, large = said("sim", r"On (\w+) cores, rung 01 took ([\d.]+) s at 256³ and ([\d.]+) s at 1024³")
    for text, size in ((small, 256), (large, 1024)):
        assert agrees(text, chosen("../sim_speed.csv", "seconds", kernel=stem("01"), size=size))
    assert {"two": 2}[cores] == chosen("../sim_speed.csv", "cores", kernel=stem("01"), size=256)
