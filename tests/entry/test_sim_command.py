"""run_all.sh sim: a program of one's own on the simulator, and one line that says why a program cannot run there."""

import shutil
import subprocess
from functools import partial

import pytest

from tests.checkout import ROOT, USAGE, WAIVED, needs_simulator, one_line, run_all

PROGRAMS = ROOT / "build/sim/programs"

pytestmark = needs_simulator
sim = partial(run_all, "sim")


def refused(done: subprocess.CompletedProcess, status: int) -> str:
    """The one line, without the program's path."""
    line = one_line(done, status)
    assert line.startswith("run_all.sh: sim")
    return line.split(": ", 3)[-1]


@pytest.fixture
def script(tmp_path):
    """A folder with a space, and in it a program."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(PROGRAMS / "mma_gemm", folder / "my program")
    return folder / "my program"


def test_a_program_runs_with_its_arguments_and_its_status(script):
    for program in ("vector_add", "driver"):
        assert sim(PROGRAMS / program).stdout == "passed\n"
        assert sim(PROGRAMS / program, "--help").stdout == "passed\n", "it runs, whatever it makes of --help"
    done = sim(script, "wait_too_few")
    assert done.returncode == 1 and "nobody has waited for it" in done.stderr
    assert "--with" not in sim(script, "--with", "nowhere").stderr, "what comes after the program is the program's"


def test_paths_are_relative_to_the_caller_and_may_begin_with_a_tilde(script):
    for path in ("my program", "./my program", "../a folder/my program", "~/my program"):
        done = sim(path, "wait_too_few", folder=script.parent, HOME=str(script.parent))
        assert done.returncode == 1 and "nobody has waited for it" in done.stderr, path


def test_options_before_the_program_are_the_simulators(script, tmp_path):
    done = sim("--sim-seed", "7", "--sim-counts", tmp_path / "counts.csv", PROGRAMS / "reduction")
    assert done.returncode == 0 and (tmp_path / "counts.csv").read_text().startswith("kernel,launches,")
    assert "there is no such GPU" in sim("--sim-gpu", "nonesuch", PROGRAMS / "reduction").stderr
    assert refused(sim("--sim-sed", "7", script), USAGE) == "there is no option '--sim-sed'; the nearest is --sim-seed"
    assert refused(sim("-M", script), USAGE) == "there is no option '-M'; ./run_all.sh sim --help lists all"
    assert refused(sim("--sim-seed"), USAGE) == "--sim-seed takes a value"
    assert refused(sim(), USAGE) == "sim ./vector_add 1024"


def test_what_is_no_program_is_named(script, tmp_path):
    assert refused(sim("nowhere"), USAGE) == "there is no such program"
    assert refused(sim(tmp_path), USAGE) == "it is a folder"
    assert "compile it first: nvcc" in refused(sim(ROOT / "sim/tests/programs/vector_add.cu"), USAGE)
    assert "(no ELF file)" in refused(sim(ROOT / "run_all.sh"), USAGE)
    assert refused(sim(shutil.which("ls")), USAGE) == "it holds no CUDA code"
    script.chmod(0o644)
    assert refused(sim(script), USAGE) == "it is not executable"


@pytest.mark.parametrize(
    ("old", "new", "status", "expected"),
    [
        ("libcudart.so.13", "libother--.so.1", USAGE, "links the static runtime, which cannot be replaced; relink it: nvcc"),
        ("libcudart.so.13", "libcudart.so.12", USAGE, "it was built for libcudart.so.12"),
        (".nvFatBinSegment", "__nv_relfatbin", USAGE, "was compiled with -rdc=true"),
        ("libstdc++.so.6", "libnccl.so.2", WAIVED, "it needs libnccl.so.2, which"),
    ],
    ids=["static", "version", "relocatable", "library"],
)
def test_a_program_that_must_be_built_otherwise_says_how(old, new, status, expected, script):
    """Other programs are made of one that runs, by other names in it."""
    script.write_bytes(script.read_bytes().replace(old.encode() + b"\0", new.encode().ljust(len(old) + 1, b"\0")))
    assert expected in refused(sim(script), status)


def test_without_ptx_it_says_what_to_compile_for():
    assert "holds no PTX, only machine code; compile it with nvcc -arch=" in refused(sim(PROGRAMS / "without_ptx"), USAGE)
