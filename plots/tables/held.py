"""Where the card held the clock back: by protocol, type and size, the lowest clock against the highest of the run, and watts."""

import pandas as pd

from plots.data.results import Results
from plots.data.selection import Table
from plots.data.units import MISSING, Shape, whole
from plots.tables.grid import Grid


def highest_clock(results: Results) -> float:
    """MHz of the SMs that some rung or cuBLAS was seen at; NaN where clocks were not recorded."""
    frames = [frame for frame in (results.ladder, results.steady) if frame is not None]
    return float(pd.concat([frame[column] for frame in frames for column in ("clock_mhz", "cublas_clock_mhz")]).max())


def grid(results: Results, tables: list[Table]) -> Grid | None:
    """A line per protocol, type and size of the overview; None where clocks were not recorded."""
    highest = highest_clock(results)
    if not highest > 0:
        return None
    lines = []
    for protocol, frame in (("rounds", results.ladder), ("steady", results.steady)):
        for table in tables if frame is not None else []:
            rows = frame[(frame["type"] == table.type) & (frame["protocol"] == protocol) & (frame["status"] == "ok")]
            lines += [
                line
                for shape in table.front
                if (line := _line(protocol, table.type, shape, rows[rows["shape"] == shape], highest))
            ]
    head = ["protocol", "type", "M × N × K", "cells held back", "by", "lowest clock, MHz", "of the highest", "its rung"]
    return Grid([*head, "watts, median", "most"], lines, left=3)


def _line(protocol: str, kind: str, shape: Shape, rows: pd.DataFrame, highest: float) -> list[str]:
    known = rows[rows["clock_mhz"].notna()]
    if known.empty:
        return []
    said = rows[rows["throttle"] != ""]
    held = said[said["throttle"] != "none"]
    reasons = held["throttle"].str.split("+").explode().value_counts()
    slowest = known.loc[known["clock_mhz"].idxmin()]
    return [
        *(protocol, kind, str(shape)),
        f"{len(held)} of {len(said)}" if len(said) else MISSING,
        ", ".join(str(name) for name in reasons.index),
        whole(slowest["clock_mhz"]),
        f"{100 * slowest['clock_mhz'] / highest:.0f} %",
        slowest["kernel"],
        *(whole(value) for value in (rows["power_w"].median(), rows["power_w"].max())),
    ]
