"""The cost model of rung 33: its constants, and what the choice loses with them over the recorded times."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from bench.fit_cost_model import NAMES, Card, Product, Tiling, Times, library, recorded
from plots.data.rungs import of_ladder

ROOT = Path(__file__).parents[2]
HEADER = (ROOT / "common/hopper/cost_model.h").read_text(encoding="utf-8")
MOST = 0.015  # that the choice loses on average; the fit prints how much it is
FACTS = of_ladder(ROOT).find("33").constants


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return library()


@pytest.fixture(scope="module")
def stated(lib) -> tuple[list[float], list[int]]:
    """What the header has: the constants, and the sizes of its structures."""
    cost, sizes = (ctypes.c_double * len(NAMES))(), (ctypes.c_size_t * 4)()
    lib.stated(cost, sizes)
    return list(cost), list(sizes)


def test_structures_are_those_of_the_header(stated):
    sizes = [ctypes.sizeof(one) for one in (Product, Tiling, Card)]
    assert stated[1] == [*sizes, len(NAMES) * ctypes.sizeof(ctypes.c_double)]
    for structure, name in ((Product, "TiledProduct"), (Tiling, "Tiling"), (Card, "Card")):
        body = re.search(rf"struct {name} {{\n(.*?)}};", HEADER, re.DOTALL)[1]
        members = re.findall(r"\w+(?=[,;])", re.sub(r"//.*", "", body))
        assert members == [field for field, _ in structure._fields_]


def test_constants_are_those_of_the_header(stated):
    """In their order: the fit hands them over as an array."""
    assert list(FACTS["cost"]) == NAMES
    assert FACTS["cost"] == pytest.approx(dict(zip(NAMES, stated[0], strict=True)))


def test_the_choice_loses_little(lib, stated):
    times = Times(recorded(FACTS), FACTS, lib)
    losses = times.losses(times.predict(np.array(stated[0])))
    assert len(losses) == times.group.max() + 1 >= 100
    assert 0 <= losses.mean() < MOST
    assert np.isfinite(times.badness(np.array(stated[0])))


def test_another_choice_loses_more(lib, stated):
    """The test above can fail: a model for which epilogues take a hundred times as long."""
    times = Times(recorded(FACTS), FACTS, lib)
    wrong = np.array(stated[0]) * np.where(np.array(NAMES) == "epilogue_clocks", 100, 1)
    assert times.losses(times.predict(wrong)).mean() > MOST


def test_every_plan_was_timed():
    assert set(recorded(FACTS).plan) == set(FACTS) - {"cost"}
