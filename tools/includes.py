"""Which part of the sources needs which: C++ by its includes, Python by its imports. No arrow may lead upwards or go in a circle.

usage: python3 -m tools.includes [--by box|module|file] [FOLDER...]     all that git tracks, without a FOLDER

    --by box       the boxes of LAYERS
    --by module    a module is a header and its source file: sim/gpu.h and sim/gpu.cpp are sim/gpu (the default)

Prints a line per arrow, `from -> to`, then each circle, and each arrow that does not lead to a lower layer. Exit status 1 where
there is one of these. An include is looked up beside the file that has it, then from each folder above it, then in the `include`
folders of the project; an import likewise, without these.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path

# From top to bottom. A box is a folder with all that is in it, but for what is in a box of its own; or a module.
LAYERS = {
    "C++": """
        kernels  bench  tests  docs
        lib
        common/harness
        common  include
        sim/tests
        sim/shim  sim/driver
        sim/executor
        sim/ptx
        sim
        """,
    "Python": """
        tests
        tools
        bench
        plots/__main__
        plots/documents
        plots/figures  plots/maps  plots/tables
        plots/data
        plots/data/rungs
        plots/data/units  plots/errors
        """,
}
LEVELS = {
    language: {box: level for level, line in enumerate(lines.split("\n")) for box in line.split()}
    for language, lines in LAYERS.items()
}
CODE = {".cu", ".cpp", ".h", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
Included = dict[Path, set[Path]]
Edges = dict[str, set[str]]


def sources(root: Path, folders: Iterable[str]) -> list[Path]:
    """The files of both languages below these folders, from `root`; without those of builds, set-up and kernels of one's own."""
    skipped = {"build", ".deps", ".venv", ".git", "local"}
    found = (path.relative_to(root) for folder in folders for path in (root / folder).rglob("*") if path.suffix in {*CODE, ".py"})
    return sorted(path for path in found if not skipped & set(path.parts))


def named(file: Path) -> list[list[str]]:
    """What a file includes or imports: for each, the files that may be meant, the likeliest first."""
    text = file.read_text(encoding="utf-8")
    if file.suffix in CODE:
        return [[name] for name in INCLUDE.findall(text)]
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [[alias.name] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [[f"{node.module}.{alias.name}", node.module] for alias in node.names]
    return [[f"{module.replace('.', '/')}{end}" for module in one for end in (".py", "/__init__.py")] for one in names]


def resolved(root: Path, source: Path, names: Iterable[str], public: Iterable[Path]) -> Path | None:
    """The project's file that `source` means by the first of these names that is one; None: it is generated, or a library's."""
    paths = (folder / name for name in names for folder in [*source.parents, *public])
    return next((path for path in paths if (root / path).is_file()), None)


def included(root: Path, folders: Iterable[str]) -> Included:
    """The project's files that each file includes or imports."""
    files = sources(root, folders)
    public = sorted({folder for path in files for folder in path.parents if folder.name == "include"})
    return {
        source: {path for names in named(root / source) if (path := resolved(root, source, names, public))} for source in files
    }


def box(path: Path) -> str | None:
    """The innermost box that holds a file, or is it."""
    places = [str(place) for place in (path.with_suffix(""), *path.parents)]
    return next((place for place in places if place in LEVELS[language(path)]), None)


def language(path: Path) -> str:
    return "C++" if path.suffix in CODE else "Python"


def part(path: Path, by: str) -> str | None:
    return box(path) if by == "box" else str(path.with_suffix("") if by == "module" else path)


def edges(files: Included, by: str = "module") -> Edges:
    """Every two different parts of which one needs the other."""
    arrows: Edges = {}
    for source, others in files.items():
        if one := part(source, by):
            arrows.setdefault(one, set()).update({to for other in others if (to := part(other, by))} - {one})
    return arrows


def upwards(files: Included) -> list[tuple[Path, Path]]:
    """The arrows between files of two boxes that do not lead to a lower layer."""
    found = []
    for source, others in files.items():
        levels = LEVELS[language(source)]
        for other in sorted(others):
            one, to = box(source), box(other)
            if one and to and one != to and levels[one] >= levels[to]:
                found.append((source, other))
    return found


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
    parser.add_argument("--by", choices=["box", "module", "file"], default="module")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not Path(folder).is_dir():
            print(f"includes: there is no folder {folder}", file=sys.stderr)
            return 2
    files = included(Path("."), options.folders)
    arrows = edges(files, options.by)
    for one, others in sorted(arrows.items()):
        for other in sorted(others):
            print(f"{one} -> {other}")
    found = [f"circle: {', '.join(circle)}" for circle in circles(arrows)]
    found += [f"not downwards: {one} -> {other}" for one, other in upwards(files)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
