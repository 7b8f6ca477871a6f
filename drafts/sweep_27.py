#!/usr/bin/env python3
"""Variants of the draft of rung 27, timed side by side: order of FMAs and loads, registers, lanes, units, raster, shares.

usage: python3 drafts/sweep_27.py [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Change, Sweep

SERPENTINE = "i % 2 ? j : TN - 1 - j;"
ROWS = "for (int i = TM - 1; i >= 0; --i) {\n#pragma unroll\n            for (int j = 0; j < TN; ++j) {"
COLUMNS = "for (int j = 0; j < TN; ++j) {\n#pragma unroll\n            for (int row = TM - 1; row >= 0; --row) {"
REGISTERS = "PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216"
PLAN = "SchedulePlan plan(const Problem& p) { return best_schedule(costs, share_costs, tiled(p, shape, device_limits().sms)); }"
NO_SHARES = (
    "SchedulePlan plan(const Problem& p) { const TiledProduct t = tiled(p, shape, device_limits().sms); "
    "return {Schedule(min(t.c_tiles, t.sms), t.c_tiles, t.k_tiles, 1, t.c_tiles), 0}; }"
)
LOAD_A = """#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
"""
LOAD_B = """#pragma unroll
    for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + spread(0, j, LANE_COLS)) * 4);
"""


VARIANTS: dict[str, list[Change]] = {
    "as_written": [],
    "rows_forwards": [("for (int i = TM - 1; i >= 0; --i)", "for (int i = 0; i < TM; ++i)")],
    "columns_backwards": [(SERPENTINE, "i % 2 ? TN - 1 - j : j;")],
    "no_serpentine": [(SERPENTINE, "j;")],
    "by_columns": [
        (ROWS, COLUMNS),
        (
            f"const int j_serpentine =\n                  {SERPENTINE}",
            "const int i = j % 2 ? TM - 1 - row : row, j_serpentine = j;",
        ),
    ],
    "a_forwards": [("for (int i = TM - 4; i >= 0; i -= 4)", "for (int i = 0; i < TM; i += 4)")],
    "b_forwards": [("for (int j = TN - 4; j >= 0; j -= 4)", "for (int j = 0; j < TN; j += 4)")],
    "b_first": [(LOAD_A + LOAD_B, LOAD_B + LOAD_A)],
    "registers_56_224": [(REGISTERS, "PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224")],
    "lanes_of_08": [
        ("return (lane ^ lane >> 2) & 3", "return lane & 3"),
        ("return lane / 16 * 4 + lane % 4", "return lane / 4"),
    ],
    "unit_16": [("UNIT = 8;", "UNIT = 16;")],
    "group_8": [("GROUP_SIZE_M = 16;", "GROUP_SIZE_M = 8;")],
    "no_shares": [(PLAN, NO_SHARES)],
    "again": [],
}


class DraftSweep(Sweep):
    source, arch, types = ROOT / "drafts/27_sgemm_hopper.cu", "sm_90a", ("f32",)


SWEEP = DraftSweep(
    "27_sgemm_hopper",
    VARIANTS,
    shapes="4096x4096x4096,8192x8192x8192,2048x2048x2048,1024x1024x1024,16384x16384x1024",
    protocol="rounds",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
