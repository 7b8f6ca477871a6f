#!/usr/bin/env python3
"""The configurations of rung 26, each alone, timed side by side over the shapes that its cost model is fitted to.

usage: python3 bench/sweep_26.py [--type bf16] [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)

Each variant is kernels/26_fast.cu with one of its configurations. bench/fit_26.py makes clocks of what they take.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from bench.sweep import ROOT, Sweep

TEXT = (ROOT / "kernels/26_fast.cu").read_text(encoding="utf-8")
TABLE = TEXT[TEXT.index("// [configurations]") : TEXT.index("// [/configurations]")]
CONFIGURATIONS = re.findall(r'^    \{"(\w+)",', TABLE, re.MULTILINE)

SWEEP = Sweep(
    "26_fast",
    {name: [("ONLY = -1;", f"ONLY = {index};")] for index, name in enumerate(CONFIGURATIONS)},
    shapes="bench/shapes/fit_26.txt",
    protocol="rounds",
    options=("--out", "same", "--rounds", "9", "--check", "sample"),
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
