"""What run_all.sh tells a reader to open, opened; and the help of its sub-commands."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_run_all
from test_run_all import USAGE, run_all

sys.path.append(str(Path(__file__).parents[1] / "plots"))

ROOT = Path(__file__).parents[2]
checkout = test_run_all.checkout
PNG = b"\x89PNG\r\n\x1a\n"

# ---- what it made ----------------------------------------------------------------------------------------------------


def doors(done: subprocess.CompletedProcess, folder: Path) -> dict[str, Path]:
    """What a run's last lines name, by label, as whoever called it from `folder` would look for it."""
    assert done.returncode == 0, done.stderr
    named = re.findall(r"^(Report|To share|Report of recorded results|Documentation): (.+)$", done.stdout, re.MULTILINE)
    return {label: folder / path for label, path in named}


def is_page(file: Path, title: str) -> bool:
    text = file.read_text(encoding="utf-8")
    return text.lower().lstrip().startswith("<!doctype html>") and text.rstrip().endswith("</html>") and f"<title>{title}" in text


LADDER = """#!/usr/bin/env bash
# Stands in for the ladder: leaves what the folder "made" has under the name that it is asked for.
if [[ $* == "--list --json" ]]; then cat made/rungs.json; exit; fi
while (($#)); do
  case $1 in
    --csv) cp "made/$(basename "$2")" "$2" ;;
    --environment) cp made/environment.json "$2" ;;
  esac
  shift
done
"""


@pytest.fixture
def drawing(checkout):
    """The checkout of stand-ins with the project's own plots, and synthetic results in place of measured ones."""
    import synthetic

    for name in ("plots", "bench", "kernels"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("recorded"), dirs_exist_ok=True)
    (checkout / "build/bin/ladder").write_text(LADDER)
    (checkout / "build/bin/ceilings").write_text('#!/bin/sh\ncp made/ceilings.csv "$2"\n')
    synthetic.write_folder(checkout / "made")
    return checkout


def test_the_report_and_the_picture_to_share_open_for_a_caller_elsewhere(drawing, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    opened = doors(run_all("--quick", folder=drawing, cwd=elsewhere), elsewhere)
    assert list(opened) == ["Report", "To share"]
    assert is_page(opened["Report"], "GEMM Ladder on Synthetic GPU 9000")
    assert opened["To share"].read_bytes().startswith(PNG)


def test_the_simulators_report_opens(drawing):
    import synthetic

    synthetic.write_simulation(drawing / "made")
    (drawing / "build/sim").mkdir()
    (drawing / "build/sim/libcudart.so.13").touch()
    opened = doors(run_all("--sim", "--quick", "--results", "mine", folder=drawing, cwd=drawing), drawing)
    assert list(opened) == ["Report"]
    assert is_page(opened["Report"], "GEMM Ladder on the simulator")


def test_the_report_of_recorded_results_opens(drawing):
    (drawing / "no_gpu").touch()
    shutil.copytree(drawing / "made", drawing / "bench/recorded/synthetic")
    opened = doors(run_all(folder=drawing, cwd=drawing), drawing)
    assert list(opened) == ["Report of recorded results"]
    assert is_page(opened["Report of recorded results"], "GEMM Ladder on Synthetic GPU 9000")


def test_the_site_opens_and_leads_to_the_notebook(tmp_path):
    pytest.importorskip("mkdocs")
    for name in ("docs", "kernels", "common", "tools", "plots", "requirements", "bench"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("local"))
    for name in ("run_all.sh", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    if (ROOT / ".venv").exists():
        (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    opened = doors(run_all("docs", folder=tmp_path, cwd=tmp_path), tmp_path)
    assert list(opened) == ["Documentation"]
    assert is_page(opened["Documentation"], "GEMM Ladder")
    (link,) = set(re.findall(r'href="([^"]+\.ipynb)"', opened["Documentation"].read_text()))
    notebook = json.loads((opened["Documentation"].parent / link).read_text())
    assert notebook["nbformat"] == 4 and any("./run_all.sh" in "".join(cell["source"]) for cell in notebook["cells"])


# ---- help --------------------------------------------------------------------------------------------------------------

WHOLE = run_all("help").stdout
COMMANDS = sorted(set(re.findall(r"^  \./run_all\.sh (\S+)", WHOLE, re.MULTILINE)))


def entries(text: str) -> list[str]:
    """The sub-commands that a help text has lines of; "" is the whole ladder."""
    return [word or "" for word in re.findall(r"^  \./run_all\.sh(?: (\S+))?", text, re.MULTILINE)]


def options(text: str) -> list[str]:
    """Those that a help text explains."""
    return re.findall(r"^  (--\S+)", text, re.MULTILINE)


def test_the_files_that_help_names_are_there():
    named = re.findall(r"\b(?:docs|kernels|tools)/[\w/]+\.\w+", WHOLE)
    assert len(named) >= 4
    assert all((ROOT / name).stat().st_size for name in named)


@pytest.mark.parametrize("asked", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_sub_command_has_its_part_of_the_help(command, asked, tmp_path):
    """Where there is neither Python nor a compiler, and without leaving anything."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copy(ROOT / "run_all.sh", tmp_path)
    path = test_run_all.tools(tmp_path / "bin", "awk", "grep")
    before = sorted(tmp_path.rglob("*"))
    done = run_all(command, asked, folder=tmp_path, cwd=tmp_path, PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(entries(done.stdout)) == ({"", "--quick"} if command == "--quick" else {command})
    assert set(filter(None, done.stdout.splitlines())) <= set(WHOLE.splitlines())
    usage = done.stdout.partition("\n\n")[0]
    assert set(options(done.stdout)) == set(re.findall(r"--[a-z-]+", usage)) - {"--quick", "--help", "--from"}
    assert sorted(tmp_path.rglob("*")) == before


def test_every_option_of_the_help_is_some_sub_commands():
    assert len(options(WHOLE)) == len(set(options(WHOLE)))
    assert set(options(WHOLE)) == {option for command in COMMANDS for option in options(run_all(command, "--help").stdout)}


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        (["help", "run"], "run"),
        (["--help", "sim"], "sim"),
        (["--sim", "--results", "here", "-h"], "--quick"),
        (["exercise", "1", "--help"], "exercise"),
        (["diff", "05", "-h"], "diff"),
        (["counts", "06", "--help"], "counts"),
        (["sim", "--sim-seed", "7", "--help"], "sim"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_is_also_had_in_other_words(asked, of):
    done = run_all(*asked)
    assert done.returncode == 0 and of in entries(done.stdout)
    assert done.stdout == run_all(of, "--help").stdout


def test_a_wrong_option_is_told_what_the_help_says():
    for option in options(run_all("sim", "--help").stdout):
        assert f"the nearest is {option}" in run_all("sim", f"{option}x").stderr
        assert run_all("sim", option).stderr == f"run_all.sh: sim: {option} takes a value\n"


@pytest.mark.parametrize("arguments", [["nonsense", "--help"], ["help", "nonsense"]])
def test_there_is_no_help_of_what_is_not_there(arguments):
    done = run_all(*arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == "run_all.sh: there is no sub-command 'nonsense'; ./run_all.sh help lists all\n"
