"""What `ceilings` holds for the tensor cores: loops that multiply, also in a build without a GPU that is carried to one."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CEILINGS = Path(__file__).parents[2] / "build/bin/ceilings"


@pytest.mark.skipif(not shutil.which("cuobjdump"), reason="no cuobjdump here")
@pytest.mark.skipif(not CEILINGS.exists(), reason="build/bin/ceilings is not built")
@pytest.mark.parametrize(
    ("instruction", "least"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16", 80),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16", 80),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32", 80),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3", 89),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3", 89),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 90),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", 90),
        ("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", 90),
        ("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", 90),
        ("wgmma.mma_async.sync.aligned.m64n256k32.f32.e5m2.e4m3", 90),
    ],
)
def test_the_loops_of_the_tensor_cores_multiply(instruction, least):
    dump = subprocess.run(["cuobjdump", "--dump-ptx", str(CEILINGS)], check=True, capture_output=True, text=True).stdout
    code = {
        int(sm): text
        for sm, text in re.findall(r"\.target sm_(\d+)a?\n(.*?)(?=\.target|\Z)", dump, flags=re.DOTALL)
        if "mma_loop" in text
    }
    assert any(sm >= least for sm in code), "no such code for GPUs that have the instruction"
    assert all(instruction in text for sm, text in code.items() if sm >= least)
