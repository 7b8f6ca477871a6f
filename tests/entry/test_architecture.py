"""The page on architecture against the sources: its tree, its layers, its arrows and its programs."""

import re
import subprocess
from pathlib import Path

import pytest

from tools.includes import CODE, INCLUDE, LAYERS, circles, edges, included, language, upwards

ROOT = Path(__file__).parents[2]
FILES = included(ROOT, ["."])
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


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


def table(language: str) -> list[list[str]]:
    """Those that tools/includes.py checks."""
    return [line.split() for line in LAYERS[language].splitlines() if line.strip()]


def arrows(found: dict[str, set[str]]) -> set[tuple[str, str]]:
    return {(one, other) for one, others in found.items() for other in others}


def test_the_pictures_are_the_layers_that_are_checked():
    whole = layers("Who includes whom")
    assert whole.pop() == ["sim"]
    assert whole + layers("In the simulator") == table("C++")
    assert layers("In Python") == table("Python")


def test_nothing_goes_in_a_circle_or_upwards():
    assert len(FILES) > 500
    assert not circles(edges(FILES))
    assert not circles(edges(FILES, "box"))
    assert not upwards(FILES)


def test_the_tables_have_every_arrow():
    cpp, python = (
        arrows(edges({file: others for file, others in FILES.items() if language(file) == name}, "box")) for name in LAYERS
    )
    assert {(one, other) for title in ("Who includes whom", "In the simulator") for one, other, _ in rows(title)} == cpp
    packages = {(one.partition("/")[0], other.partition("/")[0]) for one, other in python}
    assert {(one, other) for one, other, _ in rows("In Python")} == {(one, other) for one, other in packages if one != other}


def test_the_ladder_includes_only_the_two_public_headers_of_the_simulator():
    public = {path.relative_to(ROOT) for path in (ROOT / "sim/include/sim").iterdir()}
    assert len(public) == 2
    of_ladder = [others for file, others in FILES.items() if file.parts[0] != "sim"] + [FILES[path] for path in public]
    assert {header for others in of_ladder for header in others if header.parts[0] == "sim"} == public


def test_the_simulator_includes_nothing_of_the_ladder():
    of_simulator = [others for file, others in FILES.items() if file.parts[0] == "sim"]
    assert len(of_simulator) > 100
    assert not {header for others in of_simulator for header in others if header.parts[0] != "sim"}


def test_no_kernel_is_included_and_none_includes_another():
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in FILES if path.suffix in CODE]
    names = [name for text in texts for name in INCLUDE.findall(text)]
    assert len(names) > 100
    assert not [name for name in names if name.startswith("kernels/") or re.match(r"\d\d[a-z]?_\w+\.cu", name)]


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
