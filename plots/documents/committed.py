"""Figures that are committed under docs/img: written where they are missing or stale, or only named."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from plots.data import losses as losses_data
from plots.data import profiles, rungs
from plots.data.expectations import expected
from plots.data.results import Results, read_rows
from plots.data.rungs import Facts
from plots.data.selection import Table, tables
from plots.data.units import Shape
from plots.documents import front
from plots.documents.chapters import IMAGES, measured_on, recorded, sittings
from plots.errors import InputError
from plots.figures import losses, predicted, stairs, stalls, style, sums, timeline, use, waves, wins
from plots.figures.kinds import drawable, of_profile
from plots.maps import (
    block_pairs,
    columns,
    cute,
    fragments,
    hierarchy,
    index_maps,
    ldmatrix,
    persistent,
    pictures,
    raster,
    rows,
    splits,
    tensor_memory,
    timelines,
    tma,
    warp_roles,
    wgmma,
)
from plots.tables import conditions
from plots.tables import wins as wins_table


def update_recorded(root: Path, check: bool, facts: Facts | None = None) -> list[str]:
    """The figures of the recorded results; the stale ones.

    Their bytes may differ from one matplotlib to the next, so they are fresh where they name what they were drawn from.
    """
    facts = facts or rungs.of_ladder(root)
    results = recorded(root, facts)
    drawn: Drawn = {}
    if results:
        drawn |= _of_tables(results) | _of_profiles(results) | _of_headers(results, root) | _of_waves(results)
        drawn |= _of_timelines(results) | _of_map(results) | _of_losses(results) | _of_first_page(results) | _of_use(results)
        drawn |= _of_sums(results)
    stale = []
    for name, (source, draw) in drawn.items():
        file = f"{IMAGES}/{name}.svg"
        if source not in _text(root / file):
            stale.append(file)
            _write(root / file, "" if check else style.svg(draw(), source))
    return stale


Drawn = dict[str, tuple[str, Callable[[], Figure]]]  # file stem -> what it is drawn from, and how


def _of_tables(results: Results) -> Drawn:
    source = _fingerprint(results, ["ladder.csv", "ceilings.csv"])
    return {
        f"{name}_{table.type}": (source, partial(kind.draw, table))
        for table in tables(results)
        for name, kind in drawable(table).items()
    }


def _of_first_page(results: Results) -> Drawn:
    if not _stairs(results):
        return {}
    of_rungs = [(rung.stem, rung.arch) for rung in results.facts.rungs.values()]
    return {"stairs": (_fingerprint(results, ["ladder.csv"], repr(of_rungs)), partial(first_page, results))}


def first_page(results: Results) -> Figure:
    """How far the numbered rungs get, of the first page's types that were recorded."""
    found = _stairs(results)
    shown = [row for table in found for row in sittings(table, stairs.steps(table), [table.headline])]
    return stairs.draw(found, measured_on(shown))


def _stairs(results: Results) -> list[Table]:
    return [table for table in tables(results) if table.type in front.TYPES and stairs.steps(table)]


def _of_profiles(results: Results) -> Drawn:
    """Of the types that have a part of the ladder each: stall reasons, the parts of the time, the roofline by bytes moved."""
    found: Drawn = {}
    for kind in predicted.HUES:
        path = results.folder / profiles.file_name(kind, results.facts)
        if path.is_file():
            source = _fingerprint(results, [path.name])
            found[f"stalls_{kind}"] = source, partial(stalls.draw, *_profile(path, kind))
    for table in tables(results):
        files = ["ladder.csv", "ceilings.csv", "environment.json", profiles.file_name(table.type, results.facts)]
        for name, figure in of_profile(results, table).items() if table.type in predicted.HUES else ():
            found[f"{name}_{table.type}"] = _fingerprint(results, files), figure.draw
    return found


def _profile(path: Path, kind: str) -> tuple[profiles.Profile, str, Shape]:
    profile, shape = profiles.read(path)
    return profile, kind, shape


def _of_headers(results: Results, root: Path) -> Drawn:
    """What the kernels' headers predict, against the recorded ladder and, for results of 16 bits, the recorded conditions."""
    sources = {stem: root / rung.source for stem, rung in results.facts.rungs.items()}
    read = {stem: expected(path.read_text(encoding="utf-8")) for stem, path in sources.items() if path.is_file()}
    expectations = {stem: expectation for stem, expectation in read.items() if expectation}
    other = results.folder / conditions.FILE
    with_16_bits = []
    if other.is_file():
        rows = read_rows(other, [])
        chosen = rows[(rows["out"] == "same") & (rows["beta"] == 0) & (rows["protocol"] == "rounds")]
        with_16_bits = tables(replace(results, ladder=chosen))
    found = predicted.outcomes(tables(results), with_16_bits, expectations)
    source = _fingerprint(results, ["ladder.csv", conditions.FILE], repr(sorted(expectations.items())))
    return {"predicted": (source, partial(predicted.draw, found))} if found else {}


def _of_waves(results: Results) -> Drawn:
    """Of each type in the sweep of waves: throughput over M = N, and time over K."""
    path = results.folder / waves.FILE
    if not path.is_file():
        return {}
    source = _fingerprint(results, [path.name])
    return {
        f"{name}_{sweep.type}": (source, partial(kind.draw, sweep))
        for sweep in waves.read(path)
        for name, kind in waves.KINDS.items()
    }


def _of_map(results: Results) -> Drawn:
    """The rungs of the map against the best library, shape by shape."""
    path = results.folder / wins_table.FILE
    if not path.is_file():
        return {}
    return {"wins": (_fingerprint(results, [path.name]), partial(wins.draw, wins_table.read(path, results.facts)))}


def _of_use(results: Results) -> Drawn:
    """PyTorch's products with the library against those without."""
    path = results.folder.parent / "nvidia-h100" / use.FILE  # the card of docs/use.md
    if not path.is_file():
        return {}
    return {"use": (_fingerprint(results, [f"../{path.parent.name}/{path.name}"]), partial(use.draw, use.read(path)))}


def _of_sums(results: Results) -> Drawn:
    """What long sums of FP8 cost, of the first card that recorded it."""
    path = sums.find(results.folder.parent)
    if path is None:
        return {}
    return {"fp8_sums": (_fingerprint(results, [f"../{path.parent.name}/{path.name}"]), partial(sums.draw, sums.read(path)))}


def _of_losses(results: Results) -> Drawn:
    """What each cause takes of the data sheet's peak."""
    found = losses_data.read(results)
    source = _fingerprint(results, losses_data.files(results), repr((losses_data.CASES, losses_data.PEAKS)))
    return {"losses": (source, partial(losses.draw, found))} if found else {}


def _of_timelines(results: Results) -> Drawn:
    """Of each rung that was recorded from inside: what its warps wait for."""
    if not (results.folder / timeline.FILE).is_file():
        return {}
    source = _fingerprint(results, [timeline.FILE, timeline.RUNS])
    return {
        f"timeline_{rungs.number(found.kernel)}_{found.type}": (source, partial(timeline.draw, found))
        for found in timeline.read(results.folder)
    }


def _fingerprint(results: Results, files: list[str], more: str = "") -> str:
    """Of the recorded numbers in some files, and of the facts that a figure shows beside them."""
    stated = repr(
        [(rung.stem, rung.predecessor, rung.instruction, sorted(rung.ceilings.items())) for rung in results.facts.rungs.values()]
    )
    paths = [results.folder / file for file in files]
    read = b"".join(path.read_bytes() for path in paths if path.is_file())
    return "sha256:" + hashlib.sha256(read + stated.encode() + more.encode()).hexdigest()


def update_maps(root: Path, check: bool, printed: Path | None) -> list[str]:
    """The figures of index maps, from what the maps program printed into a file, or prints now; the stale ones.

    CuTe's maps are in a file of the checkout: the program that prints them needs the headers of CUTLASS.
    """
    program = root / "build" / "bin" / "maps"
    if printed and not printed.is_file():
        raise InputError(f"{printed}: no such file")
    text = printed.read_text(encoding="utf-8") if printed else index_maps.run(program)
    read = index_maps.parse(text, str(printed or program))
    drawings = pictures.figures() | timelines.figures() | warp_roles.figures() | cute.figures(cute.read(root))
    of_maps = (index_maps, hierarchy, fragments, rows, ldmatrix, raster, columns, splits, tma, wgmma, persistent, tensor_memory)
    for module in of_maps:
        drawings |= module.figures(read)
    drawings |= block_pairs.figures()
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
