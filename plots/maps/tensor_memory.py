"""The figures of chapters 47 to 49: tensor memory, the descriptors of tcgen05.mma, what tcgen05.ld loads, 32 rows on their way
to C, and who works when."""

import itertools
from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, Drawing
from plots.maps.index_maps import Maps
from plots.maps.wgmma import places

LIGHT, WAIT = "#f7f7f7", "#e4e4e4"
EIGHT = [BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", RED, "#F0E442", "#999999"]
WHITE_INK = {BLUE, GREEN, RED}
LANES, COLUMNS, QUARTER = 128, 512, 32  # of tensor memory; the lanes that a warp reaches
BM, BN, LOADED = 128, 256, 8  # of 47: rows and columns of D; columns per tcgen05.ld
EXAMPLE = (1, 8)  # a warp, and the first column that it loads


def _tint(colour: str, part: float = 0.3) -> str:
    """A light version."""
    return "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - int(colour[i : i + 2], 16)) * part) for i in (1, 3, 5)))


def _ink(colour: str) -> str:
    return "white" if colour in WHITE_INK else INK


# --- tensor memory
def address(warp: int, column: int) -> int:
    """Of a warp's first lane: the lane in bits 16 to 31, the column in bits 0 to 15."""
    return warp % 4 * QUARTER << 16 | column


def tensor_memory() -> Drawing:
    """Lanes over columns: where D lies, which warp reaches which lanes, and the address of one load."""
    left, top, wide, tall = 150, 84, 1.25, 2.25
    bottom = top + LANES * tall
    drawing = Drawing(left + COLUMNS * wide + 24, bottom + 158, "Tensor memory: 128 lanes of 512 columns")
    drawing.text(12, 18, "The tensor memory of an SM: 128 lanes × 512 columns of 32 bits, 256 KB", 14, "start", bold=True)
    drawing.rect(left, top, COLUMNS * wide, LANES * tall, "white", INK)
    for quarter in range(LANES // QUARTER):
        y = top + quarter * QUARTER * tall
        drawing.rect(left, y, BN * wide, QUARTER * tall, _tint(BLUE, 0.2 if quarter % 2 else 0.32), INK)
        drawing.rect(left + BN * wide, y, (COLUMNS - BN) * wide, QUARTER * tall, LIGHT if quarter % 2 else "white", GRID)
        first = quarter * QUARTER
        drawing.text(left - 10, y + QUARTER * tall / 2 - 9, f"lanes {first} to {first + QUARTER - 1}", 11, "end")
        drawing.text(left - 10, y + QUARTER * tall / 2 + 9, f"warp {quarter} of four", 11, "end")
        drawing.text(left + BN * wide / 2 + 30, y + QUARTER * tall / 2, f"D: rows {first} to {first + QUARTER - 1}", 12)
    drawing.text(left + (COLUMNS + BN) / 2 * wide, top + QUARTER / 2 * tall, "not allocated in 47", 12)
    for column in (0, BN - 1, COLUMNS - 1):
        drawing.text(left + column * wide, top - 12, f"column {column}", 11, "end" if column else "start")
    warp, column = EXAMPLE
    y = top + warp * QUARTER * tall
    drawing.rect(left + column * wide, y, LOADED * wide, QUARTER * tall, ORANGE, INK)

    bit, at, line = 18, bottom + 62, 28
    drawing.text(12, bottom + 26, "Orange: one tcgen05.ld of warp 1, its 32 lanes and 8 columns. Its address:", 12, "start")
    start = 40
    for first, name, value, colour in ((16, "lane", warp * QUARTER, ORANGE), (0, "column", column, BLUE)):
        x = start + (31 - first - 15) * bit
        drawing.rect(x, at, 16 * bit, line, _tint(colour), INK)
        drawing.text(x + 8 * bit, at + line / 2, f"{name}: {value}", 12)
        drawing.text(x + bit / 2, at - 10, str(first + 15), 10)
        drawing.text(x + 15.5 * bit, at - 10, str(first), 10)
    drawing.text(start, at + line + 20, f"= {address(warp, column):#010x}", 12, "start", bold=True)
    drawing.text(start + 130, at + line + 20, "(here D begins at column 0; the kernel adds what tcgen05.alloc gave)", 11, "start")
    return drawing


# --- the descriptors
class Field(NamedTuple):
    """A field of a descriptor: its bits, and what 47 writes there."""

    first: int
    last: int
    name: str
    value: int
    meaning: str
    colour: str = LIGHT


TILE = BM * 128  # the address of B's tile in stage 0, where shared memory begins at 0
SHARED = [
    Field(0, 13, "start address", TILE >> 4, "bits 4 to 17 of the address, here of B's tile in stage 0: 16384 / 16", BLUE),
    Field(16, 29, "leading offset", 1, "not used where the layout is K-major and swizzled"),
    Field(32, 45, "stride offset", 1024 // 16, "bytes from 8 rows to the next 8, / 16: 1024 / 16", ORANGE),
    Field(46, 48, "constant", 1, "always 1; the descriptor of wgmma has 0 here", RED),
    Field(49, 51, "base offset", 0, "0: the swizzle's pattern begins at a multiple of 1024 bytes"),
    Field(52, 52, "leading mode", 0, "0: the leading offset is an offset, not an address"),
    Field(53, 60, "constant", 0, "always 0"),
    Field(61, 63, "swizzle", 2, "0: none, 2: 128 bytes, 4: 64 bytes, 6: 32 bytes, 1: 128 bytes by atoms of 32", GREEN),
]
INSTRUCTION = [
    Field(0, 3, "sparse, saturate", 0, "0: A is dense; nothing saturates (integers)"),
    Field(4, 5, "D", 1, "type of D. 0: FP16, 1: FP32", BLUE),
    Field(7, 9, "A", 1, "type of A. 0: FP16, 1: BF16 (kind::f16), 2: TF32 (kind::tf32)", ORANGE),
    Field(10, 12, "B", 1, "type of B, likewise", GREEN),
    Field(13, 14, "negate", 0, "A, B: multiply by −A or −B"),
    Field(15, 16, "major", 0, "A, B: 0: K-major, 1: M- or N-major"),
    Field(17, 22, "N / 8", BN // 8, "columns of D: 256", PURPLE),
    Field(24, 28, "M / 16", BM // 16, "rows of D: 128", RED),
    Field(30, 31, "shift", 0, "of tcgen05.mma.ws alone"),
]


def value(fields: list[Field]) -> int:
    """The whole descriptor."""
    return sum(field.value << field.first for field in fields)


def descriptors() -> Drawing:
    """Both: rows of 32 bits, each with a table of its fields below."""
    bit, left, tall, line = 26, 20, 32, 24
    height = 70 + 2 * 78 + (len(SHARED) + 1) * line + 84 + 62 + (len(INSTRUCTION) + 1) * line + 24
    drawing = Drawing(left + 32 * bit + 20, height, "The two descriptors of tcgen05.mma, bit by bit")
    top = 18.0
    for fields, bits, heading in (
        (SHARED, 64, "A shared memory descriptor: where a tile of A or B lies"),
        (INSTRUCTION, 32, "The instruction descriptor: what is multiplied"),
    ):
        drawing.text(12, top, heading, 14, "start", bold=True)
        drawing.text(drawing.width - 12, top, f"= {value(fields):#0{bits // 4 + 2}x}", 13, "end", bold=True)
        first_row = top + 36
        table = _bits(drawing, fields, bits, left, first_row, bit, tall)
        for x, head in ((12, "bits"), (82, "field"), (214, "in 47"), (272, "meaning")):
            drawing.text(x, table, head, 11, "start", bold=True)
        for i, field in enumerate(fields):
            y = table + (i + 1) * line
            drawing.rect(8, y - line / 2, drawing.width - 16, line, LIGHT if i % 2 else "white", GRID)
            span = f"{field.first} to {field.last}" if field.first != field.last else str(field.first)
            for x, text, bold in (
                (12, span, False),
                (82, field.name, True),
                (214, str(field.value), False),
                (272, field.meaning, False),
            ):
                drawing.text(x, y, text, 11, "start", bold=bold)
        top = table + (len(fields) + 1) * line + 26
    return drawing


def _bits(drawing: Drawing, fields: list[Field], bits: int, left: float, top: float, bit: float, tall: float) -> float:
    """Rows of 32 bits, the highest first; where the table may begin. A field that crosses two rows is drawn in both."""
    row_of = {number: (bits - 1 - number) // 32 for number in range(bits)}
    step = tall + 44

    def place(number: int) -> tuple[float, float]:
        return left + (31 - number % 32) * bit, top + row_of[number] * step

    for number in range(bits):
        drawing.rect(*place(number), bit, tall, "white", GRID)
    for field in fields:
        x, y = place(field.last)
        width = (field.last - field.first + 1) * bit
        drawing.rect(x, y, width, tall, field.colour, INK)
        drawing.text(x + width / 2, y + tall / 2, str(field.value), 12, colour=_ink(field.colour))
        if width > 6.4 * len(field.name) + 6:
            drawing.text(x + width / 2, y + tall + 11, field.name, 10)
        drawing.text(x + bit / 2, y - 9, str(field.last), 9)
        if field.first != field.last:
            drawing.text(x + width - bit / 2, y - 9, str(field.first), 9)
    return top + bits / 32 * step + 4


# --- what tcgen05.ld gives to which lane
def loaded_32x32b(thread: int, register: int) -> tuple[int, int]:
    """Lane and column of tensor memory."""
    return thread, register


def loaded_16x256b(thread: int, register: int) -> tuple[int, int]:
    """Lane and column of tensor memory: the places of an accumulator of mma.sync and wgmma."""
    return thread // 4 + register // 2 % 2 * 8, register // 4 * 8 + thread % 4 * 2 + register % 2


REGISTERS = 4  # of both pictures
PICKED = 6  # the thread that is drawn in full colour


def loads() -> Drawing:
    """Two shapes of tcgen05.ld, four registers each: in a cell the thread, its colour the register."""
    side, line, top = 30, 17, 112
    lefts = (100, 100 + 4 * side + 170)
    drawing = Drawing(lefts[1] + 8 * side + 40, top + 32 * line + 84, "What two shapes of tcgen05.ld give to which thread")
    drawing.text(12, 18, "Two tcgen05.ld of four registers: in a cell the thread that gets it", 14, "start", bold=True)
    shapes = ((".32x32b.x4", loaded_32x32b, 32, 4), (".16x256b.x1", loaded_16x256b, 16, 8))
    for left, (name, place, lanes, columns) in zip(lefts, shapes, strict=True):
        drawing.text(left, 52, name, 13, "start", bold=True)
        drawing.text(left, 72, f"{lanes} lanes, {columns} columns", 12, "start")
        for column in range(columns):
            drawing.text(left + (column + 0.5) * side, top - 9, str(column), 10)
        for lane in range(lanes):
            drawing.text(left - 8, top + (lane + 0.5) * line, f"lane {lane}", 10, "end")
        for thread in range(32):
            for register in range(REGISTERS):
                lane, column = place(thread, register)
                picked = thread == PICKED
                colour = EIGHT[register] if picked else _tint(EIGHT[register])
                x, y = left + column * side, top + lane * line
                drawing.rect(x, y, side, line, colour, INK)
                drawing.text(x + side / 2, y + line / 2, str(thread), 10, bold=picked, colour=_ink(colour))
    y = top + 32 * line + 24
    for i in range(REGISTERS):
        drawing.rect(100 + 110 * i, y - 7, 26, 14, _tint(EIGHT[i]), INK)
        drawing.text(100 + 110 * i + 34, y, f"register {i}", 11, "start")
    drawing.rect(100, y + 19, 26, 14, BLUE, INK)
    drawing.text(134, y + 26, f"full colour: what thread {PICKED} gets", 11, "start")
    right, y = lefts[1] - 60, top + 18 * line + 6
    said = {
        0: "32x32b: a thread gets a row,",
        1: "4 neighbours in C.",
        3: "16x256b: a thread gets pairs of",
        4: "two rows, as from mma.sync.",
    }
    for i, text in said.items():
        drawing.text(right, y + i * 18, text, 11, "start")
    return drawing


# --- 32 rows on their way to C
def transposition(maps: Maps) -> Drawing:
    """A lane's row in its registers; where the chunks lie in a buffer; where they would lie without a swizzle."""
    swizzled = places(maps)
    side, line, top, gap = 30, 26, 108, 90
    lefts = [70 + i * (8 * side + gap) for i in range(3)]
    drawing = Drawing(
        lefts[2] + 8 * side + 24, top + 8 * line + 132, "Eight of 32 rows: registers, buffer, and a buffer without swizzle"
    )
    drawing.text(
        12, 18, "Eight of a warp's 32 rows, 128 bytes each: in a cell the number of a chunk of 16 bytes", 14, "start", bold=True
    )
    heads = (
        ("in registers", "lane r has row r"),
        ("in the buffer", "chunk c in place c XOR r % 8"),
        ("without a swizzle", "chunk c in place c"),
    )
    for number, (left, (head, below)) in enumerate(zip(lefts, heads, strict=True)):
        drawing.text(left, 50, head, 13, "start", bold=True)
        drawing.text(left, 70, below, 11, "start")
        for place in range(8):
            drawing.text(left + (place + 0.5) * side, top - 10, str(place * 4) if number == 0 else str(place * 16), 9)
        for row in range(8):
            drawing.text(left - 8, top + (row + 0.5) * line, f"{'lane' if number == 0 else 'row'} {row}", 10, "end")
            for place in range(8):
                chunk = swizzled[row, place] if number == 1 else place
                colour = ORANGE if chunk == STORED else LIGHT
                drawing.rect(left + place * side, top + row * line, side, line, colour, INK)
                drawing.text(left + (place + 0.5) * side, top + (row + 0.5) * line, str(chunk), 11, bold=chunk == STORED)
    y = top + 8 * line + 22
    counts = [len({place for (_, place), chunk in swizzled.items() if chunk == STORED}), 1]
    said = (
        ("above: register, two BF16 each", "orange: what one store stores"),
        ("above: byte of the row", f"8 lanes, {counts[0]} places: {8 // counts[0]} wavefront"),
        ("above: byte of the row", f"8 lanes, {counts[1]} place: {8 // counts[1]} wavefronts"),
    )
    for left, lines in zip(lefts, said, strict=True):
        for i, text in enumerate(lines):
            drawing.text(left, y + i * 18, text, 11, "start")
    drawing.text(
        70,
        y + 56,
        "A warp stores one chunk of each of its 32 rows with one instruction, in eight instructions all of them.",
        12,
        "start",
    )
    drawing.text(
        70, y + 76, "TMA then reads whole rows: it undoes the swizzle, and writes 128 bytes of each row of C.", 12, "start"
    )
    return drawing


STORED = 2  # the chunk whose store is shown


# --- who works when
class Bar(NamedTuple):
    """What a line of a schedule does, and to which k tile; a wait has none, the epilogue that of its tile of C."""

    line: str
    start: float
    end: float
    text: str
    k_tile: int = -1


STAGES, K_TILES, TILES_OF_C = 4, 5, 2  # stages as in the kernels; k tiles of a tile of C, and how many of these
ISSUE, SIGNAL, LATENCY, MULTIPLY, EPILOGUE, READ = 0.9, 0.7, 7.0, 4.0, 10.0, 7.0  # lengths of no meaning
LANE, PRODUCER, MULTIPLIER, TENSOR, STORES = "one lane of warp 0", "producer", "multiplier", "tensor cores", "epilogue"


def one_lane() -> list[Bar]:
    """47 and 48: one lane multiplies a k tile, waits for it, copies into its stage; then all store."""
    bars: list[Bar] = []
    now, landed = 0.0, []

    def copy(k_tile: int) -> None:
        nonlocal now
        bars.append(Bar(LANE, now, now + ISSUE, "", k_tile))
        now += ISSUE
        landed.append(now + LATENCY)
        bars.append(Bar(f"stage {k_tile % STAGES}", now, now + LATENCY, f"copy {k_tile}", k_tile))

    def wait(until: float, text: str) -> None:
        nonlocal now
        if until > now:
            bars.append(Bar(LANE, now, until, text))
            now = until

    total = K_TILES * TILES_OF_C
    for k_tile in range(STAGES):
        copy(k_tile)
    for k_tile in range(total):
        wait(landed[k_tile] + SIGNAL, "waits")
        bars.append(Bar(LANE, now, now + ISSUE, "", k_tile))
        now += ISSUE
        bars.append(Bar(TENSOR, now, now + MULTIPLY, f"k tile {k_tile}", k_tile))
        bars.append(Bar(f"stage {k_tile % STAGES}", landed[k_tile], now + MULTIPLY, "", k_tile))
        wait(now + MULTIPLY + SIGNAL, "waits")
        if k_tile + STAGES < total:
            copy(k_tile + STAGES)
        if (k_tile + 1) % K_TILES == 0:
            bars.append(Bar(LANE, now, now + EPILOGUE, "stores C", k_tile))
            bars.append(Bar(STORES, now, now + EPILOGUE, f"tile {k_tile // K_TILES} of C", k_tile))
            now += EPILOGUE
    return bars


def roles() -> list[Bar]:
    """49: a producer, a multiplier that waits for k tiles and for empty sums alone, an epilogue."""
    bars: list[Bar] = []
    total = K_TILES * TILES_OF_C
    producer = multiplier = tensor = stored = 0.0
    landed: list[float] = []
    done: list[float] = []
    read = 0.0  # when the sums of the tile before have been read

    def copies(until_k_tile: int) -> None:
        nonlocal producer
        while len(landed) < min(until_k_tile, total):
            k_tile = len(landed)
            if k_tile >= STAGES:
                if len(done) <= k_tile - STAGES:
                    return
                free = done[k_tile - STAGES] + SIGNAL
                if free > producer:
                    bars.append(Bar(PRODUCER, producer, free, "waits"))
                    producer = free
            bars.append(Bar(PRODUCER, producer, producer + ISSUE, "", k_tile))
            producer += ISSUE
            landed.append(producer + LATENCY)
            bars.append(Bar(f"stage {k_tile % STAGES}", producer, landed[-1], f"copy {k_tile}", k_tile))

    for k_tile in range(total):
        copies(k_tile + STAGES)
        ready = landed[k_tile] + SIGNAL
        if k_tile % K_TILES == 0 and k_tile:
            ready = max(ready, read + SIGNAL)
        if ready > multiplier:
            bars.append(Bar(MULTIPLIER, multiplier, ready, "waits"))
            multiplier = ready
        bars.append(Bar(MULTIPLIER, multiplier, multiplier + ISSUE, "", k_tile))
        multiplier += ISSUE
        start = max(multiplier, tensor)
        tensor = start + MULTIPLY
        bars.append(Bar(TENSOR, start, tensor, f"k tile {k_tile}", k_tile))
        bars.append(Bar(f"stage {k_tile % STAGES}", landed[k_tile], tensor, "", k_tile))
        done.append(tensor)
        if (k_tile + 1) % K_TILES == 0:
            begin = tensor + SIGNAL
            bars.append(Bar(STORES, stored, begin, "waits"))
            stored = begin + EPILOGUE
            bars.append(Bar(STORES, begin, stored, f"tile {k_tile // K_TILES} of C", k_tile))
            read = begin + READ
    return bars


def gaps(bars: list[Bar]) -> list[float]:
    """How long the tensor cores rest before each k tile but the first."""
    busy = sorted((bar.start, bar.end) for bar in bars if bar.line == TENSOR)
    return [start - end for (_, end), (start, _) in itertools.pairwise(busy)]


def _draw(drawing: Drawing, bars: list[Bar], lines: list[str], top: float, extent: float, unit: float) -> float:
    left, tall, between = 150, 22, 4
    ys = {line: top + i * (tall + between) for i, line in enumerate(lines)}
    for line, y in ys.items():
        drawing.rect(left, y, extent * unit, tall, LIGHT, GRID)
        drawing.text(left - 8, y + tall / 2, line, 12, "end")
    for bar in bars:
        end = min(bar.end, extent)
        if end <= bar.start or bar.line not in ys:
            continue
        copied = bar.text.startswith("copy")
        colour = WAIT if bar.k_tile < 0 else "white" if copied else EIGHT[bar.k_tile % 4]
        if (bar.line == STORES and bar.k_tile >= 0) or bar.text == "stores C":
            colour = "#999999"
        width = (end - bar.start) * unit
        drawing.rect(left + bar.start * unit, ys[bar.line], width, tall, colour, INK)
        if bar.text and width > 7 * len(bar.text) + 6:
            drawing.text(left + (bar.start + end) / 2 * unit, ys[bar.line] + tall / 2, bar.text, 11, colour=_ink(colour))
    return top + len(lines) * (tall + between)


STAGE_LINES = [f"stage {stage}" for stage in range(STAGES)]


def _key(drawing: Drawing, y: float) -> None:
    for x, fill, text in (
        (12, WAIT, "waits"),
        (92, "white", "copy under way"),
        (232, BLUE, "issues, is full, or multiplies (colour: k tile)"),
    ):
        drawing.rect(x, y - 7, 14, 14, fill, INK)
        drawing.text(x + 22, y, text, 12, "start")
    drawing.rect(560, y - 7, 14, 14, "#999999", INK)
    drawing.text(582, y, "epilogue", 12, "start")


def timeline_47() -> Drawing:
    """47's main loop, and the beginning of its epilogue."""
    extent, unit = 54.0, 14.0
    drawing = Drawing(150 + extent * unit + 14, 92 + 6 * 26 + 30, "47: one lane, four stages and the tensor cores over time")
    drawing.text(12, 18, "Rung 47: between two k tiles the tensor cores wait for one lane", 14, "start", bold=True)
    drawing.text(12, 40, "Order, not to scale: a schedule drawn by rule. A tile of C has five k tiles here.", 12, "start")
    _key(drawing, 64)
    bottom = _draw(drawing, one_lane(), [LANE, *STAGE_LINES, TENSOR], 86, extent, unit)
    drawing.text(150 + extent * unit, bottom + 14, "time →", 12, "end")
    return drawing


def timeline_49() -> Drawing:
    """The tensor cores of 48, and all lines of 49, over the end of a tile of C."""
    extent, unit = 74.0, 11.0
    drawing = Drawing(150 + extent * unit + 14, 86 + 10 * 26 + 76, "48 and 49 over time: the gap after each k tile is gone")
    drawing.text(12, 18, "Rungs 48 and 49: two tiles of C with five k tiles each", 14, "start", bold=True)
    drawing.text(12, 40, "Order, not to scale: a schedule drawn by rule, with the same lengths for both.", 12, "start")
    _key(drawing, 64)
    drawing.text(12, 92, "48", 13, "start", bold=True)
    y = _draw(drawing, one_lane(), [TENSOR, STORES], 104, extent, unit)
    drawing.text(12, y + 14, "49", 13, "start", bold=True)
    bottom = _draw(drawing, roles(), [PRODUCER, *STAGE_LINES, MULTIPLIER, TENSOR, STORES], y + 26, extent, unit)
    drawing.text(150 + extent * unit, bottom + 12, "time →", 12, "end")
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {
        "47_tensor_memory": tensor_memory(),
        "47_descriptors": descriptors(),
        "47_timeline": timeline_47(),
        "48_loads": loads(),
        "48_transposition": transposition(maps),
        "49_timeline": timeline_49(),
    }
