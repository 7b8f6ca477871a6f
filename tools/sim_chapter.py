"""The simulator's own words in docs/sim.md, between markers, as it says them now.

usage: python3 -m tools.sim_chapter [--write]     without --write: exit status 1 where the chapter is stale

    <!-- simulator: mistakes race -->       what build/sim/programs/mistakes prints
    <!-- simulator: planted same_value -->  what build/sim/programs/planted prints
    <!-- simulator: cases -->               who finds which case of the two, of a GPU's tools what is recorded
    <!-- simulator: shared 05_float4 -->    the lines of a rung that use shared memory, at 256 x 256 x 256
    <!-- simulator: total 05_float4 06_bank_conflict_free -->    some totals of rungs side by side
    <!-- simulator: hardware nvidia-h200 -->    every rung at 512 x 512 x 512, beside what Nsight Compute counted
    <!-- end simulator -->
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench import compare_checks
from plots.documents.blocks import update
from plots.errors import InputError
from tools.counts import Kernel, code, read, source_lines

CHAPTER = Path("docs/sim.md")
LIBRARY, PROGRAMS, LAUNCH = Path("build/sim"), Path("build/sim/programs"), Path("build/bin/sim_launch")
RECORDED = Path("bench/recorded")
SIZE = "256"


def simulated(command: list[str], **environment: str) -> str:
    """Output and reports of a program on the simulator; files are named from the root of the project."""
    variables = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY), "GEMM_LADDER_SIM_SEED": "0", **environment}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.replace(f"{Path.cwd()}/", "").replace("build/../", "")  # which ccache puts before them


def counted(rung: str, size: str = SIZE) -> Kernel:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.csv"
        output = simulated([str(LAUNCH), rung, size, size, size], GEMM_LADDER_SIM_COUNTS=str(file))
        if not file.exists():
            raise RuntimeError(f"{LAUNCH} {rung}: {output}")
        return read(file)[0]


def printed(program: str, case: str) -> str:
    # What another compiler or another run changes is left out: lines of PTX, addresses of global memory.
    text = simulated([str(PROGRAMS / program), case])
    text = re.sub(r", PTX line \d+|PTX line \d+, ", "", text)
    return "```text\n" + re.sub(r"0x[0-9a-f]{6,}", "0x…", text) + "```\n"


def shared(rung: str) -> str:
    rows = ["| line | source | shared requests | wavefronts | ideal |", "|---:|---|---:|---:|---:|"]
    for (file, line), counts in counted(rung).lines.items():
        wavefronts, ideal = counts.both("shared_", "_wavefronts"), counts.both("shared_", "_ideal")
        if not wavefronts:
            continue
        source = code(source_lines(file), line).strip().replace("|", "\\|")
        accesses = counts["shared_loads"] + counts["shared_stores"]
        rows.append(f"| {line} | `{source}` | {accesses:,} | {wavefronts:,} | {ideal:,} |")
    return "\n".join(rows) + "\n"


def total(*rungs: str) -> str:
    rows = [f"| | {' | '.join(rungs)} |", "|---|" + "---:|" * len(rungs)]
    counts = [counted(rung).total for rung in rungs]

    def row(name: str, of) -> None:
        rows.append(f"| {name} | " + " | ".join(f"{of(count):,}" for count in counts) + " |")

    row("FLOP", lambda c: c.flops)
    row("global load requests", lambda c: c["global_loads"])
    row("global load sectors", lambda c: c["global_load_sectors"])
    row("global store requests", lambda c: c["global_stores"])
    row("global store sectors", lambda c: c["global_store_sectors"])
    row("shared wavefronts", lambda c: c.both("shared_", "_wavefronts"))
    row("of them ideal", lambda c: c.both("shared_", "_ideal"))
    row("warps arriving at barriers", lambda c: c["barriers"])
    return "\n".join(rows) + "\n"


def hardware(gpu: str) -> str:
    measured: dict[str, dict[str, int]] = {}
    with (RECORDED / gpu / "counters_512.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["group"] in ("global", "shared"):
                metrics = measured.setdefault(row["kernel"], {})
                metrics[f"{row['group']} {row['metric']}"] = round(float(row["value"]))
    rows = [
        "| rung | load sectors: H200 | simulator | store sectors: H200 | simulator | shared wavefronts: H200 | simulator |",
        "|---|" + "---:|" * 6,
    ]
    for rung in sorted(measured):
        gpu_counts, sim = measured[rung], counted(rung, "512").total
        pairs = [
            (gpu_counts["global load sectors"], sim["global_load_sectors"]),
            (gpu_counts["global store sectors"], sim["global_store_sectors"]),
            (gpu_counts["shared wavefronts"], sim.both("shared_", "_wavefronts")),
        ]
        rows.append(f"| {rung} | " + " | ".join(f"{number:,}" for pair in pairs for number in pair) + " |")
    return "\n".join(rows) + "\n"


def cases() -> str:
    """The simulator's findings as they are now, and those of the GPU's own tools where they are recorded."""
    recorded: dict[str, dict[str, str]] = {}
    file = RECORDED / "nvidia-h200" / "checks.csv"
    if file.exists():
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            if row["tool"] != "simulator":
                recorded.setdefault(row["tool"], {})[row["case"]] = row["found"]
    rows = ["| case | the simulator says |" + "".join(f" {tool} |" for tool in recorded)]
    rows.append("|---|---|" + "---|" * len(recorded))
    for case in compare_checks.cases(PROGRAMS):
        if case[-1] == "right":
            continue
        line = compare_checks.look("simulator", case, PROGRAMS)["line"]
        report = line.removeprefix("warning: ")
        begin = report.partition(": ")[0]
        kind, said = "warning" if report != line else "error", begin if " " in begin else report  # "shfl.sync: ..." is no finding
        others = "".join(f" {findings[' '.join(case)]} |" for findings in recorded.values())
        rows.append(f"| `{case[1]}` | {kind}: {said} |{others}")
    return "\n".join(rows) + "\n"


KINDS = {
    "mistakes": partial(printed, "mistakes"),
    "planted": partial(printed, "planted"),
    "cases": cases,
    "shared": shared,
    "total": total,
    "hardware": hardware,
}


def render(name: str) -> str:
    """What the simulator says now, for the block `name`."""
    kind, *arguments = name.split()
    if kind not in KINDS:
        raise InputError(f"unknown block '{name}': expected {', '.join(KINDS)}")
    return KINDS[kind](*arguments)


def main(arguments: list[str]) -> int:
    try:
        stale = update(CHAPTER, render, check=arguments != ["--write"], word="simulator")
    except InputError as error:
        print(f"sim_chapter: {error}", file=sys.stderr)
        return 2
    if stale and arguments != ["--write"]:
        print(f"{CHAPTER} is stale ({', '.join(stale)}): python3 -m tools.sim_chapter --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
