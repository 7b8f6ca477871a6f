"""One card, the ladder: a picture to share, which says by itself what was measured, on what, how and when."""

import textwrap

from matplotlib.figure import Figure

from plots.data.rungs import is_variant
from plots.data.selection import Table
from plots.data.units import ranged, ratio, tflops, type_name
from plots.figures import style

SIZE = (12.0, 6.75)  # inches; 1800 x 1012 pixels
DPI = 150
BAR = "#3b6fa0"
TITLE = 1150  # the size of its letters times how many there is room for
RATE, BESIDE = 1.1, 1.21  # right edges of the columns of rates, in axes widths


def chosen(tables: list[Table]) -> Table | None:
    """The type that the most rungs climb to their ratio at its headline size; of several the ladder's first."""
    return max((table for table in tables if _rated(table)), key=lambda table: len(_rated(table)), default=None)


def _rated(table: Table) -> dict[str, float]:
    ratios = {kernel: table.value(kernel, table.headline, "ratio_cublas") for kernel in table.kernels}
    return {kernel: value for kernel, value in ratios.items() if value > 0}


def title(table: Table, gpu: str) -> str:
    """What holds, with the type, the shape and the card."""
    rated = _rated(table)
    best = max(rated, key=rated.__getitem__)
    numbers = ranged(table.numbers(best, table.headline, "ratio_cublas"))
    return f"{best} runs at {numbers} of cuBLAS in {type_name(table.type)} at {table.headline} on {gpu}"


def protocol(table: Table, versions: dict[str, str]) -> str:
    """How it was measured, in a sentence or two."""
    condition = table.condition
    sittings = f"median of {table.sittings} sittings, their range in brackets" if table.sittings > 1 else "median over rounds"
    alike = {
        "rounds": "a rung and cuBLAS in turn, in shuffled rounds",
        "steady": "blocks of a rung and of cuBLAS in turn, each at its own clock",
    }
    of_type = type_name(table.type if condition.out == "same" else condition.out)
    said = [
        f"{type_name(table.type)} operands, {of_type} results, alpha {condition.alpha:g}, beta {condition.beta:g}",
        f"{condition.init} data",
        f"{condition.l2} L2",
        f"{condition.protocol} protocol: {alike[condition.protocol]}; time of cuBLAS over time of the rung, {sittings}",
    ]
    return ", ".join(said) + ". " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


def date(table: Table) -> str:
    """The day of the last of its measurements, YYYY-MM-DD."""
    return max(row.utc for kernel in _rated(table) for row in table.cells[kernel, table.headline].sittings)[:10]


def draw(table: Table, gpu: str, versions: dict[str, str]) -> Figure:
    """A bar per rung: its share of cuBLAS, which is the line at 1; at the right both rates, of the same rounds."""
    rated, shape = _rated(table), table.headline
    fig = Figure(figsize=SIZE)
    ax = fig.add_axes((0.185, 0.075, 0.655, 0.71))
    size = min(12.0, 310 / len(rated))  # of the letters, so that the lines fit
    for place, (kernel, value) in enumerate(rated.items()):
        hatch = {"hatch": "////", "edgecolor": "white", "linewidth": 0} if is_variant(kernel) else {}
        ax.barh(place, value, height=0.76, color=BAR, **hatch)
        ax.text(value + 0.006, place, ratio(value), va="center", fontsize=size, bbox=style.CLEAR, zorder=3)
        of_both = {RATE: table.value(kernel, shape), BESIDE: table.cublas(kernel, shape)}
        for edge, rate in of_both.items():
            at = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(edge, place, tflops(rate), fontsize=size, **at)
    ax.axvline(1, color=style.INK, linewidth=1.4, zorder=2.5)
    ax.text(1, 1.015, "cuBLAS", transform=ax.get_xaxis_transform(), ha="center", va="bottom", fontsize=11)
    for edge, head in ((RATE, "TFLOP/s"), (BESIDE, "cuBLAS's")):
        ax.text(edge, 1.015, head, transform=ax.transAxes, ha="right", va="bottom", fontsize=11)
    ax.set_yticks(range(len(rated)), list(rated), fontsize=size)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rated) - 0.45, -0.75)
    ax.set_xlim(0, max(1.06, *(value * 1.08 for value in rated.values())))
    ax.set_xlabel("of cuBLAS" + "; hatched: variants and counter-examples" * any(is_variant(kernel) for kernel in rated))
    said = title(table, gpu)
    fig.text(0.02, 0.965, said, fontsize=min(16, TITLE / len(said)), fontweight="bold", va="top")
    fig.text(0.02, 0.912, "\n".join(textwrap.wrap(protocol(table, versions), 140)), fontsize=10.5, va="top", color="#444444")
    fig.text(0.98, 0.022, f"GEMM Ladder, {date(table)}", ha="right", va="center", fontsize=11, color="#444444")
    return fig
