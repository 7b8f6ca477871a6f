""".ci/run, with a run_all.sh that looks around in place of the project's."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOOKS_AROUND = """#!/usr/bin/env bash
echo "arguments: $*"
echo "home: $(ls -A "$HOME" | wc -l)"
echo "tmp: $(ls -A /tmp | wc -l)"
echo "folder: $PWD"
echo "origin: $(ls -A "$(git config remote.origin.url)" 2>/dev/null | wc -l)"
[[ -f needed ]] || exit 1
[[ ! -f needs_a_file ]] || [[ -e $(<needs_a_file) ]]
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")


@pytest.fixture
def checkout(tmp_path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "run_all.sh").write_text(LOOKS_AROUND)
    (tmp_path / "run_all.sh").chmod(0o755)
    (tmp_path / "needed").touch()
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def ci(checkout: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([checkout / ".ci/run"], env={**os.environ, **environment}, capture_output=True, text=True)


def in_a_namespace() -> bool:
    return any(
        shutil.which("unshare") and subprocess.run(["unshare", "--mount", *more, "true"], capture_output=True).returncode == 0
        for more in ([], ["--map-root-user"])
    )


needs_a_namespace = pytest.mark.skipif(not in_a_namespace(), reason="there is no mount namespace to be had here")


def test_it_runs_the_tests_in_a_clone_of_its_own(checkout):
    done = ci(checkout)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert said["arguments"] == "test"
    assert said["home"] == "0"
    folder = Path(said["folder"])
    assert folder != checkout and " " in folder.name
    assert not folder.exists(), "nothing is left behind"


@needs_a_namespace
def test_neither_tmp_nor_the_checkout_is_seen(checkout):
    with tempfile.NamedTemporaryFile(dir="/tmp"):
        said = ci(checkout).stdout.splitlines()
    assert "tmp: 0" in said
    assert "origin: 0" in said


@needs_a_namespace
def test_tests_that_need_a_file_in_tmp_fail(checkout):
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        (checkout / "needs_a_file").write_text(file.name)
        assert Path(file.name).exists()
        commit(checkout)
        assert ci(checkout).returncode == 1


def test_what_is_not_committed_is_not_tested_and_that_is_said(checkout):
    (checkout / "needed").unlink()
    done = ci(checkout)
    assert done.returncode == 0
    assert ".ci/run: tests the last commit; 1 files here differ from it" in done.stdout
    commit(checkout)
    assert ci(checkout).returncode == 1, "a file that is not tracked is not there"


def test_without_a_namespace_it_says_so_and_goes_on(checkout, tmp_path_factory):
    programs = tmp_path_factory.mktemp("bin")
    (programs / "unshare").write_text("#!/bin/sh\necho 'unshare: not permitted' >&2\nexit 1\n")
    (programs / "unshare").chmod(0o755)
    done = ci(checkout, PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert "no mount namespace here (unshare: not permitted): /tmp and this checkout stay visible" in done.stdout
