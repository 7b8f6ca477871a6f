"""Tests of PyTorch's products, without and with libgemm_ladder_blas.so: prints the counts, and each test that differs.

usage: python3 tests/lib/torch_suites.py [FOLDER] [--library FILE] [--workers N] [--count]

Without FOLDER these are the tests of torch_opinfo.py, on what is installed with PyTorch. Then the library computes 16-bit types,
too. They need pytest and pytest-xdist. With FOLDER they are PyTorch's own. It is test/ of PyTorch's repository, of the version
that is installed (python3 -c "import torch; print(torch.__version__)"):

    git clone --depth 1 --branch v2.11.0 --filter=blob:none --sparse https://github.com/pytorch/pytorch
    git -C pytorch sparse-checkout set test

These need expecttest and scipy, too. --count adds a run in which the library counts the products that rungs computed.
Exit status 1 where a test fails with the library alone, 77 without PyTorch, a GPU, the library or these packages.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
WAIVED = 77
OPERATORS = "(_mm_cuda or addmm or bmm_cuda or _matmul_cuda or functional_linear_cuda) and not (sparse or scaled or meta)"
OPINFO = {"torch_opinfo.py": ""}  # files, and their tests as pytest's -k takes them
SUITES = {  # likewise, of PyTorch
    "test_linalg.py": "(_mm or mm_ or addbmm or matmul) and not (tunableop or compile or int_mm or int4_mm or int8_mm)",
    "test_matmul_cuda.py": "(addmm or bmm or _mm_) and not (scaled or grouped or size_10000)",  # these allow errors of 0.1
    "test_ops.py": f"TestCommon and {OPERATORS}",  # values against the CPU's, out=, strides
    "test_ops_gradients.py": OPERATORS,
}
WORST = ("passed", "skipped", "failed")  # the last is the worst


def waive(why: str) -> None:
    print(f"torch_suites.py: {why}", file=sys.stderr)
    sys.exit(WAIVED)


def outcomes(report: str) -> dict[str, str]:
    """Of each test in a report of pytest in XML; of several the worst."""
    found = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        kinds = {child.tag for child in case}
        now = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[name] = max(now, found.get(name, now), key=WORST.index)
    return found


def samples(report: str) -> int:
    """That the tests in a report counted."""
    properties = ElementTree.fromstring(report).iter("property")
    return sum(int(one.get("value")) for one in properties if one.get("name") == "samples")


def compare(without: dict[str, str], with_it: dict[str, str]) -> tuple[list[str], bool]:
    """A line for each test whose outcome differs, and whether one fails, or is lost, with the library alone."""
    lines, worse = [], False
    for name in sorted({*without, *with_it}):
        old, new = without.get(name, "missing"), with_it.get(name, "missing")
        if old != new:
            lines.append(f"{name}: {old} without, {new} with")
            worse = worse or (new in ("failed", "missing") and old != "failed")
    return lines, worse


def counts(found: dict[str, str]) -> str:
    number = Counter(found.values())
    return ", ".join(f"{number[outcome]} {outcome}" for outcome in WORST)


def run(folder: Path, suites: dict[str, str], temporary: Path, workers: int, **variables: str) -> tuple[dict[str, str], str]:
    """The outcomes of all suites with these variables, and what their processes wrote to stderr."""
    found, said = {}, ""
    for file, names in suites.items():
        report = temporary / "report.xml"
        report.unlink(missing_ok=True)
        words = [sys.executable, "-m", "pytest", folder / file, "-k", names, "-q", "--tb=no", "-rfE", f"--junit-xml={report}"]
        # Without PyTorch's conftest.py and pytest.ini, whose options those of its CI need; but as these say:
        words += ["--noconftest", "-c", os.devnull, f"--rootdir={folder}", "-p", "no:cacheprovider"]
        words += ["-p", "no:warnings", "--assert=plain", "--capture=sys", "-n", str(workers), "--dist", "worksteal"]
        done = subprocess.run(
            words, cwd=temporary, env={**os.environ, "COLUMNS": "250", **variables}, capture_output=True, text=True
        )
        if done.returncode not in (0, 1) or not report.exists():
            sys.exit(f"pytest {file} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        written = report.read_text(encoding="utf-8")
        found |= outcomes(written)
        *before, last = done.stdout.strip().splitlines()
        compared = f", {samples(written)} samples" if samples(written) else ""
        print(
            *(line for line in before if line.startswith(("FAILED", "ERROR"))),
            f"{file}: {last.strip('= ')}{compared}",
            sep="\n",
            flush=True,
        )
        said += done.stderr
    return found, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="PyTorch's folder of tests")
    parser.add_argument("--library", type=Path, default=ROOT / "build/lib/libgemm_ladder_blas.so")
    parser.add_argument("--workers", type=int, default=12, help="processes of pytest")
    parser.add_argument("--count", action="store_true", help="run once more, and count what rungs computed")
    options = parser.parse_args()
    folder, suites = (options.folder.resolve(), SUITES) if options.folder else (Path(__file__).resolve().parent, OPINFO)
    packages = ["torch", "pytest", "xdist", *(["expecttest", "scipy"] if options.folder else [])]
    if missing := [name for name in packages if not importlib.util.find_spec(name)]:
        waive(f"needs {', '.join(missing)}")
    import torch

    if not torch.cuda.is_available():
        waive("needs a GPU")
    if not options.library.is_file():
        waive(f"there is no {options.library}: build it, or name another with --library")
    if missing := [file for file in suites if not (folder / file).is_file()]:
        parser.error(f"{folder} has no {', '.join(missing)}")
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}")
    if options.folder:
        version = folder.parent / "version.txt"
        print(f"tests of {version.read_text().strip() if version.exists() else 'a version not known'}")

    with tempfile.TemporaryDirectory() as name:
        temporary, library = Path(name), Path(name) / "libgemm_ladder_blas.so"
        library.symlink_to(options.library.resolve())  # LD_PRELOAD takes no path with a space
        of_cuda = {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cuda", "OMP_NUM_THREADS": "2"}
        of_cuda["PYTORCH_TEST_WITH_SLOW"] = "1"  # test_mm is among those that PyTorch calls slow
        preload = {**of_cuda, "LD_PRELOAD": str(library)}
        if not options.folder:
            preload = {"GEMM_LADDER_TYPES": os.environ.get("GEMM_LADDER_TYPES", "f32,tf32,bf16,f16"), **preload}
        seen = [sys.executable, "-c", "import ctypes; ctypes.CDLL(None).gemm_ladder_blas_off"]
        if subprocess.run(seen, env={**os.environ, **preload}, capture_output=True).returncode:
            waive(f"{options.library} cannot be preloaded")
        print("without the library", flush=True)
        without, _ = run(folder, suites, temporary, options.workers, **of_cuda, LD_PRELOAD="")
        print("with the library", flush=True)
        with_it, _ = run(folder, suites, temporary, options.workers, **preload)
        if options.count:
            print("with the library, which counts", flush=True)
            _, said = run(folder, suites, temporary, options.workers, **preload, GEMM_LADDER_LOG="1")
            ends = re.findall(r"^gemm_ladder: (\d+) products by rungs, (\d+) by cuBLAS, (\d+) failures", said, re.MULTILINE)
            rungs, cublas, failures = (sum(map(int, column)) for column in zip(*ends, strict=True)) if ends else (0, 0, 0)
            print(f"of the products that the library saw, {rungs} by rungs, {cublas} by cuBLAS, {failures} failures")
    lines, worse = compare(without, with_it)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"without: {counts(without)}\nwith:    {counts(with_it)}\n{len(lines)} outcomes differ")
    return 1 if worse or "passed" not in without.values() else 0


if __name__ == "__main__":
    sys.exit(main())
