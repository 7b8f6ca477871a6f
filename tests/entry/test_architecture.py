"""The page on architecture against the sources: its tree, its layers, its arrows and its programs."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tools.includes import CODE, INCLUDE, circles, edges, included, sources

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
WHOLE = {"kernels", "bench", "tests", "common/harness", "sim", "common"}
SIMULATOR = {"sim/tests", "sim/shim", "sim/driver", "sim/executor", "sim/ptx", "sim"}


def section(title: str) -> str:
    """What stands between this heading and the next."""
    (found,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without marks of code and links."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")][2:]
    return [[re.sub(r"[`\[\]]|\(\.\./.*?\)", "", cell).strip() for cell in line.strip("|").split("|")] for line in lines]


def layers(title: str) -> list[list[str]]:
    """The boxes of a section's picture, from top to bottom."""
    return [line.strip("│").split() for line in section(title).splitlines() if line.startswith("│")]


def box(path: Path, boxes: set[str]) -> str | None:
    """The innermost of these folders that holds a file."""
    holders = [folder for folder in boxes if Path(folder) in path.parents]
    return max(holders, key=len, default=None)


def includes(boxes: set[str]) -> set[tuple[str, str]]:
    """Every pair of different boxes of which one includes a header of the other. Generated headers are in none."""
    files = included(ROOT, sources(ROOT, {name.partition("/")[0] for name in boxes}))
    found = {(box(source, boxes), box(header, boxes)) for source, headers in files.items() for header in headers}
    return {(one, other) for one, other in found if one != other and one and other}


@pytest.mark.parametrize(("title", "boxes"), [("Who includes whom", WHOLE), ("In the simulator", SIMULATOR)])
def test_boxes_include_what_is_below_them_and_the_table_has_every_arrow(title, boxes):
    level = {name: depth for depth, names in enumerate(layers(title)) for name in names}
    assert set(level) == boxes
    actual = includes(boxes)
    assert len(actual) > 5
    assert {(one, other) for one, other, _ in rows(title)} == actual
    assert not [(one, other) for one, other in actual if level[one] >= level[other]]


def test_the_ladder_includes_only_the_two_public_headers_of_the_simulator():
    folders = ["kernels", "common", "bench", "tests"]
    public = {path.relative_to(ROOT) for path in (ROOT / "sim/include/sim").iterdir()}
    assert len(public) == 2
    files = included(ROOT, [*sources(ROOT, folders), *public])
    assert {header for headers in files.values() for header in headers if header.parts[0] == "sim"} == public


def test_the_simulator_includes_nothing_of_the_ladder():
    files = included(ROOT, sources(ROOT, ["sim"]))
    assert len(files) > 100
    assert not {header for headers in files.values() for header in headers if header.parts[0] != "sim"}


def test_the_modules_of_the_simulator_include_one_another_in_no_circle():
    arrows = edges(ROOT, ["sim"])
    assert len(arrows) > 50
    assert not circles(arrows)


def test_no_kernel_is_included_and_none_includes_another():
    sources = [path for folder in WHOLE for path in (ROOT / folder).rglob("*") if path.suffix in CODE]
    names = [name for path in sources for name in INCLUDE.findall(path.read_text(encoding="utf-8"))]
    assert len(names) > 100
    assert not [name for name in names if name.startswith("kernels/") or re.match(r"\d\d[a-z]?_\w+\.cu", name)]


def test_the_table_has_every_import_between_packages():
    packages = {"plots", "tools", "bench"}
    actual = set()
    for folder in [*packages, "tests"]:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = [node.module]
                actual |= {(folder, name.partition(".")[0]) for name in names}
    assert {(one, other) for one, other, _ in rows("In Python")} == {
        (one, other) for one, other in actual if other in packages and one != other
    }


def test_the_table_has_every_program_with_what_it_links():
    files = ("CMakeLists.txt", "sim/CMakeLists.txt", "sim/tests/CMakeLists.txt", "tools/rungs.cmake")
    cmake = "".join((ROOT / file).read_text() for file in files)
    cmake = cmake.replace("${stem}", "NN_name").replace("${kernels}", "kernels")
    programs = {name: set() for name in re.findall(r"add_executable\(([\w]+)", cmake) if name != "sim_"}
    for name, linked in re.findall(r"target_link_libraries\((\w+) (?:PRIVATE|PUBLIC) ([^)]*)\)", cmake):
        if name in programs:
            programs[name] |= {word for word in linked.split() if "::" not in word and "timeline_" not in word}
    programs["timeline"].discard("kernel_NN_name")  # its own four, as they are
    stated = {name: set(linked.split(", ")) for name, linked, _ in rows("The programs")}
    assert stated == programs


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="which folders are the project's, only git knows")
def test_the_tree_names_every_folder():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    top = {f"{Path(name).parts[0]}/" for name in listed if "/" in name and not name.startswith(".")}
    stated = {cells[0] for cells in rows("The tree")}
    assert top <= stated
    assert all((ROOT / folder).is_dir() for folder in stated)
