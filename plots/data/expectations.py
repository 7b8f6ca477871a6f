"""What the header of a kernel predicts, in its field Expect: "1.23 times 06", or "0.16 of cuBLAS" where there is no factor."""

import re
from dataclasses import dataclass
from itertools import takewhile

from plots.data.units import Shape

PREDICTION = re.compile(r"\b(\d+(?:\.\d+)?) (?:times (\d\d[a-z]?)\b|of cuBLAS\b)( at most)?")
SIXTEEN_BIT = "16-bit results"
SHAPE = re.compile(r"\b(?:(\d+) ?x ?(\d+) ?x ?(\d+)|(\d+) cubed)\b")
FOUR_THOUSAND_CUBED = Shape(4096, 4096, 4096)


@dataclass(frozen=True)
class Expectation:
    """A prediction: a factor over another rung or a ratio to cuBLAS; the lowest and the highest where it names two factors."""

    numbers: tuple[str, ...]  # as written, ascending
    of: str  # the other rung's number; empty for cuBLAS
    at_most: bool
    out: str  # the results that it is made for: "f32", or "same" for those of 16 bits
    shape: Shape | None = None  # that it is made for; None: 4096 cubed

    @property
    def low(self) -> float:
        """The lowest number."""
        return float(self.numbers[0])

    @property
    def high(self) -> float:
        """The highest number."""
        return float(self.numbers[-1])

    def __str__(self) -> str:
        ends = dict.fromkeys((self.numbers[0], self.numbers[-1]))
        return f"{'≤ ' if self.at_most else ''}{'–'.join(ends)} {f'× {self.of}' if self.of else 'of cuBLAS'}"


def field(source: str) -> str:
    """The text of the field Expect of a kernel's header, in one line; empty where there is none."""
    lines = source.splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith("// Expect ")), None)
    if first is None:
        return ""
    more = takewhile(lambda line: line.startswith("//      "), lines[first + 1 :])
    return " ".join(" ".join(line[2:].strip() for line in [lines[first].replace("Expect", "", 1), *more]).split())


def expected(source: str) -> Expectation | None:
    """The factor over another rung that a header predicts, else the ratio to cuBLAS; None where it predicts neither."""
    text = field(source)
    found = list(PREDICTION.finditer(text))
    factors = [match for match in found if match[2] and match[2] == next(m[2] for m in found if m[2])]
    chosen = factors or found[:1]
    if not chosen:
        return None
    numbers = tuple(sorted((match[1] for match in chosen), key=float))
    before = text[: chosen[0].start()]
    clause, sentence = (re.split(rf"(?<=[{ends}]) ", before)[-1] for ends in (".;", "."))
    out = "same" if SIXTEEN_BIT in clause else "f32"
    return Expectation(numbers, chosen[0][2] or "", bool(chosen[0][3]), out, _shape(sentence))


def _shape(sentence: str) -> Shape | None:
    """The product that a sentence names, as "1 x 2 x 3", "1x2x3" or "4 cubed"; None where it names none, or 4096 cubed."""
    found = SHAPE.search(sentence)
    if not found:
        return None
    shape = Shape(*map(int, [found[4]] * 3 if found[4] else found.groups()[:3]))
    return None if shape == FOUR_THOUSAND_CUBED else shape
