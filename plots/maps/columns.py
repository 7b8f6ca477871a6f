"""The figure of chapter 16: which column of B lies in which row of its tile, and what a quad's lanes then hold of C."""

from plots.maps.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, Drawing
from plots.maps.index_maps import Maps

LANES = [BLUE, ORANGE, GREEN, PURPLE]  # of a quad
LEFT, CELL, LINE = 176, 24, 24  # pixels
MMA = 8  # rows of B's tile, that is columns of the results, of one mma
FP32, SIXTEEN = "4", "8"  # results in 16 bytes


def held(maps: Maps, size: str, rows: int, before: bool) -> dict[int, int]:
    """The lane of the quad that holds each column of C, for the rows of B's tile of as many mma as fill 16 bytes per lane."""
    return {touch.col: touch.thread for touch in maps["permuted", "2" if before else size] if touch.row < rows}


def permuted(maps: Maps) -> Drawing:
    """For results of 4 bytes and of 2: the rows of B's tile in order and permuted, and below each the columns of C."""
    drawing = Drawing(LEFT + 32 * CELL + 14, 536, "The columns of B in the rows of its tile, and of C in the lanes of a quad")
    drawing.text(
        12, 18, "Which column of B lies in which row of its tile, and which lane then holds which column of C", 14, "start", True
    )
    for lane, colour in enumerate(LANES):
        drawing.rect(12 + 160 * lane, 36, 14, 14, colour, INK)
        drawing.text(34 + 160 * lane, 43, f"lane {lane} of each quad", 12, "start")
    y = 66.0
    for size, kind in ((FP32, "FP32 results: 4 columns are 16 bytes"), (SIXTEEN, "16-bit results: 8 columns are 16 bytes")):
        rows = 4 * int(size)
        drawing.text(12, y + 12, kind, 13, "start", bold=True)
        for col in range(0, rows, MMA):
            x = LEFT + col * CELL
            drawing.text(x + MMA * CELL / 2, y + 34, f"mma {col // MMA}", 10)
            drawing.line(x + 2, y + 42, x + MMA * CELL - 2, y + 42)
        drawing.text(LEFT - 8, y + 34, "row of B's tile →", 11, "end")
        y += 48
        for before in (True, False):
            y = _pair(drawing, maps, size, rows, before, y)
        y += 10
    return drawing


def _pair(drawing: Drawing, maps: Maps, size: str, rows: int, before: bool, y: float) -> float:
    """The columns of B by row of the tile, and the lanes that hold the columns of C; where the next pair begins."""
    name = "15, in order" if before else "16, permuted"
    drawing.text(LEFT - 8, y + LINE / 2, f"{name}: column of B", 11, "end")
    for touch in maps["permuted", "2" if before else size]:
        if touch.row < rows:
            _cell(drawing, touch.row, y, touch.thread, str(touch.col))
    y += LINE + 8
    drawing.text(LEFT - 8, y + LINE / 2, "column of C, lane", 11, "end")
    lanes = held(maps, size, rows, before)
    for col, lane in lanes.items():
        _cell(drawing, col, y, lane, str(col))
    for first, last in pieces(lanes, 0):
        drawing.line(LEFT + first * CELL + 1, y + LINE + 4, LEFT + (last + 1) * CELL - 1, y + LINE + 4, BLUE, 3)
    each = len(pieces(lanes, 0))
    width = 16 // int(size) * (rows // 4) // each
    said = f"lane 0 holds {each} pieces of {width} bytes" if each > 1 else f"lane 0 holds one piece of {width} bytes: one store"
    drawing.text(LEFT, y + LINE + 14, said, 11, "start")
    return y + LINE + 32


def pieces(lanes: dict[int, int], lane: int) -> list[tuple[int, int]]:
    """The first and last column of each run of neighbours that a lane holds."""
    cols = sorted(col for col, who in lanes.items() if who == lane)
    starts = [col for col in cols if col - 1 not in cols]
    ends = [col for col in cols if col + 1 not in cols]
    return list(zip(starts, ends, strict=True))


def _cell(drawing: Drawing, place: int, y: float, lane: int, text: str) -> None:
    drawing.rect(LEFT + place * CELL, y, CELL, LINE, LANES[lane], INK)
    drawing.text(LEFT + (place + 0.5) * CELL, y + LINE / 2, text, 10, colour="white" if LANES[lane] in (BLUE, GREEN) else INK)


def figures(maps: Maps) -> dict[str, Drawing]:
    """This figure by file stem."""
    return {"16_permuted_columns": permuted(maps)}
