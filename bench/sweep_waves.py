#!/usr/bin/env python3
"""The saw-tooth of waves, timed: products whose tiles fill the SMs more or less evenly, by whole tiles, split-K and stream-K.

usage: python3 bench/sweep_waves.py [--csv FILE] [--rounds N]      (after ./run_all.sh list, which builds; needs a GPU)

M = N from 1024 to 6144 with one K, and K from 512 to 65536 with small M and N, for the rungs of each type, beside cuBLAS.
The rows go to build/sweep_waves/ladder.csv or FILE, in the harness's columns. --resume is implied: what is there is not timed
again.
"""

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT
from plots.data.gpu import has_gpu

TABLE = ROOT / "build/sweep_waves/ladder.csv"
CEILINGS = ROOT / "bench/recorded/nvidia-h200/ceilings.csv"
RUNGS = {"bf16": ["16", "17", "18"], "f32": ["08", "17f", "18f"]}  # whole tiles, split-K, stream-K
K = {"bf16": 4096, "f32": 2048}  # of the squares
SQUARES = range(1024, 6144 + 1, 128)  # their M and N
SMALL = [(128, 4096), (256, 256), (512, 512), (1024, 1024)]  # M and N of the others
WAIVED = 77  # exit status where a GPU or a shape is not for a rung
DEPTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]  # their K


def shapes(kind: str) -> list[str]:
    """Those of a type, squares first."""
    squares = [f"{side}x{side}x{K[kind]}" for side in SQUARES]
    return squares + [f"{m}x{n}x{k}" for m, n in SMALL for k in DEPTHS if m * n * k <= 2**34]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--csv", type=Path, default=TABLE, metavar="FILE", help="where the rows go")
    parser.add_argument("--ceilings", type=Path, default=CEILINGS, metavar="FILE", help="of this GPU")
    parser.add_argument("--rounds", default="15", help="of each shape")
    options = parser.parse_args()
    if not has_gpu():
        print("sweep_waves.py: needs a GPU, and nvidia-smi lists none", file=sys.stderr)
        return WAIVED
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    waived = 0
    for kind, rungs in RUNGS.items():
        command = [ROOT / "build/bin/ladder", "--resume", "--csv", options.csv, "--kernels", ",".join(rungs), "--type", kind]
        command += ["--shapes", ",".join(shapes(kind)), "--rounds", options.rounds]
        command += ["--ceilings", options.ceilings]
        status = subprocess.run(command).returncode
        if status not in (0, WAIVED):
            return status
        waived = waived or status
    return waived


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the rows before are written
        sys.exit(130)
