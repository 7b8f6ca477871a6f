import shutil
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import pytest
import synthetic
from matplotlib.figure import Figure

from plots.data import rungs
from plots.data.results import load
from plots.data.selection import tables
from plots.maps import index_maps

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    return synthetic.write_folder(tmp_path / "results")


@pytest.fixture
def results(folder):
    return load(folder)


@pytest.fixture
def table(results):
    return tables(results)[0]


@pytest.fixture(scope="session")
def printed(tmp_path_factory):
    """What bench/maps.cpp prints."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("no C++ compiler for bench/maps.cpp")
    program = tmp_path_factory.mktemp("maps") / "maps"
    subprocess.run([compiler, "-std=c++20", f"-I{ROOT}", ROOT / "bench/maps.cpp", "-o", program], check=True)
    return index_maps.run(program)


@pytest.fixture(scope="session")
def read(printed):
    return index_maps.parse(printed, "maps")


@pytest.fixture(scope="session")
def stated():
    """The constants of a rung's tile, as this checkout's program states them."""
    if not (ROOT / "build/bin/ladder").exists():
        pytest.skip("build/bin/ladder is not built")
    return lambda rung: next(iter(rungs.of_checkout(ROOT).find(rung).constants.values()))


@pytest.fixture
def without_png(monkeypatch):
    """Figures are rendered once, as SVG; their PNGs are empty files."""
    savefig = Figure.savefig

    def save(figure, file, **how):
        if str(file).endswith(".png"):
            Path(file).touch()
        else:
            savefig(figure, file, **how)

    monkeypatch.setattr(Figure, "savefig", save)
