"""The ladder program: rows, resuming, interruption, and what it refuses, on a GPU and on the simulator; timing on a GPU alone."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import checkout
from tests.checkout import BIN, BROKEN, LADDER, SIMULATOR, rows


def run(*arguments: object, program: Path = LADDER) -> subprocess.CompletedProcess:
    return checkout.run(program, *arguments)


@pytest.fixture(scope="module")
def why_no_gpu() -> str:
    """Why nothing can be run on a GPU here; empty where it can."""
    if not LADDER.exists():
        return "build/bin/ladder is not built"
    probe = run("8", "8", "8", "--kernels", "01", "--check-only")
    if probe.returncode == 77 or "running on the simulator" in probe.stderr:
        return probe.stderr.splitlines()[0]
    return ""


@pytest.fixture
def gpu(why_no_gpu):
    """Asked for by tests that time something."""
    if why_no_gpu:
        pytest.skip(why_no_gpu)


@pytest.fixture(params=["gpu", "simulator"])
def device(request, why_no_gpu) -> list[str]:
    """Asked for by tests that run on either: the options that choose it."""
    if request.param == "gpu":
        if why_no_gpu:
            pytest.skip(why_no_gpu)
        return []
    if not SIMULATOR.exists() or not LADDER.exists():
        pytest.skip("the simulator or the ladder is not built")
    return ["--sim"]


def interrupted(asked: list[str | Path], file: Path, least_rows: int, disposition=signal.SIG_DFL) -> tuple[int, str]:
    """Exit status and stderr of a program to which Ctrl-C was sent once it had written so many rows.

    Whoever started this test, in the background perhaps, may have Ctrl-C ignored, and a program inherits that.
    """
    program = subprocess.Popen(
        [*map(str, asked), "--csv", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, disposition),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not file.exists() or len(rows(file)) < least_rows):
        time.sleep(0.02)
    program.send_signal(signal.SIGINT)
    error = program.communicate(timeout=300)[1]
    return program.returncode, error


# ---- on a GPU and on the simulator -----------------------------------------------------------------------------------


def test_resume_measures_only_what_is_missing(device, tmp_path):
    file = tmp_path / "rows.csv"
    arguments = (*device, "--kernels", "01,02", "--check-only", "--csv", file, "--resume")
    run("--shapes", "64x64x64", *arguments)
    again = run("--shapes", "64x64x64,32x32x32", *arguments)
    assert "2 of 4 cells" in again.stderr
    assert [(row["kernel"][:2], row["m"]) for row in rows(file)] == [
        ("01", "64"),
        ("02", "64"),
        ("01", "32"),
        ("02", "32"),
    ]


def test_resume_looks_again_at_what_was_wrong(device, tmp_path):
    file = tmp_path / "rows.csv"
    asked = (*device, "203", "211", "31", "--kernels", "90,91", "--check-only", "--csv", file, "--resume")
    assert run(*asked, program=BROKEN).returncode == 1
    again = run(*asked, program=BROKEN)
    assert again.returncode == 1
    assert "1 of 2 cells" in again.stderr
    assert [(row["kernel"][:2], row["status"]) for row in rows(file)] == [("90", "ok"), ("91", "wrong"), ("91", "wrong")]


def test_interruption_keeps_rows_and_says_how_to_go_on(device, tmp_path):
    file = tmp_path / "rows.csv"
    large = "256x256x256,512x512x512,513x512x512" if device else "4096x4096x4096,6144x6144x6144"
    asked = [LADDER, *device, "--kernels", "01,01b", "--shapes", f"64x64x64,{large}"]
    status, error = interrupted(asked, file, least_rows=2)
    assert status == 130
    assert "--resume goes on from there" in error
    kept = rows(file)
    assert 2 <= len(kept) < 6 and all(row["status"] == "ok" for row in kept)


def test_ctrl_c_that_is_ignored_stays_so(device, tmp_path):
    """As in the background of a script, where it is meant for the program in the foreground."""
    file = tmp_path / "rows.csv"
    asked = [LADDER, *device, "--kernels", "01,02,03", "--shapes", "64x64x64,65x65x65", "--check-only"]
    status, _ = interrupted(asked, file, least_rows=1, disposition=signal.SIG_IGN)
    assert status == 0
    assert len(rows(file)) == 6


def test_rows_of_another_gpu_are_refused(device, tmp_path):
    file = tmp_path / "rows.csv"
    asked = (*device, "8", "8", "8", "--kernels", "01", "--check-only", "--csv", file)
    run(*asked)
    gpu = rows(file)[0]["gpu"]
    text = file.read_text().replace(gpu, "NVIDIA Other")
    file.write_text(text)
    refused = run(*asked)
    assert refused.returncode == 2
    assert f"holds results of NVIDIA Other, this is {gpu}" in refused.stderr
    assert file.read_text() == text


def test_rows_that_a_rung_cannot_load_are_waived_with_the_reason(device):
    waived = run(*device, "64", "64", "257", "--kernels", "05")
    assert waived.returncode == 77
    assert "waived: needs lda to be a multiple of 4 for 16-byte accesses, got 257" in waived.stdout
    assert run(*device, "64", "64", "257", "--kernels", "01,05", "--check-only").returncode == 0


def test_a_type_that_a_rung_does_not_compute_is_waived(device):
    waived = run(*device, "64", "64", "64", "--kernels", "01", "--type", "bf16")
    assert waived.returncode == 77
    assert "computes f32, not bf16" in waived.stdout


def test_more_shared_memory_than_there_is_is_waived(device):
    waived = run(*device, "64", "64", "64", "--kernels", "96", "--check-only", program=BROKEN)
    assert waived.returncode == 77
    assert "waived: needs 1048576 bytes of shared memory per block, this GPU has" in waived.stdout


def test_what_cannot_fit_is_a_usage_error_with_both_sizes(device):
    refused = run(*device, "400000", "400000", "400000", "--kernels", "01")
    assert refused.returncode == 2
    assert "needs" in refused.stderr and "are free" in refused.stderr


def test_a_device_that_is_not_there(device):
    refused = run(*device, "8", "8", "8", "--device", "99")
    assert refused.returncode == 2
    assert "--device takes a number from 0 to" in refused.stderr


def test_wrong_results_are_told_and_kept(device, tmp_path):
    file = tmp_path / "rows.csv"
    asked = (*device, "203", "211", "1031", "--kernels", "90,91,93", "--check-only", "--csv", file)
    assert run(*asked, program=BROKEN).returncode == 1
    right, *wrong = rows(file)
    assert right["status"] == "ok"
    assert [row["status"] for row in wrong] == ["wrong"] * 2
    assert all(row["max_error"] for row in wrong)
    assert "first at row 0, column 210: got nan" in wrong[0]["reason"]
    assert "1 of 42833 elements wrong; first at row 101, column 70: got nan" in wrong[1]["reason"]


def test_an_environment_says_which_gpu_it_was(device, tmp_path):
    file = tmp_path / "environment.json"
    assert run(*device, "8", "8", "8", "--kernels", "01", "--check-only", "--environment", file).returncode == 0
    assert re.fullmatch("[0-9a-f]{8}", json.loads(file.read_text())["gpu_id"])


# ---- on a GPU --------------------------------------------------------------------------------------------------------


def test_a_row_holds_what_was_measured(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    assert run("512", "512", "512", "--kernels", "05", "--rounds", "7", "--csv", file).returncode == 0
    (row,) = rows(file)
    assert row["kernel"] == "05_float4" and row["status"] == "ok" and row["rounds"] == "7"
    gflops = 2 * 512**3 / float(row["median_ms"]) * 1e-6
    assert float(row["gflops"]) == pytest.approx(gflops, rel=1e-4)
    assert float(row["p10_ms"]) <= float(row["median_ms"]) <= float(row["p90_ms"])
    assert 0 < float(row["ratio_best"]) <= float(row["ratio_cublas"]) * 1.001
    assert row["ceiling"] == "fp32_fma" and 0 < float(row["ceiling_fraction"]) < 1
    assert 100 < float(row["clock_mhz"]) < 5000
    assert 0 < float(row["flop_clk_sm"]) < 256  # FMAs of 128 lanes
    assert 0 < float(row["max_error"]) < float(row["bound"])
    assert int(row["registers"]) > 32 and int(row["blocks_per_sm"]) >= 1


def test_a_tensor_core_rung_is_compared_with_the_tensor_cores(gpu, tmp_path):
    file, ceilings = tmp_path / "rows.csv", tmp_path / "ceilings.csv"
    measured = run("--csv", ceilings, program=BIN / "ceilings")
    assert measured.returncode == 0
    limit = {row["name"]: float(row["value"]) for row in rows(ceilings)}
    if "mma_bf16" not in limit:
        pytest.skip("needs sm_80")
    asked = ("2048", "2048", "2048", "--kernels", "13", "--type", "bf16", "--rounds", "7", "--csv", file)
    assert run(*asked, "--ceilings", ceilings).returncode == 0
    (row,) = rows(file)
    assert row["ceiling"] == "mma_bf16" and 0 < float(row["ceiling_fraction"]) < 1
    assert 0 < float(row["flop_clk_sm"]) < limit["mma_bf16_per_clk"]
    assert 200 < limit["fp32_fma_per_clk"] <= 256
    ceilings.write_text("".join(line for line in ceilings.open() if "mma_" not in line))
    refused = run(*asked, "--ceilings", ceilings)
    assert refused.returncode == 2 and "lacks mma_bf16" in refused.stderr


def test_every_sample_is_kept(gpu, tmp_path):
    samples = tmp_path / "samples.csv"
    run("256", "256", "256", "--kernels", "01", "--rounds", "5", "--samples-csv", samples)
    assert {(row["which"], row["round"]) for row in rows(samples)} >= {
        (which, str(round)) for which in ("kernel", "cublas") for round in range(5)
    }


@pytest.mark.parametrize("arguments", [("--beta", "0.5"), ("--init", "zeros"), ("--ld-pad", "8"), ("--l2", "warm")])
def test_timing_with_other_options(gpu, arguments):
    assert run("256", "256", "256", "--kernels", "02,06", "--rounds", "5", *arguments).returncode == 0


def test_steady_protocol(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    done = run("1024", "1024", "1024", "--kernels", "08", "--protocol", "steady", "--rounds", "2", "--csv", file)
    assert done.returncode == 0
    assert rows(file)[0]["protocol"] == "steady" and rows(file)[0]["rounds"] == "2"


def test_wrong_results_are_not_timed(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    done = run("203", "211", "1031", "--kernels", "90-93", "--rounds", "5", "--csv", file, program=BROKEN)
    assert done.returncode == 1
    right, *wrong = rows(file)
    assert right["median_ms"]
    assert [row["status"] for row in wrong] == ["wrong"] * 3
    assert all(row["median_ms"] == "" for row in wrong)
    assert "what is wrong was not timed; --check off times it all the same" in done.stderr
    unchecked = run("203", "211", "1031", "--kernels", "91", "--rounds", "5", "--check", "off", program=BROKEN)
    assert unchecked.returncode == 0


def test_sittings_have_rows_and_orders_of_their_own(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    asked = ("--kernels", "01-04", "--shapes", "256x256x256,512x512x512", "--sittings", "3", "--csv", file)
    assert run(*asked).returncode == 0
    kept = rows(file)
    orders = [[(row["kernel"], row["m"]) for row in kept if row["sitting"] == str(sitting)] for sitting in (1, 2, 3)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2]) and len(orders[0]) == 10
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert all(bool(row["max_error"]) == (row["sitting"] == "1") for row in kept)
    for row in kept:
        clocks = float(row["ratio_cublas"]) * float(row["cublas_clock_mhz"]) / float(row["clock_mhz"])
        assert float(row["ratio_clk"]) == pytest.approx(clocks, rel=1e-4)
    assert "30 of 30 cells" in run(*asked, "--resume").stderr


def test_a_wrong_rung_has_one_sitting(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    run("203", "211", "1031", "--kernels", "90,91", "--sittings", "2", "--csv", file, program=BROKEN)
    assert sorted((row["kernel"][:2], row["sitting"], row["status"]) for row in rows(file)) == [
        ("90", "1", "ok"),
        ("90", "2", "ok"),
        ("91", "1", "wrong"),
    ]


def test_a_lost_context_ends_the_run_and_keeps_its_rows(gpu, tmp_path):
    file = tmp_path / "rows.csv"
    done = run("64", "64", "64", "--kernels", "90,94,95", "--rounds", "5", "--csv", file, program=BROKEN)
    assert done.returncode == 1
    assert "stopping: the GPU can run nothing more in this process; 1 cells are left" in done.stderr
    assert [row["status"] for row in rows(file)] == ["ok", "failed"]
    assert "cudaErrorIllegalAddress" in rows(file)[1]["reason"]
