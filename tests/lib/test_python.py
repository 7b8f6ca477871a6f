"""lib/python/gemm_ladder.py: on the simulator by tests/lib/on_simulator.py, and on a GPU by tests/lib/arrays.py."""

import os
import re
import subprocess
import sys

import pytest

from tests.checkout import ROOT, WAIVED, needs_simulator, run

LIBRARY, MODULES = ROOT / "build/lib/libgemm_ladder.so", ROOT / "lib/python"
ON_SIMULATOR = ROOT / "tests/lib/on_simulator.py"
CHECKS = re.findall(r"^def (check_\w+)", ON_SIMULATOR.read_text(encoding="utf-8"), re.MULTILINE)

needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="libgemm_ladder.so is not built here")


def python(*words: object, **environment: str) -> subprocess.CompletedProcess:
    """A program that finds the module and, in place of the CUDA runtime, the simulator."""
    simulator = {"LD_LIBRARY_PATH": str(ROOT / "build/sim"), "GEMM_LADDER_SIM_CHECKS": "all=error,exited=off"}
    return run(sys.executable, *words, **{"PYTHONPATH": str(MODULES), "GEMM_LADDER_LIBRARY": ""} | simulator | environment)


@pytest.fixture(scope="module")
def on_simulator() -> str:
    done = python(ON_SIMULATOR)
    return done.stdout + done.stderr


@needs_library
@needs_simulator
@pytest.mark.parametrize("check", CHECKS)
def test_on_the_simulator(check, on_simulator):
    assert re.search(rf"^{check}: ok$", on_simulator, re.MULTILINE), on_simulator


LOAD = "import gemm_ladder\ntry: gemm_ladder.Library.get()\nexcept OSError as error: print(error)"


@pytest.mark.parametrize("named", ["/nowhere/libgemm_ladder.so", str(ON_SIMULATOR)])
def test_a_library_that_is_none_is_named(named):
    done = python("-c", LOAD, GEMM_LADDER_LIBRARY=named)
    (line,) = done.stdout.splitlines()
    assert done.returncode == 0 and named in line, done.stderr


# ---- on a GPU ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["torch", "cupy", "jax"])
def test_on_a_gpu(framework):
    done = python(ROOT / "tests/lib/arrays.py", framework, LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""))
    if done.returncode == WAIVED:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
