"""sim/ is a project of its own: a copy of it alone can be configured, and what is compiled of it needs nothing of the ladder."""

import shutil

import pytest

from tests.checkout import ROOT, SIMULATOR, run

DEPENDENCIES = ROOT / ".deps/usr"
PARTS = ["CMakeFiles/simcore.dir/device_memory.cpp.o", "CMakeFiles/cuda_sim.dir/driver/driver.cpp.o"]

pytestmark = pytest.mark.skipif(not SIMULATOR.exists() or not shutil.which("ninja"), reason="the simulator is not built here")


def succeeds(*command: object) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_copy_of_the_simulator_alone_is_configured_and_compiles(tmp_path):
    alone, build = tmp_path / "the simulator", tmp_path / "build"
    shutil.copytree(ROOT / "sim", alone)
    succeeds("cmake", "-S", alone, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={DEPENDENCIES}")
    commands = (build / "build.ninja").read_text()
    for tools in (".deps", ".venv"):  # where the compiler and cmake may lie
        commands = commands.replace(str(ROOT / tools), "")
    assert str(ROOT) not in commands
    assert "sim_tests" in commands
    succeeds("cmake", "--build", build, "--target", *PARTS)


def test_alone_it_says_what_is_missing(tmp_path):
    nowhere = f"-DFMT_INCLUDE_DIR=FMT_INCLUDE_DIR-NOTFOUND;-DCMAKE_PREFIX_PATH={tmp_path};-DCMAKE_FIND_ROOT_PATH={tmp_path}"
    options = [*nowhere.split(";"), "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY"]
    done = run("cmake", "-S", ROOT / "sim", "-B", tmp_path / "build", "-G", "Ninja", *options)
    assert done.returncode != 0
    assert "The simulator cannot be built: it needs fmt/core.h" in " ".join(done.stderr.split())
