"""The saw-tooth of waves: throughput over M = N by whole tiles, split-K and stream-K, and what the tiles alone would allow."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.data.losses import wave_efficiency
from plots.data.results import read_rows
from plots.data.rungs import number
from plots.data.units import Shape
from plots.errors import InputError
from plots.figures import style

FILE = "waves.csv"
WAYS = ["whole tiles", "split-K", "stream-K"]  # of the rungs, in ladder order
SMALLEST = 1024  # M = N of the saw-tooth; smaller ones are timed over K
COLOURS = ["#0072B2", "#E69F00", "#009E73"]


@dataclass
class Sweep:
    """The rows of one type: for each rung and shape the GFLOP/s, and the tiles of the rung with whole tiles."""

    type: str
    kernels: list[str]
    gflops: dict[tuple[str, Shape], float]
    cublas: dict[Shape, list[float]]  # GFLOP/s beside each rung
    tile: tuple[int, int]  # rows and columns of C
    sms: int  # that one wave fills

    @property
    def squares(self) -> list[Shape]:
        """Those with M = N that have the K of most of them."""
        edges = [shape for shape in self.cublas if shape.m == shape.n >= SMALLEST]
        depths = [shape.k for shape in edges]
        common = max(sorted(set(depths)), key=depths.count)
        return sorted(shape for shape in edges if shape.k == common)

    @property
    def small(self) -> dict[tuple[int, int], list[Shape]]:
        """M and N that were timed with several K."""
        found: dict[tuple[int, int], list[Shape]] = {}
        for shape in sorted(self.cublas):
            found.setdefault((shape.m, shape.n), []).append(shape)
        return {edges: shapes for edges, shapes in found.items() if len(shapes) > 1}

    def predicted(self) -> dict[Shape, float]:
        """GFLOP/s of whole tiles if each wave took the same time, scaled so that the best square is as measured."""
        busy = {shape: wave_efficiency(shape, self.tile, self.sms) for shape in self.squares}
        best = max(self.squares, key=lambda shape: self.gflops[self.kernels[0], shape])
        return {shape: share / busy[best] * self.gflops[self.kernels[0], best] for shape, share in busy.items()}


def read(path: Path) -> list[Sweep]:
    """The types of a recorded sweep, each with three rungs: whole tiles, split-K, stream-K."""
    with path.open(encoding="utf-8") as lines:
        header = lines.readline().strip().split(",")
    if missing := {"tile", "waves"} - set(header):
        raise InputError(f"{path}:1: no column {', '.join(sorted(missing))}")
    rows = read_rows(path, [])
    tiles = pd.read_csv(path, usecols=["kernel", "type", "m", "n", "k", "tile", "waves", "status"])
    rows, tiles = rows[rows["status"] == "ok"], tiles[tiles["status"] == "ok"]
    return [_sweep(path, kind, rows[rows["type"] == kind], tiles[tiles["type"] == kind]) for kind in sorted(set(rows["type"]))]


def _sweep(path: Path, kind: str, rows: pd.DataFrame, tiles: pd.DataFrame) -> Sweep:
    kernels = sorted(set(rows["kernel"]))
    if len(kernels) != len(WAYS):
        raise InputError(f"{path}: {len(kernels)} rungs of {kind}, expected {len(WAYS)}: {', '.join(WAYS)}")
    gflops = {(row.kernel, row.shape): row.gflops for row in rows.itertuples()}
    shapes = {shape for _, shape in gflops}
    if absent := [f"{kernel} at {shape}" for kernel in kernels for shape in sorted(shapes) if (kernel, shape) not in gflops]:
        raise InputError(f"{path}: no row of {absent[0]}")
    cublas = {shape: list(rows[rows["shape"] == shape]["cublas_gflops"]) for shape in shapes}
    whole = tiles[tiles["kernel"] == kernels[0]]
    (name,) = set(whole["tile"])
    height, width = (int(edge) for edge in name.split("x")[:2])
    counts = [math.ceil(row.m / height) * math.ceil(row.n / width) / row.waves for row in whole.itertuples()]
    return Sweep(kind, kernels, gflops, cublas, (height, width), round(median(counts)))


def draw(sweep: Sweep) -> Figure:
    """TFLOP/s over M = N, and, dashed, the saw-tooth of whole waves."""
    squares = sweep.squares
    fig = style.figure(4.6)
    ax = fig.add_axes((0.075, 0.13, 0.90, 0.78))
    edges = [shape.m for shape in squares]
    _lines(ax, sweep, squares, edges, lambda shape, gflops: gflops / 1000)
    saw = sweep.predicted()
    form = {"linestyle": (0, (4, 2)), "color": style.FAINT, "linewidth": 1.2}
    ax.plot(edges, [saw[shape] / 1000 for shape in squares], label="whole waves only, scaled to the best point", **form)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(f"M = N (elements); K = {squares[0].k}")
    ax.set_title(f"TFLOP/s in {sweep.type}", color=style.INK)
    ax.legend(loc="lower right", frameon=False, ncols=2)
    return fig


def draw_small(sweep: Sweep) -> Figure:
    """Time over K for each small M and N, both axes logarithmic."""
    panels = sweep.small
    fig = style.figure(6.2)
    for place, (edges, shapes) in enumerate(panels.items()):
        ax = fig.add_subplot(math.ceil(len(panels) / 2), 2, place + 1)
        depths = [shape.k for shape in shapes]
        _lines(ax, sweep, shapes, depths, lambda shape, gflops: shape.flop / gflops / 1e3)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.set_xticks(depths, [str(depth) for depth in depths], fontsize=8.5)
        ax.set_title(f"{edges[0]} × {edges[1]} × K", color=style.INK)
        ax.set_ylabel(f"µs in {sweep.type}")
        if place == 0:
            ax.legend(loc="upper left", frameon=False)
    fig.tight_layout()
    return fig


def _lines(ax: Axes, sweep: Sweep, shapes: list[Shape], across: list[int], value) -> None:
    """A line per rung and one for cuBLAS; `value` makes what is drawn of a shape and its GFLOP/s."""
    for kernel, way, colour in zip(sweep.kernels, WAYS, COLOURS, strict=True):
        drawn = [value(shape, sweep.gflops[kernel, shape]) for shape in shapes]
        ax.plot(across, drawn, color=colour, marker="o", markersize=2.6, linewidth=1.5, label=f"{number(kernel)}: {way}")
    drawn = [sorted(value(shape, rate) for rate in sweep.cublas[shape]) for shape in shapes]
    ax.fill_between(across, [own[0] for own in drawn], [own[-1] for own in drawn], color="black", alpha=0.2, linewidth=0)
    ax.plot(across, [median(own) for own in drawn], color="black", linewidth=2, label="cuBLAS, beside the three")
    ax.grid(axis="y")
    ax.set_axisbelow(True)


@dataclass(frozen=True)
class Kind:
    """One kind of figure of a sweep, with what a reader must know to read it."""

    title: str
    caption: str
    draw: Callable[[Sweep], Figure]


KINDS = {  # by the first part of the figure's file name; the second is the type
    "waves": Kind(
        title="Throughput over waves of tiles",
        caption="One tile of C per block: the SMs work in waves, and the last wave may be nearly empty. Dashed: what whole "
        "waves of equal length allow, scaled to the best point. cuBLAS was timed in the rounds of each rung: median and range.",
        draw=draw,
    ),
    "waves_k": Kind(
        title="Time over K, for results that fill few SMs",
        caption="Both axes are logarithmic. With few tiles of C, only split-K or stream-K gives each SM something to do. "
        "cuBLAS was timed in the rounds of each rung: median and range.",
        draw=draw_small,
    ),
}
