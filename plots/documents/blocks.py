"""Generated blocks of README.md and docs/*.md: found between markers, filled, compared.

    <!-- generated: NAME -->
    ... whatever the command writes ...
    <!-- end generated -->

The first word says which command writes a block: `generated` python3 -m plots, `simulator` tools.sim_chapter. Markers inside
a fenced code block are text, not markers.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from plots.errors import InputError, Unavailable

GENERATED = "generated"


def fill(text: str, render: Callable[[str], str], word: str = GENERATED) -> tuple[str, list[str]]:
    """`text` with every block of this word rendered anew by its name, and the names of the blocks that changed."""
    opens, close = re.compile(rf"^<!-- {word}: (.+?) -->$"), f"<!-- end {word} -->"
    out: list[str] = []
    stale: list[str] = []
    block: tuple[str, int, list[str]] | None = None  # name, line of its marker, body
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if block is None:
            out.append(line)
            fenced ^= line.lstrip().startswith("```")
            opened = None if fenced else opens.match(line)
            block = (opened[1], number, []) if opened else None
        elif line == close:
            try:
                body = render(block[0])
            except Unavailable as missing:
                print(f"left as it is: {block[0]}: {missing}", file=sys.stderr)
                body = "\n".join(block[2])
            if body.strip("\n") != "\n".join(block[2]).strip("\n"):
                stale.append(block[0])
            out += [*body.strip("\n").splitlines(), close]
            block = None
        else:
            block[2].append(line)
            if opens.match(line):
                raise InputError(f"line {number}: a block starts inside '{block[0]}', which line {block[1]} opened")
    if block:
        raise InputError(f"line {block[1]}: block '{block[0]}' has no '{close}'")
    return "\n".join(out) + "\n", stale


def update(path: Path, render: Callable[[str], str], check: bool, word: str = GENERATED) -> list[str]:
    """Fills the blocks of a file, unless `check`; the names of those that were stale."""
    text = path.read_text(encoding="utf-8")
    try:
        filled, stale = fill(text, render, word)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if stale and not check:
        path.write_text(filled, encoding="utf-8")
    return stale
