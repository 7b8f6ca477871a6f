"""The programs that run PyTorch under libgemm_ladder_blas.so: what of them needs neither PyTorch nor a GPU."""

import importlib.util
import math
import sys

import pytest

from tests.checkout import ROOT, WAIVED, one_line, run

PROGRAMS = {  # and what each needs first
    "bench/use.py": "PyTorch",
    "bench/use_fp8.py": "PyTorch",
    "bench/train.py": "PyTorch",
    "tests/lib/arrays.py": "NumPy",
    "tests/lib/hypothesis_products.py": "PyTorch",
    "tests/lib/torch_suites.py": "torch",
}


def module(path: str):
    spec = importlib.util.spec_from_file_location(path.replace("/", "."), ROOT / path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_its_packages_a_program_says_so_and_is_waived(program):
    done = run(sys.executable, "-S", ROOT / program, PYTHONPATH="")
    assert f"{program.split('/')[-1]}: needs {PROGRAMS[program]}" in one_line(done, WAIVED)


# ---- PyTorch's own tests -----------------------------------------------------------------------------------------------

REPORT = """<testsuites><testsuite>
<testcase classname="test_linalg.TestLinalgCUDA" name="test_mm" />
<testcase classname="test_linalg.TestLinalgCUDA" name="test_bmm"><failure message="no">text</failure></testcase>
<testcase classname="test_linalg.TestLinalgCUDA" name="test_addmm"><skipped type="pytest.xfail" /></testcase>
<testcase classname="test_linalg.TestLinalgCUDA" name="test_twice" />
<testcase classname="test_linalg.TestLinalgCUDA" name="test_twice"><error message="no">text</error></testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def suites():
    return module("tests/lib/torch_suites.py")


def test_samples_of_a_report(suites):
    one = '<testcase name="{}"><properties><property name="{}" value="{}" /></properties></testcase>'
    assert suites.samples(f"<testsuites>{one.format('a', 'samples', 7)}{one.format('b', 'samples', 5)}</testsuites>") == 12
    assert suites.samples(f"<testsuites>{one.format('a', 'seed', 7)}</testsuites>") == 0
    assert suites.samples(REPORT) == 0


def test_outcomes_of_a_report(suites):
    found = {name.split(".")[-1]: outcome for name, outcome in suites.outcomes(REPORT).items()}
    assert found == {"test_mm": "passed", "test_bmm": "failed", "test_addmm": "skipped", "test_twice": "failed"}
    assert suites.counts(found) == "1 passed, 1 skipped, 2 failed"


@pytest.mark.parametrize(
    ("without", "with_it", "lines", "worse"),
    [
        ("passed", "passed", [], False),
        ("failed", "failed", [], False),
        ("passed", "failed", ["t: passed without, failed with"], True),
        ("skipped", "failed", ["t: skipped without, failed with"], True),
        ("passed", None, ["t: passed without, missing with"], True),
        (None, "failed", ["t: missing without, failed with"], True),
        ("failed", "passed", ["t: failed without, passed with"], False),
        ("failed", None, ["t: failed without, missing with"], False),
        ("passed", "skipped", ["t: passed without, skipped with"], False),
    ],
)
def test_outcomes_are_compared(without, with_it, lines, worse, suites):
    sides = [{"t": outcome} if outcome else {} for outcome in (without, with_it)]
    assert suites.compare(*sides) == (lines, worse)


# ---- training ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def train():
    return module("bench/train.py")


def test_differences_of_losses_are_the_largest_so_far(train):
    assert train.apart([1.0, 2.5, 2.0], [1.0, 2.0, 2.0]) == [0.0, 0.25, 0.25]
    assert train.apart([1.0, math.nan, 2.0], [1.0, 2.0, 2.0]) == [0.0, math.inf, math.inf]


def test_losses_are_equal_within_rounding_or_not(train):
    rounding = [1e-8, 1e-6, 1e-5]
    assert train.beyond([9e-7, 9e-6, 9e-5], rounding) is None
    assert train.beyond([2e-6, 2e-6, 2e-6], rounding) == 1
    assert train.beyond([0.0, 2e-5, 2e-5], rounding) == 2
    assert train.beyond([0.0, 0.0, math.inf], [0.0, 0.0, math.inf]) == 3, "a training that has failed equals none"


def test_steps_that_are_written(train):
    assert train.columns(200) == [1, 10, 50, 100, 200]
    assert train.columns(30) == [1, 10, 30]
