"""Checks the language of all prose by Harper, a grammar checker that runs on the machine: spelling, agreement, doubled words.

usage: python3 -m tools.words [FILE...]   every page of the repository, where no file is named

Prints a line per finding, then how many there are. Findings are for people to judge, so they do not change the exit status:
0, or 77 where there is no Harper (requirements/words.txt). A word of ours belongs into the glossary or into tools/words.txt.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WAIVED = 77
FOLDERS = (".", "docs", "kernels/local", "sim")
TERMS, GLOSSARY = Path("tools/words.txt"), Path("docs/glossary.md")
NOT_OURS = {  # rules that find nothing here but what is meant so
    "cells of tables begin small, and titles are sentences": "SentenceCapitalization UseTitleCase",
    "matrices A and C, an index i, 01's": "AnA CapitalizePersonalPronouns MergeWords MissingPreposition CommaFixes PluralDecades",
    "units": "ExpandMemoryShorthands ExpandTimeShorthands ExpandMinimum ExpandControl ExpandStandardInputAndOutput",
    "style": "OxfordComma DiscourseMarkers LongSentences UseEllipsisCharacter NumericRangeEnDash CondenseAllThe Overall",
    "our terms": "SplitWords CompoundNouns DisjointPrefixes OrthographicConsistency MassNouns RegularIrregulars",
    "both 16 and 17; lay out": "QuantifierNumeralConflict PhrasalVerbAsCompoundNoun",
}
NAME = re.compile(r"^\w{0,2}('s)?\W*$|\d|_|[^\W\d_][A-Z]|[^\x00-\x7f]")  # of code, of a unit, of a rung, or a symbol


def prose(text: str) -> str:
    """What of a page is for the check, line by line: neither code blocks, nor markers and HTML, nor where links lead."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->|<[a-z/][^>]*>", blank, text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def blank(found: re.Match) -> str:
    return "\n" * found[0].count("\n")


def terms() -> set[str]:
    """Our words: those of the glossary's titles, and those of the list."""
    titles = re.findall(r"^### (.+)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return {*re.findall(r"[\w'-]+", " ".join(titles)), *TERMS.read_text(encoding="utf-8").split()}


def findings(files: list[Path]) -> list[str]:
    """A line per finding: file:line: what was found, and why."""
    known, out = {re.sub("'?s$", "", word.lower()) for word in terms()}, []
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder, "words")
        words.write_text("\n".join(terms()), encoding="utf-8")
        copies = {str(place): file for place, file in enumerate(files)}
        for place, file in copies.items():
            Path(folder, f"{place}.md").write_text(prose(file.read_text(encoding="utf-8")), encoding="utf-8")
        options = ["--format", "json", "--quiet", "--dialect", "british", "--user-dict-path", str(words)]
        options += ["--ignore", ",".join(" ".join(NOT_OURS.values()).split())]
        command = ["harper", "--no-color", "lint", *options, *(f"{folder}/{place}.md" for place in copies)]
        done = subprocess.run(command, capture_output=True, text=True)
    try:
        of_files = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"words: harper: {done.stderr.strip()}") from None
    for one in of_files:
        for lint in one["lints"]:
            found = lint["matched_text"]
            if lint["rule"] == "SpellCheck" and (NAME.search(found) or re.sub("'?s$", "", found.lower()) in known):
                continue
            out.append(f"{copies[Path(one['file']).stem]}:{lint['line']}: '{found}': {lint['message']} ({lint['rule']})")
    return out


def main(arguments: list[str]) -> int:
    if not shutil.which("harper"):
        print("skipped: no harper here (pip install -r requirements/words.txt)")
        return WAIVED
    files = [Path(name) for name in arguments] or [page for folder in FOLDERS for page in sorted(Path(folder).glob("*.md"))]
    try:
        found = findings(files)
    except OSError as error:
        raise SystemExit(f"words: {error.filename}: {error.strerror}") from None
    print(*found, f"{len(found)} findings in {len(files)} pages", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
