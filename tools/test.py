"""Runs every test that can run here, and adds up over the runners.   usage: python3 -m tools.test [--fast]

--fast, in under three minutes on a built tree: the tests of the host and of the simulator, each rung at one shape, and what
pages and facts say of one another.

Without a GPU two suites run at a time: most of them leave one of two cores idle. The tests in Python are four suites, so that
none of them runs on alone for long. With a GPU all run one by one, since some of them measure times. The last line is
"N passed, N failed, N skipped"; exit status 1 where anything failed.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from plots.data.gpu import has_gpu

BUILD = Path("build")


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __iadd__(self, other: "Count") -> "Count":
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self


@dataclass
class Log:
    """Where a suite's text goes: to the console at once, or to a file that is shown when the suite has ended."""

    file: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, text: str) -> None:
        print(text, file=self.file, flush=True)

    def run(self, command: list[str]) -> int:
        return subprocess.run(command, stdout=self.file, stderr=subprocess.STDOUT).returncode


def with_results(command: list[str], file: Path, log: Log) -> Count:
    """Runs a command that writes its cases to `file` as JUnit XML; one that writes none has failed."""
    file.unlink(missing_ok=True)
    fine = log.run(command) == 0
    count = Count()
    if file.exists():
        for case in xml.parse(file).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                count.failed += 1
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                count.skipped += 1
            else:
                count.passed += 1
    if not count.failed and (not fine or count == Count()):
        log.say(f"failed: {' '.join(command)}")
        count.failed += 1
    return count


def check(log: Log, command: list[str]) -> Count:
    """A command that is one test: it passes with exit status 0."""
    if not shutil.which(command[0]):
        log.say(f"skipped: no {command[0]} here")
        return Count(skipped=1)
    return Count(failed=1) if log.run(command) else Count(passed=1)


def not_configured(name: str) -> str:
    """Why CMake left this test out; empty where it did not."""
    asked = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True)
    known = [test["name"] for test in json.loads(asked.stdout)["tests"]] if asked.returncode == 0 else []
    if name in known:
        return ""
    return "the simulator is not built here; cmake --preset default says why" if known else "there is no GoogleTest here"


FACTS = [
    "tests/entry/test_first_page.py",
    "tests/entry/test_tracked_files.py",
    "tests/kernels/test_changed_lines.py",
    "tests/kernels/test_headers_and_chapters.py",
    "tests/plots/test_facts.py",
    "tests/plots/test_numbers.py",
]


PYTHON = ("tests/entry", "tests/kernels", "tests/plots")


def other_folders() -> list[str]:
    """Those with tests in Python that are no suite of their own."""
    folders = {path.parent.as_posix() for path in Path("tests").rglob("test_*.py")}
    return sorted(folder for folder in folders if not folder.startswith(PYTHON))


def python_tests(log: Log, paths: list[str], name: str = "pytest") -> Count:
    """Those of modules whose packages are here (tests/conftest.py); what is missing is named."""
    asked = [sys.executable, "tools/missing.py", "requirements/test.txt"]
    missing = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    if missing:
        log.say(f"left out: tests that need {', '.join(missing)}, which could not be set up")
    if not shutil.which("pytest"):
        return Count(skipped=1)
    file = BUILD / f"{name}.xml"
    return with_results(["pytest", *paths, "-q", "-rs", f"--junitxml={file}"], file, log)


def each_rung(log: Log) -> Count:
    """Every rung in its first type at one shape that fills no tile, on the simulator; exit status 77: some do not apply."""
    if not (BUILD / "sim/libcudart.so.13").exists():
        log.say("skipped: the simulator is not built here; cmake --preset default says why")
        return Count(skipped=1)
    status = log.run([f"{BUILD}/bin/ladder", "--sim", "--check-only", "--ld-pad", "align", "160", "144", "96"])
    return Count(passed=1) if status in (0, 77) else Count(failed=1)


def google_tests(log: Log, name: str) -> Count:
    if missing := not_configured(name):
        log.say(f"skipped: {missing}")
        return Count(skipped=1)
    ctest = ["ctest", "--test-dir", str(BUILD), "--tests-regex", f"^{name}$", "--output-on-failure"]
    count = with_results(ctest, BUILD / f"{name}.xml", log)
    for reason in sorted(reasons_to_skip(BUILD / f"{name}.xml")):
        log.say(f"skipped: {reason}")
    return count


def reasons_to_skip(file: Path) -> set[str]:
    if not file.exists():
        return set()
    messages = {skipped.get("message", "") for skipped in xml.parse(file).iter("skipped")}
    return {re.sub(r"^\S+:\d+\s+", "", message).strip() for message in messages}


def unless_waived(log: Log, command: list[str]) -> Count:
    """A command that is one test, and says with exit status 77 that what it needs is not here."""
    status = log.run(command)
    return Count(skipped=1) if status == 77 else Count(failed=1) if status else Count(passed=1)


def tracked(*patterns: str) -> list[str]:
    """The project's files, from git, or by looking where there is no git."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.splitlines() if Path(name).exists()]
    folders = ("kernels", "common", "bench", "sim", "tests", "tools", "plots")
    found = (path for folder in folders for pattern in patterns for path in Path(folder).rglob(pattern))
    return sorted(map(str, found))


# In the order in which they begin, the longest first; what measures times on a GPU before all.
SUITES: dict[str, Callable[[Log], Count]] = {
    "host_tests": lambda log: google_tests(log, "host_tests"),
    "gpu_tests": lambda log: google_tests(log, "gpu_tests"),
    "lib_tests": lambda log: google_tests(log, "lib_tests"),
    "compute-sanitizer": lambda log: unless_waived(log, ["tests/gpu/sanitize.sh"]),  # over every rung; needs it and a GPU
    "tests/entry": lambda log: python_tests(log, ["tests/entry"], "pytest_entry"),
    "sim_gpu_tests": lambda log: google_tests(log, "sim_gpu_tests"),
    "sim_b200_tests": lambda log: google_tests(log, "sim_b200_tests"),
    "tests/kernels": lambda log: python_tests(log, ["tests/kernels"], "pytest_kernels"),
    "tests/plots": lambda log: python_tests(log, ["tests/plots"], "pytest_plots"),
    "sim_tests": lambda log: google_tests(log, "sim_tests"),
    "sim_lib_tests": lambda log: google_tests(log, "sim_lib_tests"),
    "sim_preload_tests": lambda log: google_tests(log, "sim_preload_tests"),
    "sim_rung_tests": lambda log: google_tests(log, "sim_rung_tests"),
    "other tests in Python": lambda log: python_tests(log, other_folders(), "pytest_others"),
    "clang-format": lambda log: check(log, ["clang-format", "--dry-run", "--Werror", *tracked("*.cu", "*.cpp", "*.h")]),
    "ruff": lambda log: check(log, ["ruff", "check", "--quiet"]),
    "shellcheck": lambda log: check(log, ["shellcheck", "-x", "run_all.sh", ".ci/run", *tracked("*.sh")]),
    "words": lambda log: unless_waived(log, [sys.executable, "-m", "tools.words"]),  # a report: it fails for no finding
    "documentation site": lambda log: check(log, ["mkdocs", "build", "-q", "--strict", "--site-dir", f"{BUILD}/site"]),
}

FAST = {name: SUITES[name] for name in ("host_tests", "sim_tests", "ruff", "shellcheck")}
FAST |= {"each rung at one shape": each_rung, "facts": lambda log: python_tests(log, FACTS)}


def run_suite(name: str) -> Count:
    print(f"== {name}", flush=True)
    return (SUITES | FAST)[name](Log())


def run_suite_beside_others(name: str) -> Count:
    with tempfile.TemporaryFile("w+") as file:
        count = (SUITES | FAST)[name](Log(file))
        file.seek(0)
        print(f"== {name}\n{file.read()}", end="", flush=True)
    return count


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.test")
    parser.add_argument("--fast", action="store_true")
    suites = FAST if parser.parse_args(arguments).fast else SUITES
    total = Count()
    if has_gpu():
        counts = map(run_suite, suites)
    else:
        with ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(run_suite_beside_others, suites))
    for count in counts:
        total += count
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
