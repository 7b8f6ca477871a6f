"""Where the distance from the data sheet's peak to a rung goes: the rate that is left after each cause.

The rows are those of the steady protocol. There one kernel runs back to back, so that its time, clock and power belong together.
"""

import math
from dataclasses import dataclass

import pandas as pd

from plots.data.floors import Metrics
from plots.data.results import Results
from plots.data.selection import PER_CLK
from plots.data.units import Shape

TIMELINE, TIMED = "timeline.csv", "25_persistent"  # the rung whose start it tells
CALLED = {"f32": "FP32", "bf16": "BF16"}
PEAKS = {"f32": (67_000, 256), "bf16": (989_000, 4096)}  # NVIDIA's data sheet, dense: GFLOP/s; FLOP per clock and SM
EPILOGUE = 5800  # clocks in which the tensor cores of an SM rest: chapter 25, FP32 results
LANES = 32

PEAK, CLOCK, CEILING, WAVES = "peak by the data sheet", "at the clock held", "the pipe's measured ceiling", "waves"
INSTRUCTIONS, ENDS, REST = "other instructions", "start and epilogues", "left over"
CAUSES = [CLOCK, CEILING, WAVES, INSTRUCTIONS, ENDS, REST]  # in the order in which they are taken off


@dataclass(frozen=True)
class Case:
    """A rung at M = N = K = size, and how many epilogues per SM no other work hides; None where they were not measured."""

    rung: str
    type: str
    size: int
    epilogues: int | None = None


CASES = (
    Case("08", "f32", 4096),
    Case("26", "bf16", 4096, epilogues=4),  # the tile of 25: one in each wave
    Case("26", "bf16", 8192, epilogues=1),  # the warpgroups take turns: only the last one
)


@dataclass(frozen=True)
class Losses:
    """A case as it was measured, and what each cause leaves of the peak; GFLOP/s."""

    kernel: str
    type: str
    shape: Shape
    clock: float  # MHz
    power: float  # watts
    peak: float
    left: dict[str, float]  # by cause; what was not measured is not there; the last is the measured rate

    @property
    def name(self) -> str:
        return f"{self.kernel.partition('_')[0]}, {CALLED[self.type]}, {self.shape}"

    def before(self, cause: str) -> float:
        """The rate that a cause begins with."""
        causes = list(self.left)
        return self.left[causes[causes.index(cause) - 1]] if cause != causes[0] else self.peak


def wave_efficiency(shape: Shape, tile: tuple[int, int], sms: int) -> float:
    """Results of C over the results that the SMs could compute in as many whole waves as the tiles need."""
    tiles = math.ceil(shape.m / tile[0]) * math.ceil(shape.n / tile[1])
    return shape.m * shape.n / (math.ceil(tiles / sms) * sms * tile[0] * tile[1])


def losses(results: Results, profiles: dict[tuple[str, Shape], dict[str, Metrics]]) -> list[Losses]:
    """Of each case that was recorded in the steady protocol, with FP32 results; `profiles` by type and shape."""
    return [found for case in CASES if (found := _losses(results, profiles, case))]


def _losses(results: Results, profiles: dict[tuple[str, Shape], dict[str, Metrics]], case: Case) -> Losses | None:
    rung = next((rung for rung in results.facts.rungs.values() if rung.number == case.rung), None)
    row = _row(results.steady, rung.stem, case) if rung and results.steady is not None else None
    ceiling, _ = results.ceilings.get(f"{rung.ceilings.get(case.type)}{PER_CLK}", (math.nan, "")) if rung else (math.nan, "")
    sms = int(results.environment.get("sm_count", 0))
    if row is None or not row["tile"] or not ceiling > 0 or not sms:
        return None
    shape = row["shape"]
    peak, flop_per_clock = PEAKS[case.type]
    per_clock = sms * row["clock_mhz"] / 1e3  # GFLOP/s of 1 FLOP/clk/SM
    height, width, _ = map(int, row["tile"].split("x"))
    left = {CLOCK: flop_per_clock * per_clock, CEILING: ceiling * per_clock}
    left[WAVES] = left[CEILING] * wave_efficiency(shape, (height, width), sms)
    metrics = profiles.get((case.type, shape), {}).get(rung.stem)
    if rung.unit == "CUDA cores" and metrics:
        left[INSTRUCTIONS] = left[WAVES] * metrics["issue", "FFMA"] / LANES / metrics["issue", "instructions"]
    start = first_wgmma(results)
    if case.epilogues is not None and start > 0:
        clocks = shape.flop / (left[WAVES] / per_clock * sms)
        left[ENDS] = left[WAVES] * clocks / (clocks + start + case.epilogues * EPILOGUE)
    left[REST] = row["gflops"]
    left = {cause: float(rate) for cause, rate in left.items()}
    return Losses(rung.stem, case.type, shape, float(row["clock_mhz"]), float(row["power_w"]), peak, left)


def _row(rows: pd.DataFrame, stem: str, case: Case) -> pd.Series | None:
    found = rows[(rows["kernel"] == stem) & (rows["type"] == case.type) & (rows["out"] == "f32") & (rows["status"] == "ok")]
    found = found[found["shape"] == Shape(case.size, case.size, case.size)]
    return found.iloc[-1] if len(found) else None


def first_wgmma(results: Results) -> float:
    """Clocks from the beginning of a block of 25 to its first wgmma, by its own timeline; NaN where there is none."""
    path = results.folder / TIMELINE
    if not path.is_file():
        return math.nan
    records = pd.read_csv(path, usecols=["kernel", "kind", "begin"])
    return float(records[(records["kernel"] == TIMED) & (records["kind"] == "wgmma_commit_group")]["begin"].min())
