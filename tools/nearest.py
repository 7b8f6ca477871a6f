"""What a misspelt word was meant to be, for error messages.   usage: nearest.py WORD CANDIDATE..."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.6  # of the letters of both words, leading dashes apart; as in common/harness/cli/nearest.h


def hint(word: str, candidates: Iterable[str]) -> str:
    """The end of a message: "; the nearest is X", where X is the candidate most like the word; "" where none is like it."""
    named = {candidate.lstrip("-"): candidate for candidate in candidates}
    alike = get_close_matches(word.lstrip("-"), named, n=1, cutoff=ALIKE)
    return f"; the nearest is {named[alike[0]]}" if alike else ""


if __name__ == "__main__":
    print(hint(sys.argv[1], sys.argv[2:]))
