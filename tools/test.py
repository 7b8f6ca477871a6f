"""Runs every test that can run here, and adds up over the runners.   usage: python3 -m tools.test

The last line is "N passed, N failed, N skipped"; exit status 1 where anything failed.
"""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass
from pathlib import Path

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


def title(text: str) -> None:
    print(f"== {text}", flush=True)


def run(command: list[str]) -> bool:
    return subprocess.run(command).returncode == 0


def with_results(command: list[str], file: Path) -> Count:
    """Runs a command that writes its cases to `file` as JUnit XML; one that writes none has failed."""
    file.unlink(missing_ok=True)
    fine = run(command)
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
        print(f"failed: {' '.join(command)}")
        count.failed += 1
    return count


def check(name: str, command: list[str]) -> Count:
    """A command that is one test: it passes with exit status 0."""
    title(name)
    if not shutil.which(command[0]):
        print(f"skipped: no {command[0]} here")
        return Count(skipped=1)
    return Count(passed=1) if run(command) else Count(failed=1)


def not_configured(name: str) -> str:
    """Why CMake left this test out; empty where it did not."""
    files = (BUILD / "CTestTestfile.cmake", BUILD / "sim/CTestTestfile.cmake")
    known = re.findall(r"add_test\(\[=\[(\w+)\]=\]", "".join(file.read_text() for file in files if file.exists()))
    if name in known:
        return ""
    return "the simulator is not built here; cmake --preset default says why" if known else "there is no GoogleTest here"


def python_tests() -> Count:
    """Those of modules whose packages are here (tests/conftest.py); what is missing is named."""
    title("pytest")
    asked = [sys.executable, "tools/missing.py", "requirements/test.txt"]
    missing = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    if missing:
        print(f"left out: tests that need {', '.join(missing)}, which could not be set up")
    if not shutil.which("pytest"):
        return Count(skipped=1)
    return with_results(["pytest", "tests", "-q", "-rs", f"--junitxml={BUILD}/pytest.xml"], BUILD / "pytest.xml")


def google_tests(name: str) -> Count:
    title(name)
    if missing := not_configured(name):
        print(f"skipped: {missing}")
        return Count(skipped=1)
    count = with_results(
        ["ctest", "--test-dir", str(BUILD), "--tests-regex", f"^{name}$", "--output-on-failure"], BUILD / f"{name}.xml"
    )
    for reason in sorted(reasons_to_skip(BUILD / f"{name}.xml")):
        print(f"skipped: {reason}")
    return count


def reasons_to_skip(file: Path) -> set[str]:
    if not file.exists():
        return set()
    messages = {skipped.get("message", "") for skipped in xml.parse(file).iter("skipped")}
    return {re.sub(r"^\S+:\d+\s+", "", message).strip() for message in messages}


def sanitizers() -> Count:
    """compute-sanitizer over every rung, where there are both it and a GPU (exit status 77 says that there are not)."""
    title("compute-sanitizer")
    status = subprocess.run(["tests/gpu/sanitize.sh"]).returncode
    return Count(skipped=1) if status == 77 else Count(failed=1) if status else Count(passed=1)


def tracked(*patterns: str) -> list[str]:
    """The project's files, from git, or by looking where there is no git."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.splitlines() if Path(name).exists()]
    folders = ("kernels", "common", "bench", "sim", "tests", "tools", "plots")
    found = (path for folder in folders for pattern in patterns for path in Path(folder).rglob(pattern))
    return sorted(map(str, found))


def main() -> int:
    total = Count()
    total += google_tests("host_tests")
    total += google_tests("gpu_tests")
    total += google_tests("sim_gpu_tests")
    total += google_tests("sim_tests")
    total += sanitizers()
    total += python_tests()
    total += check("clang-format", ["clang-format", "--dry-run", "--Werror", *tracked("*.cu", "*.cpp", "*.h")])
    total += check("ruff", ["ruff", "check", "--quiet"])
    total += check("shellcheck", ["shellcheck", "-x", "run_all.sh", ".ci/run", *tracked("*.sh")])
    total += check("documentation site", ["mkdocs", "build", "--quiet", "--strict", "--site-dir", f"{BUILD}/site"])
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
