"""A card per chapter: its number, its title, its rung's idea, and what was recorded of the rung. Needs no build."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from plots.data.expectations import FOUR_THOUSAND_CUBED, expected
from plots.data.units import Shape, digits, hundredths, tflops, type_name
from plots.documents.numbers import GPU, Recording

NOT_MEASURED = "not measured"
ALIKE = ("type", "out", "scales", "alpha", "beta", "epilogue", "layout", "groups", "ld_pad", "init", "l2", "protocol")
Row = dict[str, str]


@dataclass(frozen=True)
class Card:
    """What a chapter's card says; idea and gain are empty where the chapter has no rung of its own name."""

    page: str
    title: str  # with the number, in Markdown
    idea: str
    gain: str


@dataclass(frozen=True)
class Measured:
    """Rows of a rung in one recorded file, at one shape under one condition, and those of the rung before."""

    rows: list[Row]
    before: list[Row]

    @property
    def shape(self) -> Shape:
        """The product."""
        return _shape(self.rows[0])

    @cached_property
    def gain(self) -> float:
        """How many times the rung before, in FLOP/clk/SM; NaN where that was not measured beside it."""
        return _median(self.rows, "flop_clk_sm") / _median(self.before, "flop_clk_sm")

    @cached_property
    def ratio(self) -> float:
        """The speed over that of cuBLAS; NaN where it was not measured."""
        return _median(self.rows, "ratio_cublas")


def card(recording: Recording, page: Path) -> Card:
    """The card of a chapter."""
    text = page.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
    kernel = recording.root / "kernels" / f"{page.stem}.cu"
    if not kernel.is_file():
        return Card(page.name, title, "", "")
    source = kernel.read_text(encoding="utf-8")
    settings = dict(re.findall(r"\b(type|gpu)=([\w-]+)", (re.search(r"<!--:(.*?)-->", text) or [""])[0]))
    measured = gain(recording.of(settings.get("gpu", GPU)), page.stem, source, settings)
    return Card(page.name, title, stated(source, "idea"), measured)


def stated(source: str, name: str) -> str:
    """A text that a rung's registration states: its idea, or the number of its predecessor; empty where it states none."""
    found = re.search(rf'^    \.{name} = "(.*)",$', source, re.MULTILINE)
    return found[1].replace('\\"', '"') if found else ""


def gain(recording: Recording, stem: str, source: str, settings: dict[str, str]) -> str:
    """What was recorded of a rung: at the product that its header predicts for, else at 4096 cubed, else over all products."""
    wanted, number = expected(source), stated(source, "predecessor")
    shapes = [wanted.shape] if wanted and wanted.shape else []
    found = list(_measured(recording, stem, number))
    for shape in [*shapes, FOUR_THOUSAND_CUBED]:
        here = [one for one in found if one.shape == shape]
        if here:
            return _said(max(here, key=lambda one: _rank(one, wanted.out if wanted else "", settings)), number, recording)
    if ratios := [one.ratio for one in found if one.ratio == one.ratio]:
        return f"{hundredths(min(ratios))} to {hundredths(max(ratios))} of cuBLAS"
    rates = [_median(one.rows, "gflops") for one in found]  # no cuBLAS has such a product
    return f"{tflops(min(rates))} to {tflops(max(rates))} TFLOP/s" if rates else NOT_MEASURED


def _measured(recording: Recording, stem: str, number: str) -> Iterator[Measured]:
    """All that the card's files have of a rung, each with the rung before beside it where the file has that."""
    for file in sorted(recording.folder.glob("*.csv"), key=lambda path: (path.name != "ladder.csv", path.name)):
        rows = [row for row in recording.rows(file.name) if row.get("flop_clk_sm") and row.get("status") == "ok"]
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            if row["kernel"] == stem:
                groups.setdefault(_key(row, ALIKE), []).append(row)
        before = [row for row in rows if number and row["kernel"].partition("_")[0] == number]
        for key, own in groups.items():
            yield Measured(own, [row for row in before if _key(row, ALIKE) == key])


def _rank(one: Measured, out: str, settings: dict[str, str]) -> tuple[bool, ...]:
    """Which of several conditions a card shows: the chapter's type, a plain product, in rounds, beside the rung before."""
    row = one.rows[0]
    plain = row["protocol"] == "rounds" and float(row["beta"]) == 0 and row.get("epilogue", "none") == "none"
    return row["type"] == settings.get("type"), plain, one.gain == one.gain, row["out"] == out, one.ratio == one.ratio


def _said(one: Measured, number: str, recording: Recording) -> str:
    parts = [f"{digits(one.gain)} × {number}"] * (one.gain == one.gain)
    parts += [f"{hundredths(one.ratio)} of cuBLAS"] * (one.ratio == one.ratio)
    where = [type_name(one.rows[0]["type"]), f"{one.shape}"]
    where += [recording.folder.name.removeprefix("nvidia-").upper()] * (recording.folder.name != GPU)
    return f"{', '.join(parts)} ({', '.join(where)})"


def _key(row: Row, columns: tuple[str, ...]) -> tuple[str, ...]:
    return (*(row[edge] for edge in "mnk"), *(row.get(column) or "" for column in columns))


def _shape(row: Row) -> Shape:
    return Shape(*(int(row[edge]) for edge in "mnk"))


def _median(rows: list[Row], column: str) -> float:
    return median([float(row[column]) for row in rows if row.get(column)] or [float("nan")])
