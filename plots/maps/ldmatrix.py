"""The figure of chapter 13: which lane names which row to ldmatrix.x4, and which register receives which matrix."""

from plots.maps.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, Drawing
from plots.maps.fragments import PICKED
from plots.maps.index_maps import Maps

MATRICES = [BLUE, ORANGE, GREEN, PURPLE]
WORD, LINE = 24, 20  # pixels
CHUNK = 4  # words
LEFT, TOP, GAP = 42, 124, 38
ROWS = 16
REGISTERS = {"a": ["a[0]", "a[1]", "a[2]", "a[3]"], "b": ["b[0] of j", "b[1] of j", "b[0] of j + 1", "b[1] of j + 1"]}

Words = dict[tuple[int, int], tuple[int, int]]  # (row, word along k) -> (lane, matrix)


def named(maps: Maps, matrix: str) -> dict[tuple[int, int], tuple[int, int]]:
    """(Row, chunk) -> the lane that names its address and the matrix that it is a row of."""
    return {(touch.row, touch.col): (touch.thread, touch.word) for touch in maps[f"ldsm_{matrix}", "13"]}


def wanted(maps: Maps, matrix: str) -> Words:
    """The lane that mma.sync wants each word in, and the register: for B two mma side by side, j and j + 1."""
    if matrix == "a":
        return {(touch.row, touch.col): (touch.thread, touch.word) for touch in maps["a", "tf32"]}
    return {
        (touch.col + 8 * mma, touch.row): (touch.thread, touch.word + 2 * mma) for mma in range(2) for touch in maps["b", "tf32"]
    }


def delivered(maps: Maps, matrix: str) -> Words:
    """What ldmatrix does: of row g of a matrix, whose address lane 8 * matrix + g names, word t goes to lane 4 g + t."""
    return {
        (row, chunk * CHUNK + t): (lane % 8 * 4 + t, number)
        for (row, chunk), (lane, number) in named(maps, matrix).items()
        for t in range(CHUNK)
    }


def rows(maps: Maps) -> Drawing:
    """For A and for B: on the left who names each row of 16 bytes, on the right who receives each word."""
    width = 2 * CHUNK * WORD
    drawing = Drawing(LEFT + 4 * width + 3 * GAP + 14, TOP + ROWS * LINE + 66, "The rows that lanes name to ldmatrix.x4")
    drawing.text(12, 18, "ldmatrix.x4 in 13: each lane names one row of 16 bytes and receives four words", 14, "start", bold=True)
    said = f"Full colour: lane {PICKED}. It names one row of one matrix and receives a word of each."
    drawing.text(12, 40, said, 12, "start")
    for i, (matrix, title) in enumerate((("a", "A: 16 rows of 32 bytes"), ("b", "B: 16 columns of 32 bytes"))):
        left = LEFT + i * 2 * (width + GAP)
        down = "m" if matrix == "a" else "n"
        drawing.text(left, 68, title, 13, "start", bold=True)
        drawing.text(left, 88, "the lane that names the row", 11, "start")
        drawing.text(left + width + GAP, 88, "the lane that receives the word", 11, "start")
        for panel in range(2):
            x = left + panel * (width + GAP)
            drawing.text(x - 6, TOP - 12, f"{down} ↓", 10, "end")
            drawing.text(x, TOP - 12, "k →", 10, "start")
            for row in range(ROWS):
                drawing.text(x - 6, TOP + (row + 0.5) * LINE, str(row), 9, "end")
        for (row, chunk), (lane, number) in named(maps, matrix).items():
            _cell(drawing, left + chunk * CHUNK * WORD, row, CHUNK * WORD, number, lane, f"lane {lane}")
        for (row, word), (lane, number) in wanted(maps, matrix).items():
            _cell(drawing, left + width + GAP + word * WORD, row, WORD, number, lane, str(lane))
        for number, register in enumerate(REGISTERS[matrix]):
            x, y = left + number % 2 * (width + GAP), TOP + ROWS * LINE + 22 + 24 * (number // 2)
            drawing.rect(x, y - 7, 14, 14, MATRICES[number], INK)
            drawing.text(x + 22, y, f"matrix {number} → {register}", 11, "start")
    return drawing


def _cell(drawing: Drawing, x: float, row: int, width: float, number: int, lane: int, text: str) -> None:
    picked = lane == PICKED
    drawing.rect(x, TOP + row * LINE, width, LINE, MATRICES[number] if picked else _tint(MATRICES[number]), INK)
    ink = "white" if picked and MATRICES[number] in (BLUE, GREEN) else INK
    drawing.text(x + width / 2, TOP + (row + 0.5) * LINE, text, 10, bold=picked, colour=ink)


def _tint(colour: str) -> str:
    """A light version."""
    return "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - int(colour[i : i + 2], 16)) * 0.3) for i in (1, 3, 5)))


def figures(maps: Maps) -> dict[str, Drawing]:
    """This figure by file stem."""
    return {"13_ldmatrix_rows": rows(maps)}
