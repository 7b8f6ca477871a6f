"""What `ceilings` holds for the tensor cores: loops that multiply, also in a build without a GPU that is carried to one."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CEILINGS = Path(__file__).parents[2] / "build/bin/ceilings"


@pytest.mark.skipif(not shutil.which("cuobjdump"), reason="no cuobjdump here")
@pytest.mark.skipif(not CEILINGS.exists(), reason="build/bin/ceilings is not built")
@pytest.mark.parametrize("shape", ["m16n8k16.row.col.f32.bf16", "m16n8k16.row.col.f32.f16", "m16n8k8.row.col.f32.tf32"])
def test_the_loops_of_the_tensor_cores_multiply(shape):
    dump = subprocess.run(["cuobjdump", "--dump-ptx", str(CEILINGS)], check=True, capture_output=True, text=True).stdout
    code = {
        int(sm): text
        for sm, text in re.findall(r"\.target sm_(\d+)a?\n(.*?)(?=\.target|\Z)", dump, flags=re.DOTALL)
        if "mma_loop" in text
    }
    assert any(sm >= 80 for sm in code), "no such code for GPUs that have the instruction"
    assert all(f"mma.sync.aligned.{shape}" in text for sm, text in code.items() if sm >= 80)
