"""One idea per rung: how many lines of code it adds and removes. `python3 -m tools.changed_lines` prints their numbers."""

import pytest

from tools.changed_lines import Step, compared, steps

MOST = 120
LARGER = {  # why a rung is no small step from its predecessor
    "14": "a second tile for GPUs with less shared memory, and the choice between the two",
    "18": "work units in place of work tiles, the fix-up, and the cooperative launch",
    "19": "09 in the words of CuTe",
    "20": "16 in the words of CuTe",
    "21": "tensor map, mbarriers and pipeline state are written out, and cp.async goes",
    "22": "the fragments, their epilogue and the tensor map go",
    "27": "every constant of the tile becomes a parameter, and the choice among ten",
    "28": "65 lines of epilogue move to common/hopper",
    "29": "the launch by attributes, a producer for each cluster, and the choice among them",
    "30": "the exchange, 60 lines, which moves to common/hopper with the next rung",
    "31": "39 lines of 30 move to common/hopper, beside the exchange over the grid",
    "33": "one text for all configurations, and the cost model's call",
    "34": "TMA in place of 08's loads, 70 lines of which go; the transposition, and loops over longer tiles",
    "37": "the tile becomes a parameter, sliced-K and its reduction, and the choice among six",
    "38": "layouts are parameters of the kernel: slots for parts of A, the loop over columns, and swapped operands",
    "39": "clusters, swapped operands and 25 configurations go, two thirds of these lines",
    "42": "configurations, clusters and the cost model go, four fifths of these lines; scales come by TMA",
    "43": "the tile becomes a parameter: four configurations, the choice among them, and the sums of shared tiles",
    "43b": "parts of tiles: their main loop, their stores, and their time in the choice",
    "44": "tiles of any number of rows, a scheduler that draws a tile and finds its group, and stores that end with it",
    "45": "scales for E4M3, the list of epilogues, tiles for each, and the choice among them",
    "46": "43's third warpgroup and its hidden epilogue, tiles of groups, and stores that end with them",
}
STEPS = steps()


@pytest.mark.parametrize("step", STEPS, ids=[step.stem for step in STEPS])
def test_a_rung_changes_few_lines(step: Step):
    assert (step.changed > MOST) == (step.stem.partition("_")[0] in LARGER), f"{step.changed} lines"


def test_every_reason_is_of_a_rung():
    assert set(LARGER) <= {step.stem.partition("_")[0] for step in STEPS}


BEFORE = """// 01_one
int x = 1;
int y = 2;  // unused

const Registration registration{{
    .number = "01",
    .resources = first,
}};
"""


@pytest.mark.parametrize(
    ("old", "new", "added", "removed"),
    [
        ("int x = 1;", "int x = 3;", 1, 1),
        ("int x = 1;\n", "", 0, 1),
        ("int x = 1;", "int x = 1;\nint z;", 1, 0),
        (".resources = first", ".resources = second", 1, 1),
        ("int y = 2;  // unused", "  int y = 2;  // used", 0, 0),
        ('.number = "01"', '.number = "02"', 0, 0),
        ("// 01_one\n", "", 0, 0),
        ("\n\n", "\n", 0, 0),
    ],
)
def test_code_counts_and_nothing_else(old, new, added, removed):
    assert old in BEFORE
    assert compared(BEFORE, BEFORE.replace(old, new)) == (added, removed)
