"""What a command line of run_all.sh asks for, as lines of shell for run_all.sh to carry out: what to set up, build and start.

usage: python3 -m tools.cli CALLER WITH COMMAND [WORD...]

CALLER is the folder that run_all.sh was called from, WITH that of --with, or "". Needs nothing but Python itself.
Words that are wrong are refused in one line, with exit status 2.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from shlex import join, quote
from typing import NamedTuple, NoReturn

from plots.data import gpu
from plots.data.gpu import has_gpu
from plots.errors import hint

FAILED, USAGE, WAIVED = 1, 2, 77
RUNTIME, DRIVER = Path("build/sim/libcudart.so.13"), Path("build/sim/libcuda.so.1")


def refuse(text: str, status: int = USAGE) -> NoReturn:
    print(f"run_all.sh: {text}", file=sys.stderr)
    sys.exit(status)


def unknown(what: str, word: str, lists_all: str, candidates: Iterable[str]) -> NoReturn:
    """Names the candidate that is like the word; where none is, the command that lists all."""
    refuse(f"{what} '{word}'{hint(word, candidates) or f'; ./run_all.sh {lists_all} lists all'}")


def unknown_option(command: str, word: str, before: str = "") -> NoReturn:
    """Names one that the command's lines of the help text have."""
    entry = "(?: --quick)? {2,}" if command == "--quick" else f" {command} "
    text = Path("run_all.sh").read_text(encoding="utf-8")
    usage = "".join(re.findall(rf"^#   \./run_all\.sh{entry}.*(?:\n#     .*)*", text, re.MULTILINE))
    unknown(f"{before}there is no option", word, f"{command} --help", [*re.findall("--[a-z-]+", usage), "--help"])


def build(*targets: str) -> str:
    return join(["build", *targets])


def start(module: str, *words: str) -> str:
    return join(["exec", "python3", "-m", module, *words])


class Call(NamedTuple):
    """Where run_all.sh was called, and with which folder of further rungs."""

    caller: str
    folder: str

    @property
    def here(self) -> str:
        """What the reader can open is named as seen from where they are: the way to the checkout."""
        return "" if os.path.samefile(self.caller, ".") else f"{Path.cwd()}/"

    @property
    def options(self) -> list[str]:
        return ["--with", self.folder] if self.folder else []

    def path(self, word: str) -> str:
        """A path that the caller named."""
        return word if word.startswith("/") else f"{self.caller}/{word}"

    def file_of(self, word: str) -> Path:
        """06, 6, bank_conflict_free and 06_bank_conflict_free all mean kernels/06_bank_conflict_free.cu.

        A rung's name is that of its file, so nothing need be built to find it.
        """
        word = f"0{word}" if re.fullmatch(r"\d[a-z]?", word) else word
        folders = ["kernels", "kernels/local", *filter(None, [self.folder])]
        files = [file for folder in folders for file in sorted(Path(folder).glob("*.cu"))]
        numbers = [file.stem.partition("_")[0] for file in files]
        for file, number in zip(files, numbers, strict=True):
            if word in (file.stem, number, file.stem.removeprefix(f"{number}_")):
                return file
        unknown("there is no rung", word, "list", [*numbers, *(file.stem for file in files)])

    def whole_ladder(self, *words: str) -> list[str]:
        options, left = [], iter(words)
        for word in left:
            if word == "--results":
                folder = next(left, "") or refuse("--results takes a folder")
                options += [word, self.path(folder)]
            elif word in ("--quick", "--sim"):
                options.append(word)
            else:
                unknown_option("--quick", word)
        simulator = ["simulator"] if "--sim" in options else []
        run = start("tools.ladder_run", f"--here={self.here}", *options)
        return [build("ladder", "ceilings", "baselines", *simulator), "need_python report", run]

    def test(self, *words: str) -> list[str]:
        """What cannot be set up (a GPU node without a network) is named, and the tests that do without it are run."""
        if words not in ((), ("--fast",)):
            refuse(f"test takes no argument but --fast, got '{' '.join(words)}'")
        return [
            "optional=yes need_googletest || :",
            "need_build",
            "again=yes configure",
            # while the compiler works; `words` by itself, since not every system has its wheel
            "{ optional=yes need_sass || :",
            "optional=yes need_python test docs || :",
            "optional=yes need_python words; } & brought=$!",
            "build all",
            "wait $brought || :",
            "use_sass || :",
            "use_venv || :",
            start("tools.test", *words),
        ]

    def run(self, *words: str) -> list[str]:
        rung, *arguments = [word for word in words if word != "--watch"] or refuse(
            "run takes a rung and its arguments, such as: run 06 4096 4096 4096"
        )
        file = self.file_of(rung)
        if "--watch" in words:
            return [self.watch(file, "run", file.stem, *arguments)]
        simulator = ["simulator"] if any(word.startswith("--sim") for word in arguments) else []
        return [build(file.stem, *simulator), join(["exec", f"build/bin/{file.stem}", *arguments])]

    def watch(self, file: Path, *command: str) -> str:
        return start("tools.watch", str(file), "./run_all.sh", *self.options, *command)

    def new(self, *words: str) -> list[str]:
        left, source = [*words], ""
        while "--from" in left[:-1]:
            place = left.index("--from")
            source = left[place + 1]
            del left[place : place + 2]
        if len(left) != 2 or not source:
            refuse("new takes a number, a name and --from, such as: new 90 my_idea --from 16")
        return [start("tools.new_rung", *left, str(self.file_of(source)), *self.options[1:])]

    def exercise(self, *words: str) -> list[str]:
        number, *more = [word for word in words if not word.startswith("-")] or [""]
        how = [word for word in words if word.startswith("-")]
        for word in how:
            if word not in ("--watch", "--solution"):
                unknown_option("exercise", word, "exercise: ")
        if more:
            refuse("exercise takes one number, such as: exercise 1")
        if not number:
            return ["exec python3 -m tools.exercise list"]
        from tools.exercise import Refused, copy, exercise  # not above: run has to start quickly

        try:
            file = copy(exercise(number), *map(Path, self.options[1:]))
        except Refused as refused:
            refuse(f"exercise: {refused}")
        except OSError as error:
            refuse(f"exercise: {error.filename}: {error.strerror}", FAILED)
        if how[-1:] == ["--watch"]:
            return [self.watch(file, "exercise", number)]
        if how:
            return [start("tools.exercise", "solution", number, str(file))]
        rung = self.file_of(file.stem.partition("x_")[0]).stem
        check = start("tools.exercise", "check", number, str(file))
        return [build(rung, file.stem, "simulator"), check]

    def rungs(self, *words: str) -> list[str]:
        return ["build ladder", join(["exec", "build/bin/ladder", "--list", *words])]

    def diff(self, *words: str) -> list[str]:
        if len(words) not in (1, 2):
            refuse("diff takes two rungs, such as: diff 05 06, or one and compares it with its predecessor")
        to = self.file_of(words[-1]).stem
        if len(words) == 1:  # its program states the predecessor
            return [
                f"build {to}",
                f"from=$(python3 -m plots.data.rungs predecessor {to})",
                f'carry_out diff "$from" {join(words)}',
            ]
        if not words[0]:
            refuse(f"{to} states no predecessor: name the rung to compare it with, such as: diff 01 {words[-1]}")
        stems = [self.file_of(words[0]).stem, to]
        compare = start("tools.diff", *stems)
        return [build(*stems), "need_sass", "need_python report", compare]

    def profile(self, *words: str) -> list[str]:
        if len(words) not in (1, 4) and (len(words) != 6 or words[4] != "--type"):
            refuse(
                "profile takes a rung, M N K (4096 4096 4096 without) and --type, such as: profile 14 4096 4096 4096 --type tf32"
            )
        stem = self.file_of(words[0]).stem
        if not shutil.which("ncu"):
            refuse("profile needs Nsight Compute: no 'ncu' on the PATH (developer.nvidia.com/nsight-compute)", FAILED)
        if not has_gpu():
            refuse("profile needs a GPU, and nvidia-smi lists none", WAIVED)
        return [f"build {stem}", "need_python report", start("tools.profile", stem, *words[1:])]

    def counts(self, *words: str) -> list[str]:
        if not words:
            refuse("counts takes a rung and its arguments, such as: counts 06 256 256 256")
        stem = self.file_of(words[0]).stem
        count = start("tools.counts", stem, *words[1:])
        return [f"build {stem} simulator", "need_python report", count]

    def sim(self, *words: str) -> list[str]:
        """The program runs where the caller is, with its arguments as they are. Each option is a variable of the simulator's."""
        left, lines = [*words], []
        while left and left[0].startswith("-"):
            if not re.fullmatch("--sim-(seed|gpu|counts|checks)", left[0]):
                unknown_option("sim", left[0], "sim: ")
            if not (value := "".join(left[1:2])):
                refuse(f"sim: {left[0]} takes a value")
            lines.append(f"export GEMM_LADDER_{left[0][2:].upper().replace('-', '_')}={quote(value)}")
            del left[:2]
        if not left:
            refuse("sim takes a program and its arguments, such as: sim ./vector_add 1024")
        program = self.path(os.path.expanduser(left[0]) if left[0].startswith("~/") else left[0])
        from tools import sim_program

        try:
            sim_program.check(Path(program))
        except sim_program.Refused as refused:
            refuse(f"sim: {program}: {refused}", refused.status)
        if not (RUNTIME.is_file() and DRIVER.is_file()):
            lines.append("build simulator")
        why = "sim: the simulator is not built (cmake --preset default says why)"
        return [
            *lines,
            f'[[ -f {RUNTIME} ]] || {{ say "run_all.sh: {why}"; exit {WAIVED}; }}',
            "export LD_LIBRARY_PATH=$PWD/build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
            f"cd {quote(self.caller)}",
            join(["exec", program, *left[1:]]),
        ]

    def use(self, *words: str) -> list[str]:
        """The caller's python3 is the one with PyTorch, which no set-up fetches."""
        results, left = "", iter(words)
        for word in left:
            if word != "--results":
                unknown_option("use", word, "use: ")
            results = self.path(next(left, "") or refuse("--results takes a folder"))
        if not has_gpu():
            refuse("use needs a GPU, and nvidia-smi lists none", WAIVED)
        python = shutil.which("python3")
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
            refuse(f"use needs PyTorch, and {python} cannot import torch: put one that can first on the PATH", WAIVED)
        folder = results or f"{self.here}results/{gpu.folder(gpu.name())}"
        file, library = f"{folder}/use.csv", "build/lib/libgemm_ladder_blas.so"  # a whole path could hold spaces
        variables = ["CUDA_DEVICE_ORDER=PCI_BUS_ID", "GEMM_LADDER_TYPES=f32,tf32,bf16,f16", f"LD_PRELOAD={library}"]
        return [
            build("gemm_ladder_blas"),
            join(["mkdir", "-p", folder]),
            join(["env", *variables, python, "bench/use.py", "--csv", file]),
            join(["echo", f"Table: {file}"]),
            "need_python report",
            join(["python3", "-m", "plots", "use", file]),
        ]

    def python(self, *words: str) -> list[str]:
        """With a GPU the caller's python3, which may have PyTorch; without one .venv's, which has NumPy, on the simulator."""
        if not words:
            refuse("python takes a rung and a program, such as: python 90 product.py")
        stem = self.file_of(words[0]).stem
        python, simulated = shutil.which("python3") or "python3", not has_gpu()
        lines = [build(f"library_{stem}", *["simulator"] * simulated)]
        if simulated:
            lines += ["need_python report", "export LD_LIBRARY_PATH=$PWD/build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"]
            python = "python3"
        return [
            *lines,
            f"export GEMM_LADDER_LIBRARY=$PWD/build/lib/libgemm_ladder_{stem}.so",
            "export PYTHONPATH=$PWD/lib/python${PYTHONPATH:+:$PYTHONPATH}",
            f"cd {quote(self.caller)}",
            join(["exec", python, *words[1:]]),
        ]

    def compare(self, *words: str) -> list[str]:
        if len(words) != 2:
            refuse("compare takes two results folders, such as: compare results/before results/after")
        return ["need_python report", start("plots", "compare", *map(self.path, words))]

    def words(self, *files: str) -> list[str]:
        """A report, whose exit status does not tell what was found."""
        return ["need_python words", start("tools.words", *map(self.path, files))]

    def docs(self, *words: str) -> list[str]:
        if words:
            refuse(f"docs takes no arguments, got '{' '.join(words)}'")
        site = re.search(r"^site_dir: *(.*)", Path("mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)[1]
        page = quote(f"{self.here}{site}/index.html")
        return [
            "need_python docs",
            "mkdocs build --quiet --strict",
            f"[[ -s {page} ]] || die {page} was not written",
            f"echo Documentation: {page}",
        ]


COMMANDS = {"--quick": Call.whole_ladder, "list": Call.rungs, "words": Call.words} | {
    name: getattr(Call, name)
    for name in ("test", "run", "new", "exercise", "diff", "profile", "counts", "sim", "use", "python", "compare", "docs")
}


def main(arguments: list[str]) -> int:
    caller, folder, command, *words = arguments
    if command not in COMMANDS:
        unknown("there is no sub-command", command, "help", [*COMMANDS, "help"])
    print(*COMMANDS[command](Call(caller, folder), *words), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
