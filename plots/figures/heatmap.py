"""Ratio to cuBLAS over shapes and rungs, printed in every cell, coloured about 1."""

import matplotlib
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots.data.families import by_family
from plots.data.rungs import number
from plots.data.selection import Table
from plots.data.units import Shape, ratio
from plots.figures import style
from plots.figures.labels import told

RAMP = matplotlib.colormaps["PuOr"]
ROW = 0.27  # inches
LEFT, WIDE = 0.19, 0.70  # of the figure's width
LETTER = 0.66  # widths of a letter over its size, at most


def draw(table: Table) -> Figure:
    """Shapes down, rungs across; purple above 1, orange below; grey where a rung refused the shape."""
    groups = by_family(table.shapes, table.facts)
    rows = len(table.shapes) + 1.3 * len(groups)
    fig = style.figure(1.0 + ROW * rows)
    height = fig.get_figheight()
    ax = fig.add_axes((LEFT, 0.12 / height, WIDE, 1 - 0.62 / height))
    norm = _norm(table)
    y = 0.0
    for name, shapes in groups.items():
        ax.text(0, y + 0.85, name, fontweight="bold", va="center", fontsize=9.5)
        y += 1.3
        for shape in shapes:
            ax.text(-0.1, y + 0.5, str(shape), ha="right", va="center", fontsize=9.5)
            for x, kernel in enumerate(table.kernels):
                _cell(ax, x, y, table, kernel, shape, norm)
            y += 1
    ax.set_xlim(0, len(table.kernels))
    ax.set_ylim(y, 0)
    ax.xaxis.tick_top()
    ax.set_xticks(
        [x + 0.5 for x in range(len(table.kernels))],
        [number(k) for k in table.kernels],
        fontsize=min(10, _letters(table, "09a ")),
    )
    ax.set_yticks([])
    ax.tick_params(length=0)
    ax.set_frame_on(False)
    fig.text(LEFT, 1 - 0.16 / height, f"time of cuBLAS / time of the rung, {table.type}", va="center", fontsize=11)
    _colour_bar(fig, norm, height)
    return fig


def _norm(table: Table) -> TwoSlopeNorm:
    """0 to 1 to the best ratio, which is shown as at least 1.2 and at most 2."""
    known = [table.value(k, s, "ratio_cublas") for k in table.kernels for s in table.shapes]
    best = max((r for r in known if r > 0), default=1.0)
    return TwoSlopeNorm(1, 0, min(max(best, 1.2), 2))


def _cell(ax, x: int, y: float, table: Table, kernel: str, shape: Shape, norm: TwoSlopeNorm) -> None:
    value = table.value(kernel, shape, "ratio_cublas")
    cell = table.cells.get((kernel, shape))
    known = value == value
    face = RAMP(norm(min(value, norm.vmax))) if known else "#eeeeee"
    box = ax.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white", linewidth=1))
    text = ratio(value) if known else "" if cell is None or cell.status == "ok" else cell.status
    size = min(9 if known else 7.5, _letters(table, text))
    number = ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=size, color=ink(face))
    style.hover(told(table, kernel, shape), box, number)


def _letters(table: Table, text: str) -> float:
    """The size of letters, in points, at which a text fits into a cell."""
    return 72 * style.WIDTH * WIDE / len(table.kernels) / (LETTER * max(len(text), 1))


def ink(face) -> str:
    """Black or white, whichever reads better on `face`."""
    red, green, blue = matplotlib.colors.to_rgb(face)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _colour_bar(fig: Figure, norm: TwoSlopeNorm, height: float) -> None:
    tall = min(2.4, height - 1.0)
    box = fig.add_axes((0.915, 1 - (0.5 + tall) / height, 0.018, tall / height))
    bar = fig.colorbar(matplotlib.cm.ScalarMappable(norm, RAMP), cax=box, ticks=[0, 0.5, 1, norm.vmax])
    bar.ax.set_yticklabels(["0", "0.5", "1", f"{norm.vmax:.2f}"])
    bar.outline.set_visible(False)
