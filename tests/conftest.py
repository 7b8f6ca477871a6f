"""What all tests share: the disassembler that run_all.sh has set up is found when pytest is called by hand, too; a module
of tests is skipped where a package that it needs could not be set up; Ctrl-C works in the programs that tests start; and
tests leave the checkout as it is."""

import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

os.environ["PATH"] += os.pathsep + str(ROOT / ".deps/sass/bin")

# A shell's background job ignores Ctrl-C and hands that on to what it starts, unless it is handled in between.
signal.signal(signal.SIGINT, signal.default_int_handler)

MISSING = {name for name in ("pandas", "matplotlib", "rich", "jinja2") if not importlib.util.find_spec(name)}
if MISSING:
    collect_ignore = ["plots"]  # all of it draws


class Module(pytest.Module):
    def _getobj(self):
        try:
            return super()._getobj()
        except self.CollectError as error:
            missing = getattr(error.__cause__, "name", None)
            if missing in MISSING:
                pytest.skip(f"there is no {missing} here", allow_module_level=True)
            raise


def pytest_pycollect_makemodule(module_path, parent):
    return Module.from_parent(parent, path=module_path)


# ---- the checkout stays as it is ---------------------------------------------------------------------------------------

BEFORE = pytest.StashKey[dict[str, tuple[int, int]]]()
of_builds = shutil.ignore_patterns("build*", ".deps", ".venv*", ".git", ".cache")
of_caches = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".ruff_cache")


def no_sources(folder: str, names: list[str]) -> set[str]:
    """Of the names in a folder of the checkout, those that hold no sources: builds, what is set up, caches."""
    return of_caches(folder, names) | (of_builds(folder, names) if Path(folder) == ROOT else set())


def sources() -> dict[str, tuple[int, int]]:
    """Of each file of the checkout, tracked or not, when it was changed and its size."""
    found = {}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = set(folders) - no_sources(folder, folders)
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                found[str(path.relative_to(ROOT))] = (path.stat().st_mtime_ns, path.stat().st_size)
    return found


def is_worker(session: pytest.Session) -> bool:
    """Of pytest-xdist; the process that started it looks for them all."""
    return hasattr(session.config, "workerinput")


def pytest_sessionstart(session):
    if not is_worker(session):
        session.config.stash[BEFORE] = sources()


def pytest_sessionfinish(session):
    if is_worker(session):
        return
    if changed := sorted(name for name, _ in session.config.stash[BEFORE].items() ^ sources().items()):
        print(f"\nthe tests changed the checkout: {', '.join(dict.fromkeys(changed))}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def own_checkout(tmp_path_factory) -> Path:
    """A copy of the checkout with a build of its own, for tests that add rungs. What is built here is not compiled again."""
    copy = tmp_path_factory.mktemp("own") / "checkout"
    shutil.copytree(ROOT, copy, ignore=no_sources)
    shutil.rmtree(copy / "kernels/local")  # with whatever rungs the reader has
    (copy / "kernels/local").mkdir()
    for name in (".deps", ".venv"):  # set up already, by the test run that this is part of
        if (ROOT / name).exists():
            (copy / name).symlink_to(ROOT / name)
    launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={ROOT}/tests/take_object.sh;{ROOT}" for language in ("CXX", "CUDA")]
    for command in (["--preset", "default", "-DLADDER_WITH:PATH=", *launchers], ["--build", "build", "--target", "simulator"]):
        done = subprocess.run(["cmake", *command], cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return copy
