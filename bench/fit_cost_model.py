#!/usr/bin/env python3
"""The constants of common/hopper/cost_model.h, fitted to the times of 33's plans.

usage: python3 bench/fit_cost_model.py [PLANS...]     (without: those of bench/recorded)
       python3 bench/fit_cost_model.py --without FILE [PLANS...]

It needs g++, the packages of requirements/fit.txt and the built ladder, and takes 3 minutes.

PLANS is what `run 33 --shapes ... --tune --plans PLANS` wrote, on a card of CARDS. A choice loses where its plan took longer than
the fastest of its product: the fit makes the mean of these losses small, and then the error of the predicted times. Printed are
the constants, what the choice loses with them, what it loses on other products and on the other card than it was fitted to, and
for each plan what the choice would lose without it.

--without fits nothing: FILE gets, as CSV, what the fastest plans lose without each one, in percent: on average over all products,
and at most, with the product. It needs pandas alone.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from plots.data.rungs import of_ladder

ROOT = Path(__file__).resolve().parents[1]
NAMES = [
    "launch_us", "cluster_clocks", "turn_clocks", "received_per_clock", "asked_unaligned", "cooperative",
    "epilogue_clocks", "small_boxes", "exposed", "exchange_clocks", "exchange_per_result",
]  # fmt: skip
RECORDED = sorted((ROOT / "bench/recorded").glob("*/plans.csv"))
NEAR = 1.4  # plans up to so many times the fastest count for the error of the times


class Product(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int), ("columns", ctypes.c_int), ("k_tiles", ctypes.c_int), ("aligned", ctypes.c_bool),
                ("bytes", ctypes.c_double), ("result_size", ctypes.c_double)]  # fmt: skip


class Tiling(ctypes.Structure):
    _fields_ = [("bm", ctypes.c_int), ("bn", ctypes.c_int), ("cluster_m", ctypes.c_int), ("cluster_n", ctypes.c_int),
                ("clusters", ctypes.c_int), ("ping_pong", ctypes.c_bool), ("splits", ctypes.c_int),
                ("small_boxes", ctypes.c_bool)]  # fmt: skip


class Card(ctypes.Structure):
    _fields_ = [("clocks_per_us", ctypes.c_double), ("dram_bytes_per_us", ctypes.c_double)]


SMS = 132  # of each
CARDS = {  # clocks per us under load, bytes per us that the memory's clock and width allow: what 33 asks the driver for
    "NVIDIA H100 80GB HBM3": Card(0.86 * 1980, 2 * 2619 * 5120 / 8),
    "NVIDIA H200": Card(0.86 * 1980, 2 * 3201 * 6144 / 8),
}
RESIDENT = {1: 132, 2: 66, 4: 30, 8: 15}  # clusters, by their blocks: what the driver says of either
SIZES = {"bf16": 2, "f16": 2, "tf32": 4}  # bytes of an element


def library() -> ctypes.CDLL:
    """predicted_us(), compiled."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "cost_model.so"
        cuda = Path(shutil.which(os.environ.get("CUDACXX", "nvcc")))
        subprocess.run(
            ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{ROOT}", f"-I{cuda.resolve().parents[1] / 'include'}",
             ROOT / "bench/cost_model.cpp", "-o", built], check=True,
        )  # fmt: skip
        return ctypes.CDLL(str(built))


class Times:
    """What was measured, a row per product and plan."""

    def __init__(self, rows: pd.DataFrame, facts: dict[str, dict[str, float]], lib: ctypes.CDLL):
        self.rows, self.lib = rows.reset_index(drop=True), lib
        self.group = self.rows.groupby(["gpu", "type", "out", "m", "n", "k"], sort=False).ngroup().to_numpy()
        self.log = np.log(self.rows.microseconds.to_numpy())
        self.best = pd.Series(self.log).groupby(self.group).transform("min").to_numpy()
        self.products = (Product * len(rows))()
        self.tilings = (Tiling * len(rows))()
        for i, row in enumerate(self.rows.itertuples()):
            tile = {name: int(value) for name, value in facts[row.plan].items()}
            sides = (row.n, row.m) if tile["swapped"] else (row.m, row.n)
            element, result = SIZES[row.type], 4 if row.out == "f32" else SIZES[row.type]
            k_tiles, blocks = -(-row.k * element // 128), tile["cluster_m"] * tile["cluster_n"]
            tiles = -(-sides[0] // (tile["cluster_m"] * tile["bm"])) * -(-sides[1] // (tile["cluster_n"] * tile["bn"]))
            splits = min(SMS // tiles, k_tiles // tile["least_k_tiles"]) if tile["splits"] else 1
            whole = row.k * element % 128 == 0 or 128 % (row.k * element) == 0
            size = float(element * (row.m + row.n) * row.k + result * row.m * row.n)
            self.products[i] = Product(*sides, k_tiles, whole, size, result)
            self.tilings[i] = Tiling(tile["bm"], tile["bn"], tile["cluster_m"], tile["cluster_n"], RESIDENT[blocks],
                                     bool(tile["ping_pong"]), splits,
                                     result == 4 if tile["swapped"] else tile["bn"] * result % 64 != 0)  # fmt: skip

    def predict(self, constants: np.ndarray) -> np.ndarray:
        """The rows of a card are neighbours."""
        out = np.zeros(len(self.rows))
        cost = (ctypes.c_double * len(NAMES))(*constants)
        for gpu, rows in self.rows.groupby("gpu").groups.items():
            first, count = rows[0], len(rows)
            part = [ctypes.byref(many, first * ctypes.sizeof(many._type_)) for many in (self.products, self.tilings)]
            pointer = out[first:].ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            self.lib.predict(count, *part, ctypes.byref(CARDS[gpu]), cost, pointer)
        return out

    def losses(self, predicted: np.ndarray, without: str = "") -> np.ndarray:
        """Per product: how much longer the chosen plan took than the fastest, as a logarithm."""
        known = np.where(self.rows.plan == without, np.inf, predicted)
        chosen = pd.Series(known).groupby(self.group).idxmin().to_numpy()
        return (self.log - self.best)[chosen]

    def badness(self, constants: np.ndarray) -> float:
        if (constants <= 0).any():
            return np.inf
        predicted = self.predict(constants)
        error = (np.log(predicted) - self.log)[self.log < self.best + np.log(NEAR)]
        # A choice jumps from plan to plan; weights that fall quickly with the predicted time make its loss smooth.
        least = pd.Series(predicted).groupby(self.group).transform("min").to_numpy()
        weight = (predicted / least) ** -50
        share = weight / np.bincount(self.group, weight)[self.group]
        smooth = (share * (self.log - self.best)).sum() / (self.group.max() + 1)
        # An error that all plans of a product share changes no choice.
        product = self.group[self.log < self.best + np.log(NEAR)]
        shared = np.bincount(product, error) / np.maximum(np.bincount(product), 1)
        error_of_choice, error_of_time = error - shared[product], error
        return (
            smooth
            + 0.3 * self.losses(predicted).mean()
            + 0.1 * np.sqrt((error_of_choice**2).mean())
            + 0.05 * np.sqrt((error_of_time**2).mean())
        )


def fit(times: Times, constants: np.ndarray) -> np.ndarray:
    """Nelder-Mead, begun anew from what it found."""
    from scipy.optimize import minimize  # all else here does without SciPy

    for _ in range(4):
        steps = np.where(np.arange(len(constants)) % 2, 1.15, 0.85)
        simplex = np.vstack([constants, constants * (1 + (steps - 1)[:, None] * np.eye(len(constants)))])
        options = {"maxiter": 1500, "adaptive": True, "initial_simplex": simplex}
        constants = minimize(times.badness, constants, method="Nelder-Mead", options=options).x
    return constants


def percent(losses: np.ndarray) -> str:
    return f"{100 * losses.mean():.2f} % (at most {100 * losses.max():.0f} %)"


def recorded(facts: dict[str, dict[str, float]], paths: list[Path] = RECORDED) -> pd.DataFrame:
    """What the constants are fitted to: times of plans that 33 has. Where there are two of a plan, their mean."""
    rows = pd.concat([pd.read_csv(path, dtype={"rung": str}) for path in paths]).query("rung == '33'")
    rows = rows[rows.plan.isin(list(facts))]
    return rows.groupby(["gpu", "type", "out", "m", "n", "k", "plan"], sort=False).microseconds.mean().reset_index()


def without_each(rows: pd.DataFrame) -> pd.DataFrame:
    """Per plan, the percent by which the fastest plan of a product is slower where this one is not to be had."""
    products = ["gpu", "type", "out", "m", "n", "k"]
    best = rows.sort_values("microseconds").groupby(products).head(2)
    first = best.groupby(products).head(1).set_index(products)
    second = best.groupby(products).tail(1).set_index(products)
    lost = 100 * (second.microseconds / first.microseconds - 1)
    found = []
    for plan in sorted(rows.plan.unique()):
        of_plan = lost[first.plan == plan]
        most = of_plan.idxmax() if len(of_plan) else ("",) * len(products)
        found.append((plan, len(of_plan), of_plan.sum() / len(first), of_plan.max() if len(of_plan) else 0, *most))
    return pd.DataFrame(found, columns=["plan", "fastest", "mean_percent", "most_percent", *products])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plans", nargs="*", type=Path, default=RECORDED)
    parser.add_argument("--without", type=Path, metavar="FILE", help="what the fastest plans lose without each one")
    options = parser.parse_args()
    facts = of_ladder(ROOT).find("33").constants
    rows = recorded(facts, options.plans)
    if options.without:
        without_each(rows).to_csv(options.without, index=False, float_format="%.4g", lineterminator="\n")
        return 0
    lib = library()
    begin = np.array([facts["cost"][name] for name in NAMES])

    def losses_of(part: pd.DataFrame, constants: np.ndarray) -> str:
        times = Times(part, facts, lib)
        return percent(times.losses(times.predict(constants)))

    everything = Times(rows, facts, lib)
    print(f"{everything.group.max() + 1} products; as the header has it the choice loses {losses_of(rows, begin)}")
    found = fit(everything, begin)
    for name, value in zip(NAMES, found, strict=True):
        print(f"  {name:20} {value:.4g}")
    print(f"with these {losses_of(rows, found)}")
    for name, part in rows.groupby(["gpu", "type", "out"]):
        print(f"  {' '.join(name):36} {losses_of(part, found)}")
    mapped = pd.read_csv(ROOT / "bench/shapes/map.txt", sep=r"[x\s]+", engine="python", comment="#", names=["m", "n", "k"])
    in_map = rows.merge(mapped.drop_duplicates(), how="left", indicator=True)["_merge"].to_numpy() == "both"
    parts = {
        "the map": in_map,
        "the others": ~in_map,
        **{f"the {gpu}": (rows.gpu == gpu).to_numpy() for gpu in rows.gpu.unique()},
    }
    for name, part in parts.items():
        if part.any() and not part.all():
            print(f"fitted to {name}, on the rest: {losses_of(rows[~part], fit(Times(rows[part], facts, lib), found))}")
    predicted, all_losses = everything.predict(found), everything.losses(everything.predict(found))
    print("without one plan: more lost on average, and at most")
    for plan in sorted(rows.plan.unique()):
        more = everything.losses(predicted, plan) - all_losses
        print(f"  {plan:14} {100 * more.mean():5.2f} % {100 * more.max():5.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
