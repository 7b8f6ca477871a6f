"""Kernels of others that run on a B200, run on the simulator: right or not, and what it reports of them.

usage: python3 -m tests.sim.blackwell_kernels [--learn-cuda FOLDER] [--cutlass FOLDER] [--thunderkittens FOLDER]
                                              [--deepgemm FOLDER] [--seeds N] [--only REGEX] [--simulator FOLDER]
                                              [--timeout SECONDS]

Each folder is a checkout of the repository of that name: gau-nernst/learn-cuda, NVIDIA/cutlass, HazyResearch/ThunderKittens,
deepseek-ai/DeepGEMM with its submodules. Nothing of them is in this repository, and nothing is fetched. The simulator is
taken from build/sim where no folder is named. Prints a table in Markdown; exit status 1 where a kernel is not right.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRIVERS = Path(__file__).parent / "blackwell"
RIGHT = re.compile(r"^ *(Error count: 0|Execution is successful\.|Disposition: Passed)$", re.MULTILINE)
FINDING = re.compile(r"^  (\S+) at .*: \d+ times?$", re.MULTILINE)


@dataclass
class Kernel:
    name: str
    source: Path
    shapes: tuple[str, ...]
    options: list[str] = field(default_factory=list)
    more: list[Path] = field(default_factory=list)
    by_name: bool = False  # the program takes --m=, --n= and --k=

    def arguments(self, shape: str) -> list[str]:
        sizes = shape.split("x")
        return [f"--{n}={size}" for n, size in zip("mnk", sizes, strict=True)] + ["--iterations=1"] if self.by_name else sizes


def learn_cuda(folder: Path) -> list[Kernel]:
    """The eight versions. Of 1a's and 2a's tensor maps, that of B has M rows: M is no less than N."""
    place = folder / "02e_matmul_sm100"
    versions = {"1": "ab", "2": "ab", "3": "", "4": "", "5": "", "6": "", "7": "abc"}
    shapes = ("256x256x256", "512x256x768", "512x512x1024")
    return [
        Kernel(
            f"learn-cuda v{version}{letter}",
            DRIVERS / "learn_cuda.cu",
            shapes,
            [f"-DFUNCTION=matmul_v{version}{letter}", f"-I{DRIVERS}", "-std=c++17"],
            [place / f"matmul_v{version}.cu"],
        )
        for version, letters in versions.items()
        for letter in letters or ("",)
    ]


def cutlass(folder: Path) -> list[Kernel]:
    place = folder / "examples/cute/tutorial/blackwell"
    includes = [f"-I{folder / each}" for each in ("include", "tools/util/include", "examples/common")]
    options = [*includes, "-std=c++17", "-O1", "-DCUTLASS_ARCH_MMA_SM100_SUPPORTED"]
    shapes = ("512x1024x64", "512x1024x256", "1024x1024x320")
    tutorial = [Kernel(f"CUTLASS {source.stem}", source, shapes, options) for source in sorted(place.glob("0*_sm100.cu"))]
    collective = {
        "70_blackwell_gemm/70_blackwell_fp16_gemm": "1000x520x136",
        "72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm": "1000x520x352",
        "72_blackwell_narrow_precision_gemm/72c_blackwell_mixed_mxfp8_bf16_gemm": "1000x520x384",
    }
    sources = {(folder / "examples" / name).with_suffix(".cu"): odd for name, odd in collective.items()}
    gemms = [Kernel(f"CUTLASS {gemm.stem}", gemm, ("512x512x256", odd), options, by_name=True) for gemm, odd in sources.items()]
    return [*tutorial, *gemms]


def thunderkittens(folder: Path) -> list[Kernel]:
    """The last levels of the course; the GEMMs of each format in two configurations, with M, N and K as the tiles have them."""
    gemm = folder / "kernels/gemm"
    place = gemm / "educational_b200"
    options = [f"-I{folder / 'include'}", f"-I{place}", "-std=c++20", "--use_fast_math", "-DNDEBUG", "-DKITTENS_BLACKWELL"]
    configurations = (
        ("bf16", 0, "256, 64, 128, 4, true, 5, 2", ("256x64x128", "768x320x640")),
        ("bf16", 0, "256, 256, 64, 4, false, 4, 8", ("512x256x64", "1536x768x192")),
        ("fp8", 1, "256, 64, 256, 4, true, 5, 2", ("256x64x256", "768x320x1280")),
        ("fp8", 1, "256, 256, 128, 8, false, 4, 8", ("512x256x128", "1536x768x384")),
        ("mxfp8", 2, "128, 5, 4, 12, 2, true", ("256x128x128", "768x640x1152")),
        ("mxfp8", 2, "256, 5, 8, 8, 2, false", ("256x256x128", "768x768x896")),
        ("nvfp4", 3, "128, 5, 4, 12, 2, true", ("256x128x256", "768x640x1792")),
        ("nvfp4", 3, "256, 4, 16, 1, 2, false", ("256x256x256", "768x768x1280")),
    )
    gemms = [
        Kernel(
            f"ThunderKittens {name}_b200, config<{values}>",
            DRIVERS / "thunderkittens_gemm.cu",
            shapes,
            [
                *options,
                f'-DSOURCE="{gemm / f"{name}_b200/{name}_b200_gemm.cu"}"',
                f"-DFORMAT={number}",
                "-DCONFIG=config<{}>".format(values.replace(",", r"\,")),  # nvcc takes commas apart
            ],
        )
        for name, number, values, shapes in configurations
    ]
    nvfp4 = gemm / "nvfp4_b200/nvfp4_b200_gemm.cu"
    quantise = Kernel(
        "ThunderKittens nvfp4_b200, quantisation",
        DRIVERS / "thunderkittens_nvfp4.cu",
        ("128x128", "384x640"),
        [*options, f'-DSOURCE="{nvfp4}"'],
    )
    return [*gemms, quantise] + [
        Kernel(
            f"ThunderKittens {level.stem}",
            DRIVERS / "thunderkittens.cu",
            ("512", "1024"),
            [*options, f'-DLEVEL="{level.name}"'],
        )
        for level in sorted(place.glob("level_0[6-9].cu"))
    ]


def deep_gemm(folder: Path) -> list[Kernel]:
    """A pair of blocks needs an even number of rows of tiles."""
    cutlass = folder / "third-party/cutlass/include"
    options = [f"-I{folder / 'deep_gemm/include'}", f"-I{cutlass}", "-std=c++20", "-O3"]
    source, fp8 = DRIVERS / "deep_gemm.cu", DRIVERS / "deep_gemm_fp8.cu"
    odd = ("256x256x256", "200x136x72")
    return [
        Kernel("DeepGEMM BF16", source, (*odd, "513x392x1000", "1x8x8"), [*options, "-DPAIR=0", "-DTILE_N=128"]),
        Kernel("DeepGEMM BF16, pairs", source, (*odd, "700x392x1000"), [*options, "-DPAIR=1", "-DTILE_N=256"]),
        Kernel("DeepGEMM FP8", fp8, ("256x256x512", "200x136x272", "513x392x1040"), [*options, "-DFP4=0"]),
        Kernel("DeepGEMM FP8 x FP4", fp8, ("256x256x512", "200x136x384", "513x392x1152"), [*options, "-DFP4=1"]),
        Kernel("DeepGEMM FP4 logits", DRIVERS / "deep_gemm_logits.cu", ("8x512x128", "13x701x128"), options),
    ]


def build(kernel: Kernel, program: Path, simulator: Path) -> str:
    """What the compiler says where it fails; "" where it does not."""
    command = ["nvcc", "-gencode", "arch=compute_100a,code=compute_100a", "-cudart", "shared", "-lineinfo", "-w"]
    command += ["--expt-relaxed-constexpr", "--expt-extended-lambda", *kernel.options, str(kernel.source)]
    command += [*map(str, kernel.more), "-o", str(program), f"-L{simulator}", "-l:libcuda.so.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def outcome(program: Path, arguments: list[str], seed: int, simulator: Path, timeout: float) -> tuple[str, set[str]]:
    """ "right", or what is wrong in a line; and the checks that have found something."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(simulator),
        "GEMM_LADDER_SIM_GPU": "b200",
        "GEMM_LADDER_SIM_SEED": str(seed),
        "GEMM_LADDER_SIM_CHECKS": "phase=warn",
    }
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"no end within {timeout:.0f} s", set()
    said = done.stdout + done.stderr
    findings = set(FINDING.findall(said))
    if RIGHT.search(done.stdout) and done.returncode == 0:
        return "right", findings
    error = re.search(r"^simulator: (?!warning)(.*)$", said, re.MULTILINE)
    return error.group(1) if error else f"wrong (exit status {done.returncode})", findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    repositories = {"learn-cuda": learn_cuda, "cutlass": cutlass, "thunderkittens": thunderkittens, "deepgemm": deep_gemm}
    for name in repositories:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--simulator", type=Path, default=ROOT / "build/sim")
    parser.add_argument("--timeout", type=float, default=600)
    given = parser.parse_args()
    kernels = []
    for name, of in repositories.items():
        if folder := getattr(given, name.replace("-", "_")):
            found = of(folder.resolve())
            if missing := [str(k.source) for k in found if not k.source.exists()] or ([] if found else [str(folder)]):
                parser.error(f"--{name}: nothing at {missing[0]}")
            kernels += [kernel for kernel in found if given.only.search(kernel.name)]
    if not kernels:
        parser.error("no kernel: name a folder")
    simulator, bad = given.simulator.resolve(), 0
    print(f"| kernel | shapes | runs of {given.seeds} seeds | warnings |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for i, kernel in enumerate(kernels):
            program = Path(folder) / str(i)
            if said := build(kernel, program, simulator):
                bad += 1
                print(f"| {kernel.name} | | does not compile: {said.splitlines()[0]} | |", flush=True)
                continue
            results, warnings = [], set()
            for shape in kernel.shapes:
                for seed in range(given.seeds):
                    result, findings = outcome(program, kernel.arguments(shape), seed, simulator, given.timeout)
                    results.append(result if result == "right" else f"{shape}, seed {seed}: {result}")
                    warnings |= findings
            wrong = [result for result in results if result != "right"]
            bad += bool(wrong)
            told = wrong[0] if wrong else "all right"
            print(f"| {kernel.name} | {', '.join(kernel.shapes)} | {told} | {', '.join(sorted(warnings))} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
