"""The ladder program on a GPU: rows, resuming, interruption, and what it refuses. Skipped where there is no GPU."""

import csv
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LADDER = ROOT / "build" / "bin" / "ladder"
BROKEN = ROOT / "build" / "bin" / "broken_ladder"


def run(*arguments: str | Path, program: Path = LADDER) -> subprocess.CompletedProcess:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    if not LADDER.exists():
        pytest.skip("build/bin/ladder is not built")
    probe = run("8", "8", "8", "--kernels", "01", "--check-only")
    if probe.returncode == 77 or "running on the simulator" in probe.stderr:
        pytest.skip(probe.stderr.splitlines()[0])


def test_a_row_holds_what_was_measured(tmp_path):
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


def test_a_tensor_core_rung_is_compared_with_the_tensor_cores(tmp_path):
    file, ceilings = tmp_path / "rows.csv", tmp_path / "ceilings.csv"
    measured = run("--csv", ceilings, program=ROOT / "build/bin/ceilings")
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


def test_every_sample_is_kept(tmp_path):
    samples = tmp_path / "samples.csv"
    run("256", "256", "256", "--kernels", "01", "--rounds", "5", "--samples-csv", samples)
    assert {(row["which"], row["round"]) for row in rows(samples)} >= {
        (which, str(round)) for which in ("kernel", "cublas") for round in range(5)
    }


def test_resume_measures_only_what_is_missing(tmp_path):
    file = tmp_path / "rows.csv"
    arguments = ("--kernels", "01,02", "--check-only", "--csv", file, "--resume")
    run("--shapes", "64x64x64", *arguments)
    again = run("--shapes", "64x64x64,32x32x32", *arguments)
    assert "2 of 4 cells" in again.stderr
    assert [(row["kernel"][:2], row["m"]) for row in rows(file)] == [
        ("01", "64"),
        ("02", "64"),
        ("01", "32"),
        ("02", "32"),
    ]


def test_interruption_keeps_rows_and_says_how_to_go_on(tmp_path):
    file = tmp_path / "rows.csv"
    program = subprocess.Popen(
        [LADDER, "--kernels", "01,01b", "--shapes", "64x64x64,4096x4096x4096,6144x6144x6144", "--csv", file],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not file.exists() or len(rows(file)) < 2):
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    error = program.communicate(timeout=60)[1]
    assert program.returncode == 130
    assert "--resume goes on from there" in error
    kept = rows(file)
    assert 2 <= len(kept) < 6 and all(row["status"] == "ok" for row in kept)


def test_rows_of_another_gpu_are_refused(tmp_path):
    file = tmp_path / "rows.csv"
    run("8", "8", "8", "--kernels", "01", "--check-only", "--csv", file)
    gpu = rows(file)[0]["gpu"]
    text = file.read_text().replace(gpu, "NVIDIA Other")
    file.write_text(text)
    refused = run("8", "8", "8", "--kernels", "01", "--check-only", "--csv", file)
    assert refused.returncode == 2
    assert f"holds results of NVIDIA Other, this is {gpu}" in refused.stderr
    assert file.read_text() == text


def test_rows_that_a_rung_cannot_load_are_waived_with_the_reason():
    waived = run("64", "64", "257", "--kernels", "05")
    assert waived.returncode == 77
    assert "waived: needs lda to be a multiple of 4 for 16-byte accesses, got 257" in waived.stdout
    assert run("64", "64", "257", "--kernels", "01,05", "--check-only").returncode == 0


def test_a_type_that_a_rung_does_not_compute_is_waived():
    waived = run("64", "64", "64", "--kernels", "01", "--type", "bf16")
    assert waived.returncode == 77
    assert "computes f32, not bf16" in waived.stdout


def test_what_cannot_fit_is_a_usage_error_with_both_sizes():
    refused = run("400000", "400000", "400000", "--kernels", "01")
    assert refused.returncode == 2
    assert "needs" in refused.stderr and "are free" in refused.stderr


def test_a_device_that_is_not_there():
    refused = run("8", "8", "8", "--device", "99")
    assert refused.returncode == 2
    assert "--device takes a number from 0 to" in refused.stderr


@pytest.mark.parametrize("arguments", [("--beta", "0.5"), ("--init", "zeros"), ("--ld-pad", "8"), ("--l2", "warm")])
def test_timing_with_other_options(arguments):
    assert run("256", "256", "256", "--kernels", "02,06", "--rounds", "5", *arguments).returncode == 0


def test_steady_protocol(tmp_path):
    file = tmp_path / "rows.csv"
    done = run("1024", "1024", "1024", "--kernels", "08", "--protocol", "steady", "--rounds", "2", "--csv", file)
    assert done.returncode == 0
    assert rows(file)[0]["protocol"] == "steady" and rows(file)[0]["rounds"] == "2"


def test_wrong_results_are_told_kept_and_not_timed(tmp_path):
    file = tmp_path / "rows.csv"
    done = run("203", "211", "1031", "--kernels", "90-93", "--rounds", "5", "--csv", file, program=BROKEN)
    assert done.returncode == 1
    right, *wrong = rows(file)
    assert right["status"] == "ok" and right["median_ms"]
    assert [row["status"] for row in wrong] == ["wrong"] * 3
    assert all(row["median_ms"] == "" and row["max_error"] for row in wrong)
    assert "first at row 0, column 210: got nan" in wrong[0]["reason"]
    assert "1 of 42833 elements wrong; first at row 101, column 70: got nan" in wrong[2]["reason"]


def test_a_lost_context_ends_the_run_and_keeps_its_rows(tmp_path):
    file = tmp_path / "rows.csv"
    done = run("64", "64", "64", "--kernels", "90,94,95", "--rounds", "5", "--csv", file, program=BROKEN)
    assert done.returncode == 1
    assert "stopping: the GPU can run nothing more in this process; 1 cells are left" in done.stderr
    assert [row["status"] for row in rows(file)] == ["ok", "failed"]
    assert "cudaErrorIllegalAddress" in rows(file)[1]["reason"]
