"""What a rung's time is at least: by the pipe that multiplies, and by each of what Nsight Compute counted, at measured rates."""

import math
from dataclasses import dataclass

from plots.data.profiles import Metrics, Profile
from plots.data.results import Results
from plots.data.selection import Table
from plots.data.units import Shape

WAVEFRONT_BYTES = 128  # of shared memory: all 32 banks, which a wavefront occupies whether it needs them or not
SCHEDULERS = 4  # of an SM; each issues at most one instruction per clock
ISSUE = "issue slots"
LEVELS = {"shared memory": "smem", "L2": "l2", "DRAM": "dram"}  # and the names of their measured bandwidths


def moved(metrics: Metrics) -> dict[str, float]:
    """Bytes by level that one launch moved, of those that were counted."""
    counts = {
        "shared memory": WAVEFRONT_BYTES * metrics.get(("shared", "wavefronts"), math.nan),
        "L2": metrics.get(("memory", "L2 bytes"), math.nan),
        "DRAM": metrics.get(("memory", "DRAM read"), math.nan) + metrics.get(("memory", "DRAM written"), math.nan),
    }
    return {level: count for level, count in counts.items() if count > 0}


@dataclass(frozen=True)
class Time:
    """A rung's time and the least that each part of the GPU needs for it at the rung's own clock; ms."""

    kernel: str
    total: float
    pipe: float
    others: dict[str, float]  # least times by what was counted; empty where the rung was not profiled

    @property
    def busiest(self) -> str:
        """What needs most time beside the pipe; empty where nothing was counted."""
        return max(self.others, key=self.others.__getitem__, default="")

    @property
    def beyond(self) -> float:
        """What the busiest needs beyond the pipe's time."""
        return min(max(self.others.get(self.busiest, 0.0), self.pipe), self.total) - self.pipe

    @property
    def rest(self) -> float:
        """What no least time explains."""
        return self.total - self.pipe - self.beyond


def times(results: Results, table: Table, profile: Profile, shape: Shape) -> list[Time]:
    """Of each rung that was timed at a shape, in ladder order; those whose clocks or ceiling are not known are left out."""
    sms, highest = (float(results.environment.get(key) or math.nan) for key in ("sm_count", "max_sm_clock_mhz"))
    found = []
    for kernel in table.kernels:
        ceiling, clock = table.ceiling(kernel), table.value(kernel, shape, "clock_mhz")
        total = table.value(kernel, shape, "median_ms")
        clocks_per_ms = 1e3 * clock
        pipe = shape.flop / (ceiling.flop_clk_sm * sms * clocks_per_ms) if ceiling else math.nan
        if not (pipe > 0 and total > 0):
            continue
        metrics = profile.get(kernel, {})
        others = {ISSUE: metrics.get(("issue", "instructions"), math.nan) / (SCHEDULERS * sms * clocks_per_ms)}
        for level, count in moved(metrics).items():
            rate = results.ceilings.get(LEVELS[level], (math.nan, ""))[0] * 1e6  # bytes per ms
            own = clock / highest if level == "shared memory" else 1.0  # it lies in the SMs, and so runs at their clock
            others[level] = count / (rate * own)
        found.append(Time(kernel, total, min(pipe, total), {name: value for name, value in others.items() if value > 0}))
    return found
