#!/usr/bin/env python3
"""Variants of the draft of rung 27, side by side: the order of its FMAs, registers, lanes, the raster, each configuration alone.

usage: python3 drafts/sweep_27.py [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Change, Sweep

SOURCE = ROOT / "drafts/27_sgemm_hopper.cu"
CONFIGURATIONS = re.findall(r"^ *configuration<Tile<.*\n", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
SERPENTINE = "i % 2 ? j : TN - 1 - j;"
ROWS = "for (int i = TM - 1; i >= 0; --i) {\n#pragma unroll\n            for (int j = 0; j < TN; ++j) {"
REGISTERS = "PRODUCER_REGISTERS = 72, CONSUMER_REGISTERS = 216"
LOAD_A = """#pragma unroll
    for (int i = TM - 4; i >= 0; i -= 4) load4_shared(&rA[buffer][i], a_addr + (k * BM + spread(0, i, LANE_ROWS)) * 4);
"""
LOAD_B = """#pragma unroll
    for (int j = TN - 4; j >= 0; j -= 4) load4_shared(&rB[buffer][j], b_addr + (k * BN + spread(0, j, LANE_COLS)) * 4);
"""
LANES_OF_08 = [
    ("return (lane ^ lane >> 2) & 3", "return lane & 3"),
    ("return lane / 16 * 4 + lane % 4", "return lane / 4"),
]
COLUMNS = "for (int j = 0; j < TN; ++j) {\n#pragma unroll\n            for (int i_ = 0; i_ < TM; ++i_) {"


def columns(i: str) -> list[Change]:
    """The FMAs of a k step column by column, `i` the row of number i_ in column j."""
    serpentine = f"const int j_serpentine =\n                  {SERPENTINE}"
    return [(ROWS, COLUMNS), (serpentine, f"const int i = {i}, j_serpentine = j;")]


def tile(configuration: str) -> str:
    """The name of the variant that has only this configuration, such as tile_64x128x64."""
    return "tile_" + "x".join(re.findall(r"\d+", configuration)[:3])


def instead(configuration: str) -> list[Change]:
    """This configuration alone."""
    first = CONFIGURATIONS[0]
    return [(first, f"{configuration}({first.split('(', 1)[1]}"), *((other, "") for other in CONFIGURATIONS[1:])]


VARIANTS: dict[str, list[Change]] = {
    "as_written": [],
    "j_forwards": [(SERPENTINE, "i % 2 ? TN - 1 - j : j;")],
    "no_serpentine": [(SERPENTINE, "j;")],
    "columns": columns("j % 2 ? TM - 1 - i_ : i_"),
    "columns_backwards": columns("j % 2 ? i_ : TM - 1 - i_"),
    "b_first": [(LOAD_A + LOAD_B, LOAD_B + LOAD_A)],
    "registers_40_232": [(REGISTERS, "PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232")],
    "registers_56_224": [(REGISTERS, "PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224")],
    "lanes_of_08": LANES_OF_08,
    "unit_16": [("UNIT = 8;", "UNIT = 16;")],
    "group_8": [("GROUP_SIZE_M = 16;", "GROUP_SIZE_M = 8;")],
    "group_32": [("GROUP_SIZE_M = 16;", "GROUP_SIZE_M = 32;")],
    "again": [],
    **{tile(only): [(other, "") for other in CONFIGURATIONS if other != only] for only in CONFIGURATIONS},
    "tile_128x256x32_ring": instead("configuration<Tile<128, 256, 32, 64, 1, 4, false>>"),
    "tile_256x64x32": instead("configuration<Tile<256, 64, 32, 64, 2, 4, false>>"),
    "tile_64x256x32": instead("configuration<Tile<64, 256, 32, 64, 2, 4, false>>"),
    "tile_32x256x32": instead("configuration<Tile<32, 256, 32, 32, 2, 5, false>>"),
    "tile_64x128x32": instead("configuration<Tile<64, 128, 32, 64, 4, 7, false>>"),
    "tile_64x64x128": instead("configuration<Tile<64, 64, 128, 64, 8, 3, false>>"),
    "tile_32x128x64_lanes_of_08": instead("configuration<Tile<32, 128, 64, 32, 4, 4, false>>") + LANES_OF_08,
}


class DraftSweep(Sweep):
    source, arch, types = SOURCE, "sm_90a", ("f32",)


SWEEP = DraftSweep(
    "27_sgemm_hopper",
    VARIANTS,
    shapes="4096x4096x4096,8192x8192x8192,2048x2048x2048,1024x1024x1024,16384x16384x1024",
    protocol="rounds",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
