"""Which part of the C++ sources includes which, and whether any of them include one another in a circle.

usage: python3 -m tools.includes [--by folder|module|file] [FOLDER...]     all that git tracks, without a FOLDER

    --by module    a module is a header and its source file: sim/gpu.h and sim/gpu.cpp are sim/gpu (the default)

Prints a line per arrow, `from -> to`, and then each circle. Exit status 1 where there is one.
An include is looked up beside the file that has it, then from each folder above it, then in the `include` folders of the project.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

CODE = {".cu", ".cpp", ".h", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
Edges = dict[str, set[str]]


def sources(root: Path, folders: Iterable[str]) -> list[Path]:
    """The C++ files below these folders, from `root`; without those of builds, set-up and kernels of one's own."""
    skipped = {"build", ".deps", ".venv", ".git", "local"}
    found = (path.relative_to(root) for folder in folders for path in (root / folder).rglob("*") if path.suffix in CODE)
    return sorted(path for path in found if not skipped & set(path.parts))


def resolved(root: Path, source: Path, name: str, public: Iterable[Path]) -> Path | None:
    """The project's file that `source` means by this name; None: it is generated, or a library's."""
    for folder in [*source.parents, *public]:
        path = folder / name
        if (root / path).is_file():
            return path
    return None


def included(root: Path, files: Iterable[Path]) -> dict[Path, set[Path]]:
    """The project's headers that each file includes."""
    files = list(files)
    public = sorted({folder for path in files for folder in path.parents if folder.name == "include"})
    found = {}
    for source in files:
        names = INCLUDE.findall((root / source).read_text(encoding="utf-8"))
        found[source] = {path for name in names if (path := resolved(root, source, name, public))}
    return found


def part(path: Path, by: str) -> str:
    return str(path.parent if by == "folder" else path.with_suffix("") if by == "module" else path)


def edges(root: Path, folders: Iterable[str], by: str = "module") -> Edges:
    """Every two different parts of which one includes the other."""
    arrows: Edges = {}
    for source, headers in included(root, sources(root, folders)).items():
        to = {part(header, by) for header in headers} - {part(source, by)}
        arrows.setdefault(part(source, by), set()).update(to)
    return arrows


def circles(arrows: Edges) -> list[list[str]]:
    """The strongly connected parts of more than one (Tarjan): each reaches all others of its circle."""
    number: dict[str, int] = {}
    least: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(one: str) -> None:
        number[one] = least[one] = len(number)
        stack.append(one)
        for other in sorted(arrows.get(one, ())):
            if other not in number:
                visit(other)
                least[one] = min(least[one], least[other])
            elif other in stack:
                least[one] = min(least[one], number[other])
        if least[one] == number[one]:
            circle = [stack.pop()]
            while circle[-1] != one:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for one in sorted(arrows):
        if one not in number:
            visit(one)
    return sorted(found)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.includes", usage=__doc__)
    parser.add_argument("folders", nargs="*", default=["."])
    parser.add_argument("--by", choices=["folder", "module", "file"], default="module")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not Path(folder).is_dir():
            print(f"includes: there is no folder {folder}", file=sys.stderr)
            return 2
    arrows = edges(Path("."), options.folders, options.by)
    for one, others in sorted(arrows.items()):
        for other in sorted(others):
            print(f"{one} -> {other}")
    found = circles(arrows)
    for circle in found:
        print(f"circle: {', '.join(circle)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
