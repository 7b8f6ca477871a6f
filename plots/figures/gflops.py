"""Throughput against size over the square shapes: all rungs, and the libraries, which were timed beside each."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from plots.data.selection import Table
from plots.data.units import Shape, tflops
from plots.figures import style
from plots.figures.labels import Label, height_of, label_right, told

BASELINES = {"cuBLAS": ("-", 2.6), "cuBLASLt": (":", 2.0), "CUTLASS": ("--", 1.6)}


def draw(table: Table) -> Figure:
    """TFLOP/s over the edge of the matrices, log2 axis; each ceiling as a line."""
    squares = table.squares
    inner = max(4.5, height_of(len(table.kernels) + len(table.baselines) + len(table.ceilings)))
    fig = style.figure(inner + 1.1)
    ax = fig.add_axes((0.075, 0.64 / (inner + 1.1), 0.69, inner / (inner + 1.1)))
    labels = []
    hue, mark = style.colours(table.kernels), style.markers(table.kernels)
    for kernel in table.kernels:
        rates = [table.value(kernel, shape) / 1000 for shape in squares]
        form = {"linestyle": style.dashes(kernel), "marker": mark[kernel], "color": hue[kernel]}
        ax.plot(_edges(squares), rates, markersize=5, linewidth=1.5, label=kernel, **form)
        for shape, rate in zip(squares, rates, strict=True):
            if math.isfinite(rate):  # a larger target for the pointer
                (point,) = ax.plot([shape.m], [rate], "o", markersize=9, alpha=0)
                style.hover(told(table, kernel, shape), point)
        labels += _end_label(squares, rates, kernel, hue[kernel])
    alone = {"marker": "_", "markersize": 20} if len(squares) == 1 else {}  # a line of one point cannot be seen
    for name in table.baselines:
        dash, width = BASELINES[name]
        least, rates, most = zip(*([rate / 1000 for rate in table.span(name, shape)] for shape in squares), strict=True)
        if name == "cuBLAS":  # bands of all would hide one another
            ax.fill_between(_edges(squares), least, most, color="black", alpha=0.15, linewidth=0, zorder=1.8)
        ax.plot(_edges(squares), rates, linestyle=dash, linewidth=width, color="black", label=name, zorder=1.9, **alone)
        labels += _end_label(squares, rates, name, "black", "bold")
    for ceiling in table.ceilings:
        ax.axhline(ceiling.gflops / 1000, color=style.FAINT, linewidth=1.2, linestyle="-.")
    _axes(ax, squares)
    for ceiling in table.ceilings:
        text = f"{ceiling.instruction} ceiling {tflops(ceiling.gflops)}"
        labels.append(Label(ax.get_xlim()[1], ceiling.gflops / 1000, text, style.FAINT))
    label_right(ax, labels)
    return fig


def _edges(squares: list[Shape]) -> list[int]:
    return [shape.m for shape in squares]


def _end_label(squares: list[Shape], rates: Sequence[float], text: str, colour: str, weight: str = "normal") -> list[Label]:
    """A label at the last size that has a number; none where there is no number at all."""
    known = [(shape.m, rate) for shape, rate in zip(squares, rates, strict=True) if math.isfinite(rate)]
    return [Label(*known[-1], text, colour, weight)] if known else []


def _axes(ax, squares: list[Shape]) -> None:
    edges = _edges(squares)
    ax.set_xscale("log", base=2)
    powers = [edge for edge in edges if edge & (edge - 1) == 0]
    ax.set_xticks(powers or edges, [str(edge) for edge in powers or edges])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(edges[0] / (1.12 if len(edges) > 1 else 8), edges[-1] * 1.12)
    ax.set_ylim(bottom=0)
    ax.margins(y=0.03)
    ax.grid(axis="y")
    ax.set_axisbelow(True)
    ax.set_xlabel("M = N = K (elements)")
    ax.set_title("TFLOP/s, that is 2·M·N·K / median time", color=style.INK)
