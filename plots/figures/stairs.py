"""The first page's picture: how far the numbered rungs get, each type a stair, and cuBLAS as a line."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.rungs import by_generation, is_variant
from plots.data.selection import Table
from plots.data.units import hundredths, type_name
from plots.figures import style

HEIGHT = 5.0  # inches
LEFT, RIGHT, GAP, FOOT, TOP = 0.055, 0.995, 0.055, 0.31, 0.775  # parts of the width, and of the height
DIGITS, EM = 8.5, 2.35  # font size of the ratios, in points, where steps are wide enough; the width of one, with a gap, in ems
INSIDE = 0.2  # the least ratio that is written inside its step
HUES = ["#3b6fa0", "#d0731f", "#5a8f4e"]  # by generation, the oldest first


def steps(table: Table) -> dict[str, float]:
    """The ratio to cuBLAS of each numbered rung, at the headline size."""
    rated = {kernel: table.value(kernel, table.headline, "ratio_cublas") for kernel in table.kernels}
    return {
        kernel: value for kernel, value in rated.items() if value > 0 and kernel in table.facts.rungs and not is_variant(kernel)
    }


def draw(tables: list[Table], measured: str) -> Figure:
    """A panel per type, as wide as it has rungs, all under one scale; `measured` says on what and when."""
    stairs = [steps(table) for table in tables]
    fig = style.figure(HEIGHT)
    step = (RIGHT - LEFT - GAP * (len(tables) - 1)) / sum(len(stair) for stair in stairs)
    size = min(DIGITS, 72 * step * fig.get_figwidth() / EM)
    highest = max(value for stair in stairs for value in stair.values())
    left = LEFT
    for place, (table, stair) in enumerate(zip(tables, stairs, strict=True)):
        ax = fig.add_axes((left, FOOT, step * len(stair), TOP - FOOT))
        _panel(ax, table, stair, size, is_first=place == 0)
        ax.set_ylim(0, 1.08 * highest)
        left += step * len(stair) + GAP
    sizes = dict.fromkeys(str(table.headline) for table in tables)
    said = f"Speed as a part of cuBLAS's in the same rounds, at {', '.join(sizes)}"
    fig.text(0.01, 0.985, said, va="top", fontsize=11)
    fig.text(0.99, 0.985, measured, va="top", ha="right", color="#555555")
    return fig


def _panel(ax: Axes, table: Table, stair: dict[str, float], size: float, is_first: bool) -> None:
    rungs = [table.facts.rungs[kernel] for kernel in stair]
    places = {rung.stem: place for place, rung in enumerate(rungs)}
    for row, (generation, own) in enumerate(by_generation(rungs).items()):
        hue = HUES[row % len(HUES)]
        at = [places[rung.stem] for rung in own]
        ax.bar(at, [stair[rung.stem] for rung in own], width=1, align="edge", color=hue, edgecolor="white", linewidth=0.8)
        ax.text(0, 1.135 - 0.075 * row, f"■ {generation}", transform=ax.transAxes, color=hue, fontsize=9.5, va="center")
    for kernel, place in places.items():
        inside = INSIDE < stair[kernel] < 1  # clear of the line
        form = {"va": "top", "color": "white"} if inside else {"va": "bottom"}
        height = stair[kernel] + (-0.02 if inside else 0.01)
        ax.text(place + 0.5, height, hundredths(stair[kernel]), ha="center", fontsize=size, **form)
    ax.axhline(1, color=style.INK, linewidth=1.6)
    ax.text(0.02, 1.008, "cuBLAS", transform=ax.get_yaxis_transform(), va="bottom", fontweight="bold")
    ax.set_xlim(0, len(stair))
    names = [f"{rung.number} {rung.name.replace('_', ' ')}" for rung in rungs]
    ax.set_xticks([place + 0.5 for place in range(len(rungs))], names, rotation=90, fontsize=9)
    ax.tick_params(axis="x", length=0)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"] if is_first else [""] * 5)
    pipe = "CUDA cores" if {rung.instruction for rung in rungs} == {"FFMA"} else "tensor cores"
    ax.set_title(f"{type_name(table.type)}, {pipe}", fontweight="bold", pad=40)
