"""The variants of bench/variants: each diff fits its rung, no two are the same, and some are right on the simulator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import sweep
from bench.sweep import SWEEPS

ROOT = Path(__file__).parents[2]
LISTED = sorted(path.stem for path in sweep.VARIANTS.glob("*.csv"))
SIMULATED = pytest.mark.skipif(not (ROOT / "build/sim/libcudart.so.13").exists(), reason="the simulator is not built here")


@pytest.mark.parametrize("rung", LISTED)
def test_variants_differ_in_more_than_their_names(rung, tmp_path):
    """Each is made, so each diff applies; each of them belongs to a variant."""
    known, common, texts = SWEEPS[rung].variants, SWEEPS[rung].constants, {}
    for name, one in known.items():
        source = SWEEPS[rung].write(name, tmp_path)
        header = source.with_suffix(".h").read_text()
        assert f'#define TUNE_VARIANT , "{name}"' in header
        if one.changes or common | one.constants != common:  # else it is the rung as written
            texts[name] = source.read_text() + header.replace(f'"{name}"', "")
    assert len(set(texts.values())) == len(texts) and len({one.what for one in known.values()}) == len(known)
    assert {change for one in known.values() for change in one.changes} == {
        path.stem for path in (sweep.VARIANTS / rung).glob("*.diff")
    }


@pytest.mark.parametrize(
    ("rung", "name"), [(rung, name) for rung in LISTED for name, variant in sweep.variants(rung).items() if variant.changes]
)
def test_changed_code_compiles(rung, name, tmp_path):
    """As far as the compiler's front end goes, which reads the host's code, too: in a second."""
    source, arch = SWEEPS[rung].write(name, tmp_path), "compute_75" if rung == "08" else "compute_90a"
    command = [sweep.NVCC, "-std=c++20", f"-gencode=arch={arch},code={arch}", f"-I{ROOT}", "-include", source.with_suffix(".h")]
    command += ["-fdevice-syntax-only", "-ptx", source, "-o", source.with_suffix(".ptx")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@SIMULATED
@pytest.mark.parametrize(
    ("rung", "names", "options"),
    [
        ("08", ["epilogue_of_07", "bk_16"], ["--shapes", "3x5x7,129x260x36"]),
        ("25", ["wait_0", "conflict_free_late_1"], ["--type", "bf16", "--shapes", "72x136x200,300x520x264", "--beta", "0.5"]),
        ("38", ["tile_128x256", "tile_16x64"], ["--shapes", "3x5x7,129x257x33,70x202x264", "--layout", "nn", "--beta", "0.5"]),
        # 16900 rows in one wave, if swapped, else in more: the operand of 12 rows is transposed.
        # Up to K of 511 128x256 copies B as every fourth row.
        (
            "38",
            ["tile_128x256", "tile_64x128"],
            ["--shapes", "129x257x33,16900x12x40,129x257x520", "--layout", "nt", "--beta", "0.5"],
        ),
        ("37", ["one_lane_arrives", "tile_128x64", "tile_16x64"], ["--shapes", "3x5x7,129x257x33,128x512x1048"]),
    ],
)
def test_variants_are_right(rung, names, options):
    arch = "compute_75" if rung == "08" else "compute_90a"
    command = [sys.executable, "bench/sweep.py", rung, "--build-only", "--arch", arch, *names]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0 and "left out" not in built.stdout, built.stdout + built.stderr
    command = [SWEEPS[rung].folder / "ladder", "--sim", "--check-only", "--ld-pad", "align", *options]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/sim")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  ok") == len(names) * (options[options.index("--shapes") + 1].count(",") + 1)


def test_the_kernel_that_is_timed_is_found_by_its_name():
    tile = "gemmINS_10TileConfigILi256ELi64EEE"
    symbols = [f"{tile}LN6ladder4TypeE{type}E{rest}EEvv" for type in (1, 2) for rest in ("fLb1", "fLb0", "6__halfLb0")]
    assert sweep.timed(symbols, "bf16") == f"{tile}LN6ladder4TypeE2EfLb0EEvv"
    assert sweep.timed(symbols[:1], "tf32") == f"{tile}LN6ladder4TypeE1EfLb1EEvv"
    assert sweep.timed(["sgemm"], "f32") == "sgemm", "its name has no type"


def test_what_ptxas_says_is_read():
    said = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1a' for 'sm_90a'
ptxas info    : Function properties for _Z1a
    96 bytes stack frame, 88 bytes spill stores, 92 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 96 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z1b' for 'sm_90a'
ptxas info    : Function properties for _Z1b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 250 registers, used 1 barriers
"""
    assert sweep.built(said) == {"_Z1a": (128, 88), "_Z1b": (250, 0)}


def test_spills_are_told_in_the_table(tmp_path, capsys):
    file = tmp_path / "ladder.csv"
    row = "16_{},4096,0.5,ok,600000,128,147456\n"
    head = "kernel,m,ratio_cublas,status,gflops,registers,smem_bytes\n"
    file.write_text(head + row.format("as_written") + row.format("warps_16_of_64x32"))
    sweep.print_table(sweep.add_spills(file, {"as_written": 0, "warps_16_of_64x32": 88}))
    assert file.read_text().splitlines()[0] == head.strip() + ",spill_bytes"
    assert [line.rpartition(",")[2] for line in file.read_text().splitlines()[1:]] == ["0", "88"]
    assert capsys.readouterr().out.count("88 bytes spilled") == 1
