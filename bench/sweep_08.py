#!/usr/bin/env python3
"""Variants of rung 08, timed side by side: what its constants and the order of its lines are worth.

usage: python3 bench/sweep_08.py [--build-only] [--arch sm_90a] [NAME...]      (after ./run_all.sh list, which builds)

Each variant is kernels/08_warp_tiling.cu with the lines below replaced. All of them become rungs of one program, which
checks and times them in one process beside cuBLAS. Equal-looking variants differ by some per cent because the compiler
orders and colours each of them anew: compare the machine code, too, before a difference is given a reason.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Change, Sweep

LANES = "const auto [lane_col, lane_row] = row_major(threadIdx.x % 32, LANE_ROWS);"
NO_CARRY = 'static_assert(128 / BK % (LANE_ROWS * 4) == 0 && WM % 32 == 0, "no carry where `row` is added to swizzled_column()");'
FETCH = "load_fragments((k + 1) % BK);"
ORDER = "const int j_serpentine = i % 2 ? TN - 1 - j : j;"
OPAQUE = 'asm("" : "+r"(lane_row), "+r"(lane_col));'  # hides the map from the compiler: the same code for each of them
ROWS = "spread(0, i, LANE_ROWS)"
SPLIT = [("split(i, BM)", ROWS), ("split(j, BN)", "spread(0, j, LANE_COLS)")]  # what 07 calls them
CARRY = [
    (f"row + swizzled_column(k, {ROWS}, BK)", f"swizzled_column(k, row + {ROWS}, BK)"),
    (NO_CARRY, ""),
]  # for tiles where it can


def lanes(row: str, col: str) -> Change:
    return LANES, f"int lane_row = {row}, lane_col = {col}; {OPAQUE}"


def epilogue(stem: str) -> str:
    text = (ROOT / f"kernels/{stem}.cu").read_text()
    return text[text.index("  // 4. epilogue") : text.index("void launch")]


VARIANTS: dict[str, list[Change]] = {
    "as_written": [],
    # the map of lanes to the 4 x 8 thread tiles of a warp
    "lanes_by_column": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4")],
    "lanes_by_row": [lanes("threadIdx.x % 32 / 8", "threadIdx.x % 8")],
    "lanes_diagonal": [lanes("threadIdx.x % 4", "threadIdx.x % 32 / 4 ^ threadIdx.x % 4")],
    # the k step at which the next tile is stored, and at which its loads set out
    **{f"store_at_{k}": [("k == BK - 3", f"k == {k}")] for k in (3, 4, 6)},
    "loads_at_1": [
        ("if (k_offset > 0) {  // the next tile's loads", "const auto load_tile = [&] {"),
        ("}\n\n#pragma unroll\n    for (int k = 0;", "};\n\n#pragma unroll\n    for (int k = 0;"),
        (FETCH, f"{FETCH}\n      if (k == 1 && k_offset > 0) load_tile();"),
    ],
    # the order of the FMAs
    "no_snake": [(ORDER, "const int j_serpentine = j;")],
    "snake_turned": [(ORDER, "const int j_serpentine = i % 2 ? j : TN - 1 - j;")],
    "rows_turned": [(ORDER, "const int j_serpentine = (i + k) % 2 ? TN - 1 - j : j;")],
    # lines outside the main loop, or the same in other words
    "epilogue_of_07": [(epilogue("08_warp_tiling"), epilogue("07_double_buffer")), *SPLIT],
    "swizzle_of_the_sum": CARRY,
    # tiles
    "bk_16": [("BK = 8; ", "BK = 16;"), *CARRY],
    "thread_8x16": [("TM = 16;", "TM = 8; "), ("TN = 8; ", "TN = 16;"), *CARRY],
    "block_256x128": [("BM = 128;", "BM = 256;"), ("BN = 256;", "BN = 128;")],
    "block_128x128_twice": [("BN = 256;", "BN = 128;"), ("(Tile::THREADS, 1)", "(Tile::THREADS, 2)")],
}


SWEEP = Sweep("08_warp_tiling", VARIANTS, "4096x4096x4096,8192x8192x8192", protocol="rounds", leave_out_spills=True)
varied = SWEEP.varied

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
