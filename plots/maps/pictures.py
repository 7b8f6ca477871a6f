"""Pictures for the chapters before shared memory has maps of its own: coalescing (01, 01b) and tiling (02)."""

from collections.abc import Callable

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, Drawing

SECTOR = 8  # floats of 4 bytes in a sector of 32 bytes
LANES = range(32)
SIDE = 11  # pixels per element

Place = tuple[int, int]  # row, column
LaneMap = Callable[[int], Place]

# A lane's element of C: neighbouring lanes take neighbouring columns in 01, neighbouring rows in 01b.
THREAD_MAPS: dict[str, LaneMap] = {"01": lambda lane: (0, lane), "01b": lambda lane: (lane, 0)}


def sectors(places: set[Place]) -> int:
    """How many 32-byte sectors of a row-major matrix of floats the places lie in."""
    return len({(row, col // SECTOR) for row, col in places})


def touched(lane_map: LaneMap) -> dict[str, set[Place]]:
    """What a warp touches of each matrix for k = 0."""
    results = {lane_map(lane) for lane in LANES}
    return {"A": {(row, 0) for row, _ in results}, "B": {(0, col) for _, col in results}, "C": results}


def access() -> Drawing:
    """The elements and sectors of A, B and C that one warp touches for one k, 01 above 01b."""
    cols = {"A": 16, "B": 32, "C": 32}
    gap, left, top = 34, 16, 46
    rows = {rung: 2 + max(lane_map(lane)[0] for lane in LANES) for rung, lane_map in THREAD_MAPS.items()}
    size = left * 2 + sum(cols.values()) * SIDE + 2 * gap, top + sum(rows.values()) * SIDE + len(rows) * 74
    drawing = Drawing(*size, "What a warp touches of A, B and C for one k, in rungs 01 and 01b")
    drawing.rect(left, 9, SIDE, SIDE, BLUE)
    drawing.text(left + SIDE + 6, 15, "element a lane wants", 12, "start")
    drawing.rect(left + 180, 9, SECTOR * SIDE, SIDE, "#cfe3f1", BLUE)
    drawing.text(left + 180 + SECTOR * SIDE + 6, 15, "sector of 32 bytes that is moved for it", 12, "start")
    for rung, lane_map in THREAD_MAPS.items():
        x = left
        along = "columns" if rung == "01" else "rows"
        drawing.text(left, top + 4, f"{rung}: neighbouring lanes take neighbouring {along} of C", 14, "start", bold=True)
        for name, places in touched(lane_map).items():
            _matrix(drawing, name, x, top + 42, (rows[rung], cols[name]), places)
            x += cols[name] * SIDE + gap
        top += rows[rung] * SIDE + 74
    return drawing


def _matrix(drawing: Drawing, name: str, x: float, y: float, size: Place, places: set[Place]) -> None:
    rows, cols = size
    count = sectors(places)
    plural = "sector" if count == 1 else "sectors"
    drawing.text(x, y - 14, f"{name}, {'k' if name == 'A' else 'n'} →: {count} {plural}", 12, "start")
    drawing.rect(x, y, cols * SIDE, rows * SIDE, "white", GRID)
    for row, sector in sorted({(row, col // SECTOR) for row, col in places}):
        drawing.rect(x + sector * SECTOR * SIDE, y + row * SIDE, SECTOR * SIDE, SIDE, "#cfe3f1", BLUE)
    for row, col in sorted(places):
        drawing.rect(x + col * SIDE + 1, y + row * SIDE + 1, SIDE - 2, SIDE - 2, BLUE)


def tiles() -> Drawing:
    """A block's tile of C and the tiles of A and B that it walks along; their sizes by the names that every rung gives them."""
    side, count, step = 44, 6, 2  # pixels per tile, tiles per matrix, the step of k that is shown
    row, col = 3, 3  # the block's tile of C
    extent = side * count
    left, top = 64, 40
    right, below = left + extent + 40, top + extent + 40
    drawing = Drawing(right + extent + 210, below + extent + 24, "A block's tile of C and the tiles of A and B it needs")
    for x, y in ((right, top), (left, below), (right, below)):
        for i in range(count):
            for j in range(count):
                drawing.rect(x + j * side, y + i * side, side, side, "white", GRID)
    for i in range(count):
        now = i == step
        drawing.rect(left + i * side, below + row * side, side, side, BLUE if now else "#cfe3f1", INK)
        drawing.rect(right + col * side, top + i * side, side, side, ORANGE if now else "#f9e3b8", INK)
    drawing.rect(right + col * side, below + row * side, side, side, GREEN, INK)
    drawing.text(left + extent / 2, below - 14, "A (M × K), k →", 13)
    drawing.text(right + extent / 2, top - 16, "B (K × N), n →", 13)
    drawing.text(right + extent / 2, below - 14, "C (M × N)", 13)
    middle = side / 2
    drawing.text(left + step * side + middle, below + row * side + middle, "sA", 13, bold=True, colour="white")
    drawing.text(right + col * side + middle, top + step * side + middle, "sB", 13, bold=True)
    key = right + extent + 20
    notes = [
        (GREEN, "a block's results: BM × BN"),
        (BLUE, "sA, now: BM × BK"),
        (ORANGE, "sB, now: BK × BN"),
        ("#cfe3f1", "A at other k"),
        ("#f9e3b8", "B at other k"),
    ]
    for i, (colour, text) in enumerate(notes):
        drawing.rect(key, below + 22 * i, 14, 14, colour, INK)
        drawing.text(key + 22, below + 22 * i + 7, text, 12, "start")
    return drawing


def figures() -> dict[str, Drawing]:
    """These pictures by file stem."""
    return {"01_access": access(), "02_tiles": tiles()}
