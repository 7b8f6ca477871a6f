"""Who finds the planted mistakes: the simulator, the GPU itself, and the tools of compute-sanitizer.

usage: python3 -m bench.compare_checks [--csv FILE] [--tools TOOL,...] [--cases TEXT] [--programs DIR]

    --csv FILE      without it bench/recorded/<gpu>/checks.csv where there is a GPU, and no file where there is none
    --tools         of simulator, native, memcheck, racecheck, initcheck, synccheck; all that can run here without it
    --cases TEXT    only cases with this text in their name
    --programs DIR  where the programs mistakes and planted are; build/sim/programs without it

Each case of the programs runs with its mistake; planted's also mended, which nobody should report. One row of the table per
case and tool: found is yes, no, or hangs (it was stopped after 60 seconds); line is the first line of what the tool says.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from plots.data.gpu import has_gpu

LIBRARY, PROGRAMS, RECORDED = Path("build/sim"), Path("build/sim/programs"), Path("bench/recorded")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
TOOLS = ("simulator", "native", *SANITIZERS)
COLUMNS = ("case", "tool", "found", "line")
SECONDS = 60
FOUND = 9  # the exit status that compute-sanitizer is asked for; the programs themselves end with 0 to 2


def simulated() -> dict[str, str]:
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(LIBRARY),
        "GEMM_LADDER_SIM_CHECKS": "global-race=warn,exited=warn",
        "GEMM_LADDER_SIM_SEED": "0",
    }


def cases(programs: Path) -> list[list[str]]:
    """Program and arguments of each case, as the programs list them."""
    found = []
    for program, variants in (("mistakes", [[]]), ("planted", [[], ["right"]])):
        path = programs / program
        if not path.exists():
            raise FileNotFoundError(f"{path} is not built: cmake --build build --target sim_{program}")
        listed = subprocess.run([path, "--list"], env=simulated(), capture_output=True, text=True, check=True)
        found += [[program, name, *variant] for name in listed.stdout.split() for variant in variants]
    return found


def without_addresses(line: str) -> str:
    """What another run or another folder changes is left out."""
    line = line.replace(f"{Path.cwd()}/", "").replace("build/../", "")
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", re.sub(r", PTX line \d+", "", line)).strip()


def first_line(tool: str, output: str) -> str:
    """The first line that says what was found."""
    for line in output.splitlines():
        if tool == "simulator" and line.startswith("simulator: "):
            return without_addresses(line.removeprefix("simulator: "))
        said = line.removeprefix("========= ").strip()
        if tool in SANITIZERS and line.startswith("=========") and said and not said.startswith(("COMPUTE-SANITIZER", "=")):
            return without_addresses(said)
        if tool == "native" and line.startswith("cudaError"):
            return line
    return ""


def look(tool: str, case: list[str], programs: Path) -> dict[str, str]:
    command, environment = [str(programs / case[0]), *case[1:]], dict(os.environ)
    if tool == "simulator":
        environment = simulated()
    elif tool in SANITIZERS:
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND), *command]
    row = {"case": " ".join(case), "tool": tool}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return {**row, "found": "hangs", "line": ""}
    line = first_line(tool, done.stdout)
    # A sanitizer ends with the program's own status where it has found nothing, and its last line is a summary.
    found = done.returncode == FOUND if tool in SANITIZERS else bool(line)
    return {**row, "found": "yes" if found else "no", "line": line if found else ""}


def gpu_name() -> str:
    done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True)
    return re.sub("[A-Z ]", lambda match: "-" if match[0] == " " else match[0].lower(), done.stdout.splitlines()[0].strip())


def runnable() -> list[str]:
    tools = ["simulator"] if LIBRARY.exists() else []
    if has_gpu():
        tools += TOOLS[1:] if shutil.which("compute-sanitizer") else TOOLS[1:2]
    return tools


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare_checks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--tools", type=lambda text: text.split(","), default=runnable())
    parser.add_argument("--cases", default="")
    parser.add_argument("--programs", type=Path, default=PROGRAMS)
    options = parser.parse_args(arguments)
    for tool in options.tools:
        if tool not in TOOLS:
            parser.error(f"there is no tool '{tool}', only {', '.join(TOOLS)}")
        if tool not in runnable():
            parser.error(f"{tool} cannot run here: it needs {'the simulator' if tool == 'simulator' else 'a GPU and its tools'}")
    return options


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    try:
        chosen = [case for case in cases(options.programs) if options.cases in " ".join(case)]
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"compare_checks: {error}", file=sys.stderr)
        return 2
    if not chosen:
        print(f"compare_checks: no case has '{options.cases}' in its name", file=sys.stderr)
        return 2
    rows = []
    for case in chosen:
        for tool in options.tools:
            rows.append(look(tool, case, options.programs))
            print("{case:30} {tool:10} {found:5} {line}".format(**rows[-1]), flush=True)
    target = options.csv or (RECORDED / gpu_name() / "checks.csv" if has_gpu() else None)
    if target:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"written: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
