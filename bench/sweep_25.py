#!/usr/bin/env python3
"""Variants of rung 25, timed side by side: the order of its tiles, its stages and buffers, its roles and its epilogue.

usage: python3 bench/sweep_25.py [--type bf16] [--protocol rounds] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)

Each variant is kernels/25_persistent.cu with the lines below replaced. All of them become rungs of one program, which checks
and times them in one process beside cuBLAS. `again` at the end is what `as_written` gets a second time.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import Change, Sweep, Variant


def group(size: int) -> list[Change]:
    return [("GROUP_SIZE_M = 8;", f"GROUP_SIZE_M = {size};")]


def stages(stages: int, buffers: int) -> list[Change]:
    return [(" STAGES = 4;", f" STAGES = {stages};"), ("BUFFERS = 2;", f"BUFFERS = {buffers};")]


def late(k_tiles: int) -> list[Change]:
    """The second warpgroup begins once the first has issued so many k tiles of its first tile of C."""
    return [
        ("  // [/main-loop]\n", "  // [/main-loop]\n  if (warpgroup == 1) bar_sync(3, 256);\n  int issued = 0;\n"),
        (
            "      multiply_k_tile(acc);",
            "      multiply_k_tile(acc);\n"
            f"      if (warpgroup == 0 && ++issued == min({k_tiles}, k_tiles))\n"
            '        asm volatile("bar.arrive 3, 256;" ::: "memory");',
        ),
    ]


CONFLICT_FREE = [  # in FP32 odd rows store the columns 16 further on first
    (
        "      const auto each_pair =",
        """      const int swapped = sizeof(TC) == 4 && (lane & 4) ? 2 : 0;
#pragma unroll
      for (int j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (sizeof(TC) == 4 && (j & 2) == 0) {
            float &x = acc[part * COLUMNS / 8 + j][e], &y = acc[part * COLUMNS / 8 + (j | 2)][e];
            const float x0 = x;
            x = swapped ? y : x, y = swapped ? x0 : y;
          }
      const auto each_pair =""",
    ),
    ("j_col = j * 8 + c_col", "j_col = (j ^ swapped) * 8 + c_col"),
]

VARIANTS = {
    "as_written": Variant("4 stages, 2 buffers per warpgroup, groups of 8 clusters", []),
    "group_size_2": Variant("groups of 2 clusters", group(2)),
    "group_size_4": Variant("groups of 4 clusters", group(4)),
    "group_size_16": Variant("groups of 16 clusters", group(16)),
    "stages_3_buffers_2": Variant("3 stages", stages(3, 2)),
    "stages_3_buffers_4": Variant("3 stages, 4 buffers", stages(3, 4)),
    "buffers_1": Variant("1 buffer", stages(4, 1)),
    "wait_0": Variant("each k tile is multiplied before the next is issued", [
        ("wgmma_wait_group<1>();  // the previous k tile is multiplied\n    consumer_release();\n    multiplied = state.index;",
         "wgmma_wait_group<0>();\n    multiplied = state.index;\n    consumer_release();"),
        ("wgmma_wait_group<0>();\n    consumer_release();\n    multiplied = -1;", ""),
    ]),
    "promotion_128": Variant("L2 loads of 128 bytes", [
        (f"{{{rows}}})", f"{{{rows}}}, CU_TENSOR_MAP_L2_PROMOTION_L2_128B)")
        for rows in ("Tile::BM", "Tile::BN / Tile::CLUSTER", "Tile::WM")
    ]),
    "late_1": Variant("the second warpgroup a k tile behind", late(1)),
    "late_2": Variant("the second warpgroup two k tiles behind", late(2)),
    "conflict_free": Variant("stores into buffers without conflicts", CONFLICT_FREE),
    "conflict_free_late_1": Variant("both", CONFLICT_FREE + late(1)),
    "without_setmaxnreg": Variant("no setmaxnreg", [("    setmaxnreg_dec<40>();\n", ""), ("  setmaxnreg_inc<232>();\n", "")]),
    "again": Variant("nothing: as written, timed again as the last", []),
}  # fmt: skip

SWEEP = Sweep(
    "25_persistent",
    {name: variant.changes for name, variant in VARIANTS.items()},
    shapes="4096x4096x4096,8192x8192x8192",
    protocol="rounds",
    what={name: variant.what for name, variant in VARIANTS.items()},
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
