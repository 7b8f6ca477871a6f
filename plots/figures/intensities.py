"""The roofline with each rung at its own measured intensity: FLOP per byte that it moved from DRAM, L2 and shared memory."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from plots.data.floors import LEVELS, Metrics, moved
from plots.data.rungs import number
from plots.data.selection import Table
from plots.data.units import Shape, digits
from plots.figures import style
from plots.figures.labels import Label, height_of, label_right, told

FONT = 8.5
LEFT, RIGHT, GAP = 0.06, 0.955, 0.075  # of the width


def points(table: Table, profile: dict[str, Metrics], shape: Shape) -> dict[str, dict[str, float]]:
    """FLOP per byte by rung and level, of the rungs that were timed and profiled."""
    return {
        kernel: {level: shape.flop / count for level, count in moved(profile[kernel]).items()}
        for kernel in table.kernels
        if kernel in profile and table.value(kernel, shape) > 0
    }


def draw(table: Table, profile: dict[str, Metrics], shape: Shape, bandwidths: dict[str, float]) -> Figure:
    """A panel per level with its slope (GB/s) and the instructions' roofs; the rungs by their numbers."""
    found = points(table, profile, shape)
    rates = {kernel: table.value(kernel, shape) / 1000 for kernel in found}
    fig = style.figure(max(4.6, 1.2 + height_of(len(found), FONT)))
    height = fig.get_figheight()
    wide = (RIGHT - LEFT - GAP * (len(LEVELS) - 1)) / len(LEVELS)
    top, bottom = 1.9 * max(c.gflops / 1000 for c in table.ceilings), min(rates.values()) / 2
    hue, mark = style.colours(list(found)), style.markers(list(found))
    for place, level in enumerate(reversed(LEVELS)):
        ax = fig.add_axes((LEFT + place * (wide + GAP), 0.6 / height, wide, 1 - 1.05 / height))
        at = {kernel: levels[level] for kernel, levels in found.items() if level in levels}
        _roofs(ax, table, level, bandwidths[level] / 1000, list(at.values()), (bottom, top))
        for kernel, x in at.items():
            (point,) = ax.plot(x, rates[kernel], mark[kernel], color=hue[kernel], markersize=6.5)
            style.hover(f"{told(table, kernel, shape)}; {digits(x)} FLOP per byte of {level}", point)
        label_right(ax, [Label(x, rates[kernel], number(kernel), hue[kernel]) for kernel, x in at.items()], FONT)
    title = f"TFLOP/s, {table.type} at {shape}, each rung over FLOP per byte that it moved"
    fig.text(LEFT, 1 - 0.17 / height, title, fontsize=11, va="center")
    return fig


def _roofs(ax: Axes, table: Table, level: str, slope: float, xs: list[float], limits: tuple[float, float]) -> None:
    """The bandwidth in TB/s as a slope, under the roof of each instruction, with their names."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    *_, highest = table.ceilings
    roof = highest.gflops / 1000
    ridge = roof / slope
    left, right = min([*xs, table.ceilings[0].gflops / 1000 / slope]) / 4.5, max([*xs, ridge]) * 2.5
    ax.set_xlim(left, right)
    ax.set_ylim(*limits)
    over = np.geomspace(left, right, 200)
    ax.plot(over, np.minimum(over * slope, roof), color=style.INK, linewidth=1.4)
    for ceiling in table.ceilings:
        limit = ceiling.gflops / 1000
        ax.plot([limit / slope, right], [limit, limit], color=style.INK, linewidth=1.0)
        ax.plot([left, limit / slope], [limit, limit], color="#dddddd", linewidth=0.8, zorder=0.5)
        ax.text(left * 1.1, limit, ceiling.instruction, ha="left", va="center", fontsize=FONT, bbox=style.CLEAR)
    ax.text(0.97, 0.03, f"{level}, {digits(slope)} TB/s", transform=ax.transAxes, ha="right", va="bottom", fontweight="bold")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(f"FLOP per byte of {level}", fontsize=FONT)
