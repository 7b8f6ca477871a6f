"""Figures of the hierarchy of tiles: C in block tiles, a block tile in warp tiles, a warp tile in the lanes' results."""

from itertools import pairwise

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import Maps, regions, shade

PICKED = 6  # the lane that is followed, as in the figures of fragments
SIDE = 190  # pixels of a panel's longer edge
LEFT, GAP, TOP = 16, 52, 66
SHOWN_C = 1024  # rows and columns of C in the first panel
MMA = (16, 8)  # results of an mma.sync
FADED = "#f3f3f3"

Place = tuple[int, int]
Owner = dict[Place, int]


def owner(maps: Maps, rung: str) -> Owner:
    """The thread of each result in a block's tile of C."""
    return {(touch.row, touch.col): touch.thread for touch in maps["C", rung]}


def size(places: list[Place]) -> Place:
    """Rows and columns from the first place to the last."""
    return 1 + max(r for r, _ in places) - min(r for r, _ in places), 1 + max(c for _, c in places) - min(c for _, c in places)


def of_warp(block: Owner, warp: int) -> list[Place]:
    """A warp's results."""
    return [place for place, thread in block.items() if thread // 32 == warp]


def of_lane(block: Owner, lane: int) -> list[Place]:
    """The results of a lane of the first warp, in order."""
    return sorted(place for place, thread in block.items() if thread == lane)


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """The first and last of each run of neighbours."""
    ordered = sorted(set(numbers))
    ends = [i for i, (a, b) in enumerate(pairwise(ordered)) if b != a + 1]
    firsts, lasts = [0, *(i + 1 for i in ends)], [*ends, len(ordered) - 1]
    return [(ordered[a], ordered[b]) for a, b in zip(firsts, lasts, strict=True)]


def by_mma(block: Owner) -> bool:
    """True where a lane's results lie as mma.sync leaves them: in pairs, in every second group of eight rows."""
    return len(runs([col for _, col in of_lane(block, 0)])) == size(of_warp(block, 0))[1] // MMA[1] > 2


def hierarchy(maps: Maps, rung: str) -> Drawing:
    """Four panels from left to right; in each the part that the next one enlarges is in colour."""
    block = owner(maps, rung)
    warps = 1 + max(block.values()) // 32
    tile, warp, lane = size(list(block)), size(of_warp(block, 0)), of_lane(block, PICKED)
    lane_rows, lane_cols = (len({place[axis] for place in lane}) for axis in (0, 1))
    drawing = Drawing(LEFT + 4 * SIDE + 3 * GAP + 66, TOP + SIDE + 34, f"Rung {rung}: from C to a lane's results")
    lanes = f"lane {PICKED}: {lane_rows} × {lane_cols} results"
    titles = [
        ("C, 1024 × 1024 of it", f"block tiles of {tile[0]} × {tile[1]}"),
        (f"block tile, {tile[0]} × {tile[1]}", f"{warps} warps of {warp[0]} × {warp[1]}"),
        (f"warp 0, {warp[0]} × {warp[1]}", lanes if by_mma(block) else "32 lanes; each place, its lane"),
        (f"one mma, {MMA[0]} × {MMA[1]}", "lanes; each has two pairs")
        if by_mma(block)
        else (lanes, f"acc[{lane_rows}][{lane_cols}]; places in warp 0"),
    ]
    for i, (title, below) in enumerate(titles):
        drawing.text(LEFT + i * (SIDE + GAP), 16, title, 13, "start", bold=True)
        drawing.text(LEFT + i * (SIDE + GAP), 34, below, 11, "start")
    lefts = [LEFT + i * (SIDE + GAP) for i in range(4)]
    picked = [_matrix(drawing, lefts[0], tile), _block(drawing, lefts[1], block, tile), _warp(drawing, lefts[2], block, warp)]
    panels, drawing.shapes = drawing.shapes, []  # the lines go behind the panels
    shown = [tile, warp, MMA if by_mma(block) else (lane_rows, lane_cols)]
    for (x, y, height), left, part in zip(picked, lefts[1:], shown, strict=True):
        drawing.line(x, y, left, TOP, "#888888")
        drawing.line(x, y + height, left, TOP + part[0] * SIDE / max(part), "#888888")
    drawing.shapes += panels
    if by_mma(block):
        _mma(drawing, lefts[3], block)
    else:
        _lane(drawing, lefts[3], lane)
    return drawing


def _matrix(drawing: Drawing, left: float, tile: Place) -> tuple[float, float, float]:
    """Block tiles; where the coloured one is: its right edge, top and height."""
    scale = SIDE / SHOWN_C
    for row in range(0, SHOWN_C, tile[0]):
        for col in range(0, SHOWN_C, tile[1]):
            fill = GREEN if (row, col) == tile else FADED
            drawing.rect(left + col * scale, TOP + row * scale, tile[1] * scale, tile[0] * scale, fill, GRID)
    drawing.rect(left + tile[1] * scale, TOP + tile[0] * scale, tile[1] * scale, tile[0] * scale, GREEN, INK)
    drawing.text(left, TOP - 12, "n →", 10, "start")
    drawing.text(left + 34, TOP - 12, "m ↓", 10, "start")
    return left + 2 * tile[1] * scale, TOP + tile[0] * scale, tile[0] * scale


def _block(drawing: Drawing, left: float, block: Owner, tile: Place) -> tuple[float, float, float]:
    scale = SIDE / max(tile)
    height = 0.0
    for warp, (row, col, tall, wide) in regions({place: thread // 32 for place, thread in block.items()}):
        drawing.rect(left + col * scale, TOP + row * scale, wide * scale, tall * scale, BLUE if warp == 0 else FADED, INK)
        ink = "white" if warp == 0 else INK
        drawing.text(left + (col + wide / 2) * scale, TOP + (row + tall / 2) * scale, f"warp {warp}", 10, colour=ink)
        if warp == 0:
            height, right = tall * scale, left + wide * scale
    return right, TOP, height


def _warp(drawing: Drawing, left: float, block: Owner, warp: Place) -> tuple[float, float, float]:
    """The lanes' places; of mma.sync only those of one lane, and the edges of the mma."""
    scale, pairs = SIDE / max(warp), by_mma(block)
    mine = {place: block[place] for place in of_warp(block, 0)}
    pieces = list(regions(mine))
    if pairs:
        for row in range(0, warp[0], MMA[0]):
            for col in range(0, warp[1], MMA[1]):
                x, y = left + col * scale, TOP + row * scale
                drawing.rect(x, y, MMA[1] * scale, MMA[0] * scale, "#d6e8f5" if (row, col) == (0, 0) else FADED, INK)
    for lane, (row, col, tall, wide) in pieces:
        if pairs and lane != PICKED:
            continue
        fill, ink = (ORANGE, INK) if lane == PICKED else shade(lane)
        drawing.rect(left + col * scale, TOP + row * scale, wide * scale, tall * scale, fill, INK if not pairs else "none")
        if not pairs:
            drawing.text(left + (col + wide / 2) * scale, TOP + (row + tall / 2) * scale, str(lane), 7.5, colour=ink)
    if pairs:
        return left + MMA[1] * scale, TOP, MMA[0] * scale
    (row, col, tall, wide) = next(place for lane, place in pieces if lane == PICKED)
    return left + (col + wide) * scale, TOP + row * scale, tall * scale


def _lane(drawing: Drawing, left: float, lane: list[Place]) -> None:
    """A lane's results side by side; beside them the rows and columns of the warp's tile that they are."""
    rows, cols = ([place[axis] for place in lane] for axis in (0, 1))
    at_row, at_col = ({number: i for i, number in enumerate(sorted(set(numbers)))} for numbers in (rows, cols))
    scale = SIDE / max(len(at_row), len(at_col))
    for row, col in lane:
        drawing.rect(left + at_col[col] * scale, TOP + at_row[row] * scale, scale, scale, ORANGE, "white")
    for first, last in runs(cols):
        x, end = left + at_col[first] * scale, left + (at_col[last] + 1) * scale
        drawing.rect(x, TOP, end - x, len(at_row) * scale, "none", INK)
        drawing.text((x + end) / 2, TOP - 12, f"{first}–{last}", 10)
    for first, last in runs(rows):
        y, end = TOP + at_row[first] * scale, TOP + (at_row[last] + 1) * scale
        drawing.rect(left, y, len(at_col) * scale, end - y, "none", INK)
        drawing.text(left + len(at_col) * scale + 6, (y + end) / 2, f"{first}–{last}", 10, "start")


def _mma(drawing: Drawing, left: float, block: Owner) -> None:
    """The first 16 x 8 results of the warp: whose pair lies where."""
    tall, wide = SIDE / MMA[0], SIDE / MMA[0] * 2
    for lane, (row, col, _, width) in regions(
        {place: block[place] for place in block if place[0] < MMA[0] and place[1] < MMA[1]}
    ):
        fill, ink = (ORANGE, INK) if lane == PICKED else shade(lane)
        drawing.rect(left + col * wide, TOP + row * tall, width * wide, tall, fill, "white")
        drawing.text(left + (col + width / 2) * wide, TOP + (row + 0.5) * tall, str(lane), 9, colour=ink)
    drawing.rect(left, TOP, MMA[1] * wide, SIDE, "none", INK)


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {f"hierarchy_{rung}": hierarchy(maps, rung) for rung in ("04", "08", "14")}
