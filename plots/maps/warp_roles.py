"""The figures of chapters 21b, 23 and 24: a producer, two mbarriers and eight consumers; a ring of stages; a cluster.

Schematic: the order is the kernels', the lengths are chosen.
"""

from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, Drawing

STAGES, K_TILES, WARPGROUPS, WARPS = 4, 9, 2, 8  # of 23 and of 21b; the consumers of 23, and of 21b
ISSUE, LATENCY, MULTIPLY = 1.0, 7.0, 8.0  # lengths of no meaning: they fit the words into the bars
SLOW_23 = {(1, 2): 4.0}  # (consumer, k tile) -> how much longer this multiplication takes
SLOW_21B = {(warp, 0): warp * 5 % 8 * 0.35 for warp in range(WARPS)} | {(2, 1): 2.0, (6, 2): 1.5}
COLOURS = [BLUE, ORANGE, GREEN, PURPLE]  # of the k tiles, over and over
WHITE_INK = (BLUE, GREEN)
LIGHT, WAIT = "#f7f7f7", "#e4e4e4"
LEFT, LINE, GAP = 150, 24, 5  # pixels


class KTile(NamedTuple):
    """What happens to a k tile, and when."""

    asked: float  # the producer issues its copies
    landed: float  # its full barrier completes
    begun: list[float]  # each consumer begins to multiply it
    ended: list[float]  # each consumer releases its stage; with the last the empty barrier completes


def schedule(consumers: int = WARPGROUPS, slow: dict[tuple[int, int], float] = SLOW_23) -> list[KTile]:
    """The k tiles through the ring: a copy waits for its stage, a consumer for its k tile, no consumer for the others."""
    tiles: list[KTile] = []
    free = [0.0] * consumers
    asked = 0.0
    for k_tile in range(K_TILES):
        if k_tile:
            asked += ISSUE
        if k_tile >= STAGES:
            asked = max(asked, *tiles[k_tile - STAGES].ended)
        landed = asked + LATENCY
        begun = [max(landed, end) for end in free]
        free = [start + MULTIPLY + slow.get((consumer, k_tile), 0) for consumer, start in enumerate(begun)]
        tiles.append(KTile(asked, landed, begun, free))
    return tiles


def ring() -> Drawing:
    """Lines for the producer, the stages and the consumers on one axis of time."""
    unit, extent = 13.0, 56.0
    lines = ["producer", *(f"stage {stage}" for stage in range(STAGES)), *(f"warpgroup {i}" for i in range(WARPGROUPS))]
    top = 92.0
    places = [top + i * (LINE + GAP) + (12 if i else 0) + (12 if i > STAGES else 0) for i in range(len(lines))]
    drawing = Drawing(LEFT + extent * unit + 14, places[-1] + LINE + 34, "The ring of stages of rung 23 over time")
    drawing.text(12, 18, "Rung 23: a producer, four stages, two consumers", 14, "start", bold=True)
    drawing.text(12, 40, "A schedule drawn by rule, not measured. Lengths have no meaning.", 12, "start")
    for x, fill, text in ((12, WAIT, "waits"), (92, "white", "copy under way"), (232, BLUE, "being multiplied (colour: k tile)")):
        drawing.rect(x, 58, 14, 14, fill, INK)
        drawing.text(x + 22, 65, text, 12, "start")
    for x, colour, text in ((490, GREEN, "full completes"), (630, RED, "empty completes")):
        drawing.line(x, 56, x, 74, colour, 4)
        drawing.text(x + 10, 65, text, 12, "start")
    for y, line in zip(places, lines, strict=True):
        drawing.rect(LEFT, y, extent * unit, LINE, LIGHT, GRID)
        drawing.text(LEFT - 8, y + LINE / 2, line, 12, "end")

    def bar(line: int, start: float, end: float, fill: str, text: str) -> None:
        end = min(end, extent)
        if end <= start:
            return
        x, width = LEFT + start * unit, (end - start) * unit
        drawing.rect(x, places[line], width, LINE, fill, INK)
        if text and width >= 12 + 6.6 * len(text):
            colour = "white" if fill in WHITE_INK else INK
            drawing.text(x + width / 2, places[line] + LINE / 2, text, 11, colour=colour)

    free = 0.0
    for k_tile, tile in enumerate(schedule()):
        stage, colour = k_tile % STAGES, COLOURS[k_tile % len(COLOURS)]
        bar(0, free, tile.asked, WAIT, f"waits for empty {stage}")
        bar(0, tile.asked, tile.asked + ISSUE, colour, "")
        free = tile.asked + ISSUE
        bar(1 + stage, tile.asked, tile.landed, "white", f"copy {k_tile}")
        bar(1 + stage, min(tile.begun), max(tile.ended), colour, f"k tile {k_tile}")
        for consumer, (start, end) in enumerate(zip(tile.begun, tile.ended, strict=True)):
            bar(1 + STAGES + consumer, start, end, colour, f"k tile {k_tile}")
        for at, mark in ((tile.landed, GREEN), (max(tile.ended), RED)):
            if at < extent:
                x = LEFT + at * unit
                drawing.line(x, places[1 + stage] - 2, x, places[1 + stage] + LINE + 2, mark, 4)
    for consumer in range(WARPGROUPS):
        bar(1 + STAGES + consumer, 0, schedule()[0].landed, WAIT, "waits")
    drawing.text(LEFT + extent * unit, places[-1] + LINE + 18, "time →", 12, "end")
    return drawing


class Phase(NamedTuple):
    """A phase of an mbarrier: it ends when its last arrival and its last byte have come."""

    number: int
    start: float
    end: float
    arrivals: list[float]


def phases(stage: int, full: bool, tiles: list[KTile]) -> list[Phase]:
    """The phases of a stage's full or empty mbarrier, one for each k tile that uses the stage."""
    found, start = [], 0.0
    for number, tile in enumerate(tiles[stage::STAGES]):
        end = tile.landed if full else max(tile.ended)
        found.append(Phase(number, start, end, [tile.asked] if full else sorted(tile.ended)))
        start = end
    return found


def mbarriers() -> Drawing:
    """Lines for the producer, for stage 0 and its two mbarriers, and for the eight warps that multiply."""
    unit, extent, line, left = 13.0, 56.0, 20, 168
    tiles = schedule(WARPS, SLOW_21B)
    lines = ["producer", "stage 0", "full of stage 0", "empty of stage 0", *(f"consumer warp {i}" for i in range(WARPS))]
    places = [92.0 + i * (line + 5) + (12 if i else 0) + (12 if i > 3 else 0) for i in range(len(lines))]
    drawing = Drawing(
        left + extent * unit + 14, places[-1] + line + 34, "The producer, the mbarriers of a stage and the consumers of 21b"
    )
    drawing.text(12, 18, "21b: the producer warp, the two mbarriers of stage 0, and eight consumer warps", 14, "start", bold=True)
    drawing.text(12, 40, "A schedule drawn by rule, not measured. Lengths have no meaning.", 12, "start")
    for x, fill, text in ((12, WAIT, "waits"), (92, "white", "copy under way"), (232, BLUE, "being read (colour: k tile)")):
        drawing.rect(x, 58, 14, 14, fill, INK)
        drawing.text(x + 22, 65, text, 12, "start")
    for x, colour, width, text in (
        (450, GREEN, 4, "full completes"),
        (590, RED, 4, "empty completes"),
        (740, RED, 1, "a warp arrives"),
    ):
        drawing.line(x, 56, x, 74, colour, width)
        drawing.text(x + 10, 65, text, 12, "start")
    for y, name in zip(places, lines, strict=True):
        drawing.rect(left, y, extent * unit, line, LIGHT, GRID)
        drawing.text(left - 8, y + line / 2, name, 12, "end")

    def bar(row: int, start: float, end: float, fill: str, text: str) -> None:
        end = min(end, extent)
        if end <= start:
            return
        drawing.rect(left + start * unit, places[row], (end - start) * unit, line, fill, INK)
        if text and (end - start) * unit >= 8 + 6.4 * len(text):
            x = left + (start + end) / 2 * unit
            drawing.text(x, places[row] + line / 2, text, 11, colour="white" if fill in WHITE_INK else INK)

    def mark(row: int, at: float, colour: str, width: float) -> None:
        if at < extent:
            x = left + at * unit
            drawing.line(x, places[row] - 2, x, places[row] + line + 2, colour, width)

    free = 0.0
    busy = [0.0] * WARPS
    for k_tile, tile in enumerate(tiles):
        colour = COLOURS[k_tile % len(COLOURS)]
        bar(0, free, tile.asked, WAIT, f"waits for empty {k_tile % STAGES}")
        bar(0, tile.asked, tile.asked + ISSUE, colour, "")
        free = tile.asked + ISSUE
        if k_tile % STAGES == 0:
            bar(1, tile.asked, tile.landed, "white", f"copy {k_tile}")
            bar(1, min(tile.begun), max(tile.ended), colour, f"k tile {k_tile}")
        for warp, (start, end) in enumerate(zip(tile.begun, tile.ended, strict=True)):
            bar(4 + warp, busy[warp], start, WAIT, "waits")
            bar(4 + warp, start, end, colour, f"k tile {k_tile}")
            busy[warp] = end
    for row, colour in ((2, GREEN), (3, RED)):
        for phase in phases(0, row == 2, tiles):
            bar(row, phase.start, phase.end, "white", f"phase {phase.number}")
            for at in phase.arrivals if row == 3 else []:
                mark(row, at, RED, 1)
            mark(row, phase.end, colour, 4)
    drawing.text(left + extent * unit, places[-1] + line + 18, "time →", 12, "end")
    return drawing


def cluster() -> Drawing:
    """Two blocks of a cluster: the boxes that each asks for, where they land, and who arrives where."""
    drawing = Drawing(872, 470, "A cluster of two blocks of rung 24: one k tile")
    drawing.text(12, 18, "Rung 24: one k tile of a cluster of two blocks", 14, "start", bold=True)
    drawing.text(12, 40, "Arrows: bulk tensor copies. A: into one block. B: each half into both blocks.", 12, "start")
    for rank in range(2):
        y = 66 + 150 * rank
        drawing.rect(12, y, 250, 126, LIGHT, GRID)
        drawing.text(24, y + 16, f"block {rank} copies", 13, "start", bold=True)
        drawing.rect(36, y + 34, 200, 34, (BLUE, GREEN)[rank], INK)
        drawing.text(136, y + 51, "A, its 128 rows: 16 KB", 12, colour="white")
        drawing.rect(36, y + 80, 200, 34, (ORANGE, PURPLE)[rank], INK)
        drawing.text(136, y + 97, f"B, columns {128 * rank} to {128 * rank + 127}: 16 KB", 12)
        drawing.rect(430, y, 430, 126, LIGHT, GRID)
        drawing.text(442, y + 16, f"shared memory of block {rank}, one stage: 48 KB", 13, "start", bold=True)
        drawing.rect(450, y + 30, 392, 24, (BLUE, GREEN)[rank], INK)
        drawing.text(646, y + 42, "A, its 128 rows, 16 KB", 12, colour="white")
        for half in range(2):
            drawing.rect(450, y + 60 + 31 * half, 392, 26, (ORANGE, PURPLE)[half], INK)
            drawing.text(646, y + 73 + 31 * half, f"B, columns {128 * half} to {128 * half + 127}, 16 KB", 12)
        _arrow(drawing, (236, y + 51), (450, y + 42), (BLUE, GREEN)[rank])
    for rank in range(2):
        start = 66 + 150 * rank + 97
        for block in range(2):
            end = 66 + 150 * block + 73 + 31 * rank
            _arrow(drawing, (236, start), (450, end), (ORANGE, PURPLE)[rank])
    drawing.text(12, 372, "The stage's two mbarriers, one pair in each block", 13, "start", bold=True)
    for rank in range(2):
        x = 12 + 430 * rank
        drawing.rect(x, 390, 418, 66, LIGHT, GRID)
        drawing.text(x + 12, 408, f"full of block {rank}: 1 arrival, and 16 + 16 + 16 KB", 12, "start")
        drawing.text(x + 12, 438, f"empty of block {rank}: 8 warps of block 0 + 8 warps of block 1", 12, "start")
    return drawing


def _arrow(drawing: Drawing, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    drawing.line(*start, *end, colour, 3)
    drawing.line(end[0] - 10, end[1] - 6, *end, colour, 3)
    drawing.line(end[0] - 10, end[1] + 6, *end, colour, 3)


def figures() -> dict[str, Drawing]:
    """File stem -> drawing."""
    return {"21b_mbarriers": mbarriers(), "23_ring": ring(), "24_cluster": cluster()}
