"""The figures of chapter 21: a tensor map, TMA's 128-byte swizzle, an mbarrier's life, the prologue, and the barrier."""

from itertools import pairwise
from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import Maps
from plots.maps.warp_roles import COLOURS, WAIT, Lanes

LIGHT_BLUE, LIGHT_ORANGE = "#cfe3f1", "#f9e3b8"

# --- the tensor map of A: the arguments of cuTensorMapEncodeTiled, in their order, and what 21 passes for BF16
FIELDS = [
    ("type", "UINT16", "2 bytes per element; TMA only moves bits"),
    ("rank", "2", "dimensions: along k, and rows"),
    ("address", "A", "multiple of 16 bytes"),
    ("size", "{K, M}", "elements; dimension 0 is along k"),
    ("strides", "{2 lda}", "bytes from row to row; multiple of 16"),
    ("box", "{64, 256}", "elements: 128 bytes along k, BM rows"),
    ("element strides", "{1, 1}", "every element"),
    ("interleave", "NONE", "the usual order in memory"),
    ("swizzle", "128B", "how chunks lie in shared memory"),
    ("L2 promotion", "256B", "how much L2 fetches at once"),
    ("fill", "NONE", "zeros for elements outside of A"),
]


def tensor_map() -> Drawing:
    """On the left the fields, on the right what they say about the matrix: its size, a row's distance, and a box at an edge."""
    line, top, table = 24, 84, 520
    left, width, height = table + 66, 300, 176  # of the matrix
    drawing = Drawing(left + width + 100, top + len(FIELDS) * line + 34, "The tensor map of A, field by field")
    drawing.text(12, 18, "The tensor map of A in 21, BF16: what TMA knows before it copies", 14, "start", bold=True)
    for x, head in ((12, "field"), (140, "in 21"), (226, "meaning")):
        drawing.text(x, top - 24, head, 11, "start", bold=True)
    for i, (name, value, meaning) in enumerate(FIELDS):
        y = top + i * line
        drawing.rect(8, y - 12, table - 16, line, "#f7f7f7" if i % 2 else "white", GRID)
        drawing.text(12, y, name, 11, "start", bold=True)
        drawing.text(140, y, value, 11, "start")
        drawing.text(226, y, meaning, 11, "start")
    y = top + 20
    drawing.rect(left, y, width + 34, height, "#eeeeee", GRID)
    drawing.rect(left, y, width, height, "white", INK)
    drawing.text(left, y - 44, "A in global memory", 13, "start", bold=True)
    drawing.text(left + width / 2, y - 16, "size 0: K elements", 11)
    drawing.text(left - 10, y + height / 2, "size 1: M", 11, "end")
    for row in (24, 36):
        drawing.line(left, y + row, left + width + 34, y + row, GRID)
    drawing.text(left + width + 40, y + 30, "stride", 11, "start")
    drawing.rect(left + 40, y + 52, 64, 80, BLUE, INK)
    drawing.text(left + 72, y + 84, "box at", 11, colour="white")
    drawing.text(left + 72, y + 100, "{x, y}", 11, colour="white")
    drawing.rect(left + width - 32, y + 126, 64, 80, ORANGE, INK)
    drawing.line(left + width, y + 126, left + width, y + height)
    drawing.line(left + width - 32, y + height, left + width, y + height)
    drawing.text(left + width, y + 192, "zeros", 11)
    drawing.text(left, y + height + 50, "Coordinates come with each copy: x along k, y a row.", 11, "start")
    drawing.text(left, y + height + 72, "A box at an edge has all its bytes in shared memory;", 11, "start")
    drawing.text(left, y + height + 90, "what lies outside of A is zero there.", 11, "start")
    return drawing


# --- the swizzle
NAMINGS = {"in_order_of_16": "16's permutation, named by ldmatrix", "named": "21's order"}


def columns_of(maps: Maps, naming: str, matrix: int, size: str = "8") -> list[tuple[int, int]]:
    """Of the eight columns of B of a matrix: the column, and the 16-byte column of shared memory that chunk 0 of it lies in."""
    return [(touch.col, touch.bank // 4) for touch in maps[naming, size] if touch.row == matrix]


def swizzle(maps: Maps) -> Drawing:
    """Left: the place of each chunk of eight rows. Right: where ldmatrix finds chunk 0 of the eight columns of one mma."""
    side, line, left, top = 40, 26, 62, 112
    right = left + 8 * side + 74
    drawing = Drawing(right + 8 * side + 20, top + 8 * line + 40, "The 128-byte swizzle of TMA")
    drawing.text(12, 18, "128-byte swizzle: where TMA writes the chunks of a box's rows", 14, "start", bold=True)
    drawing.text(left, 48, "place of chunk c in row r: c XOR r % 8", 13, "start", bold=True)
    drawing.text(right, 48, "one mma's eight columns of B, 16-bit results", 13, "start", bold=True)
    for x in (left, right):
        drawing.text(x, 70, "banks", 11, "start")
        for column in range(8):
            drawing.text(x + (column + 0.5) * side, 92, f"{column * 4}–{column * 4 + 3}", 9)
    for touch in maps["row_place", "12"]:
        row, column = touch.word // 32, touch.bank // 4
        x, y = left + column * side, top + row * line
        picked = touch.col == 0
        drawing.rect(x, y, side, line, ORANGE if picked else LIGHT_BLUE, INK)
        drawing.text(x + side / 2, y + line / 2, str(touch.col), 11, bold=picked)
    for row in range(8):
        drawing.text(left - 8, top + (row + 0.5) * line, f"row {row}", 11, "end")
    drawing.text(left, top + 8 * line + 22, "In a cell: the chunk. Orange: chunk 0 of each row.", 11, "start")
    y = top + 14.0
    for naming, title in NAMINGS.items():
        found = columns_of(maps, naming, 0)
        held: dict[int, list[int]] = {}
        for column, place in found:
            held.setdefault(place, []).append(column)
        most = max(len(columns) for columns in held.values())
        plural = "wavefront" if most == 1 else "wavefronts"
        drawing.text(right, y, f"{title}: {most} {plural}", 11, "start", bold=True)
        drawing.rect(right, y + 12, 8 * side, most * 20, "#f7f7f7", GRID)
        for place, columns in held.items():
            for i, column in enumerate(columns):
                drawing.rect(right + place * side, y + 12 + i * 20, side, 20, ORANGE, INK)
                drawing.text(right + (place + 0.5) * side, y + 22 + i * 20, str(column), 11)
        y += 44 + most * 20
    drawing.text(right, top + 8 * line + 22, "In a cell: the column of B whose chunk 0 lies there.", 11, "start")
    return drawing


# --- an mbarrier's life
KB = 1024
A_BYTES, B_BYTES = 32 * KB, 16 * KB


class Moment(NamedTuple):
    """An event at an mbarrier, and what it holds afterwards."""

    event: str
    phase: int
    arrivals: int
    bytes: int


def life() -> list[Moment]:
    """The full barrier of a stage through two phases: one arrival, the bytes of a tile of A and a tile of B."""
    moments = [Moment("init 1", 0, 1, 0)]
    for phase in range(2):
        now = [("expect_tx", 0, A_BYTES + B_BYTES), ("B landed", 0, A_BYTES), ("A landed", 1, 0)]
        for event, arrivals, left in now:
            moments.append(Moment(event, phase + (arrivals == 1), arrivals, left))
    return moments


def mbarrier() -> Drawing:
    """Three lines over time: phase, pending arrivals, pending bytes; below, what a wait for parity 0 and 1 says."""
    moments = life()
    left, side, top, tall = 150, 100, 84, 34
    lines = ["phase", "pending arrivals", "pending KB"]
    waits = ["wait for parity 0", "wait for parity 1"]
    drawing = Drawing(left + len(moments) * side + 14, top + 5 * (tall + 8) + 40, "An mbarrier's life")
    drawing.text(12, 18, "An mbarrier of 21 through two phases: one arrival and 48 KB each", 14, "start", bold=True)
    drawing.text(
        12, 40, "Order, not to scale. A phase ends at the moment when nothing is pending: the next begins at once.", 12, "start"
    )
    for i, moment in enumerate(moments):
        drawing.text(left + i * side + 4, top - 16, moment.event, 11, "start", bold=True)
        values = [moment.phase, moment.arrivals, moment.bytes // KB]
        for j, (value, name) in enumerate(zip(values, lines, strict=True)):
            y = top + j * (tall + 8)
            if i == 0:
                drawing.text(left - 10, y + tall / 2, name, 12, "end")
            fill = [LIGHT_BLUE, LIGHT_ORANGE, LIGHT_BLUE][value % 3] if j == 0 else (ORANGE if value else "white")
            drawing.rect(left + i * side, y, side, tall, fill, INK)
            drawing.text(left + (i + 0.5) * side, y + tall / 2, str(value), 12)
        for parity, name in enumerate(waits):
            y = top + (3 + parity) * (tall + 8)
            if i == 0:
                drawing.text(left - 10, y + tall / 2, name, 12, "end")
            passes = moment.phase % 2 != parity
            drawing.rect(left + i * side, y, side, tall, GREEN if passes else "#e4e4e4", INK)
            text = "passes" if passes else "waits"
            drawing.text(left + (i + 0.5) * side, y + tall / 2, text, 11, colour="white" if passes else INK)
    for i, (before, after) in enumerate(pairwise(moments)):
        if after.phase != before.phase:
            x = left + (i + 1) * side
            drawing.line(x, top - 26, x, top + 5 * (tall + 8) - 4, INK, 3)
    drawing.text(left, top + 5 * (tall + 8) + 18, "Thick lines: a phase is complete, and the next begins. Time →", 12, "start")
    return drawing


# --- the prologue and the first k tiles
STAGES, K_STEPS, COPY_STEP = 4, 4, 2  # of 21; the k step in which it issues copies
SET_UP, ISSUE, LATENCY, FRAGMENTS, STEP, K_TILES = 4.0, 1.0, 9.0, 2.0, 2.5, 7  # lengths of no meaning: they fit the words


class KTile(NamedTuple):
    """What happens to a k tile, and when."""

    issued: float  # the elected lane issues its two copies
    landed: float
    used: float  # the warps load its first fragments
    multiplied: float  # its first k step
    free: float  # the barrier after which its stage may be overwritten


def started() -> list[KTile]:
    """The first k tiles of a block: copies of all stages but one, then one k tile's in each k tile."""
    first = SET_UP + LATENCY + FRAGMENTS  # the first k step begins
    begin = [first + k_tile * K_STEPS * STEP for k_tile in range(K_TILES)]
    tiles = []
    for k_tile, now in enumerate(begin):
        ahead = k_tile - (STAGES - 1)  # the k tile that is being multiplied when these copies are issued
        issued = SET_UP + k_tile * ISSUE if ahead < 0 else begin[ahead] + COPY_STEP * STEP
        used = now - STEP if k_tile else now - FRAGMENTS
        tiles.append(KTile(issued, issued + LATENCY, used, now, now + (K_STEPS - 1) * STEP))
    return tiles


def prologue() -> Drawing:
    """Lines for the elected lane, the eight warps and the four stages."""
    tiles = started()
    lanes = Lanes(
        ["elected lane", "all eight warps", *(f"stage {stage}" for stage in range(STAGES))],
        [1, 2],
        "The prologue and the first k tiles of 21",
        "21: the prologue, then the first k tiles with their k steps 0 to 3",
    )
    lanes.key(12, "waits for k tile 0", WAIT)
    lanes.key(170, "copies under way", "white")
    lanes.key(318, "issues copies / k tile has landed / multiplies (colour: k tile)", BLUE)
    lanes.key(758, "barrier", colour=INK, width=2)
    lanes.bar(0, 0, SET_UP, "white", "set up")
    lanes.bar(1, SET_UP, tiles[0].landed, WAIT, "waits")
    lanes.bar(1, tiles[0].used, tiles[0].multiplied, "white", "")
    lanes.drawing.text(lanes.left + (tiles[0].used + FRAGMENTS / 2) * lanes.unit, lanes.places[1] - 8, "ldmatrix", 10)
    for k_tile, tile in enumerate(tiles):
        colour = COLOURS[k_tile % len(COLOURS)]
        lanes.bar(0, tile.issued, tile.issued + ISSUE, colour, "")
        for k_step in range(K_STEPS):
            lanes.bar(1, tile.multiplied + k_step * STEP, tile.multiplied + (k_step + 1) * STEP, colour, str(k_step))
        lanes.bar(2 + k_tile % STAGES, tile.issued, tile.landed, "white", f"copies {k_tile}")
        lanes.bar(2 + k_tile % STAGES, tile.landed, tile.free, colour, f"k tile {k_tile}")
    below = lanes.places[-1] + lanes.tall
    for at in [SET_UP, *(tile.free for tile in tiles)]:
        if at < lanes.extent:
            x = lanes.left + at * lanes.unit
            lanes.drawing.line(x, lanes.places[0] - 4, x, below + 4, INK, 2)
    last = tiles[STAGES - 1]
    x, end = (lanes.left + at * lanes.unit for at in (last.issued, last.used))
    steps = round((last.used - last.issued) / STEP)
    for at in (x, end):
        lanes.drawing.line(at, below + 4, at, below + 14)
    lanes.drawing.line(x, below + 9, end, below + 9)
    lanes.drawing.text((x + end) / 2, below + 22, f"k tile {STAGES - 1}: {steps} k steps from issue to first use", 11)
    return lanes.drawing


# --- the barrier of the main loop: who waits for whom
WARPS, COPYING = 8, 26  # warps of a block; pixels for the elected lane's instructions, out of scale


def barrier() -> Drawing:
    """Two k tiles of all warps: the warp of the elected lane also copies, in each k tile, and the others wait for it."""
    left, top, line, gap, step = 96, 92, 18, 4, 62
    k_tile = K_STEPS * step + COPYING  # from barrier to barrier
    bottom = top + WARPS * (line + gap)
    drawing = Drawing(left + 2 * k_tile + 24, bottom + 34, "The barrier of 21 and the warp of the elected lane")
    drawing.text(12, 18, "21: all warps wait for the warp of the elected lane", 14, "start", bold=True)
    drawing.text(12, 40, "Drawn by rule, not measured; the copies are drawn wider than they are.", 12, "start")
    for x, fill, text in (
        (12, BLUE, "a k step (number)"),
        (160, ORANGE, "issues the copies"),
        (312, WAIT, "waits at the barrier"),
    ):
        drawing.rect(x, 58, 14, 14, fill, INK)
        drawing.text(x + 20, 65, text, 12, "start")
    for warp in range(WARPS):
        y = top + warp * (line + gap)
        drawing.text(left - 8, y + line / 2, f"warp {warp}", 12, "end")
        for first in (left, left + k_tile):
            x = float(first)
            for k_step in [K_STEPS - 1, *range(K_STEPS - 1)]:  # the barrier comes before the multiplication of the last
                if k_step == COPY_STEP and warp == 0:
                    drawing.rect(x, y, COPYING, line, ORANGE, INK)
                    x += COPYING
                drawing.rect(x, y, step, line, BLUE, INK)
                drawing.text(x + step / 2, y + line / 2, str(k_step), 11, colour="white")
                x += step
            if warp:
                drawing.rect(x, y, COPYING, line, WAIT, INK)
    for at in range(3):
        drawing.line(left + at * k_tile, top - 6, left + at * k_tile, bottom + 4, INK, 2)
        drawing.text(left + at * k_tile, bottom + 16, "barrier", 11, "end" if at == 2 else "middle")
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {
        "21_tensor_map": tensor_map(),
        "21_swizzle": swizzle(maps),
        "21_mbarrier": mbarrier(),
        "21_prologue": prologue(),
        "21_barrier": barrier(),
    }
