"""The ladder on the simulator: how a program comes to run there, its rows and counters, and what it finds."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import checkout
from tests.checkout import BIN, BROKEN, LADDER, ROOT, SIMULATOR, USAGE, WAIVED, WRONG, needs_simulator, one_line, rows
from tools.ladder_run import SIMULATED  # every row says whether it is right

ANNOUNCED = "no GPU here: running on the simulator (checked and counted, not timed)"

pytestmark = needs_simulator


def run(*arguments: object, program: Path = LADDER, **environment: str) -> subprocess.CompletedProcess:
    return checkout.run(program, *arguments, **environment)


def simulate(tmp_path: Path, *arguments: str, program: Path = LADDER, status: int = 0) -> list[dict[str, str]]:
    """The rows of a run on the simulator."""
    file = tmp_path / "rows.csv"
    done = run("--sim", *arguments, "--csv", file, program=program)
    assert done.returncode == status, done.stderr
    return rows(file)


# ---- how a program comes to run there --------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["ladder", "06_bank_conflict_free"])
def test_without_a_gpu_the_simulator_is_chosen_and_announced_in_one_line(program):
    arguments = ["64", "64", "64", *(["--kernels", "06"] if program == "ladder" else [])]
    done = run(*arguments, program=BIN / program, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [ANNOUNCED]
    heading, rung = done.stdout.splitlines()
    assert "conflicts" in heading and "GFLOP" not in heading
    assert rung.startswith("06_bank_conflict_free") and rung.endswith(" ok")


def test_asked_for_it_is_not_announced():
    done = run("--sim", "64", "64", "64", "--kernels", "01")
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize(("gpu", "mhz", "bits", "l2"), [("h200", 3134, 6144, 60), ("h100", 2619, 5120, 50), ("t4", 5001, 256, 4)])
def test_an_environment_says_what_the_card_is(tmp_path, gpu, mhz, bits, l2):
    file = tmp_path / "environment.json"
    done = run("--sim", "--sim-gpu", gpu, "8", "8", "8", "--kernels", "01", "--environment", file)
    assert done.returncode == 0, done.stderr
    said = json.loads(file.read_text(encoding="utf-8"))
    assert (said["memory_clock_mhz"], said["memory_bus_bits"], said["l2_bytes"]) == (mhz, bits, l2 << 20)


def test_sizes_that_are_not_given_are_small():
    done = run("--sim", "--kernels", "08")
    assert done.returncode == 0 and "256x256x256" in done.stdout


def test_list_takes_sim_and_needs_no_device():
    assert run("--sim", "--list").stdout == run("--list").stdout


def moved_build(folder: Path, *, simulator: bool) -> Path:
    """One program, and perhaps the simulator, in a build folder somewhere else."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "build/bin/01_naive", folder / "bin")
    if simulator:
        shutil.copytree(SIMULATOR.parent, folder / "sim", ignore=lambda path, names: {"programs", "CMakeFiles"} & set(names))
    return folder / "bin/01_naive"


def test_the_simulator_is_found_beside_a_program_that_was_moved(tmp_path):
    program = moved_build(tmp_path / "a build", simulator=True)
    assert run("--sim", "8", "8", "8", program=program).returncode == 0


@pytest.mark.parametrize(("arguments", "why"), [(["--sim"], "--sim"), ([], "no GPU here")])
def test_where_the_simulator_is_not_built_one_line_says_so(tmp_path, arguments, why):
    program = moved_build(tmp_path, simulator=False)
    line = one_line(run(*arguments, "8", "8", "8", program=program, CUDA_VISIBLE_DEVICES=""), WAIVED)
    assert line.startswith(f"01_naive: {why}, and the simulator is not built")


def test_without_its_driver_a_rung_of_the_copy_engine_fails_with_a_line_and_the_next_runs(tmp_path):
    shutil.copy(SIMULATOR, tmp_path)  # and no libcuda.so.1 beside it
    done = run("--sim", "--kernels", "21,22", "--type", "bf16", "64", "64", "64", LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == WRONG
    assert done.stdout.count("cudaErrorSymbolNotFound") == 2 and "cuTensorMapEncodeTiled is not there" in done.stderr


@pytest.mark.skipif(not shutil.which("ninja"), reason="no ninja here")
def test_building_a_program_builds_both_libraries_of_the_simulator():
    def built_before(target: str) -> set[str]:
        query = ["ninja", "-C", ROOT / "build", "-t", "query", target]
        said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        return set(said.partition("outputs:")[0].split())

    assert "simulator" in built_before("bin/25_persistent") & built_before("bin/ladder")
    assert {"sim/libcudart.so.13", "sim/libcuda.so.1"} <= built_before("simulator")


def test_a_loader_that_takes_another_runtime_ends_it(tmp_path):
    """Instead of starting the program over and over."""
    program = moved_build(tmp_path, simulator=False)
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim/libcudart.so.13").write_text("no library")
    done = run("--sim", "8", "8", "8", program=program)
    assert done.returncode != 0
    assert "libcudart.so.13" in done.stderr


def test_options_that_are_about_time_are_named_once_and_have_no_effect(tmp_path):
    arguments = ("--rounds", "5", "--protocol", "steady", "--samples-csv", tmp_path / "samples.csv")
    arguments += ("--tune", "--plans", tmp_path / "plans.csv")
    done = run("--sim", "8", "8", "8", "--kernels", "01", *arguments)
    assert done.returncode == 0
    expected = "the simulator times nothing: without effect are --protocol, --rounds, --samples-csv, --tune"
    assert done.stderr.splitlines() == [expected]
    assert not (tmp_path / "samples.csv").exists()
    assert len((tmp_path / "plans.csv").read_text().splitlines()) == 1, "a header"


def test_on_the_simulator_there_are_no_ceilings():
    line = one_line(run(program=BIN / "ceilings", LD_LIBRARY_PATH=str(SIMULATOR.parent)), WAIVED)
    assert line == "ceilings: needs a GPU: on the simulator nothing can be timed"


# ---- rows and counters -----------------------------------------------------------------------------------------------


def test_a_row_holds_the_check_and_the_counters_and_no_time(tmp_path):
    (row,) = simulate(tmp_path, "64", "96", "40", "--kernels", "01")
    assert row["status"] == "ok" and row["protocol"] == "check" and row["gpu"] == SIMULATED and row["sm"] == "90"
    assert 0 < float(row["max_error"]) < float(row["bound"])
    empty = ["rounds", "median_ms", "p10_ms", "p90_ms", "gflops", "cublas_ms", "cublaslt_ms", "ratio_cublas", "ratio_best"]
    empty += ["ceiling_fraction", "ceiling", "flop_clk_sm", "clock_mhz", "power_w", "throttle", "driver", "cublas"]
    assert {name: row[name] for name in empty} == dict.fromkeys(empty, "")
    assert row["registers"] != "0" and row["blocks_per_sm"] != "0", "unknown is empty"
    # A warp computes 32 neighbours of a row of C: for each k it loads one sector of A and four of B.
    fmas = 64 * 96 * 40
    assert int(row["sim_global_load_sectors"]) == fmas // 32 * 5
    assert int(row["sim_global_load_bytes"]) == fmas * 8
    assert int(row["sim_global_store_sectors"]) == 64 * 96 * 4 // 32
    assert int(row["sim_global_store_bytes"]) == 64 * 96 * 4
    assert int(row["sim_flops"]) >= 2 * fmas
    assert row["sim_shared_wavefronts"] == row["sim_shared_ideal"] == row["sim_barriers"] == "0"


def test_only_the_rungs_own_launch_is_counted_whatever_the_check(tmp_path):
    counters = []
    for check in ("full", "sample", "off"):
        (tmp_path / check).mkdir()
        (row,) = simulate(tmp_path / check, "64", "64", "64", "--kernels", "06", "--check", check)
        counters.append({name: value for name, value in row.items() if name.startswith("sim_")})
        assert row["status"] == "ok" and (row["max_error"] == "") == (check == "off")
    assert counters[0] == counters[1] == counters[2]


def test_the_seed_changes_no_result_and_no_count(tmp_path):
    one, two = (
        simulate(tmp_path, "65", "63", "17", "--kernels", "07", "--ld-pad", "align", "--sim-seed", seed)[-1] for seed in "12"
    )
    assert one == two | {"utc": one["utc"]}


def test_the_seed_repeats_an_order_of_warps_and_another_changes_it():
    """Told by which thread is the first to read what was not yet written."""

    def report(seed: int) -> str:
        return run("--sim", "32", "32", "32", "--kernels", "92", "--sim-seed", str(seed), program=BROKEN).stderr

    assert "simulator: " in report(1) and report(1) == report(1)
    assert len({report(seed) for seed in range(2, 8)}) > 1


def test_counts_by_line_are_those_of_the_rung_alone(tmp_path):
    file = tmp_path / "lines.csv"
    (row,) = simulate(tmp_path, "64", "64", "64", "--kernels", "05", "--sim-counts", str(file))
    counts = rows(file)
    totals = [line for line in counts if line["file"] == ""]
    assert len(totals) == 1 and totals[0]["launches"] == "1"
    by_line = [line for line in counts if line["file"] != ""]
    assert any(line["file"].endswith("05_float4.cu") for line in by_line)
    for ours, theirs in (("sim_warp_instructions", "warp_instructions"), ("sim_global_load_sectors", "global_load_sectors")):
        assert int(row[ours]) == int(totals[0][theirs]) == sum(int(line[theirs]) for line in by_line)


def test_a_file_for_counts_that_cannot_be_written_is_a_usage_error():
    done = run("--sim", "8", "8", "8", "--kernels", "01", "--sim-counts", "/nowhere/counts.csv")
    assert done.returncode == USAGE
    assert "--sim-counts: cannot write '/nowhere/counts.csv'" in done.stderr


def test_a_rung_is_waived_with_the_reason(tmp_path):
    (row,) = simulate(tmp_path, "8", "8", "9", "--kernels", "05", status=WAIVED)
    assert row["status"] == "waived" and "needs lda to be a multiple of 4" in row["reason"]
    assert row["sim_warp_instructions"] == ""


# ---- what it finds ---------------------------------------------------------------------------------------------------


def test_wrong_rungs_are_found_and_a_fault_does_not_end_the_run(tmp_path):
    right, edge, barrier, nan, nowhere, after, large = simulate(tmp_path, "67", "70", "41", program=BROKEN, status=WRONG)
    assert right["status"] == after["status"] == "ok"
    assert edge["status"] == nan["status"] == "wrong"
    assert "first at row 0, column 69: got nan" in edge["reason"]
    assert "1 of 4690 elements wrong" in nan["reason"]
    assert barrier["status"] == nowhere["status"] == "failed"
    assert "shared memory" in barrier["reason"] and "broken.cu:" in barrier["reason"]
    assert "rungs.cu:" in nowhere["reason"]
    assert large["status"] == "waived"
    assert large["reason"] == "needs 1048576 bytes of shared memory per block, this GPU has 232448"


def test_readme_shows_what_a_newcomer_sees():
    session = re.search(r"```\n(\$ git clone .*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    clone, *commands = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    assert clone.endswith("&& cd gemm-ladder\n") and len(commands) == 2
    for command, *shown in map(str.splitlines, commands):
        program, *arguments = command.split()
        done = run(*arguments, program=ROOT / program, CUDA_VISIBLE_DEVICES="")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == shown


def test_the_whole_run_without_a_gpu(tmp_path):
    """run_all.sh --quick, end to end, in a home that cannot be written; where there is a GPU, the simulator is asked for."""
    for name in ("pandas", "matplotlib", "rich", "jinja2"):
        pytest.importorskip(name)
    asked = ["--sim"] if shutil.which("nvidia-smi") else []
    homeless = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"} | {"HOME": "/proc/nobody"}
    command = [ROOT / "run_all.sh", "--quick", *asked, "--results", tmp_path]
    done = subprocess.run(command, env=homeless, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "/proc/nobody" not in done.stderr
    assert done.stdout.splitlines()[-1] == f"Report: {tmp_path}/report.html"
    assert asked or "no GPU here" in done.stderr
    rungs = len(list((ROOT / "kernels").glob("*.cu")))
    small = [line for line in (ROOT / "tests/shapes/small.txt").read_text().splitlines() if line and line[0] != "#"]
    for name, shapes in (("check", len(small)), ("counts", 1)):
        found = rows(tmp_path / f"{name}.csv")
        assert len(found) == rungs * shapes
        assert {row["status"] for row in found} <= {"ok", "waived"}
        assert {row["gpu"] for row in found} == {SIMULATED}
        assert all(row["sim_warp_instructions"] for row in found if row["status"] == "ok")
    html = (tmp_path / "report.html").read_text()
    assert html.index("Counted, f32 by FFMA, at 256³") < html.index("Recorded on NVIDIA H200") < html.index("The ladder, f32")
    assert (tmp_path / "plots/counters_f32_ffma_256x256x256.svg").exists()
