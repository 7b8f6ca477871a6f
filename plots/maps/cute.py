"""Figures of chapters 19 and 20: CuTe's own layouts, from what bench/cute_maps.cpp printed into bench/cute_maps.csv."""

from pathlib import Path

from plots.errors import InputError
from plots.maps import fragments
from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, Drawing
from plots.maps.index_maps import BANKS, Maps, Touch, parse, regions

PRINTED = "bench/cute_maps.csv"
ATOM = "CuTe's atom SM80_16x8x16_F32BF16BF16F32_TN"
# Of eight warps, and of the eight groups of four banks: Okabe and Ito's colours, yellow before grey.
EIGHT = [BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", RED, "#F0E442", "#999999"]
WHITE_INK = {BLUE, GREEN, RED}
TILE = 4  # rows and columns of a tile of the map offset of local_tile
TILE = 4  # of the tiles that the map offset of local_tile has


def read(root: Path) -> Maps:
    """The maps of CuTe in a checkout."""
    path = root / PRINTED
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return parse("".join(line for line in lines if not line.startswith("#")), str(path))


def _tint(colour: str, part: float = 0.35) -> str:
    """A light version."""
    return "#{:02x}{:02x}{:02x}".format(*(round(255 - (255 - int(colour[i : i + 2], 16)) * part) for i in (1, 3, 5)))


def layouts(maps: Maps) -> Drawing:
    """A tensor as a grid of offsets, and below it the tiles that local_tile makes of four of its rows."""
    cell, line, left, top = 34, 20, 56, 92
    tensor, tiles = maps["offset", "tensor"], maps["offset", "local_tile"]
    rows, cols = 1 + max(touch.row for touch in tensor), 1 + max(touch.col for touch in tensor)
    own = {touch.word: touch.thread for touch in tiles}
    below = top + rows * line + 78
    drawing = Drawing(left + cols * cell + 60, below + TILE * line + 14, "A layout and its tiles")
    drawing.text(12, 18, "A layout of shape (8, 16) and stride (20, 1)", 14, "start", bold=True)
    drawing.text(
        12, 40, "In each cell: the offset 20 m + k, in elements. The 4 elements between two rows are padding.", 12, "start"
    )
    _ruler(drawing, (left, top), (cell, line), rows, cols, "m")
    for touch in tensor:
        fill = _tint(EIGHT[own[touch.word]]) if touch.word in own else "white"
        x, y = left + touch.col * cell, top + touch.row * line
        drawing.rect(x, y, cell, line, fill, GRID)
        drawing.text(x + cell / 2, y + line / 2, str(touch.word), 10)
    for row in range(0, rows + 1, TILE):
        drawing.line(left, top + row * line, left + cols * cell, top + row * line, INK, 2)
    for col in range(0, cols + 1, TILE):
        drawing.line(left + col * cell, top, left + col * cell, top + rows * line, INK, 2)
    said = "local_tile(tensor, (4, 4), (1, _)): shape (4, 4, 4), stride (20, 1, 4), from offset 80 on"
    drawing.text(12, below - 52, said, 14, "start", bold=True)
    for touch in tiles:
        x, y = left + touch.thread * (TILE * cell + 16) + touch.col * cell, below + touch.row * line
        drawing.rect(x, y, cell, line, _tint(EIGHT[touch.thread]), INK)
        drawing.text(x + cell / 2, y + line / 2, str(touch.word), 10)
    for tile in range(1 + max(own.values())):
        x = left + tile * (TILE * cell + 16)
        drawing.text(x, below - 26, f"tile {tile}", 12, "start", bold=True)
        _ruler(drawing, (x, below), (cell, line), TILE if tile == 0 else 0, TILE, "m", below - 10)
    return drawing


def _ruler(
    drawing: Drawing, origin: tuple[float, float], cell: tuple[float, float], rows: int, cols: int, down: str, at: float = 0
) -> None:
    """Numbers of the rows on the left, of the columns above."""
    x, y = origin
    for row in range(rows):
        drawing.text(x - 8, y + (row + 0.5) * cell[1], str(row), 9, "end")
    for col in range(cols):
        drawing.text(x + (col + 0.5) * cell[0], at or y - 10, str(col), 9)
    if rows:
        drawing.text(x - 22, y + 0.5 * cell[1], f"{down} ↓", 11, "end")
        drawing.text(x - 8, at or y - 10, "k →", 11, "end")


def holders(maps: Maps, matrix: str) -> dict[tuple[int, int], tuple[int, ...]]:
    """The warps that hold each pair of elements of a TiledMMA's matrix, by the pair's row and column."""
    found: dict[tuple[int, int], set[int]] = {}
    for touch in maps[f"tiled_{matrix}", "cute"]:
        found.setdefault((touch.row, touch.col), set()).add(touch.thread // 32)
    return {place: tuple(sorted(warps)) for place, warps in found.items()}


PICKED = 6  # the thread whose elements are drawn in full colour
SIDE = 9  # pixels per element of the TiledMMA


def tiled_mma(maps: Maps) -> Drawing:
    """A on the left, B above, C where they meet: the warps that hold each part, and which pairs one thread holds."""
    left, top, gap = 58, 128, 56
    right, below = left + 16 * SIDE + gap, top + 16 * SIDE + gap
    drawing = Drawing(right + 32 * SIDE + 236, below + 64 * SIDE + 14, "Who holds which element in CuTe's TiledMMA")
    drawing.text(12, 18, "TiledMMA of 19 and 20: 4 × 2 warps, each with two mma 16 columns apart", 14, "start", bold=True)
    said = f"Colours: warps. Thread {PICKED} is dark; the numbers count its registers of A and B, its pairs of results of C."
    drawing.text(12, 40, said, 12, "start")
    for matrix, x, y in (("a", left, below), ("b", right, top), ("c", right, below)):
        _held(drawing, maps, matrix, x, y)
    for title, x, y in (("A, 64 × 16", left + 8 * SIDE, below - 34), ("B, 16 × 32", right + 16 * SIDE, top - 34)):
        drawing.text(x, y, title, 13, bold=True)
    _marks(drawing, "k →", (left, below), 16, 8, True)
    _marks(drawing, "m ↓", (left, below), 64, 16, False)
    _marks(drawing, "n →", (right, top), 32, 8, True)
    _marks(drawing, "k ↓", (right, top), 16, 8, False)
    key = right + 32 * SIDE + 18
    drawing.text(key, below + 8, "C and D, 64 × 32", 13, "start", bold=True)
    notes = ["Warps 0 and 4 hold the same", "rows of A, warps 0 to 3 the", "same columns of B."]
    for i, line in enumerate(notes):
        drawing.text(key, below + 34 + 18 * i, line, 12, "start")
    return drawing


def _held(drawing: Drawing, maps: Maps, matrix: str, x: float, y: float) -> None:
    """One matrix: a rectangle for each warp, or for all warps that hold the same, and the pairs of one thread."""
    of_b = matrix == "b"  # drawn with k down
    groups = holders(maps, matrix)
    names = sorted(set(groups.values()))
    owner = {}
    for (row, col), warps in groups.items():
        for element in (col, col + 1):
            owner[(element, row) if of_b else (row, element)] = names.index(warps)
    for group, (row, col, height, width) in regions(owner):
        warps = names[group]
        fill = _tint(EIGHT[warps[0]]) if matrix == "c" else ("#e4e4e4", "#d0d0d0", "#f2f2f2", "#dadada")[group % 4]
        drawing.rect(x + col * SIDE, y + row * SIDE, width * SIDE, height * SIDE, fill, INK)
        middle = x + (col + width / 2) * SIDE, y + (row + (8.5 if of_b else 5)) * SIDE  # between the pairs of a thread
        if matrix == "c":
            drawing.text(*middle, f"warp {warps[0]}", 10)
        else:
            said = f"{warps[0]}–{warps[-1]}" if len(warps) > 2 else " and ".join(map(str, warps))
            drawing.text(*middle, said if of_b else f"warps {said}", 10)
    for touch in (touch for touch in maps[f"tiled_{matrix}", "cute"] if touch.thread == PICKED):
        row, col, height, width = (touch.col, touch.row, 2, 1) if of_b else (touch.row, touch.col, 1, 2)
        drawing.rect(x + col * SIDE, y + row * SIDE, width * SIDE, height * SIDE, BLUE, INK)
        drawing.text(x + (col + width / 2) * SIDE, y + (row + height / 2) * SIDE, str(touch.word), 8, colour="white", bold=True)


def _marks(drawing: Drawing, name: str, origin: tuple[float, float], count: int, step: int, across: bool) -> None:
    x, y = origin
    for i in range(0, count + 1, step):
        if across:
            drawing.text(x + i * SIDE, y - 10, str(i), 9)
        elif i:
            drawing.text(x - 6, y + i * SIDE, str(i), 9, "end")
    drawing.text(x - 16 if across else x - 24, y - 10 if across else y + 10, name, 10, "end")


def copied(maps: Maps) -> Drawing:
    """The thread that copies each chunk of the first 32 rows of A's tile: in global memory, and in shared memory."""
    cell, line, left, top, gap = 42, 15, 60, 92, 76
    touches = maps["copy", "20"]
    rows = 1 + max(touch.row for touch in touches)
    drawing = Drawing(left + 16 * cell + gap + 14, top + rows * line + 48, "Which thread copies which chunk")
    drawing.text(12, 18, f"TiledCopy of 20: the threads that copy the first {rows} rows of A's tile", 14, "start", bold=True)
    said = "A cell is a chunk of 16 bytes, its number the thread. Shades: warps. Orange: threads 32 to 39, which copy row 4."
    drawing.text(12, 40, said, 12, "start")
    for panel, title in enumerate(("in global memory: partition_S", "in shared memory: partition_D")):
        x = left + panel * (8 * cell + gap)
        drawing.text(x, 64, title, 13, "start", bold=True)
        drawing.text(x - 8, 82, "banks" if panel else "chunk", 10, "end")
        for column in range(8):
            name = f"{4 * column}–{4 * column + 3}" if panel else str(column)
            drawing.text(x + (column + 0.5) * cell, 82, name, 9)
        for row in range(rows):
            drawing.text(x - 8, top + (row + 0.5) * line, f"{'line' if panel else 'row'} {row}", 9, "end")
        for touch in touches:
            row, column = (touch.word // BANKS, touch.bank // 4) if panel else (touch.row, touch.col)
            fill = ORANGE if touch.row == 4 else ("#d9e8f3", "#eef4f9")[touch.thread // 32 % 2]
            drawing.rect(x + column * cell, top + row * line, cell, line, fill, INK if touch.row == 4 else "white")
            drawing.text(x + (column + 0.5) * cell, top + (row + 0.5) * line, str(touch.thread), 10)
    more = [str(touch.row) for touch in maps["copy", "20_37"]]
    said = f"Thread 37 goes on in steps of {rows} rows: it copies chunk 5 of the rows {', '.join(more[:-1])} and {more[-1]}."
    drawing.text(12, top + rows * line + 22, said, 12, "start")
    return drawing


def wavefronts(maps: Maps, which: str, chunk: int, rows: range = range(8)) -> int:
    """How many wavefronts the same chunk of eight rows takes: the most of these rows in one group of four banks."""
    groups = [touch.bank // 4 for touch in maps["swizzled", which] if touch.col == chunk and touch.row in rows]
    return max(groups.count(group) for group in groups)


def swizzled(maps: Maps, panels: dict[str, str], title: str, rows: int) -> Drawing:
    """Panels of rows and chunks as the program names them; in the cells the offset, its colour the four banks that it has."""
    left, top, line, gap = 46, 122, 24, 52
    counts = {which: 1 + max(touch.col for touch in maps["swizzled", which]) for which in panels}
    cell = 46 if max(counts.values()) == 8 else 58
    width = sum(count * cell for count in counts.values()) + gap * (len(panels) - 1)
    drawing = Drawing(max(left + width + 14, 792), top + rows * line + 44, title)
    drawing.text(12, 18, title, 14, "start", bold=True)
    drawing.text(
        12,
        40,
        "A cell is a chunk of 16 bytes, with its offset in elements of 16 bits. Its colour says in which banks:",
        12,
        "start",
    )
    for group, colour in enumerate(EIGHT):
        drawing.rect(12 + 92 * group, 55, 14, 14, colour, INK)
        drawing.text(32 + 92 * group, 62, f"{4 * group}–{4 * group + 3}", 11, "start")
    x = float(left)
    for which, name in panels.items():
        drawing.text(x, 88, name, 13, "start", bold=True)
        drawing.text(x - 6, top - 12, "chunk", 10, "end")
        for chunk in range(counts[which]):
            drawing.text(x + (chunk + 0.5) * cell, top - 12, str(chunk), 10)
        for row in range(rows):
            drawing.text(x - 6, top + (row + 0.5) * line, f"row {row}", 10, "end")
        for touch in maps["swizzled", which]:
            if touch.row < rows:
                _chunk(drawing, touch, (x + touch.col * cell, top + touch.row * line), cell, line)
        picked = 2
        drawing.line(x + picked * cell, top + rows * line + 4, x + (picked + 1) * cell, top + rows * line + 4, INK, 3)
        count = wavefronts(maps, which, picked)
        many = "1 wavefront" if count == 1 else f"{count} wavefronts"
        drawing.text(x, top + rows * line + 22, f"chunk {picked} of rows 0 to 7: {many}", 12, "start")
        x += counts[which] * cell + gap
    return drawing


def _chunk(drawing: Drawing, touch: Touch, origin: tuple[float, float], cell: float, line: float) -> None:
    fill = EIGHT[touch.bank // 4]
    drawing.rect(*origin, cell, line, fill, INK)
    ink = "white" if fill in WHITE_INK else INK
    drawing.text(origin[0] + cell / 2, origin[1] + line / 2, str(touch.word * 2), 10, colour=ink)


BITS = {"333": "Swizzle<3,3,3>", "233": "Swizzle<2,3,3>", "343": "Swizzle<3,4,3>", "232": "Swizzle<2,3,2>"}


def moved(maps: Maps, which: str) -> dict[int, int]:
    """The bit onto which the swizzle XORs each bit of an offset, for those that it does."""
    found = {}
    for touch in maps["bits", which]:
        onto = touch.word ^ 1 << touch.thread
        if onto:
            found[touch.thread] = onto.bit_length() - 1
    return found


def bits(maps: Maps) -> Drawing:
    """For four swizzles the bits of an offset, with arrows from those that are XORed onto others."""
    cell, line, left, step, top = 46, 26, 176, 86, 90
    count = 1 + max(touch.thread for touch in maps["bits", "333"])
    drawing = Drawing(left + count * cell + 20, top + step * len(BITS) + 8, "What Swizzle<B, M, S> does to the bits of an offset")
    drawing.text(12, 18, "Swizzle<B, M, S>: B bits from bit M + S on, XOR onto B bits from bit M on", 14, "start", bold=True)
    for i, (text, fill) in enumerate(
        (("is XORed onto another bit, and stays", "#56B4E9"), ("changes", ORANGE), ("stays", "#eeeeee"))
    ):
        drawing.rect(12 + (0, 264, 350)[i], 33, 14, 14, fill, INK)
        drawing.text(32 + (0, 264, 350)[i], 40, text, 12, "start")
    drawing.text(left - 8, 72, "bit of the offset", 11, "end")
    for bit in range(count):
        drawing.text(left + (count - bit - 0.5) * cell, 72, str(bit), 11)
    for i, (which, name) in enumerate(BITS.items()):
        y = top + step * i
        drawing.text(12, y + line / 2, name, 13, "start", bold=True)
        onto = moved(maps, which)
        for bit in range(count):
            fill = ORANGE if bit in onto.values() else "#56B4E9" if bit in onto else "#eeeeee"
            x = left + (count - bit - 1) * cell
            drawing.rect(x, y, cell, line, fill, INK)
            if bit in onto.values():
                (source,) = (one for one, other in onto.items() if other == bit)
                drawing.text(x + cell / 2, y + line / 2, f"{bit} ^ {source}", 11)
            else:
                drawing.text(x + cell / 2, y + line / 2, str(bit), 11)
        for height, (source, bit) in enumerate(sorted(onto.items())):
            start, end = (left + (count - one - 0.5) * cell for one in (source, bit))
            low = y + line + 12 + 10 * height
            drawing.line(start, y + line, start, low, INK)
            drawing.line(start, low, end, low, INK)
            drawing.line(end, low, end, y + line + 1, INK)
            drawing.line(end, y + line + 1, end - 4, y + line + 7, INK)
            drawing.line(end, y + line + 1, end + 4, y + line + 7, INK)
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem, from CuTe's maps."""
    before_and_after = {"033_64": "Before: rows of 64 elements", "333_64": "After: Swizzle<3,3,3>"}
    narrow = {"033_32": "none", "233_32": "Swizzle<2,3,3>", "333_32": "Swizzle<3,3,3>"}
    return {
        "19_layouts": layouts(maps),
        "19_fragments": fragments.held(maps, "cute", ATOM),
        "19_tiled_mma": tiled_mma(maps),
        "20_copy": copied(maps),
        "20_swizzle": swizzled(maps, before_and_after, "The chunks of eight rows of 128 bytes, before and after the swizzle", 8),
        "20_swizzle_64_bytes": swizzled(maps, narrow, "The chunks of 16 rows of 64 bytes", 16),
        "20_swizzle_bits": bits(maps),
    }
