#!/usr/bin/env python3
"""Every way to cut K, timed: what the models of 17, 17b and 17f choose among, and what their constants are fitted to.

usage: python3 bench/sweep_17.py [--build-only] [--built] [--arch sm_90a] [17b] [17f]     (after ./run_all.sh list, which builds)

Of each rung a variant is built whose plan is not the model's but the environment's: SPLITS, SERIAL and LARGE. It runs once for
every shape, tile, number of splits and way of adding them. The rows go to build/sweep_17/ladder.csv: the harness's columns after
those of the plan.
"""

import argparse
import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Sweep
from plots.data.gpu import has_gpu

SHAPES = ["128x4096x4096", "256x4096x4096", "512x512x16384", "256x256x65536", "1024x1024x1024", "1536x1536x1536"]
SHAPES += ["2048x2048x2048", "3072x3072x3072"]
BUILT = ROOT / "build/sweep_17/built.json"  # what record.sh looks for
SMS = 132  # of the GPU that the splits are chosen for
FORCED = {name: f'atoi(getenv("{name}"))' for name in ("SPLITS", "SERIAL", "LARGE")}  # what the model would choose


@dataclass(frozen=True)
class Rung:
    sweep: Sweep
    tiles: dict[str, tuple[int, int]]  # rows and columns, the large one first
    ways: tuple[str, ...]
    k_tile: int
    type: str


RUNGS = {
    "17b": Rung(  # it has 17's way of adding, too
        Sweep("17b", constants=FORCED),
        {"large": (256, 128), "deep": (128, 128)},
        ("second_kernel", "in_turn"),
        64,
        "bf16",
    ),
    "17f": Rung(Sweep("17f", constants=FORCED), {"128x256": (128, 256)}, ("second_kernel",), 8, "f32"),
}


def split_counts(tiles: int, k_tiles: int) -> list[int]:
    """Those that fill one to three waves as well as they can, and the smallest ones."""
    filling = [waves * SMS // tiles for waves in (1, 2, 3)]
    return sorted({n for n in [1, 2, 3, 4, 6, 8, *filling] if 1 <= n <= k_tiles and (n == 1 or tiles * n <= 6 * SMS)})


def rows(rung: Rung, shape: str) -> list[dict[str, str]]:
    """One for each plan; the program times it beside cuBLAS."""
    m, n, k = (int(size) for size in shape.split("x"))
    found = []
    for number, (tile, (tile_m, tile_n)) in enumerate(rung.tiles.items()):
        for splits in split_counts(-(-m // tile_m) * -(-n // tile_n), -(-k // rung.k_tile)):
            for serial, way in enumerate(rung.ways):
                if splits == 1 and serial:
                    continue
                table = rung.sweep.folder / "one.csv"
                table.unlink(missing_ok=True)
                command = [rung.sweep.folder / "ladder", "--shapes", shape, "--type", rung.type, "--out", "same", "--csv", table]
                command += ["--ceilings", ROOT / "bench/recorded/nvidia-h200/ceilings.csv"]
                plan = {"SPLITS": str(splits), "SERIAL": str(serial), "LARGE": str(1 - number)}
                subprocess.run(command, env=os.environ | plan, stdout=subprocess.DEVNULL)
                with table.open(newline="") as file:
                    for row in csv.DictReader(file):
                        row["kernel"] = rung.sweep.facts.stem
                        found.append({"slices": str(splits), "way": way if splits > 1 else "none"} | row)
                        said = (row[column] for column in ("status", "median_ms", "ratio_best", "reason"))
                        print(shape, tile, splits, way, *said, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rungs", nargs="*", metavar="RUNG", help="17b, 17f; both without")
    parser.add_argument("--arch", default="native", help="as nvcc has it, such as sm_90a")
    parser.add_argument("--build-only", action="store_true", help="needs no GPU, but then --arch")
    parser.add_argument("--built", action="store_true", help="time what --build-only built, on whichever machine")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="as the harness has them")
    options = parser.parse_args()
    if unknown := set(options.rungs) - set(RUNGS):
        parser.error(f"no such rung: {' '.join(sorted(unknown))}; there are {' '.join(RUNGS)}")
    chosen = [RUNGS[name] for name in options.rungs or RUNGS]
    if not options.built:
        for rung in chosen:
            rung.sweep.folder.mkdir(exist_ok=True)
            rung.sweep.build(argparse.Namespace(names=[], arch=options.arch, type=rung.type, build_only=True))
        BUILT.parent.mkdir(exist_ok=True)
        BUILT.touch()
    if options.build_only:
        return 0
    if not has_gpu():
        print("sweep_17.py: needs a GPU, and nvidia-smi lists none", file=sys.stderr)
        return 77
    found = [row for rung in chosen for shape in options.shapes.split(",") for row in rows(rung, shape)]
    with (ROOT / "build/sweep_17/ladder.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
