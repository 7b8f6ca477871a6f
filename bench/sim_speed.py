"""How long `./run_all.sh run 01 1024 1024 1024 --sim` takes on this machine, and others like it: every check and count is on.

usage: python3 -m bench.sim_speed [--csv FILE]    (first: cmake --build build --target 01_naive 08_warp_tiling simulator)

A figure for a person to read and to record, not a test: it depends on the machine.
"""

import csv
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

PROGRAMS = Path("build/bin")
RUNGS = ["01_naive", "08_warp_tiling"]
LIMITS = {256: 1.0, 1024: 2.0}  # seconds, on 2 cores
ROUNDS = 3


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def seconds(rung: str, size: int) -> float:
    """Wall time of what `run` starts: operands are made on the device, the kernel runs once, its result is checked."""
    start = time.perf_counter()
    subprocess.run([str(PROGRAMS / rung), *[str(size)] * 3, "--sim"], check=True, capture_output=True)
    return time.perf_counter() - start


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main(arguments: list[str]) -> int:
    for program in (PROGRAMS / rung for rung in RUNGS):
        if not program.exists():
            print(f"sim_speed: {program} is not built; cmake --build build", file=sys.stderr)
            return 2
    rows = []
    cores = len(os.sched_getaffinity(0))
    print(f"{cpu()}, {cores} cores; best of {ROUNDS}")
    for size, limit in LIMITS.items():
        for rung in RUNGS:
            best = min(seconds(rung, size) for _ in range(ROUNDS))
            rate = 2 * size**3 / best / 1e9
            print(f"{rung:16} {size:5}³ {best:8.3f} s  {rate:7.3f} GFLOPS  (wanted: {limit:g} s)", flush=True)
            rows.append(
                {
                    "kernel": rung,
                    "size": size,
                    "seconds": f"{best:.3f}",
                    "limit_s": limit,
                    "cpu": cpu(),
                    "cores": cores,
                    "commit": commit(),
                    "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
    if "--csv" in arguments:
        file = Path(arguments[arguments.index("--csv") + 1])
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        print(f"CSV: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
