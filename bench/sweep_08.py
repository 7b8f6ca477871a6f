#!/usr/bin/env python3
"""Variants of rung 08, timed side by side: what its constants and the order of its lines are worth.

usage: python3 bench/sweep_08.py [--build-only] [--arch sm_90a] [NAME...]      (after ./run_all.sh list, which builds)

Each variant is kernels/08_warp_tiling.cu with the lines below replaced. All of them become rungs of one program, which
checks and times them in one process beside cuBLAS. Equal-looking variants differ by some per cent because the compiler
orders and colours each of them anew: compare the machine code, too, before a difference is given a reason.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "kernels/08_warp_tiling.cu"
BUILD = ROOT / "build"
FOLDER = BUILD / "sweep_08"
SHAPES = "4096x4096x4096,8192x8192x8192"

LANES = "const auto [lane_col, lane_row] = row_major(threadIdx.x % 32, WM / TM);"
STORE = "if (k == BK - 2) store_tile"
ORDER = "const int snake = i % 2 ? TN - 1 - j : j;"
OPAQUE = 'asm("" : "+r"(lane_row), "+r"(lane_col));'  # hides the map from the compiler: the same code for each of them


def lanes(row: str, col: str) -> tuple[str, str]:
    return LANES, f"int lane_row = {row}, lane_col = {col}; {OPAQUE}"


VARIANTS: dict[str, list[tuple[str, str]]] = {
    "as_written": [],
    # the map of lanes to the 4 x 8 thread tiles of a warp
    "lanes_by_column": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4")],
    "lanes_by_row": [lanes("threadIdx.x % 32 / 8", "threadIdx.x % 8")],
    "lanes_diagonal": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4 ^ threadIdx.x % 4")],
    # the k step at which the next tile is stored
    "store_at_5": [(STORE, "if (k == 5) store_tile")],
    "store_at_4": [(STORE, "if (k == 4) store_tile")],
    "store_at_3": [(STORE, "if (k == 3) store_tile")],
    # the order of the FMAs
    "no_snake": [(ORDER, "const int snake = j;")],
    "snake_turned": [(ORDER, "const int snake = i % 2 ? j : TN - 1 - j;")],
    "rows_turned": [(ORDER, "const int snake = (i + k) % 2 ? TN - 1 - j : j;")],
    # tiles
    "bk_16": [("BK = 8; ", "BK = 16;"), ("row + swizzle(k, spread(i, TM, WM), BK)", "swizzle(k, row + spread(i, TM, WM), BK)")],
    "block_256x128": [("BM = 128;", "BM = 256;"), ("BN = 256;", "BN = 128;")],
    "block_128x128_twice": [("BN = 256;", "BN = 128;"), ("(Tile::THREADS, 1)", "(Tile::THREADS, 2)")],
}


def write(name: str) -> Path:
    text = SOURCE.read_text()
    for old, new in [*VARIANTS[name], ('.name = "warp_tiling"', f'.name = "{name}"')]:
        if old not in text:
            sys.exit(f"sweep_08: {name} replaces a line that {SOURCE.name} does not have: {old}")
        text = text.replace(old, new)
    file = FOLDER / f"{name}.cu"
    file.write_text(text)
    return file


def compiled(nvcc: str, arch: str, name: str) -> str | None:
    """Why this variant cannot run; None where it can."""
    options = ["-std=c++20", "-O3", f"-arch={arch}", f"-I{ROOT}", "-Xptxas=-v"]
    command = [nvcc, *options, "-c", str(write(name)), "-o", str(FOLDER / f"{name}.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    return None if " 0 bytes spill stores" in done.stderr else "spills"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"variants: {' '.join(VARIANTS)}")
    parser.add_argument("--arch", default="native", help="as nvcc has it, such as sm_90a")
    parser.add_argument("--shapes", default=SHAPES, help="as the harness has them")
    parser.add_argument("--build-only", action="store_true", help="needs no GPU, but --arch")
    options = parser.parse_args()
    if unknown := set(options.names) - set(VARIANTS):
        parser.error(f"no such variant: {' '.join(sorted(unknown))}")
    names = options.names or list(VARIANTS)
    harness = BUILD / "libharness.a"
    if not harness.exists():
        parser.error("the harness is not built: ./run_all.sh list")

    FOLDER.mkdir(exist_ok=True)
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reasons = dict(zip(names, pool.map(lambda name: compiled(nvcc, options.arch, name), names), strict=True))
    for name, reason in reasons.items():
        if reason:
            print(f"{name} is left out: {reason}")
    objects = [FOLDER / f"{name}.o" for name in names if not reasons[name]]
    program, table = FOLDER / "ladder", FOLDER / "ladder.csv"
    libraries = ["-cudart=shared", "-lcublas", "-lcublasLt", "-ldl", f"-Xlinker=-rpath={Path(nvcc).resolve().parents[1]}/lib64"]
    link = [nvcc, f"-I{ROOT}", "-std=c++20", ROOT / "bench/main.cpp", *objects, harness, *libraries, "-o", program]
    subprocess.run(list(map(str, link)), check=True)
    if options.build_only:
        return 0

    table.unlink(missing_ok=True)
    status = subprocess.run([program, "--shapes", options.shapes, "--csv", table]).returncode
    with table.open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["m"], -float(row["ratio_cublas"] or 0)))
    for row in rows:
        print(f"{row['m']:>6} {row['kernel']:24} {row['status']:7} {row['gflops']:>9} GFLOP/s {row['ratio_cublas']:>8} of cuBLAS")
    return status


if __name__ == "__main__":
    sys.exit(main())
