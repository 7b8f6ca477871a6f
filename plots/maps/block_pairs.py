"""The figures of chapters 50 to 54: what a pair of blocks holds and who arrives where, two accumulators over time, tiles by list
and by request, scales on their way to tensor memory, and E2M1."""

import math
from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, Drawing

LIGHT, WAIT, GREY = "#f7f7f7", "#e4e4e4", "#999999"
OF_BLOCK = (BLUE, ORANGE)
PALE = ("#cfe3f1", "#f9e3b8")
SCHEDULED = "Order, not to scale: a schedule drawn by rule, not measured."


def _ink(colour: str) -> str:
    return "white" if colour in (BLUE, GREEN, RED) else INK


# --- 50: a pair of blocks
BM, BN, BK_BYTES, PAIR = 128, 256, 128, 2  # of 50


def kilobytes() -> tuple[int, int]:
    """What a block copies per k tile: of A, and of B."""
    return BM * BK_BYTES // 1024, BN // PAIR * BK_BYTES // 1024


def pair() -> Drawing:
    """A, B and D of a pair's tile; the colour is the block that holds the part."""
    side, deep, left, top = 1.2, 96, 168, 168
    drawing = Drawing(880, top + 2 * BM * side + 40, "Who holds which part of A, B and D in a pair of blocks")
    drawing.text(12, 18, "Rung 50: one k tile of a pair of blocks", 14, "start", bold=True)
    for rank in range(PAIR):
        drawing.rect(12 + 200 * rank, 36, 14, 14, OF_BLOCK[rank], INK)
        drawing.text(34 + 200 * rank, 43, f"in the SM of block {rank}", 12, "start")
    of_a, of_b = kilobytes()
    wide, tall = BN * side, BM * side
    for rank in range(PAIR):
        x, y, fill = left + rank * wide / PAIR, top - deep - 12, OF_BLOCK[rank]
        drawing.rect(x, y, wide / PAIR, deep, fill, INK)
        first = rank * BN // PAIR
        for line, text in enumerate(("B, columns", f"{first} to {first + BN // PAIR - 1}", f"{of_b} KB")):
            drawing.text(x + wide / 4, y + 26 + 20 * line, text, 12, colour=_ink(fill))
        y = top + rank * tall
        drawing.rect(left - deep - 12, y, deep, tall, fill, INK)
        for line, text in enumerate(("A, rows", f"{rank * BM} to {rank * BM + BM - 1}", f"{of_a} KB")):
            drawing.text(left - deep / 2 - 12, y + tall / 2 - 20 + 20 * line, text, 12, colour=_ink(fill))
        drawing.rect(left, y, wide, tall, fill, INK)
        drawing.text(left + wide / 2, y + tall / 2 - 18, f"D, rows {rank * BM} to {rank * BM + BM - 1}", 13, colour=_ink(fill))
        drawing.text(left + wide / 2, y + tall / 2 + 4, f"128 lanes × {BN} columns of tensor memory", 12, colour=_ink(fill))
        drawing.text(left + wide / 2, y + tall / 2 + 26, "needs both halves of B", 12, colour=_ink(fill))
    x = left + wide + 32
    said = (
        ("A and B: shared memory. D: tensor memory.", True),
        ("", False),
        ("Each block copies per k tile", True),
        (f"{of_a} KB of A: its own 128 rows", False),
        (f"{of_b} KB of B: half of the columns", False),
        (f"= {of_a + of_b} KB. A block of 49 copies {of_a + 2 * of_b} KB.", False),
        ("", False),
        ("One tcgen05.mma of the pair", True),
        (f"multiplies {PAIR * BM} × 16 of A by 16 × {BN} of B.", False),
        ("One thread of block 0 issues it.", False),
        ("Both SMs multiply, and each uses both halves of B.", False),
    )
    for line, (text, bold) in enumerate(said):
        if text:
            drawing.text(x, top - 90 + 24 * line, text, 12, "start", bold=bold)
    return drawing


class Arrival(NamedTuple):
    """An arrival or the end of a wait: from a role to an mbarrier, or the other way round; names with the block's number."""

    start: str
    end: str
    count: str  # per phase, at the mbarrier


ARRIVALS = [
    Arrival("producer 0", "full 0", "1, expects 64 KB; 32 KB land"),
    Arrival("producer 1", "full 0", "32 KB land"),
    Arrival("multiplier 0", "empty 0", "1 commit"),
    Arrival("multiplier 0", "empty 1", "1 commit"),
    Arrival("multiplier 0", "acc_full 0", "1 commit"),
    Arrival("multiplier 0", "acc_full 1", "1 commit"),
    Arrival("epilogue 0", "acc_empty 0", "4 warps"),
    Arrival("epilogue 1", "acc_empty 0", "4 warps"),
]
WAITS = [
    ("full 0", "multiplier 0"),
    ("empty 0", "producer 0"),
    ("empty 1", "producer 1"),
    ("acc_full 0", "epilogue 0"),
    ("acc_full 1", "epilogue 1"),
    ("acc_empty 0", "multiplier 0"),
]


def _arrow(drawing: Drawing, start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
    (x1, y1), (x2, y2) = start, end
    drawing.line(x1, y1, x2, y2, colour, width)
    angle = math.atan2(y2 - y1, x2 - x1)
    for turn in (2.7, -2.7):
        drawing.line(
            x2, y2, round(x2 + 10 * math.cos(angle + turn), 1), round(y2 + 10 * math.sin(angle + turn), 1), colour, width
        )


def mbarriers() -> Drawing:
    """Who arrives at which mbarrier, and who waits for it."""
    drawing = Drawing(880, 430, "Which mbarrier counts what in which block of a pair")
    drawing.text(
        12, 18, "Rung 50: who arrives at which mbarrier (solid), and who waits for it (thin, grey)", 14, "start", bold=True
    )
    wide, tall = 132, 40
    rows = {"producer": 66, "full": 140, "empty": 140, "multiplier": 214, "acc_full": 288, "acc_empty": 288, "epilogue": 362}
    ins = {"producer": 90, "full": 0, "empty": 180, "multiplier": 90, "acc_full": 180, "acc_empty": 0, "epilogue": 90}
    lefts = (70, 540)
    used = {name for arrival in ARRIVALS for name in arrival[:2]}

    def place(name: str) -> tuple[float, float]:
        kind, _, rank = name.rpartition(" ")
        return lefts[int(rank)] + ins[kind], rows[kind]

    def edge(name: str, other: str) -> tuple[float, float]:
        """Where a line to another box leaves this one."""
        (x, y), (to_x, to_y) = place(name), place(other)
        middle = x + wide / 2
        if abs(to_x - x) > 300 and to_y != y:
            return (x + wide if to_x > x else x), y + tall / 2
        return middle + max(-40.0, min(40.0, (to_x - x) / 2)), (y + tall if to_y > y else y)

    for start, end in WAITS:
        _arrow(drawing, edge(start, end), edge(end, start), GREY, 1)
    for arrival in ARRIVALS:
        crosses = arrival.start[-1] != arrival.end[-1]
        _arrow(drawing, edge(arrival.start, arrival.end), edge(arrival.end, arrival.start), PURPLE if crosses else INK, 2)
    for rank in range(PAIR):
        drawing.text(lefts[rank] + 156, 48, f"block {rank}", 13, bold=True)
        for kind in rows:
            x, y = place(f"{kind} {rank}")
            role = kind in ("producer", "multiplier", "epilogue")
            idle = (f"{kind} {rank}") not in used
            drawing.rect(x, y, wide, tall, WAIT if idle else OF_BLOCK[rank] if role else PALE[rank], GRID if idle else INK)
            colour = GREY if idle else _ink(OF_BLOCK[rank]) if role else INK
            drawing.text(x + wide / 2, y + tall / 2 - 8, kind, 12, bold=not idle, colour=colour)
            counts = {"full": "1 arrival, 64 KB", "empty": "1 arrival", "acc_full": "1 arrival", "acc_empty": "8 arrivals"}
            below = (
                "not used"
                if idle
                else counts.get(kind, {"producer": "warp 0", "multiplier": "warp 1", "epilogue": "warps 2 to 5"}.get(kind, ""))
            )
            drawing.text(x + wide / 2, y + tall / 2 + 10, below, 10, colour=colour)
    drawing.line(12, 418, 40, 418, PURPLE, 2)
    drawing.text(48, 418, "to an mbarrier of the other block", 11, "start")
    return drawing


# --- 51: two accumulators
class Bar(NamedTuple):
    """What a line of a schedule does, for which tile of C; a wait has none."""

    line: str
    start: float
    end: float
    tile: int = -1


TILES, MULTIPLY, EPILOGUE, LAST_PART = 4, 9.0, 6.0, 1.5  # lengths of no meaning; the sums are read before the last part is stored
TENSOR, STORES = "tensor cores", "epilogue"


def accumulators(count: int) -> list[Bar]:
    """50 with one, 51 with two: the multiplier waits for an accumulator to be read, the epilogue for it to be full."""
    bars: list[Bar] = []
    multiplied = stored = 0.0
    read: list[float] = []
    for tile in range(TILES):
        start = max(multiplied, read[tile - count] if tile >= count else 0.0)
        multiplied = start + MULTIPLY
        begin = max(stored, multiplied)
        stored = begin + EPILOGUE
        read.append(stored - LAST_PART)
        bars.append(Bar(TENSOR, start, multiplied, tile))
        bars.append(Bar(STORES, begin, stored, tile))
        bars.append(Bar(f"accumulator {tile % count}", start, read[tile], tile))
    return bars


def two_accumulators() -> Drawing:
    """50 above 51."""
    left, unit, tall, gap = 132, 11.5, 24, 5
    panels = ((1, "50: one accumulator"), (2, "51: two accumulators"))
    extent = max(bar.end for count, _ in panels for bar in accumulators(count))
    lines = {count: [TENSOR, *(f"accumulator {i}" for i in range(count)), STORES] for count, _ in panels}
    height = 52 + sum(34 + len(names) * (tall + gap) for names in lines.values()) + 30
    drawing = Drawing(left + extent * unit + 14, height, "Tensor cores, accumulators and epilogue of 50 and 51 over time")
    drawing.text(12, 18, f"Four tiles of C in a pair of blocks. {SCHEDULED}", 12, "start")
    fills = (BLUE, ORANGE, GREEN, PURPLE)
    y = 40.0
    for count, title in panels:
        drawing.text(12, y + 10, title, 13, "start", bold=True)
        y += 28
        places = {line: y + i * (tall + gap) for i, line in enumerate(lines[count])}
        for line, at in places.items():
            drawing.rect(left, at, extent * unit, tall, LIGHT, GRID)
            drawing.text(left - 8, at + tall / 2, line, 12, "end")
        for bar in accumulators(count):
            fill = fills[bar.tile]
            drawing.rect(left + bar.start * unit, places[bar.line], (bar.end - bar.start) * unit, tall, fill, INK)
            drawing.text(
                left + (bar.start + bar.end) / 2 * unit, places[bar.line] + tall / 2, f"tile {bar.tile}", 11, colour=_ink(fill)
            )
        y += len(lines[count]) * (tall + gap) + 6
    drawing.text(left + extent * unit, y + 10, "time →", 12, "end")
    return drawing


# --- 52: tiles by list, and by request
PAIRS, OF_C, LATE = 4, 20, 3  # pairs of blocks; tiles of C; tiles' time by which the last pair begins later


def by_list() -> list[tuple[int, int, int]]:
    """51: pair, beginning and tile; pair p computes tiles p, p + PAIRS, …"""
    return [(tile % PAIRS, tile // PAIRS + LATE * (tile % PAIRS == PAIRS - 1), tile) for tile in range(OF_C)]


def by_request() -> list[tuple[int, int, int]]:
    """52: whoever is free takes the next tile; where several are, the one with the lowest number first."""
    free = [0] * (PAIRS - 1) + [LATE]
    taken = []
    for tile in range(OF_C):
        pair_number = min(range(PAIRS), key=lambda number: (free[number], number))
        taken.append((pair_number, free[pair_number], tile))
        free[pair_number] += 1
    return taken


def lists() -> Drawing:
    """Both over time, with a pair that starts late."""
    left, unit, tall, gap = 92, 78.0, 26, 5
    panels = (("51: each pair has its list", by_list()), ("52: each pair asks for its next tile", by_request()))
    extent = max(start + 1 for _, found in panels for _, start, _ in found)
    drawing = Drawing(left + extent * unit + 14, 52 + 2 * (34 + PAIRS * (tall + gap)) + 30, "Tiles by list and by request")
    drawing.text(
        12, 18, f"{OF_C} tiles of C, {PAIRS} pairs of blocks; pair {PAIRS - 1} begins {LATE} tiles late. {SCHEDULED}", 12, "start"
    )
    y = 40.0
    for title, found in panels:
        end = max(start + 1 for _, start, _ in found)
        drawing.text(12, y + 10, f"{title}: {end} tiles' time", 13, "start", bold=True)
        y += 28
        for number in range(PAIRS):
            at = y + number * (tall + gap)
            drawing.rect(left, at, extent * unit, tall, LIGHT, GRID)
            drawing.text(left - 8, at + tall / 2, f"pair {number}", 12, "end")
        at = y + (PAIRS - 1) * (tall + gap)
        drawing.rect(left, at, LATE * unit, tall, WAIT, INK)
        drawing.text(left + LATE * unit / 2, at + tall / 2, "another kernel", 11)
        for number, start, tile in found:
            fill = PALE[1] if number == PAIRS - 1 else PALE[0]
            drawing.rect(left + start * unit, y + number * (tall + gap), unit, tall, fill, INK)
            drawing.text(left + (start + 0.5) * unit, y + number * (tall + gap) + tall / 2, str(tile), 12)
        y += PAIRS * (tall + gap) + 6
    drawing.text(left + extent * unit, y + 10, "time →", 12, "end")
    return drawing


# --- 53: scales
MX, NV = 32, 16  # elements along k that share a scale
PICKED = (70, 1)  # a row, and a k step


def scale_index(vector: int, depth: int, row: int, k: int) -> int:
    """scale_index_vector() of common/scales.h."""
    along_k = (depth - 1) // (4 * vector) + 1
    tile = row // 128 * along_k + k // (4 * vector)
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + k // vector % 4


QUARTERS = (BLUE, ORANGE, GREEN, PURPLE)
TINTS = ("#cfe3f1", "#f9e3b8", "#cdeae1", "#f1dfe9")


def scales() -> Drawing:
    """Rows and k steps of a k tile; the 512 bytes in memory, which are lanes and columns of tensor memory."""
    line, top, left, byte = 13, 130, 306, 27
    drawing = Drawing(
        left + 16 * byte + 24, top + 32 * line + 150, "128 rows of scales, from rows of A to lanes of tensor memory"
    )
    drawing.text(
        12, 18, "Rung 53: the scales of 128 rows for a k tile, 512 bytes. In a cell the row of A", 14, "start", bold=True
    )
    drawing.text(12, 42, "Colour: a quarter of the rows. Full colour: the scales of k step 1.", 12, "start")
    row, step = PICKED
    # by row and k: a quarter of the rows is a band
    band, cell, beside = 8 * line, 30, 96
    drawing.text(beside, 74, "rows of A, k steps", 13, "start", bold=True)
    for number in range(4):
        drawing.text(beside + (number + 0.5) * cell, top - 12, str(number), 11)
        for quarter in range(4):
            colour = (QUARTERS if number == step else TINTS)[quarter]
            drawing.rect(beside + number * cell, top + quarter * band, cell, band, colour, INK)
    for quarter in range(4):
        drawing.text(beside - 8, top + (quarter + 0.5) * band - 8, f"rows {32 * quarter}", 11, "end")
        drawing.text(beside - 8, top + (quarter + 0.5) * band + 8, f"to {32 * quarter + 31}", 11, "end")
    y = top + row // 32 * band + (row % 32 + 0.5) / 32 * band
    drawing.line(beside, y, beside + 4 * cell, y, INK, 2)
    # in memory
    drawing.text(left, 74, "512 bytes; in tensor memory 32 lanes of 4 columns", 13, "start", bold=True)
    for column in range(4):
        drawing.text(left + (column * 4 + 2) * byte, top - 30, f"column {column}", 11)
    for place in range(16):
        drawing.text(left + (place + 0.5) * byte, top - 12, str(place), 10)
    for each in range(128):
        for number in range(4):
            lane, place = divmod(scale_index(MX, 4 * MX, each, number * MX), 16)
            colour = (QUARTERS if number == step else TINTS)[each // 32]
            drawing.rect(left + place * byte, top + lane * line, byte, line, colour, GRID)
            drawing.text(left + (place + 0.5) * byte, top + (lane + 0.5) * line, str(each), 9, colour=_ink(colour))
    for lane in range(0, 32, 4):
        drawing.text(left - 8, top + (lane + 0.5) * line, f"lane {lane}", 10, "end")
    lane, place = divmod(scale_index(MX, 4 * MX, row, 0), 16)
    drawing.rect(left + place * byte, top + lane * line, 4 * byte, line, "none", INK)
    drawing.text(beside + 4 * cell + 6, y, f"row {row}", 11, "start")
    y = top + 32 * line + 26
    said = (
        f"Row {row} (framed): lane {lane}, column {place // 4}. Its four bytes are the scales of k steps 0 to 3.",
        "tcgen05.cp copies the 512 bytes to lanes 0 to 31, and the same to lanes 32 to 63, 64 to 95 and 96 to 127.",
        "The instruction descriptor of tcgen05.mma says which byte of a column is taken: here 1, the full colours.",
        "In 54 all four bytes belong to one k step: it has four scales per row, for 16 elements each.",
    )
    for number, text in enumerate(said):
        drawing.text(12, y + 24 * number, text, 12, "start")
    return drawing


# --- 54: E2M1
def e2m1(code: int) -> float:
    """The value of four bits: sign, two of exponent with bias 1, one of mantissa."""
    sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
    size = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return -size if sign else size


def values() -> Drawing:
    """The sixteen values on a line; 72 bits of 16 values; what a k step of 53 and of 54 takes."""
    drawing = Drawing(880, 560, "E2M1: sixteen values; 4.5 bits per value; the scales of a k step")
    drawing.text(12, 18, "E2M1: 4 bits, 15 different values", 14, "start", bold=True)
    middle, unit, y = 440.0, 68.0, 70.0
    drawing.line(middle - 6.2 * unit, y, middle + 6.2 * unit, y, INK, 1)
    for code in range(16):
        value = e2m1(code)
        if code == 8:  # -0
            continue
        x = middle + value * unit
        drawing.line(x, y - 8, x, y + 8, BLUE, 3)
        drawing.text(x, y - 20, f"{value:g}".replace("-", "−"), 11)
        drawing.text(x, y + 20, f"{code:04b}", 9)
    drawing.text(middle, y + 42, "Below: the bits s ee m. 1000 is −0.", 11)

    y, bit, left = 160.0, 10.6, 96
    drawing.text(12, y, "16 neighbours along k and their scale: 72 bits, 4.5 per value", 14, "start", bold=True)
    for number in range(16):
        fill = PALE[number % 2]
        drawing.rect(left + number * 4 * bit, y + 20, 4 * bit, 28, fill, INK)
        drawing.text(left + (number * 4 + 2) * bit, y + 34, "E2M1", 9)
    drawing.rect(left + 64 * bit, y + 20, 8 * bit, 28, GREEN, INK)
    drawing.text(left + 68 * bit, y + 34, "UE4M3", 10, colour="white")
    drawing.text(left + 32 * bit, y + 62, "16 · 4 bits", 11)
    drawing.text(left + 68 * bit, y + 62, "8 bits", 11)

    y, wide = 264.0, 18.0
    drawing.text(12, y, "A k step reads 32 bytes of each row. How many scales belong to it?", 14, "start", bold=True)
    for name, elements, vector, at in (("53", 32, MX, y + 32), ("54", 64, NV, y + 152)):
        drawing.text(12, at + 14, f"{name}: {elements} elements", 12, "start")
        start, size = 150.0, 32 * wide / elements
        for group in range(elements // vector):
            drawing.rect(start + group * vector * size, at, vector * size, 28, TINTS[group], INK)
            drawing.text(start + (group + 0.5) * vector * size, at + 14, f"{vector} elements", 11)
        drawing.text(12, at + 72, "a column's 4 bytes", 12, "start")
        for place in range(4):
            x = start + place * 8 * wide
            taken = elements // vector == 4 or place == 1
            drawing.rect(
                x, at + 58, 8 * wide, 28, TINTS[place if elements == 64 else 0] if taken else LIGHT, INK if taken else GRID
            )
            text = f"scale of group {place}" if elements == 64 else "scale of this k step" if taken else f"of k step {place}"
            drawing.text(x + 4 * wide, at + 72, text, 11, colour=INK if taken else GREY)
            if taken:
                to = start + (place + 0.5) * vector * size if elements == 64 else start + 16 * wide
                drawing.line(x + 4 * wide, at + 58, to, at + 28, INK, 1)
    return drawing


def figures() -> dict[str, Drawing]:
    """These figures by file stem."""
    return {
        "50_pair": pair(),
        "50_mbarriers": mbarriers(),
        "51_accumulators": two_accumulators(),
        "52_lists": lists(),
        "53_scales": scales(),
        "54_e2m1": values(),
    }
