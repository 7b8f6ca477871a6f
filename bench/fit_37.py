#!/usr/bin/env python3
"""The clocks of rung 37's tiles, fitted to times of bench/sweep.py: lines for its table, with the error of each.

usage: python3 bench/fit_37.py TIMES.csv PLANS
TIMES.csv is what bench/sweep.py 37 --shapes bench/shapes/fit_37.txt tile_... measured of each tile alone, PLANS what
37_sgemm_hopper --explain said of these shapes then: how many tiles of C are whole, and how the others are shared.

The time of a tile is taken as best_schedule() of common/split_k.h adds it up, the constants those of least squares of the
relative error. Left out is what nobody would choose.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import SWEEPS

SHAPE = ["m", "n", "k"]
MOST = 1.6  # times the fastest tile's time: what is slower is no choice
TERMS = ["start", "k_tile", "work_tile", "fix_up", "other"]  # as struct Clocks has them


def plans(path: Path, sms: int = 132) -> pd.DataFrame:
    """A row per shape and tile: how often each of TERMS counts."""
    configurations = SWEEPS["37"].configurations
    rows, shape = [], (0, 0, 0)
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"37_\w+ \w+ (\d+)x(\d+)x(\d+):", line):
            shape = tuple(map(int, found.groups()))
        elif found := re.match(
            r"[* ] (\d+) x (\d+), (?:1 split|(\d+) whole tiles, (\d+) stream-K tiles over (\d+) blocks, (\d+))", line
        ):
            m, n = int(found[1]), int(found[2])
            tile = f"{m}x{n}"
            k_tiles = -(-shape[2] // int(configurations[tile]["bk"]))
            if found[3] is None:
                waves = -(-(-(-shape[0] // m) * -(-shape[1] // n)) // sms)
                counts = [1, waves * k_tiles, waves, 0, 0]
            else:
                whole, stream_k, blocks, most = map(int, found.groups()[2:])
                others = (k_tiles - 1) // (stream_k * k_tiles // blocks)
                counts = [1, whole // sms * k_tiles + most, whole // sms, 1, others]
            rows.append((tile, *shape, *counts))
    return pd.DataFrame(rows, columns=["tile", *SHAPE, *TERMS])


def measured(path: Path) -> pd.DataFrame:
    """A row per shape and tile: the clocks that it took."""
    times = pd.read_csv(path).query("status == 'ok'")
    times["tile"] = times.kernel.str.extract(r"_(\d+x\d+)$")
    times["clocks"] = times.median_ms * 1e3 * times.clock_mhz
    return times[["tile", *SHAPE, "clocks"]]


def least_squares(terms: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The x for which terms @ x is nearest to values, none below 0: a constant that would be is left out."""
    free = list(range(terms.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(terms[:, free], values, rcond=None)
        if (found >= 0).all():
            break
        free.pop(int(np.argmin(found)))
    constants = np.zeros(terms.shape[1])
    constants[free] = found
    return constants


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("times", type=Path)
    parser.add_argument("plans", type=Path)
    options = parser.parse_args()
    data = measured(options.times).merge(plans(options.plans), on=["tile", *SHAPE], validate="one_to_one")
    data = data[data.clocks < MOST * data.groupby(SHAPE).clocks.transform("min")]
    for tile in SWEEPS["37"].configurations:
        mine = data[data.tile == tile]
        terms = mine[TERMS].to_numpy() / mine.clocks.to_numpy()[:, None]
        constants = least_squares(terms, np.ones(len(mine))).round(-1)
        error = np.sqrt(np.mean((terms @ constants - 1) ** 2))
        print(f"{tile:8} {{{', '.join(f'{x:.0f}' for x in constants)}}}  {error:.3f} over {len(mine)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
