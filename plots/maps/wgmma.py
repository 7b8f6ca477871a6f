"""The figures of chapter 22: the bits of a descriptor, a K-major tile that it describes, and who holds the accumulators."""

from typing import NamedTuple

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, Drawing
from plots.maps.index_maps import Maps

STEPS = [BLUE, ORANGE, GREEN, PURPLE]  # the k steps of a k tile
LIGHT = "#f7f7f7"
ROW_BYTES, CHUNK_BYTES, STEP_BYTES, GROUP_ROWS = 128, 16, 32, 8


# --- the descriptor
class Field(NamedTuple):
    """A field of a descriptor: its bits, and what 22 writes there."""

    first: int
    last: int
    name: str
    value: int | None  # None: the tile's address, which is not known here
    said: str  # the value, as the picture says it
    meaning: str
    colour: str


FIELDS = [
    Field(0, 13, "start address", None, "tile / 16", "where the matrix begins, in bytes / 16: bits 4 to 17 of the address", BLUE),
    Field(16, 29, "leading offset", 1, "1", "not used where the layout is K-major and swizzled", LIGHT),
    Field(32, 45, "stride offset", 1024 // 16, "64", "bytes from 8 rows to the next 8, / 16: 1024 / 16", ORANGE),
    Field(49, 51, "base offset", 0, "0", "0: the swizzle's pattern begins at a multiple of 1024 bytes", LIGHT),
    Field(62, 63, "swizzle", 1, "1", "0: none, 1: 128 bytes, 2: 64 bytes, 3: 32 bytes", GREEN),
]
WHITE_INK = (BLUE, GREEN)


def descriptor() -> Drawing:
    """The 64 bits in two rows of 32, and a table of the fields."""
    bit, left, tall, line = 26, 20, 34, 26
    tops = (74, 158)  # of bits 63 to 32 and 31 to 0
    table = tops[1] + tall + 40
    drawing = Drawing(left + 32 * bit + 20, table + (len(FIELDS) + 1) * line + 8, "The 64 bits of a descriptor of wgmma")
    drawing.text(12, 18, "A descriptor of wgmma: where a matrix lies in shared memory, in 64 bits", 14, "start", bold=True)
    drawing.text(12, 40, "White: bits without a meaning, 0 in 22.", 12, "start")

    def place(number: int) -> tuple[float, float]:
        return left + (31 - number % 32) * bit, tops[0 if number >= 32 else 1]

    for number in range(64):
        x, y = place(number)
        drawing.rect(x, y, bit, tall, "white", GRID)
    for field in FIELDS:
        x, y = place(field.last)
        width = (field.last - field.first + 1) * bit
        ink = "white" if field.colour in WHITE_INK else INK
        drawing.rect(x, y, width, tall, field.colour, INK)
        if width > 150:
            drawing.text(x + width / 2, y + tall / 2, f"{field.name}: {field.said}", 12, colour=ink)
        else:
            drawing.text(x + width / 2, y + tall / 2, field.said, 12, colour=ink)
            drawing.text(x + width / 2, y + tall + 12, field.name, 11)
        drawing.text(x + bit / 2, y - 10, str(field.last), 10)
        drawing.text(x + width - bit / 2, y - 10, str(field.first), 10)
    for x, head in ((12, "bits"), (92, "field"), (214, "in 22"), (300, "meaning")):
        drawing.text(x, table, head, 11, "start", bold=True)
    for i, field in enumerate(FIELDS):
        y = table + (i + 1) * line
        drawing.rect(8, y - line / 2, drawing.width - 16, line, LIGHT if i % 2 else "white", GRID)
        drawing.text(12, y, f"{field.first} to {field.last}", 11, "start")
        drawing.text(92, y, field.name, 11, "start", bold=True)
        drawing.text(214, y, field.said, 11, "start")
        drawing.text(300, y, field.meaning, 11, "start")
    return drawing


# --- a K-major tile
def places(maps: Maps) -> dict[tuple[int, int], int]:
    """Of the first eight rows: (row, place of 16 bytes) -> the chunk that lies there, by the swizzle of 128 bytes."""
    return {(touch.word * 4 // ROW_BYTES, touch.bank * 4 // CHUNK_BYTES): touch.col for touch in maps["row_place", "12"]}


def k_major(maps: Maps) -> Drawing:
    """Left: 64 rows as groups of eight. Right: one group, its chunks coloured by the k step that reads them."""
    tile, wide, group, right, side, line, top = 126, 110, 30, 400, 46, 27, 104
    drawing = Drawing(right + 8 * side + 20, top + 8 * line + 168, "A K-major tile with the 128-byte swizzle")
    drawing.text(12, 18, "64 rows of A in shared memory, K-major with the 128-byte swizzle", 14, "start", bold=True)
    drawing.text(tile + wide / 2, 56, "128 bytes along k", 11)
    drawing.text(tile - 10, 78, "byte", 11, "end")
    for i in range(64 // GROUP_ROWS):
        y = top - 14 + i * group
        drawing.rect(tile, y, wide, group, "#d9d9d9" if i == 0 else LIGHT, INK)
        drawing.text(tile + wide / 2, y + group / 2, f"rows {i * 8} to {i * 8 + 7}", 11)
        drawing.text(tile - 10, y + group / 2, f"+ {i * GROUP_ROWS * ROW_BYTES}", 11, "end")
    y = top - 14 + 8 * group
    drawing.text(12, y + 20, "From group to group: the stride offset, 1024 bytes.", 11, "start")
    drawing.text(12, y + 38, "B is the same, with 256 columns for rows.", 11, "start")

    drawing.text(right - 60, 48, "Group + 0: the chunk of 16 bytes in each place", 12, "start", bold=True)
    drawing.text(right - 10, 84, "byte of a row", 11, "end")
    for place in range(8):
        drawing.text(right + (place + 0.5) * side, 84, str(place * CHUNK_BYTES), 10)
    for (row, place), chunk in places(maps).items():
        step = chunk * CHUNK_BYTES // STEP_BYTES
        x, y = right + place * side, top + row * line
        drawing.rect(x, y, side, line, STEPS[step], INK)
        drawing.text(x + side / 2, y + line / 2, str(chunk), 11, bold=True, colour="white" if STEPS[step] in WHITE_INK else INK)
    for row in range(GROUP_ROWS):
        drawing.text(right - 10, top + (row + 0.5) * line, f"row {row}", 11, "end")
    y = top + GROUP_ROWS * line + 26
    for step, colour in enumerate(STEPS):
        at = y + step * 24
        drawing.rect(right - 60, at - 7, 14, 14, colour, INK)
        first = step * STEP_BYTES // CHUNK_BYTES
        said = f"k step {step}: chunks {first} and {first + 1} of each row; start address + {step * STEP_BYTES} bytes"
        drawing.text(right - 38, at, said, 11, "start")
    drawing.text(right - 60, y + 4 * 24 + 4, "The start address names a chunk as if nothing were swizzled.", 11, "start")
    drawing.text(right - 60, y + 4 * 24 + 22, "wgmma finds chunk c of row r in place c XOR r % 8.", 11, "start")
    return drawing


# --- accumulators
WARPS, ROWS_OF_A_WARP, COLUMNS = 4, 16, 16  # the picture shows 16 of the columns
PICKED = 6  # the lane that is drawn in full colour
REGISTERS = [BLUE, ORANGE, GREEN, PURPLE]


def held(maps: Maps) -> dict[tuple[int, int], tuple[int, int]]:
    """(row, column) of the 64 x 16 results -> the thread of the warpgroup, and its register."""
    return {(touch.row, touch.col): (touch.thread, touch.word) for touch in maps["wgmma_c", "22"]}


def accumulators(maps: Maps) -> Drawing:
    """Left: the 64 rows over the warps. Right: of warp 0 the first 16 columns, in each cell the lane, its colour the register."""
    owner = held(maps)
    side, top, left, wide, right = 30, 112, 70, 250, 420
    band = ROWS_OF_A_WARP * side / WARPS
    drawing = Drawing(
        right + COLUMNS * side + 20, top + ROWS_OF_A_WARP * side + 74, "The accumulators of m64nNk16 over four warps"
    )
    drawing.text(12, 18, "The 64 × 256 results of a wgmma, in the registers of a warpgroup", 14, "start", bold=True)
    drawing.text(left, 56, "64 rows, 256 columns", 13, "start", bold=True)
    drawing.text(left + wide / 2, top - 18, "columns 0 to 255 →", 11)
    for warp in range(WARPS):
        rows = [row for (row, _), (thread, _) in owner.items() if thread // 32 == warp]
        y = top + warp * band
        drawing.rect(left, y, wide, band, "#ececec" if warp % 2 else "#d9d9d9", INK)
        drawing.text(left + wide / 2, y + band / 2, f"warp {warp}: rows {min(rows)} to {max(rows)}", 12)
    drawing.rect(left, top, wide * COLUMNS / 256, band, ORANGE, INK)
    drawing.text(left, top + WARPS * band + 20, "orange: the part on the right", 11, "start")
    drawing.text(right, 56, "warp 0, columns 0 to 15: in a cell the lane", 13, "start", bold=True)
    for col in range(COLUMNS):
        drawing.text(right + (col + 0.5) * side, top - 9, str(col), 10)
    for j in range(COLUMNS // 8):
        drawing.text(right + (j * 8 + 4) * side, top - 28, f"acc[{j}]", 11)
    for row in range(ROWS_OF_A_WARP):
        drawing.text(right - 8, top + (row + 0.5) * side, f"row {row}", 10, "end")
        for col in range(COLUMNS):
            lane, register = owner[row, col]
            colour, picked = REGISTERS[register % 4], lane == PICKED
            x, y = right + col * side, top + row * side
            drawing.rect(x, y, side, side, colour if picked else _tint(colour), INK)
            ink = "white" if picked and colour in WHITE_INK else INK
            drawing.text(x + side / 2, y + side / 2, str(lane), 10, bold=picked, colour=ink)
    y = top + ROWS_OF_A_WARP * side + 22
    for i, colour in enumerate(REGISTERS):
        drawing.rect(right + 100 * i, y - 7, 26, 14, _tint(colour), INK)
        drawing.text(right + 100 * i + 34, y, f"acc[j][{i}]", 11, "start")
    drawing.rect(right, y + 19, 26, 14, BLUE, INK)
    drawing.text(right + 34, y + 26, f"full colour: what lane {PICKED} holds", 11, "start")
    return drawing


def _tint(colour: str) -> str:
    """A light version."""
    return "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - int(colour[i : i + 2], 16)) * 0.22) for i in (1, 3, 5)))


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {"22_descriptor": descriptor(), "22_k_major": k_major(maps), "22_accumulators": accumulators(maps)}
