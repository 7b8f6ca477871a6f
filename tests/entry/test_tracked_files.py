"""What is tracked is there for whoever clones: nothing that git ignores, no link that leads away, no path of one machine."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = "120000"

# Folders of somebody's own, with a name in them.
OF_A_MACHINE = re.compile(rb"(?<![\w.>/~-])/(?:home|Users|root|work|workspace|mnt|media|srv|scratch|tmp|var/tmp)/[\w.-]+")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True).stdout


def faults(root: Path) -> list[str]:
    """What is wrong with the tracked files of a checkout, a line each."""
    found = [
        f"{name}: tracked, and ignored by git"
        for name in git(root, "ls-files", "-z", "-ci", "--exclude-standard").split("\0")
        if name
    ]
    for entry in git(root, "ls-files", "-z", "-s").split("\0"):
        mode, _, name = entry.partition("\t")
        if not name:
            continue
        path = root / name
        if mode.startswith(LINK):
            found += link_faults(root, name)
        elif path.is_file():
            found += [f"{name}: {text.decode()} is a path of one machine" for text in paths_of_a_machine(path.read_bytes())]
    return found


def link_faults(root: Path, name: str) -> list[str]:
    target = Path(os.readlink(root / name))
    leads = Path(os.path.normpath(root / Path(name).parent / target))
    if target.is_absolute() or not leads.is_relative_to(root):
        return [f"{name}: a link out of the tree, to {target}"]
    return [] if leads.exists() else [f"{name}: a link to nowhere, {target}"]


def paths_of_a_machine(content: bytes) -> set[bytes]:
    binary = b"\0" in content[:8000]
    return set() if binary else set(OF_A_MACHINE.findall(content))


@pytest.fixture
def repository(tmp_path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("/.venv/\n/build*\n")
    (tmp_path / "kernel.cu").write_text("// reads /dev/null, /usr/local/cuda and ./a/home/b\n")
    (tmp_path / "same.cu").symlink_to("kernel.cu")
    git(tmp_path, "add", ".")
    return tmp_path


def test_a_clean_tree_has_none(repository):
    assert faults(repository) == []


def test_the_link_that_was_once_tracked_is_found(repository):
    """.gitignore names a folder, and a link is none."""
    (repository / ".venv").symlink_to("/somewhere/.venv")
    git(repository, "add", ".")
    assert faults(repository) == [".venv: a link out of the tree, to /somewhere/.venv"]


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("/etc/hostname", "a link out of the tree, to /etc/hostname"),
        ("../outside", "a link out of the tree, to ../outside"),
        ("docs/gone.md", "a link to nowhere, docs/gone.md"),
    ],
)
def test_a_link_that_leads_away_is_found(target, fault, repository):
    (repository / "link").symlink_to(target)
    git(repository, "add", ".")
    assert faults(repository) == [f"link: {fault}"]


def test_an_ignored_file_is_found(repository):
    (repository / "build.log").touch()
    git(repository, "add", "-f", "build.log")
    assert faults(repository) == ["build.log: tracked, and ignored by git"]


@pytest.mark.parametrize("path", ["/".join(("", "home", "ada", "gemm")), "/".join(("", "tmp", "ci2", ".venv"))])
def test_a_path_of_a_machine_is_found(path, repository):
    (repository / "kernel.cu").write_text(f'#include "{path}/x.h"\n')
    git(repository, "add", ".")
    (found,) = faults(repository)
    assert found.startswith("kernel.cu: /") and found.endswith("is a path of one machine")


def test_this_checkout_has_none():
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no clone: git knows nothing of it")
    assert faults(ROOT) == []
