"""What the chapters' numbers in prose are held to: the recorded results, and a number found in a sentence.

A claim is a test: it finds the number in the chapter's prose with said(), which fails where the sentence is gone, and compares it
with what bench/recorded has. So a new recording cannot make a sentence false unnoticed.
"""

import csv
import math
import re
from functools import cache
from pathlib import Path
from statistics import median

from plots.data.results import load
from plots.data.selection import Table, tables
from plots.data.units import Shape
from plots.documents.chapters import GPU
from plots.tables import profiled

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "bench/recorded" / GPU


def prose(chapter: str) -> str:
    """A chapter, named by its number or its stem, without what is generated; line breaks are spaces."""
    named = ROOT / "docs" / f"{chapter}.md"
    (path,) = [named] if named.exists() else (ROOT / "docs").glob(f"{chapter}_*.md")
    by_hand = re.sub(r"<!-- generated:.*?<!-- end generated -->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(by_hand.split())


def said(chapter: str, pattern: str) -> list[str]:
    """The groups of a regular expression, which must match the chapter's prose exactly once."""
    matches = list(re.finditer(pattern, prose(chapter)))
    assert len(matches) == 1, f"{len(matches)} matches of {pattern!r} in chapter {chapter}"
    return list(matches[0].groups())


def agrees(text: str, value: float, unit: float = 1.0) -> bool:
    """True where `value` in this unit, rounded to the digits of the text, is the text, give or take one of the last digit."""
    number = text.replace(",", "").replace("−", "-").replace("+", "")
    step = 10.0 ** -len(number.partition(".")[2])
    return math.isfinite(value) and abs(float(number) - value / unit) <= 1.5 * step


@cache
def table(type: str) -> Table:
    """The published results of a type, in rounds, cold, with FP32 results."""
    return next(table for table in tables(load(RECORDED)) if table.type == type)


def stem(number: str) -> str:
    """The rung with this number."""
    (path,) = (ROOT / "kernels").glob(f"{number}_*.cu")
    return path.stem


def cell(type: str, number: str, size: int | tuple[int, int, int], column: str) -> float:
    """A column of the ladder, the median over sittings; cell("bf16", "14", 4096, "ratio_clk")."""
    return table(type).value(stem(number), Shape(*(size if isinstance(size, tuple) else [size] * 3)), column)


def gain(type: str, number: str, before: str, size: int) -> float:
    """How many times another rung a rung is, in FLOP/clk/SM."""
    return cell(type, number, size, "flop_clk_sm") / cell(type, before, size, "flop_clk_sm")


@cache
def profile(what: str) -> profiled.Profile:
    """Of "f32", "bf16@8192" or "sweep_16": kernel -> (group, metric) -> value."""
    return profiled.read(RECORDED / profiled.file_name(what, load(RECORDED).facts))[0]


def metric(what: str, number: str, group: str, name: str) -> float:
    """One metric of Nsight Compute; metric("f32", "06", "stalls", "barrier")."""
    of_rung = [metrics for kernel, metrics in profile(what).items() if kernel.rpartition("/")[2].split("_")[0] == number]
    return of_rung[0][group, name]


def stalls(what: str, number: str, *names: str) -> float:
    """Clocks per instruction that a warp waits, for these reasons together."""
    return sum(metric(what, number, "stalls", name) for name in names)


def clocks_of_a_warp(what: str, number: str, pairs: int, *named: str) -> dict[str, float]:
    """Per k tile, of which all warps have `pairs`: what a warp issues, what it waits for the named reasons and for all others."""
    instructions = metric(what, number, "issue", "instructions") / pairs
    metrics = profile(what)[stem(number)]
    waits = {name: value * instructions for (group, name), value in metrics.items() if group == "stalls"}
    clocks = {
        "issuing": instructions,
        **{name: waits.pop(name) for name in named},
        "all other stall reasons": sum(waits.values()),
    }
    return {**clocks, "together": sum(clocks.values())}


def accuracy(what: str, data: str, k: int, column: str) -> float:
    """A column of bench/recorded/accuracy.csv."""
    return chosen("../accuracy.csv", column, what=what, data=data, k=k)


@cache
def rows(file: str) -> list[dict[str, str]]:
    """Any recorded CSV: steady.csv, conditions.csv, sweep_16.csv, counters_512.csv."""
    with (RECORDED / file).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def chosen(file: str, column: str, **equal: str | int) -> float:
    """The median of a column over the rows in which the named columns have these values; one row at least."""
    found = [float(row[column]) for row in rows(file) if all(row[name] == str(value) for name, value in equal.items())]
    assert found, f"{file} has no row with {equal}"
    return median(found)
