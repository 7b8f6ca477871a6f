"""How large a step each rung is: the lines of code that it adds to its predecessor's file and removes from it.

usage: python3 -m tools.changed_lines

Lines without comments; empty lines, indentation and the facts of the registration do not count.
"""

import re
import sys
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FACTS = r"number|name|idea|predecessor|kind|types|arch|instruction|layout_b|row_align_bytes|fp16_sums"


class Step(NamedTuple):
    """From a rung's predecessor to the rung."""

    stem: str
    predecessor: str  # its stem
    added: int
    removed: int

    @property
    def changed(self) -> int:
        return self.added + self.removed


def code(text: str) -> list[str]:
    """The lines that count, without their indentation."""
    bare = (re.sub(r"//.*", "", line).strip() for line in text.splitlines())
    return [line for line in bare if line and not re.match(rf"\.({FACTS}) = ", line)]


def compared(before: str, after: str) -> tuple[int, int]:
    """Lines of code that are in `after` alone, and those in `before` alone."""
    old, new = code(before), code(after)
    kept = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return len(new) - kept, len(old) - kept


def steps(folder: Path = ROOT / "kernels") -> list[Step]:
    """A step per rung that states a predecessor, in ladder order."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.cu"))}
    stems = {stem.partition("_")[0]: stem for stem in texts}
    found = []
    for stem, text in texts.items():
        if predecessor := re.search(r'\.predecessor = "(\w+)"', text):
            before = stems[predecessor[1]]
            found.append(Step(stem, before, *compared(texts[before], text)))
    return found


def main() -> int:
    print(f"{'rung':24} {'predecessor':24} {'added':>6} {'removed':>8} {'changed':>8}")
    for step in steps():
        print(f"{step.stem:24} {step.predecessor:24} {step.added:6} {step.removed:8} {step.changed:8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
