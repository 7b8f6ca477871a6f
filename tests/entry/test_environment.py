"""tools/setup.sh on .venv: what stands there and is no environment of this checkout is set aside and made anew."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash")

# For `python3 -m venv`, which takes seconds: an environment made by the test is copied, or the words of a failure are said.
MAKES = 'create_venv() {{ cp -r "{made}" "$venv" && sed -i "1s|.*|#!$venv/bin/python3|" "$venv/bin/pip"; }}'
FAILS = 'create_venv() {{ echo "{words}"; return 1; }}'


def run(script: str, folder: Path) -> subprocess.CompletedProcess:
    command = [BASH, "-euo", "pipefail", "-c", f"cd '{folder}'; source '{ROOT}/tools/setup.sh'; {script}"]
    return subprocess.run(command, capture_output=True, text=True)


def environment(folder: Path) -> Path:
    """What passes for an environment: a Python that imports pip, and a program that names it."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin/python3"
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "pip.py").touch()
    (folder / "bin/pip").write_text(f"#!{python}\n")
    (folder / "bin/pip").chmod(0o755)
    return folder


@pytest.fixture
def made(tmp_path_factory) -> Path:
    return environment(tmp_path_factory.mktemp("elsewhere") / "made")


def link_to_nowhere(place: Path) -> None:
    place.symlink_to("/no/such/folder")


def file(place: Path) -> None:
    place.write_text("mine\n")


def half_made(place: Path) -> None:
    environment(place)
    (place / "bin/pip").unlink()


def without_its_python(place: Path) -> None:
    environment(place)
    for name in ("python", "python3"):
        (place / "bin" / name).unlink()
        (place / "bin" / name).symlink_to("/no/such/python3")


def without_pip(place: Path) -> None:
    environment(place)
    for found in place.glob("lib/python3*/site-packages/pip.py"):
        found.unlink()


def made_at_another_path(place: Path) -> None:
    environment(place.parent / "before")
    (place.parent / "before").rename(place)


def with_a_space_made_at_another_path(place: Path) -> None:
    environment(place)
    (place / "bin/pip").write_text("#!/bin/sh\n'''exec' \"/be fore/bin/python3\" \"$0\" \"$@\"\n' '''\n")


FAULTS = {
    link_to_nowhere: "a link to nowhere",
    file: "no folder",
    half_made: "half made",
    without_its_python: "one whose Python does not start",
    without_pip: "one whose Python does not start",
    made_at_another_path: "made for another path",
    with_a_space_made_at_another_path: "made for another path",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_is_no_environment_is_set_aside_and_made_anew(fault, made, tmp_path):
    folder = tmp_path / "a checkout"
    folder.mkdir()
    fault(folder / ".venv")
    before = sorted(path.name for path in (folder / ".venv").glob("*"))
    done = run(MAKES.format(made=made) + "; make_venv rich; use_venv; type -P pip", folder)
    assert done.returncode == 0, done.stderr
    aside, making = done.stderr.splitlines()
    assert aside == f"setup: .venv is {FAULTS[fault]}; it is now .venv.old"
    assert making == "setup: a Python environment in .venv for rich"
    assert done.stdout == f"{folder}/.venv/bin/pip\n"
    old = folder / ".venv.old"
    assert old.is_symlink() or old.exists()
    assert sorted(path.name for path in old.glob("*")) == before


def test_a_second_one_does_not_lose_the_first(made, tmp_path):
    file(tmp_path / ".venv")
    (tmp_path / ".venv.old").mkdir()
    done = run(MAKES.format(made=made) + "; make_venv", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv.old.old").read_text() == "mine\n"
    assert (tmp_path / ".venv.old").is_dir()


@pytest.mark.parametrize("linked", [False, True])
def test_an_environment_that_works_is_kept(linked, tmp_path):
    """Behind a link, too, whose target its programs name."""
    if linked:
        (tmp_path / ".venv").symlink_to(environment(tmp_path / "own"))
    else:
        environment(tmp_path / ".venv")
    done = run("create_venv() { return 1; }; make_venv; venv_fault", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / ".venv.old").exists()


def test_where_there_is_none_it_is_made_without_a_word_about_another(made, tmp_path):
    done = run(MAKES.format(made=made) + "; make_venv", tmp_path)
    assert done.stderr.splitlines() == ["setup: a Python environment in .venv"]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("The virtual environment was not created because ensurepip is not available.", "This Python has no venv: "),
        ("OSError: [Errno 28] No space left on device", "The disk is full. "),
        ("PermissionError: [Errno 13] Permission denied: '.venv'", "This folder cannot be written to. "),
        ("NewConnectionError: Failed to establish a new connection", "Is there a network? "),
        ("Error: [Errno 17] File exists", ""),
    ],
)
def test_an_error_names_the_cause_that_the_log_holds(words, cause, tmp_path):
    done = run(FAILS.format(words=words) + "; make_venv", tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"run_all.sh: making .venv failed. {cause}")
    assert ("venv:" in last) == ("ensurepip" in words), "the advice to install venv is for those who lack it"
    assert last.endswith("The whole log: .deps/setup.log")


@pytest.mark.skipif(not shutil.which("pip"), reason="there is no pip here to make one with")
def test_the_environments_that_python_makes_are_known(tmp_path):
    """Their real text, in a folder whose name has a space."""
    folder = tmp_path / "a checkout"
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=False, capture_output=True)
    if not (folder / ".venv/bin/pip").exists():
        pytest.skip("this Python has no ensurepip")
    assert run("venv_fault", folder).stdout == ""
    folder.rename(tmp_path / "moved")
    assert run("venv_fault", tmp_path / "moved").stdout == "made for another path\n"
