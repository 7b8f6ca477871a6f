"""The notebook of the first hour, executed: its commands succeed, its figures are there, its words agree with what it prints."""

import re

import pytest

from tests.checkout import ROOT, needs_simulator

nbclient = pytest.importorskip("nbclient", reason="the notebook needs nbclient")
nbformat = pytest.importorskip("nbformat", reason="the notebook needs nbformat")

NOTEBOOK = ROOT / "docs/notebooks/first_hour.ipynb"

pytestmark = needs_simulator


def printed(cell) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


@pytest.fixture(scope="module")
def executed(own_checkout, tmp_path_factory):
    results = tmp_path_factory.mktemp("notebook") / "results"
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = own_checkout / NOTEBOOK.parent.relative_to(ROOT)
    shapes = own_checkout / "tests/shapes/small.txt"
    all_shapes = shapes.read_text()
    shapes.write_text("129 257 17\n40 24 56\n")  # test_simulator.py goes through them all
    client = nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTEBOOK_RESULTS", str(results))
        client.execute()
    shapes.write_text(all_shapes)
    yield notebook, results
    (own_checkout / "kernels/local/91_half_tile.cu").unlink()


def test_no_output_is_committed():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")


def test_its_words_agree_with_what_it_prints(executed):
    notebook, _ = executed
    loaded = re.findall(
        r"256x256x256 +([\d.]+) MB", "".join(printed(cell) for cell in notebook.cells if "half_tile" in cell.source)
    )
    assert len(loaded) == 2
    said = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert f"from {loaded[0]} MB to {loaded[1]} MB" in said


def test_the_whole_ladder_is_right_and_drawn(executed):
    notebook, results = executed
    assert (results / "report.html").exists()
    (number,) = re.findall(r"^(\d+) figures;", printed(notebook.cells[-1]), re.MULTILINE)
    assert int(number) >= 4
    assert "fail" not in printed(next(cell for cell in notebook.cells if "--quick" in cell.source)).lower()
