"""One idea per rung: the lines of code that each has and its predecessor has not. `pytest -s` prints their number."""

import difflib
import re
from pathlib import Path

import pytest

from plots.data.rungs import Rung, parse

ROOT = Path(__file__).parents[2]
FACTS = parse((ROOT / "bench/recorded/nvidia-h200/rungs.json").read_text(encoding="utf-8"), "rungs.json")
MOST = 120
LARGER = {  # why a rung is no small step from its predecessor
    "20": "16 in the words of CuTe",
    "26": "one text for all configurations, and the cost model",
    "27": "08's multiplication in the roles of 25, with six tiles and their choice",
}
WITH_PREDECESSOR = [rung for rung in FACTS.rungs.values() if rung.predecessor]


def code(rung: Rung) -> list[str]:
    """Without comments and empty lines."""
    lines = (ROOT / rung.source).read_text(encoding="utf-8").splitlines()
    return [bare for line in lines if (bare := re.sub(r"//.*", "", line).strip())]


def new_lines(rung: Rung) -> int:
    (before,) = (other for other in FACTS.rungs.values() if other.number == rung.predecessor)
    steps = difflib.SequenceMatcher(None, code(before), code(rung), autojunk=False).get_opcodes()
    return sum(end - begin for kind, _, _, begin, end in steps if kind != "equal")


@pytest.mark.parametrize("rung", WITH_PREDECESSOR, ids=lambda rung: rung.number)
def test_new_lines(rung: Rung):
    new = new_lines(rung)
    print(f"\n{rung.stem}: {new} lines that {rung.predecessor} has not")
    assert (new > MOST) == (rung.number in LARGER)
