"""The exception that ends a command with one line and exit status 2, and how such a line ends."""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.6  # of the letters of both words, leading dashes apart; as in common/harness/cli/nearest.h


class InputError(Exception):
    """What was given cannot be used; the message names the file and, where there is one, the line."""


class Unavailable(Exception):
    """What a generated block or a document's numbers are made of is not here; the message says what is missing. They stay."""


def hint(word: str, candidates: Iterable[str]) -> str:
    """The end of a message: "; the nearest is X", where X is the candidate most like the word; "" where none is like it."""
    named = {candidate.lstrip("-"): candidate for candidate in candidates}
    alike = get_close_matches(word.lstrip("-"), named, n=1, cutoff=ALIKE)
    return f"; the nearest is {named[alike[0]]}" if alike else ""
