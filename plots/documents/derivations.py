"""What chapters derive from the recorded results by more than an expression: named functions of their markers."""

import math
from collections.abc import Callable
from typing import Any

from plots.data import losses, sweeps
from plots.data.results import Results
from plots.data.stream_k import plan_of_18f
from plots.data.units import Shape
from plots.errors import InputError
from plots.figures import timeline, waves


def functions(results: Results) -> dict[str, Callable[..., Any]]:
    """The functions by name; what they say of themselves is in `python3 -m plots number`."""

    def plan_18f(m: int, n: int, k: int) -> tuple[bool, float]:
        """Whether 18f takes stream-K for a product, and the clocks that its model expects."""
        return plan_of_18f(Shape(m, n, k))

    def saw_tooth(type: str) -> list[float]:
        """In waves.csv, square by square: the rate of the rung with whole tiles over that of whole waves alone."""
        (sweep,) = (sweep for sweep in waves.read(results.folder / waves.FILE) if sweep.type == type)
        return [sweep.gflops[sweep.kernels[0], at] / rate for at, rate in sweep.predicted().items()]

    def epilogues(rung: str) -> list[list[tuple[int, int]]]:
        """In the recorded timeline: from when to when each warpgroup that multiplies stores a tile of C; clocks."""
        return [lane.epilogues for lane in _timeline(results, rung).lanes if lane.multiplies]

    def waiting(rung: str, lane: int, what: str) -> float:
        """The part of the time shown that a warp of the timeline waits: what is full, empty, wgmma, barrier or store."""
        found = _timeline(results, rung)
        return found.lanes[lane].waited(found.window)[what]

    def copying(rung: str) -> list[bool]:
        """Which warps of the timeline issue copies."""
        return [lane.copies for lane in _timeline(results, rung).lanes]

    def cost(rung: str) -> float:
        """By how many per cent recording the timeline lengthened the launch."""
        return 100 * (_timeline(results, rung).cost or math.nan)

    def losses_of(rung: str, type: str, size: int) -> dict[str, float]:
        """Of a rung in chapter 99's table of losses: GFLOP/s at the peak, and what each cause leaves."""
        (case,) = (case for case in losses.read(results) if (case.kernel[:2], case.type, case.shape.m) == (rung, type, size))
        return {losses.PEAK: case.peak, **case.left}

    def efficiency(m: int, tile: str, last_wave: str = losses.TILES) -> float:
        """The useful part of the SMs' time: a square with tiles such as '128x176x64', a last wave of 'tiles' or 'shares'."""
        return losses.wave_efficiency(Shape(m, m, m), _edges(tile), int(results.environment["sm_count"]), last_wave)

    def first_wgmma() -> float:
        """Clocks from the beginning of a block of 25 to its first wgmma, by its timeline."""
        records = (record for lane in _timeline(results, "25").lanes for record in lane.records)
        return min(record.begin for record in records if record.kind == "wgmma_commit_group")

    def constant(rung: str, name: str, of: str = "") -> float:
        """A number that a rung states, of the tile or the model `of`, or of the first that has it: constant('17', 'k_tile')."""
        known = results.facts.find(rung).constants
        for numbers in [known.get(of, {})] if of else known.values():
            if name in numbers:
                return numbers[name]
        raise InputError(f"{rung} states no '{name}'{f' of {of}' if of else ''}")

    def chosen(rung: str) -> list[float]:
        """In sweep_NN.csv, shape by shape: the time of a rung that chooses over that of the fastest of its variants."""
        times = _by_shape(results, rung, "median_ms")
        return [own.pop("as_written") / min(own.values()) for own in times]

    def best_variants(rung: str) -> list[float]:
        """In sweep_NN.csv, shape by shape: the most that a variant reaches of the best library."""
        return [max(own.values()) for own in _by_shape(results, rung, "ratio_best")]

    return {name: function for name, function in locals().items() if callable(function) and name != "results"}


def _by_shape(results: Results, rung: str, column: str) -> list[dict[str, float]]:
    """A column of sweep_NN.csv: for each shape, by the variant's name."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in sweeps.read(results.folder / f"sweep_{rung}.csv"):
        if row["status"] == "ok":
            found.setdefault((row["m"], row["n"], row["k"]), {})[row["kernel"]] = float(row[column])
    return list(found.values())


def _timeline(results: Results, rung: str) -> timeline.Timeline:
    stem = results.facts.find(rung).stem
    found = [one for one in timeline.read(results.folder) if one.kernel == stem]
    if not found:
        raise InputError(f"there is no timeline of '{rung}'")
    return found[0]


def _edges(tile: str) -> tuple[int, ...]:
    return tuple(map(int, tile.split("x")))
