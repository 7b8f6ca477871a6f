"""From the data sheet's peak down to what was measured: a waterfall for each rung and size, in per cent of the peak."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.losses import CAUSES, PEAK, Losses
from plots.data.units import tflops
from plots.figures import style

COLOURS = dict(zip(CAUSES, ["#D55E00", "#CC79A7", "#0072B2", "#6f6f6f", "#222222"], strict=True))
LEFT = "#009E73"
MEASURED = "measured"
ACROSS, PANEL = 3, 2.9  # panels in a row; inches of its height


def draw(found: list[Losses]) -> Figure:
    """A panel per case: what each cause takes, then what is left."""
    causes = [cause for cause in CAUSES if any(cause in case.left for case in found)]
    labels = [PEAK, *causes, MEASURED]
    rows, wide = -(-len(found) // ACROSS), 0.78 / min(len(found), ACROSS)
    fig = style.figure(PANEL * rows)
    for place, case in enumerate(found):
        down, across = divmod(place, ACROSS)
        ax = fig.add_axes((0.215 + wide * across, (rows - down - 1 + 0.19) / rows, wide - 0.025, 0.6 / rows))
        _waterfall(ax, case, causes)
        ax.set_xlim(0, 100)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.set_yticks(range(len(labels)), labels if across == 0 else [""] * len(labels))
        ax.tick_params(axis="y", length=0)
        ax.set_title(f"{case.name}\n{case.clock:.0f} MHz, {case.power:.0f} W", fontsize=10)
        ax.set_xlabel("% of the peak")
        ax.set_xticks(range(0, 100, 25))
    return fig


def _waterfall(ax: Axes, case: Losses, causes: list[str]) -> None:
    rest = list(case.left.values())[-1]
    _whole(ax, 0, 100, tflops(case.peak))
    for place, cause in enumerate(causes, 1):
        if cause not in case.left:
            ax.text(2, place, "–", va="center")
            continue
        before, left = (100 * rate / case.peak for rate in (case.before(cause), case.left[cause]))
        ax.barh(place, left - before, left=before, height=0.74, color=COLOURS[cause])
        ax.text(min(left, before) - 1.5, place, f"{left - before:+.1f}".replace("-", "−"), ha="right", va="center")
    _whole(ax, len(causes) + 1, 100 * rest / case.peak, tflops(rest))


def _whole(ax: Axes, place: int, percent: float, rate: str) -> None:
    ax.barh(place, percent, height=0.74, color=LEFT)
    ax.text(2, place, f"{rate} TFLOP/s", color="white", va="center")
