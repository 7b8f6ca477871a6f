"""The ladder's time, rung by rung, as stacked bars: what the pipe needs, what something busier needs beyond it, the rest."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from plots.data.floors import ISSUE, LEVELS, Time
from plots.data.units import MISSING, Shape, digits
from plots.figures import style

PIPE, REST = "#009E73", "#dcdcdc"
BEYOND = {ISSUE: "#6f6f6f", "shared memory": "#0072B2", "L2": "#E8A33D", "DRAM": "#D55E00"}
LONGEST = 5  # times the fastest rung: bars end there, and the numbers beside them go on
COLUMNS = {"ms": 1.11, "pipe": 1.20, "beyond": 1.33, "rest": 1.42}  # right edges, in axes widths
LEGEND = 1.05  # inches


def draw(found: list[Time], type: str, shape: Shape) -> Figure:
    """A bar per rung, in milliseconds; at the right its time and the parts' shares in per cent."""
    longest = max(time.total for time in found)
    end = min(LONGEST * min(time.total for time in found), 1.02 * longest)
    fig = style.figure(0.95 + LEGEND + 0.3 * len(found))
    height = fig.get_figheight()
    ax = fig.add_axes((0.19, (0.55 + LEGEND) / height, 0.56, 1 - (0.95 + LEGEND) / height))
    for place, time in enumerate(found):
        _bar(ax, place, time, end)
        for text, edge in zip(_numbers(time), COLUMNS.values(), strict=True):
            ax.text(edge, place, text, transform=ax.get_yaxis_transform(), ha="right", va="center")
    for head, edge in COLUMNS.items():
        ax.text(edge, -0.9, head, transform=ax.get_yaxis_transform(), ha="right", va="center", fontweight="bold")
    ax.set_yticks(range(len(found)), [time.kernel for time in found])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.set_xlim(0, end)
    cut = f"; longer bars are cut at {LONGEST} times the fastest rung's time" * (longest > end)
    ax.set_xlabel(f"milliseconds{cut}", loc="left")
    ax.set_title(f"Where the time goes, {type} at {shape}")
    fig.text(0.985, (0.34 + LEGEND) / height, "the parts: % of the time", ha="right", va="center", fontsize=9)
    fig.legend(handles=_legend(found), loc="lower left", ncols=2, frameon=False, fontsize=9, bbox_to_anchor=(0.01, 0))
    return fig


def _numbers(time: Time) -> list[str]:
    parts = [time.pipe, time.beyond, time.rest] if time.others else [time.pipe]
    shares = [f"{100 * part / time.total:.0f}" for part in parts]
    return [digits(time.total), *shares, *[MISSING] * (3 - len(shares))]


def _bar(ax: Axes, place: int, time: Time, end: float) -> None:
    """The parts one after the other; a bar that goes on past the end has a gap there."""
    parts = [(time.pipe, PIPE, f"the pipe needs {digits(time.pipe)} ms")]
    if time.others:
        needs = ", ".join(f"{name} {digits(least)}" for name, least in time.others.items())
        parts.append((time.beyond, BEYOND.get(time.busiest, REST), f"{time.busiest} needs more; all of them: {needs} ms"))
        parts.append((time.rest, REST, f"the rest: {digits(time.rest)} ms"))
    else:
        parts.append((time.total - time.pipe, "white", "not profiled"))
    start = 0.0
    for length, colour, said in parts:
        split = {"edgecolor": "#aaaaaa", "hatch": "////"} if colour == "white" else {"edgecolor": "white"}
        (bar,) = ax.barh(place, length, left=start, height=0.74, color=colour, linewidth=0.6, **split)
        style.hover(f"{time.kernel}, {digits(time.total)} ms: {said}", bar)
        start += length
    if time.total > end:
        ax.plot([0.977 * end, 0.987 * end], [place + 0.5, place - 0.5], color="white", linewidth=3)


def _legend(found: list[Time]) -> list[Patch]:
    shown = {time.busiest for time in found if time.beyond > 0}
    patches = [Patch(facecolor=PIPE, label="least time of the pipe that multiplies, at its measured ceiling")]
    said = {
        ISSUE: "beyond it, what the issue slots need: instructions / (4 per clock and SM)",
        **{level: f"beyond it, what {level} needs: bytes / measured bandwidth" for level in LEVELS},
    }
    patches += [Patch(facecolor=colour, label=said[name]) for name, colour in BEYOND.items() if name in shown]
    patches.append(Patch(facecolor=REST, label="the rest, which no least time explains"))
    if any(not time.others for time in found):
        patches.append(Patch(facecolor="white", edgecolor="#aaaaaa", hatch="////", label="not split: no profile of this rung"))
    return patches
