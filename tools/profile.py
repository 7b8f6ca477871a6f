"""Profiles one rung with Nsight Compute: the metrics that the chapters speak of, as a table and a CSV file.

usage: python3 -m tools.profile STEM [M N K [--type TYPE]] [--csv FILE]      (its program must be built)

STEM is such as 06_bank_conflict_free, or sweep_16/NAME: a variant that bench/sweep.py built. --csv FILE adds the rows to
a file, in place of one of their own in results/profile.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from plots.data.cubin import kernels
from tools.diff import object_of


@dataclass(frozen=True)
class Metric:
    group: str
    name: str
    unit: str
    ncu: str
    meaning: str


def stall(reason: str, meaning: str) -> Metric:
    return Metric(
        "stalls",
        reason.replace("_", " "),
        "warps",
        f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
        meaning,
    )


METRICS = [
    Metric("time", "duration", "ns", "gpu__time_duration.sum", "one launch, caches flushed before it"),
    Metric("time", "clocks", "clocks", "sm__cycles_elapsed.max", "which do not move with power"),
    Metric("time", "SM clock", "Hz", "sm__cycles_elapsed.avg.per_second", "what the GPU ran at; not locked"),
    Metric("issue", "issue active", "%", "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "clocks in which a scheduler issued"),
    Metric("issue", "FMA pipe", "%", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
           "FMA instructions against the most there can be"),
    Metric("issue", "tensor pipe", "%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
           "clocks in which the tensor cores worked"),
    Metric("issue", "instructions", "warp inst", "smsp__inst_executed.sum", "executed, by warp"),
    Metric("issue", "FFMA", "thread inst", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
           "executed, by thread: M N K of them are the product"),
    Metric("occupancy", "warps active", "%", "sm__warps_active.avg.pct_of_peak_sustained_active",
           "resident warps against the most that an SM holds"),
    Metric("global", "load requests", "warp inst", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
           "load instructions by warp"),
    Metric("global", "load sectors", "32 bytes", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
           "a 4-byte load by a warp needs 4, a 16-byte load 16"),
    Metric("global", "store requests", "warp inst", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
           "store instructions by warp"),
    Metric("global", "store sectors", "32 bytes", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
           "as for loads"),
    Metric("shared", "wavefronts", "wavefronts", "memory_l1_wavefronts_shared", "passes through the banks"),
    Metric("shared", "ideal wavefronts", "wavefronts", "memory_l1_wavefronts_shared_ideal",
           "what the bytes need without conflicts"),
    Metric("shared", "load conflicts", "wavefronts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
           "counted by the hardware, which also counts arbitration with other data"),
    Metric("shared", "store conflicts", "wavefronts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
           "the same for stores"),
    Metric("memory", "L2 bytes", "bytes", "lts__t_bytes.sum", "between L1 and L2, and L2 and DRAM"),
    Metric("memory", "L2 hit rate", "%", "lts__t_sector_hit_rate.pct", "sectors found in L2"),
    Metric("memory", "DRAM read", "bytes", "dram__bytes_read.sum", "A and B once are the least"),
    Metric("memory", "DRAM written", "bytes", "dram__bytes_write.sum", "C once is the least"),
    stall("long_scoreboard", "waiting for global memory"),
    stall("short_scoreboard", "waiting for shared memory"),
    stall("barrier", "waiting for the block's other warps"),
    stall("mio_throttle", "the queue to shared memory is full"),
    stall("lg_throttle", "the queue to global memory is full"),
    stall("math_pipe_throttle", "the FMA pipe is taken"),
    stall("gmma", "waiting for wgmma"),
    stall("dispatch_stall", "the dispatcher is held up, by register banks among others"),
    stall("wait", "a fixed latency"),
    stall("not_selected", "ready, but another warp was taken"),
]  # fmt: skip


def program_of(stem: str) -> tuple[list[str], str]:
    """The command that runs a rung, and a regular expression for the names of the rung's kernels."""
    sweep, _, file = stem.rpartition("/")
    if sweep:
        return [f"build/{sweep}/ladder"], names_of(file, Path(f"build/{sweep}/{file}.o"))
    own = Path("build/bin") / stem
    command = [str(own)] if own.is_file() else ["build/bin/ladder", "--kernels", stem.partition("_")[0]]
    return command, names_of(stem, object_of(stem))


def names_of(file: str, built: Path | None) -> str:
    """nvcc puts the name of the file into those of kernels in an unnamed namespace; its object, where built, has others."""
    symbols = {kernel.symbol for kernel in kernels(built)} if built and built.is_file() else set()
    unnamed = rf"^_ZN.*_\d+_{file}_cu_"
    return "|".join([unnamed, *(f"^{symbol}$" for symbol in sorted(symbols) if f"_{file}_cu_" not in symbol)])


def collect(stem: str, shape: list[str], options: Sequence[str] = ()) -> dict[str, str]:
    """Value by ncu's name of the metric, of the first launch of one of the rung's kernels."""
    program, names = program_of(stem)
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--kernel-name-base", "mangled", "--kernel-name", f"regex:{names}", "--launch-count", "1",
        "--metrics", ",".join(metric.ncu for metric in METRICS),
        *program, *shape, *options, "--check-only", "--check", "sample",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    header = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        output = lines + done.stderr.splitlines()
        if any("ERR_NVGPUCTRPERM" in line for line in output):
            print("profile: this driver lets only an administrator read the counters (ERR_NVGPUCTRPERM)", file=sys.stderr)
            sys.exit(77)
        problems = [line for line in output if "ERROR" in line] or output[-3:]
        print(f"profile: ncu measured nothing: {' '.join(problems)}", file=sys.stderr)
        sys.exit(1)
    rows = list(csv.DictReader(lines[header:]))
    return rows[-1]  # the row before it holds the units


def readable(text: str) -> str:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table_of(title: str, values: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    for column, justify in (("metric", "left"), ("value", "right"), ("unit", "left"), ("meaning", "left")):
        table.add_column(column, justify=justify)
    group = METRICS[0].group
    for metric in METRICS:
        if metric.group != group:
            table.add_section()
            group = metric.group
        value = readable(values.get(metric.ncu, ""))
        table.add_row(f"{metric.group}: {metric.name}", value, metric.unit, metric.meaning)
    return table


def add_rows(file: Path, stem: str, shape: list[str], values: dict[str, str]) -> None:
    """Adds the metrics to a CSV file, which gets its header where it is new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.is_file()
    with file.open("a", newline="") as out:
        writer = csv.writer(out)
        if is_new:
            writer.writerow(["kernel", "m", "n", "k", "group", "metric", "value", "unit", "ncu"])
        for metric in METRICS:
            value = values.get(metric.ncu, "").replace(",", "")
            writer.writerow([stem, *shape, metric.group, metric.name, value, metric.unit, metric.ncu])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.profile", usage=__doc__.split("usage: ")[1].splitlines()[0])
    parser.add_argument("stem")
    parser.add_argument("shape", nargs="*", default=["4096"] * 3)
    parser.add_argument("--type")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    if len(options.shape) != 3:
        parser.error("a shape is M N K")
    values = collect(options.stem, options.shape, ["--type", options.type] if options.type else [])
    named = "_".join([options.stem.replace("/", "_"), "x".join(options.shape), *([options.type] if options.type else [])])
    file = options.csv or Path("results") / "profile" / f"{named}.csv"
    if not options.csv:
        file.unlink(missing_ok=True)
    add_rows(file, options.stem, options.shape, values)
    title = " ".join([f"{options.stem}, {' x '.join(options.shape)}", *([options.type] if options.type else [])])
    Console(highlight=False).print(table_of(title, values))
    print(f"CSV: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
