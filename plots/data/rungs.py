"""The facts of rungs and types, as `build/bin/ladder --list --json` prints them.

A results folder keeps a copy as rungs.json, so that it can be drawn without a build. Needs nothing but Python itself:

usage: python3 -m plots.data.rungs number|stem|source [TYPE]     that fact of each rung, or of those that compute TYPE
       python3 -m plots.data.rungs predecessor STEM              the number of the rung that this one changed
       python3 -m plots.data.rungs types                         the names of all types
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from plots.data.units import Shape
from plots.errors import InputError, hint

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path("build/bin")
KERNELS = Path("kernels")
FILE = "rungs.json"
GENERATIONS = {"sm_70": "Volta", "sm_75": "Turing", "sm_80": "Ampere", "sm_89": "Ada", "sm_90a": "Hopper", "sm_100a": "Blackwell"}


@dataclass(frozen=True)
class Rung:
    """What a rung states about itself."""

    number: str  # "06b"
    name: str
    stem: str  # "06b_padded", the kernel column of every CSV
    idea: str  # one line
    predecessor: str  # the number of the rung that it changed; empty for the first of its kind
    kind: str  # "step", "variant", "counter-example" or "FP32 form"
    types: tuple[str, ...]
    arch: str  # "sm_80": that or later; "sm_90a": that family alone
    instruction: str  # that multiplies: "FFMA", "mma.sync", "wgmma" or "tcgen05.mma"
    ceilings: dict[str, str]  # type -> the name of the measured ceiling that it cannot pass
    source: str  # its file, from the project's root where it lies inside
    constants: dict[str, dict[str, float]] = field(default_factory=dict)  # numbers of a tile or a model, by name
    layout_b: str = "row_major"  # how B is stored, "row_major" or "col_major", where --layout does not say it; A is row_major


@dataclass(frozen=True)
class OperandType:
    """One type of operands."""

    name: str
    bytes: int
    result_bytes: dict[str, int]  # of an element of C, by --out


@dataclass(frozen=True)
class Facts:
    """All rungs in ladder order, all types, and the named families of shapes."""

    rungs: dict[str, Rung]  # by stem
    types: dict[str, OperandType]
    families: dict[str, tuple[Shape, ...]]

    def find(self, word: str) -> Rung:
        """The rung that a number (06, 6), a name or a stem means."""
        padded = f"0{word}" if re.fullmatch(r"\d[a-z]?", word) else word
        for rung in self.rungs.values():
            if padded in (rung.number, rung.name, rung.stem):
                return rung
        raise InputError(f"there is no rung '{word}'{hint(padded, self.rungs)}")

    def predecessor(self, stem: str) -> Rung | None:
        """The rung that `stem` states as the one it changed; None for the first of its kind, or where one is unknown here."""
        stated = self.rungs[stem].predecessor if stem in self.rungs else ""
        return next((rung for rung in self.rungs.values() if rung.number == stated), None)

    def idea(self, stem: str) -> str:
        """The idea of a rung; empty for a kernel unknown here."""
        return self.rungs[stem].idea if stem in self.rungs else ""

    def layout(self, stem: str) -> str:
        """The layout that a rung is listed with, as --layout names it: "nn" or "nt"; empty for a kernel unknown here."""
        return {"row_major": "nn", "col_major": "nt"}[self.rungs[stem].layout_b] if stem in self.rungs else ""

    def computing(self, kind: str) -> list[Rung]:
        """The rungs that compute a type."""
        if kind not in self.types:
            raise InputError(f"there is no type '{kind}'{hint(kind, self.types)}")
        return [rung for rung in self.rungs.values() if kind in rung.types]


def parse(text: str, where: str) -> Facts:
    """The facts in a JSON text; keys that nobody here uses are left out."""
    try:
        stated = json.loads(text)
        rungs = [_of(Rung, row) for row in stated["rungs"]]
        types = [_of(OperandType, row) for row in stated["types"]]
        families = {name: tuple(Shape(*sizes) for sizes in shapes) for name, shapes in stated["families"].items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not the facts of rungs, as ladder --list --json prints them: {error!r}") from error
    return Facts({rung.stem: rung for rung in rungs}, {kind.name: kind for kind in types}, families)


def _of(kind: type, row: dict[str, Any]) -> Any:
    fields = {name: row[name] for name in kind.__dataclass_fields__ if name in row}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def read(path: Path) -> Facts:
    """The facts in a file."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


@cache
def of_checkout(root: Path = ROOT, stem: str = "ladder") -> Facts:
    """What the checkout's own program says of its rungs; a rung's program says it of that rung."""
    program = root / PROGRAMS / stem
    if not program.is_file():
        raise InputError(f"{program} is not built, which states the facts of rungs; ./run_all.sh list builds it")
    done = subprocess.run([program, "--list", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{program} --list --json: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return parse(done.stdout, f"{program} --list --json")


def of_ladder(root: Path = ROOT) -> Facts:
    """Those of the checkout without a reader's own rungs, which are not for the repository's documents."""
    facts = of_checkout(root)
    return replace(facts, rungs={stem: rung for stem, rung in facts.rungs.items() if Path(rung.source).parent == KERNELS})


def of_folder(folder: Path) -> Facts:
    """The facts that a results folder keeps; without them, those of this checkout."""
    return read(folder / FILE) if (folder / FILE).is_file() else of_checkout()


def order(stem: str) -> tuple[int, str]:
    """Sort key of a stem: the number, a variant after its rung."""
    match = re.match(r"(\d+)([a-z]*)", stem)
    return (int(match[1]), match[2]) if match else (10**6, stem)


def number(stem: str) -> str:
    """ "06b" of "06b_padded"."""
    return stem.partition("_")[0]


def by_generation(rungs: Iterable[Rung]) -> dict[str, list[Rung]]:
    """The rungs by the GPUs that run them: those of every GPU since some generation, then those of one alone."""
    families: dict[str, list[Rung]] = {}
    for rung in rungs:
        families.setdefault(rung.arch if rung.arch.endswith("a") else "", []).append(rung)
    return {_generation(family, own): own for family, own in sorted(families.items())}


def _generation(family: str, rungs: list[Rung]) -> str:
    if family:
        return f"{GENERATIONS.get(family, family)} alone ({family})"
    least = max((rung.arch for rung in rungs), key=lambda arch: int(arch.removeprefix("sm_")))
    return f"every GPU since {GENERATIONS.get(least, least)} ({least})"


def is_variant(stem: str) -> bool:
    """True for a lettered neighbour such as 06b_padded."""
    return number(stem)[-1:].isalpha()


def main(arguments: list[str]) -> int:
    """Prints facts, a line each."""
    try:
        if len(arguments) == 2 and arguments[0] == "predecessor":
            print(of_checkout(stem=arguments[1]).rungs[arguments[1]].predecessor)
        elif arguments == ["types"]:
            print(*of_checkout().types, sep="\n")
        elif arguments[:1] in (["number"], ["stem"], ["source"]) and len(arguments) <= 2:
            facts = of_checkout()
            rungs = facts.computing(arguments[1]) if arguments[1:] else facts.rungs.values()
            print(*(getattr(rung, arguments[0]) for rung in rungs), sep="\n")
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except InputError as error:
        print(f"rungs: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
