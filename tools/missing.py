"""Prints the requirements of the given files that this Python does not meet; exit status 1 where there are any.

usage: missing.py FILE...   (lines: NAME, NAME>=VERSION, NAME==VERSION, -r FILE, # comment)
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def release(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.match(r"\d+(\.\d+)*", text)[0].split("."))


def requirements(file: Path):
    for line in file.read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("-r "):
            yield from requirements(file.parent / line[3:].strip())
        elif line:
            yield line


def is_met(requirement: str) -> bool:
    name, operator, wanted = re.fullmatch(r"([\w.-]+)(?:(>=|==)([\d.]+))?", requirement).groups()
    try:
        found = release(version(name))
    except PackageNotFoundError:
        return False
    return not operator or (found >= release(wanted) if operator == ">=" else found == release(wanted))


missing = [requirement for file in sys.argv[1:] for requirement in requirements(Path(file)) if not is_met(requirement)]
print(*dict.fromkeys(missing), sep="\n")
sys.exit(bool(missing))
