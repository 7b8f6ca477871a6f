"""The map of wins: ratio to the best library for every shape, one column per type, coloured about 1."""

import matplotlib
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots.data.units import Shape, ratio
from plots.figures import style
from plots.figures.heatmap import RAMP, ink

ROW = 0.25  # inches
MANY_ROWS = 256  # of C: a prompt or a layer rather than a batch of single tokens
COLUMNS_OF_SHAPES = 2
COLUMNS_OF_TYPES = 4  # that there is room for; fewer leave some free


def group(shape: Shape) -> str:
    """What a shape is an example of."""
    if any(size % 64 for size in shape if size > MANY_ROWS):
        return "beside tiles"
    if shape.is_square:
        return "square"
    if min(shape.m, shape.n) <= MANY_ROWS:
        return "few rows or columns"
    if shape.k >= 8 * max(shape.m, shape.n) or shape.k <= min(shape.m, shape.n) // 16:
        return "long or short k"
    return "large, not square"


def label(found: pd.DataFrame, kind: str, results: str) -> str:
    """A column's types, under the rung that has it alone."""
    rungs = found[(found["type"] == kind) & (found["results"] == results)]["kernel"].str.partition("_")[0].unique()
    return (f"{rungs[0]}\n" if len(rungs) == 1 else "") + (kind if kind == results else f"{kind}, {results}")


def draw(found: pd.DataFrame, of: str = "the rung") -> Figure:
    """Shapes down, in two columns; types across: purple above 1, orange below."""
    kinds = list(dict.fromkeys(zip(found["type"], found["results"], strict=True)))
    cells = {(r.type, r.results, Shape(r.m, r.n, r.k)): (r.ratio_best, r.kernel) for r in found.itertuples()}
    across = max(len(kinds), COLUMNS_OF_TYPES)
    groups: dict[str, list[Shape]] = {}
    for shape in sorted({shape for *_, shape in cells}, key=lambda shape: (shape.flop, shape)):
        groups.setdefault(group(shape), []).append(shape)
    lines = [line for name, shapes in sorted(groups.items(), key=lambda item: -len(item[1])) for line in (name, *shapes)]
    tall = -(-len(lines) // COLUMNS_OF_SHAPES)
    fig = style.figure(0.9 + ROW * tall)
    height = fig.get_figheight()
    norm = TwoSlopeNorm(1, 0.5, 1.1)
    for side in range(COLUMNS_OF_SHAPES):
        ax = fig.add_axes((0.14 + 0.5 * side, 0.06 / height, 0.35, 1 - 0.75 / height))
        for y, line in enumerate(lines[side * tall : (side + 1) * tall]):
            if isinstance(line, str):
                ax.text(-1.56, y + 0.6, line, fontweight="bold", va="center", fontsize=9)
                continue
            ax.text(-0.08, y + 0.5, str(line), ha="right", va="center", fontsize=8.5)
            for x, kind in enumerate(kinds):
                value, kernel = cells.get((*kind, line), (None, ""))
                face = RAMP(norm(min(max(value, norm.vmin), norm.vmax))) if value else matplotlib.colors.to_rgb("#eeeeee")
                box = ax.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white", linewidth=1))
                number = ax.text(x + 0.5, y + 0.5, ratio(value) if value else "", ha="center", va="center", fontsize=8.5)
                number.set_color(ink(face))
                if value:
                    style.hover(f"{kernel}, {kind[0]} at {line}: {ratio(value)} of the fastest library", box, number)
        ax.set_xlim(0, across)
        ax.set_ylim(tall, 0)
        ax.xaxis.tick_top()
        ax.set_xticks([x + 0.5 for x in range(len(kinds))], [label(found, *kind) for kind in kinds], fontsize=8.5)
        ax.set_yticks([])
        ax.tick_params(length=0)
        ax.set_frame_on(False)
    fig.text(0.02, 1 - 0.16 / height, f"time of the best library / time of {of}", va="center", fontsize=11)
    return fig
