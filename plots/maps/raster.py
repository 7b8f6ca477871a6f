"""The figure of chapter 15: which tiles of C run side by side in each order, and what they need of A and B."""

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, Drawing
from plots.maps.index_maps import Maps, regions

SMS = 132  # of an H200: so many tiles run at any time
TILE = (256, 128)  # rows and columns of C
CELL = (12, 6)  # pixels, in the tile's proportion
WAVES = [BLUE, ORANGE, GREEN]
TITLES = {"1": "row by row (group_size_m = 1)", "8": "groups of 8 tile rows (group_size_m = 8)"}


def needed(maps: Maps, group: str, wave: int = 0) -> tuple[int, int]:
    """How many tile rows and tile columns the tiles of a wave lie in."""
    tiles = [touch for touch in maps["raster", group] if touch.thread // SMS == wave]
    return len({tile.row for tile in tiles}), len({tile.col for tile in tiles})


def order(maps: Maps) -> Drawing:
    """C in tiles, once for each order; the first waves in colour."""
    height, width = ((1 + max(touch[axis] for touch in maps["raster", "1"])) * CELL[axis - 1] for axis in (1, 2))
    left, gap, top = 20, 40, 76
    drawing = Drawing(left + 2 * width + gap + left, top + height + 44, "The order of tiles of C at 8192 cubed")
    drawing.text(left, 18, f"Tiles of C that run side by side on {SMS} SMs, 8192³", 14, "start", bold=True)
    for panel, (group, title) in enumerate(TITLES.items()):
        x = left + panel * (width + gap)
        rows, cols = needed(maps, group)
        drawing.text(x, 42, title, 13, "start", bold=True)
        said = f"wave 1: {rows} tile rows + {cols} tile columns, {rows * TILE[0] + cols * TILE[1]} rows of K"
        drawing.text(x, 62, said, 11, "start")
        drawing.rect(x, top, width, height, "white", INK)
        wave_of = {(touch.row, touch.col): touch.thread // SMS for touch in maps["raster", group]}
        for wave, (row, col, tall, wide) in regions(wave_of):
            fill = WAVES[wave] if wave < len(WAVES) else "#f1f1f1" if wave % 2 else "white"
            drawing.rect(x + col * CELL[1], top + row * CELL[0], wide * CELL[1], tall * CELL[0], fill, GRID)
    for wave, colour in enumerate(WAVES):
        x = left + 110 * wave
        drawing.rect(x, top + height + 18, 14, 14, colour, INK)
        drawing.text(x + 22, top + height + 25, f"wave {wave + 1}", 12, "start")
    drawing.text(left + 110 * len(WAVES), top + height + 25, "the others grey and white in turn", 12, "start")
    return drawing


def figures(maps: Maps) -> dict[str, Drawing]:
    """This figure by file stem."""
    return {"15_raster": order(maps)}
