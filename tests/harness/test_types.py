"""A row of common/types.h that lacks what its users ask for does not compile."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = ROOT / "build/compile_commands.json"
NEW = "static_cast<Type>(99)"
MEMBERS = {
    "NAME": 'static constexpr const char* NAME = "new";',
    "Element": "using Element = float;",
    "Result": "using Result = float;",
    "BYTES": "static constexpr int BYTES = 4;",
    "ROUNDOFF": "static constexpr double ROUNDOFF = 0.0;",
    "TINY": "static constexpr double TINY = 0.0;",
    "TRUNCATION": "static constexpr double TRUNCATION = 0.0;",
    "TENSOR": "static constexpr bool TENSOR = true;",
    "FP22": "static constexpr bool FP22 = false;",
    "SCALE": "static constexpr float SCALE = 1.0F;",
    "CUDA": "static constexpr cudaDataType_t CUDA = CUDA_R_8F_E4M3;",
    "CUDA_RESULT": "static constexpr cudaDataType_t CUDA_RESULT = CUDA_R_32F;",
    "ARITHMETIC": "static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32;",
    "SM": "static constexpr int SM = 89;",
    "mma": "static void mma(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]) {}",
}
pytestmark = pytest.mark.skipif(not COMMANDS.exists(), reason="build/ is not configured")


def compiled(members: dict[str, str], tmp_path: Path) -> subprocess.CompletedProcess:
    """A file that adds a row of these members and uses it as the harness and a kernel do; looked at, but no code is made."""
    entries = json.loads(COMMANDS.read_text())
    entry = next(entry for entry in entries if entry["file"].endswith("common/harness/blas.cpp"))
    command = shlex.split(entry["command"])
    options = [
        word for i, word in enumerate(command) if word.startswith(("-I", "-std", "-isystem")) or command[i - 1] == "-isystem"
    ]
    source = tmp_path / "row.cpp"
    source.write_text(
        '#include "common/types.h"\n'
        f"namespace ladder {{\ntemplate <>\nstruct Operand<{NEW}> {{\n{chr(10).join(members.values())}\n}};\n"
        "void use(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {\n"
        f"  visit(Types<{NEW}>{{}}, {NEW}, Out::same, [&]<Type type, class C>() {{\n"
        "    facts<type>();\n"
        "    Operand<type>::mma(d, a, b);\n"
        "    return C(Operand<type>::SM);\n"
        "  });\n}\n}\n"
    )
    return subprocess.run([command[0], *options, "-fsyntax-only", source], capture_output=True, text=True, cwd=entry["directory"])


def test_a_whole_row_compiles(tmp_path):
    done = compiled(MEMBERS, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", MEMBERS)
def test_a_row_that_lacks_something_does_not(tmp_path, missing):
    done = compiled({name: text for name, text in MEMBERS.items() if name != missing}, tmp_path)
    assert done.returncode != 0
    assert missing in done.stderr
