"""The run of the whole ladder: checked, timed or counted, and the report. An interrupted one goes on, one that ended is archived.

usage: python3 -m tools.ladder_run [--quick] [--sim] [--results DIR] [--here PREFIX]

PREFIX stands before paths that the reader opens.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

from plots.data.gpu import folder as folder_of_gpu
from plots.data.gpu import has_gpu
from plots.data.gpu import name as name_of_gpu

OK, WRONG, USAGE, WAIVED, INTERRUPTED = 0, 1, 2, 77, 130
SIMULATED = "Simulated NVIDIA H200 (PTX on the CPU)"  # what the ladder says of itself in every row
SIMULATOR = Path("build/sim/libcudart.so.13")
LADDER = "build/bin/ladder"
PUBLISHED = "2048x2048x2048,4096x4096x4096,8192x8192x8192"
SITTINGS = 5  # whose median is published; spread over the run
SECONDS = 2  # that what runs has to end by itself once it is interrupted
KEPT = [f"{name}.csv" for name in ("ladder", "samples", "ceilings", "check", "steady", "waves", "counts")]
KEPT += ["rungs.json", "environment.json", "run.txt", "report.html", "summary.md", "share.png", "plots"]
Command = list[str | Path]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def die(text: str, status: int = WRONG) -> NoReturn:
    say(f"run_all.sh: {text}")
    sys.exit(status)


def door(what: str, file: Path) -> None:
    """The last words: a file for the reader."""
    if not file.is_file() or not file.stat().st_size:
        die(f"{file} was not written")
    print(f"{what}: {file}")


def status_of(command: Command) -> int:
    """Its exit status as a shell has it. Interrupted, it is ended; Ctrl-C reaches it, too, so it may end by itself."""
    process = subprocess.Popen(command)
    try:
        status = process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
        raise
    return status if status >= 0 else 128 - status


def step(title: str, command: Command) -> bool:
    """Whether a result is wrong. Ctrl-C and failures end the run."""
    say(f"== {title}")
    status = status_of(command)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (OK, WRONG, WAIVED):  # waived: some shape or rung does not apply; the rows say why
        die(f"stopped by '{Path(command[0]).name}' (status {status})")
    return status == WRONG


@dataclass
class LadderRun:
    """Into one folder of results."""

    results: Path
    gpu: str
    quick: bool
    wrong: bool = False  # remembered, and told at the end

    def prepare(self) -> None:
        """Keeps a run that ended, or one of other sources; one that was interrupted goes on."""
        commit = re.search('COMMIT "(.*)"', Path("build/generated/build_info.h").read_text(encoding="utf-8"))[1]
        state = f"{'quick' if self.quick else 'full'} {commit}"
        environment, run = self.results / "environment.json", self.results / "run.txt"
        recorded = re.search('"gpu": *"([^"]*)"', environment.read_text(encoding="utf-8")) if environment.is_file() else None
        if recorded and recorded[1] != self.gpu:
            found = f"{self.results} holds results of {recorded[1]}, and this is {self.gpu}"
            die(f"{found}: name another folder with --results", USAGE)
        self.results.mkdir(parents=True, exist_ok=True)
        if run.is_file() and run.read_text(encoding="utf-8").strip() == state:
            say(f"going on with the interrupted run in {self.results}")
        elif run.is_file():
            self.archive()
        run.write_text(f"{state}\n", encoding="utf-8")
        with (self.results / "rungs.json").open("w") as facts:
            subprocess.run([LADDER, "--list", "--json"], stdout=facts, check=True)

    def archive(self) -> None:
        archive = self.results / "archive" / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
        archive.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            if (self.results / name).exists():
                (self.results / name).rename(archive / name)
        say(f"the earlier results are now in {archive}")

    def ladder(self, title: str, *options: str | Path) -> None:
        where = ["--ceilings", self.results / "ceilings.csv"] if self.gpu != SIMULATED else ["--sim"]
        command = [LADDER, *where, "--resume", "--environment", self.results / "environment.json", *options]
        self.wrong |= step(title, command)

    def check(self, title: str, *options: str) -> None:
        shapes = ["--shapes", "tests/shapes/small.txt"]
        if self.gpu != SIMULATED:
            shapes = ["--check-only", "--shapes", "tests/shapes/odd.txt"]
        self.ladder(title, *shapes, "--ld-pad", "align", "--csv", self.results / "check.csv", *options)

    def time(self, title: str, *options: str) -> None:
        files = ["--csv", self.results / "ladder.csv", "--samples-csv", self.results / "samples.csv"]
        self.ladder(title, *options, *files)

    def sit(self, sitting: int, types: list[str]) -> None:
        """Once through every rung and type, in an order of its own; --resume keeps those before."""
        for kind in types:
            title, part = f"sitting {sitting} of {SITTINGS}, {kind}", f"{sitting}/{SITTINGS}"
            self.time(title, "--type", kind, "--shapes", PUBLISHED, "--sittings", part)

    def measure(self) -> None:
        ceilings = self.results / "ceilings.csv"
        if not ceilings.exists():
            self.wrong |= step("what this GPU can do", ["build/bin/ceilings", "--csv", ceilings])
        self.check("check")
        if self.quick:
            self.time("time", "--shapes", "1024x1024x1024,2048x2048x2048,4096x4096x4096", "--rounds", "10")
            return
        facts = json.loads((self.results / "rungs.json").read_text(encoding="utf-8"))  # which the results keep
        types = [kind["name"] for kind in facts["types"]]
        for kind in types:
            self.check(f"check with alpha and beta, {kind}", "--type", kind, "--alpha", "-1.5", "--beta", "0.75")
        sittings = list(range(1, SITTINGS + 1))
        for kind in types:
            if sittings:
                self.sit(sittings.pop(0), types)
            self.time(f"time, {kind}", "--type", kind, "--shapes", "square")
        for sitting in sittings:
            self.sit(sitting, types)
        self.time("time", "--shapes", "llm,tails,skinny")  # each rung in the first of its types
        steady = ["--protocol", "steady", "--csv", self.results / "steady.csv"]
        self.ladder("time, steady", "--shapes", "4096x4096x4096,8192x8192x8192", *steady)
        waves = [sys.executable, "bench/sweep_waves.py", "--csv", self.results / "waves.csv", "--ceilings", ceilings]
        self.wrong |= step("time, waves", waves)

    def simulate(self) -> None:
        self.check("check")
        if not self.quick:
            self.check("check with alpha and beta", "--alpha", "-1.5", "--beta", "0.75")
        sizes = "256x256x256" if self.quick else "256x256x256,512x512x512"
        self.ladder("count", "--shapes", sizes, "--csv", self.results / "counts.csv")

    def finish(self) -> int:
        report = [sys.executable, "-m", "plots", "report", "--results", self.results, "--out", self.results]
        self.wrong |= step("report", report)
        ended = f"finished {datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}\n"
        (self.results / "run.txt").write_text(ended, encoding="utf-8")
        if self.wrong:
            say(f"run_all.sh: there are wrong results: look for status 'wrong' or 'failed' in {self.results}/*.csv")
        door("Report", self.results / "report.html")
        if (self.results / "share.png").is_file():
            door("To share", self.results / "share.png")
        return WRONG if self.wrong else OK

    def whole(self) -> int:
        self.prepare()
        try:
            if self.gpu == SIMULATED:
                self.simulate()
            else:
                self.measure()
            return self.finish()
        except KeyboardInterrupt:
            die(f"interrupted; what was measured is in {self.results}, and the same command goes on from there", INTERRUPTED)


def show_recorded(here: str) -> int:
    """With neither GPU nor simulator: the recorded results, as a report that says which GPU and date they are from."""
    folders = [file.parent for file in sorted(Path("bench/recorded").glob("*/ladder.csv"))]
    shown = [Path(f"{here}results/recorded") / folder.name for folder in folders]
    for folder, out in zip(folders, shown, strict=True):
        report = [sys.executable, "-m", "plots", "report", "--recorded", "--results", folder, "--out", out]
        step(f"report of {folder}/", report)
    if not shown:
        say("no results are recorded in bench/recorded")
    for out in shown:
        door("Report of recorded results", out / "report.html")
    return OK


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.ladder_run")
    for option in ("--quick", "--sim"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--here", default="")
    options = parser.parse_args(arguments)
    simulated = options.sim or not has_gpu()
    if simulated and not options.sim:
        say("no GPU here (nvidia-smi lists none): the ladder runs on the simulator, checked and counted, not timed")
    if simulated and not SIMULATOR.is_file():
        say("the simulator is not built (cmake --preset default says why): recorded results follow")
        return show_recorded(options.here)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # so that CUDA and nvidia-smi number the GPUs alike
    gpu = SIMULATED if simulated else name_of_gpu()
    folder = "simulator" if simulated else folder_of_gpu(gpu)
    return LadderRun(options.results or Path(f"{options.here}results/{folder}"), gpu, options.quick).whole()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
