"""The ladder at one size: a bar per rung beside cuBLAS of its own rounds, and what each step gained."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.rungs import is_variant
from plots.data.selection import Table
from plots.data.units import Shape, digits, ratio, tflops
from plots.figures import style
from plots.figures.labels import told

COLUMNS = {"TFLOP/s": 1.16, "cuBLAS": 1.33, "of cuBLAS": 1.54, "gain": 1.79}  # right edges, in axes widths


def draw(table: Table, shape: Shape) -> Figure:
    """Horizontal bars in ladder order, a mark of cuBLAS on each, numbers in columns at the right."""
    fig = style.figure(1.0 + 0.34 * len(table.kernels))
    height = fig.get_figheight()
    ax = fig.add_axes((0.22, 0.55 / height, 0.425, 1 - 0.95 / height))
    hue = style.colours(table.kernels)
    for place, kernel in enumerate(table.kernels):
        rate = table.value(kernel, shape)
        hatch = "////" if is_variant(kernel) else None
        form = {"color": hue[kernel], "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        bar = ax.barh(place, 0 if math.isnan(rate) else rate / 1000, height=0.72, **form)
        style.hover(told(table, kernel, shape), *bar)
        _mark(ax, place, table.cublas(kernel, shape) / 1000)
        for text, edge in zip(_numbers(table, kernel, shape), COLUMNS.values(), strict=True):
            ax.text(edge, place, text, transform=ax.get_yaxis_transform(), ha="right", va="center")
    for head, edge in COLUMNS.items():
        ax.text(edge, -0.85, head, transform=ax.get_yaxis_transform(), ha="right", va="center", fontweight="bold")
    _axes(ax, table, shape)
    return fig


def _mark(ax: Axes, place: int, rate: float) -> None:
    """What cuBLAS reached in the rounds of a bar's rung."""
    for colour, width in (("white", 4.5), ("black", 2.2)):
        ax.plot([rate, rate], [place - 0.42, place + 0.42], color=colour, linewidth=width, solid_capstyle="butt")


def _numbers(table: Table, kernel: str, shape: Shape) -> tuple[str, str, str, str]:
    """TFLOP/s, those of cuBLAS in the same rounds, the ratio, the gain over the predecessor: as written beside a bar."""
    cell = table.cells.get((kernel, shape))
    if math.isnan(table.value(kernel, shape)):
        return (cell.status if cell else "not run"), "", "", ""
    rates = tflops(table.value(kernel, shape)), tflops(table.cublas(kernel, shape))
    return *rates, ratio(table.value(kernel, shape, "ratio_cublas")), table.gain_text(kernel, shape)


def _axes(ax: Axes, table: Table, shape: Shape) -> None:
    ax.set_yticks(range(len(table.kernels)), table.kernels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table.kernels) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    limits = {ceiling.instruction: ceiling.gflops / 1000 for ceiling in table.ceilings}
    for limit in limits.values():
        ax.axvline(limit, color=style.FAINT, linewidth=1.2, linestyle="-.")
        ax.set_xlim(right=max(limit * 1.02, ax.get_xlim()[1]))
    said = f"TFLOP/s at {shape}; black marks: cuBLAS in the same rounds"
    if limits:
        said += "; dash-dotted: the ceiling of " + ", ".join(f"{name} {digits(limit)}" for name, limit in limits.items())
    ax.set_xlabel(said)
