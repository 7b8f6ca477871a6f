"""The figures of chapter 15: which tiles of C run side by side in each order, and what they need of A and B."""

from itertools import pairwise

from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, Drawing
from plots.maps.index_maps import Maps, Touch, regions

SMS = 132  # of an H200: so many tiles run at any time
TILE = (256, 128)  # rows and columns of C
CELL = (12, 6)  # pixels, in the tile's proportion
WAVES = [BLUE, ORANGE, GREEN]
ALL_WAVES = [*WAVES, PURPLE]  # at 4096 cubed
AT_4096 = "raster_4096"
TITLES = {"1": "row by row (group_size_m = 1)", "8": "groups of 8 tile rows (group_size_m = 8)"}


def needed(maps: Maps, group: str, wave: int = 0, name: str = "raster") -> tuple[int, int]:
    """How many tile rows and tile columns the tiles of a wave lie in."""
    tiles = [touch for touch in maps[name, group] if touch.thread // SMS == wave]
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


def waves(maps: Maps) -> Drawing:
    """C at 4096 cubed in tiles, once for each order: every wave in its colour, and the order in the first one."""
    tile = (28, 14)  # pixels, in the tile's proportion
    height, width = ((1 + max(touch[axis] for touch in maps[AT_4096, "1"])) * tile[axis - 1] for axis in (1, 2))
    left, gap, top = 20, 28, 100
    drawing = Drawing(left + 2 * width + gap + left, top + height + 46, "The waves of tiles of C at 4096 cubed")
    count = len(maps[AT_4096, "1"])
    said = f"The {count} tiles of C at 4096³ in the order in which {SMS} SMs take them: {SMS} tiles are a wave"
    drawing.text(left, 18, said, 14, "start", bold=True)
    for panel, (group, title) in enumerate(TITLES.items()):
        x = left + panel * (width + gap)
        drawing.text(x, 46, title, 13, "start", bold=True)
        rows, cols = needed(maps, group, 0, AT_4096)
        said = f"wave 1 needs {rows} tile rows of A and {cols} tile columns of B:"
        drawing.text(x, 66, said, 11, "start")
        drawing.text(x, 82, f"{rows} × {TILE[0]} + {cols} × {TILE[1]} = {rows * TILE[0] + cols * TILE[1]} rows of K", 11, "start")
        ordered = sorted(maps[AT_4096, group])
        for touch in ordered:
            place = x + touch.col * tile[1], top + touch.row * tile[0]
            drawing.rect(*place, tile[1], tile[0], ALL_WAVES[touch.thread // SMS], "white")
        _order(drawing, ordered[:SMS], (x, top), tile)
        drawing.rect(x, top, width, height, "none", INK)
    for wave, colour in enumerate(ALL_WAVES):
        x, first = left + 158 * wave, wave * SMS
        drawing.rect(x, top + height + 18, 14, 14, colour, INK)
        drawing.text(x + 22, top + height + 25, f"wave {wave + 1}: {first} to {min(first + SMS, count) - 1}", 12, "start")
    drawing.text(left + 158 * len(ALL_WAVES), top + height + 25, "square: tile 0; line: the order in wave 1", 12, "start")
    return drawing


def _order(drawing: Drawing, tiles: list[Touch], origin: tuple[float, float], tile: tuple[int, int]) -> None:
    """A line from each tile to the next, and a square on the first."""
    at = [(origin[0] + (touch.col + 0.5) * tile[1], origin[1] + (touch.row + 0.5) * tile[0]) for touch in tiles]
    for (x1, y1), (x2, y2) in pairwise(at):
        drawing.line(x1, y1, x2, y2, INK, 1)
    drawing.rect(at[0][0] - 4, at[0][1] - 4, 8, 8, "white", INK)


def figures(maps: Maps) -> dict[str, Drawing]:
    """These figures by file stem."""
    return {"15_raster": order(maps), "15_waves": waves(maps)}
