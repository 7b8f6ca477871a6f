"""Figures of tiles in rows of 128 bytes, for chapters 11 to 13: without a skew, with it (11) and swizzled (12)."""

from plots.maps.drawing import GREEN, GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import BANKS, Maps, Touch, shade, wavefronts

LAYOUTS = {"no skew": "no skew: rows of 128 bytes", "11": "11: rows of 128 + 16 bytes", "12": "12: an XOR within the row"}
PICKED = 2  # the chunk that is picked out


def places(maps: Maps) -> Drawing:
    """Three panels: the 16-byte columns of shared memory across, its lines of 128 bytes down, in the cells the chunks."""
    side, line, left, gap, top = 32, 24, 46, 40, 96
    width = 8 * side
    key = left + 2 * (width + gap)
    drawing = Drawing(left + 3 * width + 2 * gap + 12, top + 9 * line + 14, "Where the chunks of eight rows lie")
    drawing.text(12, 18, "Where the chunks of 16 bytes of eight rows lie", 14, "start", bold=True)
    drawing.rect(key, 10, 20, 16, ORANGE, INK)
    drawing.text(key + 28, 18, f"chunk {PICKED} of each row", 12, "start")
    for row in range(9):
        drawing.text(left - 6, top + (row + 0.5) * line, f"line {row}", 10, "end")
    for panel, (layout, title) in enumerate(LAYOUTS.items()):
        x = left + panel * (width + gap)
        drawing.text(x, 48, title, 13, "start", bold=True)
        drawing.text(x, 66, "banks", 11, "start")
        for column in range(8):
            drawing.text(x + (column + 0.5) * side, 84, f"{column * 4}–{column * 4 + 3}", 9)
        count = 1 + max(touch.word // BANKS for touch in maps["row_place", layout])
        drawing.rect(x, top, width, count * line, "white", GRID)
        for touch in maps["row_place", layout]:
            row, column = touch.word // BANKS, touch.bank // 4
            fill, ink = shade(touch.row * 31 // 7)
            if touch.col == PICKED:
                fill, ink = ORANGE, INK
            drawing.rect(x + column * side, top + row * line, side, line, fill, INK)
            drawing.text(x + (column + 0.5) * side, top + (row + 0.5) * line, str(touch.col), 11, colour=ink)
    return drawing


def lines(maps: Maps, layout: str) -> int:
    """In how many pieces a warp's copy of 16 bytes per lane comes to lie, if each row is written line by line."""
    return len({(touch.row, touch.word // BANKS) for touch in maps["row_copy", layout]})


def copies(maps: Maps) -> Drawing:
    """What one cp.async of a warp writes: banks across, lines of 128 bytes down, in the cells the lanes."""
    cell, line, head, left = 26, 22, 56, 92
    heights = {layout: 1 + max(touch.word // BANKS for touch in maps["row_copy", layout]) for layout in LAYOUTS}
    height = 40 + sum(head + line * count for count in heights.values()) + 8
    drawing = Drawing(left + cell * BANKS + 12, height, "What one cp.async of a warp writes: lanes by bank and line")
    drawing.text(12, 18, "One cp.async of a warp, 16 bytes per lane: four rows", 14, "start", bold=True)
    y = 40.0
    for layout, count in heights.items():
        passes = 1 + max(touch.wavefront for touch in maps["row_copy", layout])
        said = f"{layout}: {passes} wavefronts by banks; {lines(maps, layout)} pieces, if each row is written line by line"
        drawing.text(12, y + 12, said, 13, "start", bold=True)
        drawing.text(left - 8, y + 40, "bank", 11, "end")
        for bank in range(0, BANKS, 2):
            drawing.text(left + (bank + 0.5) * cell, y + 40, str(bank), 11)
        y += head - 4
        for row in range(count):
            drawing.text(left - 8, y + (row + 0.5) * line, f"line {row}", 11, "end")
            drawing.rect(left, y + row * line, BANKS * cell, line, "white", GRID)
        for touch in maps["row_copy", layout]:
            if touch.word % 4:
                continue
            fill, ink = shade(touch.row * 10)
            x, top = left + touch.bank * cell, y + touch.word // BANKS * line
            drawing.rect(x, top, 4 * cell, line, fill, INK)
            drawing.text(x + 2 * cell, top + line / 2, str(touch.thread), 11, colour=ink)
        y += line * count + 4
    return drawing


SECTOR = 8  # words of 4 bytes in 32 bytes


def chunks(maps: Maps, layout: str) -> dict[int, list[Touch]]:
    """The chunks of each of eight rows, in the order of global memory."""
    found: dict[int, list[Touch]] = {}
    for touch in sorted(maps["row_place", layout], key=lambda touch: (touch.row, touch.col)):
        found.setdefault(touch.row, []).append(touch)
    return found


def torn(pair: list[Touch]) -> bool:
    """True where the two chunks of a sector of global memory come to lie in two sectors' places of shared memory."""
    return pair[0].word // SECTOR != pair[1].word // SECTOR


def pairs(row: list[Touch]) -> list[list[Touch]]:
    """A row's chunks, two and two: the sectors of global memory that they come from."""
    return [row[i : i + 2] for i in range(0, len(row), 2)]


def row_pieces(row: list[Touch]) -> list[list[Touch]]:
    """A row's chunks by the line of shared memory in which they lie."""
    of_line: dict[int, list[Touch]] = {}
    for touch in row:
        of_line.setdefault(touch.word // BANKS, []).append(touch)
    return list(of_line.values())


def sectors(row: list[Touch]) -> int:
    """How many sectors the pieces of a row want, each for itself."""
    return sum(len({touch.col // 2 for touch in piece}) for piece in row_pieces(row))


def torn_sectors(maps: Maps) -> Drawing:
    """Lines of shared memory down, its bytes across; the sectors whose chunks lie in two sectors' places are marked."""
    side, line, left, top = 62, 28, 62, 116
    rows = chunks(maps, "11")
    count = 1 + max(touch.word // BANKS for row in rows.values() for touch in row)
    key = left + 8 * side + 24
    drawing = Drawing(key + 330, top + count * line + 40, "Sectors of global memory in skewed rows of shared memory")
    drawing.text(12, 18, "11: eight rows of 128 bytes, 144 bytes apart, in lines of shared memory", 14, "start", bold=True)
    said = "A cell is a chunk of 16 bytes, row.chunk. In global memory chunks 2s and 2s + 1 of a row are one sector of 32 bytes."
    drawing.text(12, 40, said, 12, "start")
    for i, (text, fill) in enumerate(
        (("sector in one place", "#cfe3f1"), ("torn sector", ORANGE), ("torn, across two lines", GREEN))
    ):
        drawing.rect(12 + 190 * i, 56, 14, 14, fill, INK)
        drawing.text(34 + 190 * i, 63, text, 12, "start")
    drawing.text(left - 8, top - 16, "byte", 11, "end")
    for column in range(0, 9):
        drawing.text(left + column * side, top - 16, str(column * 16), 11)
    for y in range(count):
        drawing.text(left - 8, top + (y + 0.5) * line, f"line {y}", 11, "end")
        drawing.rect(left, top + y * line, 8 * side, line, "white", GRID)
    for row in rows.values():
        for pair in pairs(row):
            across = pair[0].word // BANKS != pair[1].word // BANKS
            fill = (GREEN if across else ORANGE) if torn(pair) else "#cfe3f1"
            for touch in pair:
                x, y = left + touch.bank // 4 * side, top + touch.word // BANKS * line
                drawing.rect(x, y, side, line, fill, "white")
                ink = "white" if fill == GREEN else INK
                drawing.text(x + side / 2, y + line / 2, f"{touch.row}.{touch.col}", 11, colour=ink)
    for column in range(0, 9, 2):
        drawing.line(left + column * side, top - 6, left + column * side, top + count * line + 4, INK, 2)
    drawing.text(left, top + count * line + 20, "Thick lines: places of 32 bytes.", 12, "start")
    heads = {"row": 0, "chunks by line": 92, "torn": 178, "sectors wanted": 262}
    for head, x in heads.items():
        drawing.text(key + 20 + x, top - 16, head, 11, bold=True)
    for number, row in rows.items():
        lengths = ", ".join(str(len(piece)) for piece in row_pieces(row))
        cells = [str(number), lengths, str(sum(torn(pair) for pair in pairs(row))), str(sectors(row))]
        for cell, x in zip(cells, heads.values(), strict=True):
            drawing.text(key + 20 + x, top + (number + 0.5) * line, cell, 11)
    sums = [sum(len(row_pieces(row)) for row in rows.values()), sum(torn(pair) for row in rows.values() for pair in pairs(row))]
    sums.append(sum(sectors(row) for row in rows.values()))
    for cell, x in zip(("all", f"{sums[0]} pieces", str(sums[1]), str(sums[2])), heads.values(), strict=True):
        drawing.text(key + 20 + x, top + (len(rows) + 0.5) * line, cell, 11, bold=True)
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    what = "Loading a[0] from chunk 2 of eight rows: 4 bytes per lane"
    return {
        "11_torn_sectors": torn_sectors(maps),
        "12_places": places(maps),
        "12_load": wavefronts(maps, "row_load", list(LAYOUTS), what),
        "12_copy": copies(maps),
    }
