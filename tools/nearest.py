"""Prints the candidate nearest to a word, for error messages.   usage: nearest.py WORD CANDIDATE..."""

import sys
from difflib import SequenceMatcher

word, *candidates = sys.argv[1:]
print(max(candidates, key=lambda candidate: SequenceMatcher(None, word, candidate).ratio(), default="none"))
