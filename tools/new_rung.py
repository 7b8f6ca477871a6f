"""A rung of one's own, from a copy of another: header and registration are made to fit, the kernel stays as it is.

usage: python3 -m tools.new_rung NUMBER NAME SOURCE [WITH]   SOURCE: the file to copy; WITH: the folder of run_all.sh's --with

The new file lies in WITH, else in kernels/local; that of a rung of one's own, which may have options with paths, beside it.
"""

import re
import shlex
import shutil
import sys
from pathlib import Path

from plots.data.gpu import has_gpu

LADDER, LOCAL = Path("kernels"), Path("kernels/local")
NUMBER, NAME = r"\d\d[a-z]?", r"[A-Za-z][A-Za-z0-9_]*"
FIRST_FREE, LAST_FREE = 90, 99  # the ladder itself never takes these
STRING = r'"(?:[^"\\]|\\.)*"'

HEADER = """\
// {stem} · {source} as it is, yours to change
//
// Idea              none yet
// {changed_from:<18}nothing yet
// Expect            1.00 times {number}: the same kernel
// Limiter now       as {number}
// New instructions  none
// Limits            as {number}
// Run               {run}
// Read              {read}
"""


class Refused(Exception):
    """In one line, what is wrong with the command."""


def field(header: str, name: str) -> str:
    """The first line of a field of a rung's header."""
    found = re.search(rf"^// {name}\s+(.*)$", header, re.MULTILINE)
    if not found:
        raise Refused(f"the header of the file to copy has no line '// {name}'")
    return found[1]


def adapted(text: str, source: str, number: str, name: str) -> str:
    """The text of the rung `source` (its stem) as that of the new rung. A file without the ladder's header keeps its own."""
    old_number = source.partition("_")[0]
    if text.startswith(f"// {source} · "):
        header = re.match(r"(//.*\n)+", text)[0]
        new_header = HEADER.format(
            stem=f"{number}_{name}",
            source=source,
            number=old_number,
            changed_from=f"Changed from {old_number}",
            run=re.sub(r"(run_all\.sh run) \S+", rf"\1 {number}", field(header, "Run")),
            read=field(header, "Read"),
        )
        text = new_header + text.removeprefix(header)
    facts = {"number": number, "name": name, "idea": f"{source} as it is, yours to change", "predecessor": old_number}
    return with_facts(re.sub(r"^ *\.kind = .*\n", "", text, flags=re.MULTILINE), source, facts)


def with_facts(text: str, source: str, facts: dict[str, str]) -> str:
    """The text of the rung `source` (its stem) with other facts in its registration."""
    for fact, value in facts.items():
        text, places = re.subn(rf"^( *\.{fact} = ){STRING},$", rf'\g<1>"{value}",', text, flags=re.MULTILINE)
        if places != 1:
            raise Refused(f"{source} cannot be copied: one line '.{fact} = \"…\",' has to say its {fact}")
    return text


def check(number: str, name: str, rungs: list[Path]) -> None:
    """Refuses what no file of a rung can be named, and what another is."""
    if not re.fullmatch(NUMBER, number):
        raise Refused(f"the number of a rung is two digits, perhaps with a letter, such as 90 or 90b; this one is '{number}'")
    if not re.fullmatch(NAME, name):
        raise Refused(f"the name of a rung is letters, digits and _, such as my_idea; this one is '{name}'")
    numbers = {rung.stem.partition("_")[0]: rung for rung in rungs}
    names = {rung.stem.partition("_")[2]: rung for rung in rungs}
    if number in numbers:
        free = (str(other) for other in range(FIRST_FREE, LAST_FREE + 1) if str(other) not in numbers)
        raise Refused(f"the number {number} is that of {numbers[number]}; {next(free, 'none of 90 to 99')} is free")
    if name in names:
        raise Refused(f"the name {name} is that of {names[name]}")


def new_rung(number: str, name: str, source: Path, own: Path = LOCAL) -> Path:
    """Makes the files of the rung, where `own` is the folder for those of the reader; the .cu file. Raises Refused."""
    if re.fullmatch(r"\d[a-z]?", number):
        number = f"0{number}"
    check(number, name, [rung for folder in dict.fromkeys([LADDER, LOCAL, own]) for rung in sorted(folder.glob("*.cu"))])
    folder = own if source.parent == LADDER else source.parent
    target = folder / f"{number}_{name}.cu"
    options = target.with_suffix(".options")
    for file in (target, options):
        if file.exists():
            raise Refused(f"{file} exists already")
    text = adapted(source.read_text(encoding="utf-8"), source.stem, number, name)
    folder.mkdir(exist_ok=True)
    if source.with_suffix(".options").exists():
        shutil.copyfile(source.with_suffix(".options"), options)
    target.write_text(text, encoding="utf-8")
    return target


def next_commands(target: Path, source: Path, rest: str) -> str:
    """What to do with the new rung; `rest` ends each command."""
    number, size = target.stem.partition("_")[0], "4096 4096 4096" if has_gpu() else "256 256 256"
    commands = {
        f"run {number} {size} --watch{rest}": "builds, runs and checks it, and again whenever you save it",
        f"diff {source.stem.partition('_')[0]} {number}{rest}": "what you changed, and what became of it",
        f"counts {number} 256 256 256{rest}": "what each line did, counted by the simulator",
    }
    width = max(map(len, commands))
    return "\n".join(f"./run_all.sh {command:{width}}  # {what}" for command, what in commands.items())


def main(arguments: list[str]) -> int:
    number, name, source, *with_folder = arguments
    try:
        target = new_rung(number, name, Path(source), *map(Path, with_folder))
    except Refused as refused:
        print(f"run_all.sh: new: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"run_all.sh: new: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    rest = "".join(f" --with {shlex.quote(folder)}" for folder in with_folder)
    print(f"{target} is a copy of {source}. Next:\n{next_commands(target, Path(source), rest)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
