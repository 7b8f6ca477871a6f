#!/usr/bin/env python3
"""Variants of a rung, timed side by side in one process beside cuBLAS.

usage: python3 bench/sweep.py RUNG [--type bf16] [--shapes SHAPES] [--build-only] [--built] [--arch sm_90a] [NAME...]
(after ./run_all.sh list, which builds)

bench/variants/RUNG.csv lists them: what a variant changes, the constants that it sets (TUNABLE in the rung), and its changes of
code, diffs in bench/variants/RUNG/. All become rungs of one program, which checks and times them in this order. A variant that
spills is timed, too, and says so. `again` is what `as_written` gets a second time.
Equal-looking variants differ by some per cent because the compiler orders and colours each of them anew: compare the machine
code, too, before a difference is given a reason.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # as a script it finds only its neighbours

from plots.data import rungs
from plots.data.gpu import has_gpu
from plots.data.sweeps import SPILLS, VARIANTS, Variant, variants

ROOT = Path(__file__).resolve().parents[1]
NVCC = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"

Built = dict[str, tuple[int, int]]  # mangled name of a kernel -> registers per thread, bytes of its spill stores


@dataclass(frozen=True)
class Sweep:
    """One rung, and how its variants are timed unless the command line says otherwise."""

    rung: str  # its number
    shapes: str = ""  # as the harness has them
    protocol: str = "rounds"
    constants: dict[str, str] = field(default_factory=dict)  # of all variants
    options: tuple[str, ...] = ()  # more for the harness

    @property
    def name(self) -> str:
        return f"sweep_{self.rung}"

    @property
    def folder(self) -> Path:
        return ROOT / "build" / self.name

    @cached_property
    def facts(self) -> rungs.Rung:
        return rungs.of_checkout().find(self.rung)

    @property
    def configurations(self) -> dict[str, dict[str, float]]:
        """The numbers of each configuration of 37."""
        return self.facts.constants

    @cached_property
    def variants(self) -> dict[str, Variant]:
        if not (VARIANTS / f"{self.rung}.csv").exists():
            return {"forced": Variant("its plan")}
        return variants(self.rung)

    def write(self, name: str, folder: Path) -> Path:
        """Writes a variant's source, and beside it the header with its constants; the source's path."""
        variant = self.variants[name]
        source = folder / f"{name}.cu"
        written = ROOT / self.facts.source
        with (
            tempfile.TemporaryDirectory() as folder_of_diffs
        ):  # which name the rung's file; no repository, so git takes plain files
            changed = Path(folder_of_diffs, written.name)
            shutil.copyfile(written, changed)
            for change in variant.changes:
                command = ["git", "apply", "-p0", VARIANTS / self.rung / f"{change}.diff"]
                environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(changed.parents[1])}
                subprocess.run(command, cwd=folder_of_diffs, env=environment, check=True)
            shutil.copyfile(changed, source)
        constants = self.constants | variant.constants | {"VARIANT": f'"{name}"'}
        text = "".join(f"#define TUNE_{constant} , {value}\n" for constant, value in constants.items())
        source.with_suffix(".h").write_text(text, encoding="utf-8")
        return source

    def compiled(self, arch: str, name: str) -> Built | str:
        """What became of its kernels, or what the compiler says where it cannot be compiled."""
        source = self.write(name, self.folder)
        number = arch.removeprefix("sm_")
        # -arch=sm_90a alone makes PTX for sm_90, too, which has no wgmma.
        target = "-arch=native" if arch == "native" else f"-gencode=arch=compute_{number},code=sm_{number}"
        if arch.startswith("compute_"):  # PTX alone, for the simulator
            target = f"-gencode=arch={arch},code={arch}"
        options = ["-std=c++20", "-O3", target, f"-I{ROOT}", "-include", source.with_suffix(".h"), "-Xptxas=-v"]
        command = [NVCC, *options, "-c", source, "-o", source.with_suffix(".o")]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stderr if done.returncode else built(done.stderr)

    def main(self, arguments: list[str]) -> int:
        """Its exit status."""
        options = self._options(arguments)
        noted = self.folder / "built.json"  # bytes spilled by the variants that are timed, in their order
        if not options.built:
            self.folder.mkdir(exist_ok=True)
            noted.write_text(json.dumps(self.build(options)), encoding="utf-8")
        if options.build_only:
            return 0
        if not has_gpu():
            print("sweep.py: needs a GPU, and nvidia-smi lists none", file=sys.stderr)
            return 77
        table = self.folder / "ladder.csv"
        table.unlink(missing_ok=True)
        how = ["--type", options.type, "--shapes", options.shapes, *self.options]
        # So that the first variant meets a GPU as warm as the others do. It is not all: even then the first variant of a sweep
        # got a clock 3.6 % above that of the same kernel timed last, at the same power. FLOP per clock do not move with that.
        subprocess.run(
            [self.folder / "warm_up", "--type", options.type, "--shapes", "4096x4096x4096", "--protocol", "steady"],
            stdout=subprocess.DEVNULL,
        )
        command = [self.folder / "ladder", *how, "--protocol", options.protocol, "--csv", table]
        status = subprocess.run(command).returncode
        print_table(add_spills(table, json.loads(noted.read_text(encoding="utf-8"))))
        return status

    def build(self, options: argparse.Namespace) -> dict[str, int]:
        """Compiles and links the variants; the bytes that each spills, of those that can be timed."""
        names = options.names or list(self.variants)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = dict(zip(names, pool.map(lambda name: self.compiled(options.arch, name), names), strict=True))
        spills = {}
        for name, result in results.items():
            if isinstance(result, str):
                print(f"{name} is left out: {result}")
                continue
            registers, spilled = result[timed(list(result), options.type)] if result else (0, 0)  # none of PTX
            spills[name] = spilled
            if options.build_only:
                print(f"{name:32} {registers:3} registers, {spilled} bytes spilled")
        simulated = options.arch.startswith("compute_")
        self._link(list(spills), "ladder", simulated)
        self._link(list(spills)[:1], "warm_up", simulated)
        return spills

    def _options(self, arguments: list[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=f"sweep.py {self.rung}", description=__doc__.partition("\n")[0])
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"variants: {' '.join(self.variants)}")
        own = self.facts.arch if self.facts.arch.endswith("a") else "native"
        parser.add_argument("--arch", default=own, help="as nvcc has it, such as sm_90a; compute_90a: PTX, for the simulator")
        parser.add_argument("--shapes", default=self.shapes, help="as the harness has them")
        parser.add_argument("--type", default=self.facts.types[0], choices=self.facts.types, help="of the operands")
        parser.add_argument("--protocol", default=self.protocol, choices=["rounds", "steady"])
        parser.add_argument("--build-only", action="store_true", help="needs no GPU, but then --arch")
        parser.add_argument("--built", action="store_true", help="time what --build-only built, on whichever machine")
        options = parser.parse_args(arguments)
        if unknown := set(options.names) - set(self.variants):
            parser.error(f"no such variant: {' '.join(sorted(unknown))}")
        if options.build_only and options.arch == "native" and not has_gpu():
            parser.error("--build-only where there is no GPU takes --arch, such as --arch sm_90a")
        needed = self.folder / "built.json" if options.built else ROOT / "build/libharness.a"
        if not needed.exists():
            parser.error(f"{needed.relative_to(ROOT)} is not built: {'--build-only' if options.built else './run_all.sh list'}")
        return options

    def _link(self, names: list[str], program: str, simulated: bool = False) -> None:
        """The program of these variants, its rungs in this order. Not by nvcc, which hands no path with a space to the linker."""
        toolkit = Path(NVCC).resolve().parents[1]
        objects = [self.folder / f"{name}.o" for name in names]
        sources = [ROOT / "bench/main.cpp", *objects, ROOT / "build/libharness.a"]
        found_in = [ROOT / "build/sim"] * simulated + [toolkit / "lib64"]
        libraries = ["-lcublas", "-lcublasLt", "-lcudart", "-ldl", *(f"-Wl,-rpath,{path}" for path in found_in)]
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT}", f"-I{toolkit}/include"]
        subprocess.run([*compiler, *sources, f"-L{toolkit}/lib64", *libraries, "-o", self.folder / program], check=True)


def timed(symbols: list[str], type: str) -> str:
    """The kernel with FP32 results for this type, where names say the type; the first of several, which wants whole k tiles."""
    place = list(rungs.of_checkout().types).index(type)  # its value in enum class Type
    return min([symbol for symbol in symbols if f"TypeE{place}Ef" in symbol] or symbols)


def built(said: str) -> Built:
    """Registers and spills of each kernel, from what `ptxas -v` said."""
    pattern = r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
    return {symbol: (int(registers), int(spilled)) for symbol, spilled, registers in re.findall(pattern, said, re.DOTALL)}


def add_spills(table: Path, spills: dict[str, int]) -> list[dict[str, str]]:
    """Adds a column of spills to the harness's CSV; its rows."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row[SPILLS] = str(spills[row["kernel"].partition("_")[2]])
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def print_table(rows: list[dict[str, str]]) -> None:
    for row in sorted(rows, key=lambda row: (row["m"], -float(row["ratio_cublas"] or 0))):
        rate = f"{row['gflops']:>9} GFLOP/s {row['ratio_cublas']:>8} of cuBLAS"
        made = f"{row['registers']:>3} registers {row['smem_bytes']:>6} bytes shared"
        spilled = f", {row[SPILLS]} bytes spilled" if row[SPILLS] != "0" else ""
        print(f"{row['m']:>6} {row['kernel']:32} {row['status']:7} {rate} {made}{spilled}")


SWEEPS = {
    sweep.rung: sweep
    for sweep in (
        Sweep("08", "4096x4096x4096,8192x8192x8192"),
        Sweep("16", "4096x4096x4096", "steady", {"SMALL_BM": "Large::BM", "SMALL_WN": "Large::WN"}),  # one tile alone
        Sweep("25", "4096x4096x4096,8192x8192x8192"),
        Sweep("27", "bench/shapes/map.txt", options=("--out", "same", "--rounds", "9", "--check", "sample")),
        Sweep("29", "1024x1024x1024,1x4096x4096,2048x2048x2048", options=("--out", "same")),
        Sweep("30", "256x256x65536,512x512x16384,128x4096x14336", options=("--out", "same")),
        Sweep("32", "1544x1528x3080,1280x1280x1280", options=("--out", "same")),
        Sweep(
            "37",
            "4096x4096x4096,2048x2048x2048",
            constants={"COMPILED": "(Tile::BM==128&&Tile::BN==256)", "FEW_ROWS": "0"},
        ),
        Sweep("38", "4096x4096x4096,2048x4096x4096,1024x4096x4096,1024x1024x1024", options=("--layout", "nt")),
        Sweep("44", "8192x4096x7168", options=("--out", "same", "--groups", "64", "--group-rows", "random")),
        Sweep(
            "46",
            "8192x4096x7168",
            options=("--out", "same", "--scales", "blocks", "--groups", "64", "--group-rows", "random"),
        ),
    )
}

if __name__ == "__main__":
    if len(sys.argv) == 1 or sys.argv[1] not in SWEEPS:
        sys.exit(f"{__doc__}\nRUNG is one of {', '.join(SWEEPS)}")
    sys.exit(SWEEPS[sys.argv[1]].main(sys.argv[2:]))
