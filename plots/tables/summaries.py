"""The report's tables, each a Grid, from the selected rows. Rates in TFLOP/s, clocks in MHz, sizes in elements."""

import math
from collections import Counter
from collections.abc import Callable

import pandas as pd

from plots.data.families import by_family
from plots.data.results import Results
from plots.data.rungs import number
from plots.data.selection import BASELINES, PER_CLK, Cell, Table, cells
from plots.data.units import MISSING, Shape, digits, kib, quotient, ranged, ratio, tflops, whole
from plots.tables.grid import Grid

PER_CLOCK = "FLOP/clk/SM (of ceiling)"
BESIDE = "cuBLAS, same rounds"
OF_ONE_SITTING = "the two rates are those of the sitting, or means of the two, whose quotient is nearest to the ratio"
OF_CUBLAS = {"ratio_cublas": "of cuBLAS", "ratio_clk": "in clocks"}  # by column


def ratios(table: Table) -> dict[str, str]:
    """The ratios to cuBLAS that were measured: heading by column."""
    return {column: head for column, head in OF_CUBLAS.items() if column == "ratio_cublas" or table.knows(column)}


def how(table: Table) -> str:
    """What the columns of a ladder say, in one line."""
    gain = "FLOP/clk/SM" if table.gain_column == "flop_clk_sm" else "TFLOP/s"
    said = [
        "*of cuBLAS* is the time of cuBLAS over that of the rung in the same rounds",
        f"*gain* is {gain} over that of the rung named",
    ]
    if "ratio_clk" in ratios(table):
        said.append("*in clocks* is cuBLAS's clocks over the rung's own")
    if table.sittings > 1:
        said.append(f"numbers are medians of {table.sittings} sittings, with the range of the ratios; {OF_ONE_SITTING}")
    return "; ".join(said)


def per_clock(table: Table, kernel: str, shape: Shape) -> str:
    """FLOP/clk/SM, and its share of what the bare loop of the rung's instruction reaches: neither moves with the clock."""
    rate, ceiling = table.value(kernel, shape, "flop_clk_sm"), table.ceiling(kernel)
    share = rate / ceiling.flop_clk_sm if ceiling else float("nan")
    return whole(rate) + (f" ({ratio(share)})" if share > 0 else "")


def ladder_grid(table: Table, shape: Shape) -> Grid:
    """Every rung at one size, each beside cuBLAS of its own rounds."""
    head = ["rung", "idea", "TFLOP/s", BESIDE, *ratios(table).values(), "of the best", "gain", "of ceiling", PER_CLOCK]
    head += ["registers", "smem KiB", "blocks/SM", "clock MHz", "error, of bound"]
    return Grid(head, [_ladder_row(table, kernel, shape, len(head)) for kernel in table.kernels], left=2)


def _ladder_row(table: Table, kernel: str, shape: Shape, width: int) -> list[str]:
    cell, idea = table.cells.get((kernel, shape)), table.facts.idea(kernel)
    if cell is None or cell.status != "ok":
        return [kernel, idea, cell.status if cell else "not run", *[""] * (width - 3)]
    return [
        kernel,
        idea,
        tflops(cell.value("gflops")),
        tflops(table.cublas(kernel, shape)),
        *(ranged(cell.numbers(column)) for column in ratios(table)),
        ratio(cell.value("ratio_best")),
        table.gain_text(kernel, shape),
        ratio(cell.value("ceiling_fraction")),
        per_clock(table, kernel, shape),
        whole(cell.value("registers")),
        kib(cell.value("smem_bytes")),
        whole(cell.value("blocks_per_sm")),
        whole(cell.value("clock_mhz")),
        digits(quotient(cell.value("max_error"), cell.value("bound")), 2),
    ]


def beside(table: Table, kernel: str, shape: Shape) -> str:
    """A rung's TFLOP/s and those of cuBLAS in the same rounds: "38.4 / 51.3"."""
    return f"{tflops(table.value(kernel, shape))} / {tflops(table.cublas(kernel, shape))}"


def shape_grid(table: Table) -> Grid:
    """TFLOP/s of every rung at every shape, by family, each beside cuBLAS of its own rounds."""
    head = ["family", "M × N × K", *(number(kernel) for kernel in table.kernels)]
    rows = [
        [name, f"{shape.m} × {shape.n} × {shape.k}"] + [_rate_or_status(table, kernel, shape) for kernel in table.kernels]
        for name, shapes in by_family(table.shapes, table.facts).items()
        for shape in shapes
    ]
    return Grid(head, rows, left=2)


def _rate_or_status(table: Table, kernel: str, shape: Shape) -> str:
    cell = table.cells.get((kernel, shape))
    return MISSING if cell is None else beside(table, kernel, shape) if cell.status == "ok" else cell.status


def check_grid(*frames: pd.DataFrame | None) -> Grid:
    """How each kernel stood the check, over all rows of the ladder and the correctness run."""
    rows = pd.concat([frame for frame in frames if frame is not None])
    rows = rows[rows["sitting"] == 1]  # which is the one that checks
    head = ["kernel", "cells checked", "right", "wrong", "failed", "waived", "largest error, of bound"]
    lines = []
    for kernel, own in rows.groupby("kernel", sort=True):
        counts = Counter(own["status"])
        right = own[own["status"] == "ok"]
        worst = (right["max_error"] / right["bound"]).max()
        numbers = [str(counts[status]) for status in ("ok", "wrong", "failed", "waived")]
        lines.append([str(kernel), str(len(own) - counts["waived"]), *numbers, digits(worst, 2)])
    return Grid(head, lines)


def refused_grid(*frames: pd.DataFrame | None) -> Grid:
    """Rows that hold no result: one line for each shape and reason, with the kernels it is true of."""
    rows = pd.concat([frame for frame in frames if frame is not None])
    rows = rows[rows["status"] != "ok"]
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows.itertuples():
        what = f"{row.type} {row.m} × {row.n} × {row.k}" + _unusual(row)
        groups.setdefault((row.status, what, row.reason or "no reason given"), []).append(number(row.kernel))
    worst_first = sorted(groups.items(), key=lambda item: ("wrong failed waived".index(item[0][0]), item[0][1:]))
    lines = [[status, shape, ", ".join(dict.fromkeys(k)), reason] for (status, shape, reason), k in worst_first]
    return Grid(["status", "type, M × N × K", "rungs", "reason"], lines, left=4)


def _unusual(row) -> str:
    """What differs from a plain product, for telling rows apart."""
    parts = [f"alpha {row.alpha:g}"] * (row.alpha != 1) + [f"beta {row.beta:g}"] * (row.beta != 0)
    return "".join(f", {part}" for part in parts + [f"ld_pad {row.ld_pad}"] * (row.ld_pad != "0"))


def sittings_grid(table: Table) -> Grid | None:
    """What several sittings of one cell gave; None where each cell was measured once."""
    names = {"gflops": "TFLOP/s", BASELINES["cuBLAS"]: BESIDE, "flop_clk_sm": "FLOP/clk/SM"} | ratios(table)
    forms = {"gflops": tflops, BASELINES["cuBLAS"]: tflops, "flop_clk_sm": whole}
    lines = []
    for (kernel, shape), cell in table.cells.items():
        if len(cell.sittings) > 1 and cell.status == "ok":
            counts = (_span(cell, column, form) for column, form in forms.items())
            lines.append([kernel, str(shape), *counts, *(ranged(cell.numbers(column)) for column in ratios(table))])
    return Grid(["kernel", "size", *names.values()], lines, left=2) if lines else None


def _span(cell: Cell, column: str, form: Callable[[float], str]) -> str:
    """The published number and, in brackets, the range of its sittings."""
    values = cell.numbers(column)
    return f"{form(cell.value(column))} ({form(min(values))}–{form(max(values))})" if values else MISSING


def steady_grid(results: Results, table: Table) -> Grid | None:
    """The steady protocol beside the default one, at the cells measured under both."""
    if results.steady is None:
        return None
    rows = results.steady
    rows = rows[(rows["type"] == table.type) & (rows["protocol"] == "steady")]
    head = ["kernel", "size", "TFLOP/s, steady", "cuBLAS, same blocks", "of cuBLAS, steady", "clock MHz", "power W"]
    head += [f"of cuBLAS, {table.condition.protocol}"]
    lines = [_steady_row(table, *place, cell) for place, cell in cells(rows).items() if cell.status == "ok"]
    return Grid(head, lines, left=2) if lines else None


def _steady_row(table: Table, kernel: str, shape: Shape, cell: Cell) -> list[str]:
    return [
        kernel,
        str(shape),
        tflops(cell.value("gflops")),
        tflops(cell.value(BASELINES["cuBLAS"])),
        ranged(cell.numbers("ratio_cublas")),
        whole(cell.value("clock_mhz")),
        whole(cell.value("power_w")),
        ratio(table.value(kernel, shape, "ratio_cublas")),
    ]


def ceiling_grid(results: Results) -> Grid | None:
    """What the hardware was measured to do: in all, and per clock and SM, memories at the SMs' highest clock."""
    lines = [
        [name, *_ceiling(value, unit), _per_clock_and_sm(results, name)]
        for name, (value, unit) in results.ceilings.items()
        if not name.endswith(PER_CLK)
    ]
    return Grid(["ceiling", "measured", "unit", "per clock and SM"], lines) if lines else None


def _per_clock_and_sm(results: Results, name: str) -> str:
    value, unit = results.ceilings[name]
    sms, mhz = (float(results.environment.get(key) or math.nan) for key in ("sm_count", "max_sm_clock_mhz"))
    if unit == "GB/s" and sms * mhz > 0:
        return f"{digits(value * 1e3 / (sms * mhz))} bytes"
    return f"{whole(results.ceilings[name + PER_CLK][0])} FLOP" if name + PER_CLK in results.ceilings else ""


def _ceiling(value: float, unit: str) -> list[str]:
    """GFLOP/s and GB/s as TFLOP/s and TB/s, the report's units."""
    return [digits(value / 1000), "T" + unit[1:]] if unit in ("GFLOP/s", "GB/s") else [digits(value), unit]
