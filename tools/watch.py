"""Runs a command, and again whenever a source file, or a header that it includes, is saved.

usage: python3 -m tools.watch FILE COMMAND...

A run that has not ended by then is stopped. Ctrl-C ends the watch with status 130. A first run that ends with a usage error
ends it, too: no other version of the file would help.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 0.2  # between two looks at the files
USAGE, INTERRUPTED = 2, 130
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the watch, and with it what runs
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def files_of(source: Path) -> list[Path]:
    """The file, its .options, and the headers of this project, or beside it, that it includes, directly or not."""
    found, waiting = {}, [source]
    while waiting:
        file = Path(os.path.normpath(waiting.pop()))
        if file in found or not file.is_file():
            continue
        found[file] = INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace"))
        waiting += [folder / name for name in found[file] for folder in (file.parent, Path())]
    return [source.with_suffix(".options"), *found]


def saved_at(files: list[Path]) -> dict[Path, int]:
    """When each was saved, in nanoseconds; one that is not there, as while an editor replaces it, is left out."""
    times = {}
    for file in files:
        try:
            times[file] = file.stat().st_mtime_ns
        except OSError:
            continue
    return times


def stop(process: subprocess.Popen) -> None:
    """Ends the process and what it has started, which is a session of its own."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue


def watch(source: Path, command: list[str]) -> int:
    """Never returns but for a usage error in the first run."""
    first = True
    while True:
        files = files_of(source)
        before = now = saved_at(files)
        came: list[int] = []  # signals, which wait until the process is known that they must stop
        kept = {end: signal.signal(end, lambda number, _, came=came: came.append(number)) for end in ENDS}
        process = subprocess.Popen(command, start_new_session=True)
        try:
            for end, handler in kept.items():
                signal.signal(end, handler)
            for number in came:
                signal.raise_signal(number)
            while process.poll() is None and now == before:
                time.sleep(SECONDS)
                now = saved_at(files)
        finally:
            stop(process)
        if first and process.returncode == USAGE:
            return USAGE
        first = False
        if now == before:
            print(f"watching {source}: save it to run it again, Ctrl-C ends", file=sys.stderr, flush=True)
        last = None
        while now == before or now != last or source not in now:  # changed, and no longer changing
            time.sleep(SECONDS)
            last, now = now, saved_at(files)
        saved = next((file for file in files if now.get(file) != before.get(file)), source)
        print(f"\n== {saved} was saved", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    for end in (signal.SIGTERM, signal.SIGHUP):  # what runs is ended, too
        signal.signal(end, lambda number, _: sys.exit(128 + number))
    try:
        return watch(Path(arguments[0]), arguments[1:])
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
