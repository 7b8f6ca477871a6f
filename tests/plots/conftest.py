import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import pytest
import synthetic

from plots.data.results import load
from plots.data.selection import tables


@pytest.fixture
def folder(tmp_path):
    return synthetic.write_folder(tmp_path / "results")


@pytest.fixture
def results(folder):
    return load(folder)


@pytest.fixture
def table(results):
    return tables(results)[0]
