"""Who waits for whom inside a kernel: what the first warp of each warpgroup did, as bin/timeline wrote it down."""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from plots.data.rungs import number
from plots.errors import InputError
from plots.figures import style

FILE, RUNS = "timeline.csv", "timeline_runs.csv"
COLUMNS = ["kernel", "type", "m", "n", "k", "block", "sm", "block_ns", "warp", "kind", "detail", "begin", "end"]
RUN_COLUMNS = ["kernel", "type", "plain_ms", "recorded_ms"]
AROUND = 7  # k tiles that are drawn before the end of a tile of C, and after its epilogue

# What a warp waits for, by what it is and by the kind of the record: colour and legend.
FULL, EMPTY, WGMMA, BARRIER, STORE = "full", "empty", "wgmma", "barrier", "store"
WAITS = {
    FULL: ("#D55E00", "waits until a stage is full"),
    EMPTY: ("#F3BE7B", "waits until a stage is empty"),
    WGMMA: ("#009E73", "waits for wgmma"),
    BARRIER: ("#CC79A7", "waits at a barrier"),
    STORE: ("#0072B2", "waits until a store has read its buffer"),
}
FLYING, EPILOGUE = "#8fd3bd", "#e2e2e2"
COPIES = {"bulk_tensor_load": ("v", "#222222", "asks for a copy"), "bulk_tensor_store": ("^", "#0072B2", "asks for a store")}
KINDS = {"mbarrier_wait", "mbarrier_arrive", "mbarrier_arrive_expect_tx", "wgmma_commit_group", "wgmma_wait_group"}
KINDS |= {"bulk_wait_group", "bar_sync", "cluster_wait", *COPIES}

Span = tuple[int, int]


@dataclass(frozen=True)
class Record:
    """Clocks from the block's beginning."""

    kind: str
    detail: int
    begin: int
    end: int


@dataclass
class Lane:
    """What one warp did, in order."""

    warp: int
    records: list[Record] = field(default_factory=list)

    @property
    def multiplies(self) -> bool:
        return any(record.kind == "wgmma_commit_group" for record in self.records)

    @property
    def copies(self) -> bool:
        return any(record.kind == "bulk_tensor_load" for record in self.records)

    @property
    def role(self) -> str:
        """A warp that only copies is a producer, one that only multiplies a consumer."""
        if not self.multiplies:
            return "producer"
        return "copies and multiplies" if self.copies else "consumer"

    @property
    def epilogues(self) -> list[Span]:
        """From the last wgmma of a tile of C to where the next tile's k tile is waited for."""
        found = []
        ended = None
        for record in self.records:
            if record.kind == "wgmma_wait_group" and record.detail == 0:
                ended = record.end
            elif record.kind == "mbarrier_wait" and ended is not None:
                found.append((ended, record.begin))
                ended = None
        if 2 * len(found) > len(self.commits):  # of a kernel that waits so for each k tile, what takes longer than a k tile
            found = [(begin, end) for begin, end in found if end - begin > self.period]
        return found

    @property
    def commits(self) -> list[int]:
        """When groups of wgmma were committed."""
        return [record.end for record in self.records if record.kind == "wgmma_commit_group"]

    @property
    def period(self) -> float:
        """From one k tile to the next."""
        return median([later - earlier for earlier, later in pairwise(self.commits)] or [0])

    @property
    def flying(self) -> list[Span]:
        """Groups of wgmma, in order: from when their operands were there to when a wait told that they were done."""
        found, running, ready = [], [], 0
        for record in self.records:
            if record.kind == "mbarrier_wait":
                ready = record.end
            elif record.kind == "wgmma_commit_group":
                running.append(ready)
            elif record.kind == "wgmma_wait_group":
                while len(running) > record.detail:
                    found.append((running.pop(0), record.end))
        return found

    def waits(self) -> list[tuple[str, Span]]:
        """What for, from when to when."""
        names = {"wgmma_wait_group": WGMMA, "bar_sync": BARRIER, "cluster_wait": BARRIER, "bulk_wait_group": STORE}
        names["mbarrier_wait"] = FULL if self.multiplies else EMPTY
        return [(names[record.kind], (record.begin, record.end)) for record in self.records if record.kind in names]

    def waited(self, window: Span) -> dict[str, float]:
        """The part of a window that this warp waits, by what for."""
        parts = dict.fromkeys(WAITS, 0.0)
        for what, (begin, end) in self.waits():
            parts[what] += max(0, min(end, window[1]) - max(begin, window[0])) / (window[1] - window[0])
        return parts


@dataclass
class Timeline:
    """One block of one kernel, and by how much recording it lengthened the kernel: 0.03 is 3 %; None where nothing was timed."""

    kernel: str
    type: str
    shape: tuple[int, int, int]
    block: int
    lanes: list[Lane]
    cost: float | None

    @property
    def window(self) -> Span:
        """The end of the first tile of C that another one follows, with some k tiles on either side."""
        consumers = [lane for lane in self.lanes if lane.multiplies]
        period = median([lane.period for lane in consumers] or [0])
        epilogues = [lane.epilogues[0] for lane in consumers if lane.epilogues]
        begin = min([begin for begin, _ in epilogues] or [max(lane.commits[-1] for lane in consumers)])  # with one tile, its end
        end = max([end for _, end in epilogues] or [begin])
        first, last = min(lane.records[0].begin for lane in self.lanes), max(lane.records[-1].end for lane in self.lanes)
        return max(int(begin - AROUND * period), first), min(int(end + AROUND * period), last)


def read(folder: Path) -> list[Timeline]:
    """The first block that was recorded of each kernel."""
    rows, runs = _rows(folder / FILE, COLUMNS), _rows(folder / RUNS, RUN_COLUMNS)
    if unknown := sorted(set(rows["kind"]) - KINDS):
        raise InputError(f"{folder / FILE}: no such kind: {unknown[0]}")
    found = []
    for (kernel, kind), of_kernel in rows.groupby(["kernel", "type"]):
        times = runs[(runs["kernel"] == kernel) & (runs["type"] == kind)]
        if len(times) != 1:
            raise InputError(f"{folder / RUNS}: {len(times)} rows of {kernel} in {kind}, expected one")
        (time,) = times.itertuples()
        cost = None if pd.isna(time.plain_ms) else time.recorded_ms / time.plain_ms - 1
        first = of_kernel[of_kernel["block"] == min(of_kernel["block"])]
        shape = tuple(int(first[edge].iloc[0]) for edge in "mnk")
        found.append(Timeline(kernel, kind, shape, int(min(of_kernel["block"])), _lanes(folder / FILE, first), cost))
        if not any(lane.multiplies for lane in found[-1].lanes):
            raise InputError(f"{folder / FILE}: no wgmma in block {found[-1].block} of {kernel}")
    return found


def _rows(path: Path, columns: list[str]) -> pd.DataFrame:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    rows = pd.read_csv(path)
    if missing := [name for name in columns if name not in rows]:
        raise InputError(f"{path}:1: no column {', '.join(missing)}")
    return rows


def _lanes(path: Path, rows: pd.DataFrame) -> list[Lane]:
    lanes: dict[int, Lane] = {}
    for line, row in zip(rows.index + 2, rows.itertuples(), strict=True):
        records = lanes.setdefault(row.warp, Lane(row.warp)).records
        if row.end < row.begin or (records and row.begin < records[-1].end):
            raise InputError(f"{path}:{line}: begins before what its warp did before has ended")
        records.append(Record(row.kind, int(row.detail), int(row.begin), int(row.end)))
    return [lanes[warp] for warp in sorted(lanes)]


def draw(timeline: Timeline) -> Figure:
    """A lane per warp: waits in colour, wgmma in flight above them, copies below, epilogues in grey behind."""
    lanes, window = timeline.lanes, timeline.window
    fig = style.figure(2.0 + 0.95 * len(lanes))
    height = fig.get_figheight()
    ax = fig.add_axes((0.13, 1.4 / height, 0.745, 1 - 1.8 / height))
    for place, lane in enumerate(lanes):
        _lane(ax, place, lane, window)
        share = 100 * sum(lane.waited(window).values())
        ax.text(1.01, place, f"waits {share:.0f} %\nof the time", transform=ax.get_yaxis_transform(), va="center", fontsize=9)
    ax.set_yticks(range(len(lanes)), [f"warp {lane.warp}\n{lane.role}".replace("copies and ", "copies,\n") for lane in lanes])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(lanes) - 0.45, -0.55)
    ax.set_xlim(0, window[1] - window[0])
    ax.set_xlabel(f"clocks; 0 is {window[0]} after the block set up its mbarriers")
    size = "×".join(str(edge) for edge in timeline.shape)
    cost = "" if timeline.cost is None else f"; recording lengthens the launch by {100 * timeline.cost:.1f} %"
    ax.set_title(f"{number(timeline.kernel)}, {timeline.type} at {size}, block {timeline.block}{cost}", color=style.INK)
    _legend(fig, lanes, window)
    return fig


def _lane(ax: Axes, place: int, lane: Lane, window: Span) -> None:
    def bars(spans: list[Span], top: float, thickness: float, colour: str, gid: str, **form) -> None:
        drawn = [(begin - window[0], end - begin) for begin, end in spans if end >= window[0] and begin <= window[1]]
        ax.broken_barh(drawn, (place + top, thickness), facecolors=colour, gid=gid, **form)

    bars(lane.epilogues, -0.42, 0.84, EPILOGUE, f"epilogue {lane.warp}", linewidth=0, zorder=0)
    flying = lane.flying
    for odd in (0, 1):  # neighbouring groups overlap: two rows
        form = {"edgecolor": "white", "linewidth": 0.4}
        bars(flying[odd::2], -0.34 + 0.11 * odd, 0.10, FLYING, f"wgmma {lane.warp} {odd}", **form)
    for what, (colour, _) in WAITS.items():
        spans = [span for name, span in lane.waits() if name == what]
        bars(spans, -0.08, 0.26, colour, f"{what} {lane.warp}", linewidth=0)
    for kind, (marker, colour, _) in COPIES.items():
        at = [record.begin - window[0] for record in lane.records if record.kind == kind]
        ax.plot(at, [place + 0.28] * len(at), marker, color=colour, markersize=4, linewidth=0, gid=f"{kind} {lane.warp}")


def _legend(fig: Figure, lanes: list[Lane], window: Span) -> None:
    """Of what is drawn."""
    seen = {what for lane in lanes for what, share in lane.waited(window).items() if share > 0}
    handles = [Patch(facecolor=colour, label=said) for what, (colour, said) in WAITS.items() if what in seen]
    handles.append(Patch(facecolor=FLYING, label="wgmma run"))
    if any(lane.epilogues for lane in lanes):
        handles.append(Patch(facecolor=EPILOGUE, label="epilogue"))
    axes = fig.axes[0]
    for kind, (marker, colour, said) in COPIES.items():
        if any(record.kind == kind for lane in lanes for record in lane.records):
            handles += axes.plot([], [], marker, color=colour, markersize=5, linewidth=0, label=said)
    fig.legend(handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 0.0))
