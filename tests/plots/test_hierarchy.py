"""The figures of the hierarchy of tiles: the kernels' sizes, and every result drawn once."""

import re
from pathlib import Path

import pytest

from plots.maps import hierarchy

ROOT = Path(__file__).parents[2]
STEMS = {"04": "04_thread_tile_2d", "08": "08_warp_tiling", "14": "14_multistage"}


def constants(rung):
    """The kernel's own tile: numbers by name; 14's parameters are those of its large tile."""
    text = (ROOT / f"kernels/{STEMS[rung]}.cu").read_text(encoding="utf-8")
    found = dict(re.findall(r"static constexpr int (\w+) = (\w+);", text))
    if large := re.search(r"using Large = TileConfig<(\d+), (\d+)>;", text):
        found |= dict(zip(("BM", "WN"), large.groups(), strict=True))
    return {name: int(value) for name, value in found.items() if value.isdigit()}


@pytest.mark.parametrize("rung", STEMS)
def test_sizes_are_the_kernels(read, rung):
    kernel, block = constants(rung), hierarchy.owner(read, rung)
    tile, warp, lane = hierarchy.size(list(block)), hierarchy.size(hierarchy.of_warp(block, 0)), hierarchy.of_lane(block, 0)
    assert tile == (kernel["BM"], kernel["BN"]) and len(block) == tile[0] * tile[1]
    if "WM" in kernel:
        assert warp == (kernel["WM"], kernel["WN"])
    if "TM" in kernel:
        assert len(lane) == kernel["TM"] * kernel["TN"]
    assert len(lane) * 32 == warp[0] * warp[1], "a warp's results fill its tile"
    texts = [text.text for text in hierarchy.hierarchy(read, rung).texts]
    assert f"block tile, {tile[0]} × {tile[1]}" in texts and f"warp 0, {warp[0]} × {warp[1]}" in texts


@pytest.mark.parametrize(("rung", "rows", "cols"), [("04", 1, 1), ("08", 4, 2), ("14", 8, 8)])
def test_the_pieces_of_a_lane(read, rung, rows, cols):
    """04 has one piece, 08 has pieces of 4 x 4 by spread(), 14 pairs of neighbours in every mma."""
    lane = hierarchy.of_lane(hierarchy.owner(read, rung), hierarchy.PICKED)
    assert len(hierarchy.runs([row for row, _ in lane])) == rows
    assert len(hierarchy.runs([col for _, col in lane])) == cols


@pytest.mark.parametrize(("rung", "times"), [("04", 1), ("08", 8), ("14", 2)])
def test_every_lane_is_written_as_often_as_it_has_pieces(read, rung, times):
    cells = [text.text for text in hierarchy.hierarchy(read, rung).texts if text.text.isdecimal()]
    assert sorted(cells, key=int) == [str(lane) for lane in range(32) for _ in range(times)]


def test_runs_of_numbers():
    assert hierarchy.runs([7, 4, 5, 6, 36, 37, 4]) == [(4, 7), (36, 37)]
    assert hierarchy.runs([3]) == [(3, 3)]
