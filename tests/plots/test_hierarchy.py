"""The figures of the hierarchy of tiles: the kernels' sizes, and every result drawn once."""

import pytest

from plots.maps import hierarchy

TILES = [("04", (128, 128), (16, 128), 64), ("08", (128, 256), (64, 64), 128), ("14", (256, 128), (64, 64), 128)]


@pytest.mark.parametrize(("rung", "tile", "warp", "lane"), TILES)
def test_every_result_of_a_tile_is_drawn(read, rung, tile, warp, lane):
    block = hierarchy.owner(read, rung)
    assert hierarchy.size(list(block)) == tile and len(block) == tile[0] * tile[1]
    assert hierarchy.size(hierarchy.of_warp(block, 0)) == warp and len(hierarchy.of_lane(block, 0)) == lane
    assert lane * 32 == warp[0] * warp[1], "a warp's results fill its tile"
    texts = [text.text for text in hierarchy.hierarchy(read, rung).texts]
    assert f"block tile, {tile[0]} × {tile[1]}" in texts and f"warp 0, {warp[0]} × {warp[1]}" in texts


def test_sizes_of_14_are_the_kernels(stated):
    """tests/host holds those of 04 and 08 to the kernels'."""
    assert [stated("14")[name] for name in ("BM", "BN", "WM", "WN")] == [256, 128, 64, 64]


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
