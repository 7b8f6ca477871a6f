"""Synthetic results for the tests: invented numbers of a GPU that does not exist, in the harness's format."""

import csv
import json
from pathlib import Path

from plots.data.units import Shape

GPU = "Synthetic GPU 9000"
SIMULATOR = "Simulated Synthetic GPU"
OTHER = "nvidia-h100"  # a folder of recorded results that is not the chapters' own
HEADER = [  # of the harness's CSV; the order is free
    *("kernel", "type", "out", "scales", "m", "n", "k", "alpha", "beta", "epilogue", "layout", "groups", "ld_pad"),
    *("init", "l2", "protocol", "sitting", "rounds"),
    *("median_ms", "p10_ms", "p90_ms", "gflops", "cublas_ms", "cublas_gflops", "cublaslt_ms", "cublaslt_gflops"),
    *("cutlass_gflops", "ratio_cutlass"),
    *("ratio_cublas", "ratio_best", "ratio_clk", "ceiling_fraction", "ceiling", "unit", "flop_clk_sm", "max_error", "bound"),
    *("status", "reason", "registers", "smem_bytes", "blocks_per_sm", "tile", "waves", "plan", "clock_mhz"),
    *("cublas_clock_mhz", "power_w", "temperature_c", "throttle", "gpu", "sm", "driver", "cuda", "cublas", "commit", "utc"),
    *("sim_warp_instructions", "sim_flops", "sim_global_load_sectors", "sim_global_load_bytes", "sim_global_store_sectors"),
    *("sim_global_store_bytes", "sim_shared_wavefronts", "sim_shared_ideal", "sim_barriers"),
]
CUBLAS = 50_000.0  # GFLOP/s at every shape with sides of at least 2048, less below
PEAK = 65_000.0
TENSOR_PEAK, WGMMA_PEAK = 600_000.0, 900_000.0
SMS, CLOCK = 132, 1980
RATIOS = {
    "01_naive": 0.12,
    "01b_uncoalesced": 0.011,
    "02_smem_tiling": 0.18,
    "03_thread_tile_1d": 0.34,
    "04_thread_tile_2d": 0.52,
    "05_float4": 0.65,
    "06_bank_conflict_free": 0.78,
    "06b_padded": 0.76,
    "07_double_buffer": 0.93,
    "08_warp_tiling": 1.01,
}
TENSOR = ["13_ldmatrix", "14_multistage", "15_block_raster", "16_epilogue"]
WGMMA = "17_wgmma"  # on sm_90a alone, under a ceiling of its own
PREDECESSORS = {"01b": "01", "02": "01", "03": "02", "04": "03", "05": "04", "06": "05", "06b": "06", "07": "06", "08": "07"}
PREDECESSORS |= {"14": "13", "15": "14", "16": "15", "17": "16"}
SQUARES = [256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192]
OTHERS = [
    (4096, 28672, 4096),
    (128, 4096, 4096),
    (1020, 1020, 1020),
    (4097, 4100, 4100),
    (512, 512, 16384),
    (8192, 8192, 32),
]


def stated() -> dict[str, list[dict[str, object]]]:
    """The facts of these rungs, as `ladder --list --json` prints them."""
    rungs = []
    for stem in [*RATIOS, *TENSOR, WGMMA]:
        number, _, name = stem.partition("_")
        own = {"types": ["f32"], "arch": "sm_70", "instruction": "FFMA", "ceilings": {"f32": "fp32_fma"}}
        if stem in TENSOR:
            kinds = ["tf32", "bf16", "f16"]
            own = {
                "types": kinds,
                "arch": "sm_80",
                "instruction": "mma.sync",
                "ceilings": {kind: f"mma_{kind}" for kind in kinds},
            }
        if stem == WGMMA:
            own = {"types": ["bf16"], "arch": "sm_90a", "instruction": "wgmma", "ceilings": {"bf16": "wgmma_bf16"}}
        rung = {"number": number, "name": name, "stem": stem, "idea": f"the idea of {number}"}
        rung |= {
            "predecessor": PREDECESSORS.get(number, ""),
            "kind": "step",
            "layout_b": "row_major",
            "source": f"kernels/{stem}.cu",
        }
        rungs.append(rung | own)
    sizes = {"f32": 4, "tf32": 4, "bf16": 2, "f16": 2}
    types = [{"name": kind, "bytes": size, "result_bytes": {"f32": 4, "same": size}} for kind, size in sizes.items()]
    families = {"square": [[n, n, n] for n in SQUARES], "llm": [OTHERS[0], OTHERS[1]], "tails": [OTHERS[2], OTHERS[3]]}
    return {"types": types, "families": families, "rungs": rungs}


def write_program(root: Path, facts: dict[str, list[dict[str, object]]]) -> None:
    """A stand-in for build/bin/ladder, which states these facts."""
    program = root / "build/bin/ladder"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\n[ "$*" = "--list --json" ] && cat <<"END"\n{json.dumps(facts)}\nEND\n')
    program.chmod(0o755)


def cublas_rate(shape: Shape) -> float:
    """Invented GFLOP/s of cuBLAS: rises with the work until it saturates."""
    work = shape.flop
    return CUBLAS * work / (work + 2e8)


def row(kernel: str, shape: Shape, **changed: object) -> dict[str, object]:
    """One good row; `changed` overrides fields."""
    base = cublas_rate(shape)
    factor = RATIOS[kernel] if min(shape) >= 1024 else RATIOS[kernel] ** 1.3
    rate = base * factor
    cells = dict.fromkeys(HEADER, "")
    cells |= {"kernel": kernel, "type": "f32", "out": "f32", "scales": "none", "m": shape.m, "n": shape.n, "k": shape.k}
    cells |= {
        "alpha": 1,
        "beta": 0,
        "epilogue": "none",
        "layout": "nn",
        "groups": "",
        "ld_pad": 0,
        "init": "normal",
        "l2": "cold",
        "protocol": "rounds",
        "rounds": 21,
        "sitting": 1,
    }
    ms = shape.flop / rate / 1e6
    cells |= {"median_ms": ms, "p10_ms": ms * 0.99, "p90_ms": ms * 1.02, "gflops": rate}
    cells |= {"cublas_ms": shape.flop / base / 1e6, "cublas_gflops": base}
    cells |= {"cublaslt_ms": shape.flop / base / 1.002e6, "cublaslt_gflops": base * 1.002}
    cells |= {"ratio_cublas": rate / base, "ratio_best": rate / base / 1.002, "ratio_clk": rate / base * 0.99}
    cells |= {
        "ceiling": "fp32_fma",
        "ceiling_fraction": rate / PEAK,
        "flop_clk_sm": rate * 1e3 / (SMS * CLOCK),
        "max_error": 1.2e-7,
        "bound": 2.4e-4,
        "status": "ok",
    }
    cells |= {"registers": 128, "smem_bytes": 16384, "blocks_per_sm": 2, "clock_mhz": CLOCK, "power_w": 512.5}
    cells |= {"temperature_c": 51, "throttle": "none", "gpu": GPU, "sm": "90", "driver": "1.2.3", "cuda": "13.0"}
    cells |= {"cublas": "13.1", "commit": "abc1234", "utc": "2001-02-03T04:05:06Z"}
    return cells | changed


def tensor_row(kernel: str, factor: float, shape: Shape) -> dict[str, object]:
    """One good row of BF16, at `factor` of the tensor cores' ceiling."""
    rate = factor * TENSOR_PEAK
    numbers = {"median_ms": shape.flop / rate / 1e6, "gflops": rate, "flop_clk_sm": rate * 1e3 / (SMS * CLOCK)}
    base = {"cublas_gflops": TENSOR_PEAK * 1.2, "ratio_cublas": factor / 1.2, "ratio_clk": factor / 1.21}
    base |= {"type": "bf16", "ceiling": "mma_bf16", "ceiling_fraction": factor}
    if kernel == WGMMA:
        base |= {"ceiling": "wgmma_bf16", "ceiling_fraction": factor * TENSOR_PEAK / WGMMA_PEAK}
    return row("08_warp_tiling", shape) | numbers | base | {"kernel": kernel}


def sittings(of: dict[str, object], ratios: list[float]) -> list[dict[str, object]]:
    """A row in several sittings, in which the clocks, and so time and ratio to cuBLAS, wander."""
    factors = [ratio / float(of["ratio_cublas"]) for ratio in ratios]
    moved = ("gflops", "ratio_cublas", "ratio_best")
    return [
        of | {name: float(of[name]) * f for name in moved} | {"median_ms": float(of["median_ms"]) / f, "sitting": place}
        for place, f in enumerate(factors, 1)
    ]


def all_rows() -> list[dict[str, object]]:
    """Ten kernels over square and other shapes, some waived, as 16-byte rungs do where a row is not a multiple of 4."""
    shapes = [Shape(n, n, n) for n in SQUARES] + [Shape(*sizes) for sizes in OTHERS]
    return [row(kernel, shape) for shape in shapes for kernel in RATIOS]


def waived(kernel: str, shape: Shape, reason: str) -> dict[str, object]:
    """A row of a rung that refused the shape."""
    empty = dict.fromkeys(HEADER[HEADER.index("median_ms") : HEADER.index("status")], "")
    return row(kernel, shape, **empty, status="waived", reason=reason)


def counted(kernel: str, shape: Shape, **changed: object) -> dict[str, object]:
    """A row as the simulator leaves it: counters and no times; traffic falls and instructions fall along the ladder."""
    place = list(RATIOS).index(kernel)
    fmas = shape.flop / 2
    times = HEADER[HEADER.index("rounds") : HEADER.index("max_error")]
    empty = dict.fromkeys([*times, "registers", "blocks_per_sm", "clock_mhz", "power_w", "temperature_c", "throttle"], "")
    ideal = round(fmas / 128) if place > 1 else 0
    counters = {
        "sim_warp_instructions": round(fmas / 32 * (8 - 0.7 * place)),
        "sim_flops": round(shape.flop),
        "sim_global_load_sectors": round(fmas / 32 * (10 - place)),
        "sim_global_load_bytes": round(fmas * (10 - place) / 2),
        "sim_global_store_sectors": shape.m * shape.n // 8,
        "sim_global_store_bytes": shape.m * shape.n * 4,
        "sim_shared_wavefronts": round(ideal * 1.5) if kernel == "05_float4" else ideal,
        "sim_shared_ideal": ideal,
        "sim_barriers": 64 * place,
    }
    own = {"protocol": "check", "gpu": SIMULATOR, "driver": "", "cublas": ""}
    return row(kernel, shape, **empty) | counters | own | changed


def write_simulation(folder: Path, rows: list[dict[str, object]] | None = None) -> Path:
    """A results folder of the simulator: counters at two sizes, the check at others."""
    shapes = [Shape(n, n, n) for n in (256, 512)]
    write_rows(folder / "counts.csv", [counted(k, s) for s in shapes for k in RATIOS] if rows is None else rows)
    write_rows(folder / "check.csv", [counted(k, Shape(15, 17, 19)) for k in RATIOS])
    (folder / "rungs.json").write_text(json.dumps(stated()), encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps({"gpu": SIMULATOR, "host_cpu": "Synthetic CPU"}), encoding="utf-8")
    return folder


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    """Writes a ladder CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_folder(folder: Path, rows: list[dict[str, object]] | None = None) -> Path:
    """A whole results folder: ladder, ceilings, environment, check, steady, and the facts of the rungs."""
    rows = all_rows() if rows is None else rows
    write_rows(folder / "ladder.csv", rows)
    at_4096 = [row(kernel, Shape(4096, 4096, 4096)) for kernel in RATIOS]
    (folder / "rungs.json").write_text(json.dumps(stated()), encoding="utf-8")
    write_rows(folder / "steady.csv", [r | {"protocol": "steady", "clock_mhz": 1900} for r in at_4096])
    write_rows(folder / "check.csv", [r | {"protocol": "check", "median_ms": "", "gflops": ""} for r in at_4096])
    ceilings = [("fp32_fma", PEAK, "GFLOP/s"), ("dram", 3970, "GB/s"), ("l2", 8000, "GB/s"), ("smem", 33000, "GB/s")]
    ceilings += [("fp32_fma_per_clk", PEAK * 1e3 / (SMS * CLOCK), "FLOP/clk/SM"), ("mma_bf16", TENSOR_PEAK, "GFLOP/s")]
    ceilings += [("mma_bf16_per_clk", TENSOR_PEAK * 1e3 / (SMS * CLOCK), "FLOP/clk/SM")]
    ceilings += [("wgmma_bf16", WGMMA_PEAK, "GFLOP/s")]
    ceilings += [("wgmma_bf16_per_clk", WGMMA_PEAK * 1e3 / (SMS * CLOCK), "FLOP/clk/SM")]
    with (folder / "ceilings.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "value", "unit", "gpu", "utc", "commit"])
        writer.writerows([*ceiling, GPU, "2001-02-03T04:00:00Z", "abc1234"] for ceiling in ceilings)
    environment = {"gpu": GPU, "sm": "90", "sm_count": SMS, "driver": "1.2.3", "cuda": "13.0", "cublas": "13.1"}
    environment |= {
        "gpu_id": "01234567",
        "max_sm_clock_mhz": CLOCK,
        "commit": "abc1234",
        "utc": "2001-02-03T04:05:06Z",
        "command": "./run_all.sh",
        "l2_bytes": 52428800,
        "memory_bytes": 85899345920,
        "memory_clock_mhz": 2619,
        "memory_bus_bits": 5120,
    }
    (folder / "environment.json").write_text(json.dumps(environment), encoding="utf-8")
    return folder
