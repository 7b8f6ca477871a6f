"""An RTX 50: rungs compiled for sm_120, with warnings as errors, are right on the described one; Hopper's are waived."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from plots.data.cubin import Kernel, kernels
from tests.checkout import LADDER, ROOT, WAIVED, needs_ptx_for_all, needs_simulator, rows, run

pytestmark = [needs_simulator, needs_ptx_for_all]

COMPILED = {
    "06_bank_conflict_free": "FFMA",
    "14_multistage": "HMMA",
    "16_epilogue": "HMMA",
    "40_fp8_mma": "QMMA",  # which Hopper does not have
}
SHAPES = "129x136x72,64x256x40,1x8x200"  # edges of every tile; whole tiles; less than a tile
LISTED = json.loads(run(LADDER, "--list", "--json").stdout)["rungs"] if LADDER.exists() else []
FACTS = {rung["stem"]: rung for rung in LISTED}
OTHERS = {rung["arch"]: rung["stem"] for rung in reversed(LISTED) if rung["arch"].endswith("a")}  # the first of each


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    """The build of a machine with an RTX 50. Of the checkout's build it takes all but the machine code and PTX of these rungs."""
    folder = tmp_path_factory.mktemp("sm_120")
    take = f"{ROOT}/tests/take_object.sh;{ROOT}"
    launchers = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={take}", f"-DCMAKE_CUDA_COMPILER_LAUNCHER={take}"]
    configure = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_CUDA_ARCHITECTURES=120", "-DLADDER_WITH:PATH="]
    targets = ["simulator", *COMPILED, *OTHERS.values()]
    environment = {**os.environ, "COMPILE": rf"/kernel_({'|'.join(COMPILED)})\.dir/"}
    for command in ([*configure, *launchers], ["cmake", "--build", folder, "--target", *targets]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def machine_code(build):
    """The kernels of a rung."""

    def of(stem: str) -> list[Kernel]:
        (chosen,) = (rung for rung in json.loads((build / "generated/kernels.json").read_text()) if rung["stem"] == stem)
        assert chosen["architectures"] == ["120"]
        return kernels(Path(chosen["object"]))

    return of


@pytest.mark.parametrize(
    ("stem", "kind"), [(stem, kind) for stem in COMPILED for kind in FACTS.get(stem, {"types": []})["types"]]
)
@pytest.mark.parametrize("out", ["f32", "same"])
def test_a_rung_for_sm_120_is_right(stem, kind, out, build, tmp_path):
    file = tmp_path / "rows.csv"
    options = [
        "--type",
        kind,
        "--out",
        out,
        "--alpha",
        "1.5",
        "--beta",
        "0.5",
        "--ld-pad",
        "align",
        "--check-only",
        "--csv",
        file,
    ]
    done = run(build / "bin" / stem, "--sim", "--sim-gpu", "rtx5090", "--shapes", SHAPES, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(file)
    assert [(row["status"], row["sm"]) for row in found] == [("ok", "120")] * len(SHAPES.split(","))


@pytest.mark.parametrize("stem", COMPILED)
def test_it_is_machine_code_for_sm_120(stem, machine_code):
    found = machine_code(stem)
    assert found and {kernel.arch for kernel in found} == {"sm_120"}
    for kernel in found:
        assert (kernel.local_bytes, kernel.stack_bytes) == (0, 0), kernel.symbol
        assert kernel.count(COMPILED[stem]), kernel.symbol
        assert not kernel.count("|".join({"HMMA", "QMMA"} - {COMPILED[stem]})), kernel.symbol


def test_fp8_takes_half_of_the_instructions_of_bf16(machine_code):
    """Chapter 40: 48 QMMA in its loop, no conversion and no FADD, under 170 instructions and 160 registers. One QMMA multiplies
    16 x 8 by 32, where 16 has two HMMA. 16's tile is the one of 128 x 128: both loops multiply 128 bytes along k."""
    for fp8 in machine_code("40_fp8_mma"):
        loop = fp8.usual_round("QMMA", "QMMA|LDGSTS")
        assert loop.count("QMMA") == (96 / 16) * (128 / 8) * (128 / 32) / 8  # of the block, over its warps
        assert not loop.count("F2FP|FADD")
        assert len(loop.instructions) < 170 and fp8.registers < 160
    small = [kernel.usual_round("HMMA", "HMMA|LDGSTS").count("HMMA") for kernel in machine_code("16_epilogue")]
    assert min(small) == (128 / 16) * (128 / 8) * (128 / 32) / 8


@pytest.mark.parametrize("arch", OTHERS)
def test_a_rung_of_another_gpu_is_waived_in_one_line(arch, build):
    done = run(build / "bin" / OTHERS[arch], "--sim", "--sim-gpu", "rtx5090", "64", "64", "64")
    assert done.returncode == WAIVED
    said = [line for line in (done.stdout + done.stderr).splitlines() if "needs" in line]
    assert len(said) == 1 and said[0].endswith(f"needs exactly {arch}, this is sm_120"), said
