"""The learner's loop: run_all.sh new, run --watch, counts and diff; and the page that leads through them, carried out."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests import checkout
from tests.checkout import INTERRUPTED, ROOT, USAGE, needs_simulator, one_line, rows
from tools.new_rung import HEADER, adapted

RUNGS = sorted((ROOT / "kernels").glob("*.cu"))
PAGE = (ROOT / "docs/your_own_kernel.md").read_text(encoding="utf-8")


@pytest.fixture
def local(own_checkout):
    """kernels/local, where new rungs lie."""
    yield own_checkout / "kernels/local"
    shutil.rmtree(own_checkout / "kernels/local")
    (own_checkout / "kernels/local").mkdir()


@pytest.fixture
def run_all(own_checkout):
    return partial(checkout.run_all, checkout=own_checkout)


# ---- new -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", RUNGS, ids=lambda path: path.stem)
def test_a_copy_says_what_it_is_and_keeps_the_kernel(source):
    text = source.read_text(encoding="utf-8")
    copy = adapted(text, source.stem, "90", "my_idea")
    number = source.stem.partition("_")[0]
    facts = {"number": "90", "name": "my_idea", "predecessor": number, "idea": f"{source.stem} as it is, yours to change"}
    for fact, value in facts.items():
        assert copy.count(f'    .{fact} = "{value}",\n') == 1
    assert copy.startswith(f"// 90_my_idea · {source.stem} as it is, yours to change\n")
    assert re.search(r"^// Run +\./run_all\.sh run 90 \d+ \d+ \d+", copy, re.MULTILINE)

    def kernel(of: str) -> list[str]:  # without header and facts
        lines = of[of.index("#include") :].splitlines()
        return [line for line in lines if not re.match(r"    \.(number|name|idea|predecessor|kind) = ", line)]

    assert kernel(copy) == kernel(text)
    assert len(copy[: copy.index("#include")].splitlines()) == len(HEADER.splitlines())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "new takes a number, a name and --from, such as: new"),
        (["90", "my_idea"], "new takes a number, a name and --from"),
        (["90", "my_idea", "--from"], "new takes a number, a name and --from"),
        (["90", "my", "idea", "--from", "04"], "new takes a number, a name and --from"),
        (["06", "my_idea", "--from", "04"], "the number 06 is that of kernels/06_bank_conflict_free.cu; 9"),
        (["6", "my_idea", "--from", "04"], "the number 06 is that of kernels/06_bank_conflict_free.cu; 9"),
        (["90x9", "my_idea", "--from", "04"], "the number of a rung is two digits, perhaps with a letter"),
        (["90", "naive", "--from", "04"], "the name naive is that of kernels/01_naive.cu"),
        (["90", "my-idea", "--from", "04"], "the name of a rung is letters, digits and _"),
        (["90", "../my_idea", "--from", "04"], "the name of a rung is letters, digits and _"),
        (["90", "my_idea", "--from", "77"], "there is no rung '77'; ./run_all.sh list lists all"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_new_refuses_in_one_line(arguments, expected, run_all, tmp_path):
    assert expected in one_line(run_all("new", *arguments, "--with", tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_new_rung_lies_in_kernels_local(run_all, local):
    done = run_all("new", "90", "my_idea", "--from", "19")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kernels/local/90_my_idea.cu is a copy of kernels/19_cute_simple.cu. Next:\n")
    assert "./run_all.sh diff 19 90 " in done.stdout
    assert (local / "90_my_idea.options").read_text() == (ROOT / "kernels/19_cute_simple.options").read_text()
    assert "the number 90 is that of kernels/local/90_my_idea.cu" in one_line(run_all("new", "90", "my_idea", "--from", "19"))


def test_the_copy_of_an_own_rung_lies_beside_it(run_all, tmp_path):
    """Its options may name folders relative to it."""
    assert run_all("new", "90a", "my_idea", "--from", "04", "--with", tmp_path).returncode == 0
    (tmp_path / "90a_my_idea.options").write_text("-I include\n")
    assert run_all("new", "90b", "another", "--from", "90a", "--with", tmp_path).returncode == 0
    assert (tmp_path / "90b_another.options").read_text() == "-I include\n"
    assert '.predecessor = "90a",' in (tmp_path / "90b_another.cu").read_text()


@needs_simulator
def test_diff_is_of_the_file_that_is_there_now(run_all, tmp_path):
    """The rung may have been in another folder before, and the build keeps what it made of it there."""
    for folder, tile in ((tmp_path / "first", 64), (tmp_path / "second", 128)):
        folder.mkdir()
        assert run_all("new", "90", "my_idea", "--from", "04", "--with", folder).returncode == 0
        file = folder / "90_my_idea.cu"
        file.write_text(file.read_text().replace("BM = 128;", f"BM = {tile};"))
        done = run_all("diff", "04", "90", "--with", folder)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"threads per block +│ +256 │ +{tile * 2} ", done.stdout)


# ---- watch -----------------------------------------------------------------------------------------------------------


class Watch:
    """A watch whose output is read as it comes."""

    def __init__(self, *command: object, cwd: Path):
        self.process = subprocess.Popen(
            list(map(str, command)), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def until(self, end: str) -> str:
        """What it says up to a line that begins with `end`."""
        said = ""
        for line in self.process.stdout:
            said += line
            if line.startswith(end):
                return said
        raise AssertionError(f"it ended before it said '{end}': {said}")

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(signal.SIGTERM)


def watch(folder: Path, script: str) -> Watch:
    """Of folder/mine.cu; the command is a shell script."""
    return Watch(sys.executable, "-m", "tools.watch", "mine.cu", "bash", "-c", script, cwd=folder)


def test_a_saved_file_or_header_runs_the_command_again(tmp_path):
    file, header = tmp_path / "mine.cu", tmp_path / "mine.h"
    file.write_text('#include "mine.h"\nfirst\n')
    header.write_text("a header\n")
    with watch(tmp_path, "cat mine.cu mine.h") as running:
        assert "first\na header\nwatching mine.cu" in running.until("watching")
        replacement = tmp_path / "mine.cu~"  # as many editors save
        replacement.write_text('#include "mine.h"\nsecond\n')
        replacement.rename(file)
        assert "== mine.cu was saved\n" in (said := running.until("watching")) and "second\na header" in said
        header.write_text("another header\n")
        assert "== mine.h was saved\n" in (said := running.until("watching")) and "second\nanother header" in said
        assert running.end() == INTERRUPTED


def test_saving_stops_a_run_that_has_not_ended(tmp_path):
    (tmp_path / "mine.cu").write_text("first\n")
    with watch(tmp_path, "cat mine.cu; echo begun; grep -q second mine.cu || { sleep 600; echo slept; }") as running:
        running.until("begun")
        (tmp_path / "mine.cu").write_text("second\n")
        said = running.until("watching")
        assert "second\nbegun\n" in said and "slept" not in said


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_what_runs_ends_with_the_watch(how, status, tmp_path):
    (tmp_path / "mine.cu").touch()
    with watch(tmp_path, "sleep 600 & echo $!; wait") as running:
        child = int(running.process.stdout.readline())
        assert running.end(how) == status
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and "\nState:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < deadline, "the command's own child is still there"
        time.sleep(0.05)


def test_a_usage_error_of_the_first_run_ends_the_watch(own_checkout):
    with Watch("./run_all.sh", "run", "01", "0", "64", "64", "--sim", "--watch", cwd=own_checkout) as running:
        said, _ = running.process.communicate(timeout=600)
        assert running.process.returncode == USAGE
        assert "M must be a whole number" in said.splitlines()[-1]


# ---- the page, carried out as it stands --------------------------------------------------------------------------------


@needs_simulator
def test_the_page_is_true(own_checkout, run_all, local, tmp_path):
    """Its five commands and its changes of the file, in this order; what it says they print, they print. With --sim, as the page
    tells those who have a GPU."""
    commands = [line.split()[1:] for line in re.findall(r"^\./run_all\.sh .*$", PAGE, re.MULTILINE)]
    printed = iter(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    assert [command[0] for command in commands] == ["new", "run", "counts", "diff", "python"], "five commands, as it promises"
    new, run, counts, diff, python = commands

    def said_by(text: str, block: str) -> bool:
        """Whether the lines of a block are in a text, in order; a path within the checkout may be whole."""
        lines = iter(text.replace(f"{own_checkout}/", "").splitlines())
        return all(any(wanted.rstrip() in line for line in lines) for wanted in block.splitlines())

    done = run_all(*new)
    assert done.returncode == 0, done.stderr
    assert said_by(done.stdout, next(printed))

    file = local / "90_my_idea.cu"
    (before,) = re.findall(r"```cuda\n(.*?)```", PAGE, re.DOTALL)
    barrier = "    __syncthreads();  // the tile is complete\n"

    def save(*, of: str, to: str) -> None:
        text = file.read_text()
        assert text.count(of) == 1
        file.write_text(text.replace(of, to))

    with Watch("./run_all.sh", *run, "--sim", cwd=own_checkout) as watching:
        assert said_by(watching.until("watching"), next(printed))
        save(of=before, to=before.replace("128", "64"))
        assert said_by(watching.until("watching"), next(printed))
        save(of="BM = 64", to="BM = 100")
        assert said_by(said := watching.until("watching"), next(printed))
        assert "FAILED" not in said and "nvcc" not in said, "the compiler's lines only"
        save(of="BM = 100", to="BM = 64")
        watching.until("watching")
        save(of=barrier, to=barrier.replace("__syncthreads();", ""))
        said, report = watching.until("watching"), next(printed)
        (other,) = re.findall(r"`(a race .*?)`", PAGE)
        assert said_by(said, report) or said_by(said, f"simulator: {other}\n{report.splitlines()[1]}"), said
        save(of=barrier.replace("__syncthreads();", ""), to=barrier)
        assert " ok\n" in watching.until("watching")
        assert watching.end() == INTERRUPTED

    def counted(of: str, begin: str, column: str) -> str:
        """The count of the line that begins so."""
        done = run_all(*(of if word == "90" else word for word in counts), "--csv", tmp_path / "counts.csv")
        assert done.returncode == 0, done.stderr
        (value,) = {row[column] for row in rows(tmp_path / "counts.csv") if row["source"].startswith(begin)}
        return f"{int(value):,}"

    lines = re.findall(r"^\| `(.*?)…` \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(lines) == 2
    for begin, *requests in lines:
        assert [counted(rung, begin, "global requests") for rung in ("04", "90")] == requests

    done = run_all(*diff)
    assert done.returncode == 0, done.stderr
    assert "static constexpr int BM = 64;" in done.stdout
    facts = next(printed)
    assert said_by(done.stdout, facts) or "Compiled for sm_90a" not in done.stdout  # another compiler target has other registers

    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / python[-1]).write_text(program)
    done = run_all(*python[:-1], tmp_path / python[-1])
    assert done.returncode == 0, done.stderr
    assert said_by(done.stdout, next(printed))
    assert next(printed, None) is None

    # the answers of "Go on"
    save(of="BM = 64", to="BM = 128")
    (requests,) = re.findall(r"its line makes (\S+) requests, that of B (\S+)\.", PAGE)
    (arrivals,) = re.findall(r"The arrivals double, from (\S+) to (\S+) at each barrier", PAGE)
    save(of="BN = 128", to="BN = 64")
    assert [counted("90", begin, "global requests") for begin, *_ in lines] == [*requests]
    save(of="BN = 64", to="BN = 128")
    assert counted("90", "__syncthreads()", "barrier arrivals") == arrivals[0]
    save(of="BK = 16", to="BK = 8")
    assert counted("90", "__syncthreads()", "barrier arrivals") == arrivals[1]
    done = run_all(*(word for word in run if word != "--watch"), "--sim")
    assert " 1.049 MB " in done.stdout, "the bytes stay the same"


def test_the_page_predicts_what_it_shows():
    """4 M N K (1 / BM + 1 / BN), before and after."""
    shown = re.findall(r"256x256x256 +(\d\.\d+) MB", PAGE)
    for bm, megabytes in zip((128, 64), shown, strict=True):
        predicted = 4 * 256**3 * (1 / bm + 1 / 128)
        assert f"{predicted:,.0f}" in PAGE
        assert f"{predicted / 1e6:.4g}" == megabytes
