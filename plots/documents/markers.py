"""Numbers and claims beside their sentence: markers in a document, which neither GitHub nor the site shows.

    falls from 2.32<!--= stalls('05', 'short scoreboard') --> clocks     the number before it is what the expression yields
    11 does more per clock.<!--? gain('11', '10') > 1 -->                the sentence is true while the relation holds
    <!--: type=bf16 size=4096 -->                                        what functions take where a call does not say it
    <!--: gpu=nvidia-h100 -->                                            the folder of bench/recorded that markers below it read
    <!--: needs=power.csv -->                                            the document waits, as it is, for this file of the folder
    <!--: clk(rung) = metric(rung, 'clocks') * sms / pairs -->           a name for the markers below it

A filled number keeps its form: as many decimals, commas, a sign. Markers in fences and in generated blocks are text.
"""

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plots.documents.expressions import define, untrue
from plots.documents.numbers import Numbers, Recording
from plots.errors import InputError, Unavailable

MARKER = re.compile(r"<!--([=?:])(.*?)-->")
NUMBER = re.compile(r"(?<![\w.])([−+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)([*`]*)$")
SETTINGS = re.compile(r"\s*(?:(?:type|size|gpu|needs)=[\w.-]+\s*)+")


class Untrue(str):
    """What no command can fill: a claim that does not hold."""


@dataclass
class Found:
    """A document with its numbers filled, and what was stale: `line: old is now new: expression`."""

    text: str
    stale: list[str]


def written(value: Any, like: str) -> str:
    """A number in the form of another: its decimals, its commas, its sign."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"yields {value}, which is no number")
    decimals = len(like.partition(".")[2])
    text = f"{abs(value):{',' if ',' in like else ''}.{decimals}f}"
    minus = "-" if like.startswith("-") else "−"
    if not float(text.replace(",", "")):
        return text
    return f"{minus if value < 0 else '+' if like[0] in '+−-' else ''}{text}"


def fill(text: str, numbers: Numbers) -> Found:
    """Every number of a document rendered anew, and every claim tested."""
    out, stale = [], []
    hidden = ""  # the line that ends a fence or a generated block
    for place, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if hidden:
            hidden = "" if bare == hidden else hidden
        elif bare.startswith("```"):
            hidden = "```"
        elif opened := re.match(r"<!-- (generated|simulator): ", line):
            hidden = f"<!-- end {opened[1]} -->"
        elif "<!--" in line:
            try:
                line, found = _line(line, numbers)
            except InputError as error:
                raise InputError(f"{place}: {error}") from error
            stale += [type(one)(f"{place}: {one}") for one in found]
        out.append(line)
    return Found("\n".join(out) + "\n", stale)


def _line(line: str, numbers: Numbers) -> tuple[str, list[str]]:
    filled, end, stale = "", 0, []
    for marker in MARKER.finditer(line):
        filled += line[end : marker.start()]
        kind, expression = marker[1], marker[2].strip()
        if "--" in expression or "|" in expression:
            raise InputError(f"'{expression}': GitHub would show a marker with -- or |")
        if kind == "=":
            number = NUMBER.search(filled)
            if not number:
                raise InputError(f"no number before <!--= {expression} -->")
            value = numbers.evaluate(expression)
            try:
                new = written(value, number[1])
            except InputError as error:
                raise InputError(f"'{expression}' {error}") from error
            if new != number[1]:
                stale.append(f"{number[1]} is now {new}: {expression}")
                filled = filled[: number.start()] + new + number[2]
        elif kind == "?":
            if why := untrue(expression, numbers.names):
                stale.append(Untrue(f"does not hold: {why}"))
        elif SETTINGS.fullmatch(expression):
            numbers.set(**dict(word.split("=") for word in expression.split()))
        else:
            define(expression, numbers.names)
        filled, end = filled + marker[0], marker.end()
    rest = line[end:]
    if re.search(r"<!--[=?:]", rest):
        raise InputError(f"a marker without its end: {rest[rest.index('<!--') :]}")
    return filled + rest, stale


def defining(path: Path, recording: Recording) -> Numbers:
    """What the markers of a file define, its tables among it."""
    text = path.read_text(encoding="utf-8")
    numbers = Numbers(recording, text)
    try:
        fill(text, numbers)
    except (InputError, Unavailable) as error:
        raise InputError(f"{path}:{error}") from error
    return numbers


def update(path: Path, recording: Recording, check: bool) -> list[str]:
    """Fills the numbers of a file, unless `check`; what was stale, and what does not hold."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"<!--[=?:]", text):
        return []
    try:
        found = fill(text, Numbers(recording, text))
    except InputError as error:
        raise InputError(f"{path}:{error}") from error
    except Unavailable as missing:
        print(f"left as it is: {path}: {missing}", file=sys.stderr)
        return []
    if found.text != text and not check:
        path.write_text(found.text, encoding="utf-8")
    return found.stale
