"""No block of twelve lines of code stands twice outside of kernels/, where the repetition is the lesson."""

import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = 12
ENDINGS = (".h", ".cpp", ".cu", ".py", ".sh")
ALLOWED = {
    "common/ptx/wgmma.h": "an instruction's operands are listed once per width",
}
NO_CODE = ("//", "#", "import ", "from ", '"', "*")  # comments, #include, imports


def source_files() -> list[str]:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kernels = ("kernels/", "docs/exercises/")
    return [name for name in tracked if name.endswith(ENDINGS) and not name.startswith(kernels) and name not in ALLOWED]


def code(name: str) -> list[tuple[int, str]]:
    """Line numbers and lines with two words or more: lists of names, as of imports, are none."""
    lines = enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
    bare = ((number, line.strip()) for number, line in lines)
    return [(number, line) for number, line in bare if " " in line and not line.startswith(NO_CODE)]


def test_no_block_stands_twice():
    places = defaultdict(list)
    for name in source_files():
        lines = code(name)
        for first in range(len(lines) - BLOCK + 1):
            block = lines[first : first + BLOCK]
            places["\n".join(line for _, line in block)].append(f"{name}:{block[0][0]}")
    assert len(places) > 10_000
    twice = [" and ".join(where) for where in places.values() if len(where) > 1]
    assert not twice, "\n".join(twice)
