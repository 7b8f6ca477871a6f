"""The report: one self-contained report.html, summary.md, a picture to share, and the plots beside them."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from plots.data.counters import WGMMA, Counted, counted
from plots.data.results import Results, Simulation
from plots.data.selection import Table, tables
from plots.data.units import MISSING, Shape, digits, ratio, tflops, whole
from plots.errors import InputError
from plots.figures import clocks, counters, reach, share, style, waves, wins
from plots.figures.kinds import KINDS, Kind, OfProfile, drawable, of_profile
from plots.tables import best, held, summaries
from plots.tables.counters import counter_grid
from plots.tables.grid import Grid

# What a reader of a unit's counters must know.
OF_UNIT = {WGMMA: " What wgmma itself reads of shared memory and what TMA writes there are no wavefronts of the simulator's."}
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Plot:
    """A figure with what a reader must know to read it."""

    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """Everything about one type."""

    table: Table
    how: str  # what its columns say
    ladder: Grid
    other_sizes: dict[Shape, Grid]  # the ladder there
    plots: list[Plot]
    shapes: Grid
    sittings: Grid | None
    steady: Grid | None


@dataclass(frozen=True)
class Overview:
    """What an owner of the GPU asks first."""

    headlines: list[str]
    under: str  # the conditions of all that it shows
    reach: list[Plot]
    throttling: str
    held: Grid | None
    clocks: list[Plot]
    won: Grid
    wins: list[Plot]


@dataclass(frozen=True)
class CountedSection:
    """What the simulator counted at one shape."""

    table: Counted
    grid: Grid
    plot: Plot


def write(results: Results, out: Path, from_record: bool) -> list[Path]:
    """Writes report.html, summary.md, share.png and plots/ into `out`; the files that a reader opens first."""
    context = {"title": results.gpu, "date": results.date, "simulation": None}
    return [*_write(context | _measured(results, from_record, out / "plots"), out), *_write_share(results, out)]


def _write_share(results: Results, out: Path) -> list[Path]:
    """share.png: the ladder of one type; nothing where no rung has a ratio to cuBLAS."""
    table = share.chosen(tables(results))
    if table is None:
        return []
    fig = share.draw(table, results.gpu, {name: text for name, text in versions(results).items() if name != "commit"})
    fig.savefig(out / "share.png", dpi=share.DPI, metadata={"Software": None})
    return [out / "share.png"]


def versions(results: Results) -> dict[str, str]:
    """What the results were measured with, by name."""
    columns = {"driver": "driver", "CUDA": "cuda", "cuBLAS": "cublas", "commit": "commit"}
    return {name: _all(results.ladder[column]) for name, column in columns.items()}


def write_simulation(simulation: Simulation, recorded: Results | None, out: Path) -> list[Path]:
    """The same for a run on the simulator: its checks and counters, and below them what a real GPU did, where recorded."""
    context = {
        "title": "the simulator",
        "date": simulation.counts["utc"].max()[:10] if len(simulation.counts) else "unknown date",
        "simulation": simulation,
        "verdict": verdict(simulation),
        "simulated_untraced": untraced(simulation.counts),
        "counted": [[_counted_section(table, out / "plots") for table in sizes] for sizes in counted(simulation)],
        "simulated_checks": summaries.check_grid(simulation.counts, simulation.check),
        "simulated_refused": summaries.refused_grid(simulation.counts, simulation.check),
        "simulated_environment": _environment_grid(simulation.environment),
        "results": None,
    }
    return _write(context | (_measured(recorded, True, out / "plots") if recorded else {}), out)


def _write(context: dict, out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "report.html", out / "summary.md"]
    for path in written:
        path.write_text(_render(f"{path.name}.j2", context), encoding="utf-8")
    return written


def _measured(results: Results, from_record: bool, plots: Path) -> dict:
    """What the templates say of a run on a GPU."""
    over_waves, lacking = _waves(results, plots)
    return {
        "results": results,
        "from_record": from_record,
        "untraced": untraced(results.ladder),
        "facts": facts(results),
        "overview": _overview(results, plots),
        "sections": [_section(table, results, plots) for table in tables(results)],
        "waves": over_waves,
        "notes": [*results.notes, *gaps(results), *lacking],
        "checks": summaries.check_grid(results.ladder, results.check),
        "refused": summaries.refused_grid(results.ladder, results.check),
        "ceilings": summaries.ceiling_grid(results),
        "environment": _environment_grid(results.environment),
        "commit": _commit(results),
    }


def _environment_grid(environment: dict) -> Grid:
    return Grid(["", ""], [[key.replace("_", " "), _said(value)] for key, value in environment.items()], left=2)


def verdict(simulation: Simulation) -> str:
    """How the run on the simulator went, in one sentence."""
    frames = [frame for frame in (simulation.counts, simulation.check) if frame is not None]
    status = pd.concat(frames)["status"].value_counts()
    checked = int(sum(status.get(name, 0) for name in ("ok", "wrong", "failed")))
    waived = f"; {status['waived']} more were waived" if status.get("waived", 0) else ""
    kernels = len(set(simulation.counts["kernel"]))
    return f"{kernels} rungs: {status.get('ok', 0)} of {checked} products are right{waived}. Counted, not timed."


def _counted_section(table: Counted, folder: Path) -> CountedSection:
    title = f"What each rung moves and executes, {table.type} by {table.instruction or 'an unknown instruction'} at {table.shape}"
    terms = table.terms
    of_warp, limit, best = (
        (" of a warp", "; more than 1 and shared memory is the limit", "; 1 is the best") if terms.has_limit else ("", "", "")
    )
    caption = (
        f"Left: bytes that global loads and stores move per {terms.traffic.name}, in whole 32-byte sectors. Middle: wavefronts "
        f"of shared memory per {terms.wavefronts.name}{of_warp}{limit}. Right: warp instructions of PTX per "
        f"{terms.instruction}{best}. Hatched: variants and counter-examples."
    )
    caption += f" All are told for the work of one {terms.instruction} of {terms.shape}." * bool(terms.shape)
    caption += OF_UNIT.get(table.instruction, "")
    plot = _drawn(counters.draw(table), counters.file_stem(table), title, caption, folder)
    return CountedSection(table, counter_grid(table), plot)


def _render(template: str, context: dict) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=template.startswith("report.html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(context).strip() + "\n"


def facts(results: Results) -> list[tuple[str, str]]:
    """The run in a few lines: where, when, with what."""
    rows = results.ladder
    return [
        ("GPU", results.gpu),
        ("card", card(results.environment)),
        ("driver", _all(rows["driver"])),
        ("CUDA", _all(rows["cuda"])),
        ("cuBLAS", _all(rows["cublas"])),
        ("measured", _all(rows["utc"].str[:10])),
        ("commit", _all(rows["commit"])),
        ("SM clock", _range(rows["clock_mhz"], "MHz")),
        ("power", _range(rows["power_w"], "W")),
        ("temperature", _range(rows["temperature_c"], "°C")),
        ("p10 to p90", _noise(rows)),
    ]


def card(environment: dict) -> str:
    """What the card is, from environment.json: only what is known, because older files lack the memory's clock and bus."""
    keys = ("sm_count", "max_sm_clock_mhz", "l2_bytes", "memory_bytes", "memory_clock_mhz", "memory_bus_bits")
    sms, sm_mhz, l2, memory, memory_mhz, bits = (float(environment.get(key) or math.nan) for key in keys)
    tb_per_s = 2 * memory_mhz * bits / 8 / 1e6  # two transfers per clock
    parts = {
        f"{whole(sms)} SMs": sms,
        f"SM clock up to {whole(sm_mhz)} MHz": sm_mhz,
        f"L2 {whole(l2 / 2**20)} MiB": l2,
        f"memory {whole(memory / 2**30)} GiB": memory,
        f"memory rate {digits(tb_per_s)} TB/s ({whole(memory_mhz)} MHz, {whole(bits)} bits)": tb_per_s,
    }
    return ", ".join(text for text, value in parts.items() if value > 0) or "not recorded"


def origin(results: Results) -> str:
    """Where, when and with what, in one line."""
    return ", ".join([results.gpu, results.date, *(f"{name} {version}" for name, version in versions(results).items())])


def _noise(rows: pd.DataFrame) -> str:
    """How far apart the 10th and the 90th percentile of a cell's times are."""
    apart = (100 * (rows["p90_ms"] - rows["p10_ms"]) / rows["median_ms"]).dropna()
    if apart.empty:
        return "not recorded"
    return f"{digits(apart.median(), 2)} % of a cell's median time (median over cells), {digits(apart.max(), 2)} % at most"


def _said(value: object) -> str:
    return MISSING if value is None else str(value)


def _commit(results: Results) -> str:
    """The one commit that all rows were measured at; empty where there are several or it was not a clean one."""
    commits = set(results.ladder["commit"])
    return commits.pop() if len(commits) == 1 and all(c.isalnum() and c != "unknown" for c in commits) else ""


def untraced(rows: pd.DataFrame) -> str:
    """What a reader must know of rows that name no commit (tools/build_info.sh); empty where all name one."""
    commits = set(rows["commit"])
    if "unknown" not in commits:
        return ""
    which = "The commit" if len(commits) == 1 else "The commit of some rows"
    return (
        f"{which} is unknown, so nobody can tell which sources were measured: the build found neither a git checkout nor "
        "GEMM_LADDER_COMMIT in the environment."
    )


def _all(column: pd.Series) -> str:
    return ", ".join(sorted(set(column) - {""})) or "not recorded"


def _range(column: pd.Series, unit: str) -> str:
    known = column.dropna()
    if known.empty:
        return "not recorded"
    return f"median {whole(known.median())} {unit}, from {whole(known.min())} to {whole(known.max())}"


def headline(table: Table) -> str:
    """The best rung at the headline size, in one sentence; what is missing where there is none."""
    shape = table.headline
    rated = [(table.value(k, shape), k) for k in table.kernels if table.value(k, shape) > 0]
    if not rated:
        return f"{table.type}: no rung has a result at {shape}."
    rate, kernel = max(rated)
    parts = [f"{table.type}: {kernel} reaches {tflops(rate)} TFLOP/s at {shape}"]
    if (beside := table.cublas(kernel, shape)) > 0:
        parts[0] += f" beside {tflops(beside)} of cuBLAS"
    for column, against in (("ratio_cublas", "cuBLAS"), ("ratio_best", "the fastest library")):
        value = table.value(kernel, shape, column)
        if value > 0:
            parts.append(f"{ratio(value)} × {against}")
    if (share := table.share(kernel, shape)) > 0:
        parts.append(f"{digits(100 * share)} % of the measured ceiling of {table.ceiling(kernel).instruction}")
    return ", ".join(parts) + "."


def gaps(results: Results) -> list[str]:
    """What a complete run would have and this one has not."""
    found = tables(results)
    if not found:
        return ["nothing was timed: there are no plots"]
    notes = []
    absent = [stem for stem in results.facts.rungs if stem not in set(results.ladder["kernel"])]
    if absent:
        notes.append(f"no rows for {', '.join(absent)}")
    for table in found:
        cells, full = len(table.cells), len(table.kernels) * len(table.shapes)
        if cells < full:
            notes.append(f"{table.type}: {full - cells} of {full} cells (rungs × shapes) have no row: incomplete run")
        if len(table.squares) == 1:
            notes.append(f"{table.type}: one square size only: no curve against size")
        notes += [f"{table.type}: no {name}: {kind.lacking(table)}" for name, kind in KINDS.items() if kind.lacking(table)]
        for name, rates in table.baselines.items():
            if not rates:
                notes.append(f"{table.type}: {name} was not measured")
        if table.left_out:
            notes.append(f"{table.type}: {table.left_out} rows not under {table.condition} are in the CSV only")
    if results.ladder["clock_mhz"].isna().all():
        notes.append("clocks, power and temperature were not recorded (no NVML)")
    return notes


def throttling(results: Results) -> str:
    """Which limits held the clock, in how many cells."""
    timed = results.ladder[results.ladder["protocol"] != "check"]
    said = timed[(timed["throttle"] != "") & (timed["status"] == "ok")]
    if said.empty:
        return "Throttle reasons were not recorded."
    held = said[said["throttle"] != "none"]
    if held.empty:
        return f"No throttling in any of {len(said)} timed cells."
    counts = held["throttle"].str.split("+").explode().value_counts()
    names = ", ".join(f"{name} in {count}" for name, count in counts.items())
    return f"The clock was held back in {len(held)} of {len(said)} timed cells: {names}."


def _section(table: Table, results: Results, folder: Path) -> Section:
    return Section(
        table=table,
        how=summaries.how(table).replace("*", ""),
        ladder=summaries.ladder_grid(table, table.headline),
        other_sizes={shape: summaries.ladder_grid(table, shape) for shape in table.front if shape != table.headline},
        plots=[_plot(table, name, kind, folder) for name, kind in (drawable(table) | of_profile(results, table)).items()],
        shapes=summaries.shape_grid(table),
        sittings=summaries.sittings_grid(table),
        steady=summaries.steady_grid(results, table),
    )


def _overview(results: Results, folder: Path) -> Overview | None:
    """The first page; None where nothing was timed."""
    found = tables(results)
    if not found:
        return None
    won, highest = best.of_ladder(found), held.highest_clock(results)
    conditions = {str(table.condition): None for table in found}
    return Overview(
        headlines=[headline(table) for table in found],
        under="; ".join(conditions) if len(conditions) > 1 else f"{found[0].condition}, all types",
        reach=[_drawn(reach.draw(found), "reach", "How far each rung gets", REACH, folder)],
        throttling=throttling(results),
        held=held.grid(results, found),
        clocks=[_drawn(clocks.draw(found, highest), "clocks", "The clock", CLOCKS, folder)] if clocks.possible(found) else [],
        won=best.grid(won),
        wins=[_drawn(wins.draw(won, "the best rung"), "best", "Shape by shape", BEST, folder)] if len(won) else [],
    )


REACH = (
    "TFLOP/s of each rung, under the instruction that multiplies in it, beside cuBLAS's in the same rounds; and the share of "
    "what that instruction was measured to reach: FLOP/clk/SM over that of the bare instruction, which no clock moves. The bar "
    "is the share. Hatched: variants and counter-examples."
)
CLOCKS = (
    "The SMs' clock while a rung ran, in colours down to 60 % of the highest that any was seen at. A dot: a limit held the clock "
    "back in some sitting."
)
BEST = (
    "At each shape the best of all rungs against the faster of cuBLAS and of cuBLASLt's best heuristic, by operands and results: "
    "purple above 1, where a rung is faster; orange below, where the library is. Grey: not timed."
)


def _waves(results: Results, folder: Path) -> tuple[list[Plot], list[str]]:
    """The figures of the sweep over waves, where there was one, or why there are none."""
    path = results.folder / waves.FILE
    if not path.is_file():
        return [], []
    try:
        sweeps = waves.read(path)
    except InputError as error:
        return [], [f"no figures of waves: {error}"]
    plots = []
    for sweep in sweeps:
        for stem, kind in waves.KINDS.items():
            name, title = f"{stem}_{sweep.type}", f"{kind.title}, {sweep.type}"
            plots.append(_drawn(kind.draw(sweep), name, title, kind.caption, folder))
    return plots, []


def _plot(table: Table, name: str, kind: Kind | OfProfile, folder: Path) -> Plot:
    fig = kind.draw(table) if isinstance(kind, Kind) else kind.draw()
    return _drawn(fig, f"{name}_{table.type}", kind.title, kind.caption, folder)


def _drawn(fig: Figure, name: str, title: str, caption: str, folder: Path) -> Plot:
    """The figure saved under its name, and for the page."""
    return Plot(title, caption, inline_svg(style.save(fig, folder, name), name, title))


def inline_svg(text: str, prefix: str, label: str) -> Markup:
    """An SVG file's root element for use inside HTML: ids made unique to the page, size left to the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1), count=1)
    return Markup(text.replace("<svg", Markup('<svg role="img" aria-label="{}"').format(label), 1))
