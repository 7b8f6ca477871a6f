"""Bad input to the programs, as far as no GPU is needed: one clear line on stderr and the exit status that is promised."""

from pathlib import Path

import pytest

from tests.checkout import BIN, LADDER, ROOT, WAIVED, one_line, run


def complaint(*arguments: str, program: Path = LADDER) -> str:
    """The one line that a usage error prints."""
    line = one_line(run(program, *arguments))
    assert line.startswith(f"{program.name}: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["64", "abc", "64"], "N must be a whole number from 1 to 2000000000, got 'abc'"),
        (["--kernels", "99"], "there is no rung '99'; --list lists all"),
        (["--shapes", "/nowhere/shapes.txt"], "/nowhere/shapes.txt"),
        (["--roundz", "5"], "nearest is --rounds"),
        (["--resume"], "--csv"),
        (["--tune"], "--tune needs --plans"),
        (["--device", "-1"], "--device"),
        (["--sim-seed", "x"], "--sim-seed takes a whole number"),
        (["--sim-checks", "rcae=warn"], "--sim-checks: there is no check 'rcae'; there are all, bounds, misaligned,"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused_is_one_line(arguments, expected):
    """Of each place that refuses one; what else is refused, tests/host/options_test.cpp and shapes_test.cpp know."""
    assert expected in complaint(*arguments)


def test_one_rung_program_takes_the_same_options():
    program = BIN / "06_bank_conflict_free"
    assert "'0'" in complaint("0", "64", "64", program=program)
    assert run(program, "--help").returncode == 0
    listed = run(program, "--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == 2  # a heading and itself


def test_list_holds_every_rung():
    lines = run(LADDER, "--list").stdout.splitlines()
    stems = sorted(path.stem for folder in ("kernels", "kernels/local") for path in (ROOT / folder).glob("*.cu"))
    assert [f"{line.split()[0]}_{line.split()[1]}" for line in lines[1:]] == stems


def test_without_a_gpu_ceilings_says_so_and_is_waived():
    """CUDA_VISIBLE_DEVICES hides whatever GPU there is."""
    assert one_line(run(BIN / "ceilings", CUDA_VISIBLE_DEVICES=""), WAIVED).startswith("ceilings: no GPU here")


def test_ceilings_refuses_an_unknown_option():
    assert "--loud" in complaint("--loud", program=BIN / "ceilings")
