"""What long sums of FP8 cost in accuracy, over their length: error and bias, in one accumulator and promoted each 128 of K."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.errors import InputError
from plots.figures import style

FILE = "fp8_sums.csv"
COLUMNS = {"sums", "data", "k", "rms", "bias", "largest", "device"}
SUMS = {"straight": ("straight", "#D55E00"), "promoted": ("promoted", "#0072B2")}
DATA = {"normal": ("normal data", "o", "-"), "positive": ("positive data", "s", (0, (4, 2)))}


@dataclass(frozen=True)
class Kind:
    """One panel: a column of the table, and how it is drawn."""

    column: str
    title: str
    scale: float
    log: bool


KINDS = [
    Kind("rms", "error (rms), relative to the results", 1, log=True),
    Kind("bias", "bias: mean error in % of the sum of |a b|", 100, log=False),
]


def find(recorded: Path) -> Path | None:
    """The table of the first card that has one: a test says that all are alike."""
    return next(iter(sorted(recorded.glob(f"*/{FILE}"))), None)


def read(file: Path) -> pd.DataFrame:
    """Rows of bench/fp8_sums.cu. Raises InputError."""
    try:
        rows = pd.read_csv(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}") from None
    if rows.empty or COLUMNS - set(rows.columns):
        raise InputError(f"{file}: no table of build/bin/fp8_sums")
    return rows


def draw(rows: pd.DataFrame) -> Figure:
    """Two panels over K, a line per way to sum and kind of data."""
    fig = style.figure(4.3)
    for place, kind in enumerate(KINDS):
        ax = fig.add_axes((0.075 + 0.49 * place, 0.26, 0.42, 0.64))
        _lines(ax, rows, kind)
        depths = sorted(set(rows["k"]))
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
        ax.set_xticks(depths, [str(depth) for depth in depths], fontsize=8.5)
        ax.set_xlabel("K")
        ax.set_title(kind.title)
        ax.grid(axis="y")
        ax.set_axisbelow(True)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="lower center", ncols=2, frameon=False)
    return fig


def _lines(ax: Axes, rows: pd.DataFrame, kind: Kind) -> None:
    for sums, (way, colour) in SUMS.items():
        for data, (numbers, marker, dashes) in DATA.items():
            own = rows[(rows["sums"] == sums) & (rows["data"] == data)].sort_values("k")
            form = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4}
            ax.plot(own["k"], kind.scale * own[kind.column], label=f"{way}; {numbers}", **form)
    if kind.log:
        ax.set_yscale("log")
