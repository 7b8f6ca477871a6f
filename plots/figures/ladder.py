"""The ladder at one size: a bar per rung, and what each step gained."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.rungs import is_variant
from plots.data.selection import Table
from plots.data.units import Shape, digits, quotient, ratio, tflops
from plots.figures import style
from plots.figures.labels import told

COLUMNS = {"TFLOP/s": 1.13, "gain": 1.40, "of cuBLAS": 1.60}  # right edges, in axes widths


def gain_text(table: Table, kernel: str, shape: Shape) -> str:
    """The gain as text, "1.24 × 05"; empty where it is not known."""
    step, before = table.gain(kernel, shape)
    return f"{digits(step)} × {before}" if math.isfinite(step) else ""


def draw(table: Table, shape: Shape) -> Figure:
    """Horizontal bars in ladder order, the baselines below, numbers in columns at the right."""
    names = [*table.kernels, *table.baselines]
    fig = style.figure(1.0 + 0.34 * len(names))
    height = fig.get_figheight()
    ax = fig.add_axes((0.22, 0.55 / height, 0.475, 1 - 0.95 / height))
    hue = style.colours(table.kernels)
    for place, name in enumerate(names):
        rate = table.baseline(name, shape) if name in table.baselines else table.value(name, shape)
        form = _baseline_form(name) if name in table.baselines else _rung_form(name, hue[name])
        bar = ax.barh(place, 0 if math.isnan(rate) else rate / 1000, height=0.72, **form)
        if name not in table.baselines:
            style.hover(told(table, name, shape), *bar)
        for text, edge in zip(_numbers(table, name, shape, rate), COLUMNS.values(), strict=True):
            ax.text(edge, place, text, transform=ax.get_yaxis_transform(), ha="right", va="center")
    for head, edge in COLUMNS.items():
        ax.text(edge, -0.85, head, transform=ax.get_yaxis_transform(), ha="right", va="center", fontweight="bold")
    _axes(ax, table, names, shape)
    return fig


def _rung_form(kernel: str, colour: str) -> dict:
    return {"color": colour, "hatch": "////" if is_variant(kernel) else None, "edgecolor": "white", "linewidth": 0}


def _baseline_form(name: str) -> dict:
    return {"color": "black"} if name == "cuBLAS" else {"color": "white", "edgecolor": "black", "hatch": "xx"}


def _numbers(table: Table, name: str, shape: Shape, rate: float) -> tuple[str, str, str]:
    """TFLOP/s, gain over the predecessor, ratio to cuBLAS, as written beside a bar."""
    if name in table.baselines:
        return tflops(rate), "", ratio(quotient(rate, table.baseline("cuBLAS", shape)))
    cell = table.cells.get((name, shape))
    if math.isnan(rate):
        return (cell.status if cell else "not run"), "", ""
    return tflops(rate), gain_text(table, name, shape), ratio(table.value(name, shape, "ratio_cublas"))


def _axes(ax: Axes, table: Table, names: list[str], shape: Shape) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"TFLOP/s at {shape}")
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    limits = {ceiling.instruction: ceiling.gflops / 1000 for ceiling in table.ceilings}
    for limit in limits.values():
        ax.axvline(limit, color=style.FAINT, linewidth=1.2, linestyle="-.")
        ax.set_xlim(right=max(limit * 1.02, ax.get_xlim()[1]))
    if limits:
        named = ", ".join(f"{instruction} {digits(limit)}" for instruction, limit in limits.items())
        ax.set_xlabel(f"TFLOP/s at {shape} (dash-dotted: the ceiling of {named})")
