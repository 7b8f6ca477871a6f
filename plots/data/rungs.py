"""What the kernel files state about themselves: read from the registration in the last lines of kernels/*.cu."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class RungFile:
    """One kernels/NN_name.cu."""

    stem: str  # "06_bank_conflict_free", the kernel column of every CSV
    idea: str  # one line


def order(stem: str) -> tuple[int, str]:
    """Sort key of a stem: the number, a variant after its rung."""
    match = re.match(r"(\d+)([a-z]*)", stem)
    return (int(match[1]), match[2]) if match else (10**6, stem)


def number(stem: str) -> str:
    """ "06b" of "06b_padded"."""
    return stem.partition("_")[0]


def is_variant(stem: str) -> bool:
    """True for a lettered neighbour such as 06b_padded."""
    return number(stem)[-1:].isalpha()


def predecessor(stem: str, stems: list[str]) -> str | None:
    """The rung that `stem` is compared with: its own rung for a variant, else the numbered rung before it."""
    if is_variant(stem):
        return next((s for s in stems if order(s) == (order(stem)[0], "")), None)
    before = [s for s in stems if not is_variant(s) and order(s) < order(stem)]
    return max(before, key=order, default=None)


def read_rungs(root: Path = ROOT) -> dict[str, RungFile]:
    """The kernel files in ladder order, by stem."""
    stems = sorted((path.stem for path in (root / "kernels").glob("*.cu")), key=order)
    sources = {stem: (root / "kernels" / f"{stem}.cu").read_text(encoding="utf-8") for stem in stems}
    return {stem: RungFile(stem, _idea(source)) for stem, source in sources.items()}


def _idea(source: str) -> str:
    """The string of `.idea = "..."`, adjacent literals joined."""
    match = re.search(r'\.idea\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', source)
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])).replace('\\"', '"') if match else ""
