#!/usr/bin/env python3
"""Every configuration of 26_fast.cu as a rung of one program, beside 25: build/drafts/ladder, with the harness's options.

usage: python3 drafts/sweep_26.py [--simulator] [NAME...]
(after ./run_all.sh list, which builds the harness)
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build/drafts"


def configurations() -> dict[str, tuple[str, str]]:
    """Name -> number and arguments of Tile."""
    lines = [line.split(None, 2) for line in (ROOT / "drafts/configurations_26.txt").read_text().splitlines()]
    return {name: (number, tile) for number, name, tile in lines if number != "#"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--simulator", action="store_true", help="PTX alone, for the simulator")
    options = parser.parse_args()
    known = configurations()
    if unknown := set(options.names) - set(known):
        parser.error(f"no such configuration: {' '.join(sorted(unknown))}")
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    code = "compute_90a" if options.simulator else "sm_90a"
    compiler = [nvcc, f"-I{ROOT}", "-std=c++20", "-O3", f"-gencode=arch=compute_90a,code={code}", "-Xptxas=-v"]
    BUILT.mkdir(parents=True, exist_ok=True)
    draft = (ROOT / "drafts/26_fast.cu").read_text()

    def compiled(name: str) -> Path:
        number, tile = known[name]
        text, replaced = re.subn(r"using Chosen = Tile<.*?>;", f"using Chosen = Tile<{tile}>;", draft)
        assert replaced == 1, "the draft has no line to replace"
        source = BUILT / f"{number}_{name}.cu"
        source.write_text(text.replace('.number = "26"', f'.number = "{number}"').replace('.name = "fast"', f'.name = "{name}"'))
        done = subprocess.run([*compiler, "-c", source, "-o", source.with_suffix(".o")], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        spills = sum(int(count) for count in re.findall(r"(\d+) bytes spill stores", done.stderr))
        print(f"{name:12} {tile:44} {spills} bytes spilled", flush=True)
        return source.with_suffix(".o")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, options.names or known))
    beside = BUILT / "25.o"
    subprocess.run([*compiler, "-c", ROOT / "kernels/25_persistent.cu", "-o", beside], check=True, capture_output=True)
    libraries = [ROOT / "build/libharness.a", "-cudart=shared", "-lcublas", "-lcublasLt", "-ldl"]
    paths = [ROOT / "build/sim"] * options.simulator + [Path(nvcc).resolve().parents[1] / "lib64"]
    libraries += [f"-Xlinker=-rpath={path}" for path in paths]
    program = [ROOT / "bench/main.cpp", beside, *objects, *libraries, "-o", BUILT / "ladder"]
    subprocess.run([nvcc, f"-I{ROOT}", "-std=c++20", *program], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
