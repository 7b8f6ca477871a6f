"""Reading a results folder: the CSV and JSON files of the harness, validated line by line.

A file that is absent is None and the reader goes on; a file that is there but wrong is an InputError.
A last line without its newline was cut off by an interruption: it is dropped, and a note says so.
"""

import csv
import io
import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from plots.data import rungs
from plots.data.rungs import Facts
from plots.data.units import Shape, gflops
from plots.errors import InputError

# The columns that are used here; their order in the file is free, and others may stand there, too.
CELL = ["kernel", "type", "out", "m", "n", "k", "alpha", "beta", "ld_pad", "init", "l2", "protocol"]
PROVENANCE = ["gpu", "driver", "cuda", "cublas", "commit", "utc"]
COLUMNS = [
    *CELL,
    *("median_ms", "p10_ms", "p90_ms", "gflops", "cublas_gflops", "cublaslt_gflops", "ratio_cublas", "ratio_best"),
    *("ceiling_fraction", "max_error", "bound", "status", "reason", "registers", "smem_bytes", "blocks_per_sm"),
    *("clock_mhz", "power_w", "temperature_c", "throttle"),
    *PROVENANCE,
]
COUNTERS = [  # of the simulator; empty on a GPU
    *("sim_warp_instructions", "sim_global_load_sectors", "sim_global_load_bytes", "sim_global_store_sectors"),
    *("sim_shared_wavefronts", "sim_shared_ideal", "sim_barriers"),
]
NEWER = [
    "scales",
    "epilogue",
    "layout",
    "groups",
    "sitting",
    "flop_clk_sm",
    "ratio_clk",
    "cutlass_gflops",
    "ratio_cutlass",
    "cublas_clock_mhz",
    "tile",
    *COUNTERS,
]  # empty in a file that was recorded before there were these; `scales` and `epilogue` are then "none"
CEILING_COLUMNS = ["name", "value", "unit"]
TEXT = {"kernel", "type", "out", "scales", "epilogue", "layout", "groups", "ld_pad", "init", "l2", "protocol"}
TEXT |= {"status", "reason", "throttle", "tile", *PROVENANCE}
SIZES = {"m", "n", "k"}
CHOICES = {
    "protocol": {"rounds", "steady", "check"},
    "status": {"ok", "wrong", "waived", "failed"},
}


@dataclass
class Simulation:
    """What a results folder of the simulator holds: checks and counters, and no times."""

    folder: Path
    facts: Facts
    counts: pd.DataFrame
    check: pd.DataFrame | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def gpu(self) -> str:
        """What the simulator calls itself."""
        return str(self.counts["gpu"].max()) if len(self.counts) else "the simulator"


@dataclass
class Results:
    """What a results folder holds. A table is a DataFrame with COLUMNS, NEWER and `shape`; None where its file is absent."""

    folder: Path
    facts: Facts
    ladder: pd.DataFrame
    check: pd.DataFrame | None = None
    steady: pd.DataFrame | None = None
    ceilings: dict[str, tuple[float, str]] = field(default_factory=dict)  # name -> (value, unit)
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def gpu(self) -> str:
        """The GPU's name, as CUDA gives it."""
        named = [gpu for gpu in self.ladder["gpu"] if gpu]
        return named[0] if named else str(self.environment.get("gpu", "unknown GPU"))

    @property
    def date(self) -> str:
        """The day of the last measurement, YYYY-MM-DD."""
        utc = self.ladder["utc"].max() if len(self.ladder) else str(self.environment.get("utc", ""))
        return utc[:10] or "unknown date"


def _lines(path: Path, needed: list[str], newer: list[str], notes: list[str]) -> list[tuple[int, list[str]]]:
    """The records of a CSV file with their line numbers: the fields of the columns `needed` and `newer`, in that order."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if text and not text.endswith("\n"):
        whole, _, cut = text.rpartition("\n")
        text = whole + "\n" if whole else cut
        if whole:
            notes.append(f"{path.name}: the last line is cut off (the run was interrupted) and was left out")
    reader = csv.reader(io.StringIO(text))
    records = [(reader.line_num, record) for record in reader if record]
    if not records:
        raise InputError(f"{path}: empty; expected a header with {', '.join(needed[:4])}, ...")
    header = records[0][1]
    if absent := [name for name in needed if name not in header]:
        raise InputError(f"{path}:1: no column {', '.join(absent)}")
    places = [header.index(name) if name in header else None for name in [*needed, *newer]]
    for number, record in records[1:]:
        if len(record) != len(header):
            raise InputError(f"{path}:{number}: {len(record)} fields, the header has {len(header)}")
    return [(n, ["" if place is None else record[place] for place in places]) for n, record in records[1:]]


def _number(text: str, where: str) -> float:
    """A field's number; empty is NaN."""
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise InputError(f"{where} is not a number: '{text}'") from None


def _column(path: Path, name: str, lines: list[int], texts: list[str]) -> list[str] | list[float] | list[int]:
    """The fields of a column, checked against what it may hold."""
    if name in CHOICES and (wrong := set(texts) - CHOICES[name]):
        line, text = next((line, text) for line, text in zip(lines, texts, strict=True) if text in wrong)
        raise InputError(f"{path}:{line}: {name} is '{text}', expected one of {', '.join(sorted(CHOICES[name]))}")
    if name in SIZES:
        for line, text in zip(lines, texts, strict=True):
            if not text.isdecimal() or int(text) < 1:
                raise InputError(f"{path}:{line}: {name} is not a positive whole number: '{text}'")
        return [int(text) for text in texts]
    if name == "kernel":
        for line, text in zip(lines, texts, strict=True):
            if not text[:2].isdecimal():
                raise InputError(f"{path}:{line}: {name} does not start with a rung's number: '{text}'")
    if name in TEXT:
        return texts
    try:
        return [float(text) if text else math.nan for text in texts]
    except ValueError:
        return [_number(text, f"{path}:{line}: {name}") for line, text in zip(lines, texts, strict=True)]


def read_rows(path: Path, notes: list[str]) -> pd.DataFrame:
    """The rows of a ladder CSV, the latest of each cell and sitting, with a `shape` column; ms and GFLOP/s.

    A file that has not changed since is not read again: the documents ask for the same rows a hundred times."""
    stat = path.stat() if path.is_file() else None
    frame, found = _read_rows(path, stat and (stat.st_mtime_ns, stat.st_size))
    notes.extend(found)
    return frame.copy()


@lru_cache(maxsize=16)
def _read_rows(path: Path, version: tuple[int, int] | None) -> tuple[pd.DataFrame, list[str]]:
    """Rows and notes of a file; `version` changes when the file does."""
    notes: list[str] = []
    columns = [*COLUMNS, *NEWER]
    numbered = _lines(path, COLUMNS, NEWER, notes)
    lines = [line for line, _ in numbered]
    fields = zip(*(record for _, record in numbered), strict=True) if numbered else [[] for _ in columns]
    read = {name: _column(path, name, lines, list(texts)) for name, texts in zip(columns, fields, strict=True)}
    frame = pd.DataFrame(read, dtype=None if numbered else object)
    frame["sitting"] = frame["sitting"].fillna(1)
    frame[["scales", "epilogue"]] = frame[["scales", "epilogue"]].replace("", "none")
    cell = [*CELL, "scales", "epilogue", "layout", "groups", "sitting"]
    frame = frame.sort_values("utc", kind="stable").drop_duplicates(cell, keep="last").sort_index()
    frame["shape"] = [Shape(*sizes) for sizes in zip(frame["m"], frame["n"], frame["k"], strict=True)]
    gpus = sorted(set(frame["gpu"]) - {""})
    if len(gpus) > 1:
        raise InputError(f"{path}: rows from {len(gpus)} GPUs ({', '.join(gpus)}); a results folder holds one")
    _check_formula(path, frame, notes)
    return frame.reset_index(drop=True), notes


def _check_formula(path: Path, frame: pd.DataFrame, notes: list[str]) -> None:
    """Notes rows whose gflops is not 2*M*N*K / median_ms, within what rounding in the file can do."""
    off = [
        f"{row.kernel} at {row.shape}"
        for row in frame.itertuples()
        if row.median_ms > 0 and abs(row.gflops - gflops(row.shape, row.median_ms)) > 0.01 * row.gflops + 0.01
    ]
    if off:
        notes.append(f"{path.name}: gflops is not 2·M·N·K / median_ms in {len(off)} rows, the first {off[0]}")


def read_ceilings(path: Path, notes: list[str]) -> dict[str, tuple[float, str]]:
    """Measured ceilings by name: (value, unit); the last row of a name wins."""
    ceilings = {}
    for line, (name, value, unit) in _lines(path, CEILING_COLUMNS, [], notes):
        number = _number(value, f"{path}:{line}: value")
        if not number > 0:
            raise InputError(f"{path}:{line}: value is not a positive number: '{value}'")
        ceilings[name] = (number, unit)
    return ceilings


def read_environment(path: Path) -> dict[str, Any]:
    """environment.json as a flat object."""
    try:
        environment = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(environment, dict):
        raise InputError(f"{path}: expected a JSON object")
    return environment


def is_simulation(folder: Path) -> bool:
    """True for a folder that was filled without a GPU."""
    return (folder / "counts.csv").is_file() and not (folder / "ladder.csv").is_file()


def load_simulation(folder: Path) -> Simulation:
    """Everything in a results folder of the simulator, under the facts that it keeps."""
    notes: list[str] = []
    simulation = Simulation(folder, rungs.of_folder(folder), read_rows(folder / "counts.csv", notes), notes=notes)
    if (folder / "check.csv").is_file():
        simulation.check = read_rows(folder / "check.csv", notes)
    if (folder / "environment.json").is_file():
        simulation.environment = read_environment(folder / "environment.json")
    return simulation


def load(folder: Path, facts: Facts | None = None) -> Results:
    """Everything in a results folder, under the facts that it keeps, unless others are given.

    ladder.csv must be there; what else is missing is noted.
    """
    notes: list[str] = []
    if not (folder / "ladder.csv").is_file():
        raise InputError(f"{folder}: no ladder.csv in it")
    ladder = read_rows(folder / "ladder.csv", notes)
    results = Results(folder, facts or rungs.of_folder(folder), ladder, notes=notes)
    for name in ("check", "steady"):
        if (folder / f"{name}.csv").is_file():
            setattr(results, name, read_rows(folder / f"{name}.csv", notes))
    if (folder / "ceilings.csv").is_file():
        results.ceilings = read_ceilings(folder / "ceilings.csv", notes)
    else:
        notes.append("ceilings.csv is missing")
    if (folder / "environment.json").is_file():
        results.environment = read_environment(folder / "environment.json")
    else:
        notes.append("environment.json is missing: the environment is what the CSV rows tell")
    return results
