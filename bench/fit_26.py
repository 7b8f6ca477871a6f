#!/usr/bin/env python3
"""The clocks of rung 26's configurations, fitted to times of bench/sweep.py: lines for its table, with the error of each.

usage: python3 bench/fit_26.py SWEEP.csv PLANS
PLANS is what 26_fast --explain said of the sweep's shapes on the same GPU: its rates, and how many tiles, waves and clusters.

Each configuration's time is taken as (fixed + k_tile x (its k tiles, wave after wave) + tile x (waves before the last)) clocks
over the launch, the constants those of least squares of the relative error. Left out is what another term of the cost
model decides (rows that TMA splits, products that DRAM limits), and what nobody would choose.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import SWEEPS

PLAN = re.compile(r" +(\w+) +[\d.]+ us: \d+ tiles?(?: in (\d+) splits)?, (\d+) waves? of (\d+) clusters?, (\d+) in the last")
RATES = re.compile(r"predicted at (\d+) MHz and (\d+) GB/s of DRAM")
MOST = 1.6  # times the fastest configuration's time: what is slower is no choice


def rates(path: Path) -> tuple[float, float]:
    """Clocks per microsecond, and bytes of DRAM."""
    mhz, gb_per_s = map(float, RATES.search(path.read_text(encoding="utf-8")).groups())
    return mhz, gb_per_s * 1e3


def plans(path: Path) -> pd.DataFrame:
    """A row per shape and configuration: splits of K, waves before the last, and the part of the last that is filled."""
    rows, shape = [], ()
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"26_fast \w+ (\d+)x(\d+)x(\d+):", line):
            shape = tuple(map(int, found.groups()))
        elif found := PLAN.match(line):
            splits, waves, resident, last = (int(number or 1) for number in found.groups()[1:])
            rows.append((found[1], *shape, splits, waves - 1, last / resident))
    return pd.DataFrame(rows, columns=["name", "m", "n", "k", "splits", "full_waves", "filled"])


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


def fitted(times: pd.DataFrame, halves: bool, clocks_per_us: float, cost: dict[str, float]) -> tuple[np.ndarray, float]:
    """fixed, k_tile and tile of one configuration, none below 0; the root mean square of the relative errors."""
    k_tiles = np.ceil(np.ceil(times.k / 64) / times.splits)
    alone = cost["ALONE"]
    last = np.where(halves & (times.filled <= 0.5), cost["HALF"], alone + (1 - alone) * times.filled)
    terms = np.stack([np.ones(len(times)), k_tiles * (times.full_waves + last), times.full_waves], axis=1)
    clocks = (times.median_ms * 1e3 - cost["LAUNCH_US"]) * clocks_per_us
    weights = 1 / (times.median_ms * 1e3 * clocks_per_us)
    constants = least_squares(terms * weights.to_numpy()[:, None], clocks * weights)
    return constants, float(np.sqrt(np.mean(((terms @ constants - clocks) * weights) ** 2)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep", type=Path)
    parser.add_argument("plans", type=Path)
    options = parser.parse_args()
    cost, configurations = SWEEPS["26"].facts.constants["cost"], SWEEPS["26"].configurations
    times = pd.read_csv(options.sweep).query("status == 'ok'")
    times["name"] = times.kernel.str.partition("_")[2]
    times = times.merge(plans(options.plans), on=["name", "m", "n", "k"], validate="one_to_one")
    fastest = times.groupby(["m", "n", "k"]).median_ms.transform("min")
    clocks_per_us, dram_bytes_per_us = rates(options.plans)
    dram_us = 2 * (times.m * times.k + times.n * times.k + times.m * times.n) / dram_bytes_per_us
    limited = dram_us > 0.8 * (times.median_ms * 1e3 - cost["LAUNCH_US"])
    times = times[(times.k % 64 == 0) & ~limited & (times.median_ms < MOST * fastest)]
    for name, configuration in configurations.items():
        mine = times[times.name == name]
        constants, error = fitted(mine, bool(configuration["halves"]), clocks_per_us, cost)
        print(f"{name:12} {{{', '.join(f'{round(x)}' for x in constants)}}}  {error:.3f} over {len(mine)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
