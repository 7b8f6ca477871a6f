#!/usr/bin/env python3
"""Variants of rung 14, timed side by side: its tile, its stages, its warps and the order of its lines.

usage: python3 bench/sweep_14.py [--type bf16] [--build-only] [--arch sm_90a] [NAME...]  (after ./run_all.sh list, which
builds)

Each variant is kernels/14_multistage.cu with the lines below replaced. All of them become rungs of one program, which
checks and times them in one process beside cuBLAS, five seconds a variant: each at the clock that its own power allows.
A variant that spills is timed, too, and says so. `again` at the end is what `as_written` gets a second time.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import Change, Sweep


class Variant(NamedTuple):
    what: str  # what it changes, for the chapter's table
    changes: list[Change]


def tile(bm: int = 256, bn: int = 128, wm: int = 64, wn: int = 64, stages: int = 3) -> list[Change]:
    """Another tile of C, of a block or a warp, or other stages, and what the kernel takes for granted of its own."""
    sizes = {"BM": (256, bm), "BN": (128, bn), "WM": (64, wm), "WN": (64, wn), "STAGES": (3, stages)}
    changes = [(f" {name} = {old};", f" {name} = {new};") for name, (old, new) in sizes.items() if old != new]
    rows = bm // wm * (bn // wn) * 4  # that the block copies at once
    if rows % 32:  # then dealing the columns out anew is not a shift by `rows` of them, where results have 16 bits
        changes += [(" + permuted_column(copy_row, SIZE)", ""), (OF_B, f"permuted_column({OF_B} + copy_row, SIZE)"), BY_SHIFT]
    return changes


OF_B = "i * ROWS - BM"
BY_SHIFT = ("static_assert(ROWS % 32 == 0 && WN", "static_assert(ROWS % 8 == 0 && WN")
TWICE = [("(Tile::THREADS, 1)", "(Tile::THREADS, 2)"), ("min(tiles, sms)", "min(tiles, 2 * sms)")]
KEEP = ("keep(s_a[k]), keep(s_b[k]);", "")
FROM_BASE = [  # pointers that stay, and how far back from them the next tile is
    ("int bytes = 16;", "int back = 0, bytes = 16;"),
    ("if (RAGGED) bytes = min(", "back = 0;\n    if (RAGGED) bytes = min("),
    ("#pragma unroll\n      for (int i = 0; i < COPIES; ++i) g[i] -= ROW;", "back += ROW;"),
    ("ROWS * ROW, g[i]", "ROWS * ROW, g[i] - back"),
]
SNAKE = "j % 2 ? WM / 16 - 1 - i : i;"
BY_ROWS = [
    (
        f"for (int i = 0; i < WM / 16; ++i) {{\n            const int snake = {SNAKE}",
        "for (int place = 0; place < WN / 8; ++place) {\n            const int j = i % 2 ? WN / 8 - 1 - place : place;",
    ),
    ("for (int j = 0; j < WN / 8; ++j) {", "for (int i = 0; i < WM / 16; ++i) {"),
    ("acc[snake][j], rA[k % 2][snake]", "acc[i][j], rA[k % 2][i]"),
]
WAIT = ("          cp_async_wait_group<STAGES - 2>();", "          cp_async_wait_group<STAGES - 3>();")  # in the loop
NOT_ALL = ("static_assert(COPY_STEPS < STEPS,", "static_assert(COPY_STEPS == STEPS,")
LAST = [  # the pointers go on behind the copies of a tile, and so they do before the loop
    ("if (k == 0) next_tile();", "if (k == STEPS - 1) next_tile();"),
    ("if (stage < STAGES - 2) next_tile();", "next_tile();"),
]


def copy_steps(steps: int) -> list[Change]:
    """With four, the last copies of a tile are issued behind the wait, which then counts one group less."""
    return [("COPY_STEPS = 3;", f"COPY_STEPS = {steps};"), *([WAIT, NOT_ALL] if steps == 4 else [])]


VARIANTS = {
    "as_written": Variant("256×128 results a block, 64×64 a warp, 3 stages, copies in three steps", []),
    # tiles and warps
    "block_128x256": Variant("128×256 a block", tile(128, 256)),
    "block_192x128": Variant("192×128 a block, 48×64 a warp", tile(bm=192, wm=48)),
    "block_192x128_stages_5": Variant("192×128 a block, 48×64 a warp, 5 stages", tile(bm=192, wm=48, stages=5)),
    "block_128x128": Variant("128×128 a block, 64×32 a warp", tile(bm=128, wn=32)),
    "block_128x128_stages_6": Variant("128×128 a block, 64×32 a warp, 6 stages", tile(bm=128, wn=32, stages=6)),
    "block_128x128_twice": Variant("128×128 a block of 4 warps, 2 an SM", tile(bm=128) + TWICE),
    "block_128x128_twice_stages_2": Variant("128×128 a block of 4 warps, 2 an SM, 2 stages", tile(bm=128, stages=2) + TWICE),
    "block_128x128_twice_stages_4": Variant("128×128 a block of 4 warps, 4 stages: 1 an SM", tile(bm=128, stages=4) + TWICE),
    "block_128x128_twice_8_warps": Variant("128×128 a block, 64×32 a warp, 2 an SM", tile(bm=128, wn=32) + TWICE),
    "block_256x64": Variant("256×64 a block, 64×32 a warp", tile(bn=64, wn=32)),
    "block_256x64_stages_5": Variant("256×64 a block, 64×32 a warp, 5 stages", tile(bn=64, wn=32, stages=5)),
    "block_256x64_twice": Variant("256×64 a block of 4 warps, 2 an SM, 2 stages", tile(bn=64, stages=2) + TWICE),
    "warp_128x32": Variant("128×32 a warp", tile(wm=128, wn=32)),
    "warp_32x128": Variant("32×128 a warp", tile(wm=32, wn=128)),
    "warps_16_of_64x32": Variant("64×32 a warp, 16 warps", tile(wn=32)),
    "warps_16_of_32x64": Variant("32×64 a warp, 16 warps", tile(wm=32)),
    # stages, and where the copies stand
    "stages_2": Variant("2 stages", tile(stages=2)),
    "stages_4": Variant("4 stages", tile(stages=4)),
    "block_128x256_stages_4": Variant("128×256 a block, 4 stages", tile(128, 256, stages=4)),
    "copy_steps_1": Variant("copies in one step", copy_steps(1)),
    "copy_steps_2": Variant("copies in two steps", copy_steps(2)),
    "copy_steps_4": Variant("copies in four steps: a wait for all of them", copy_steps(4)),
    "copy_steps_4_stages_4": Variant("copies in four steps, 4 stages", copy_steps(4) + tile(stages=4)),
    # addresses
    "without_keep": Variant("addresses of `ldmatrix` without `keep`", [KEEP]),
    "pointers_from_base": Variant("pointers that stay, and a common offset", FROM_BASE),
    "naive_addresses": Variant("neither `keep` nor pointers that move: each address where it is used", [KEEP, *FROM_BASE]),
    "advanced_last": Variant("pointers advanced in the last step", LAST),
    # the order of mma
    "mma_by_rows": Variant("`mma` row by row", BY_ROWS),
    "mma_straight": Variant("`mma` column by column, without turning round", [(SNAKE, "i;")]),
    # the launch
    "blocks_that_end": Variant("a block for each tile of C", [("<<<min(tiles, sms)", "<<<tiles")]),
    "one_kernel": Variant("guards for a ragged K in every loop", [("gemm<type, TC, false>", "gemm<type, TC, true>")]),
    "again": Variant("nothing: as written, timed again as the last", []),
}  # fmt: skip

TYPES = ["f32", "tf32", "bf16", "f16"]  # in the order of enum class Type, whose value is in a kernel's name


def timed(symbols: list[str], type: str) -> str:
    """The kernel for this type, FP32 results and a K of whole tiles; `one_kernel` has it for any K only."""
    return min(symbol for symbol in symbols if re.search(rf"TypeE{TYPES.index(type)}EfLb[01]E", symbol))


SWEEP = Sweep(
    "14_multistage",
    {name: variant.changes for name, variant in VARIANTS.items()},
    shapes="4096x4096x4096",
    types=("bf16", "f16", "tf32"),
    protocol="steady",
    timed=timed,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
