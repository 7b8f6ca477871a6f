"""Figures of the order of operations in a main loop: what is in flight while a block multiplies. Schematic: the order is that
of the kernels' lines, the lengths are chosen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, Drawing

TILES = 7  # k tiles that a schedule runs through; the pictures end before the last ones
COLOURS = [BLUE, ORANGE, GREEN, PURPLE]  # of the k tiles, over and over
WHITE_INK = (BLUE, GREEN)
LATENCY, STORE, BARRIER, FRAGMENTS, MULTIPLY = 6.0, 3.7, 0.7, 1.3, 8.5  # lengths of no meaning: they fit the words into the bars
STEPS = 4  # along k in a k tile (13 and 14)
STAGES_14, STAGE_BYTES_14, COPY_STEPS_14 = 3, (256 + 128) * 128, 3
CAPTION = "Order, not to scale. k tiles are numbered in the order in which they are multiplied."
LEFT, LINE, GAP = 132, 24, 5  # pixels: beside the bars, of a line of bars, between two

FLIGHT, STORES, BARRIERS, LDMATRIX, MATH = "in flight", "stores", "barrier", "ldmatrix", "math"


class Bar(NamedTuple):
    """An operation on a line of a schedule; a wait has no k tile."""

    line: str
    start: float
    end: float
    text: str
    k_tile: int = -1


@dataclass
class Schedule:
    """What a warp of one block does, operation by operation, and when."""

    latency: float = LATENCY
    now: float = 0
    bars: list[Bar] = field(default_factory=list)
    landed: dict[int, float] = field(default_factory=dict)  # k tile -> when its loads or copies have arrived
    stages: dict[int, tuple[int, int]] = field(default_factory=dict)  # k tile -> the stage read and the stage written

    def fetch(self, k_tile: int, text: str, line: str = FLIGHT) -> None:
        """A load or a copy of a k tile is issued; the warp goes on."""
        self.landed[k_tile] = self.now + self.latency
        self.bars.append(Bar(line, self.now, self.landed[k_tile], text, k_tile))

    def need(self, k_tile: int) -> None:
        """The warp goes on when a k tile has arrived."""
        if self.landed[k_tile] > self.now:
            self.bars.append(Bar(MATH, self.now, self.landed[k_tile], "waits"))
            self.now = self.landed[k_tile]

    def spend(self, line: str, length: float, text: str, k_tile: int, ahead: bool = False) -> None:
        """An operation that takes the warp's time, or one that is only issued ahead of others."""
        self.bars.append(Bar(line, self.now, self.now + length, text, k_tile))
        self.now += 0 if ahead else length

    def barrier(self) -> None:
        """__syncthreads()."""
        self.spend(BARRIERS, BARRIER, "", -1)


def one_after_the_other() -> Schedule:
    """06 and 10: the k tile is loaded, stored, multiplied."""
    s = Schedule()
    for t in range(TILES):
        s.fetch(t, f"tile {t}")
        s.need(t)
        s.spend(STORES, STORE, f"tile {t}", t)
        s.barrier()
        s.spend(MATH, MULTIPLY, f"tile {t}", t)
        s.barrier()
    return s


def double_buffer() -> Schedule:
    """07: the next k tile is loaded before, and stored after, this one is multiplied."""
    s = Schedule()
    read_stage = 0
    s.fetch(0, "tile 0")
    s.need(0)
    s.spend(STORES, STORE, f"stage {read_stage}", 0)
    s.barrier()
    for t in range(TILES - 1):
        s.stages[t] = read_stage, read_stage ^ 1
        s.fetch(t + 1, f"tile {t + 1}")
        s.spend(MATH, MULTIPLY, f"tile {t}, stage {read_stage}", t)
        s.need(t + 1)
        s.spend(STORES, STORE, f"stage {read_stage ^ 1}", t + 1)
        s.barrier()
        read_stage ^= 1
    return s


def cp_async() -> Schedule:
    """11: the next k tile is copied into the other stage while this one is multiplied."""
    s = Schedule()
    read_stage = 0
    s.fetch(0, "to stage 0")
    for t in range(TILES - 1):
        s.stages[t] = read_stage, read_stage ^ 1
        s.need(t)
        s.barrier()
        s.fetch(t + 1, f"to stage {read_stage ^ 1}")
        s.spend(MATH, MULTIPLY, f"tile {t}, stage {read_stage}", t)
        read_stage ^= 1
    return s


SLOW = 17.8  # the latency in the figure of 13 and 14: longer than 13 multiplies
STEP = 2.6


def fragments_in_time() -> Schedule:
    """13: as 11; each step loads its fragments and multiplies them."""
    s = Schedule(latency=SLOW)
    read_stage = 0
    s.fetch(0, "tile 0 → stage 0")
    for t in range(TILES - 1):
        s.stages[t] = read_stage, read_stage ^ 1
        s.need(t)
        s.barrier()
        s.fetch(t + 1, f"tile {t + 1} → stage {read_stage ^ 1}")
        for step in range(STEPS):
            s.spend(LDMATRIX, FRAGMENTS, str(step), t)
            s.spend(MATH, STEP, f"{step}", t)
        read_stage ^= 1
    return s


def multistage() -> Schedule:
    """14: two k tiles are being copied while a third is multiplied; fragments are loaded one step ahead."""
    s = Schedule(latency=SLOW)
    smem_bytes = STAGES_14 * STAGE_BYTES_14
    for stage in range(STAGES_14 - 1):
        s.fetch(stage, f"tile {stage} → stage {stage}", f"{FLIGHT} {stage % 2}")
    s.need(0)
    s.barrier()
    s.spend(LDMATRIX, FRAGMENTS, "0", 0)
    read_stage_bytes = 0
    for t in range(TILES - 2):
        next_stage_bytes = 0 if read_stage_bytes + STAGE_BYTES_14 == smem_bytes else read_stage_bytes + STAGE_BYTES_14
        write_stage_bytes = (smem_bytes if read_stage_bytes == 0 else read_stage_bytes) - STAGE_BYTES_14
        s.stages[t] = read_stage_bytes // STAGE_BYTES_14, write_stage_bytes // STAGE_BYTES_14
        for step in range(STEPS):
            if step == STEPS - 1:
                s.need(t + 1)
                s.barrier()
            of = t + (step + 1) // STEPS
            s.spend(LDMATRIX, FRAGMENTS, str((step + 1) % STEPS), of, ahead=True)
            line = f"{FLIGHT} {t % 2}"
            if step == 0:
                s.fetch(t + 2, f"tile {t + 2} → stage {s.stages[t][1]}", line)
            elif step < COPY_STEPS_14:  # the rest of them, of the same group
                s.spend(line, 0, "", t + 2)
            s.spend(MATH, STEP, str(step), t)
        read_stage_bytes = next_stage_bytes
    return s


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "06": one_after_the_other,
    "07": double_buffer,
    "10": one_after_the_other,
    "11": cp_async,
    "13": fragments_in_time,
    "14": multistage,
}
LOADS, COPIES = "loads in flight", "copies in flight"
# What each picture names: the rung before and this one, each with its title and the names of its lines.
PICTURES: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "timeline_07": {
        "06": (
            "06: the FMAs of a block wait for every tile",
            {FLIGHT: LOADS, STORES: "shared stores", BARRIERS: "barrier", MATH: "FMAs"},
        ),
        "07": (
            "07: the next tile is loaded while this one is multiplied; one barrier per tile",
            {FLIGHT: LOADS, STORES: "shared stores", BARRIERS: "barrier", MATH: "FMAs"},
        ),
    },
    "timeline_11": {
        "10": (
            "10: the mma of a block wait for every tile, which passes through registers",
            {FLIGHT: LOADS, STORES: "shared stores", BARRIERS: "barrier", MATH: "mma"},
        ),
        "11": (
            "11: cp.async copies the next tile into the other stage; no stores, one barrier per tile",
            {FLIGHT: "cp.async in flight", BARRIERS: "barrier", MATH: "mma"},
        ),
    },
    "timeline_14": {
        "13": (
            "13: two stages; each step loads its fragments and multiplies them",
            {FLIGHT: COPIES, BARRIERS: "barrier", LDMATRIX: "ldmatrix, k step", MATH: "mma, k step"},
        ),
        "14": (
            "14: three stages, copies in three parts, fragments one step ahead",
            {f"{FLIGHT} 0": COPIES, f"{FLIGHT} 1": "", BARRIERS: "barrier", LDMATRIX: "ldmatrix, k step", MATH: "mma, k step"},
        ),
    },
}
UNIT = {"timeline_07": 13.2, "timeline_11": 13.2, "timeline_14": 14.4}  # pixels
SHOWN = {"timeline_07": (0.0, 60.0), "timeline_11": (0.0, 60.0), "timeline_14": (SLOW - 7.4, SLOW + 47.6)}  # from, to


def timeline(name: str) -> Drawing:
    """The rung before on top, the rung below it, on the same axis."""
    panels, unit, (first, last) = PICTURES[name], UNIT[name], SHOWN[name]
    extent = last - first
    height = 62 + sum(30 + len(lines) * (LINE + GAP) + 16 for _, lines in panels.values()) + 32
    drawing = Drawing(LEFT + extent * unit + 14, height, f"The order of operations in {' and '.join(panels)}")
    drawing.text(12, 18, CAPTION, 12, "start")
    for i, colour in enumerate(COLOURS):
        drawing.rect(12 + 108 * i, 36, 14, 14, colour, INK)
        drawing.text(34 + 108 * i, 43, f"k tile {i}, {i + 4}", 12, "start")
    key = 12 + 108 * len(COLOURS)
    drawing.rect(key, 36, 14, 14, "#e4e4e4", INK)
    drawing.text(key + 22, 43, "the warps wait for global memory", 12, "start")
    y = 62.0
    for rung, (title, lines) in panels.items():
        drawing.text(12, y + 14, title, 13, "start", bold=True)
        y += 30
        _panel(drawing, shown(SCHEDULES[rung](), first, last), lines, (y, unit, extent))
        y += len(lines) * (LINE + GAP) + 16
    drawing.line(LEFT, y + 2, LEFT + extent * unit, y + 2)
    drawing.text(LEFT + extent * unit, y + 14, "order of operations, one block →", 12, "end")
    return drawing


def _panel(drawing: Drawing, bars: list[Bar], lines: dict[str, str], size: tuple[float, float, float]) -> None:
    """Bars, each on its line; a barrier goes through all lines."""
    top, unit, extent = size
    places = {line: top + i * (LINE + GAP) for i, line in enumerate(lines)}
    below = top + len(lines) * (LINE + GAP) - GAP
    for line, y in places.items():
        drawing.rect(LEFT, y, extent * unit, LINE, "#f7f7f7", GRID)
        if lines[line]:
            drawing.text(LEFT - 8, y + LINE / 2, lines[line], 12, "end")
    for bar in bars:
        if bar.line == BARRIERS:
            x = LEFT + (bar.start + bar.end) / 2 * unit
            drawing.line(x, top - 3, x, below + 3, INK, 1)
    for bar in bars:
        x, y, width = LEFT + bar.start * unit, places[bar.line], (bar.end - bar.start) * unit
        fill = INK if bar.line == BARRIERS else COLOURS[bar.k_tile % len(COLOURS)] if bar.k_tile >= 0 else "#e4e4e4"
        if width:
            drawing.rect(x, y, width, LINE, fill, INK)
        else:  # another part of what is in flight
            drawing.line(x, y + LINE - 6, x, y + LINE, INK, 2)
        _inside(drawing, bar.start, bar.end, y, unit, bar.text, fill)


def shown(schedule: Schedule, first: float, last: float) -> list[Bar]:
    """The bars of which something lies in the picture, from `first` to `last`, cut at its ends and counted from its start."""
    return [
        bar._replace(start=max(bar.start, first) - first, end=min(bar.end, last) - first)
        for bar in schedule.bars
        if bar.end > first and bar.start < last - BARRIER
    ]


# Two blocks of 06 on one SM: the second begins half a period later.
WAIT, PUT, FMAS = 7.5, 2.5, 7.0


def two_blocks() -> Drawing:
    """While one block waits for its loads, the other multiplies."""
    unit, extent, offset = 15.5, 50.0, (WAIT + PUT + FMAS) / 2
    lines = ["block 0", "block 1", "the SM's FMA pipes"]
    drawing = Drawing(LEFT + extent * unit + 14, 212, "Two blocks of rung 06 on one SM")
    drawing.text(12, 18, "Two blocks of 06 on one SM: one waits while the other multiplies", 14, "start", bold=True)
    drawing.text(
        12, 42, "Order, not to scale. After its FMAs a block has nothing to do until its next tile has arrived.", 12, "start"
    )
    for i, (text, fill) in enumerate(PHASES.items()):
        drawing.rect(12 + 236 * i, 60, 14, 14, fill, INK)
        drawing.text(34 + 236 * i, 67, text, 12, "start")
    top = 88.0
    busy: list[tuple[float, float, int]] = []
    for block, line in enumerate(lines):
        y = top + block * (LINE + GAP)
        drawing.rect(LEFT, y, extent * unit, LINE, "#f7f7f7", GRID)
        drawing.text(LEFT - 8, y + LINE / 2, line, 12, "end")
        if block == 2:
            break
        for start, end, phase, tile in phases(offset * block, extent):
            fill = list(PHASES.values())[phase]
            drawing.rect(LEFT + start * unit, y, (end - start) * unit, LINE, fill, INK)
            _inside(drawing, start, end, y, unit, (f"waits for tile {tile}", "stores", f"FMAs, tile {tile}")[phase], fill)
            if phase == 2:
                busy.append((start, end, block))
            if phase:
                drawing.line(LEFT + start * unit, y - 2, LEFT + start * unit, y + LINE + 2, INK, 3 if phase == 2 else 1)
            if phase == 2:
                drawing.line(LEFT + end * unit, y - 2, LEFT + end * unit, y + LINE + 2, INK, 3)
    y = top + 2 * (LINE + GAP)
    free = 0.0
    for start, end, block in sorted(busy):
        _idle(drawing, free, start, y, unit)
        drawing.rect(LEFT + start * unit, y, (end - start) * unit, LINE, BLUE, INK)
        _inside(drawing, start, end, y, unit, f"block {block}", BLUE)
        free = end
    _idle(drawing, free, extent, y, unit)
    drawing.line(LEFT, y + LINE + 10, LEFT + extent * unit, y + LINE + 10)
    drawing.text(LEFT + extent * unit, y + LINE + 22, "order of operations →", 12, "end")
    drawing.text(12, y + LINE + 22, "Thick lines: the barriers.", 12, "start")
    return drawing


PHASES = {"loads in flight, the block waits": "#e4e4e4", "stores to shared memory": ORANGE, "FMAs": BLUE}


def phases(offset: float, extent: float) -> Iterator[tuple[float, float, int, int]]:
    """A block's waits, stores and FMAs (0, 1, 2) from `offset` on: start, end, which, k tile."""
    start, tile = offset, 0
    while True:
        for phase, length in enumerate((WAIT, PUT, FMAS)):
            if start >= extent:
                return
            yield start, min(start + length, extent), phase, tile
            start += length
        tile += 1


def _inside(drawing: Drawing, start: float, end: float, y: float, unit: float, text: str, fill: str) -> None:
    if text and (end - start) * unit >= 6.2 * len(text) + 4:
        drawing.text(LEFT + (start + end) / 2 * unit, y + LINE / 2, text, 10, colour="white" if fill in WHITE_INK else INK)


def _idle(drawing: Drawing, start: float, end: float, y: float, unit: float) -> None:
    if end > start:
        _inside(drawing, start, end, y, unit, "idle", "#f7f7f7")


def figures() -> dict[str, Drawing]:
    """These figures by file stem."""
    return {name: timeline(name) for name in PICTURES} | {"06_two_blocks": two_blocks()}
