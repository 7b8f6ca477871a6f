"""Where the distance from the data sheet's peak to a rung goes: the rate that is left after each cause.

The rows are those of the steady protocol. There one kernel runs back to back, so that its time, clock and power belong together.
"""

import math
from dataclasses import dataclass

import pandas as pd

from plots.data.profiles import Profile, file_name
from plots.data.profiles import read as read_profile
from plots.data.results import Results
from plots.data.selection import PER_CLK
from plots.data.units import Shape

COUNTED = "../nvidia-h200"  # where a profile counts the instructions of a rung, which no card executes more or fewer of
CALLED = {"f32": "FP32", "bf16": "BF16"}
PEAKS = {"f32": (67_000, 256), "bf16": (989_000, 4096)}  # NVIDIA's data sheet, dense: GFLOP/s; FLOP per clock and SM
LANES = 32

PEAK, CLOCK, CEILING, WAVES = "peak by the data sheet", "at the clock held", "the pipe's measured ceiling", "waves"
INSTRUCTIONS, REST = "other instructions", "left over"
CAUSES = [CLOCK, CEILING, WAVES, INSTRUCTIONS, REST]  # in the order in which they are taken off
TILES, SHARES = "tiles", "shares"  # what the SMs get of a last wave that is not full


@dataclass(frozen=True)
class Case:
    """A rung at M = N = K = size, and what its last wave is cut into."""

    rung: str
    type: str
    size: int
    last_wave: str = TILES


CASES = (
    Case("08", "f32", 4096),
    Case("37", "f32", 4096, SHARES),
    Case("25", "bf16", 4096),
    Case("33", "bf16", 4096),
    Case("25", "bf16", 8192),
    Case("33", "bf16", 8192),
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


def waves_needed(shape: Shape, tile: tuple[int, ...], sms: int, last_wave: str = TILES) -> float:
    """The time of all tiles, in times of one. The tile has rows and columns, and k elements where the last wave is shared out."""
    tiles = math.ceil(shape.m / tile[0]) * math.ceil(shape.n / tile[1])
    if last_wave == SHARES:  # of equally many k tiles, give or take one
        k_tiles = math.ceil(shape.k / tile[2])
        return math.ceil(tiles * k_tiles / sms) / k_tiles
    return math.ceil(tiles / sms)


def wave_efficiency(shape: Shape, tile: tuple[int, ...], sms: int, last_wave: str = TILES) -> float:
    """Results of C over the results that the SMs could compute in the time of the waves that the tiles need."""
    return shape.m * shape.n / (waves_needed(shape, tile, sms, last_wave) * sms * tile[0] * tile[1])


def _profile_files(results: Results) -> dict[str, str]:
    """By type, from the results' folder."""
    return {case.type: f"{COUNTED}/{file_name(case.type, results.facts)}" for case in CASES}


def files(results: Results) -> list[str]:
    """The recorded files that the losses are computed from."""
    return ["steady.csv", "ceilings.csv", "environment.json", *_profile_files(results).values()]


def read(results: Results) -> list[Losses]:
    """Of each case that was recorded in the steady protocol, with FP32 results."""
    profiles = {}
    for kind, file in _profile_files(results).items():
        if (results.folder / file).is_file():
            profile, shape = read_profile(results.folder / file)
            profiles[kind, shape] = profile
    return [found for case in CASES if (found := _losses(results, profiles, case))]


def _losses(results: Results, profiles: dict[tuple[str, Shape], Profile], case: Case) -> Losses | None:
    rung = next((rung for rung in results.facts.rungs.values() if rung.number == case.rung), None)
    row = _row(results.steady, rung.stem, case) if rung and results.steady is not None else None
    ceiling, _ = results.ceilings.get(f"{rung.ceilings.get(case.type)}{PER_CLK}", (math.nan, "")) if rung else (math.nan, "")
    sms = int(results.environment.get("sm_count", 0))
    if row is None or not row["tile"] or not ceiling > 0 or not sms:
        return None
    shape = row["shape"]
    peak, flop_per_clock = PEAKS[case.type]
    per_clock = sms * row["clock_mhz"] / 1e3  # GFLOP/s of 1 FLOP/clk/SM
    tile = tuple(map(int, row["tile"].split("x")))
    left = {CLOCK: flop_per_clock * per_clock, CEILING: ceiling * per_clock}
    left[WAVES] = left[CEILING] * wave_efficiency(shape, tile, sms, case.last_wave)
    metrics = profiles.get((case.type, shape), {}).get(rung.stem)
    if rung.instruction == "FFMA" and metrics:
        left[INSTRUCTIONS] = left[WAVES] * metrics["issue", "FFMA"] / LANES / metrics["issue", "instructions"]
    left[REST] = row["gflops"]
    left = {cause: float(rate) for cause, rate in left.items()}
    return Losses(rung.stem, case.type, shape, float(row["clock_mhz"]), float(row["power_w"]), peak, left)


def _row(rows: pd.DataFrame, stem: str, case: Case) -> pd.Series | None:
    found = rows[(rows["kernel"] == stem) & (rows["type"] == case.type) & (rows["out"] == "f32") & (rows["status"] == "ok")]
    found = found[found["shape"] == Shape(case.size, case.size, case.size)]
    return found.iloc[-1] if len(found) else None
