"""What the generated blocks of the first page say: the numbered rungs in four columns, and where the last ones lose."""

from pathlib import Path

from plots.data.results import read_rows
from plots.data.rungs import Facts, Rung, by_generation
from plots.data.selection import Table, tables
from plots.data.units import Shape, hundredths, type_name
from plots.documents.chapters import GPU, NOT_YET, chapter_link, measured_on, recorded, sittings
from plots.figures import stairs
from plots.figures.wins import group
from plots.tables import wins
from plots.tables.grid import Grid, escape
from plots.tables.summaries import beside

TYPES = ["f32", "bf16"]  # of the first page's picture
PRODUCTS = {  # the groups of the map, of products
    "square": "that are square",
    "few rows or columns": "with few rows or columns",
    "large, not square": "that are large and not square",
    "long or short k": "with a long or short K",
    "beside tiles": "with sizes that are not multiples of 64",
}


def steps(root: Path, facts: Facts, up: str, kind: str, gpu: str = GPU) -> str:
    """The numbered rungs of a type at the headline size, under the GPUs that run them."""
    results = recorded(root, facts, gpu)
    table = next((table for table in tables(results) if table.type == kind), None) if results else None
    shown = list(stairs.steps(table)) if table else []
    if not shown:
        return NOT_YET
    rows = []
    for generation, rungs in by_generation(facts.rungs[kernel] for kernel in shown).items():
        rows.append([f"**{generation}**", "", "", ""])
        rows += [_step(table, root, up, rung) for rung in rungs]
    title = f"**{type_name(kind)}** at {table.headline}, {measured_on(sittings(table, shown, [table.headline]))}:"
    return f"{title}\n\n{Grid(['rung', 'idea', 'TFLOP/s / cuBLAS', 'of cuBLAS'], rows, left=2).markdown()}"


def _step(table: Table, root: Path, up: str, rung: Rung) -> list[str]:
    link = chapter_link(root, table.facts, rung.stem, up, rung.stem)
    ratio = table.value(rung.stem, table.headline, "ratio_cublas")
    return [link or rung.stem, escape(rung.idea), beside(table, rung.stem, table.headline), hundredths(ratio)]


def where_it_loses(root: Path, facts: Facts, gpu: str = GPU) -> str:
    """The map of wins in one sentence and a short table: how often and where a library is clearly faster."""
    file = root / "bench" / "recorded" / gpu / wins.FILE
    if not file.is_file():
        return NOT_YET
    found = wins.read(file, facts)
    lost = found["ratio_best"] < wins.LEAST
    groups = [group(Shape(row.m, row.n, row.k)) for row in found.itertuples()]
    counts = {name: lost[[name == of for of in groups]] for name in groups}
    worst = sorted(counts.items(), key=lambda item: -item[1].mean())
    where = "; ".join(f"{own.sum()} of {len(own)} {PRODUCTS[name]}" for name, own in worst)
    said = f"{lost.sum()} of {len(found)} products reach less than {wins.LEAST} of the best library: {where}."
    days = measured_on(read_rows(file, []).itertuples())
    return f"{said}\n\n{wins.short_grid(found).markdown()}\n\n*{days}.*"
