"""What chapters derive from the recorded results by more than an expression: named functions of their markers."""

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plots.data import losses
from plots.data.results import Results
from plots.data.stream_k import plan_of_18f
from plots.data.units import Shape
from plots.errors import InputError
from plots.figures import timeline, waves

K_TILE = 64  # of BF16: 128 bytes
CLUSTERS = {1: 132, 2: 66, 4: 30}  # of so many blocks, that an H200 runs at once
FLOP_PER_CLOCK = 4096  # of wgmma, per SM


def functions(root: Path, results: Results) -> dict[str, Callable[..., Any]]:
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

    def constant(rung: str, name: str, place: int = 0) -> float:
        """A number in a kernel's source by the name before it, of several by its place; of 1 / 14 the 14."""
        source = root / results.facts.find(rung).source
        text = source.read_text(encoding="utf-8")
        found = re.findall(rf"\b{name} = (?:1 / )?(?:[\w:]+ [<>=]+ \d+ \? (\d[\d.]*) : )?(\d[\d.']*)", text)
        numbers = [float(number.replace("'", "")) for pair in found for number in pair if number]
        if place >= len(numbers):
            raise InputError(f"{source.name} has {len(numbers)} numbers after '{name} ='")
        return numbers[place]

    def fitted(name: str) -> float:
        """Clocks that a configuration of 26 takes beside its k tiles, as its source has them."""
        return _configurations(root)[name][-1]

    def split_rows() -> list[float]:
        """Bytes per clock that a block of 26 received in sweep_26.csv where rows lie across lines, by tile that copies limit."""
        return _split_rows(root, results)

    return {name: function for name, function in locals().items() if callable(function) and name not in ("root", "results")}


def _timeline(results: Results, rung: str) -> timeline.Timeline:
    stem = results.facts.find(rung).stem
    found = [one for one in timeline.read(results.folder) if one.kernel == stem]
    if not found:
        raise InputError(f"there is no timeline of '{rung}'")
    return found[0]


def _edges(tile: str) -> tuple[int, ...]:
    return tuple(map(int, tile.split("x")))


def _configurations(root: Path) -> dict[str, tuple[int, int, int, int, float]]:
    """Of 26: rows and columns of a block's tile, blocks of a cluster along them, and clocks beside the k tiles."""
    source = next((root / "kernels").glob("26_*.cu")).read_text(encoding="utf-8")
    found = {}
    for name, rows, columns, way, down, across, clocks in re.findall(
        r'"(\w+)", (\d+), (\d+), (\w+), (\d), (\d), .*\{(\d+), \d+, \d+\}\}', source
    ):
        height = int(rows) * (1 if way in ("TAKE_TURNS", "PING_PONG") else 2)
        found[name] = height, int(columns), int(down), int(across), float(clocks)
    return found


def _csv(results: Results, file: str) -> list[dict[str, str]]:
    with (results.folder / file).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _split_rows(root: Path, results: Results) -> list[float]:
    m, n, k, launch = 5128, 5112, 2056, 4.9
    rows = {row["kernel"]: row for row in _csv(results, "sweep_26.csv") if (row["m"], row["n"]) == (str(m), str(n))}
    found = []
    for name, (bm, bn, down, across, own) in _configurations(root).items():
        row = rows.get(f"26_{name}")
        if row is None or name.startswith(("k", "g")):  # split-K has no waves of its own
            continue
        rows_of_c, columns_of_c = (n, m) if name.endswith(("t", "ts")) else (m, n)
        tiles = math.ceil(rows_of_c / (bm * down)) * math.ceil(columns_of_c / (bn * across))
        needed = math.ceil(tiles / CLUSTERS[down * across])
        clocks = (float(row["median_ms"]) * 1e3 - launch) * float(row["clock_mhz"]) - own
        per_k_tile = clocks / needed / math.ceil(k / K_TILE)
        if per_k_tile > 1.25 * bm * bn * K_TILE * 2 / FLOP_PER_CLOCK and needed > 4:
            found.append((bm / across + bn / down) * 128 / per_k_tile)
    return found
