"""The helpers of diff, profile and test, without a GPU: Nsight Compute is a stand-in that answers as it does."""

import csv
import os
import re
from pathlib import Path

import pytest

from plots.data.cubin import blocks_per_sm
from tools import profile
from tools import test as suites
from tools.test import Count, Log, with_results

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("sm", "threads", "registers", "shared_bytes", "blocks"),
    [
        (80, 256, 32, 0, 8),  # threads bind
        (80, 1024, 32, 8192, 2),
        (86, 256, 32, 0, 6),
        (90, 256, 125, 8192, 2),  # registers bind
        (90, 256, 213, 24576, 1),
        (90, 128, 40, 48 * 1024, 4),  # shared memory binds
        (90, 32, 16, 0, 32),  # blocks bind
        (90, 0, 16, 0, None),  # no launch bounds
        (75, 256, 32, 32 * 1024, 2),  # nothing reserved
        (75, 32, 16, 0, 16),  # no shared memory
        (120, 256, 32, 0, 6),
        (120, 256, 128, 48 * 1024, 2),
        (120, 256, 64, 50 * 1024, 1),  # 2 x 50 KB, and 2 KB that the system takes
        (30, 256, 32, 0, None),  # not in the table
    ],
)
def test_occupancy(sm, threads, registers, shared_bytes, blocks):
    assert blocks_per_sm(sm, threads, registers, shared_bytes) == blocks


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts an ncu on the PATH that notes its arguments and prints `text`."""

    def install(text: str, status: int = 0) -> Path:
        (tmp_path / "answer").write_text(text)
        file = tmp_path / "ncu"
        file.write_text(f'#!/usr/bin/env bash\necho "$*" >"{tmp_path}/arguments"\ncat "{tmp_path}/answer"\nexit {status}\n')
        file.chmod(0o755)
        return tmp_path / "arguments"

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return install


def answer() -> str:
    names = [metric.ncu for metric in profile.METRICS]
    head = ["ID", "Kernel Name"]
    rows = [head + names, ["", "", *["byte"] * len(names)], ["0", "sgemm", *[f"{1000 + i},5" for i in range(len(names))]]]
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    return f"==PROF== Connected to process 1\nkernel   type   shape\n==PROF== Disconnected from process 1\n{table}\n"


def test_profile_reads_every_metric(ncu, tmp_path, monkeypatch, capsys):
    arguments = ncu(answer())
    monkeypatch.chdir(ROOT)
    values = profile.collect("06_bank_conflict_free", ["256", "256", "256"], ["--type", "f32"])
    assert all(values[metric.ncu] == f"{1000 + i},5" for i, metric in enumerate(profile.METRICS))
    asked = arguments.read_text()
    assert "--clock-control none" in asked
    assert "06_bank_conflict_free 256 256 256 --type f32" in asked or "ladder --kernels 06 256 256 256 --type f32" in asked

    monkeypatch.setattr(profile, "collect", lambda *_: values)
    monkeypatch.chdir(tmp_path)
    profile.main(["06_bank_conflict_free", "256", "256", "256", "--type", "f32"])
    with Path("results/profile/06_bank_conflict_free_256x256x256_f32.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["ncu"] for row in rows] == [metric.ncu for metric in profile.METRICS]
    assert rows[0]["value"] == "10005"
    assert "issue: FMA pipe" in capsys.readouterr().out

    for stem in ("06_bank_conflict_free", "07_double_buffer"):
        profile.main([stem, "256", "256", "256", "--csv", "all.csv"])
    with Path("all.csv").open(newline="") as lines:
        assert [row["kernel"] for row in csv.DictReader(lines)][:: len(rows)] == ["06_bank_conflict_free", "07_double_buffer"]


def test_profile_finds_a_variant_of_a_sweep_by_its_file():
    program, names = profile.program_of("sweep_16/stages_2")
    assert program == ["build/sweep_16/ladder"]
    assert re.search(names, "_ZN46_GLOBAL__N__0123abcd_11_stages_2_cu_4567cdef4gemmEv")
    assert not re.search(names, "_ZN66_GLOBAL__N__0123abcd_31_block_128x128_twice_stages_2_cu_4567cdef4gemmEv")


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", 77, "administrator"),
        ("==ERROR== Failed to find metric foo\n", 1, "Failed to find metric foo"),
        ("", 1, "measured nothing"),
    ],
)
def test_profile_says_why_nothing_was_measured(ncu, monkeypatch, capsys, text, status, expected):
    ncu(text, status=9)
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as stopped:
        profile.collect("06_bank_conflict_free", ["64", "64", "64"])
    assert stopped.value.code == status
    assert expected in capsys.readouterr().err


CASES = """<testsuite>
<testcase/><testcase/><testcase><failure/></testcase><testcase><error/></testcase>
<testcase><skipped message="no GPU"/></testcase><testcase status="notrun"/>
</testsuite>"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo '{cases}' >{file}; exit 1", Count(passed=2, failed=2, skipped=2)),
        ("echo '<testsuite><testcase/></testsuite>' >{file}", Count(passed=1)),
        ("echo '<testsuite><testcase/></testsuite>' >{file}; exit 3", Count(passed=1, failed=1)),
        ("exit 3", Count(failed=1)),
        ("true", Count(failed=1)),
    ],
    ids=["cases are counted", "all passed", "crashed at the end", "crashed", "wrote nothing"],
)
def test_counts_add_up_and_a_crash_is_a_failure(tmp_path, script, expected):
    file = tmp_path / "cases.xml"
    file.write_text("left by an earlier run")
    assert with_results(["bash", "-c", script.format(cases=CASES, file=file)], file, Log()) == expected


def test_suites_that_run_beside_each_other_show_their_text_whole(monkeypatch, capfd):
    def suite(word: str):
        script = f"for i in 1 2 3; do echo {word}; sleep 0.05; done"
        return lambda log: Count(passed=1, failed=log.run(["bash", "-c", script]))

    three = {"first": suite("first"), "second": suite("second"), "third": lambda _: Count(failed=1)}
    monkeypatch.setattr(suites, "SUITES", three)
    monkeypatch.setattr(suites, "has_gpu", lambda: False)
    assert suites.main([]) == 1
    said = capfd.readouterr().out
    assert "== first\nfirst\nfirst\nfirst\n" in said and "== second\nsecond\nsecond\nsecond\n" in said
    assert said.endswith("\n2 passed, 1 failed, 0 skipped\n")
