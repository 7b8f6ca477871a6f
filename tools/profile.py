"""Profiles one rung with Nsight Compute: the metrics that the chapters speak of, as a table and a CSV file.

usage: python3 -m tools.profile STEM [M N K [--type TYPE]]   (STEM such as 06_bank_conflict_free; its program must be built)

A STEM of sweep_14/NAME is a variant that bench/sweep_14.py built.
"""

import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.diff import built_kernels


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
    Metric("issue", "tensor pipe", "%", "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
           "clocks in which the tensor cores worked on mma.sync"),
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
    stall("dispatch_stall", "the dispatcher is held up, by register banks among others"),
    stall("wait", "a fixed latency"),
    stall("not_selected", "ready, but another warp was taken"),
]  # fmt: skip


def program_of(stem: str) -> tuple[str, str]:
    """The program that runs a rung, and a regular expression for the names of the rung's kernels."""
    if stem.startswith("sweep_"):  # a program of many rungs: nvcc puts the name of the file into the name of its kernels
        sweep, _, variant = stem.partition("/")
        return f"build/{sweep}/ladder", rf"^_ZN.*_\d+_{variant}_cu_"
    return f"build/bin/{stem}", f"^({'|'.join(sorted({kernel.symbol for kernel in built_kernels(stem)}))})$"


def collect(stem: str, shape: list[str], options: Sequence[str] = ()) -> dict[str, str]:
    """Value by ncu's name of the metric, of the first launch of one of the rung's kernels."""
    program, names = program_of(stem)
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--kernel-name-base", "mangled", "--kernel-name", f"regex:{names}", "--launch-count", "1",
        "--metrics", ",".join(metric.ncu for metric in METRICS),
        program, *shape, *options, "--check-only", "--check", "sample",
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


def main(stem: str, shape: list[str], options: Sequence[str] = ()) -> None:
    values = collect(stem, shape, options)
    kind = f"_{options[1]}" if options else ""
    file = Path("results") / "profile" / f"{stem.replace('/', '_')}_{'x'.join(shape)}{kind}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    table = Table(title=" ".join([f"{stem}, {' x '.join(shape)}", *options[1:]]), title_justify="left")
    for column, justify in (("metric", "left"), ("value", "right"), ("unit", "left"), ("meaning", "left")):
        table.add_column(column, justify=justify)
    group = METRICS[0].group
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["kernel", "m", "n", "k", "group", "metric", "value", "unit", "ncu"])
        for metric in METRICS:
            value = values.get(metric.ncu, "").replace(",", "")
            writer.writerow([stem, *shape, metric.group, metric.name, value, metric.unit, metric.ncu])
            if metric.group != group:
                table.add_section()
                group = metric.group
            table.add_row(f"{metric.group}: {metric.name}", readable(value), metric.unit, metric.meaning)
    Console(highlight=False).print(table)
    print(f"CSV: {file}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:5] or ["4096", "4096", "4096"], sys.argv[5:])
