"""The table of chapter 00, "Which GPU has what": its instructions against ptxas, its limits against those of the described GPUs,
and the rungs that run."""

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from plots.data.cubin import SM_LIMITS, kernels, reserved_shared_bytes, sm_number
from tests.checkout import LADDER, ROOT, needs_ptx_for_all, needs_simulator, rows, run

PAGE = (ROOT / "docs/00_gpu.md").read_text(encoding="utf-8")
FOUND = Path(os.environ.get("CUDACXX", "/usr/local/cuda/bin/nvcc")).with_name("ptxas")
PTXAS = str(FOUND) if FOUND.exists() else "ptxas"
NONE, YES, AS_FP16 = "–", "yes", "as FP16"
DESCRIBED = {"sm_75": "t4", "sm_80": "a100", "sm_89": "rtx4090", "sm_90a": "h200", "sm_100a": "b200", "sm_120": "rtx5090"}

LIMITS = ("shared memory per block, KB", "resident warps per SM")

PROGRAM = """.version {version}
.target {target}
.address_size 64
.visible .entry kernel(.param .u64 p) {{
  .shared .align 1024 .b8 smem[1024];
  .reg .b16 id;
  .reg .b32 s, scale, a<4>, b<2>;
  .reg .f32 d<4>;
  .reg .b64 g;
  ld.param.u64 g, [p];
  mov.u32 s, smem;
  mov.b16 id, 0;
  ld.global.u32 scale, [g];
  ld.global.v4.u32 {{a0, a1, a2, a3}}, [g + 16];
  ld.global.v2.u32 {{b0, b1}}, [g + 32];
  ld.global.v4.f32 {{d0, d1, d2, d3}}, [g + 48];
  {body}
  st.global.v4.f32 [g + 48], {{d0, d1, d2, d3}};
  ret;
}}
"""
D, A, B, SCALE = "{d0, d1, d2, d3}", "{a0, a1, a2, a3}", "{b0, b1}", "scale, {id, id}"
BLOCK = "f32.e2m1.e2m1.f32"
TMA_COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g, {a0, a1}], [s + 512];"
# By the row's first words: the instructions that an architecture of the row has, all or none.
INSTRUCTIONS = {
    "`cp.async`": ["cp.async.cg.shared.global [s], [g], 16;"],
    "TMA, clusters": [TMA_COPY, "barrier.cluster.arrive.aligned;", "mapa.shared::cluster.u32 s, s, 1;"],
    "`mma.sync`, FP16": [f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {D}, {{a0, a1}}, {{b0}}, {D};"],
    "`mma.sync`, BF16 and TF32": [
        f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {D}, {A}, {B}, {D};",
        f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {D}, {A}, {B}, {D};",
    ],
    "`mma.sync`, FP8": [
        f"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {D}, {A}, {B}, {D};",
        f"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {D}, {A}, {B}, {D};",
    ],
    "`mma.sync`, FP4, block scales": [
        f"mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e2m1.f32 {D}, {A}, {B}, {D};",
        f"mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.{BLOCK}.ue8m0 {D}, {A}, {B}, {D}, {SCALE}, {SCALE};",
        f"mma.sync.aligned.kind::mxf4.block_scale.m16n8k64.row.col.{BLOCK}.ue8m0 {D}, {A}, {B}, {D}, {SCALE}, {SCALE};",
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col."
        f"{BLOCK}.ue4m3 {D}, {A}, {B}, {D}, {SCALE}, {SCALE};",
    ],
    "`wgmma`": ["wgmma.fence.sync.aligned;"],
    "`tcgen05`, tensor memory": ["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;"],
}


def cells(line: str) -> list[str]:
    """Of a row, without links."""
    return [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell.strip()) for cell in line.strip().strip("|").split("|")]


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, str]]:
    """By a row's first words, the cell of each architecture."""
    section = PAGE[PAGE.index("## Which GPU has what") :]
    rows = [cells(line) for line in section[: section.index("\n## ")].splitlines() if line.startswith("|")]
    (architectures,) = (row[1:] for row in rows if row[0] == "architecture")
    return {row[0]: dict(zip(architectures, row[1:], strict=True)) for row in rows[2:]}


@cache
def release() -> tuple[int, int]:
    said = subprocess.run([PTXAS, "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(map(int, re.search(r"release (\d+)\.(\d+)", said).groups()))


def is_known(architecture: str) -> bool:
    """Whether this ptxas assembles for it: that of CUDA 13 no more for Volta."""
    said = subprocess.run([PTXAS, "-arch", architecture, "--version"], capture_output=True, text=True)
    return said.returncode == 0


def assembled(body: str, target: str, folder: Path) -> Path | None:
    """The machine code of this PTX, or None where ptxas says that the target does not have it. Any other error fails."""
    source, code = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(PROGRAM.format(version="9.0" if release() >= (13, 0) else "8.7", target=target, body=body))
    done = subprocess.run([PTXAS, "-arch", target, source, "-o", code], capture_output=True, text=True)
    if done.returncode == 0:
        return code
    said = done.stdout + done.stderr
    assert re.search(r"not supported on .target|requires .target|Not a member|cannot be compiled to", said), said
    return None


def has_all(instructions: list[str], target: str, folder: Path) -> bool:
    had = {assembled(body, target, folder) is not None for body in instructions}
    assert len(had) == 1, f"{target} has some of them"
    return had.pop()


def counted(code: Path) -> dict[str, int]:
    """Of these instructions."""
    sass = disassembled(code)
    return {name: len(re.findall(rf"\s{name}[. ]", sass)) for name in ("QMMA", "HMMA", "F2FP", "FADD")}


def disassembled(code: Path) -> str:
    return subprocess.run(["cuobjdump", "--dump-sass", code], check=True, capture_output=True, text=True).stdout


def test_every_row_is_looked_at(table):
    assert set(table) == {"architecture", *LIMITS, *INSTRUCTIONS, "rungs that run"}


@pytest.mark.parametrize("row", INSTRUCTIONS)
def test_instructions_are_those_that_ptxas_takes(row, table, tmp_path):
    if release() < (12, 8):
        pytest.skip("CUDA before 12.8 does not know all of these architectures")
    for architecture, cell in table[row].items():
        if not is_known(architecture):
            continue
        if re.fullmatch(r"sm_\d+a", cell):  # in code for this one alone
            assert not has_all(INSTRUCTIONS[row], architecture, tmp_path), architecture
            assert cell.startswith(architecture) and has_all(INSTRUCTIONS[row], cell, tmp_path)
        else:
            assert has_all(INSTRUCTIONS[row], architecture, tmp_path) == (cell != NONE), architecture


@pytest.mark.parametrize("row", ["`mma.sync`, FP16", "`mma.sync`, BF16 and TF32"])
def test_16_bits_and_tf32_are_one_hmma_everywhere(row, table, tmp_path):
    for architecture, cell in table[row].items():
        for body in INSTRUCTIONS[row] if cell == YES and is_known(architecture) else []:
            assert counted(assembled(body, architecture, tmp_path))["HMMA"] == 1, architecture


def test_fp8_is_one_instruction_or_made_of_fp16(table, tmp_path):
    """Chapters 00 and 40: QMMA, or two HMMA of converted operands."""
    if release() < (12, 8):
        pytest.skip("CUDA before 12.8 does not know all of these architectures")
    seen = set()
    for architecture, cell in table["`mma.sync`, FP8"].items():
        if cell == NONE:
            continue
        for body in INSTRUCTIONS["`mma.sync`, FP8"]:
            code = assembled(body, architecture, tmp_path)
            native = {"QMMA": 1, "HMMA": 0, "F2FP": 0, "FADD": 0}
            converted = {"QMMA": 0, "HMMA": 2, "F2FP": 2 * (4 + 2), "FADD": 4}  # both halves of six words
            assert counted(code) == {YES: native, AS_FP16: converted}[cell], architecture
        seen.add(cell)
    assert seen == {YES, AS_FP16}


def test_40_has_half_of_the_instructions_on_an_rtx_40(tmp_path):
    """Chapter 40, of sm_89; test_sm_120.py has the same of sm_120."""
    code = tmp_path / "40.o"
    nvcc = os.environ.get("CUDACXX", "nvcc")
    options = ["-std=c++20", "-O3", f"-I{ROOT}", "--generate-code=arch=compute_89,code=sm_89"]
    subprocess.run([nvcc, *options, "-c", ROOT / "kernels/40_fp8_mma.cu", "-o", code], check=True)
    for kernel in kernels(code):
        loop = kernel.usual_round("QMMA", "QMMA|LDGSTS")
        assert loop.count("QMMA") == 48 and not loop.count("HMMA|F2FP|FADD")
        assert len(loop.instructions) < 170 and kernel.registers < 160


def test_a_copy_to_other_blocks_is_a_call_on_an_rtx_50(tmp_path):
    """What the page says of multicast: an instruction on Hopper and B200, and a routine of the system's on sm_120."""
    if release() < (12, 8):
        pytest.skip("CUDA before 12.8 does not know all of these architectures")
    multicast = TMA_COPY.replace("bytes [", "bytes.multicast::cluster [").replace("];", "], id;")
    called = {}
    for target in ("sm_90a", "sm_100a", "sm_120", "sm_120a"):
        sass = [disassembled(assembled(body, target, tmp_path)) for body in (TMA_COPY, multicast)]
        called[target] = [("UTMALDG" in text, "CALL" in text) for text in sass]
    one_instruction = [(True, False)] * 2
    routine = [(True, True), (False, True)]  # without multicast it is called for the shared memory of another block alone
    assert called == {"sm_90a": one_instruction, "sm_100a": one_instruction, "sm_120": routine, "sm_120a": routine}


def test_limits_are_those_that_occupancy_is_computed_from(table):
    """Of RTX 30, sm_86, in brackets beside those of sm_80."""
    for architecture in table["architecture"]:
        of = [sm_number(architecture), *[86] * (architecture == "sm_80")]
        per_block, warps = (list(map(int, re.findall(r"\d+", table[row][architecture]))) for row in LIMITS)
        assert [1024 * kib for kib in per_block] == [SM_LIMITS[sm].shared_bytes - reserved_shared_bytes(sm) for sm in of]
        assert [32 * number for number in warps] == [SM_LIMITS[sm].threads for sm in of]


@needs_simulator
@pytest.mark.parametrize(("architecture", "gpu"), DESCRIBED.items())
def test_described_gpus_have_this_shared_memory(architecture, gpu, table, tmp_path):
    file = tmp_path / "environment.json"
    done = run(LADDER, "--sim", "--sim-gpu", gpu, "--kernels", "01", "--check-only", "--environment", file, "8", "8", "8")
    assert done.returncode == 0, done.stderr
    described = json.loads(file.read_text())
    assert described["sm"] == sm_number(architecture)
    assert described["smem_block_bytes"] == int(table["shared memory per block, KB"][architecture].split()[0]) * 1024


def test_rungs_are_those_that_run(table):
    facts = json.loads(run(LADDER, "--list", "--json").stdout)["rungs"]
    arch = {rung["number"]: rung["arch"] for rung in facts if Path(rung["source"]).parent.name == "kernels"}
    for architecture, cell in table["rungs that run"].items():
        least = int(re.search(r"\d+", architecture)[0])
        stated = {number for part in cell.split(", ") for number in numbers(part, arch)}
        running = {number for number, needs in arch.items() if needs == architecture}
        running |= {number for number, needs in arch.items() if not needs.endswith("a") and int(needs[3:]) <= least}
        assert stated == running, architecture


@needs_simulator
@needs_ptx_for_all
@pytest.mark.parametrize("gpu", ["rtx4090", "rtx5090"])
def test_one_rung_needs_more_than_99_kb(gpu, tmp_path):
    """By the page, the rung without a smaller tile; all others of its types run."""
    stated = re.findall(r"; (\w+) has none, and needs (\d+) KB", PAGE)
    file = tmp_path / "rows.csv"
    run(LADDER, "--sim", "--sim-gpu", gpu, "--type", "f16", "--check-only", "--ld-pad", "align", "--csv", file, "64", "64", "64")
    reasons = {row["kernel"].partition("_")[0]: row["reason"] for row in rows(file) if row["status"] == "waived"}
    lacking = {number: re.search(r"(\d+) bytes of shared memory", reason) for number, reason in reasons.items()}
    assert [(number, str(int(found[1]) // 1024)) for number, found in lacking.items() if found] == stated


def numbers(text: str, arch: dict[str, str]) -> list[str]:
    """Of "17f", "01–08" (with all letters in between and of 08) or "those for sm_90a"."""
    if text.startswith("those for "):
        return [number for number, needs in arch.items() if needs == text.removeprefix("those for ")]
    first, _, last = text.partition("–")
    if not last:
        return [text] if text in arch else []
    return [number for number in arch if first <= number <= (last if last[-1].isalpha() else f"{last}z")]
