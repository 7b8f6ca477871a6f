"""Prints the candidate nearest to a word, for error messages.   usage: nearest.py WORD CANDIDATE..."""

import sys
from collections.abc import Iterable
from difflib import SequenceMatcher


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate that is most like the word; "none" where there is none."""
    return max(candidates, key=lambda candidate: SequenceMatcher(None, word, candidate).ratio(), default="none")


if __name__ == "__main__":
    print(nearest(sys.argv[1], sys.argv[2:]))
