"""The figures of chapter 25: from C to a thread's results, with clusters; and who works when over two tiles of C."""

from itertools import pairwise
from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import Maps, shade

RASTER, GROUP = "raster_25", "8"  # the map of the order, and group_size_m
CLUSTERS = 66  # of an H200: so many tiles of clusters are computed at any time
CLUSTER, BLOCK, WARPGROUP, WARP, MMA_C = (256, 256), (128, 256), (64, 256), (16, 256), (16, 8)  # rows and columns of C
K_BYTES, ELEMENT = 32, 2  # of a wgmma along k
PICKED_TILE, PICKED_LANE = 5, 6
FADED, PALE, LINES = "#f3f3f3", "#d6e8f5", "#888888"
LEFT, TOP, BELOW, SIDE, GAP = 16, 76, 424, 240, 60


def needed(maps: Maps, group: str, wave: int = 0) -> tuple[int, int]:
    """How many rows and columns of clusters' tiles a wave lies in."""
    tiles = [touch for touch in maps[RASTER, group] if touch.thread // CLUSTERS == wave]
    return len({tile.row for tile in tiles}), len({tile.col for tile in tiles})


def held(maps: Maps, lane: int) -> list[tuple[int, int]]:
    """Rows and columns of a lane's results in the first 8 columns of its warp."""
    return sorted((touch.row, touch.col) for touch in maps["c", "16bit"] if touch.thread == lane)


def tiles(maps: Maps) -> Drawing:
    """Six panels; in each the part that the next one enlarges is in colour."""
    drawing = Drawing(LEFT + 3 * SIDE + 2 * GAP + 36, BELOW + 330, "Rung 25: from C to a thread's results")
    lefts = [LEFT + i * (SIDE + GAP) for i in range(3)]
    picked = _matrix(drawing, maps, lefts[0])
    x, y, cell = picked
    drawing.line(x, y, lefts[1], TOP, LINES)
    drawing.line(x, y + cell, lefts[1], TOP + SIDE, LINES)
    block = _cluster(drawing, lefts[1])
    _joined(drawing, block, lefts[2], TOP, SIDE * BLOCK[0] / BLOCK[1])
    _block(drawing, lefts[2])
    _wgmma(drawing)
    _warp(drawing, maps)
    return drawing


def _titles(drawing: Drawing, left: float, top: float, title: str, *below: str) -> None:
    drawing.text(left, top - 60, title, 13, "start", bold=True)
    for i, text in enumerate(below):
        drawing.text(left, top - 42 + 16 * i, text, 11, "start")


def _joined(drawing: Drawing, picked: tuple[float, float, float], left: float, top: float, height: float) -> None:
    """Lines from the right edge of the coloured part to the next panel; behind all panels."""
    x, y, tall = picked
    ends = ((y, top), (y + tall, top + height))
    found = [f'<line x1="{x:g}" y1="{a:g}" x2="{left:g}" y2="{b:g}" stroke="{LINES}" stroke-width="1"/>' for a, b in ends]
    drawing.shapes[:0] = found


def _matrix(drawing: Drawing, maps: Maps, left: float) -> tuple[float, float, float]:
    """C at 4096 cubed: the order of the clusters' tiles, the first wave in colour, the raster groups framed."""
    order = sorted(maps[RASTER, GROUP])
    count = 1 + max(tile.row for tile in order)
    cell = SIDE / count
    _titles(
        drawing,
        left,
        TOP,
        "C, 4096 × 4096",
        f"{len(order)} tiles of clusters, {count} × {count};",
        f"blue: the first {CLUSTERS}; frames: raster groups",
    )
    for tile in order:
        fill = GREEN if tile.thread == PICKED_TILE else PALE if tile.thread < CLUSTERS else "white"
        drawing.rect(left + tile.col * cell, TOP + tile.row * cell, cell, cell, fill, GRID)
    places = [(left + (tile.col + 0.5) * cell, TOP + (tile.row + 0.5) * cell) for tile in order[:CLUSTERS]]
    for (x1, y1), (x2, y2) in pairwise(places):
        drawing.line(x1, y1, x2, y2, BLUE, 1)
    for row in range(0, count, int(GROUP)):
        drawing.rect(left, TOP + row * cell, SIDE, int(GROUP) * cell, "none", INK)
    tile = order[PICKED_TILE]
    drawing.text(left, TOP + SIDE + 16, f"line: the order; green: tile {PICKED_TILE}", 11, "start")
    return left + (tile.col + 1) * cell, TOP + tile.row * cell, cell


def _cluster(drawing: Drawing, left: float) -> tuple[float, float, float]:
    """The two blocks of a cluster, one above the other."""
    half = SIDE * BLOCK[0] / CLUSTER[0]
    _titles(drawing, left, TOP, f"a cluster's tile, {CLUSTER[0]} × {CLUSTER[1]}", f"two blocks of {BLOCK[0]} × {BLOCK[1]}")
    for rank, fill in enumerate((GREEN, FADED)):
        y, ink = TOP + rank * half, INK if rank else "white"
        drawing.rect(left, y, SIDE, half, fill, INK)
        drawing.text(left + SIDE / 2, y + half / 2 - 20, f"block {rank}", 12, colour=ink)
        drawing.text(left + SIDE / 2, y + half / 2, "loads its 128 rows of A,", 11, colour=ink)
        drawing.text(left + SIDE / 2, y + half / 2 + 18, "and 128 of the 256 columns of B for both", 10, colour=ink)
    return left + SIDE, TOP, half


def _block(drawing: Drawing, left: float) -> None:
    """The two consumer warpgroups of a block."""
    scale = SIDE / BLOCK[1]
    tall = WARPGROUP[0] * scale
    _titles(drawing, left, TOP, f"a block's tile, {BLOCK[0]} × {BLOCK[1]}", f"two warpgroups of {WARPGROUP[0]} × {WARPGROUP[1]}")
    for number, fill in enumerate((GREEN, FADED)):
        drawing.rect(left, TOP + number * tall, SIDE, tall, fill, INK)
        text = f"warps {4 * number + 4} to {4 * number + 7}"
        drawing.text(left + SIDE / 2, TOP + (number + 0.5) * tall, text, 12, colour=INK if number else "white")
    drawing.text(left, TOP + 2 * tall + 18, "Warps 0 to 3 hold no results:", 11, "start")
    drawing.text(left, TOP + 2 * tall + 34, "one lane of warp 0 is the producer.", 11, "start")


def _wgmma(drawing: Drawing) -> None:
    """The operands and the result of one wgmma, and the rows of each warp."""
    depth, scale = K_BYTES // ELEMENT, 1.2
    left, top = LEFT + 60.0, BELOW + 46.0
    _titles(
        drawing,
        LEFT,
        BELOW,
        f"a warpgroup's {WARPGROUP[0]} × {WARPGROUP[1]}",
        f"one wgmma m64n256k{depth} multiplies {WARPGROUP[0]} × {depth} of A",
        f"by {depth} × {WARPGROUP[1]} of B, both in shared memory",
    )
    wide, tall, deep = WARPGROUP[1] * scale, WARPGROUP[0] * scale, depth * scale
    drawing.rect(left, top - deep - 8, wide, deep, "#f9e3b8", INK)
    drawing.text(left + wide / 2, top - deep / 2 - 8, f"B, {depth} × {WARPGROUP[1]}", 11)
    drawing.rect(left - deep - 8, top, deep, tall, "#f9e3b8", INK)
    drawing.text(left - deep - 12, top + tall / 2 - 8, "A,", 11, "end")
    drawing.text(left - deep - 12, top + tall / 2 + 8, "64", 11, "end")
    drawing.text(left - deep - 12, top + tall / 2 + 22, f"× {depth}", 11, "end")
    each = WARP[0] * scale
    for warp in range(4):
        drawing.rect(left, top + warp * each, wide, each, FADED if warp else GREEN, INK)
        drawing.text(
            left + wide / 2, top + (warp + 0.5) * each, f"warp {warp + 4}: 16 × 256 results", 10, colour=INK if warp else "white"
        )
    _joined(drawing, (left + wide, top, each), 430, BELOW, 16 * 4.0)


def _warp(drawing: Drawing, maps: Maps) -> None:
    """A lane's results in its warp's 16 rows, and whose results the first 8 columns are."""
    left, scale, line = 430.0, 1.6, 4.0
    mine = held(maps, PICKED_LANE)
    groups = WARP[1] // MMA_C[1]
    _titles(
        drawing,
        left,
        BELOW,
        "warp 4: 16 × 256",
        f"orange: lane {PICKED_LANE} holds {groups * len(mine)} results,",
        f"acc[{groups}][{len(mine)}]: two pairs of every 8 columns",
    )
    drawing.rect(left, BELOW, WARP[1] * scale, MMA_C[0] * line, FADED, INK)
    drawing.rect(left, BELOW, MMA_C[1] * scale, MMA_C[0] * line, PALE, INK)
    for group in range(groups):
        for row, col in mine:
            drawing.rect(left + (group * MMA_C[1] + col) * scale, BELOW + row * line, scale, line, ORANGE)
    top, cell, wide = BELOW + 16 * line + 60, 12.0, 22.0
    for x, end in ((left, left), (left + MMA_C[1] * scale, left + MMA_C[1] * wide)):
        drawing.line(x, BELOW + 16 * line, end, top, LINES)
    for touch in maps["c", "16bit"]:
        fill, ink = (ORANGE, INK) if touch.thread == PICKED_LANE else shade(touch.thread)
        x, y = left + touch.col * wide, top + touch.row * cell
        drawing.rect(x, y, wide, cell, fill, "white")
        drawing.text(x + wide / 2, y + cell / 2, str(touch.thread), 9, colour=ink)
    drawing.rect(left, top, MMA_C[1] * wide, MMA_C[0] * cell, "none", INK)
    beside = left + MMA_C[1] * wide + 16
    drawing.text(beside, top + 10, "the first 8 columns of warp 4:", 11, "start")
    drawing.text(beside, top + 26, "each result, its lane", 11, "start")


# --- who works when

K_TILES, STAGES, PARTS, BUFFERS = 6, 4, 4, 2  # k tiles per tile of C in the picture; parts of 16-bit results
COPY, MULTIPLY, WRITE, STORE, DIRECT = 5.0, 3.0, 2.0, 3.2, 14.0  # lengths of no meaning
WGMMA, RESULTS, STORES = "wgmma", "epilogue", "stores"
CAPTION = "Drawn, not measured: the order is the kernels', the lengths are chosen. Two tiles of C, six k tiles each."
FILLS = (BLUE, ORANGE)  # of the two tiles of C
LIGHT = ("#cfe3f1", "#f9e3b8")  # what is on its way for them
BESIDE, UNIT, LINE, SPACE = 176, 12.0, 22, 5  # pixels: beside the bars, of a unit of time, of a line, between two


class Bar(NamedTuple):
    """Something that goes on, for a tile of C: `number` is the k tile or the part."""

    line: str
    start: float
    end: float
    text: str
    tile: int
    number: int
    light: bool = False


def schedule(direct: bool) -> list[Bar]:
    """24 (direct: the consumers store C) or 25."""
    bars: list[Bar] = []
    now = asked = stored = 0.0  # of the consumers, the producer, the stores of TMA
    landed: list[float] = []  # when each k tile had landed, and
    multiplied: list[float] = []  # when it was multiplied
    read: list[float] = []  # when each part had been read out of its buffer
    for tile in range(2):
        for k_tile in range(tile * K_TILES, (tile + 1) * K_TILES):
            while len(landed) < min(2 * K_TILES, len(multiplied) + STAGES):  # the producer runs ahead
                next_one = len(landed)
                of, number = divmod(next_one, K_TILES)
                asked = max(asked, multiplied[next_one - STAGES] if next_one >= STAGES else 0)  # the stage is empty
                bars.append(Bar(f"stage {next_one % STAGES}", asked, asked + COPY, f"copy {number}", of, next_one, True))
                landed.append(asked + COPY)
            start = max(now, landed[k_tile])
            now = start + MULTIPLY
            multiplied.append(now)
            bars.append(Bar(WGMMA, start, now, str(k_tile % K_TILES), tile, k_tile))
            bars.append(Bar(f"stage {k_tile % STAGES}", landed[k_tile], now, f"k tile {k_tile % K_TILES}", tile, k_tile))
        if direct:
            bars.append(Bar(RESULTS, now, now + DIRECT, "all stores", tile, 0))
            now += DIRECT
            continue
        for part in range(PARTS):
            number = tile * PARTS + part
            start = max(now, read[number - BUFFERS]) if number >= BUFFERS else now
            now = start + WRITE
            bars.append(Bar(RESULTS, start, now, str(part), tile, number))
            stored = max(stored, now)
            bars.append(Bar(STORES, stored, stored + STORE, str(part), tile, number, True))
            stored += STORE
            read.append(stored)
    return bars


PANELS = {
    "24: the consumers store C themselves": (True, {WGMMA: "wgmma, k tile", RESULTS: "stores of C"}),
    "25: the consumers write C into two buffers, TMA stores it": (
        False,
        {WGMMA: "wgmma, k tile", RESULTS: "warps write a part: W", STORES: "TMA stores a part: E"},
    ),
}


def timeline() -> Drawing:
    """24 above 25 on one axis."""
    both = [schedule(direct) for direct, _ in PANELS.values()]
    extent = max(bar.end for bars in both for bar in bars)
    height = 62 + sum(30 + len(lines) * (LINE + SPACE) + 14 for _, lines in PANELS.values()) + 26
    drawing = Drawing(BESIDE + extent * UNIT + 14, height, "Who works when in 24 and 25, over two tiles of C")
    drawing.text(12, 18, CAPTION, 12, "start")
    names = ("first tile of C", "second tile of C", "pale: on their way, copies and stores")
    for i, (text, fill) in enumerate(zip(names, (*FILLS, LIGHT[0]), strict=True)):
        drawing.rect(12 + 160 * i, 36, 14, 14, fill, INK)
        drawing.text(34 + 160 * i, 43, text, 12, "start")
    y = 62.0
    for (title, (_, lines)), bars in zip(PANELS.items(), both, strict=True):
        drawing.text(12, y + 14, title, 13, "start", bold=True)
        y += 30
        places = {line: y + i * (LINE + SPACE) for i, line in enumerate(lines)}
        for line, at in places.items():
            drawing.rect(BESIDE, at, extent * UNIT, LINE, "#f7f7f7", GRID)
            drawing.text(BESIDE - 8, at + LINE / 2, lines[line], 12, "end")
        for bar in bars:
            if bar.line in places:
                _bar(drawing, bar, places[bar.line])
        y += len(lines) * (LINE + SPACE) + 14
    drawing.text(BESIDE + extent * UNIT, y + 8, "order of operations, one block →", 12, "end")
    return drawing


def _bar(drawing: Drawing, bar: Bar, y: float) -> None:
    x, width = BESIDE + bar.start * UNIT, (bar.end - bar.start) * UNIT
    drawing.rect(x, y, width, LINE, (LIGHT if bar.light else FILLS)[bar.tile], INK)
    if width >= 6.2 * len(bar.text) + 4:
        white = not bar.light and FILLS[bar.tile] == BLUE
        drawing.text(x + width / 2, y + LINE / 2, bar.text, 10, colour="white" if white else INK)


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {"25_tiles": tiles(maps), "25_schedule": timeline()}
