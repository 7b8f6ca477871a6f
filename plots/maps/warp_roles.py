"""The figures of chapters 23 and 24: a ring of stages between a producer and two consumers, and a cluster of two blocks.

Schematic: the order is the kernels', the lengths are chosen.
"""

from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, Drawing

STAGES, K_TILES, CONSUMERS = 4, 9, 2
ISSUE, LATENCY, MULTIPLY = 1.0, 7.0, 8.0  # lengths of no meaning: they fit the words into the bars
SLOW = {(1, 2): 4.0}  # (consumer, k tile) -> how much longer this multiplication takes
COLOURS = [BLUE, ORANGE, GREEN, PURPLE]  # of the k tiles, over and over
WHITE_INK = (BLUE, GREEN)
LIGHT, WAIT = "#f7f7f7", "#e4e4e4"
LEFT, LINE, GAP = 150, 24, 5  # pixels


class KTile(NamedTuple):
    """What happens to a k tile, and when."""

    asked: float  # the producer asks for its copies
    landed: float  # its full barrier completes
    begun: list[float]  # each consumer begins to multiply it
    ended: list[float]  # each consumer gives its stage back; with the last the empty barrier completes


def schedule() -> list[KTile]:
    """The k tiles through the ring: a copy waits for its stage, a consumer for its k tile, no consumer for the other."""
    tiles: list[KTile] = []
    free = [0.0] * CONSUMERS
    asked = 0.0
    for k_tile in range(K_TILES):
        if k_tile:
            asked += ISSUE
        if k_tile >= STAGES:
            asked = max(asked, *tiles[k_tile - STAGES].ended)
        landed = asked + LATENCY
        begun = [max(landed, end) for end in free]
        free = [start + MULTIPLY + SLOW.get((consumer, k_tile), 0) for consumer, start in enumerate(begun)]
        tiles.append(KTile(asked, landed, begun, free))
    return tiles


def ring() -> Drawing:
    """Lines for the producer, the stages and the consumers on one axis of time."""
    unit, extent = 13.0, 56.0
    lines = ["producer", *(f"stage {stage}" for stage in range(STAGES)), *(f"warpgroup {i}" for i in range(CONSUMERS))]
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
    for consumer in range(CONSUMERS):
        bar(1 + STAGES + consumer, 0, schedule()[0].landed, WAIT, "waits")
    drawing.text(LEFT + extent * unit, places[-1] + LINE + 18, "time →", 12, "end")
    return drawing


def cluster() -> Drawing:
    """Two blocks of a cluster: the boxes that each asks for, where they land, and who arrives where."""
    drawing = Drawing(872, 470, "A cluster of two blocks of rung 24: one k tile")
    drawing.text(12, 18, "Rung 24: one k tile of a cluster of two blocks", 14, "start", bold=True)
    drawing.text(12, 40, "Arrows: copies by the engine. A: into one block. B: each half into both blocks.", 12, "start")
    for rank in range(2):
        y = 66 + 150 * rank
        drawing.rect(12, y, 250, 126, LIGHT, GRID)
        drawing.text(24, y + 16, f"block {rank} asks for", 13, "start", bold=True)
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
    return {"23_ring": ring(), "24_cluster": cluster()}
