"""bench/compare_checks.py: its options and the simulator's part, and what it reads out of compute-sanitizer's words."""

import os

import pytest

from bench import compare_checks
from bench.compare_checks import first_line, main
from tests.checkout import ROOT, needs_simulator, rows


@needs_simulator
def test_the_simulator_finds_every_planted_mistake_and_no_mended_one(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    target = tmp_path / "checks.csv"
    assert main(["--tools", "simulator", "--csv", str(target)]) == 0
    found = rows(target)
    assert len(found) >= 28
    for row in found:
        assert row["found"] == ("no" if row["case"].endswith(" right") else "yes"), row
        assert bool(row["line"]) == (row["found"] == "yes"), row
    lines = {row["case"]: row["line"] for row in found}
    assert lines["mistakes misaligned"] == "misaligned address 0x…: 16 bytes at once need a multiple of 16"


@needs_simulator
def test_options(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["--tools", "simulator", "--cases", "mistakes race", "--csv", os.devnull]) == 0
    assert capsys.readouterr().out.startswith("mistakes race                  simulator  yes   a race in shared memory at 0x80: ")
    assert main(["--cases", "nothing has this name"]) == 2
    assert main(["--programs", "nowhere"]) == 2
    assert "nowhere/mistakes is not built" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--tools", "valgrind"])
    assert "there is no tool 'valgrind', only simulator, native, memcheck," in capsys.readouterr().err


def test_a_tool_that_cannot_run_here_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(compare_checks, "has_gpu", lambda: False)
    with pytest.raises(SystemExit):
        main(["--tools", "racecheck"])
    assert "racecheck cannot run here: it needs a GPU and its tools" in capsys.readouterr().err


def test_first_lines():
    said = "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at x(float *)+0x70\n"
    assert first_line("memcheck", said) == "Invalid __global__ write of size 4 bytes"
    assert first_line("native", "cudaErrorIllegalAddress\n") == "cudaErrorIllegalAddress"
    assert first_line("native", "cudaSuccess\n") == ""
    assert first_line("simulator", "cudaSuccess\n") == ""


def test_what_hangs_is_stopped(monkeypatch, tmp_path):
    program = tmp_path / "mistakes"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(compare_checks, "SECONDS", 0.2)
    row = compare_checks.look("native", ["mistakes", "deadlock"], tmp_path)
    assert row == {"case": "mistakes deadlock", "tool": "native", "found": "hangs", "line": ""}
