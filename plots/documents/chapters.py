"""What the generated blocks of the chapters and of the page of results say, from bench/recorded and the sources."""

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from plots.data import losses as losses_data
from plots.data import profiles
from plots.data.results import Results, load, read_rows
from plots.data.rungs import Facts, is_variant, number, order
from plots.data.selection import HEADLINE, Table, tables
from plots.data.units import Shape, digits, kib, ranged, thousandths, type_name, whole
from plots.documents.numbers import GPU
from plots.errors import InputError
from plots.tables import compare, conditions, losses, machine_code, profiled, sweep, wins
from plots.tables.grid import Grid, escape
from plots.tables.summaries import OF_CUBLAS, PER_CLOCK, beside, ceiling_grid, how, per_clock, ratios

IMAGES = "docs/img/recorded"
CELLS = "Each rung's TFLOP/s / those of cuBLAS in the same rounds, and the ratio with its range over the sittings."
PICTURES = {
    "ladder": "the ladder at one size",
    "gflops": "throughput against size",
    "heatmap": "the ratio to cuBLAS over shapes and rungs",
}
NOT_YET = "*No recorded results yet.*"


def recorded(root: Path, facts: Facts | None = None, gpu: str = GPU) -> Results | None:
    """The recorded results that documents draw from; None before there are any."""
    folder = root / "bench" / "recorded" / gpu
    return load(folder, facts) if (folder / "ladder.csv").is_file() else None


def measured_on(rows: Iterable[Any]) -> str:
    """The card and the days of some rows."""
    rows = list(rows)
    return f"{rows[-1].gpu}, {days(rows)}"


def days(rows: Iterable[Any]) -> str:
    """ "2026-11-22 and 2026-11-24"."""
    *earlier, last = sorted({row.utc[:10] for row in rows})
    return f"{', '.join(earlier)} and {last}" if earlier else last


def source_line(rows: Iterable[Any], file: str = "", gpu: str = GPU) -> str:
    """Where recorded numbers come from, as one line of Markdown: the card, the days, with what."""
    rows = sorted(rows, key=lambda row: row.utc)
    row, commits = rows[-1], list(dict.fromkeys(row.commit for row in rows))
    return (
        f"*Measured on {measured_on(rows)}: CUDA {row.cuda}, cuBLAS {row.cublas}, driver {row.driver}, "
        f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}; recorded in `bench/recorded/{gpu}/{file}`.*"
    )


def sittings(table: Table, kernels: Iterable[str], shapes: Iterable[Shape]) -> list[Any]:
    """The rows behind some cells."""
    found = [table.cells[place] for place in product(kernels, shapes) if place in table.cells]
    return [row for cell in found for row in cell.sittings]


def ladder_table(root: Path, facts: Facts, up: str, kind: str, gpu: str = GPU) -> str:
    """All that was recorded of a type at the published sizes: every rung, with its variants; pictures, if of GPU."""
    results = recorded(root, facts, gpu)
    table = next((table for table in tables(results) if table.type == kind), None) if results else None
    if table is None:
        return NOT_YET
    first, *others = sorted(table.front, key=lambda shape: shape != table.headline)
    parts = [_ladder_part(table, root, up, first), *(_ladder_part(table, root, up, shape) for shape in others)]
    shown = PICTURES if gpu == GPU else {}
    pictures = [f"![{type_name(kind)}: {alt}]({images(up)}/{name}_{kind}.svg)" for name, alt in shown.items()]
    said, source = how(table), source_line(sittings(table, table.kernels, table.front), gpu=gpu)
    return "\n\n".join([f"{said[0]}{said[1].upper()}{said[2:]}.", *parts, source, *pictures])


def climb(root: Path, facts: Facts, up: str, kind: str, words: list[str], gpu: str = GPU) -> str:
    """The map's table of some rungs: each idea, and how the rung stands to cuBLAS at two sizes."""
    results = recorded(root, facts, gpu)
    table = next((table for table in tables(results) if table.type == kind), None) if results else None
    if table is None:
        return NOT_YET
    large = Shape(2 * HEADLINE.m, 2 * HEADLINE.n, 2 * HEADLINE.k)
    columns = [(HEADLINE, "ratio_cublas"), (HEADLINE, "ratio_clk"), (large, "ratio_cublas")]
    rungs = [facts.find(word) for word in words]
    rows = []
    for rung in rungs:
        name = f"{rung.number} {rung.name.replace('_', ' ')}"
        link = chapter_link(root, facts, rung.stem, up, name)
        rows.append([link or name, escape(rung.idea), *(thousandths(table.value(rung.stem, *place)) for place in columns)])
    head = ["rung", "idea", str(HEADLINE), f"{HEADLINE}, {OF_CUBLAS['ratio_clk']}", str(large)]
    shown = sittings(table, [rung.stem for rung in rungs], [HEADLINE, large])
    source = [f"*{measured_on(shown)}; recorded in `bench/recorded/{gpu}/`.*"] if shown else []
    return "\n\n".join([Grid(head, rows, left=2).markdown(), *source])


def images(up: str) -> str:
    """The folder of the recorded figures from a document's own."""
    return IMAGES.removeprefix("docs/") if up else IMAGES


def _ladder_part(table: Table, root: Path, up: str, shape: Shape) -> str:
    clocks = [PER_CLOCK] if table.knows("flop_clk_sm") else []
    first = shape == table.headline  # the others need not say all again
    head = ["rung", *["idea", "chapter"] * first, "TFLOP/s / cuBLAS", *ratios(table).values(), "gain", *clocks, "day"]
    rows = [
        [
            f"[{kernel}]({up}{table.facts.rungs[kernel].source})" if kernel in table.facts.rungs else kernel,
            *[escape(table.facts.idea(kernel)), chapter_link(root, table.facts, kernel, up)] * first,
            beside(table, kernel, shape),
            *(ranged(table.numbers(kernel, shape, column)) for column in ratios(table)),
            table.gain_text(kernel, shape),
            *(per_clock(table, kernel, shape) for _ in clocks),
            days(sittings(table, [kernel], [shape])),
        ]
        for kernel in table.kernels
        if (kernel, shape) in table.cells
    ]
    size = f"M = N = K = {shape.m}" if shape.is_square else str(shape)
    return f"**{type_name(table.type)} at {size}**\n\n" + Grid(head, rows, left=3 if first else 1).markdown()


def chapter_link(root: Path, facts: Facts, kernel: str, up: str = "", text: str = "") -> str:
    """A link to the chapter that the rung's header names; a rung without one has that of its number, if there is one."""
    source = root / "kernels" / f"{kernel}.cu"
    header = source.read_text(encoding="utf-8") if source.is_file() else ""
    named = re.search(r"^// Read\s+docs/(\S+)\.md", header, re.MULTILINE)
    own = [stem for stem in facts.rungs if order(stem)[0] == order(kernel)[0]]
    for stem in [named[1]] if named else [kernel, *own]:
        if (root / "docs" / f"{stem}.md").is_file():
            return f"[{text or number(stem)}]({'' if up else 'docs/'}{stem}.md)"
    return ""


def measured(root: Path, facts: Facts, rung: str, kind: str = "", gpu: str = GPU) -> str:
    """A chapter's table: the rung's predecessor, the rung and its variants, each beside cuBLAS, at the published sizes;
    `kind`: of one type alone. `gpu`: a folder in bench/recorded, for a rung that was measured on another card than the series."""
    stem = facts.find(rung).stem
    results = recorded(root, facts, gpu)
    known = tables(results) if results else []
    if kind and known and kind not in [table.type for table in known]:
        raise InputError(f"measured {rung} {kind}: there is no type '{kind}'")
    found = [table for table in known if stem in table.kernels and kind in ("", table.type)]
    if not found:
        return NOT_YET
    shown = [row for table in found for row in sittings(table, _compared(table, stem), table.front)]
    return "\n\n".join([*(_measured_part(table, stem) for table in found), f"{CELLS} {source_line(shown, gpu=gpu)}"])


def ceilings(root: Path, facts: Facts, gpu: str = GPU) -> str:
    """What the recorded GPU was measured to do."""
    results = recorded(root, facts, gpu)
    grid = ceiling_grid(results) if results else None
    return f"{grid.markdown()}\n\n*{results.gpu}; recorded in `bench/recorded/{gpu}/ceilings.csv`.*" if grid else NOT_YET


def swept(root: Path, rung: str) -> str:
    """A chapter's table of its rung's variants."""
    path = root / "bench" / "recorded" / GPU / f"sweep_{rung}.csv"
    return sweep.table(path, rung) if path.is_file() else NOT_YET


def counted(root: Path, facts: Facts, what: str, words: list[str], gpu: str = GPU) -> str:
    """A chapter's table of what Nsight Compute counted in some rungs; `what` is a type, or such as bf16@8192."""
    path = root / "bench" / "recorded" / gpu / profiles.file_name(what, facts)
    results = recorded(root, facts, gpu)
    if results is None or not path.is_file():
        return NOT_YET
    profile, shape = profiles.read(path)
    grid = profiled.grid(profile, words, f"{what.partition('@')[0]} at {shape}")
    source = f"*Nsight Compute on {results.gpu}, one launch of each; recorded in `bench/recorded/{gpu}/{path.name}`.*"
    return f"{grid.markdown()}\n\n{source}" if grid else NOT_YET


def under_conditions(root: Path, facts: Facts, words: list[str], gpu: str = GPU) -> str:
    """A chapter's tables of some rungs beyond 4096 cubed, FP32 results and beta = 0."""
    file = root / "bench" / "recorded" / gpu / conditions.FILE
    if not file.is_file():
        return NOT_YET
    rows = read_rows(file, [])
    rows = rows[rows["kernel"].isin([facts.find(word).stem for word in words])]
    grids = conditions.grids(rows, [facts.find(word).stem for word in words])
    source = source_line(rows.itertuples(), conditions.FILE, gpu) if grids else ""
    return "\n\n".join([*(grid.markdown() for grid in grids), source]) if grids else NOT_YET


def won(root: Path, facts: Facts, up: str, gpu: str = GPU) -> str:
    """The map of wins: rungs against the best library over many shapes, as a table; a picture, if of the chapters' card."""
    file = root / "bench" / "recorded" / gpu / wins.FILE
    if not file.is_file():
        return NOT_YET
    picture = f"![Time of the best library over time of the rung, for every shape and type]({images(up)}/wins.svg)"
    source = source_line(read_rows(file, []).itertuples(), wins.FILE, gpu)
    return "\n\n".join([wins.grid(wins.read(file, facts)).markdown(), *[picture] * (gpu == GPU), source])


def lost(root: Path, facts: Facts, gpu: str = GPU) -> str:
    """From the data sheet's peak to what was measured, cause by cause: a picture, if of the chapters' card; a table."""
    results = recorded(root, facts, gpu)
    found = losses_data.read(results) if results else []
    if not found:
        return NOT_YET
    picture = f"![What each cause takes of the data sheet's peak]({IMAGES.removeprefix('docs/')}/losses.svg)"
    source = f"*Steady protocol, FP32 results, on {results.gpu}; recorded in `bench/recorded/{gpu}/steady.csv`.*"
    return "\n\n".join([*[picture] * (gpu == GPU), losses.grid(found).markdown(), source])


def compiled(root: Path, facts: Facts, kinds: list[str], words: list[str]) -> str:
    """A chapter's table of the instructions in some rungs' main loops, by the compiler of the recorded results."""
    for kind in kinds:
        if kind not in machine_code.MULTIPLIES:
            raise InputError(f"machine-code: '{kind}' is not one of {', '.join(machine_code.MULTIPLIES)}")
    results = recorded(root, facts)
    return machine_code.table(root, facts, kinds, words, results.ladder.iloc[-1].cuda if results else None)


def compared(root: Path, facts: Facts) -> str:
    """The published cells of the recording beside those of each other machine: how many medians agree."""
    first = recorded(root, facts)
    others = [load(folder, facts) for folder in other_recordings(root)]
    if first is None or not others:
        return "*No second recording yet.*"
    said = [compare.summary(compare.published(compare.pairs(tables(first), tables(other)))) for other in others]
    cards = [f"card {other.environment['gpu_id']}" for other in others]
    grid = Grid(
        [f"beside card {first.environment['gpu_id']}", *cards], [[limit, *(one[limit] for one in said)] for limit in said[0]]
    )
    sources = [source_line(other.ladder.itertuples()).replace(f"{GPU}/", f"{other.folder.name}/") for other in others]
    return "\n\n".join([grid.markdown(), *sources])


def other_recordings(root: Path) -> list[Path]:
    """Folders with the published cells, recorded on other machines with the same model of GPU."""
    return sorted(path.parent for path in (root / "bench" / "recorded").glob(f"{GPU}-*/ladder.csv"))


def _compared(table: Table, stem: str) -> list[str]:
    """A chapter's rungs: the predecessor, the rung, its variants."""
    before = table.facts.predecessor(stem)
    variants = [k for k in table.kernels if order(k)[0] == order(stem)[0] and is_variant(k) and not is_variant(stem)]
    return list(dict.fromkeys([*([before.stem] if before and before.stem in table.kernels else []), stem, *variants]))


def _measured_part(table: Table, stem: str) -> str:
    before, sizes, at = table.facts.predecessor(stem), table.front, table.headline
    clocks = [column for column in ("ratio_clk", "flop_clk_sm") if table.knows(column)]
    titles = {"ratio_clk": f"{at}, {OF_CUBLAS['ratio_clk']}", "flop_clk_sm": f"{at}, {PER_CLOCK}"}
    head = [table.type, *(f"{shape}, TFLOP/s / cuBLAS (ratio)" for shape in sizes)]
    head += [*(titles[column] for column in clocks), "registers", "smem KiB", "blocks/SM"]
    rows = [
        [
            f"**{kernel}**" if kernel == stem else kernel,
            *(_rate(table, kernel, shape) for shape in sizes),
            *(per_clock(table, kernel, at) if c == "flop_clk_sm" else ranged(table.numbers(kernel, at, c)) for c in clocks),
            *_resources(table, kernel),
        ]
        for kernel in _compared(table, stem)
    ]
    gains = [(table.gain(stem, shape)[0], shape) for shape in sizes]
    gains = [f"× {digits(gain)} at {shape}" for gain, shape in gains if gain > 0]
    unit = "FLOP/clk/SM" if table.gain_column == "flop_clk_sm" else "TFLOP/s"
    said = f"\n\nGain over {before.stem} in {unit}: {', '.join(gains)}." if gains else ""
    return Grid(head, rows).markdown() + said


def _rate(table: Table, kernel: str, shape: Shape) -> str:
    ratios = table.numbers(kernel, shape, "ratio_cublas")
    return f"{beside(table, kernel, shape)} ({ranged(ratios).replace(' (', ', ').rstrip(')')})"


def _resources(table: Table, kernel: str) -> list[str]:
    """Registers per thread, shared memory per block in KiB, resident blocks per SM."""
    shape = next((s for s in reversed(table.squares) if (kernel, s) in table.cells), table.headline)
    columns = {"registers": whole, "smem_bytes": kib, "blocks_per_sm": whole}
    return [form(table.value(kernel, shape, column)) for column, form in columns.items()]
