"""The figures drawn from a run's rows: what each is called, what it tells, and when there is enough to draw it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure

from plots.data import profiles
from plots.data.floors import LEVELS, times
from plots.data.results import Results
from plots.data.selection import Table
from plots.figures import floors, gflops, heatmap, intensities, ladder, roofline


@dataclass(frozen=True)
class Kind:
    """One kind of figure."""

    purpose: str
    title: str
    caption: str
    draw: Callable[[Table], Figure]
    lacking: Callable[[Table], str]  # why it cannot be drawn; empty where it can


KINDS = {
    "ladder": Kind(
        purpose="the ladder at one size with the gain of each step",
        title="The ladder at one size",
        caption="Black marks, and the second column: cuBLAS in the rounds of that rung. Of cuBLAS: median of cuBLAS's time over "
        "the rung's own. Gain: FLOP/clk/SM over that of the rung named, or throughput where no clocks were counted. Hatched: "
        "variants and counter-examples.",
        draw=lambda table: ladder.draw(table, table.headline),
        lacking=lambda table: "",
    ),
    "gflops": Kind(
        purpose="throughput against size, every rung and cuBLAS",
        title="Throughput against size",
        caption="Square matrices. Dashed: variants and counter-examples. Dash-dotted: the measured ceiling of "
        "each instruction that a rung uses; cuBLAS may use another one. Each library was timed in the rounds of every "
        "rung: a black line is the median of these rates, the grey band the range of those of cuBLAS.",
        draw=gflops.draw,
        lacking=lambda table: "" if table.squares else "no square size was measured",
    ),
    "heatmap": Kind(
        purpose="ratio to cuBLAS over shapes and rungs",
        title="Ratio to cuBLAS over shapes",
        caption="M×N×K down, rungs across. 1 is as fast as cuBLAS, more is faster. The colour scale has its middle at 1 "
        "and unequal steps on its two sides.",
        draw=heatmap.draw,
        lacking=lambda table: "",
    ),
    "roofline": Kind(
        purpose="the rungs under the measured roofs",
        title="Roofline",
        caption="Roofs as measured on this GPU, of each instruction that a rung uses; cuBLAS may use another one. Its mark is "
        "the median over the rounds of all rungs. "
        "Arithmetic intensity is FLOP per compulsory byte (A and B read once, C "
        "written once, and read once where beta is not 0): a property of the problem, so the rungs of one size stand "
        "above one another.",
        draw=roofline.draw,
        lacking=lambda table: "" if roofline.possible(table) else "ceilings.csv lacks dram or the ceiling of every rung",
    ),
}


def drawable(table: Table) -> dict[str, Kind]:
    """The kinds that this table has the numbers for."""
    return {name: kind for name, kind in KINDS.items() if not kind.lacking(table)}


@dataclass(frozen=True)
class OfProfile:
    """A figure that needs what Nsight Compute counted, too."""

    title: str
    caption: str
    draw: Callable[[], Figure]


def of_profile(results: Results, table: Table) -> dict[str, OfProfile]:
    """Those of one type, by name; none without a profile of it, measured ceilings and counted clocks."""
    path = results.folder / profiles.file_name(table.type, results.facts)
    bandwidths = {level: results.ceilings[name][0] for level, name in LEVELS.items() if name in results.ceilings}
    if not path.is_file() or len(bandwidths) < len(LEVELS) or not table.ceilings:
        return {}
    profile, shape = profiles.read(path)
    found: dict[str, OfProfile] = {}
    if split := times(results, table, profile, shape):
        found["time"] = OfProfile(TIME, TIME_CAPTION, partial(floors.draw, split, table.type, shape))
    if intensities.points(table, profile, shape):
        draw = partial(intensities.draw, table, profile, shape, bandwidths)
        found["roofline_measured"] = OfProfile(MEASURED, MEASURED_CAPTION, draw)
    return found


TIME = "Where the time goes"
TIME_CAPTION = (
    "Green: the least time for the FLOPs, at the measured ceiling of the rung's instruction and the clock that the rung ran at. "
    "The next part: how much longer the busiest of the others needs at least, by the instructions or bytes that Nsight Compute "
    "counted. Least times overlap, so only the longest counts. Grey: the rest of the measured time."
)
MEASURED = "Roofline by the bytes that each rung moved"
MEASURED_CAPTION = (
    "The measured roofs, over FLOP per byte that Nsight Compute counted: read and written in DRAM; through L2; 128 bytes per "
    "wavefront of shared memory, among them what wgmma reads, and without what TMA writes. A rung without wavefronts "
    "has no mark there."
)
