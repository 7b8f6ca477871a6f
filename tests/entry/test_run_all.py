"""run_all.sh itself: its words, its set-up, and the whole run with programs that stand in for those that need a GPU."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import cli

ROOT = Path(__file__).parents[2]
USAGE = 2


def run_all(*arguments: str, folder: Path = ROOT, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess:
    """That of the checkout in `folder`, called from there or from `cwd`."""
    command, env = [folder / "run_all.sh", *arguments], {**os.environ, **environment}
    return subprocess.run(command, cwd=cwd or folder, env=env, capture_output=True, text=True)


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tset"], "nearest is test"),
        (["profil"], "nearest is profile"),
        (["zzz"], "there is no sub-command 'zzz'; ./run_all.sh help lists all"),
        (["--quik"], "nearest is --quick"),
        (["-M"], "there is no option '-M'; ./run_all.sh --quick --help lists all"),
        (["test", "entry"], "test takes no argument but --fast, got 'entry'"),
        (["docs", "serve"], "docs takes no arguments, got 'serve'"),
        (["help", "run", "sim"], "help takes one sub-command"),
        (["--quick", "--result"], "nearest is --results"),
        (["run"], "run takes a rung"),
        (["run", "99"], "there is no rung '99'; ./run_all.sh list lists all"),
        (["run", "zzz"], "there is no rung 'zzz'; ./run_all.sh list lists all"),
        (["run", "6z"], "nearest is 06"),
        (["run", "bank_conflict", "64", "64", "64"], "nearest is 06_bank_conflict_free"),
        (["diff"], "diff takes two rungs"),
        (["diff", "05", "o6"], "there is no rung 'o6'"),
        (["profile", "06", "64"], "profile takes a rung"),
        (["use", "--result", "here"], "use: there is no option '--result'; the nearest is --results"),
        (["use", "--results"], "--results takes a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_words_are_refused_in_one_line(arguments, expected):
    done = run_all(*arguments)
    assert done.returncode == USAGE
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert expected in line


def test_help_names_every_sub_command():
    done = run_all("help")
    assert done.returncode == 0
    for command in [
        "--quick",
        "test",
        "run",
        "new",
        "exercise",
        "list",
        "diff",
        "profile",
        "counts",
        "sim",
        "use",
        "compare",
        "docs",
        "words",
        "help",
    ]:
        assert f"./run_all.sh {command}" in done.stdout
    assert "set -euo" not in done.stdout


@pytest.mark.parametrize("word", ["6", "06", "bank_conflict_free", "06_bank_conflict_free"])
def test_run_takes_every_name_of_a_rung(word):
    done = run_all("run", word, "--help")
    assert done.returncode == 0, done.stderr
    assert "06_bank_conflict_free" in done.stdout


def test_run_hands_over_the_exit_status():
    assert run_all("run", "06", "0", "64", "64").returncode == USAGE


def needs_packages() -> None:
    """Of the report; without them, run_all.sh would set out to fetch them."""
    for name in ("pandas", "matplotlib", "rich", "jinja2"):
        pytest.importorskip(name)


def test_diff_shows_both_rungs_and_what_became_of_them():
    needs_packages()
    done = run_all("diff", "04", "05")
    assert done.returncode == 0, done.stderr
    for expected in ("04_thread_tile_2d", "05_float4", "registers per thread", "blocks per SM"):
        assert expected in done.stdout


@pytest.mark.parametrize("folders", [[], ["one"], ["one", "two", "three"]])
def test_compare_takes_two_folders(folders):
    done = run_all("compare", *folders)
    assert done.returncode == 2
    assert done.stderr == "run_all.sh: compare takes two results folders, such as: compare results/before results/after\n"


def test_compare_names_a_folder_that_is_not_there():
    needs_packages()
    done = run_all("compare", "bench/recorded/nvidia-h200", "/no/such/folder")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "plots: /no/such/folder: no such folder\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "6", "64", "64", "64"], ["build 06_bank_conflict_free", "exec build/bin/06_bank_conflict_free 64 64 64"]),
        (["run", "01", "--sim-seed", "7"], ["build 01_naive simulator", "exec build/bin/01_naive --sim-seed 7"]),
        (["run", "--watch", "naive", "a b"], ["exec python3 -m tools.watch kernels/01_naive.cu ./run_all.sh run 01_naive 'a b'"]),
        (["new", "90", "--from", "04", "x"], ["exec python3 -m tools.new_rung 90 x kernels/04_thread_tile_2d.cu"]),
        (["list", "--json"], ["build ladder", "exec build/bin/ladder --list --json"]),
        (
            ["--quick", "--quick", "--sim", "--results", "a b"],
            [
                "build ladder ceilings baselines simulator",
                "need_python report",
                f"exec python3 -m tools.ladder_run --here= --quick --sim --results '{ROOT}/a b'",
            ],
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_is_set_up_built_and_started(arguments, expected, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert cli.main([str(ROOT), "", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == expected


# ---- set-up ----------------------------------------------------------------------------------------------------------


def setup_sh(script: str, folder: Path, path: str) -> subprocess.CompletedProcess:
    """Runs a script after sourcing tools/setup.sh, in `folder`, with nothing on the PATH but `path`."""
    bash = shutil.which("bash")
    command = [bash, "-euo", "pipefail", "-c", f"cd '{folder}'; source '{ROOT}/tools/setup.sh'; {script}"]
    return subprocess.run(command, env={"PATH": path, "HOME": str(folder)}, capture_output=True, text=True)


def tools(folder: Path, *names: str) -> str:
    """A PATH with the basic tools and the named ones."""
    folder.mkdir()
    for name in ("bash", "sed", "sort", "head", "tail", "tr", "mkdir", "rm", "dirname", "basename", "cat", *names):
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def test_setup_compares_versions():
    script = "at_least 12.4 13.0 && at_least 12.4 12.4 && ! at_least 12.4 11.8 && ! at_least 3.25 3.9 && ! at_least 3.25 ''"
    assert setup_sh(script, ROOT, os.environ["PATH"]).returncode == 0


def test_setup_without_a_compiler_says_what_to_install(tmp_path):
    done = setup_sh("need_build", tmp_path, tools(tmp_path / "bin"))
    assert done.returncode == 1
    assert "C++20 compiler" in done.stderr


def test_setup_without_python_says_what_to_install(tmp_path):
    done = setup_sh("need_python report", tmp_path, tools(tmp_path / "bin"))
    assert done.returncode == 1
    assert "Python 3.10" in done.stderr


def test_setup_without_a_network_names_what_is_missing(tmp_path):
    """pip is told of an index that does not exist; nothing of the machine may be changed meanwhile."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/report.txt").write_text("a-package-that-nobody-has>=1\n")
    script = "export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1; unset PIP_FIND_LINKS; need_python report"
    done = setup_sh(script, tmp_path, os.environ["PATH"])
    assert done.returncode == 1
    assert "a-package-that-nobody-has" in done.stderr
    assert "Is there a network?" in done.stderr
    by_hand = ".venv/bin/pip install --requirement=requirements/report.txt"
    no_pip = "making .venv failed"  # Debian's Python may lack pip for it, which is fetched, too
    assert (by_hand if importlib.util.find_spec("ensurepip") else no_pip) in done.stderr


NVIDIA_SMI = "| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: {} |"


def fetches_cuda(tmp_path: Path, driver: str | None) -> subprocess.CompletedProcess:
    """need_cuda on a machine with this driver, or none, and no compiler, where pip says what it is asked for."""
    path = tools(tmp_path / "bin")
    answers = {"python3": 'echo "$*" >>asked; [[ $* != *install* ]]'}
    if driver:
        answers["nvidia-smi"] = f"echo '{NVIDIA_SMI.format(driver)}'"
    for name, answer in answers.items():
        (tmp_path / "bin" / name).write_text(f"#!{shutil.which('bash')}\n{answer}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    # Whatever compilers this machine has are hidden.
    return setup_sh("usable_nvcc() { return 1; }; need_cuda", tmp_path, path)


def test_a_driver_that_is_too_old_is_named_before_anything_is_fetched(tmp_path):
    done = fetches_cuda(tmp_path, "12.8")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "this driver is too old" in line and "it runs CUDA up to 12.8, not 13.0" in line
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("driver", ["13.0", "13.1", None])
def test_for_a_driver_that_is_new_enough_or_none_cuda_is_fetched(driver, tmp_path):
    done = fetches_cuda(tmp_path, driver)
    assert "CUDA 13.0 from NVIDIA's Python wheels into .deps/cuda (0.6 GB to fetch)" in done.stderr
    assert "requirements/cuda.txt" in (tmp_path / "asked").read_text()


def test_what_the_tests_can_do_without_does_not_end_the_run(tmp_path):
    """No network for pip, no packages of the system."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "requirements").mkdir()
    for name in ("test", "sass"):
        (tmp_path / f"requirements/{name}.txt").write_text("a-package-that-nobody-has>=1\n")
    script = """
      export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1; unset PIP_FIND_LINKS
      has_header() { return 1; }; download_debs() { return 1; }; cuobjdump=; type() { return 1; }
      for need in need_googletest need_sass "need_python test"; do optional=yes $need && exit 3 || echo "without ${need}"; done
    """
    done = setup_sh(script, tmp_path, os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["without need_googletest", "without need_sass", "without need_python test"]
    assert "libgtest-dev" in done.stderr and "a-package-that-nobody-has" in done.stderr


@pytest.mark.parametrize("network", [True, False])
def test_cutlass_is_fetched_once_and_done_without(network, tmp_path):
    """pip is a stand-in: with a network it unpacks what passes for the wheel."""
    path = tools(tmp_path / "bin", "mv", "touch")
    pip = 'echo "$*" >>asked; [[ $* == *install* ]] || exit 0; exit 1'
    if network:
        header = ".deps/cutlass.part/cutlass_library/source/include/cute"
        pip = f'echo "$*" >>asked; if [[ $* == *install* ]]; then mkdir -p {header}; touch {header}/tensor.hpp; fi'
    (tmp_path / "bin/python3").write_text(f"#!{shutil.which('bash')}\n{pip}\n")
    (tmp_path / "bin/python3").chmod(0o755)
    done = setup_sh("need_cutlass; need_cutlass; echo on", tmp_path, path)
    assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr
    assert (tmp_path / ".deps/cutlass/include/cute/tensor.hpp").exists() == network
    assert ("rm -r .deps/cutlass" in done.stderr) != network
    assert (tmp_path / "asked").read_text().count("install") == 1
    given = setup_sh("LADDER_CUTLASS=elsewhere need_cutlass", tmp_path, path)
    assert (given.returncode, given.stderr) == (0, "")


def test_missing_tells_met_requirements_from_others(tmp_path):
    file = tmp_path / "wanted.txt"
    file.write_text("# comment\npytest>=1.0\npytest==0.1\nnobody-has-this>=2\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("pytest>=999.0  # not yet\n")
    done = subprocess.run([sys.executable, ROOT / "tools/missing.py", file], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["pytest==0.1", "nobody-has-this>=2", "pytest>=999.0"]


# ---- the whole run, with stand-ins for the programs that need a GPU ----------------------------------------------------

LADDER = """#!/usr/bin/env bash
# Stands in for the ladder: tells its facts, or appends a row to --csv and writes --environment.
if [[ $* == "--list --json" ]]; then echo '{"types": [{"name": "f32"}, {"name": "e5m2"}], "rungs": []}'; exit; fi
echo "$*" >>calls.txt
gpu='NVIDIA H200'
while (($#)); do
  case $1 in
    --sim) gpu='Simulated NVIDIA H200 (PTX on the CPU)' ;;
    --csv) csv=$2 ;;
    --environment) echo "{ \"gpu\": \"$gpu\" }" >"$2" ;;
  esac
  shift
done
echo row >>"$csv"
if [[ -f sleep_at && $csv == *"$(<sleep_at)"* ]]; then
  trap 'exit 130' INT
  for _ in {1..200}; do sleep 0.1; done
  touch slept
fi
if [[ -f wrong_at && $csv == *"$(<wrong_at)"* ]]; then exit 1; fi
"""

STANDINS = {
    "build/bin/ladder": LADDER,
    "build/bin/ceilings": '#!/usr/bin/env bash\necho "ceilings" >>calls.txt\necho row >"$2"\n',
    "bin/nvidia-smi": """#!/usr/bin/env bash
[[ -f no_gpu ]] && exit 9
case $1 in
  --list-gpus) echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)' ;;
  *) echo 'NVIDIA H200' ;;
esac
""",
    "bin/cmake": "#!/usr/bin/env bash\n[[ $1 == --version ]] && echo 'cmake version 3.25.1'; exit 0\n",
    "bin/ninja": "#!/usr/bin/env bash\n",
    "bench/sweep_waves.py": """import sys
with open("calls.txt", "a") as calls:
    print("waves", *sys.argv[1:], "--resume", file=calls)
""",
    "plots/__main__.py": """import sys
from pathlib import Path
if sys.argv[1] == "use":
    with open("calls.txt", "a") as calls:
        print("drawn", *sys.argv[2:], file=calls)
    sys.exit()
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True, exist_ok=True)
(out / "report.html").write_text(" ".join(sys.argv[1:]))
""",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose programs are stand-ins; what is real are run_all.sh, tools/ and what they need of plots/."""
    needs_packages()
    for name in ("tools", "plots", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "run_all.sh", tmp_path)
    for name, text in STANDINS.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    for name in ("build.ninja", ".ninja_log"):
        (tmp_path / "build" / name).touch()
    (tmp_path / "build/CMakeCache.txt").write_text("LADDER_WITH:PATH=\n")
    (tmp_path / "build/generated").mkdir()
    set_commit(tmp_path, "abc")
    for name in (".deps", ".venv"):  # set up already, by the test run that this is part of
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def set_commit(checkout: Path, commit: str) -> None:
    (checkout / "build/generated/build_info.h").write_text(f'#pragma once\n#define GEMM_LADDER_COMMIT "{commit}"\n')


def calls(checkout: Path) -> list[str]:
    return (checkout / "calls.txt").read_text().splitlines()


def test_whole_run_measures_and_says_where_the_report_is(checkout):
    done = run_all(folder=checkout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Report: results/nvidia-h200/report.html"
    assert (checkout / "results/nvidia-h200/report.html").exists()
    made = calls(checkout)
    assert made[0] == "ceilings"
    assert "--check-only" in made[1], "rungs are checked before they are timed"
    for kind in ("f32", "e5m2"):  # every type that the ladder states
        of_type = [call for call in made if f"--type {kind} " in call]
        assert "--check-only" in of_type[0] and "--alpha -1.5 --beta 0.75" in of_type[0]
        sittings = [call for call in of_type if "--shapes 2048x2048x2048,4096x4096x4096,8192x8192x8192 --sittings" in call]
        assert [call.partition("--sittings ")[2].split()[0] for call in sittings] == [f"{sitting}/5" for sitting in range(1, 6)]
        assert all("ladder.csv" in call for call in sittings)
        (squares,) = (call for call in of_type if "--shapes square" in call)
        assert "--sittings" not in squares and made.index(sittings[0]) < made.index(squares) < made.index(sittings[-1])
    assert any("--shapes llm,tails,skinny" in call for call in made)
    assert any("--protocol steady" in call for call in made)
    assert made[-1].startswith("waves --csv results/nvidia-h200/waves.csv")
    assert all("--resume" in call for call in made[1:])
    assert "e5m2" in (checkout / "results/nvidia-h200/rungs.json").read_text()


def test_quick_run_takes_fewer_sizes(checkout):
    assert run_all("--quick", folder=checkout).returncode == 0
    timed = [call for call in calls(checkout) if "ladder.csv" in call]
    assert len(timed) == 1
    assert "8192" not in timed[0] and "--sittings" not in timed[0]


def test_a_finished_run_is_kept_in_the_archive(checkout):
    assert run_all("--quick", folder=checkout).returncode == 0
    done = run_all("--quick", folder=checkout)
    assert done.returncode == 0
    assert "the earlier results are now in" in done.stderr
    results = checkout / "results/nvidia-h200"
    (archived,) = (results / "archive").iterdir()
    assert (archived / "ladder.csv").read_text() == "row\n"
    assert (results / "ladder.csv").read_text() == "row\n"


def interrupt(
    checkout: Path, at: str = "results/nvidia-h200/ladder.csv", kill: Callable = os.killpg
) -> subprocess.CompletedProcess:
    """Presses Ctrl-C while the ladder writes to the file `at`."""
    (checkout / "sleep_at").write_text(Path(at).name)
    process = subprocess.Popen(
        [checkout / "run_all.sh", "--quick"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not (checkout / at).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.3)
    kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    (checkout / "sleep_at").unlink()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_an_interrupted_run_goes_on(checkout):
    done = interrupt(checkout)
    assert done.returncode == 130
    assert "the same command goes on from there" in done.stderr
    again = run_all("--quick", folder=checkout)
    assert again.returncode == 0, again.stderr
    assert "going on with the interrupted run" in again.stderr
    assert not (checkout / "results/nvidia-h200/archive").exists()
    assert calls(checkout).count("ceilings") == 1


def test_what_runs_ends_with_a_run_that_alone_is_interrupted(checkout):
    """As by a supervisor: Ctrl-C reaches what runs, too."""
    done = interrupt(checkout, kill=os.kill)
    assert done.returncode == 130 and done.stderr.splitlines()[-1].startswith("run_all.sh: interrupted; what was measured is in")
    assert not (checkout / "slept").exists()


def test_an_interrupted_run_of_other_sources_is_not_mixed_with_this_one(checkout):
    interrupt(checkout)
    set_commit(checkout, "def")
    done = run_all("--quick", folder=checkout)
    assert "the earlier results are now in" in done.stderr
    assert calls(checkout).count("ceilings") == 2


def test_a_wrong_result_is_told_at_the_end(checkout):
    (checkout / "wrong_at").write_text("check.csv")
    done = run_all("--quick", folder=checkout)
    assert done.returncode == 1
    assert "there are wrong results" in done.stderr
    assert (checkout / "results/nvidia-h200/report.html").exists()


def test_results_of_another_gpu_are_refused(checkout):
    folder = checkout / "elsewhere"
    folder.mkdir()
    (folder / "environment.json").write_text('{ "gpu": "NVIDIA A100-SXM4-40GB" }')
    done = run_all("--results", str(folder), folder=checkout)
    assert done.returncode == USAGE
    assert "holds results of NVIDIA A100-SXM4-40GB, and this is NVIDIA H200" in done.stderr.splitlines()[-1]
    assert not (checkout / "calls.txt").exists()


@pytest.fixture
def without_gpu(checkout):
    """The same checkout where nvidia-smi lists nothing and the simulator is built."""
    (checkout / "no_gpu").touch()
    (checkout / "build/sim").mkdir()
    (checkout / "build/sim/libcudart.so.13").touch()
    return checkout


def test_without_a_gpu_the_ladder_runs_on_the_simulator(without_gpu):
    done = run_all(folder=without_gpu)
    assert done.returncode == 0, done.stderr
    assert "no GPU here (nvidia-smi lists none): the ladder runs on the simulator" in done.stderr
    assert done.stdout.splitlines()[-1] == "Report: results/simulator/report.html"
    made = calls(without_gpu)
    assert all("--sim --resume" in call for call in made)
    assert sum("check.csv" in call and "tests/shapes/small.txt" in call for call in made) == 2
    (counted,) = [call for call in made if "counts.csv" in call]
    assert "256x256x256,512x512x512" in counted


def test_the_simulator_can_be_asked_for_beside_a_gpu(without_gpu):
    (without_gpu / "no_gpu").unlink()
    done = run_all("--sim", "--quick", folder=without_gpu)
    assert done.returncode == 0, done.stderr
    assert "no GPU here" not in done.stderr
    assert all("--sim" in call for call in calls(without_gpu)) and len(calls(without_gpu)) == 2
    assert not (without_gpu / "results/nvidia-h200").exists()


def test_a_finished_run_on_the_simulator_is_kept_in_the_archive(without_gpu):
    for _ in range(2):
        assert run_all("--quick", folder=without_gpu).returncode == 0
    (archived,) = (without_gpu / "results/simulator/archive").iterdir()
    assert (archived / "counts.csv").read_text() == "row\n"


def test_an_interrupted_run_on_the_simulator_goes_on(without_gpu):
    done = interrupt(without_gpu, "results/simulator/counts.csv")
    assert done.returncode == 130
    assert "the same command goes on from there" in done.stderr
    again = run_all("--quick", folder=without_gpu)
    assert again.returncode == 0, again.stderr
    assert "going on with the interrupted run" in again.stderr
    assert not (without_gpu / "results/simulator/archive").exists()


def test_without_gpu_and_simulator_the_recorded_results_are_shown(checkout):
    (checkout / "no_gpu").touch()
    recorded = checkout / "bench/recorded/nvidia-h200"
    recorded.mkdir(parents=True)
    (recorded / "ladder.csv").touch()
    done = run_all(folder=checkout)
    assert done.returncode == 0, done.stderr
    assert "no GPU here" in done.stderr and "the simulator is not built" in done.stderr
    assert done.stdout.splitlines()[-1] == "Report of recorded results: results/recorded/nvidia-h200/report.html"
    assert "--recorded" in (checkout / "results/recorded/nvidia-h200/report.html").read_text()
    assert not (checkout / "calls.txt").exists()


def test_without_a_gpu_and_without_recorded_results_it_says_so(checkout):
    (checkout / "no_gpu").touch()
    done = run_all(folder=checkout)
    assert done.returncode == 0
    assert "no results are recorded" in done.stderr


# ---- use ---------------------------------------------------------------------------------------------------------------

PYTHON = """#!/usr/bin/env bash
# Stands in for a python3 with PyTorch, where the file "torch" is; else it is the real one.
case "$*" in
  "-c import torch") [[ -f torch ]] ;;
  bench/use.py*) echo "$LD_PRELOAD $CUDA_DEVICE_ORDER $*" >>calls.txt; exit $(<torch) ;;
  *) exec "{}" "$@" ;;
esac
"""


@pytest.fixture
def with_torch(checkout):
    """The same checkout with a GPU and that python3. The file "torch" holds the exit status of what is started."""
    (checkout / "bin/python3").write_text(PYTHON.replace("{}", sys.executable))
    (checkout / "bin/python3").chmod(0o755)
    (checkout / "torch").write_text("0")
    return checkout


def test_use_times_pytorch_with_the_library_preloaded(with_torch):
    done = run_all("use", folder=with_torch)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Table: results/nvidia-h200/use.csv"
    library = "build/lib/libgemm_ladder_blas.so PCI_BUS_ID"
    table = "results/nvidia-h200/use.csv"
    assert calls(with_torch) == [f"{library} bench/use.py --csv {table}", f"drawn {table}"]
    assert run_all("use", "--results", "a b", folder=with_torch).returncode == 0
    assert (with_torch / "a b").is_dir() and calls(with_torch)[-1] == f"drawn {with_torch}/a b/use.csv"


def test_use_hands_over_the_exit_status(with_torch):
    (with_torch / "torch").write_text("77")
    assert (run_all("use", folder=with_torch).returncode, len(calls(with_torch))) == (77, 1)


@pytest.mark.parametrize("missing", ["GPU", "PyTorch"])
def test_use_without_a_gpu_or_pytorch_says_so_and_is_waived(missing, with_torch):
    if missing == "GPU":
        (with_torch / "no_gpu").touch()
    else:
        (with_torch / "torch").unlink()
    done = run_all("use", folder=with_torch)
    assert (done.returncode, done.stdout) == (77, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"run_all.sh: use needs {'a GPU' if missing == 'GPU' else 'PyTorch'}, and ")
