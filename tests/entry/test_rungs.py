"""Which files are rungs and how they are compiled: tools/rungs.cmake alone, then kernels of one's own through run_all.sh."""

import json
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests import checkout
from tests.checkout import LADDER, ROOT, USAGE, WAIVED, one_line, rows, run

# ---- tools/rungs.cmake alone -----------------------------------------------------------------------------------------

# Nothing is compiled: targets are only declared, and no language is enabled.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(rungs NONE)
set(gpus {gpus})
macro(add_executable)
endmacro()
add_library(ladder_options INTERFACE)
set(LADDER_WITH "{folder}")
function(target_link_libraries target)
  if(target MATCHES "^kernel_")
    _target_link_libraries(${{target}} ${{ARGN}})
  endif()
endfunction()
include("{root}/tools/rungs.cmake")
foreach(target ${{kernels}})
  foreach(property COMPILE_OPTIONS INCLUDE_DIRECTORIES WARNINGS_ALLOWED)
    get_target_property(value ${{target}} ${{property}})
    message(NOTICE "${{target}} ${{property}} ${{value}}")
  endforeach()
endforeach()
"""


def configure(folder: Path, gpus: str = "") -> subprocess.CompletedProcess:
    """Declares the rungs of `folder`, and of `folder`/project/kernels as the checkout's, for these GPUs."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "CMakeLists.txt").write_text(PROJECT.format(gpus=gpus, folder=folder, root=ROOT))
    makefiles = ["-G", "Unix Makefiles", "-D", "CMAKE_MAKE_PROGRAM=true"]  # nothing is built, so there need be no make
    return subprocess.run(["cmake", *makefiles, "-S", project, "-B", project / "build"], capture_output=True, text=True)


def rung(folder: Path, name: str, arch: str = "sm_80") -> Path:
    file = folder / name
    file.write_text(f'const Registration registration{{{{\n    .arch = "{arch}",\n}}}};\n')
    return file


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ("", {"sm_70": "75-virtual 80-virtual 90a", "sm_75": "75-virtual 80-virtual 90a", "sm_80": "80-virtual 90a",
              "sm_89": "89-virtual 90a", "sm_90": "90a", "sm_90a": "90a", "sm_100": "100-virtual", "sm_100a": "100a"}),
        ("75", {"sm_70": "75", "sm_75": "75", "sm_80": "80", "sm_90a": "90a"}),
        ("90a", {"sm_70": "90a", "sm_80": "90a", "sm_90a": "90a", "sm_100a": "100a"}),
        ("100", {"sm_80": "100", "sm_90a": "90a", "sm_100a": "100a"}),
        ("120", {"sm_70": "120", "sm_80": "120", "sm_89": "120", "sm_90": "120", "sm_90a": "90a", "sm_100a": "100a"}),
        ("120a", {"sm_80": "120a", "sm_90a": "90a"}),
        ("75;90a", {"sm_70": "75 90a", "sm_80": "90a", "sm_90a": "90a"}),
    ],
)  # fmt: skip
def test_a_rung_is_compiled_for_the_gpus_that_can_run_it(gpus, expected, tmp_path):
    """Or for its own architecture where none of them can. With no GPU, for what the simulator and the tests read."""
    for number, arch in enumerate(expected, 70):
        rung(tmp_path, f"{number}_{arch}.cu", arch)
    done = configure(tmp_path, gpus)
    assert done.returncode == 0, done.stderr
    chosen = json.loads((tmp_path / "project/build/generated/kernels.json").read_text())
    assert {rung["arch"]: " ".join(rung["architectures"]) for rung in chosen} == expected


def test_without_a_gpu_machine_code_is_made_of_the_ptx_that_is_there(tmp_path):
    for number, arch in enumerate(("sm_75", "sm_89", "sm_90a", "sm_100"), 71):
        rung(tmp_path, f"{number}_rung.cu", arch)
    said = re.findall(r"(\d+)_rung COMPILE_OPTIONS .*compute_(\d+),code=\[sm_90a\]", configure(tmp_path).stderr)
    assert said == [("71", "80"), ("72", "89")]


def refusal(folder: Path) -> str:
    """The one line with which files are refused, as run_all.sh shows it."""
    done = configure(folder)
    assert done.returncode != 0
    (line,) = (line.strip() for line in done.stderr.splitlines() if line.strip().startswith("kernels: "))
    return line


def test_a_name_that_does_not_fit_is_refused(tmp_path):
    file = rung(tmp_path, "my_idea.cu")
    assert re.search(rf"name of a rung is NN_name\.cu.*{file}", refusal(tmp_path))


@pytest.mark.parametrize("name", ["06_taken.cu", "06_other.cu"])
def test_a_number_that_is_taken_is_refused(name, tmp_path):
    kernels = tmp_path / "project/kernels"
    kernels.mkdir(parents=True)
    first, second = sorted([rung(kernels, "06_taken.cu"), rung(tmp_path, name)])
    assert refusal(tmp_path) == f"kernels: two rungs have the number 06: {first} and {second}"


@pytest.mark.parametrize("text", ["", '.arch = "sm_80",\n.arch = "sm_90a",\n', '// .arch = "sm_80",\n'])
def test_a_file_without_its_one_architecture_is_refused(text, tmp_path):
    file = tmp_path / "71_bare.cu"
    file.write_text(text)
    assert refusal(tmp_path).endswith(f"has to say which architecture the rung needs: {file}")


def test_options_beside_a_file_are_its_own(tmp_path):
    rung(tmp_path, "71_plain.cu")
    rung(tmp_path, "72_other.cu")
    options = ["# ours", "-DNDEBUG  # no asserts", "", "--maxrregcount 64", "-I their include", "warnings-allowed"]
    (tmp_path / "72_other.options").write_text("\n".join(options))
    said = configure(tmp_path, "80").stderr.splitlines()
    assert "kernel_72_other COMPILE_OPTIONS SHELL:-DNDEBUG;SHELL:--maxrregcount 64" in said
    assert f"kernel_72_other INCLUDE_DIRECTORIES {tmp_path}/their include" in said
    assert "kernel_72_other WARNINGS_ALLOWED ON" in said
    assert {line.split()[-1] for line in said if line.startswith("kernel_71")} == {"value-NOTFOUND"}


def cutlass(folder: Path) -> Path:
    """What passes for CUTLASS's headers."""
    header = folder / "include/cute/tensor.hpp"
    header.parent.mkdir(parents=True)
    header.touch()
    return folder


@pytest.mark.parametrize("given", ["", "include"], ids=["the folder that holds include", "include itself"])
def test_cutlass_is_on_the_path_of_those_that_ask_for_it(given, tmp_path, monkeypatch):
    rung(tmp_path, "71_plain.cu")
    rung(tmp_path, "72_other.cu")
    (tmp_path / "72_other.options").write_text("cutlass  # CuTe\n")
    headers = cutlass(tmp_path / "its headers")
    monkeypatch.setenv("LADDER_CUTLASS", str(headers / given))
    said = configure(tmp_path).stderr.splitlines()
    assert f"kernel_72_other INCLUDE_DIRECTORIES {headers / 'include'}" in said
    assert "kernel_71_plain INCLUDE_DIRECTORIES value-NOTFOUND" in said


def test_without_cutlass_its_rungs_are_compiled_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delenv("LADDER_CUTLASS", raising=False)
    rung(tmp_path, "72_other.cu")
    (tmp_path / "72_other.options").write_text("cutlass\n")
    done = configure(tmp_path)
    assert done.returncode == 0, done.stderr
    if not list(Path("/usr").glob("**/include/cute/tensor.hpp")):
        assert "kernel_72_other INCLUDE_DIRECTORIES value-NOTFOUND" in done.stderr.splitlines()
        assert "CUTLASS: no headers, so the rungs in CuTe are waived" in done.stdout


def test_a_path_without_cutlass_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LADDER_CUTLASS", str(tmp_path))
    assert refusal(tmp_path) == f"kernels: LADDER_CUTLASS is {tmp_path}, where there is no include/cute/tensor.hpp"


def test_a_word_that_is_no_option_is_refused(tmp_path):
    rung(tmp_path, "72_other.cu")
    file = tmp_path / "72_other.options"
    file.write_text("warnings allowed\n")
    known = "neither an option of nvcc, warnings-allowed, cutlass nor for-the-simulator"
    assert refusal(tmp_path) == f"kernels: {file}: 'warnings allowed' is {known}"


def test_what_is_compiled_is_what_the_rungs_state():
    listed = json.loads(run(LADDER, "--list", "--json").stdout)
    stated = {rung["stem"]: (rung["arch"], ROOT / rung["source"]) for rung in listed["rungs"]}
    built = json.loads((ROOT / "build/generated/kernels.json").read_text())
    assert {rung["stem"]: (rung["arch"], Path(rung["source"])) for rung in built} == stated
    assert all(Path(rung["object"]).exists() for rung in built)


# ---- a kernel of one's own, through run_all.sh -----------------------------------------------------------------------

KERNEL = """// Takes what code from elsewhere takes: an include folder, a macro, and a compiler that lets a warning pass.
#include "common/rung.h"
#include "theirs.h"

#ifndef NDEBUG
#error "needs -DNDEBUG"
#endif

using namespace ladder;

namespace {

__global__ void __launch_bounds__(256) sgemm(Problem p, const float* A, const float* B, float* C) {
  int unused = 1;
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row >= p.m || col >= p.n) return;
  float acc = 0;
  for (int k = 0; k < p.k; ++k) acc += A[size_t(row) * p.lda + k] * B[size_t(k) * p.ldb + col];
  float& c = C[size_t(row) * p.ldc + col];
  c = p.beta == 0 ? p.alpha * acc : p.alpha * acc + p.beta * c;
}

void launch(const Problem& p) {
  sgemm<<<dim3(ceil_div(p.n, 16), ceil_div(p.m, 16)), dim3(16, 16), 0, p.stream>>>(p, p.A<float>(), p.B<float>(), p.C<float>());
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = THEIR_NUMBER,
    .name = "stand_in",
    .idea = "a kernel from elsewhere",
    .predecessor = "01",
    .types = {Type::f32},
    .arch = "sm_75",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 4,
    .refuses = [](const Problem& p) { return std::string(p.k % 8 ? "needs K to be a multiple of 8" : ""); },
    .resources = [](const Problem&) { return Resources{(const void*)sgemm, 256, 0, {16, 16, 1}}; },
    .launch = launch,
}};

}  // namespace
"""


@pytest.fixture
def run_all(own_checkout):
    return partial(checkout.run_all, checkout=own_checkout)


@pytest.fixture(scope="module")
def mine(own_checkout, tmp_path_factory):
    """A folder with rung 97, and rung 98 in kernels/local."""
    folder = tmp_path_factory.mktemp("with") / "my kernels"
    local = own_checkout / "kernels/local"
    for place, number in ((folder, "97"), (local, "98")):
        (place / f"{number} include").mkdir(parents=True)
        (place / f"{number} include/theirs.h").write_text(f'#define THEIR_NUMBER "{number}"\n')
        (place / f"{number}_stand_in.cu").write_text(KERNEL)
        (place / f"{number}_stand_in.options").write_text(f"-I {number} include\n-DNDEBUG\nwarnings-allowed\n")
    yield folder
    shutil.rmtree(local)
    local.mkdir()


def test_own_kernels_are_listed(run_all, mine):
    done = run_all("list", "--with", mine.name, folder=mine.parent)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[-2:]] == [["97", "stand_in"], ["98", "stand_in"]]


def test_an_own_kernel_runs_and_is_checked(run_all, mine):
    done = run_all("--with", str(mine), "run", "97", "64", "96", "40", "--sim")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("97_stand_in") and done.stdout.endswith(" ok\n")


def test_an_own_kernel_refuses_with_its_reason(run_all, mine):
    done = run_all("--with", str(mine), "run", "stand_in", "64", "64", "9", "--sim")
    assert done.returncode == WAIVED
    assert "needs K to be a multiple of 8" in done.stdout + done.stderr


def test_an_own_kernel_is_counted(run_all, mine, tmp_path):
    done = run_all("counts", "97", "32", "32", "32", "--with", str(mine), "--csv", str(tmp_path / "counts.csv"))
    assert done.returncode == 0, done.stderr
    assert "acc += A[" in done.stdout
    assert int(rows(tmp_path / "counts.csv")[-1]["FLOP"]) >= 2 * 32**3


def test_an_own_kernel_is_diffed(run_all, mine):
    done = run_all("diff", "01", "97", "--with", str(mine))
    assert done.returncode == 0, done.stderr
    assert "a kernel from elsewhere" in done.stdout and "registers" in done.stdout


def test_without_the_folder_its_kernels_are_gone(run_all, mine):
    assert "there is no rung '97'" in one_line(run_all("run", "97", "64", "64", "64"))


def test_a_bad_file_is_refused_in_one_line(run_all, mine, tmp_path):
    rung(tmp_path, "97b.cu")
    done = run_all("list", "--with", str(tmp_path))
    assert done.returncode == USAGE
    assert done.stderr.splitlines()[-1].startswith("run_all.sh: the name of a rung is NN_name.cu")


@pytest.mark.parametrize("arguments", [["--with"], ["list", "--with", "/nowhere"]])
def test_a_folder_that_is_none_is_refused(arguments, run_all):
    assert "--with takes a folder" in one_line(run_all(*arguments))
