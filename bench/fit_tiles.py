#!/usr/bin/env python3
"""The clocks of the tiles of rungs 37 and 38, fitted to times of bench/sweep.py: lines for their table, with the error of each.

usage: python3 bench/fit_tiles.py RUNG TIMES.csv PLANS [TIMES.csv PLANS ...], a pair per layout
TIMES.csv is what bench/sweep.py RUNG --shapes bench/shapes/fit_37.txt tile_... measured of each tile alone, PLANS what the
rung's --explain said of these shapes then: how many tiles of C are whole, and how the others are shared.

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

SHAPE = ["layout", "m", "n", "k"]
MOST = 1.6  # times the fastest tile's time: what is slower is no choice
TERMS = ["start", "k_tile", "work_tile", "fix_up", "other", "transpose"]  # as struct Clocks has them; 37 has no `transpose`


def plans(rung: str, path: Path, layout: str, sms: int = 132) -> pd.DataFrame:
    """A row per shape and tile: how often each of TERMS counts."""
    configurations = SWEEPS[rung].configurations
    rows, shape = [], (0, 0, 0)
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(rf"{rung}_\w+ \w+ (\d+)x(\d+)x(\d+):", line):
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
            rows.append((tile, layout, *shape, *counts, counts[1] * (layout == "nt")))
    return pd.DataFrame(rows, columns=["tile", *SHAPE, *TERMS])


def measured(path: Path) -> pd.DataFrame:
    """A row per shape and tile: the clocks that it took."""
    times = pd.read_csv(path).query("status == 'ok'")
    if "layout" not in times:
        times["layout"] = "nn"
    times["tile"] = times.kernel.str.extract(r"(\d+x\d+)$")
    times["clocks"] = times.median_ms * 1e3 * times.clock_mhz
    return times[["tile", *SHAPE, "clocks"]]


def data(rung: str, times: Path, plans_then: Path) -> pd.DataFrame:
    """Both, of one layout; not the shapes that take no tile."""
    clocks = measured(times)
    (layout,) = clocks.layout.unique()
    return clocks.merge(plans(rung, plans_then, layout), on=["tile", *SHAPE], validate="one_to_one")


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
    parser.add_argument("rung", choices=["37", "38"])
    parser.add_argument("files", type=Path, nargs="+", metavar="TIMES.csv PLANS")
    options = parser.parse_args()
    if len(options.files) % 2:
        parser.error("PLANS is missing: a pair of files per layout")
    pairs = zip(options.files[::2], options.files[1::2], strict=True)
    rows = pd.concat([data(options.rung, times, plans_then) for times, plans_then in pairs], ignore_index=True)
    rows = rows[rows.clocks < MOST * rows.groupby(SHAPE).clocks.transform("min")]
    for tile, constants in SWEEPS[options.rung].configurations.items():
        mine = rows[rows.tile == tile]
        if mine.empty:
            print(f"{tile:8} was not timed")
            continue
        terms = mine[[term for term in TERMS if term in constants]].to_numpy() / mine.clocks.to_numpy()[:, None]
        fitted = least_squares(terms, np.ones(len(mine))).round(-1)
        error = np.sqrt(np.mean((terms @ fitted - 1) ** 2))
        print(f"{tile:8} {{{', '.join(f'{x:.0f}' for x in fitted)}}}  {error:.3f} over {len(mine)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
