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


class Lanes:
    """Named lines with bars and marks on one axis of time."""

    def __init__(self, names: list[str], gaps: list[int], title: str, heading: str):
        """`gaps`: the lines before which there is some space."""
        self.left, self.unit, self.extent, self.tall = 168.0, 13.0, 56.0, 20
        self.places = [92.0 + i * (self.tall + 5) + 12 * sum(i >= gap for gap in gaps) for i in range(len(names))]
        self.drawing = Drawing(self.left + self.extent * self.unit + 14, self.places[-1] + self.tall + 34, title)
        self.drawing.text(12, 18, heading, 14, "start", bold=True)
        self.drawing.text(12, 40, "A schedule drawn by rule, not measured. Lengths have no meaning.", 12, "start")
        for y, name in zip(self.places, names, strict=True):
            self.drawing.rect(self.left, y, self.extent * self.unit, self.tall, LIGHT, GRID)
            self.drawing.text(self.left - 8, y + self.tall / 2, name, 12, "end")
        self.drawing.text(self.left + self.extent * self.unit, self.places[-1] + self.tall + 18, "time →", 12, "end")

    def key(self, x: float, text: str, fill: str = "", colour: str = "", width: float = 4) -> None:
        """What a fill, or the colour and the width of a mark, stands for."""
        if fill:
            self.drawing.rect(x, 58, 14, 14, fill, INK)
        else:
            self.drawing.line(x + 8, 56, x + 8, 74, colour, width)
        self.drawing.text(x + 20, 65, text, 12, "start")

    def bar(self, line: int, start: float, end: float, fill: str, text: str) -> None:
        """What goes on from `start` to `end`; the text where there is room for it."""
        end = min(end, self.extent)
        if end <= start:
            return
        width = (end - start) * self.unit
        self.drawing.rect(self.left + start * self.unit, self.places[line], width, self.tall, fill, INK)
        if text and width >= 8 + 6.4 * len(text):
            x = self.left + (start + end) / 2 * self.unit
            self.drawing.text(x, self.places[line] + self.tall / 2, text, 11, colour="white" if fill in WHITE_INK else INK)

    def mark(self, line: int, at: float, colour: str, width: float) -> None:
        """A moment."""
        if at < self.extent:
            x, y = self.left + at * self.unit, self.places[line]
            self.drawing.line(x, y - 2, x, y + self.tall + 2, colour, width)


def mbarriers() -> Drawing:
    """Lines for the producer, for stage 0 and its two mbarriers, and for the eight warps that multiply."""
    tiles = schedule(WARPS, SLOW_21B)
    lanes = Lanes(
        ["producer", "stage 0", "full of stage 0", "empty of stage 0", *(f"consumer warp {i}" for i in range(WARPS))],
        [1, 4],
        "The producer, the mbarriers of a stage and the consumers of 21b",
        "21b: the producer warp, the two mbarriers of stage 0, and eight consumer warps",
    )
    for x, fill, text in ((12, WAIT, "waits"), (92, "white", "copy under way"), (232, BLUE, "being read (colour: k tile)")):
        lanes.key(x, text, fill)
    lanes.key(450, "full completes", colour=GREEN)
    lanes.key(590, "empty completes", colour=RED)
    lanes.key(740, "a warp arrives", colour=RED, width=1)
    free = 0.0
    busy = [0.0] * WARPS
    for k_tile, tile in enumerate(tiles):
        colour = COLOURS[k_tile % len(COLOURS)]
        lanes.bar(0, free, tile.asked, WAIT, f"waits for empty {k_tile % STAGES}")
        lanes.bar(0, tile.asked, tile.asked + ISSUE, colour, "")
        free = tile.asked + ISSUE
        if k_tile % STAGES == 0:
            lanes.bar(1, tile.asked, tile.landed, "white", f"copy {k_tile}")
            lanes.bar(1, min(tile.begun), max(tile.ended), colour, f"k tile {k_tile}")
        for warp, (start, end) in enumerate(zip(tile.begun, tile.ended, strict=True)):
            lanes.bar(4 + warp, busy[warp], start, WAIT, "waits")
            lanes.bar(4 + warp, start, end, colour, f"k tile {k_tile}")
            busy[warp] = end
    for line, colour in ((2, GREEN), (3, RED)):
        for phase in phases(0, line == 2, tiles):
            lanes.bar(line, phase.start, phase.end, "white", f"phase {phase.number}")
            for at in phase.arrivals if line == 3 else []:
                lanes.mark(line, at, RED, 1)
            lanes.mark(line, phase.end, colour, 4)
    return lanes.drawing


class Shared(NamedTuple):
    """What happens to a k tile in a cluster of two blocks; lists by block."""

    asked: list[float]  # the producer issues its two copies
    own: list[float]  # they have landed
    landed: float  # those of both blocks have: the full barrier of each block completes
    begun: list[list[float]]  # each consumer of each block begins to multiply it
    ended: list[list[float]]  # each consumer releases the stage, in both blocks


LATE, SLOW_24 = (
    2.5,
    {(0, 1, 0): 1.0, (1, 0, 0): 2.0, (1, 1, 0): 3.5},
)  # block 1 starts later; (block, consumer, k tile) that takes longer


def in_cluster() -> list[Shared]:
    """The k tiles of two blocks: a copy waits for the consumers of both, a consumer for the copies of both."""
    tiles: list[Shared] = []
    free = [[0.0] * WARPGROUPS for _ in range(2)]
    before = [-ISSUE, LATE - ISSUE]
    for k_tile in range(K_TILES):
        released = max(map(max, tiles[k_tile - STAGES].ended)) if k_tile >= STAGES else 0.0
        before = [max(asked + ISSUE, released) for asked in before]
        own = [asked + LATENCY for asked in before]
        begun = [[max(max(own), end) for end in ends] for ends in free]
        free = [
            [start + MULTIPLY + SLOW_24.get((block, consumer, k_tile), 0) for consumer, start in enumerate(starts)]
            for block, starts in enumerate(begun)
        ]
        tiles.append(Shared(before, own, max(own), begun, free))
    return tiles


def cluster_in_time() -> Drawing:
    """For each of the two blocks: the producer, stage 0, its mbarriers, and the two consumer warpgroups."""
    of_block = ["producer", "stage 0", "full of stage 0", "empty of stage 0", "warpgroup 0", "warpgroup 1"]
    lanes = Lanes(
        [f"block {block}: {name}" for block in range(2) for name in of_block],
        [6],
        "Two blocks of a cluster over time",
        "24: both producers, the mbarriers of stage 0 in both blocks, and all consumers",
    )
    lanes.key(12, "waits", WAIT)
    lanes.key(86, "copies under way", "white")
    lanes.key(222, "own copies landed", colour=GREEN, width=1)
    lanes.key(366, "full completes", colour=GREEN)
    lanes.key(486, "own / other block's warps arrive", colour=RED, width=1)
    lanes.drawing.line(500, 56, 500, 74, PURPLE, 2)
    lanes.key(734, "empty completes", colour=RED)
    free = [0.0, 0.0]
    busy = [[0.0] * WARPGROUPS for _ in range(2)]
    begins = 0.0  # of the phase of full
    released = 0.0  # of the phase of empty
    for k_tile, tile in enumerate(in_cluster()):
        colour, ended = COLOURS[k_tile % len(COLOURS)], max(map(max, tile.ended))
        for block in range(2):
            line = block * len(of_block)
            lanes.bar(line, free[block], tile.asked[block], WAIT, f"waits for empty {k_tile % STAGES}" if k_tile else "starts")
            lanes.bar(line, tile.asked[block], tile.asked[block] + ISSUE, colour, "")
            free[block] = tile.asked[block] + ISSUE
            for consumer, (start, end) in enumerate(zip(tile.begun[block], tile.ended[block], strict=True)):
                lanes.bar(line + 4 + consumer, busy[block][consumer], start, WAIT, "waits")
                lanes.bar(line + 4 + consumer, start, end, colour, f"k tile {k_tile}")
                busy[block][consumer] = end
            if k_tile % STAGES:
                continue
            lanes.bar(line + 1, tile.asked[block], tile.landed, "white", f"copies {k_tile}")
            lanes.bar(line + 1, min(map(min, tile.begun)), max(tile.ended[block]), colour, f"k tile {k_tile}")
            lanes.bar(line + 2, begins, tile.landed, "white", f"phase {k_tile // STAGES}")
            lanes.bar(line + 3, released, ended, "white", f"phase {k_tile // STAGES}")
            lanes.mark(line + 2, tile.own[block], GREEN, 1)
            lanes.mark(line + 2, tile.landed, GREEN, 4)
            for other in range(2):
                for at in tile.ended[other]:
                    lanes.mark(line + 3, at, RED if other == block else PURPLE, 1 if other == block else 2)
            lanes.mark(line + 3, ended, RED, 4)
        if k_tile % STAGES == 0:
            begins, released = tile.landed, ended
    return lanes.drawing


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
    return {"21b_mbarriers": mbarriers(), "23_ring": ring(), "24_cluster": cluster(), "24_mbarriers": cluster_in_time()}
