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
    """The text of the block `name` in a document from whose folder `up` leads to the root."""
    match name.split():
        case ["steps", kind]:
            return front.steps(root, facts, up, kind)
        case ["where-it-loses"]:
            return front.where_it_loses(root, facts)
        case ["ladder-table", kind]:
            return chapters.ladder_table(root, facts, up, kind)
        case ["measured", rung, *gpu] if len(gpu) < 2:
            return chapters.measured(root, facts, rung, *gpu)
        case ["ceilings"]:
            return chapters.ceilings(root, facts)
        case ["compared"]:
            return chapters.compared(root, facts)
        case ["code", file, tag]:
            return excerpt.render(root, file, tag, up)
        case ["accuracy", which]:
            return accuracy.table(root, which)
        case ["sweep", rung]:
            return chapters.swept(root, rung)
        case ["profiled", what, *words] if words:
            return chapters.counted(root, facts, what, words)
        case ["conditions", *words] if words:
            return chapters.under_conditions(root, facts, words)
        case ["wins"]:
            return chapters.won(root, facts, up)
        case ["losses"]:
            return chapters.lost(root, facts)
        case ["machine-code", kinds, *words] if words:
            return chapters.compiled(root, facts, kinds.split(","), words)
    expected = "steps TYPE, where-it-loses, ladder-table TYPE, measured NN [FOLDER], ceilings, compared, code FILE TAG, "
    expected += "accuracy WHICH, sweep NN, profiled TYPE[@SIZE] NN..., conditions NN..., wins, losses, "
    expected += "or machine-code TYPE,... NN..."
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
