"""What the simulator counted, rung by rung: global loads and stores, wavefronts of shared memory, instructions.

Each per instruction that multiplies: an FMA, an mma or a wgmma.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from plots.data.counters import Counted
from plots.data.rungs import is_variant
from plots.data.units import digits
from plots.figures import style

GLOBAL, IDEAL, CONFLICTS, PLAIN = "#3b6fa0", "#3f8f6b", "#d55e00", "#6f6f6f"
PANELS = [(0.205, 0.215), (0.475, 0.215), (0.745, 0.215)]  # left edge and width of each
BESIDE = {"ha": "left", "va": "center", "fontsize": 9, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}


def file_stem(table: Counted) -> str:
    """What its files are called."""
    instruction = table.instruction.replace(".", "_").replace(" ", "_").lower()
    return f"counters_{table.type}_{instruction}_{table.shape.m}x{table.shape.n}x{table.shape.k}"


def draw(table: Counted) -> Figure:
    """Three panels of horizontal bars, a line per rung: bytes, wavefronts, instructions."""
    kernels, terms = list(table.rows), table.terms
    fig = style.figure(1.05 + 0.34 * len(kernels))
    height = fig.get_figheight()
    panels = [fig.add_axes((left, 0.6 / height, width, 1 - 1.0 / height)) for left, width in PANELS]
    panels[0].set_xscale("log")  # the ladder spans three orders of magnitude here
    panels[0].set_title("global memory, logarithmic", fontsize=10)
    panels[1].set_title("shared memory (red: conflicts)", fontsize=10)
    panels[2].set_title("instructions", fontsize=10)
    limit = [1.0] if terms.has_limit else []  # where FMAs alone would be it
    ideal = {k: table.wavefronts(table.rows[k].sim_shared_ideal) for k in kernels}
    conflicts = {k: table.wavefronts(table.excess(k)) for k in kernels}
    _bars(panels[0], [({k: table.traffic(k) for k in kernels}, GLOBAL)], f"bytes per {terms.traffic.name}", [])
    _bars(panels[1], [(ideal, IDEAL), (conflicts, CONFLICTS)], f"wavefronts per {terms.wavefronts.name}", limit)
    _bars(panels[2], [({k: table.instructions(k) for k in kernels}, PLAIN)], f"PTX instructions per {terms.instruction}", limit)
    panels[0].set_yticks(range(len(kernels)), kernels)
    return fig


def _bars(ax: Axes, parts: list[tuple[dict[str, float], str]], unit: str, limit: list[float]) -> None:
    """Stacked bars of one or two parts with their colours, the sums beside them."""
    kernels = list(parts[0][0])
    start = dict.fromkeys(kernels, 0.0)
    for values, colour in parts:
        for place, kernel in enumerate(kernels):
            form = {"color": colour, "edgecolor": "white", "linewidth": 0, "hatch": "////" if is_variant(kernel) else None}
            (bar,) = ax.barh(place, values[kernel], left=start[kernel], height=0.72, **form)
            told = " + ".join(digits(part[kernel]) for part, _ in parts)
            style.hover(f"{kernel}: {told} {unit}", bar)
            start[kernel] += values[kernel]
    low, right = _limits([*start.values(), *limit], ax.get_xscale() == "log")
    for place, value in enumerate(start.values()):
        ax.annotate(digits(value), (max(value, low), place), xytext=(3, 0), textcoords="offset points", **BESIDE)
    for value in limit:
        ax.axvline(value, color=style.FAINT, linewidth=1, linestyle="-.", zorder=0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_yticks([])
    if ax.get_xscale() == "log":
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        ax.locator_params(axis="x", nbins=4)
    ax.set_ylim(len(kernels) - 0.4, -0.6)
    ax.set_xlim(low, right)
    ax.set_xlabel(unit)


def _limits(values: list[float], logarithmic: bool) -> tuple[float, float]:
    """The ends of an axis, with room for a number beside the longest bar."""
    if not logarithmic:
        return 0.0, (max(values) or 1.0) * 1.42
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known) / 2, max(known)
    return low, high * (high / low) ** 0.42
