"""The roofline from measured ceilings: rungs at a few sizes under the DRAM slope and the compute roof.

Arithmetic intensity here is FLOP per compulsory byte: A and B read once, C written once (and read once where beta is
not 0). It belongs to the problem, not to the kernel, so the rungs of one size stand above one another.
"""

import math

import numpy as np
from matplotlib.figure import Figure

from plots.data.selection import Table
from plots.data.units import Shape, compulsory_bytes, digits
from plots.figures import style
from plots.figures.labels import Label, height_of, label_right, told

APART = 3.5  # least quotient of two intensities in the figure


def intensity(table: Table, shape: Shape) -> float:
    """FLOP per compulsory byte."""
    reads_c = table.condition.beta != 0
    return shape.flop / compulsory_bytes(shape, table.operand_bytes, table.out_bytes, reads_c)


def possible(table: Table) -> bool:
    """True where both roofs are measured and there is a point to draw."""
    return bool(table.ceilings) and table.dram_gbs > 0 and bool(_sizes(table))


def _sizes(table: Table) -> list[Shape]:
    """The headline shape, the lowest intensity measured, and squares between, each apart enough for its label."""
    timed = [s for s in table.shapes if any(table.value(k, s) > 0 for k in table.kernels)]
    if not timed:
        return []
    smaller = [s for s in table.squares if s in timed and s.flop < table.headline.flop]
    lowest = min(timed, key=lambda s: intensity(table, s))
    chosen: list[Shape] = []
    for shape in [table.headline, lowest, *smaller[:1], *smaller[len(smaller) // 2 :][:1]]:
        x = intensity(table, shape)
        if all(not 1 / APART < x / intensity(table, other) < APART for other in chosen):
            chosen.append(shape)
    return sorted(chosen, key=lambda s: intensity(table, s))


def draw(table: Table) -> Figure:
    """TFLOP/s over FLOP/byte, both logarithmic."""
    sizes = _sizes(table)
    inner = max(4.3, height_of(len(table.kernels) + 1))
    fig = style.figure(inner + 1.1)
    ax = fig.add_axes((0.075, 0.62 / (inner + 1.1), 0.69, inner / (inner + 1.1)))
    ax.set_xscale("log")
    ax.set_yscale("log")
    hue, mark = style.colours(table.kernels), style.markers(table.kernels)
    labels = []
    for kernel in table.kernels:
        points = [(intensity(table, s), table.value(kernel, s) / 1000) for s in sizes]
        points = [(x, y) for x, y in points if math.isfinite(y)]
        if points:
            ax.plot(*zip(*points, strict=True), mark[kernel], color=hue[kernel], markersize=6.5)
            for size in sizes:
                (point,) = ax.plot(intensity(table, size), table.value(kernel, size) / 1000, "o", markersize=9, alpha=0)
                style.hover(told(table, kernel, size), point)
            labels.append(Label(*points[-1], kernel, hue[kernel]))
    for size in sizes:
        least, rate, most = (rate / 1000 for rate in table.span("cuBLAS", size))
        ax.plot(intensity(table, size), rate, "_", color="black", markersize=20, markeredgewidth=2.2)
        ax.plot([intensity(table, size)] * 2, [least, most], color="black", linewidth=2.2)
    if math.isfinite(rate):
        labels.append(Label(intensity(table, sizes[-1]), rate, "cuBLAS", "black", "bold"))
    _roofs(ax, table, sizes)
    label_right(ax, labels)
    return fig


def _roofs(ax, table: Table, sizes: list[Shape]) -> None:
    """The two roofs, their names, the sizes along the foot, the limits."""
    *lower, highest = table.ceilings
    roof = highest.gflops / 1000
    slope = table.dram_gbs / 1000  # TB/s, so TFLOP/s per FLOP/byte
    ridge = roof / slope
    known = [table.value(k, s) / 1000 for k in table.kernels for s in sizes if table.value(k, s) > 0]
    left, right = min(ridge / 16, intensity(table, sizes[0]) / 2), max(ridge * 2, intensity(table, sizes[-1]) * 3)
    bottom, top = min(*known, left * slope) / 3, roof * 2
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    xs = np.geomspace(left, right, 200)
    ax.plot(xs, np.minimum(xs * slope, roof), color=style.INK, linewidth=1.6)
    for ceiling in lower:
        limit = ceiling.gflops / 1000
        ax.plot([limit / slope, right], [limit, limit], color=style.INK, linewidth=1.0)
        ax.text(1.15 * limit / slope, limit / 1.08, f"{ceiling.instruction} {digits(limit)} TFLOP/s", ha="left", va="top")
    ax.text(ridge * 1.1, roof * 1.1, f"{highest.instruction} {digits(roof)} TFLOP/s", ha="left", va="bottom")
    angle = ax.transData.transform([(left, left * slope), (ridge, roof)])
    angle = math.degrees(math.atan2(angle[1][1] - angle[0][1], angle[1][0] - angle[0][0]))
    middle = math.sqrt(left * ridge)
    text = f"DRAM copy {digits(slope)} TB/s"
    ax.text(middle / 1.08, middle * slope * 1.08, text, rotation=angle, ha="center", va="bottom", rotation_mode="anchor")
    for size in sizes:
        x = intensity(table, size)
        ax.axvline(x, color="#dddddd", linewidth=0.8, zorder=0)
        ax.text(x, bottom * 1.12, f" {size}\n {digits(x)} FLOP/B", ha="left", va="bottom", fontsize=9)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.set_xlabel("arithmetic intensity: FLOP per compulsory byte (A and B read once, C written once)")
    ax.set_title("TFLOP/s under the measured roofs")
