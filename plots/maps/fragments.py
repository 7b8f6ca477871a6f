"""Figures of the fragments of mma.sync: which lane holds which element of A, B and C, and in which register."""

from plots.maps.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, Drawing
from plots.maps.index_maps import Maps

REGISTERS = [BLUE, ORANGE, GREEN, PURPLE]
PICKED = 6  # the lane that is drawn in full colour
KINDS = {
    "10_fragments_16bit": ("16bit", "BF16 and FP16: mma.sync.m16n8k16"),
    "10_fragments_tf32": ("tf32", "TF32: mma.sync.m16n8k8"),
    "40_fragments_8bit": ("8bit", "E4M3: mma.sync.m16n8k32"),
}
SIDE = 18  # pixels per element of C

Words = dict[tuple[int, int], list[tuple[int, int]]]  # (lane, register) -> the elements that it holds, (row, column)


def words(maps: Maps, matrix: str, kind: str) -> Words:
    """The registers of a matrix's fragment; a touch's `word` is the register."""
    found: Words = {}
    for touch in maps[matrix, kind]:
        found.setdefault((touch.thread, touch.word), []).append((touch.row, touch.col))
    return found


def held(maps: Maps, kind: str, title: str) -> Drawing:
    """A on the left, B above, C where their rows and columns meet: the lane of every register, its colour the register."""
    fragments = {matrix: words(maps, matrix, kind) for matrix in "abc"}
    depth = 1 + max(col for places in fragments["a"].values() for _, col in places)
    scale = {"a": (16 * SIDE // depth, SIDE), "b": (SIDE, 16 * SIDE // depth), "c": (SIDE, SIDE)}
    left, top, gap = 52, 80, 54
    right, below = left + 16 * SIDE + gap, top + 16 * SIDE + gap
    drawing = Drawing(right + 8 * SIDE + 130, below + 16 * SIDE + 12, f"Who holds which element, {title}")
    drawing.text(12, 18, title, 14, "start", bold=True)
    for matrix, x, y in (("a", left, below), ("b", right, top), ("c", right, below)):
        for (lane, register), places in fragments[matrix].items():
            _word(drawing, (x, y), scale[matrix], lane, register, places)
    _ruler(drawing, "k →", (left, below), scale["a"][0], depth, across=True)
    _ruler(drawing, "m ↓", (left, below), SIDE, 16, across=False)
    _ruler(drawing, "n →", (right, top), SIDE, 8, across=True)
    _ruler(drawing, "k ↓", (right, top), scale["b"][1], depth, across=False)
    drawing.text(left + 8 * SIDE, below - 40, f"A, 16 × {depth}", 13, bold=True)
    drawing.text(right + 4 * SIDE, top - 40, f"B, {depth} × 8", 13, bold=True)
    drawing.text(right + 8 * SIDE + 14, below + 8 * SIDE, "C and D, 16 × 8", 13, "start", bold=True)
    _key(drawing, left, top, len(fragments["a"][0, 0]))
    return drawing


def _word(
    drawing: Drawing, origin: tuple[int, int], scale: tuple[int, int], lane: int, register: int, places: list[tuple[int, int]]
) -> None:
    """One register of one lane: a rectangle around its elements."""
    rows, cols = ([place[axis] for place in places] for axis in (0, 1))
    x, y = origin[0] + min(cols) * scale[0], origin[1] + min(rows) * scale[1]
    width, height = (1 + max(cols) - min(cols)) * scale[0], (1 + max(rows) - min(rows)) * scale[1]
    colour = REGISTERS[register]
    picked = lane == PICKED
    drawing.rect(x, y, width, height, colour if picked else _tint(colour), INK)
    ink = "white" if picked and register in (0, 2) else INK
    drawing.text(x + width / 2, y + height / 2, str(lane), 10, colour=ink, bold=picked)


def _tint(colour: str) -> str:
    """A light version."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - part) * 0.22) for part in parts))


def _ruler(drawing: Drawing, name: str, origin: tuple[int, int], scale: int, count: int, across: bool) -> None:
    x, y = origin
    for i in range(0, count, 1 if scale >= 12 else 4):  # what there is room for
        middle = (i + 0.5) * scale
        if across:
            drawing.text(x + middle, y - 9, str(i), 9)
        else:
            drawing.text(x - 6, y + middle, str(i), 9, "end")
    drawing.text(x - 6, y - 9 if across else y - 24, name, 11, "end")


def _key(drawing: Drawing, x: int, y: int, each: int) -> None:
    elements = "one element" if each == 1 else f"{each} elements along k"
    drawing.text(x, y - 34, "The numbers are lanes, a cell is a register of 32 bits.", 12, "start")
    drawing.text(x, y - 16, f"Of A and B it holds {elements}, of C one:", 12, "start")
    for i, colour in enumerate(REGISTERS):
        drawing.rect(x, y + 8 + 22 * i - 7, 26, 14, _tint(colour), INK)
        names = [f"a[{i}]", f"b[{i}]", f"c[{i}]"] if i < 2 else [f"a[{i}]", f"c[{i}]"]
        drawing.text(x + 36, y + 8 + 22 * i, ", ".join(names), 12, "start")
    drawing.rect(x, y + 96 - 7, 26, 14, BLUE, INK)
    drawing.text(x + 36, y + 96, f"full colour: all that lane {PICKED} holds", 12, "start")


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {stem: held(maps, kind, title) for stem, (kind, title) in KINDS.items()}
