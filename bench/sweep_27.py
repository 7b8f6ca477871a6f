#!/usr/bin/env python3
"""Variants of rung 27, timed side by side: what each of its parts is worth, the order of its FMAs and loads, and its tiles.

usage: python3 bench/sweep_27.py [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)

Each variant is kernels/27_sgemm_hopper.cu with the lines below replaced, and with one configuration alone: the first, or the one
that its name says. All of them become rungs of one program, which checks and times them in one process beside cuBLAS. `again` at
the end is what `as_written` gets a second time.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Change, Sweep, Variant

SERPENTINE = "i % 2 ? j : TN - 1 - j;"
ROWS = "for (int i = TM - 1; i >= 0; --i) {\n#pragma unroll\n            for (int j = 0; j < TN; ++j) {"
COLUMNS = "for (int j = 0; j < TN; ++j) {\n#pragma unroll\n            for (int row = TM - 1; row >= 0; --row) {"
PLAN = "best_schedule(costs, {c.clocks.k_tile, c.clocks.fix_up, c.clocks.other}, t)"
NO_STREAM_K = "{Schedule(min(t.c_tiles, sms), t.c_tiles, t.k_tiles, 1, t.c_tiles), 1}"
LOAD_A = """#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
"""
LOAD_B = """#pragma unroll
    for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + spread(0, j, LANE_COLS)) * 4);
"""


CONFIGURATIONS = re.findall(r"    configuration<Tile<.*\n", (ROOT / "kernels/27_sgemm_hopper.cu").read_text(encoding="utf-8"))


def only(configuration: str) -> list[Change]:
    """The others go."""
    return [(other, "") for other in CONFIGURATIONS if other != configuration]


def tile_of(configuration: str) -> str:
    return "x".join(re.search(r"<Tile<(\d+), (\d+)", configuration).groups())


VARIANTS = {
    "as_written": Variant("nothing", []),
    "no_shares": Variant("no stream-K: the last wave by whole tiles", [(PLAN, NO_STREAM_K)]),
    "one_tile_of_rows": Variant(
        "room for one tile of A as it lies in memory, not two",
        [("ROWS_STAGES = MOST_ROWS_STAGES < 4 ? MOST_ROWS_STAGES : 4", "ROWS_STAGES = 1")],
    ),
    "one_lane_arrives": Variant(
        "one lane of a transposing warp arrives, not all",
        [
            ("mbarrier_arrive(rows_empty +", "__syncwarp();\n      if (lane == 0) mbarrier_arrive(rows_empty +"),
            ("32 * Tile::TRANSPOSERS);\n    }", "Tile::TRANSPOSERS);\n    }"),
            ("      mbarrier_arrive(full +", "      if (lane == 0) mbarrier_arrive(full +"),
            ("1 + 32 * Tile::TRANSPOSERS", "1 + Tile::TRANSPOSERS"),
        ],
    ),
    "guarded_epilogue": Variant("all tiles are stored the guarded way", [("if (beta == 0.0F && (tile", "if (M < 0 && (tile")]),
    "lanes_of_08": Variant(
        "the lane map of 08: loads of B merge",
        [
            ("return (lane ^ lane >> 2) & 3", "return lane & 3"),
            ("return lane / 16 * 4 + lane % 4", "return lane / 4"),
        ],
    ),
    "rows_forwards": Variant(
        "the FMAs from the first row to the last", [("int i = TM - 1; i >= 0; --i", "int i = 0; i < TM; ++i")]
    ),
    "columns_backwards": Variant("odd rows backwards, even rows forwards", [(SERPENTINE, "i % 2 ? TN - 1 - j : j;")]),
    "no_serpentine": Variant("all rows forwards", [(SERPENTINE, "j;")]),
    "by_columns": Variant(
        "column by column",
        [
            (ROWS, COLUMNS),
            (
                f"const int j_serpentine =\n                  {SERPENTINE}",
                "const int i = j % 2 ? TM - 1 - row : row, j_serpentine = j;",
            ),
        ],
    ),
    "a_forwards": Variant("loads of A from the first row on", [("int i = TM - 4; i >= 0; i -= 4", "int i = 0; i < TM; i += 4")]),
    "b_forwards": Variant(
        "loads of B from the first column on", [("int j = TN - 4; j >= 0; j -= 4", "int j = 0; j < TN; j += 4")]
    ),
    "b_first": Variant("loads of B before those of A", [(LOAD_A + LOAD_B, LOAD_B + LOAD_A)]),
    "registers_56_224": Variant(
        "8 registers from each producer thread to two consumers",
        [("PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216", "PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224")],
    ),
    "unit_16": Variant("basic blocks of 16 k steps", [("UNROLL = 8;", "UNROLL = 16;")]),
    "group_8": Variant("groups of 8 rows of tiles", [("GROUP_SIZE_M = 16;", "GROUP_SIZE_M = 8;")]),
    **{f"tile_{tile_of(line)}": Variant(f"tiles of {tile_of(line)}", only(line)) for line in CONFIGURATIONS},
    "again": Variant("nothing: as written, timed again as the last", []),
}
SWEEP = Sweep(
    "27_sgemm_hopper",
    {name: v.changes + ([] if name.startswith("tile_") else only(CONFIGURATIONS[0])) for name, v in VARIANTS.items()},
    shapes="4096x4096x4096,2048x2048x2048",
    protocol="rounds",
    what={name: variant.what for name, variant in VARIANTS.items()},
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
