"""Each rung says what STYLE asks of it and has a chapter; one is compiled by the plain nvcc line of the map."""

import itertools
import os
import re
from pathlib import Path

import pytest

from tests.checkout import ROOT, SIMULATOR, needs_simulator, run

RUNGS = sorted((ROOT / "kernels").glob("*.cu"))
FIELDS = ["Idea", "Changed from", "Expect", "Limiter now", "New instructions", "Limits", "Run", "Read"]
LONGEST_HEADER = 25  # lines
NOT_MEASURED = "not measured: nobody here has the GPU"

PLAIN_LINE = ROOT / "docs/00_map.md"  # the document that shows how to compile a rung without CMake


def by_stem(path: Path) -> str:
    return path.stem


def header(source: Path) -> list[str]:
    lines = source.read_text().splitlines()
    return lines[: next(number for number, line in enumerate(lines) if not line.startswith("//"))]


def field(source: Path, name: str) -> str:
    (text,) = (match[1] for line in header(source) if (match := re.match(rf"// {name}\b\s*(.*)", line)))
    return text


def chapter(source: Path) -> Path:
    return ROOT / field(source, "Read").split()[0]


def prediction(document: Path) -> str:
    """The sections of a chapter that predict: "The prediction", and those of its variants ("09b: tiles in shared memory")."""
    text = re.sub(r"<!--.*?-->", "", document.read_text(encoding="utf-8"))  # markers beside numbers
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return "\n".join(text for text in sections if re.match(r".*prediction|\d\d[a-z]: ", text.splitlines()[0], re.IGNORECASE))


def factors(text: str) -> set[str]:
    """What a text predicts, each as "1.23 times 01" or "0.20 of cuBLAS"."""
    found = re.findall(r"\b(\d+(?:\.\d+)?)\s+(times\s+\d\d[a-z]?\b|of\s+cuBLAS\b)", text)
    return {f"{number} {' '.join(what.split())}" for number, what in found}


def expected(source: Path) -> set[str]:
    """What the field Expect of a header predicts."""
    lines = header(source)
    first = next(place for place, line in enumerate(lines) if line.startswith("// Expect "))
    rest = itertools.takewhile(lambda line: line.startswith("//      "), lines[first + 1 :])
    return factors(" ".join(line[2:].strip() for line in [lines[first], *rest]))


def plain_lines(document: Path) -> list[str]:
    blocks = re.findall(r"^```\w*\n(.*?)^```", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("nvcc ")]


@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_header_has_its_fields_in_order(source):
    lines = header(source)
    assert len(lines) <= LONGEST_HEADER
    assert lines[0].startswith(f"// {source.stem} · ")
    fields = [name for line in lines for name in FIELDS if re.match(rf"// {name}\b", line)]
    assert fields == FIELDS
    assert field(source, "Run").startswith(f"./run_all.sh run {source.stem.partition('_')[0]} ")


@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_rung_has_a_chapter(source):
    """A rung's chapter is its own; a variant (01b) stands in the chapter of the rung that it varies."""
    number, _, name = source.stem.partition("_")
    document = chapter(source)
    assert document.exists()
    if number.isdigit():
        assert document.stem == source.stem
    else:
        assert document.stem.startswith(number[:2]), f"{name} is a variant of {number[:2]}"


@pytest.mark.parametrize("source", RUNGS, ids=by_stem)
def test_header_expects_a_factor_where_there_is_a_gpu_to_measure_it(source):
    if '.arch = "sm_100a"' in source.read_text():
        assert field(source, "Expect").startswith(NOT_MEASURED)
        assert not expected(source), "a factor that nobody can check"
    else:
        assert expected(source), "Expect says no '1.23 times 01' and no '0.20 of cuBLAS'"


@pytest.mark.parametrize("document", sorted({chapter(source) for source in RUNGS}), ids=by_stem)
def test_headers_expect_what_the_chapter_predicts(document):
    """The chapter's predictions, in bold, are those of the headers of its rung and of the variants, to the digit."""
    headers = set().union(*(expected(source) for source in RUNGS if chapter(source) == document))
    bold = re.findall(r"\*\*(.+?)\*\*", prediction(document), flags=re.DOTALL)
    assert set().union(*map(factors, bold)) == headers


@pytest.mark.parametrize("document", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_lines_of_code_that_a_chapter_quotes_by_hand_are_in_the_sources(document):
    sources = [*ROOT.glob("kernels/*.cu"), *ROOT.glob("common/**/*.h")]
    known = {line.strip() for source in sources for line in source.read_text().splitlines()}
    by_hand = re.sub(r"<!-- generated:.*?<!-- end generated -->", "", document.read_text(), flags=re.DOTALL)
    quoted = [line.strip() for block in re.findall(r"```cuda\n(.*?)```", by_hand, re.DOTALL) for line in block.splitlines()]
    assert not [line for line in quoted if line and line not in known]


def test_the_plain_line_stands_in_one_place():
    about_rungs = [path for path in (ROOT / "docs").glob("*.md") if any(" kernels/" in line for line in plain_lines(path))]
    assert about_rungs == [PLAIN_LINE]


@needs_simulator
def test_the_plain_line_makes_a_program_that_checks_itself(tmp_path):
    """As it stands in the document, but for a GPU that need not be here: PTX that the simulator runs. nvcc and the header-only
    libraries are found without an option, as where they are installed."""
    lines = PLAIN_LINE.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("nvcc "))
    compile_line, run_line = lines[first : first + 2]
    line = compile_line.replace("-arch=native", "-arch=compute_80 -cudart shared")
    program = Path(run_line.split()[0]).name
    assert line != compile_line and line.endswith(f" -o {program}")
    assert len(re.findall(r"\S+\.c\w+", line)) == 2, "the kernel and one file beside it"
    line = line.removesuffix(program) + f"'{tmp_path}/{program}'"
    nvcc = Path(os.environ.get("CUDACXX", "/usr/local/cuda/bin/nvcc")).parent
    found = {"PATH": f"{nvcc}:{os.environ['PATH']}", "CPLUS_INCLUDE_PATH": str(ROOT / ".deps/usr/include")}
    done = run("sh", "-c", line, folder=ROOT, **found)
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / program, "65", "72", "40", LD_LIBRARY_PATH=str(SIMULATOR.parent))
    assert done.returncode == 0, done.stderr
    assert "65x72x40" in done.stdout and " 0 of 1000 sampled results wrong" in done.stdout
