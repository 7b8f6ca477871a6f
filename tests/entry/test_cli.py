"""Bad input to the programs, as far as no GPU is needed: one clear line on stderr and the exit status that is promised."""

from pathlib import Path

import pytest

from tests.checkout import BIN, LADDER, ROOT, WAIVED, one_line, run


def complaint(*arguments: str, program: Path = LADDER) -> str:
    """The one line that a usage error prints."""
    line = one_line(run(program, *arguments))
    assert line.startswith(f"{program.name}: ")
    return line


@pytest.mark.parametrize("size", ["0", "-1", "abc", "1e30", "4.5", "99999999999999", ""])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_size_that_is_none_is_refused_and_named(size, place):
    sizes = ["64", "64", "64"]
    sizes[place] = size
    line = complaint(*sizes)
    assert "whole number" in line
    assert f"'{size}'" in line
    assert "MNK"[place] in line.removeprefix("ladder: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["64", "64"], "three"),
        (["64", "64", "64", "64"], "three"),
        (["64", "64", "64", "--shapes", "square"], "not both"),
        (["--kernels", "99"], "there is no rung '99'; --list lists all"),
        (["--kernels", "06c"], "nearest is 06"),
        (["--kernels", "07-03"], "low to high"),
        (["--kernels", ","], "--kernels takes rungs such as"),
        (["--type", "bf61"], "nearest is bf16"),
        (["--type", "f64"], "f32, tf32, bf16, f16"),
        (["--out", "f16"], "f32, same"),
        (["--roundz", "5"], "nearest is --rounds"),
        (["--shapes", "sqare"], "square"),
        (["--shapes", "64x64"], "MxNxK"),
        (["--shapes", "64x64x0"], "whole number"),
        (["--shapes", "/nowhere/shapes.txt"], "/nowhere/shapes.txt"),
        (["--init", "gaussian"], "normal, uniform, integer, zeros"),
        (["--l2", "hot"], "cold, warm"),
        (["--protocol", "round"], "nearest is rounds"),
        (["--rounds", "0"], "from 1"),
        (["--alpha", "nan"], "--alpha"),
        (["--beta", "1x"], "--beta"),
        (["--ld-pad", "-1"], "--ld-pad"),
        (["--check", "some"], "full, sample, off"),
        (["--check-only", "--check", "off"], "--check-only"),
        (["--resume"], "--csv"),
        (["--device", "-1"], "--device"),
        (["--sim-seed", "-1"], "--sim-seed takes a whole number"),
        (["--sim-seed", "x"], "--sim-seed takes a whole number"),
        (["--sim-checks", "rcae=warn"], "--sim-checks: there is no check 'rcae'; there are all, bounds, misaligned,"),
        (["--sim-checks", "race"], "--sim-checks: 'race' is not CHECK=off, CHECK=warn or CHECK=error"),
        (["--simm"], "nearest is --sim"),
        (["-M", "64"], "there is no option '-M'; --help lists all"),
        (["--kernels", "zzz"], "there is no rung 'zzz'; --list lists all"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options_are_refused_in_one_line(arguments, expected):
    assert expected in complaint(*arguments)


def test_a_bad_line_of_a_shapes_file_is_named(tmp_path):
    file = tmp_path / "shapes.txt"
    file.write_text("# sizes\n64 64 64\n\n64 many 64\n")
    line = complaint("--shapes", str(file))
    assert f"{file}:4" in line
    assert "'many'" in line


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
