"""How many times as fast PyTorch's products are with the library: groups of products down, a range per type."""

import math
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from plots.data.units import ratio, type_name
from plots.errors import InputError
from plots.figures import style

FILE = "use.csv"
COLUMNS = {"what", "type", "m", "n", "k", "layout", "times"}
COLOURS = {"f32": "#3b6fa0", "tf32": "#c77f2c", "bf16": "#6a994e", "f16": "#8d5a97"}
ROW = 0.21  # inches


def read(file: Path) -> pd.DataFrame:
    """Rows of bench/use.py with the group of each. Raises InputError."""
    try:
        rows = pd.read_csv(file, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}") from None
    if rows.empty or COLUMNS - set(rows.columns):
        raise InputError(f"{file}: no table of bench/use.py")
    return rows.assign(group=[group(row) for row in rows.itertuples()])


def group(row) -> str:
    """What a row is a part of: a layer for so many tokens, a network, or a whole step."""
    what, _, part = row.what.partition(", ")
    if not row.layout:
        return row.what
    return what if what == "ResNet-50" else f"{row.k if part == 'gradient of w' else row.m} tokens"


def draw(rows: pd.DataFrame) -> Figure:
    """A line from the least to the most of a group, with a dot at the geometric mean."""
    groups, types = list(dict.fromkeys(rows["group"])), list(dict.fromkeys(rows["type"]))
    found = {key: part["times"] for key, part in rows.groupby(["group", "type"])}
    lines = [(name, kind) for name in groups for kind in types if (name, kind) in found]
    fig = style.figure(0.9 + ROW * (len(lines) + 0.6 * len(groups)))
    ax = fig.add_subplot()
    y, ticks, named = 0.0, [], set()
    for name in groups:
        top = y
        for kind in (kind for kind in types if (name, kind) in found):
            times, label = found[name, kind], "" if kind in named else type_name(kind)
            named.add(kind)
            mean = math.exp(sum(map(math.log, times)) / len(times))
            line = ax.plot([times.min(), times.max()], [y, y], color=COLOURS[kind], linewidth=3, alpha=0.35)
            dot = ax.plot([mean], [y], "o", color=COLOURS[kind], label=label or None)
            ax.text(1.01, y, ratio(mean), transform=ax.get_yaxis_transform(), va="center", fontsize=8.5)
            among = f", {ratio(times.min())} to {ratio(times.max())}" if len(times) > 1 else ""
            style.hover(f"{name}, {type_name(kind)}: {ratio(mean)}{among}", *line, *dot)
            y += 1
        ticks.append((top + y - 1) / 2)
        y += 0.6
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set_yticks(ticks, groups)
    ax.invert_yaxis()
    ax.set_xlabel("times as fast as with cuBLAS alone: least, geometric mean and most of a group's products")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(named), frameon=False)
    ax.grid(axis="x", alpha=0.3)
    return fig
