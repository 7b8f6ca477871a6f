"""docs/use.md: its program in C, compiled by its own line, on the simulator; its variables and its Python against the sources."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT, needs_simulator

PAGE = (ROOT / "docs/use.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "build/lib/libgemm_ladder.so"


def fences(language: str, holding: str) -> str:
    """The one block of code in a language that holds this text."""
    (found,) = [text for text in re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if holding in text]
    return found


def toolkit() -> Path:
    """That of the build."""
    cache = (ROOT / "build/CMakeCache.txt").read_text(encoding="utf-8")
    return Path(re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.*)$", cache, re.MULTILINE)[1]).resolve().parents[1]


@needs_simulator
@pytest.mark.skipif(not LIBRARY.exists(), reason="libgemm_ladder.so is not built here")
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_the_program_in_c(compiler, tmp_path):
    program, line = fences("c", "main"), fences("sh", "product.c")
    (tmp_path / "product.c").write_text(program)
    assert line.startswith("cc ")
    line = line.replace("cc ", f"{compiler} -Wall -Wextra -Werror ", 1)
    places = f"export LADDER='{ROOT}' CUDA='{toolkit()}' LIBRARY_PATH='{ROOT}/build/lib'\n"
    for command in (f"{places}{line}", f"LD_LIBRARY_PATH='{ROOT}/build/sim' ./product"):
        done = subprocess.run(["bash", "-euc", command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == re.search(r"/\* (\d+) \*/", program)[1] + "\n"


def test_the_calls_in_python_are_those_of_the_module(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "lib/python"))
    module = __import__("gemm_ladder")
    calls = [node for node in ast.walk(ast.parse(fences("python", "gemm_ladder"))) if isinstance(node, ast.Call)]
    of_module = [call for call in calls if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "gemm_ladder"]
    assert {call.func.attr for call in of_module} == {"matmul", "grouped_matmul", "explain", "quantise"}
    for call in of_module:
        signature = inspect.signature(getattr(module, call.func.attr))
        signature.bind(*call.args, **{word.arg: word.value for word in call.keywords})
    assert "torch" not in sys.modules


def test_the_variables_are_those_of_the_preloaded_library():
    read = re.findall(r'(?:is_set|getenv)\("(\w+)"\)', (ROOT / "lib/preload.cpp").read_text(encoding="utf-8"))
    assert set(re.findall(r"^\| `(\w+)=", PAGE, re.MULTILINE)) == set(read)


def test_the_reasons_for_cublas_are_those_of_the_library():
    """So many returns of a reason, so many rows; and the limits in numbers."""
    source = (ROOT / "lib/gemm_ladder.cpp").read_text(encoding="utf-8")
    body = re.search(r"^std::string why_not\(.*?^// ---- the handle", source, re.MULTILINE | re.DOTALL)[0]
    reasons = len(re.findall(r'return\s+(?:std::string\()?"[^"]', body)) + len(re.findall("return (?:reason|no_rung)", body))
    rows = re.findall(r"^\| .* \| (?:cuBLAS|a plain kernel) \|", PAGE, re.MULTILINE)
    assert len(rows) == reasons - 1, "what refuses() of the rungs says, no product here reaches"
    for limit in re.findall(r"p\.[nmk] (?:<|<=|>=) (\d+)\b", body):
        assert f" {limit}" in PAGE


def test_it_is_short():
    assert len(PAGE.splitlines()) <= 150
