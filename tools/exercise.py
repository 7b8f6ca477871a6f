"""The exercises: kernels of the ladder with holes, and what is wrong with the lines that fill them.

usage: python3 -m tools.exercise list
       python3 -m tools.exercise check NUMBER FILE      runs its program beside the rung's, and explains
       python3 -m tools.exercise solution NUMBER FILE   what to change, as a diff

An exercise is docs/exercises/NUMBER_NAME.cu: a header, then holes, each between `// [region]` and `// [/region]`. The rung that
it is made from has regions of the same names, in its own file or in common/layout.h. So the answer stands there and nowhere else,
and the learner's file is the rung with the holes in place of them. NUMBER_NAME.explain.cpp says what the learner's lines mean.
"""

import csv
import difflib
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plots.data.gpu import has_gpu
from tools.new_rung import LADDER, LOCAL, Refused, field, with_facts

EXERCISES, LAYOUT = Path("docs/exercises"), Path("common/layout.h")
PROGRAMS, SIMULATOR = Path("build/bin"), Path("build/sim/libcudart.so.13")
OPTIONS = "warnings-allowed  # what a hole leaves unused is no error\nfor-the-simulator\n"
REGION = re.compile(r"^([ \t]*)// \[([\w-]+)\]\n(.*?)^[ \t]*// \[/\2\]\n", re.MULTILINE | re.DOTALL)
WAIVED = 77
MINUTES = 5
WIDTH = 100


def regions(text: str) -> dict[str, str]:
    """The lines between the markers, by name; of regions in regions the inner ones, too."""
    found = {}
    for match in REGION.finditer(text):
        found[match[2]] = match[3]
        found |= regions(match[3])
    return found


def dedented(text: str) -> str:
    """textwrap.dedent, but for lines of the preprocessor, which begin at the left anyway."""
    least = min((len(line) - len(line.lstrip()) for line in text.splitlines() if line.strip() and line[0] != "#"), default=0)
    return re.sub(rf"^ {{{least}}}", "", text, flags=re.MULTILINE)


def spliced(text: str, holes: dict[str, str]) -> str:
    """The text with other lines in regions that it has, as far to the right as the markers are. Markers stay."""
    for name, hole in holes.items():
        marked = re.compile(rf"^([ \t]*)(// \[{name}\]\n).*?(^[ \t]*// \[/{name}\]\n)", re.MULTILINE | re.DOTALL)
        indented = partial(textwrap.indent, hole, predicate=lambda line: line.strip() and line[0] != "#")
        text = marked.sub(lambda m, indented=indented: f"{m[1]}{m[2]}{indented(m[1])}{m[3]}", text)
    return text


@dataclass
class Exercise:
    """One of docs/exercises."""

    path: Path

    @property
    def number(self) -> str:
        return self.path.stem.partition("_")[0]

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def header(self) -> str:
        return re.match(r"(//.*\n)+", self.text)[0]

    @property
    def stem(self) -> str:
        """Of the learner's file, such as 13x_exercise_1."""
        return re.match(r"// (\S+) · ", self.header)[1]

    @property
    def title(self) -> str:
        return re.match(r"// \S+ · exercise \d+: (.*)\n", self.header)[1]

    @property
    def goal(self) -> str:
        """The field of the header, whole."""
        lines = re.search(r"^// Goal +(.*(?:\n//  .*)*)", self.header, re.MULTILINE)[1]
        return re.sub(r"\n// +", " ", lines)

    @property
    def rung(self) -> Path:
        number = re.search(r"^// Changed from (\w+) ", self.header, re.MULTILINE)[1]
        (file,) = LADDER.glob(f"{number}_*.cu")
        return file

    @property
    def rung_number(self) -> str:
        return self.rung.stem.partition("_")[0]

    @property
    def constants(self) -> list[str]:
        """Those that the learner's kernel has in place of the rung's, such as "ONLY 9": one tile compiles faster than many."""
        given = re.search(r"^// Constants +(.*)\n", self.header, re.MULTILINE)
        return given[1].split(", ") if given else []

    @property
    def holes(self) -> dict[str, str]:
        return regions(self.text)

    @property
    def answers(self) -> dict[str, str]:
        """The same regions as the rung has them, or the library."""
        known = regions(LAYOUT.read_text(encoding="utf-8")) | regions(self.rung.read_text(encoding="utf-8"))
        return {name: dedented(known[name]) for name in self.holes}

    def arguments(self, field_name: str) -> list[str]:
        """Of its program: "Simulator" or "GPU"."""
        return field(self.header, field_name).split()

    def filled(self, lines: dict[str, str]) -> str:
        """The learner's file with these lines in the holes.

        A function of the library is put in front of the kernel, where it hides the library's.
        """
        rung = self.rung.read_text(encoding="utf-8")
        body = rung[rung.index("#include") :]
        own = regions(body)
        ahead = "".join(f"// [{name}]\n{lines[name]}// [/{name}]\n\n" for name in lines if name not in own)
        body = spliced(body, {name: text for name, text in lines.items() if name in own})
        body = body.replace("namespace {\n\n", f"namespace {{\n\n{ahead}", 1)
        number, _, name = self.stem.partition("_")
        idea = f"exercise {self.number}: {self.title}"
        facts = {"number": number, "name": name, "idea": idea, "predecessor": self.rung_number}
        constants = "".join("#define TUNE_{} , {}\n".format(*constant.split()) for constant in self.constants)
        return f"{self.header}{constants}{with_facts(body, self.rung.stem, facts)}"


def exercises() -> list[Exercise]:
    return sorted((Exercise(path) for path in EXERCISES.glob("[0-9]*_*.cu")), key=lambda one: int(one.number))


def exercise(number: str) -> Exercise:
    """Raises Refused."""
    known = {one.number: one for one in exercises()}
    if number not in known:
        raise Refused(f"there is no exercise '{number}'; there are {', '.join(known)}")
    return known[number]


def copy(one: Exercise, own: Path = LOCAL) -> Path:
    """The learner's file in `own`, made where it is not there yet."""
    target = own / f"{one.stem}.cu"
    if not target.exists():
        own.mkdir(exist_ok=True)
        target.with_suffix(".options").write_text(OPTIONS, encoding="utf-8")
        target.write_text(one.filled(one.holes), encoding="utf-8")
        print(f"{target} is new: fill its holes", file=sys.stderr)
    return target


# ---- what is wrong -----------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """Of one program: its exit status, its row of CSV, and what it printed."""

    status: int
    row: dict[str, str]
    text: str

    @property
    def wavefronts(self) -> int:
        return int(self.row.get("sim_shared_wavefronts") or 0)

    @property
    def conflicts(self) -> int:
        return self.wavefronts - int(self.row.get("sim_shared_ideal") or 0)


def run(program: Path, arguments: list[str]) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "row.csv"
        try:
            done = subprocess.run([program, *arguments, "--csv", table], capture_output=True, text=True, timeout=MINUTES * 60)
        except subprocess.TimeoutExpired:
            return Run(1, {}, f"it did not end within {MINUTES} minutes\n")
        rows = list(csv.DictReader(table.open(newline=""))) if table.exists() else []
    row = {column: value.replace(f"{Path.cwd()}/", "") for column, value in rows[0].items()} if rows else {}
    return Run(done.returncode, row, done.stdout if rows else done.stdout + done.stderr)


def compiler() -> str:
    """The C++ compiler of the build."""
    cache = Path("build/CMakeCache.txt")
    known = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache.read_text() if cache.exists() else "", re.MULTILINE)
    return known[1] if known else "c++"


def findings(one: Exercise, file: Path) -> list[str]:
    """What the learner's lines mean, where that is wrong. Raises Refused where they cannot be looked at by themselves."""
    lines = regions(file.read_text(encoding="utf-8"))
    missing = [name for name in one.holes if name not in lines]
    if missing:
        marks = f"'// [{missing[0]}]' and '// [/{missing[0]}]'"
        raise Refused(f"the lines {marks} are no longer in {file}, so only the result is checked")
    with tempfile.TemporaryDirectory() as folder:
        for kind, texts in (("hole", lines), ("solution", one.answers)):
            (Path(folder) / kind).mkdir()
            for name in one.holes:
                (Path(folder) / kind / name).write_text(texts[name], encoding="utf-8")
        program = Path(folder) / "explain"
        source = one.path.with_suffix(".explain.cpp")
        made = subprocess.run(
            [compiler(), "-std=c++20", "-w", "-I.", f"-I{folder}", source, "-o", program], capture_output=True, text=True
        )
        if made.returncode != 0:
            error = next((line for line in made.stderr.splitlines() if "error" in line), "").replace(f"{folder}/", "")
            raise Refused(f"these lines cannot be looked at by themselves, so only the result is checked ({error})")
        try:
            done = subprocess.run([program], capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            return ["These lines do not come to an end."]
        if done.returncode != 0:
            return [f"These lines stop the program that looks at them (status {done.returncode}): an index outside of its range?"]
    return done.stdout.splitlines()


def compared(one: Exercise, file: Path, place: str, programs: Path) -> tuple[str, list[str]]:
    """What the learner's program and the rung's print on the "Simulator" or on the "GPU", and what is wrong."""
    arguments = [*one.arguments(place), *(["--sim"] if place == "Simulator" else [])]
    rung, mine = (run(programs / stem, arguments) for stem in (one.rung.stem, file.stem))
    lines = [*rung.text.splitlines(), *mine.text.splitlines()[1:]]
    table = "\n".join(re.sub(r" (wrong|failed): .*", r" \1", line) for line in lines)  # the reason comes below
    if mine.status == WAIVED and place == "GPU" and SIMULATOR.exists():
        return table, []  # this GPU cannot run it, and the simulator has
    status = mine.row.get("status", "failed")
    if status != "ok":
        reason = mine.row.get("reason") or (mine.text.splitlines() or ["no reason given"])[-1]
        what = {"wrong": "the result is wrong", "failed": "it failed", "waived": "it was not run"}[status]
        return table, [f"On the {place.lower() if place == 'Simulator' else place} {what}: {' '.join(reason.split())}."]
    if mine.wavefronts > rung.wavefronts and not one.constants:  # else the rung may have another tile
        counts = f"{mine.wavefronts:,} wavefronts of shared memory, {mine.conflicts:,} of them conflicts"
        theirs = f"{one.rung_number} has {rung.wavefronts:,} and {rung.conflicts:,}"
        return table, [f"The simulator counts {counts}. {theirs}."]
    return table, []


def verdict(one: Exercise, file: Path, programs: Path = PROGRAMS) -> tuple[bool, str]:
    """Whether the learner's file does what the exercise wants, and what to say about it."""
    tables, wrong, meaning, unknown = [], [], [], []
    if SIMULATOR.exists():
        table, wrong = compared(one, file, "Simulator", programs)
        tables.append(table)
    try:
        meaning = findings(one, file)
    except Refused as refused:
        unknown = [f"{str(refused)[0].upper()}{str(refused)[1:]}."]
    if has_gpu() and not wrong and not meaning:  # blocks that wait for ever would occupy it
        table, wrong = compared(one, file, "GPU", programs)
        tables.append(table)
    if wrong and not meaning and not unknown:
        compare = f"./run_all.sh diff {one.rung_number} {file.stem}"
        meaning = [f"The lines in the holes do what they should. Something else is not as in {one.rung_number}: {compare}"]
    solved = not wrong and not meaning
    counted = ", with the same wavefronts of shared memory" if SIMULATOR.exists() and not one.constants else ""
    right = [f"Solved: as right as {one.rung_number}{counted}."] if solved else []
    paragraphs = [*wrong, *meaning, *unknown, *right]
    folded = [textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) for text in paragraphs]
    return solved, "\n\n".join([*tables, *folded])


# ---- the sub-commands --------------------------------------------------------------------------------------------------


def listing() -> str:
    lines = []
    for one in exercises():
        begun = LOCAL / f"{one.stem}.cu"
        lines.append(f"{one.number}  {one.title}, from {one.rung.stem}" + (f"; yours is {begun}" if begun.exists() else ""))
        lines.append(textwrap.indent(textwrap.fill(f"goal: {one.goal}", WIDTH), "   "))
    return "\n".join([*lines, "Begin with: ./run_all.sh exercise 1   (docs/exercises.md has hints)"])


def solution(one: Exercise, file: Path) -> str:
    mine = file.read_text(encoding="utf-8")
    lines = spliced(mine, one.answers)
    return "".join(difflib.unified_diff(mine.splitlines(True), lines.splitlines(True), str(file), f"{file}, solved"))


def main(arguments: list[str]) -> int:
    command, *rest = arguments
    try:
        if command == "list":
            print(listing())
            return 0
        one = exercise(rest[0])
        if command == "solution":
            print(solution(one, Path(rest[1])), end="")
        else:
            solved, text = verdict(one, Path(rest[1]))
            print(text)
            if not solved:
                print(f"\nHints: docs/exercises.md. The answer: ./run_all.sh exercise {one.number} --solution")
            return 0 if solved else 1
    except Refused as refused:
        print(f"run_all.sh: exercise: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"run_all.sh: exercise: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
