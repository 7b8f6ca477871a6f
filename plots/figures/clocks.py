"""The clock that each rung ran at, by type and size, coloured by its share of the highest that was seen."""

import math
from statistics import median

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots.data.rungs import order
from plots.data.selection import Table
from plots.data.units import Shape, whole
from plots.figures import style
from plots.figures.heatmap import ink
from plots.figures.labels import told

RAMP = matplotlib.colormaps["YlOrRd_r"]
LOWEST = 0.6  # of the highest clock: the darkest colour
ROW = 0.25  # inches
COLUMNS = 12  # that there is room for; fewer leave some free


def possible(tables: list[Table]) -> bool:
    """True where clocks were recorded."""
    return any(table.knows("clock_mhz") for table in tables)


def draw(tables: list[Table], highest: float) -> Figure:
    """Rungs down and cuBLAS last, sizes of each type across; MHz. A dot: a limit held the clock back."""
    kernels = sorted({kernel for table in tables for kernel in table.kernels}, key=order)
    columns = [(table, shape) for table in tables for shape in table.front]
    fig = style.figure(0.85 + ROW * (len(kernels) + 1.3))
    height = fig.get_figheight()
    ax = fig.add_axes((0.205, 0.1 / height, 0.785, 1 - 0.9 / height))
    ax.set_xlim(0, max(len(columns), COLUMNS))
    ax.set_ylim(len(kernels) + 1.3, 0)
    for y, kernel in enumerate(kernels):
        ax.text(-0.12, y + 0.5, kernel, ha="right", va="center", fontsize=9.5)
        for x, (table, shape) in enumerate(columns):
            cell = table.cells.get((kernel, shape))
            held = bool(cell) and any(row.throttle not in ("", "none") for row in cell.sittings)
            clock = table.value(kernel, shape, "clock_mhz")
            _cell(ax, x, y, clock, highest, held, told(table, kernel, shape))
    ax.text(-0.12, len(kernels) + 0.8, "cuBLAS", ha="right", va="center", fontsize=9.5, fontweight="bold")
    for x, (table, shape) in enumerate(columns):
        clock = _of_cublas(table, shape)
        _cell(ax, x, len(kernels) + 0.3, clock, highest, False, f"cuBLAS, {table.type} at {shape}: {whole(clock)} MHz")
    _heads(ax, tables)
    fig.text(0.02, 1 - 0.16 / height, f"SM clock, MHz; {whole(highest)} is the highest seen", va="center", fontsize=11)
    return fig


def _of_cublas(table: Table, shape: Shape) -> float:
    """The median over rungs of the clock that cuBLAS ran at beside them."""
    known = [value for kernel in table.kernels for value in table.numbers(kernel, shape, "cublas_clock_mhz")]
    return median(known) if known else math.nan


def _cell(ax: Axes, x: float, y: float, clock: float, highest: float, held: bool, text: str) -> None:
    if not clock > 0:
        return
    face = RAMP(Normalize(LOWEST, 1, clip=True)(clock / highest))
    box = ax.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white", linewidth=1))
    number = ax.text(x + 0.5, y + 0.5, whole(clock) + " •" * held, ha="center", va="center", fontsize=8.5, color=ink(face))
    style.hover(f"{text}; {100 * clock / highest:.0f} % of the highest clock", box, number)


def _heads(ax: Axes, tables: list[Table]) -> None:
    """The types above their sizes."""
    x = 0
    for table in tables:
        ax.text(x + 0.05, -1.55, table.type, ha="left", va="center", fontweight="bold")
        for place, shape in enumerate(table.front):
            said = f"{shape}" if shape.is_square else "×\n".join(map(str, shape))
            ax.text(x + place + 0.5, -0.55, said, ha="center", va="center", fontsize=8.5)
        x += len(table.front)
    ax.set_axis_off()
