"""What the sweeps share: variants of a rung by text replacement, built, then checked and timed in one process.

All variants become rungs of one program, which times them beside cuBLAS in the order in which they are listed.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plots.data import rungs
from plots.data.gpu import has_gpu
from plots.data.sweeps import SPILLS

ROOT = Path(__file__).resolve().parents[1]

Change = tuple[str, str]  # a piece of the source, everywhere in it, and what replaces it
Built = dict[str, tuple[int, int]]  # mangled name of a kernel -> registers per thread, bytes of its spill stores


class Variant(NamedTuple):
    what: str  # what it changes, for the chapter's table
    changes: list[Change]


@dataclass(frozen=True)
class Sweep:
    """One rung, its variants, and how they are timed unless the command line says otherwise."""

    stem: str  # "08_warp_tiling"
    variants: dict[str, list[Change]]
    shapes: str  # as the harness has them
    protocol: str
    timed: Callable[[list[str], str], str] = lambda symbols, type: symbols[0]  # the kernel that is timed for a type
    leave_out_spills: bool = False
    options: tuple[str, ...] = ()  # more for the harness
    what: dict[str, str] = field(default_factory=dict)  # what each variant changes, where the chapter has a table of them

    @property
    def name(self) -> str:
        return f"sweep_{self.stem.partition('_')[0]}"

    @property
    def folder(self) -> Path:
        return ROOT / "build" / self.name

    @property
    def source(self) -> Path:
        return ROOT / f"kernels/{self.stem}.cu"

    @property
    def arch(self) -> str:
        """The least architecture that the rung states, or the only one."""
        return rungs.of_checkout().rungs[self.stem].arch

    def varied(self, name: str) -> str:
        """The source of a variant."""
        source = self.source
        text = source.read_text()
        named = self.stem.partition("_")[2]
        for old, new in [*self.variants[name], (f'.name = "{named}"', f'.name = "{name}"')]:
            if old not in text:
                sys.exit(f"{self.name}: {name} replaces a line that {source.name} does not have: {old}")
            text = text.replace(old, new)
        return text

    def compiled(self, nvcc: str, arch: str, name: str) -> Built | str:
        """What became of its kernels, or what the compiler says where it cannot be compiled."""
        source = self.folder / f"{name}.cu"
        source.write_text(self.varied(name))
        number = arch.removeprefix("sm_")
        # -arch=sm_90a alone makes PTX for sm_90, too, which has no wgmma.
        target = "-arch=native" if arch == "native" else f"-gencode=arch=compute_{number},code=sm_{number}"
        if arch.startswith("compute_"):  # PTX alone, for the simulator
            target = f"-gencode=arch={arch},code={arch}"
        options = ["-std=c++20", "-O3", target, f"-I{ROOT}", "-Xptxas=-v"]
        command = [nvcc, *options, "-c", source, "-o", source.with_suffix(".o")]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stderr if done.returncode else built(done.stderr)

    @property
    def types(self) -> tuple[str, ...]:
        """Those that the rung computes, the first one the default."""
        return rungs.of_checkout().rungs[self.stem].types

    def main(self, purpose: str) -> int:
        """The command line of a sweep; its exit status. `--list` alone prints what the variants change, as JSON."""
        if sys.argv[1:] == ["--list"]:
            print(json.dumps(self.what))
            return 0
        options = self._options(purpose)
        noted = self.folder / "built.json"  # bytes spilled by the variants that are timed, in their order
        if not options.built:
            self.folder.mkdir(exist_ok=True)
            noted.write_text(json.dumps(self.build(options)), encoding="utf-8")
        if options.build_only:
            return 0
        if not has_gpu():
            print(f"{self.name}.py: needs a GPU, and nvidia-smi lists none", file=sys.stderr)
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
        nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = dict(zip(names, pool.map(lambda name: self.compiled(nvcc, options.arch, name), names), strict=True))
        spills = {}
        for name, result in results.items():
            if isinstance(result, str):
                print(f"{name} is left out: {result}")
                continue
            registers, spilled = result[self.timed(list(result), options.type)] if result else (0, 0)  # none of PTX
            if spilled and self.leave_out_spills:
                print(f"{name} is left out: spills")
                continue
            spills[name] = spilled
            if options.build_only:
                print(f"{name:32} {registers:3} registers, {spilled} bytes spilled")
        simulated = options.arch.startswith("compute_")
        self._link(nvcc, list(spills), "ladder", simulated)
        self._link(nvcc, list(spills)[:1], "warm_up", simulated)
        return spills

    def _options(self, purpose: str) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=purpose)
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"variants: {' '.join(self.variants)}")
        own = self.arch if self.arch.endswith("a") else "native"
        parser.add_argument("--arch", default=own, help="as nvcc has it, such as sm_90a; compute_90a: PTX, for the simulator")
        parser.add_argument("--shapes", default=self.shapes, help="as the harness has them")
        parser.add_argument("--type", default=self.types[0], choices=self.types, help="of the operands")
        parser.add_argument("--protocol", default=self.protocol, choices=["rounds", "steady"])
        parser.add_argument("--build-only", action="store_true", help="needs no GPU, but then --arch")
        parser.add_argument("--built", action="store_true", help="time what --build-only built, on whichever machine")
        options = parser.parse_args()
        if unknown := set(options.names) - set(self.variants):
            parser.error(f"no such variant: {' '.join(sorted(unknown))}")
        if options.build_only and options.arch == "native" and not has_gpu():
            parser.error("--build-only where there is no GPU takes --arch, such as --arch sm_90a")
        needed = self.folder / "built.json" if options.built else ROOT / "build/libharness.a"
        if not needed.exists():
            parser.error(f"{needed.relative_to(ROOT)} is not built: {'--build-only' if options.built else './run_all.sh list'}")
        return options

    def _link(self, nvcc: str, names: list[str], program: str, simulated: bool = False) -> None:
        """The program of these variants, its rungs in this order. Not by nvcc, which hands no path with a space to the linker."""
        toolkit = Path(nvcc).resolve().parents[1]
        objects = [self.folder / f"{name}.o" for name in names]
        sources = [ROOT / "bench/main.cpp", *objects, ROOT / "build/libharness.a"]
        found_in = [ROOT / "build/sim"] * simulated + [toolkit / "lib64"]
        libraries = ["-lcublas", "-lcublasLt", "-lcudart", "-ldl", *(f"-Wl,-rpath,{path}" for path in found_in)]
        compiler = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT}", f"-I{toolkit}/include"]
        subprocess.run([*compiler, *sources, f"-L{toolkit}/lib64", *libraries, "-o", self.folder / program], check=True)


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
