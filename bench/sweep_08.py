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
FOLDER = ROOT / "build/sweep_08"

LANES = "const auto [lane_col, lane_row] = row_major(threadIdx.x % 32, LANE_ROWS);"
NO_CARRY = 'static_assert(128 / BK % (LANE_ROWS * 4) == 0 && WM % 32 == 0, "no carry where `row` is added to swizzle()");'
FETCH = "load_fragments((k + 1) % BK);"
ORDER = "const int snake = i % 2 ? TN - 1 - j : j;"
OPAQUE = 'asm("" : "+r"(lane_row), "+r"(lane_col));'  # hides the map from the compiler: the same code for each of them
ROWS = "spread(0, i, LANE_ROWS)"
SPLIT = [("split(i, BM)", ROWS), ("split(j, BN)", "spread(0, j, LANE_COLS)")]  # what 07 calls them
CARRY = [(f"row + swizzle(k, {ROWS}, BK)", f"swizzle(k, row + {ROWS}, BK)"), (NO_CARRY, "")]  # for tiles where it can


def lanes(row: str, col: str) -> tuple[str, str]:
    return LANES, f"int lane_row = {row}, lane_col = {col}; {OPAQUE}"


def epilogue(stem: str) -> str:
    text = (ROOT / f"kernels/{stem}.cu").read_text()
    return text[text.index("  // 4. epilogue") : text.index("void launch")]


VARIANTS: dict[str, list[tuple[str, str]]] = {
    "as_written": [],
    # the map of lanes to the 4 x 8 thread tiles of a warp
    "lanes_by_column": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4")],
    "lanes_by_row": [lanes("threadIdx.x % 32 / 8", "threadIdx.x % 8")],
    "lanes_diagonal": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4 ^ threadIdx.x % 4")],
    # the k step at which the next tile is stored, and at which its loads set out
    **{f"store_at_{k}": [("k == BK - 3", f"k == {k}")] for k in (3, 4, 6)},
    "loads_at_1": [
        ("if (k_tile > 0) {  // the next tile sets out", "const auto load_tile = [&] {"),
        ("}\n\n#pragma unroll\n    for (int k = 0;", "};\n\n#pragma unroll\n    for (int k = 0;"),
        (FETCH, f"{FETCH}\n      if (k == 1 && k_tile > 0) load_tile();"),
    ],
    # the order of the FMAs
    "no_snake": [(ORDER, "const int snake = j;")],
    "snake_turned": [(ORDER, "const int snake = i % 2 ? j : TN - 1 - j;")],
    "rows_turned": [(ORDER, "const int snake = (i + k) % 2 ? TN - 1 - j : j;")],
    # lines outside the main loop, or the same in other words
    "epilogue_of_07": [(epilogue("08_warp_tiling"), epilogue("07_double_buffer")), *SPLIT],
    "swizzle_of_the_sum": CARRY,
    # tiles
    "bk_16": [("BK = 8; ", "BK = 16;"), *CARRY],
    "thread_8x16": [("TM = 16;", "TM = 8; "), ("TN = 8; ", "TN = 16;"), *CARRY],
    "block_256x128": [("BM = 128;", "BM = 256;"), ("BN = 256;", "BN = 128;")],
    "block_128x128_twice": [("BN = 256;", "BN = 128;"), ("(Tile::THREADS, 1)", "(Tile::THREADS, 2)")],
}


def varied(name: str) -> str:
    text = SOURCE.read_text()
    for old, new in [*VARIANTS[name], ('.name = "warp_tiling"', f'.name = "{name}"')]:
        if old not in text:
            sys.exit(f"sweep_08: {name} replaces a line that {SOURCE.name} does not have: {old}")
        text = text.replace(old, new)
    return text


def compiled(nvcc: str, arch: str, name: str) -> str | None:
    """Why this variant cannot run; None where it can."""
    source = FOLDER / f"{name}.cu"
    source.write_text(varied(name))
    options = ["-std=c++20", "-O3", f"-arch={arch}", f"-I{ROOT}", "-Xptxas=-v"]
    done = subprocess.run([nvcc, *options, "-c", source, "-o", source.with_suffix(".o")], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    return None if " 0 bytes spill stores" in done.stderr else "spills"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"variants: {' '.join(VARIANTS)}")
    parser.add_argument("--arch", default="native", help="as nvcc has it, such as sm_90a")
    parser.add_argument("--shapes", default="4096x4096x4096,8192x8192x8192", help="as the harness has them")
    parser.add_argument("--build-only", action="store_true", help="needs no GPU, but --arch")
    options = parser.parse_args()
    if unknown := set(options.names) - set(VARIANTS):
        parser.error(f"no such variant: {' '.join(sorted(unknown))}")
    names = options.names or list(VARIANTS)
    harness = ROOT / "build/libharness.a"
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
    main_file = ROOT / "bench/main.cpp"
    subprocess.run([nvcc, f"-I{ROOT}", "-std=c++20", main_file, *objects, harness, *libraries, "-o", program], check=True)
    if options.build_only:
        return 0

    if not shutil.which("nvidia-smi") or subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True).returncode:
        print("sweep_08.py: needs a GPU, and nvidia-smi lists none", file=sys.stderr)
        return 77

    table.unlink(missing_ok=True)
    status = subprocess.run([program, "--shapes", options.shapes, "--csv", table]).returncode
    with table.open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["m"], -float(row["ratio_cublas"] or 0)))
    for row in rows:
        print(f"{row['m']:>6} {row['kernel']:24} {row['status']:7} {row['gflops']:>9} GFLOP/s {row['ratio_cublas']:>8} of cuBLAS")
    return status


if __name__ == "__main__":
    sys.exit(main())
