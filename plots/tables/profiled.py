"""The chapters' tables of what Nsight Compute counted, from what bench/record.sh keeps of `./run_all.sh profile`."""

import csv
import math
import re
from pathlib import Path

from plots.data.rungs import Facts, number
from plots.data.units import MISSING, Shape, digits, whole
from plots.errors import InputError
from plots.tables.grid import Grid

PIPES = ("FMA pipe", "tensor pipe")
STALLS = (
    *("long scoreboard", "short scoreboard", "lg throttle", "mio throttle", "barrier"),
    *("math pipe throttle", "dispatch stall", "wait"),
)
# What is less than this in every column has no row: a pipe that is not used, a reason for which no warp waits.
LEAST = dict.fromkeys(PIPES, 5.0) | dict.fromkeys(STALLS, 0.1)

Metrics = dict[tuple[str, str], float]  # (group, name) -> value, in the unit of tools/profile.py; NaN where there is none
Profile = dict[str, Metrics]  # kernel -> its metrics


def file_name(what: str, facts: Facts) -> str:
    """The file that holds "bf16" (at 4096 cubed), "bf16@8192", or variants of a sweep: "sweep_16"."""
    if re.fullmatch(r"sweep_\w+", what):
        return f"profile_{what}.csv"
    parts = re.fullmatch(rf"({'|'.join(facts.types)})(?:@(\d+))?", what)
    if not parts:
        raise InputError(f"no profile of '{what}': expected one of {', '.join(facts.types)}, such as bf16@8192, or sweep_NN")
    type, size = parts.groups()
    return "_".join(["profile", *([size] if size else []), type]) + ".csv"


def read(path: Path) -> tuple[Profile, Shape]:
    """The metrics by kernel, and the shape that they were counted at."""
    profile: Profile = {}
    shapes = set()
    with path.open(newline="", encoding="utf-8") as lines:
        for line, row in enumerate(csv.DictReader(lines), 2):
            try:
                value = float(row["value"] or "nan")
                shapes.add(Shape(*(int(row[size]) for size in "mnk")))
                profile.setdefault(row["kernel"], {})[row["group"], row["metric"]] = value
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}:{line}: not a metric as tools/profile.py writes it: {error}") from error
    if len(shapes) != 1:
        raise InputError(f"{path}: {len(shapes)} shapes; a profile is of one")
    return profile, shapes.pop()


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
