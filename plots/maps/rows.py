"""Figures of tiles in rows of 128 bytes, for chapters 12 and 13: without a skew, with it (11) and swizzled (12)."""

from plots.maps.drawing import GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import BANKS, Maps, shade, wavefronts

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


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    what = "Loading a[0] from chunk 2 of eight rows: 4 bytes per lane"
    return {
        "12_places": places(maps),
        "12_load": wavefronts(maps, "row_load", list(LAYOUTS), what),
        "12_copy": copies(maps),
    }
