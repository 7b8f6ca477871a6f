"""What the generated blocks of README.md and docs/*.md say, from bench/recorded and the sources."""

from functools import partial
from pathlib import Path

import pandas as pd

from plots.data.results import Results, load, read_rows
from plots.data.rungs import is_variant, number, order, predecessor, read_rungs
from plots.data.selection import Table, tables
from plots.data.units import Shape, digits, kib, ratio, tflops, whole
from plots.documents import excerpt
from plots.documents.blocks import update
from plots.errors import InputError
from plots.figures.ladder import gain, gain_text
from plots.tables import accuracy, conditions, profiled, sweep
from plots.tables.grid import Grid
from plots.tables.summaries import PER_CLOCK, ceiling_grid, per_clock

GPU = "nvidia-h200"  # whose recorded results README and the chapters show
MEASURED_SIZES = [Shape(n, n, n) for n in (2048, 4096, 8192)]
IMAGES = "docs/img/recorded"
README_TYPES = ["f32", "bf16"]  # the chapters have the others, too
NOT_YET = "*No recorded results yet.*"


def recorded(root: Path) -> Results | None:
    """The recorded results that documents draw from; None before there are any."""
    folder = root / "bench" / "recorded" / GPU
    return load(folder) if (folder / "ladder.csv").is_file() else None


def source_line(rows: pd.DataFrame, file: str = "") -> str:
    """Where recorded numbers come from, as one line of Markdown."""
    row = rows.iloc[-1]
    return (
        f"*Measured on {row.gpu}, {rows['utc'].max()[:10]}: CUDA {row.cuda}, cuBLAS {row.cublas}, driver {row.driver}, "
        f"commit {row.commit}; recorded in `bench/recorded/{GPU}/{file}`.*"
    )


def ladder_table(root: Path) -> str:
    """README's table: every rung with its idea and, where recorded, its numbers at the headline size."""
    rungs = read_rungs(root)
    results = recorded(root)
    found = tables(results) if results else []
    if not found:
        rows = [[f"[{stem}](kernels/{stem}.cu)", rung.idea] for stem, rung in rungs.items()]
        return Grid(["rung", "idea"], rows, left=2).markdown() + f"\n\n{NOT_YET}"
    parts = [
        part
        for table in [table for table in found if table.type in README_TYPES] or found
        for part in (_ladder_part(table, root), _pictures(table), source_line(_of_types(results.ladder, [table])))
    ]
    return "\n\n".join(parts)


def _of_types(rows: pd.DataFrame, found: list[Table]) -> pd.DataFrame:
    """The rows of these tables' types, which may have been measured on another day than the others."""
    return rows[rows["type"].isin([table.type for table in found])]


def _ladder_part(table: Table, root: Path) -> str:
    shape = table.headline
    rungs = read_rungs(root)
    head = ["rung", "idea", "chapter", "TFLOP/s", "gain", "of cuBLAS", *([PER_CLOCK] if table.counts_clocks else [])]
    rows = [
        [
            f"[{kernel}](kernels/{kernel}.cu)",
            rungs[kernel].idea if kernel in rungs else "",
            _chapter_link(root, kernel),
            tflops(table.value(kernel, shape)),
            gain_text(table, kernel, shape),
            ratio(table.value(kernel, shape, "ratio_cublas")),
            *([per_clock(table, kernel, shape)] if table.counts_clocks else []),
        ]
        for kernel in table.kernels
    ]
    library = ["cuBLAS", "the vendor's library", "", tflops(table.baseline("cuBLAS", shape)), "", "1.00"]
    rows.append([*library, *([""] if table.counts_clocks else [])])
    title = f"{table.type} at M = N = K = {shape.m}" if shape.is_square else f"{table.type} at {shape}"
    return f"{title}; *gain* is against the rung named:\n\n" + Grid(head, rows, left=3).markdown()


def _pictures(table: Table) -> str:
    """README's two figures, as `plots recorded` writes them."""
    alts = {"ladder": "the ladder at one size", "gflops": "throughput against size"}
    return "\n\n".join(f"![{table.type}: {alt}]({IMAGES}/{name}_{table.type}.svg)" for name, alt in alts.items())


def _chapter_link(root: Path, kernel: str) -> str:
    """A link to the chapter of a rung; a variant without one of its own is told in its rung's chapter."""
    own = [stem for stem in read_rungs(root) if order(stem)[0] == order(kernel)[0]]
    for stem in [kernel, *own]:
        if (root / "docs" / f"{stem}.md").is_file():
            return f"[{number(stem)}](docs/{stem}.md)"
    return ""


def measured(root: Path, rung: str) -> str:
    """A chapter's table: the rung before, the rung, its variants and cuBLAS, at three sizes."""
    results = recorded(root)
    found = [table for table in tables(results) if _stem(table, rung)] if results else []
    if not found:
        return NOT_YET
    return "\n\n".join(
        [*(_measured_part(table, _stem(table, rung)) for table in found), source_line(_of_types(results.ladder, found))]
    )


def ceilings(root: Path) -> str:
    """What the recorded GPU was measured to do."""
    results = recorded(root)
    grid = ceiling_grid(results) if results else None
    return f"{grid.markdown()}\n\n*{results.gpu}; recorded in `bench/recorded/{GPU}/ceilings.csv`.*" if grid else NOT_YET


def swept(root: Path, rung: str) -> str:
    """A chapter's table of its rung's variants."""
    path = root / "bench" / "recorded" / GPU / f"sweep_{rung}.csv"
    return sweep.table(path, rung) if path.is_file() else NOT_YET


def counted(root: Path, what: str, rungs: list[str]) -> str:
    """A chapter's table of what Nsight Compute counted in some rungs; `what` is a type, or such as bf16@8192."""
    path = root / "bench" / "recorded" / GPU / profiled.file_name(what)
    results = recorded(root)
    if results is None or not path.is_file():
        return NOT_YET
    profile, shape = profiled.read(path)
    grid = profiled.grid(profile, rungs, f"{what.partition('@')[0]} at {shape}")
    source = f"*Nsight Compute on {results.gpu}, one launch of each; recorded in `bench/recorded/{GPU}/{path.name}`.*"
    return f"{grid.markdown()}\n\n{source}" if grid else NOT_YET


def late_rungs(root: Path) -> str:
    """The chapters' tables of rungs 14 to 16 beyond 4096 cubed, FP32 results and beta = 0."""
    files = [root / "bench" / "recorded" / GPU / f"late_{protocol}.csv" for protocol in conditions.PROTOCOLS]
    if not all(file.is_file() for file in files):
        return NOT_YET
    rows = pd.concat([read_rows(file, []) for file in files], ignore_index=True)
    return "\n\n".join([*(grid.markdown() for grid in conditions.grids(rows)), source_line(rows, "late_*.csv")])


def _stem(table: Table, rung: str) -> str:
    """The kernel that "06" or "06b" names; empty where it has no rows."""
    return next((kernel for kernel in table.kernels if number(kernel) == rung), "")


def _measured_part(table: Table, stem: str) -> str:
    before = predecessor(stem, table.kernels)
    variants = [k for k in table.kernels if order(k)[0] == order(stem)[0] and is_variant(k) and not is_variant(stem)]
    sizes = [shape for shape in MEASURED_SIZES if shape in table.shapes] or [table.headline]
    clocked = [shape for shape in sizes if shape == table.headline and table.counts_clocks]
    head = [table.type, *(f"{shape}, TFLOP/s (of cuBLAS)" for shape in sizes)]
    head += [*(f"{shape}, {PER_CLOCK}" for shape in clocked), "registers", "smem KiB", "blocks/SM"]
    rows = [
        [
            f"**{kernel}**" if kernel == stem else kernel,
            *(_rate(table, kernel, shape) for shape in sizes),
            *(per_clock(table, kernel, shape) for shape in clocked),
            *_resources(table, kernel),
        ]
        for kernel in [*([before] if before else []), stem, *variants]
    ]
    library = [f"{tflops(table.baseline('cuBLAS', shape))} (1.00)" for shape in sizes]
    rows.append(["cuBLAS", *library, *[""] * (len(clocked) + 3)])
    gains = [f"{digits(gain(table, stem, shape)[0])} at {shape}" for shape in sizes if before]
    said = f"\n\nGain over {before}: × {', × '.join(gains)}." if gains else ""
    return Grid(head, rows).markdown() + said


def _rate(table: Table, kernel: str, shape: Shape) -> str:
    return f"{tflops(table.value(kernel, shape))} ({ratio(table.value(kernel, shape, 'ratio_cublas'))})"


def _resources(table: Table, kernel: str) -> list[str]:
    """Registers a thread, shared memory a block in KiB, resident blocks an SM."""
    shape = next((s for s in reversed(table.squares) if (kernel, s) in table.cells), table.headline)
    columns = {"registers": whole, "smem_bytes": kib, "blocks_per_sm": whole}
    return [form(table.value(kernel, shape, column)) for column, form in columns.items()]


def render(root: Path, up: str, name: str) -> str:
    """The text of the block `name` in a document from whose folder `up` leads to the root."""
    match name.split():
        case ["ladder-table"]:
            return ladder_table(root)
        case ["measured", rung]:
            return measured(root, rung)
        case ["ceilings"]:
            return ceilings(root)
        case ["code", file, tag]:
            return excerpt.render(root, file, tag, up)
        case ["accuracy", which]:
            return accuracy.table(root, which)
        case ["sweep", rung]:
            return swept(root, rung)
        case ["profiled", what, *rungs] if rungs:
            return counted(root, what, rungs)
        case ["late"]:
            return late_rungs(root)
    expected = "ladder-table, measured NN, ceilings, code FILE TAG, accuracy WHICH, sweep NN, profiled TYPE[@SIZE] NN..., or late"
    raise InputError(f"unknown block '{name}': expected {expected}")


def update_readme(root: Path, check: bool) -> list[str]:
    """Fills README.md's blocks; the stale ones by name."""
    return _update(root / "README.md", root, "", check)


def update_docs(root: Path, check: bool) -> list[str]:
    """Fills the blocks of docs/*.md; the stale ones by name."""
    return [name for path in sorted((root / "docs").glob("*.md")) for name in _update(path, root, "../", check)]


def _update(path: Path, root: Path, up: str, check: bool) -> list[str]:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return [f"{path.relative_to(root)}: {name}" for name in update(path, partial(render, root, up), check)]
