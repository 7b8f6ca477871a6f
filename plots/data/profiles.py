"""What Nsight Compute counted, as bench/record.sh keeps it of `./run_all.sh profile`."""

import csv
import re
from pathlib import Path

from plots.data.rungs import Facts
from plots.data.units import Shape
from plots.errors import InputError

Metrics = dict[tuple[str, str], float]  # (group, name) -> value, in the unit of tools/profile.py; NaN where there is none
Profile = dict[str, Metrics]  # kernel -> its metrics


def file_name(what: str, facts: Facts) -> str:
    """The file that holds "bf16" (at 4096 cubed), "bf16@8192", or variants of a sweep: "sweep_16"."""
    if re.fullmatch(r"sweep_\w+", what):
        return f"profile_{what}.csv"
    parts = re.fullmatch(rf"({'|'.join(facts.types)})(?:@(\d+))?", what)
    if not parts:
        raise InputError(f"no profile of '{what}': expected one of {', '.join(facts.types)}, such as bf16@8192, or sweep_NN")
    type, size = parts.groups()
    return "_".join(["profile", *([size] if size else []), type]) + ".csv"


def read(path: Path) -> tuple[Profile, Shape]:
    """The metrics by kernel, and the shape that they were counted at."""
    profile: Profile = {}
    shapes = set()
    with path.open(newline="", encoding="utf-8") as lines:
        for line, row in enumerate(csv.DictReader(lines), 2):
            try:
                value = float(row["value"] or "nan")
                shapes.add(Shape(*(int(row[size]) for size in "mnk")))
                profile.setdefault(row["kernel"], {})[row["group"], row["metric"]] = value
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}:{line}: not a metric as tools/profile.py writes it: {error}") from error
    if len(shapes) != 1:
        raise InputError(f"{path}: {len(shapes)} shapes; a profile is of one")
    return profile, shapes.pop()
