"""Figures that are committed under docs/img: written where they are missing or stale, or only named."""

import hashlib
from pathlib import Path

from plots.data import rungs
from plots.data.results import Results
from plots.data.rungs import Facts
from plots.data.selection import tables
from plots.documents.chapters import IMAGES, recorded
from plots.errors import InputError
from plots.figures import style
from plots.figures.kinds import drawable
from plots.maps import fragments, hierarchy, index_maps, pictures, raster, rows, timelines


def update_recorded(root: Path, check: bool, facts: Facts | None = None) -> list[str]:
    """The figures of the recorded results; the stale ones.

    Their bytes may differ from one matplotlib to the next, so they are fresh where they name what they were drawn from.
    """
    results = recorded(root, facts or rungs.of_checkout(root))
    if results is None:
        return []
    source = _fingerprint(results)
    stale = []
    for table in tables(results):
        for name, kind in drawable(table).items():
            file = f"{IMAGES}/{name}_{table.type}.svg"
            if source not in _text(root / file):
                stale.append(file)
                _write(root / file, "" if check else style.svg(kind.draw(table), source))
    return stale


def _fingerprint(results: Results) -> str:
    """Of the recorded numbers, and of the facts that a figure shows beside them."""
    files = [results.folder / "ladder.csv", results.folder / "ceilings.csv"]
    stated = repr([(rung.stem, rung.predecessor, sorted(rung.ceilings.items())) for rung in results.facts.rungs.values()])
    read = b"".join(path.read_bytes() for path in files if path.is_file())
    return "sha256:" + hashlib.sha256(read + stated.encode()).hexdigest()


def update_maps(root: Path, check: bool, printed: Path | None) -> list[str]:
    """The figures of index maps, from what the maps program printed into a file, or prints now; the stale ones."""
    program = root / "build" / "bin" / "maps"
    if printed and not printed.is_file():
        raise InputError(f"{printed}: no such file")
    text = printed.read_text(encoding="utf-8") if printed else index_maps.run(program)
    read = index_maps.parse(text, str(printed or program))
    drawings = pictures.figures() | timelines.figures()
    for module in (index_maps, hierarchy, fragments, rows, raster):
        drawings |= module.figures(read)
    stale = []
    for name, drawing in drawings.items():
        file = f"docs/img/{name}.svg"
        if _text(root / file) != drawing.svg():
            stale.append(file)
            _write(root / file, "" if check else drawing.svg())
    return stale


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _write(path: Path, text: str) -> None:
    """Writes `text`; nothing where it is empty."""
    if text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
