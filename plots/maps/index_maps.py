"""Figures of index maps, drawn from the CSV that build/bin/maps prints from common/layout.h, so that they cannot
be wrong about the code: who owns which result, and which lane meets which bank of shared memory in which wavefront."""

import csv
import io
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plots.errors import InputError
from plots.maps.drawing import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, Drawing

HEADER = ["map", "rung", "thread", "row", "col", "word", "bank", "wavefront"]
BANKS = 32
SHOWN = {0: BLUE, 1: ORANGE, 16: GREEN, 31: PURPLE}  # threads picked out in an ownership map
DARK_INK = {1: INK, 31: INK}  # where white would be faint


class Touch(NamedTuple):
    """One word that a lane touches, or, for the map C, one result that a thread owns (word, bank, wavefront are -1)."""

    thread: int
    row: int
    col: int
    word: int
    bank: int
    wavefront: int


class Maps(dict[tuple[str, str], list[Touch]]):
    """(map, rung) -> its lines."""

    def __missing__(self, key: tuple[str, str]) -> list[Touch]:
        raise InputError(f"the program maps does not print '{key[0]}' of rung {key[1]}: build it anew")


def run(program: Path) -> str:
    """What the maps program prints."""
    if not program.is_file():
        raise InputError(f"{program} is not built; build it, or give its output with --maps FILE")
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def parse(text: str, where: str) -> Maps:
    """The maps of a CSV text."""
    records = list(csv.reader(io.StringIO(text)))
    if not records or records[0] != HEADER:
        raise InputError(f"{where}:1: expected the header {','.join(HEADER)}")
    maps: dict[tuple[str, str], list[Touch]] = defaultdict(list)
    for line, record in enumerate(records[1:], 2):
        try:
            name, rung, *numbers = record
            maps[name, rung].append(Touch(*(int(number or -1) for number in numbers)))
        except (TypeError, ValueError):
            raise InputError(f"{where}:{line}: expected {len(HEADER)} fields, numbers from the third on") from None
    return Maps(maps)


def ownership(maps: Maps, rung: str) -> Drawing:
    """A block's tile of C: warps as bands of grey, four threads of the first warp picked out."""
    owner = {(touch.row, touch.col): touch.thread for touch in maps["C", rung]}
    rows, cols = (1 + max(place[axis] for place in owner) for axis in (0, 1))
    scale = 512 // cols
    threads = 1 + max(owner.values())
    drawing = Drawing(60 + 512 + 170, 60 + rows * scale + 16, f"Rung {rung}: who computes which element of a tile of C")
    left, top = 60, 60
    drawing.text(left, 16, f"{rung}: the block's {rows} × {cols} tile of C, {threads} threads", 14, "start", bold=True)
    _rulers(drawing, left, top, rows, cols, scale)
    for warp, place in regions({at: thread // 32 for at, thread in owner.items()}):
        x, y, width, height = _scaled(place, left, top, scale)
        drawing.rect(x, y, width, height, "#ececec" if warp % 2 else "#d9d9d9", "white")
        if warp > 0:
            drawing.text(x + width / 2, y + height / 2, f"warp {warp}", 10, colour="#6a6a6a")
    for thread, place in regions({at: thread for at, thread in owner.items() if thread in SHOWN}):
        x, y, width, height = _scaled(place, left, top, scale)
        drawing.rect(x, y, width, height, SHOWN[thread], INK)
        if width > 8 * len(str(thread)):
            drawing.text(x + width / 2, y + height / 2, str(thread), 10, colour=DARK_INK.get(thread, "white"), bold=True)
    _key(drawing, left + cols * scale + 18, top + 10, "warp 0, thread", SHOWN)
    return drawing


def _rulers(drawing: Drawing, left: float, top: float, rows: int, cols: int, scale: int) -> None:
    """Element numbers along the top (n) and down the side (m)."""
    drawing.text(left - 8, top - 12, "n →", 11, "end")
    drawing.text(left - 8, top + 8, "m ↓", 11, "end")
    for at in range(0, cols + 1, cols // 4):
        drawing.text(left + at * scale, top - 12, str(at), 11)
        drawing.line(left + at * scale, top - 4, left + at * scale, top)
    for at in range(rows // 4, rows + 1, rows // 4):
        drawing.text(left - 8, top + at * scale, str(at), 11, "end")
        drawing.line(left - 4, top + at * scale, left, top + at * scale)


def _key(drawing: Drawing, x: float, y: float, word: str, colours: dict[int, str]) -> None:
    for i, (name, colour) in enumerate(colours.items()):
        drawing.rect(x, y + 22 * i - 7, 14, 14, colour, INK)
        drawing.text(x + 22, y + 22 * i, f"{word} {name}", 12, "start")


def _scaled(place: tuple[int, int, int, int], left: float, top: float, scale: int) -> tuple[float, ...]:
    row, col, height, width = place
    return left + col * scale, top + row * scale, width * scale, height * scale


def regions(owner: dict[tuple[int, int], int]) -> Iterable[tuple[int, tuple[int, int, int, int]]]:
    """Rectangles (row, col, height, width) of equal owner: runs along rows, equal runs below one another joined."""
    lines: dict[int, dict[int, int]] = defaultdict(dict)  # row -> column -> owner
    for (row, col), who in owner.items():
        lines[row][col] = who
    open_runs: dict[tuple[int, int, int], int] = {}  # (owner, col, width) -> first row
    for row in range(max(lines) + 2):
        runs = set(_runs(lines[row]))
        for run in [run for run in open_runs if run not in runs]:
            first = open_runs.pop(run)
            yield run[0], (first, run[1], row - first, run[2])
        for run in sorted(runs - open_runs.keys()):
            open_runs[run] = row


def _runs(line: dict[int, int]) -> Iterable[tuple[int, int, int]]:
    """Runs (owner, col, width) of equal owner in one row."""
    cols = sorted(line)
    start = 0
    for i in range(1, len(cols) + 1):
        if i == len(cols) or cols[i] != cols[i - 1] + 1 or line[cols[i]] != line[cols[start]]:
            yield line[cols[start]], cols[start], i - start
            start = i


def wavefronts(maps: Maps, name: str, rungs: list[str], what: str) -> Drawing:
    """For each rung a panel: wavefronts down, banks across, in each cell the lanes served."""
    cell, line, head, left = 26, 22, 56, 92
    counts = {rung: 1 + max(touch.wavefront for touch in maps[name, rung]) for rung in rungs}
    height = 40 + sum(head + line * count for count in counts.values()) + 8
    drawing = Drawing(left + cell * BANKS + 12, height, f"{what}: lanes by bank and wavefront")
    drawing.text(12, 18, what, 14, "start", bold=True)
    y = 40.0
    for rung, count in counts.items():
        plural = "wavefront" if count == 1 else "wavefronts"
        drawing.text(12, y + 12, f"{rung}: {count} {plural}", 13, "start", bold=True)
        drawing.text(left - 8, y + 40, "bank", 11, "end")
        for bank in range(0, BANKS, 2):
            drawing.text(left + (bank + 0.5) * cell, y + 40, str(bank), 11)
        y += head - 4
        _served(drawing, maps[name, rung], left, y, cell, line, count)
        y += line * count + 4
    return drawing


def _served(drawing: Drawing, touches: list[Touch], left: float, y: float, cell: int, line: int, count: int) -> None:
    """One panel's cells; neighbouring banks that serve the same lanes are drawn as one."""
    lanes: dict[tuple[int, int], set[int]] = defaultdict(set)
    for touch in touches:
        lanes[touch.wavefront, touch.bank].add(touch.thread)
    for wavefront in range(count):
        top = y + wavefront * line
        drawing.text(left - 8, top + line / 2, f"wavefront {wavefront}", 11, "end")
        for bank in range(BANKS):
            drawing.rect(left + bank * cell, top, cell, line, "white", GRID)
        names = {bank: _named(served) for (w, bank), served in lanes.items() if w == wavefront}
        keys = {text: i for i, text in enumerate(dict.fromkeys(names[bank] for bank in sorted(names)))}
        for key, bank, width in _runs({bank: keys[text] for bank, text in names.items()}):
            text = list(keys)[key]
            first = min(lanes[wavefront, bank])
            fill, ink = shade(first)
            drawing.rect(left + bank * cell, top, width * cell, line, fill, INK)
            drawing.text(left + (bank + width / 2) * cell, top + line / 2, text, 11, colour=ink)


def _named(lanes: set[int]) -> str:
    """A lane's number, or the first and last of several neighbours."""
    low, high = min(lanes), max(lanes)
    if len(lanes) != high - low + 1:
        raise InputError(f"lanes {sorted(lanes)} share a bank and are not neighbours: the figure has no name for them")
    return str(low) if low == high else f"{low}–{high}"


def shade(lane: int) -> tuple[str, str]:
    """Fill and ink for a lane: light to dark blue over the warp."""
    light, dark = (0xE6, 0xF2, 0xFA), (0x00, 0x4C, 0x7A)
    mixed = [round(a + (b - a) * lane / 31) for a, b in zip(light, dark, strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed), INK if lane < 16 else "white"


def figures(maps: Maps) -> dict[str, Drawing]:
    """Every index-map figure by file stem."""
    found = {f"{rung}_ownership": ownership(maps, rung) for rung in ("03", "04", "06")}
    tiles = ["05", "06", "06b"]
    shared = {
        "store_a": ("sA_store", "Storing A, transposed: the first of each lane's four elements, 4 bytes per lane"),
        "load_a": ("sA_load", "Loading rA[0..3]: 16 bytes per lane"),
        "load_b": ("sB_load", "Loading rB[0..3]: 16 bytes per lane"),
    }
    return found | {f"06_{stem}": wavefronts(maps, name, tiles, what) for stem, (name, what) in shared.items()}
