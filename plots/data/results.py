"""Reading a results folder: the CSV and JSON files of the harness, validated line by line.

A file that is absent is None and the reader goes on; a file that is there but wrong is an InputError.
A last line without its newline was cut off by an interruption: it is dropped, and a note says so.
"""

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from plots.data.units import Shape, gflops
from plots.errors import InputError

CELL = ["kernel", "type", "out", "m", "n", "k", "alpha", "beta", "ld_pad", "init", "l2", "protocol"]
COUNTERS = [  # of the simulator; empty on a GPU
    *("sim_warp_instructions", "sim_flops", "sim_global_load_sectors", "sim_global_load_bytes", "sim_global_store_sectors"),
    *("sim_global_store_bytes", "sim_shared_wavefronts", "sim_shared_ideal", "sim_barriers"),
]
LATER = [{"flop_clk_sm"}, {*COUNTERS}]  # a file that was recorded before there were these is read without
PROVENANCE = ["gpu", "sm", "driver", "cuda", "cublas", "commit", "utc"]
COLUMNS = [
    *CELL,
    *("rounds", "median_ms", "p10_ms", "p90_ms", "gflops", "cublas_ms", "cublas_gflops", "cublaslt_ms"),
    *("cublaslt_gflops", "ratio_cublas", "ratio_best", "ceiling_fraction", "ceiling", "flop_clk_sm", "max_error", "bound"),
    *("status", "reason", "registers", "smem_bytes", "blocks_per_sm", "clock_mhz", "power_w", "temperature_c", "throttle"),
    *PROVENANCE,
    *COUNTERS,
]
CEILING_COLUMNS = ["name", "value", "unit", "gpu", "utc", "commit"]
TEXT = {"kernel", "type", "out", "ld_pad", "init", "l2", "protocol", "ceiling", "status", "reason", "throttle", *PROVENANCE}
SIZES = {"m", "n", "k"}
CHOICES = {
    "type": {"f32", "tf32", "bf16", "f16"},
    "protocol": {"rounds", "steady", "check"},
    "status": {"ok", "wrong", "waived", "failed"},
}


@dataclass
class Simulation:
    """What a results folder of the simulator holds: checks and counters, and no times."""

    folder: Path
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
    """What a results folder holds. A table is a DataFrame with COLUMNS and `shape`; None where its file is absent."""

    folder: Path
    ladder: pd.DataFrame
    check: pd.DataFrame | None = None
    spread: pd.DataFrame | None = None
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


def _lines(path: Path, header: list[str], notes: list[str]) -> list[tuple[int, list[str]]]:
    """The records of a CSV file with their line numbers; the header is checked and left out. LATER columns may be absent."""
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
        raise InputError(f"{path}: empty; expected the header {','.join(header[:4])},...")
    found = records[0][1]
    absent = {name for names in LATER if names.isdisjoint(found) for name in names}
    expected = [name for name in header if name not in absent]
    if found != expected:
        raise InputError(f"{path}:1: {_header_fault(found, expected)}")
    for number, record in records[1:]:
        if len(record) != len(found):
            raise InputError(f"{path}:{number}: {len(record)} fields, the header has {len(found)}")
        fields = dict(zip(found, record, strict=True))
        record[:] = [fields.get(name, "") for name in header]
    return records[1:]


def _header_fault(got: list[str], want: list[str]) -> str:
    """The first way in which a header differs."""
    for position, name in enumerate(want):
        if position >= len(got):
            return f"wrong header: column {position + 1} should be '{name}' and is missing"
        if got[position] != name:
            return f"wrong header: column {position + 1} should be '{name}', is '{got[position]}'"
    return f"wrong header: {len(got) - len(want)} columns too many, from '{got[len(want)]}'"


def _number(text: str, where: str) -> float:
    """A field's number; empty is NaN."""
    try:
        return float(text) if text else float("nan")
    except ValueError:
        raise InputError(f"{where} is not a number: '{text}'") from None


def _field(path: Path, line: int, name: str, text: str) -> str | float | int:
    """One field, checked against what its column may hold."""
    where = f"{path}:{line}: {name}"
    if name in CHOICES and text not in CHOICES[name]:
        raise InputError(f"{where} is '{text}', expected one of {', '.join(sorted(CHOICES[name]))}")
    if name in SIZES:
        if not text.isdecimal() or int(text) < 1:
            raise InputError(f"{where} is not a positive whole number: '{text}'")
        return int(text)
    if name == "kernel" and not text[:2].isdecimal():
        raise InputError(f"{where} does not start with a rung's number: '{text}'")
    return text if name in TEXT else _number(text, where)


def read_rows(path: Path, notes: list[str]) -> pd.DataFrame:
    """The rows of a ladder CSV, the latest of each cell, with a `shape` column; times in ms, rates in GFLOP/s."""
    records = [
        [_field(path, line, name, text) for name, text in zip(COLUMNS, record, strict=True)]
        for line, record in _lines(path, COLUMNS, notes)
    ]
    frame = pd.DataFrame(records, columns=COLUMNS)
    frame = frame.sort_values("utc", kind="stable").drop_duplicates(CELL, keep="last").sort_index()
    frame["shape"] = [Shape(*sizes) for sizes in zip(frame["m"], frame["n"], frame["k"], strict=True)]
    gpus = sorted(set(frame["gpu"]) - {""})
    if len(gpus) > 1:
        raise InputError(f"{path}: rows from {len(gpus)} GPUs ({', '.join(gpus)}); a results folder holds one")
    _check_formula(path, frame, notes)
    return frame.reset_index(drop=True)


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
    for line, (name, value, unit, *_) in _lines(path, CEILING_COLUMNS, notes):
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
    """Everything in a results folder of the simulator."""
    notes: list[str] = []
    simulation = Simulation(folder, read_rows(folder / "counts.csv", notes), notes=notes)
    if (folder / "check.csv").is_file():
        simulation.check = read_rows(folder / "check.csv", notes)
    if (folder / "environment.json").is_file():
        simulation.environment = read_environment(folder / "environment.json")
    return simulation


def _read_table(folder: Path, name: str, notes: list[str]) -> pd.DataFrame | None:
    """The rows of NAME.csv and of NAME_TYPE.csv, which holds types that were measured in a run of their own."""
    files = [
        file
        for file in (folder / f"{name}.csv", *(folder / f"{name}_{kind}.csv" for kind in ("tf32", "bf16", "f16")))
        if file.is_file()
    ]
    return pd.concat([read_rows(file, notes) for file in files], ignore_index=True) if files else None


def load(folder: Path) -> Results:
    """Everything in a results folder. ladder.csv must be there; what else is missing is noted."""
    ladder = _read_table(folder, "ladder", notes := [])
    if ladder is None:
        raise InputError(f"{folder}: no ladder.csv in it")
    results = Results(folder, ladder, notes=notes)
    for name in ("check", "spread", "steady"):
        setattr(results, name, _read_table(folder, name, notes))
    if (folder / "ceilings.csv").is_file():
        results.ceilings = read_ceilings(folder / "ceilings.csv", notes)
    else:
        notes.append("ceilings.csv is missing")
    if (folder / "environment.json").is_file():
        results.environment = read_environment(folder / "environment.json")
    else:
        notes.append("environment.json is missing: the environment is what the CSV rows tell")
    return results
