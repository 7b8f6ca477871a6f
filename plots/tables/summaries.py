"""The report's tables, each a Grid, from the selected rows. Rates in TFLOP/s, clocks in MHz, sizes in elements."""

from collections import Counter

import pandas as pd

from plots.data.families import by_family
from plots.data.results import Results
from plots.data.rungs import RungFile, number
from plots.data.selection import PER_CLK, Table, select
from plots.data.units import MISSING, Shape, digits, kib, quotient, ratio, tflops, whole
from plots.figures.ladder import gain_text
from plots.tables.grid import Grid

PER_CLOCK = "FLOP/clk/SM (of ceiling)"


def per_clock(table: Table, kernel: str, shape: Shape) -> str:
    """FLOP a clock and SM, and their share of the bare loop's: neither moves with the clock."""
    rate = table.value(kernel, shape, "flop_clk_sm")
    share = rate / table.ceiling.flop_clk_sm if table.ceiling else float("nan")
    return whole(rate) + (f" ({ratio(share)})" if share > 0 else "")


def ladder_grid(table: Table, rungs: dict[str, RungFile]) -> Grid:
    """Every rung at the headline size, the baselines below."""
    shape = table.headline
    head = ["rung", "idea", "TFLOP/s", "gain", "of cuBLAS", "of the best", "of ceiling", PER_CLOCK, "registers"]
    head += ["smem KiB", "blocks/SM", "clock MHz", "error, of bound"]
    rows = [_ladder_row(table, kernel, shape, rungs) for kernel in table.kernels]
    best = max(table.baseline(name, shape) for name in table.baselines)
    for name in table.baselines:
        rate = table.baseline(name, shape)
        of_ceiling = rate / table.ceiling.gflops if table.ceiling else float("nan")
        numbers = [ratio(quotient(rate, table.baseline("cuBLAS", shape))), ratio(quotient(rate, best)), ratio(of_ceiling)]
        rows.append([name, "NVIDIA's library", tflops(rate), "", *numbers, *[""] * 6])
    return Grid(head, rows, left=2)


def _ladder_row(table: Table, kernel: str, shape: Shape, rungs: dict[str, RungFile]) -> list[str]:
    idea = rungs[kernel].idea if kernel in rungs else ""
    row = table.cells.get((kernel, shape))
    if row is None or row.status != "ok":
        return [kernel, idea, row.status if row is not None else "not run", *[""] * 10]
    return [
        kernel,
        idea,
        tflops(row.gflops),
        gain_text(table, kernel, shape),
        ratio(row.ratio_cublas),
        ratio(row.ratio_best),
        ratio(row.ceiling_fraction),
        per_clock(table, kernel, shape),
        whole(row.registers),
        kib(row.smem_bytes),
        whole(row.blocks_per_sm),
        whole(row.clock_mhz),
        digits(quotient(row.max_error, row.bound), 2),
    ]


def shape_grid(table: Table) -> Grid:
    """TFLOP/s of every rung at every shape, by family."""
    head = ["family", "M × N × K", *table.baselines, *(number(kernel) for kernel in table.kernels)]
    rows = [
        [name, f"{shape.m} × {shape.n} × {shape.k}"]
        + [tflops(table.baseline(baseline, shape)) for baseline in table.baselines]
        + [_rate_or_status(table, kernel, shape) for kernel in table.kernels]
        for name, shapes in by_family(table.shapes).items()
        for shape in shapes
    ]
    return Grid(head, rows, left=2)


def _rate_or_status(table: Table, kernel: str, shape: Shape) -> str:
    row = table.cells.get((kernel, shape))
    return MISSING if row is None else tflops(row.gflops) if row.status == "ok" else row.status


def check_grid(*frames: pd.DataFrame | None) -> Grid:
    """How each kernel stood the check, over all rows of the ladder and the correctness run."""
    rows = pd.concat([frame for frame in frames if frame is not None])
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


def spread_grid(results: Results, table: Table) -> Grid | None:
    """The same cells measured twice: both ratios to cuBLAS and how far apart they are, in per cent of the first."""
    if results.spread is None:
        return None
    lines = []
    for row in select(results.spread[results.spread["type"] == table.type], table.condition).itertuples():
        first = table.value(row.kernel, row.shape, "ratio_cublas")
        if row.status == "ok" and first > 0:
            apart = 100 * (row.ratio_cublas / first - 1)
            lines.append([row.kernel, str(row.shape), f"{first:.4f}", f"{row.ratio_cublas:.4f}", f"{apart:+.2f} %"])
    head = ["kernel", "size", "of cuBLAS, first run", "second run", "difference"]
    return Grid(head, lines, left=2) if lines else None


def steady_grid(results: Results, table: Table) -> Grid | None:
    """The steady protocol beside the default one, at the cells measured under both."""
    if results.steady is None:
        return None
    rows = results.steady
    rows = rows[(rows["type"] == table.type) & (rows["protocol"] == "steady") & (rows["status"] == "ok")]
    head = ["kernel", "size", "TFLOP/s, steady", "of cuBLAS, steady", "clock MHz", "power W"]
    head += [f"of cuBLAS, {table.condition.protocol}"]
    lines = [
        [
            row.kernel,
            str(row.shape),
            tflops(row.gflops),
            ratio(row.ratio_cublas),
            whole(row.clock_mhz),
            whole(row.power_w),
            ratio(table.value(row.kernel, row.shape, "ratio_cublas")),
        ]
        for row in rows.itertuples()
    ]
    return Grid(head, lines, left=2) if lines else None


def ceiling_grid(results: Results) -> Grid | None:
    """What the hardware was measured to do."""
    own = {name: limit for name, limit in results.ceilings.items() if not name.endswith(PER_CLK)}
    per_clk = {name: whole(results.ceilings[name + PER_CLK][0]) for name in own if name + PER_CLK in results.ceilings}
    lines = [[name, *_ceiling(value, unit), per_clk.get(name, "")] for name, (value, unit) in own.items()]
    return Grid(["ceiling", "measured", "unit", "FLOP/clk/SM"], lines) if lines else None


def _ceiling(value: float, unit: str) -> list[str]:
    """GFLOP/s and GB/s as TFLOP/s and TB/s, the report's units."""
    return [digits(value / 1000), "T" + unit[1:]] if unit in ("GFLOP/s", "GB/s") else [digits(value), unit]
