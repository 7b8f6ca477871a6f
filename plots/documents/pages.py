"""The pages with generated blocks and numbers: README.md and docs/*.md. Which block says what, and filling them."""

from functools import partial
from pathlib import Path

from plots.data import rungs
from plots.data.rungs import Facts
from plots.documents import chapters, excerpt, front, markers
from plots.documents.blocks import update
from plots.documents.numbers import Recording
from plots.errors import InputError
from plots.tables import accuracy


def render(root: Path, facts: Facts, up: str, name: str) -> str:
    """The text of the block `name` in a document from whose folder `up` leads to the root. A last word that is a folder of
    bench/recorded names the card."""
    words = name.split()
    card = words[-1:] if words[1:] and (root / "bench" / "recorded" / words[-1]).is_dir() else []
    match words[: len(words) - len(card)]:
        case ["steps", kind]:
            return front.steps(root, facts, up, kind, *card)
        case ["where-it-loses"]:
            return front.where_it_loses(root, facts, *card)
        case ["ladder-table", kind]:
            return chapters.ladder_table(root, facts, up, kind, *card)
        case ["climb", kind, *words] if words:
            return chapters.climb(root, facts, up, kind, words, *card)
        case ["measured", rung, *kind] if len(kind) < 2:
            return chapters.measured(root, facts, rung, *(kind or [""]), *card)
        case ["ceilings"]:
            return chapters.ceilings(root, facts, *card)
        case ["compared"]:
            return chapters.compared(root, facts)
        case ["code", file, tag]:
            return excerpt.render(root, file, tag, up)
        case ["accuracy", which]:
            return accuracy.table(root, which)
        case ["sweep", rung]:
            return chapters.swept(root, rung)
        case ["profiled", what, *words] if words:
            return chapters.counted(root, facts, what, words, *card)
        case ["conditions", *words] if words:
            return chapters.under_conditions(root, facts, words, *card)
        case ["wins"]:
            return chapters.won(root, facts, up, *card)
        case ["losses"]:
            return chapters.lost(root, facts, *card)
        case ["machine-code", kinds, *words] if words:
            return chapters.compiled(root, facts, kinds.split(","), words)
    expected = "steps TYPE, where-it-loses, ladder-table TYPE, climb TYPE NN..., measured NN [TYPE], ceilings, compared, "
    expected += "code FILE TAG, accuracy WHICH, sweep NN, profiled TYPE[@SIZE] NN..., conditions NN..., wins, losses, "
    expected += "or machine-code TYPE,... NN...; after most of them, a folder of bench/recorded"
    raise InputError(f"unknown block '{name}': expected {expected}")


def update_readme(root: Path, check: bool, facts: Facts | None = None) -> list[str]:
    """Fills README.md's blocks and numbers; what was stale, and what does not hold."""
    return _update([root / "README.md"], root, facts or rungs.of_ladder(root), "", check)


def update_docs(root: Path, check: bool, facts: Facts | None = None) -> list[str]:
    """Fills the blocks and numbers of docs/*.md; what was stale, and what does not hold."""
    return _update(sorted((root / "docs").glob("*.md")), root, facts or rungs.of_ladder(root), "../", check)


def _update(paths: list[Path], root: Path, facts: Facts, up: str, check: bool) -> list[str]:
    recording, stale = Recording(root), []
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        name = path.relative_to(root)
        stale += [f"{name}: {block}" for block in update(path, partial(render, root, facts, up), check)]
        stale += [type(found)(f"{name}:{found}") for found in markers.update(path, recording, check)]
    return stale
