"""How far each rung gets, all types beside one another: TFLOP/s beside cuBLAS's, and as a bar the share of its ceiling."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.rungs import is_variant, order
from plots.data.selection import Table
from plots.data.units import ratio, tflops
from plots.figures import style
from plots.figures.labels import told

ROW, HEAD = 0.27, 0.75  # inches
NAMES = 0.215  # of the width
HUES = {"FFMA": "#c6dbef", "mma.sync": "#c7e9c0", "wgmma": "#fdd0a2"}
OTHER_HUE = "#dddddd"
RATE, BESIDE, SHARE = 0.34, 0.63, 0.925  # right edges of a column's numbers
COLUMNS = 4  # that there is room for; fewer leave some free


def draw(tables: list[Table]) -> Figure:
    """A line per rung under the heading of its instruction, a column per type; each type at its headline size."""
    facts = tables[0].facts
    kernels = sorted({kernel for table in tables for kernel in table.kernels}, key=order)
    instructions = dict.fromkeys(facts.rungs[k].instruction if k in facts.rungs else "" for k in kernels)
    lines = [
        (instruction, kernel)
        for instruction in instructions
        for kernel in ["", *(k for k in kernels if (facts.rungs[k].instruction if k in facts.rungs else "") == instruction)]
    ]
    fig = style.figure(HEAD + ROW * (len(lines) + 0.6))
    height = fig.get_figheight()
    ax = fig.add_axes((NAMES, 0.1 / height, 0.985 - NAMES, 1 - (HEAD + 0.1) / height))
    for y, (instruction, kernel) in enumerate(lines):
        if kernel:
            ax.text(-0.03, y, kernel, ha="right", va="center")
        else:
            ax.text(-0.03, y, instruction or "unknown instruction", ha="right", va="center", fontweight="bold")
        for x, table in enumerate(tables):
            if kernel in table.kernels:
                _cell(ax, x, y, table, kernel)
            elif not kernel:
                _ceiling(ax, x, y, table, instruction)
    for x, table in enumerate(tables):
        _column(ax, x, table)
    ax.set_xlim(0, max(len(tables), COLUMNS))
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_axis_off()
    return fig


def _cell(ax: Axes, x: int, y: int, table: Table, kernel: str) -> None:
    share, rate = table.share(kernel, table.headline), table.value(kernel, table.headline)
    rung = table.facts.rungs.get(kernel)
    parts = [ax.barh(y, 0.94, left=x, height=0.8, color="#f4f4f4")[0]]
    if share > 0:
        hatch = {"hatch": "////", "edgecolor": "white", "linewidth": 0} if is_variant(kernel) else {}
        colour = HUES.get(rung.instruction, OTHER_HUE) if rung else OTHER_HUE
        parts += ax.barh(y, 0.94 * min(share, 1), left=x, height=0.8, color=colour, **hatch)
    cell = table.cells.get((kernel, table.headline))
    text = tflops(rate) if math.isfinite(rate) else cell.status if cell else "not run"
    parts.append(ax.text(x + RATE, y, text, ha="right", va="center"))
    if math.isfinite(beside := table.cublas(kernel, table.headline)):
        parts.append(ax.text(x + BESIDE, y, tflops(beside), ha="right", va="center", color="#555555"))
    if share > 0:
        parts.append(ax.text(x + SHARE, y, ratio(share), ha="right", va="center"))
    style.hover(told(table, kernel, table.headline), *parts)


def _ceiling(ax: Axes, x: int, y: int, table: Table, instruction: str) -> None:
    """What the instruction was measured to reach, where a rung of this type uses it."""
    own = {ceiling.instruction: ceiling for ceiling in table.ceilings}
    if instruction in own:
        ax.text(x + RATE, y, tflops(own[instruction].gflops), ha="right", va="center", color="#555555", style="italic")
        ax.text(x + SHARE, y, "its ceiling", ha="right", va="center", color="#555555", style="italic")


def _column(ax: Axes, x: int, table: Table) -> None:
    """What the column holds, above it."""
    ax.text(x + 0.02, -1.85, f"{table.type} at {table.headline}", ha="left", va="center", fontweight="bold", fontsize=11)
    heads = {RATE: "TFLOP/s", BESIDE: "cuBLAS", SHARE: "of ceiling"}
    for place, head in heads.items():
        ax.text(x + place, -0.95, head, ha="right", va="center", fontsize=8)
