#!/usr/bin/env python3
"""Variants of rung 16, timed side by side: its tile, its stages, its warps and the order of its lines.

usage: python3 bench/sweep_16.py [--type bf16] [--build-only] [--built] [--arch sm_90a] [NAME...]  (after ./run_all.sh list,
which builds)

Each variant is kernels/16_epilogue.cu with the lines below replaced, and without the tile for smaller GPUs. All of them
become rungs of one program, which checks and times them in one process beside cuBLAS, five seconds per variant: each at the
clock that its own power allows. A variant that spills is timed, too, and says so. `again` at the end is what `as_written`
gets a second time.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import Change, Sweep, Variant
from plots.data import rungs

LARGE, SMALL = "using Large = TileConfig<256, 64>;", "using Small = TileConfig<128, 32>;"


def tile(bm: int = 256, bn: int = 128, wm: int = 64, wn: int = 64, stages: int = 3) -> list[Change]:
    """Another tile of C, of a block or a warp, or other stages, and what the kernel takes for granted of its own."""
    sizes = {"BN": (128, bn), "WM": (64, wm), "STAGES": (3, stages)}
    changes = [(f" {name} = {old};", f" {name} = {new};") for name, (old, new) in sizes.items() if old != new]
    if (bm, wn) != (256, 64):
        changes.append((LARGE, f"using Large = TileConfig<{bm}, {wn}>;"))
    rows = bm // wm * (bn // wn) * 4  # that the block copies at once
    if rows % 32:  # then a thread's permuted columns of B are not `rows` apart, where results have 16 bits
        changes += PERMUTED_EACH
    return changes


PERMUTED_EACH = [
    (", copy_col = permuted_column(copy_row, SIZE)", ""),
    ("copy_col + i * COPY_ROWS - BM,", "permuted_column(copy_row + i * COPY_ROWS - BM, SIZE),"),
    ("static_assert(COPY_ROWS % 32 == 0 && WN", "static_assert(COPY_ROWS % 8 == 0 && WN"),
]
TWICE = [("(Tile::THREADS, 1)", "(Tile::THREADS, 2)"), ("device_limits().sms)", "2 * device_limits().sms)")]
KEPT = ("    keep_in_register(ldsm_a_addr[k_step]), keep_in_register(ldsm_b_addr[k_step]);\n", "")
FROM_BASE = [  # pointers that stay, and how far back from them the next k tile is
    ("int copy_bytes = 16; ", "int back = 0, copy_bytes = 16; "),
    ("if (RESIDUE) copy_bytes = min(", "back = 0;\n    if (RESIDUE) copy_bytes = min("),
    ("#pragma unroll\n      for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= BK_BYTES;", "back += BK_BYTES;"),
    ("cp_async_cg_16(dst, cp_async_src[i]", "cp_async_cg_16(dst, cp_async_src[i] - back"),
]
LOOPS = """for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {"""
BY_ROWS = [
    (
        LOOPS,
        "for (int i = 0; i < WM / 16; ++i)\n#pragma unroll\n        for (int j = 0; j < WN / 8; ++j) {",
    )
]
SERPENTINE = [
    (LOOPS, f"{LOOPS}\n          const int serpentine = j % 2 ? WM / 16 - 1 - i : i;"),
    ("acc[i][j], rA[k_step % 2][i]", "acc[serpentine][j], rA[k_step % 2][serpentine]"),
]
NO_PREFETCH = ("      if (beta != 0.0F) prefetch_c(copy_c_tile);\n", "")
MULTIPLY = "--k_tiles_left)\n      read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);"
PREFETCH_AND_MULTIPLY = """--k_tiles_left) {
      if (beta != 0.0F && k_tiles_left == 2) prefetch_c(c_tile);
      read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);
    }"""
WAIT = ("cp_async_wait_group<STAGES - 2>();  // my", "cp_async_wait_group<STAGES - 3>();  // my")  # in the loop
NOT_ALL = ("static_assert(COPY_STEPS < K_STEPS,", "static_assert(COPY_STEPS == K_STEPS,")
COPY_STAGE = "copy(stage * Tile::STAGE_BYTES, 0, COPIES);"
LAST = [  # the pointers move after the copies of a k tile, and so they do before the loop
    ("if (k_step == 0) next_k_tile();", "if (k_step == K_STEPS - 1) next_k_tile();"),
    (f"if (stage > 0) next_k_tile();\n    {COPY_STAGE}", f"{COPY_STAGE}\n    next_k_tile();"),
]
C_TILES = "ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN)"
GROUP = "GROUP_SIZE_M = 8;"


def copy_steps(steps: int) -> list[Change]:
    """With four, the last copies of a k tile are issued after the wait, which then counts one group less."""
    return [("COPY_STEPS = 3;", f"COPY_STEPS = {steps};"), *([WAIT, NOT_ALL] if steps == 4 else [])]


VARIANTS = {
    "as_written": Variant("256×128 results per block, 64×64 per warp, 3 stages, copies in three steps", []),
    # tiles and warps
    "block_128x256": Variant("128×256 per block", tile(128, 256)),
    "block_192x128": Variant("192×128 per block, 48×64 per warp", tile(bm=192, wm=48)),
    "block_192x128_stages_5": Variant("192×128 per block, 48×64 per warp, 5 stages", tile(bm=192, wm=48, stages=5)),
    "block_128x128": Variant("128×128 per block, 64×32 per warp: the tile for smaller GPUs", tile(bm=128, wn=32)),
    "block_128x128_stages_6": Variant("128×128 per block, 64×32 per warp, 6 stages", tile(bm=128, wn=32, stages=6)),
    "block_128x128_twice": Variant("128×128 per block of 4 warps, 2 per SM", tile(bm=128) + TWICE),
    "block_128x128_twice_stages_2": Variant("128×128 per block of 4 warps, 2 per SM, 2 stages", tile(bm=128, stages=2) + TWICE),
    "block_128x128_twice_stages_4": Variant("128×128 per block of 4 warps, 4 stages: 1 per SM", tile(bm=128, stages=4) + TWICE),
    "block_128x128_twice_8_warps": Variant("128×128 per block, 64×32 per warp, 2 per SM", tile(bm=128, wn=32) + TWICE),
    "block_256x64": Variant("256×64 per block, 64×32 per warp", tile(bn=64, wn=32)),
    "block_256x64_stages_5": Variant("256×64 per block, 64×32 per warp, 5 stages", tile(bn=64, wn=32, stages=5)),
    "block_256x64_twice": Variant("256×64 per block of 4 warps, 2 per SM, 2 stages", tile(bn=64, stages=2) + TWICE),
    "warp_128x32": Variant("128×32 per warp", tile(wm=128, wn=32)),
    "warp_32x128": Variant("32×128 per warp", tile(wm=32, wn=128)),
    "warps_16_of_64x32": Variant("64×32 per warp, 16 warps", tile(wn=32)),
    "warps_16_of_32x64": Variant("32×64 per warp, 16 warps", tile(wm=32)),
    # stages, and where the copies stand
    "stages_2": Variant("2 stages", tile(stages=2)),
    "stages_4": Variant("4 stages", tile(stages=4)),
    "block_128x256_stages_4": Variant("128×256 per block, 4 stages", tile(128, 256, stages=4)),
    "copy_steps_1": Variant("copies in one step", copy_steps(1)),
    "copy_steps_2": Variant("copies in two steps", copy_steps(2)),
    "copy_steps_4": Variant("copies in four steps: a wait for all of them", copy_steps(4)),
    "copy_steps_4_stages_4": Variant("copies in four steps, 4 stages", copy_steps(4) + tile(stages=4)),
    # addresses
    "without_keep": Variant("addresses of `ldmatrix` without `keep_in_register`", [KEPT]),
    "pointers_from_base": Variant("pointers that stay, and a common offset", FROM_BASE),
    "advanced_last": Variant("pointers advanced in the last step", LAST),
    # the order of mma and of tiles
    "mma_by_rows": Variant("`mma` row by row", BY_ROWS),
    "mma_serpentine": Variant("every second column of `mma` upwards", SERPENTINE),
    "group_size_1": Variant("tiles of C row by row", [(GROUP, "GROUP_SIZE_M = 1;")]),
    "group_size_4": Variant("groups of 4 tile rows", [(GROUP, "GROUP_SIZE_M = 4;")]),
    "group_size_16": Variant("groups of 16 tile rows", [(GROUP, "GROUP_SIZE_M = 16;")]),
    # the prefetch of C, which these products do not need: what its code costs all the same
    "no_prefetch": Variant("no prefetch of C", [NO_PREFETCH]),
    "prefetch_in_loop": Variant(
        "the prefetch of C in a branch of the main loop",
        [NO_PREFETCH, (MULTIPLY, PREFETCH_AND_MULTIPLY)],
    ),
    # the launch
    "blocks_that_end": Variant("a block for each tile of C", [(f"min({C_TILES}, device_limits().sms)", C_TILES)]),
    "one_kernel": Variant("copies are predicated in every loop", [("<Large, type, TC, false>", "<Large, type, TC, true>")]),
    "again": Variant("nothing: as written, timed again as the last", []),
}  # fmt: skip


def timed(symbols: list[str], type: str) -> str:
    """The kernel for this type, FP32 results and a K of whole k tiles; `one_kernel` has it for any K only."""
    place = list(rungs.of_checkout().types).index(type)  # its value in enum class Type, which is in a kernel's name
    return min(symbol for symbol in symbols if re.search(rf"TypeE{place}EfLb[01]E", symbol))


SWEEP = Sweep(
    "16_epilogue",
    {name: [(SMALL, "using Small = Large;"), *variant.changes] for name, variant in VARIANTS.items()},
    shapes="4096x4096x4096",
    protocol="steady",
    timed=timed,
    what={name: variant.what for name, variant in VARIANTS.items()},
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
