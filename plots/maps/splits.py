"""The figures of chapter 17: the k tiles of each SM without and with split-K, and the two ways of adding the partials."""

from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, Drawing
from plots.maps.index_maps import Maps
from plots.maps.raster import SMS

COLOURS = [BLUE, ORANGE, GREEN, PURPLE]  # of the splits
K_TILES = 64  # at 128 x 4096 x 4096
SM, K_TILE = 6, 2  # pixels: the width of an SM, the height of a k tile
TITLES = {"1": "1 split", "4": "4 splits"}


def work_tiles(maps: Maps) -> Drawing:
    """Bars of k tiles over SMs, once for each number of splits; a block has one work tile."""
    left, gap, top, panel = 76, 62, 66, K_TILES * K_TILE
    height = top + 2 * panel + gap + 66
    drawing = Drawing(left + SMS * SM + 16, height, "128×4096×4096 on 132 SMs, with 1 and with 4 splits of K")
    said = f"128×4096×4096, tiles of 128×128: the k tiles that each of {SMS} SMs multiplies"
    drawing.text(12, 18, said, 14, "start", bold=True)
    for number, (count, title) in enumerate(TITLES.items()):
        of = maps["splits", count]
        below = top + number * (panel + gap) + panel
        longest = max(tile.word for tile in of)
        title += f": {len(of)} work tiles of {longest} k tiles, {SMS - len(of)} SMs idle"
        drawing.text(left, below - panel - 16, title, 13, "start", bold=True)
        drawing.rect(left, below - panel, SMS * SM, panel, "#f7f7f7", GRID)
        for k_tiles in range(0, K_TILES + 1, 16):
            drawing.line(left, below - k_tiles * K_TILE, left + SMS * SM, below - k_tiles * K_TILE, GRID)
            drawing.text(left - 8, below - k_tiles * K_TILE, str(k_tiles), 11, "end")
        for tile in of:
            split = [touch.col for touch in of if touch.row == tile.row].index(tile.col)
            length = tile.word * K_TILE
            drawing.rect(left + tile.thread * SM, below - length, SM, length, COLOURS[split], "white")
        drawing.text(12, below - panel / 2, "k tiles", 11, "start")
    for sm in [*range(0, SMS - 32, 32), SMS - 1]:
        drawing.text(left + (sm + 0.5) * SM, below + 14, f"SM {sm}", 11, "end" if sm == SMS - 1 else "middle")
    for split, colour in enumerate(COLOURS):
        drawing.rect(left + 110 * split, below + 36, 14, 14, colour, INK)
        drawing.text(left + 110 * split + 22, below + 43, f"split {split}", 12, "start")
    return drawing


class Bar(NamedTuple):
    """What a block does, from when to when."""

    line: int
    start: float
    end: float
    what: str


MULTIPLY, STORE, GAP, ADD_ALL, ADD, RESULT = 14.0, 4.0, 4.0, 9.0, 3.0, 3.0  # lengths of no meaning
WHAT = {"multiplies": BLUE, "stores partials": ORANGE, "waits": "#e4e4e4", "adds partials": GREEN, "stores C": PURPLE}
LEFT, UNIT, LINE, BETWEEN = 128, 14.0, 24, 5  # pixels


def parallel(splits: int) -> list[Bar]:
    """The splits of a tile of C at the same time; then the reduction kernel, on a line of its own."""
    bars = []
    for split in range(splits):
        bars += [Bar(split, 0, MULTIPLY, "multiplies"), Bar(split, MULTIPLY, MULTIPLY + STORE, "stores partials")]
    start = MULTIPLY + STORE + GAP
    return [
        *bars,
        Bar(splits, start, start + ADD_ALL, "adds partials"),
        Bar(splits, start + ADD_ALL, start + ADD_ALL + RESULT, "stores C"),
    ]


def serial(splits: int) -> list[Bar]:
    """Each split but the first waits for the one before, and adds its partials; the last one stores C."""
    bars, free = [], MULTIPLY
    for split in range(splits):
        bars.append(Bar(split, 0, MULTIPLY, "multiplies"))
        if split > 0:
            bars += [Bar(split, MULTIPLY, free, "waits"), Bar(split, free, free + ADD, "adds partials")]
            free += ADD
        last = split == splits - 1
        end = free + (RESULT if last else STORE)
        bars.append(Bar(split, free, end, "stores C" if last else "stores partials"))
        free = end
    return bars


def adding() -> Drawing:
    """Both ways for the four splits of one tile of C, on the same axis."""
    panels = {
        "parallel split-K: a reduction kernel adds": (parallel(4), [*(f"split {i}" for i in range(4)), "reduction kernel"]),
        "serial split-K: each split waits for the one before": (serial(4), [f"split {i}" for i in range(4)]),
    }
    extent = max(bar.end for bars, _ in panels.values() for bar in bars) + 1
    height = 62 + sum(46 + len(lines) * (LINE + BETWEEN) for _, lines in panels.values()) + 24
    drawing = Drawing(LEFT + extent * UNIT + 14, height, "The two ways of adding the partials of four splits")
    drawing.text(12, 18, "The four splits of one tile of C. Order, not to scale.", 12, "start")
    for i, (what, colour) in enumerate(WHAT.items()):
        drawing.rect(12 + 124 * i, 36, 14, 14, colour, INK)
        drawing.text(34 + 124 * i, 43, what, 12, "start")
    y = 62.0
    for title, (bars, lines) in panels.items():
        drawing.text(12, y + 16, title, 13, "start", bold=True)
        y += 32
        for line, name in enumerate(lines):
            drawing.rect(LEFT, y + line * (LINE + BETWEEN), extent * UNIT, LINE, "#f7f7f7", GRID)
            drawing.text(LEFT - 8, y + line * (LINE + BETWEEN) + LINE / 2, name, 12, "end")
        for bar in bars:
            width = (bar.end - bar.start) * UNIT
            if width:
                drawing.rect(LEFT + bar.start * UNIT, y + bar.line * (LINE + BETWEEN), width, LINE, WHAT[bar.what], INK)
        if len(lines) == 4:  # from a lock to who waits for it
            for bar in bars:
                if bar.what == "stores partials":
                    x, down = LEFT + bar.end * UNIT, y + bar.line * (LINE + BETWEEN)
                    drawing.line(x, down, x, down + 2 * LINE + BETWEEN, INK, 3)
        y += len(lines) * (LINE + BETWEEN) + 14
    drawing.text(LEFT + extent * UNIT, y + 6, "order of operations →", 12, "end")
    drawing.text(12, y + 6, "Thick lines: a lock that the next split waits for.", 12, "start")
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {"17_splits": work_tiles(maps), "17_adding": adding()}
