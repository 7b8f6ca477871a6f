"""The chapters' tables of what Nsight Compute counted, from what bench/record.sh keeps of `./run_all.sh profile`."""

import math

from plots.data.profiles import Metrics, Profile
from plots.data.rungs import number
from plots.data.units import MISSING, digits, whole
from plots.tables.grid import Grid

PIPES = ("FMA pipe", "tensor pipe")
STALLS = (
    *("long scoreboard", "short scoreboard", "lg throttle", "mio throttle", "barrier"),
    *("math pipe throttle", "dispatch stall", "wait"),
)
# What is less than this in every column has no row: a pipe that is not used, a reason for which no warp waits.
LEAST = dict.fromkeys(PIPES, 5.0) | dict.fromkeys(STALLS, 0.1)


def grid(profile: Profile, rungs: list[str], first: str) -> Grid | None:
    """One column for each of the rungs that were profiled; `first` heads the names of the metrics."""
    columns = {
        kernel.rpartition("/")[2]: metrics
        for rung in rungs
        for kernel, metrics in profile.items()
        if (kernel.rpartition("/")[2] if "/" in kernel else number(kernel)) == rung
    }
    if not columns:
        return None
    profiles = list(columns.values())
    shown = [name for group, names in (("issue", PIPES), ("stalls", STALLS)) for name in names if _matters(profiles, group, name)]
    cells = [_cells(metrics, shown) for metrics in profiles]
    return Grid([first, *columns], [[name, *(cell[name] for cell in cells)] for name in cells[0]])


def _matters(profiles: list[Metrics], group: str, name: str) -> bool:
    return any(metrics.get((group, name), 0) >= LEAST[name] for metrics in profiles)


def _cells(metrics: Metrics, shown: list[str]) -> dict[str, str]:
    """What a table says of one rung, in the order of its rows; of pipes and stalls those that are shown."""

    def value(group: str, name: str, unit: float = 1) -> float:
        return metrics.get((group, name), math.nan) / unit

    shared = [digits(value("shared", name, 1e6)) for name in ("wavefronts", "ideal wavefronts")]
    return {
        "clocks": whole(value("time", "clocks")),
        "issue slots used, %": digits(value("issue", "issue active")),
        **{f"{name} active, %": digits(value("issue", name)) for name in PIPES if name in shown},
        "warps active, %": digits(value("occupancy", "warps active")),
        "instructions, million": digits(value("issue", "instructions", 1e6)),
        "shared wavefronts / ideal, million": " / ".join(shared),
        "L2 hit rate, %": digits(value("memory", "L2 hit rate")),
        "DRAM read, GB": digits(value("memory", "DRAM read", 1e9)),
        **{f"stalled, clocks per instruction: {name}": _hundredths(value("stalls", name)) for name in STALLS if name in shown},
    }


def _hundredths(value: float) -> str:
    """As Nsight Compute gives it."""
    return f"{value:.2f}" if math.isfinite(value) else MISSING
