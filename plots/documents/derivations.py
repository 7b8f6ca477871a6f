"""What chapters derive from the recorded results by more than an expression: named functions of their markers."""

import csv
import math
from collections.abc import Callable
from typing import Any

from plots.data import losses, sweeps
from plots.data.results import Results
from plots.data.stream_k import plan_of_18f
from plots.data.units import Shape
from plots.errors import InputError
from plots.figures import timeline, waves

K_TILE = 64  # of BF16: 128 bytes
CLUSTERS = {1: 132, 2: 66, 4: 30}  # of so many blocks, that an H200 runs at once
FLOP_PER_CLOCK = 4096  # of wgmma, per SM


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
        """Clocks from the beginning of a block of 25 to its first wgmma."""
        return losses.first_wgmma(results)

    def hidden_by_nothing(which: str, count: float, tile: str) -> float:
        """Clocks of the epilogues of so many waves that nothing hides: of 'every' wave, or of the 'last'."""
        return losses.epilogues(which, count, _edges(tile))

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

    def split_rows() -> list[float]:
        """Bytes per clock that a block of 26 received in sweep_26.csv where rows lie across lines, by tile that copies limit."""
        return _split_rows(results)

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


def _csv(results: Results, file: str) -> list[dict[str, str]]:
    with (results.folder / file).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _split_rows(results: Results) -> list[float]:
    m, n, k = 5128, 5112, 2056
    rows = {row["kernel"]: row for row in _csv(results, "sweep_26.csv") if (row["m"], row["n"]) == (str(m), str(n))}
    found = []
    configurations = results.facts.find("26").constants
    launch = configurations["cost"]["LAUNCH_US"]
    for name, numbers in configurations.items():
        row = rows.get(f"26_{name}")
        if row is None or name.startswith(("k", "g")):  # split-K has no waves of its own
            continue
        bm, bn, down, across, own = (numbers[of] for of in ("bm", "bn", "cluster_m", "cluster_n", "fixed"))
        rows_of_c, columns_of_c = (n, m) if name.endswith(("t", "ts")) else (m, n)
        tiles = math.ceil(rows_of_c / (bm * down)) * math.ceil(columns_of_c / (bn * across))
        needed = math.ceil(tiles / CLUSTERS[int(down * across)])
        clocks = (float(row["median_ms"]) * 1e3 - launch) * float(row["clock_mhz"]) - own
        per_k_tile = clocks / needed / math.ceil(k / K_TILE)
        if per_k_tile > 1.25 * bm * bn * K_TILE * 2 / FLOP_PER_CLOCK and needed > 4:
            found.append((bm / across + bn / down) * 128 / per_k_tile)
    return found
