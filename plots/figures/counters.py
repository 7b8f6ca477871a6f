"""What the simulator counted, rung by rung: global loads and stores, wavefronts of shared memory, instructions."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.counters import Counted
from plots.data.rungs import is_variant
from plots.data.units import digits
from plots.figures import style

GLOBAL, IDEAL, CONFLICTS, PLAIN = "#3b6fa0", "#3f8f6b", "#d55e00", "#6f6f6f"
PANELS = [(0.205, 0.215), (0.475, 0.215), (0.745, 0.215)]  # left edge and width of each
BESIDE = {"ha": "left", "va": "center", "fontsize": 9, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}


def draw(table: Counted) -> Figure:
    """Three panels of horizontal bars, a line per rung: bytes per FMA, wavefronts per four FMAs, instructions per FMA."""
    kernels = list(table.rows)
    fig = style.figure(1.05 + 0.34 * len(kernels))
    height = fig.get_figheight()
    panels = [fig.add_axes((left, 0.6 / height, width, 1 - 1.0 / height)) for left, width in PANELS]
    traffic = [[table.per_fma(table.loaded(k) + table.stored(k)) for k in kernels]]
    shared = [
        [table.per_four_fmas(table.rows[k].sim_shared_ideal) for k in kernels],
        [table.per_four_fmas(table.excess(k)) for k in kernels],
    ]
    panels[0].set_xscale("log")  # the ladder spans three orders of magnitude here
    _bars(panels[0], kernels, traffic, [GLOBAL], "bytes per FMA (logarithmic)", "global memory")
    _bars(panels[1], kernels, shared, [IDEAL, CONFLICTS], "wavefronts per 4 FMAs", "shared memory (red: conflicts)")
    instructions = [[table.instructions_per_fma(k) for k in kernels]]
    _bars(panels[2], kernels, instructions, [PLAIN], "PTX instructions per FMA", "instructions")
    for panel in panels[1:]:  # where FMAs alone would be the limit
        panel.axvline(1, color=style.FAINT, linewidth=1, linestyle="-.", zorder=0.5)
        panel.set_yticks([])
    panels[0].set_yticks(range(len(kernels)), kernels)
    return fig


def _bars(ax: Axes, kernels: list[str], parts: list[list[float]], colours: list[str], unit: str, title: str) -> None:
    """Stacked bars with their sums beside them."""
    sums = [sum(values) for values in zip(*parts, strict=True)]
    start = [0.0] * len(kernels)
    for values, colour in zip(parts, colours, strict=True):
        bars = ax.barh(range(len(kernels)), values, left=start, height=0.72, color=colour, edgecolor="white", linewidth=0)
        for bar, kernel in zip(bars, kernels, strict=True):
            bar.set_hatch("////" if is_variant(kernel) else None)
        start = [low + value for low, value in zip(start, values, strict=True)]
    low, right = _limits(sums, ax.get_xscale() == "log")
    for place, value in enumerate(sums):
        ax.annotate(digits(value), (max(value, low), place), xytext=(3, 0), textcoords="offset points", **BESIDE)
    ax.tick_params(axis="y", length=0)
    if ax.get_xscale() != "log":
        ax.locator_params(axis="x", nbins=4)
    ax.set_ylim(len(kernels) - 0.4, -0.6)
    ax.set_xlim(low, right)
    ax.set_xlabel(unit)
    ax.set_title(title, fontsize=10)


def _limits(sums: list[float], logarithmic: bool) -> tuple[float, float]:
    """The ends of an axis, with room for a number beside the longest bar."""
    if not logarithmic:
        return 0.0, max([*sums, 1.0]) * 1.42
    known = [value for value in sums if value > 0] or [1.0]
    low, high = min(known) / 2, max(known)
    return low, high * (high / low) ** 0.42
