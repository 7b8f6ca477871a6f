"""What a document's markers can ask of the recorded results: the functions of their expressions.

`python3 -m plots number` lists them, and says what an expression yields. A rung is named by its number, such as '06b'. A size is
the edge of a cube, or (m, n, k).
"""

import csv
import inspect
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from plots.data import profiles
from plots.data.results import Results, load
from plots.data.rungs import number
from plots.data.selection import Table, tables
from plots.data.units import Shape
from plots.documents.derivations import functions
from plots.documents.expressions import BASIC, evaluate
from plots.errors import InputError, Unavailable, hint
from plots.tables import profiled

GPU = "nvidia-h200"  # whose recorded results the chapters show, unless they name another folder of bench/recorded
Size = int | tuple[int, int, int]


class Recording:
    """The recorded results of a checkout, each file read once, when it is asked for."""

    def __init__(self, root: Path, gpu: str = GPU):
        self.root = root
        self.folder = root / "bench" / "recorded" / gpu
        self._cards = {gpu: self}
        self._rows: dict[str, list[dict[str, str]]] = {}
        self._profiles: dict[str, profiles.Profile] = {}

    def of(self, gpu: str) -> "Recording":
        """That of another card, by its folder in bench/recorded."""
        if gpu not in self._cards:
            known = sorted(path.name for path in self.folder.parent.iterdir() if path.is_dir())
            if gpu not in known:
                raise InputError(f"there is no folder '{gpu}' in {self.folder.parent}{hint(gpu, known)}")
            self._cards[gpu] = Recording(self.root, gpu)
            self._cards[gpu]._cards = self._cards
        return self._cards[gpu]

    @cached_property
    def results(self) -> Results:
        """All that `load` reads."""
        return load(self.folder)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The published results by type: in rounds, cold, with FP32 results."""
        return {table.type: table for table in tables(self.results)}

    @cached_property
    def derivations(self) -> dict[str, Callable[..., Any]]:
        """What takes more than an expression."""
        return functions(self.results)

    def table(self, type: str) -> Table:
        """The published results of a type."""
        if type not in self.tables:
            raise InputError(f"there is no type '{type}'{hint(type, self.tables)}")
        return self.tables[type]

    def rows(self, file: str) -> list[dict[str, str]]:
        """The rows of any recorded CSV; a path leads from the folder of the results."""
        if file not in self._rows:
            path = self.folder / file
            if not path.is_file():
                raise InputError(f"there is no {file} in {self.folder}")
            with path.open(newline="", encoding="utf-8") as lines:
                self._rows[file] = [{"scales": "none"} | row for row in csv.DictReader(lines)]  # older files lack it
        return self._rows[file]

    def profile(self, what: str) -> profiles.Profile:
        """What Nsight Compute counted: of "f32", "bf16@8192" or "sweep_16"."""
        if what not in self._profiles:
            path = self.folder / profiles.file_name(what, self.results.facts)
            if not path.is_file():
                raise InputError(f"there is no profile of '{what}'")
            self._profiles[what] = profiles.read(path)[0]
        return self._profiles[what]


def asked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks what expressions can call."""
    function.asked = True
    return function


class Numbers:
    """The names of one document's expressions: these functions, with its own type and size, and what it defines."""

    def __init__(self, recording: Recording, document: str = "", type: str = "", size: Size = 4096):
        self.recording, self.document, self.type, self.size = recording, document, type, size
        own = (getattr(self, name) for name in dir(Numbers) if hasattr(getattr(Numbers, name), "asked"))
        self.names: dict[str, Any] = {function.__name__: function for function in own}
        self.names |= {name: self._derived(name) for name in recording.derivations}
        self.names["sms"] = recording.results.environment.get("sm_count")

    def set(self, type: str = "", size: str = "", gpu: str = "", needs: str = "") -> None:
        """What functions take where a call does not say it, and the card whose results they read; Unavailable while the file
        `needs` is not recorded of it."""
        if gpu:
            self.recording = self.recording.of(gpu)
            self.names["sms"] = self.recording.results.environment.get("sm_count")
        if needs and not (self.recording.folder / needs).is_file():
            raise Unavailable(f"there is no {needs} in {self.recording.folder} yet")
        if type:
            self.type = self.recording.table(type).type
        if size and not size.isdecimal():
            raise InputError(f"size={size}: expected the edge of a cube")
        self.size = int(size or self.size)

    def evaluate(self, expression: str) -> Any:
        """What an expression yields."""
        return evaluate(expression, self.names)

    # ---- rates: the ladder, medians over sittings ----

    @asked
    def cell(self, rung: str, column: str, size: Size | None = None, type: str = "") -> float:
        """A column of ladder.csv, the median over sittings, in the column's unit: cell('14', 'clock_mhz')."""
        return self._known(self._table(type).value(self._stem(rung), self._shape(size), column), rung, column)

    @asked
    def sittings(self, rung: str, column: str, size: Size | None = None, type: str = "") -> list[float]:
        """The same, a number per sitting."""
        return self._table(type).numbers(self._stem(rung), self._shape(size), column)

    @asked
    def throttles(self, rung: str, size: Size | None = None, type: str = "") -> list[str]:
        """Why the card held its clock back, a text per sitting; 'none' where NVML names no reason."""
        cell = self._table(type).cells.get((self._stem(rung), self._shape(size)))
        return [sitting.throttle for sitting in cell.sittings] if cell else []

    @asked
    def tflops(self, rung: str, size: Size | None = None, type: str = "") -> float:
        """TFLOP/s of a rung."""
        return self.cell(rung, "gflops", size, type) / 1e3

    @asked
    def ratio(self, rung: str, size: Size | None = None, type: str = "") -> float:
        """A rung's speed over that of cuBLAS, in time."""
        return self.cell(rung, "ratio_cublas", size, type)

    @asked
    def rate(self, rung: str, size: Size | None = None, type: str = "") -> float:
        """FLOP/clk/SM of a rung."""
        return self.cell(rung, "flop_clk_sm", size, type)

    @asked
    def gain(self, rung: str, before: str, size: Size | None = None, type: str = "") -> float:
        """How many times another rung a rung is, in FLOP/clk/SM."""
        return self.rate(rung, size, type) / self.rate(before, size, type)

    # ---- other files ----

    @asked
    def steady(self, rung: str, column: str, size: Size | None = None, type: str = "") -> float:
        """A column of steady.csv: the steady protocol, FP32 results."""
        return self.recorded("steady.csv", column, **self._where(rung, size, type), out="f32")

    @asked
    def condition(self, rung: str, column: str, size: Size | None = None, type: str = "", **where: Any) -> float:
        """A column of conditions.csv: condition('16', 'flop_clk_sm', out='same', beta=0.5, protocol='rounds')."""
        return self.recorded("conditions.csv", column, **self._where(rung, size, type), **where)

    @asked
    def variant(self, rung: str, name: str, column: str = "flop_clk_sm", size: Size | None = None) -> float:
        """A column of sweep_NN.csv of a variant over that of the rung as written: per clock, where no column is named."""
        own, written = (self.swept(rung, one, column, size) for one in (name, "as_written"))
        return own / written

    @asked
    def swept(self, rung: str, name: str, column: str, size: Size | None = None) -> float:
        """A column of sweep_NN.csv of a variant, in the column's unit."""
        m, n, k = self._shape(size)
        return self.recorded(f"sweep_{rung}.csv", column, kernel=f"{rung}_{name}", m=m, n=n, k=k)

    @asked
    def variants(self, rung: str) -> list[str]:
        """The names in sweep_NN.csv."""
        return [kernel.removeprefix(f"{rung}_") for kernel in dict.fromkeys(self.words(f"sweep_{rung}.csv", "kernel"))]

    @asked
    def recorded(self, file: str, column: str, **where: Any) -> float:
        """The median of a column of any recorded CSV over the rows in which the named columns have these values."""
        known = [value for value in self.every(file, column, **where) if value == value]
        if not known:
            raise InputError(
                f"{file}: {column} is empty in the rows with {', '.join(f'{name}={value}' for name, value in where.items())}"
            )
        return median(known)

    @asked
    def every(self, file: str, column: str, **where: Any) -> list[float]:
        """The same column, row by row; one row at least."""
        return [self._number(row, file, column) for row in self.rows(file, **where)]

    @asked
    def words(self, file: str, column: str, **where: Any) -> list[str]:
        """The same for a column of words, such as tile or throttle."""
        return [row[column] for row in self.rows(file, **where)]

    @asked
    def ceiling(self, name: str) -> float:
        """A measured ceiling, in the unit of ceilings.csv: ceiling('l2') in GB/s, ceiling('mma_bf16_per_clk') in FLOP/clk/SM."""
        known = self.recording.results.ceilings
        if name not in known:
            raise InputError(f"there is no ceiling '{name}'{hint(name, known)}")
        return known[name][0]

    @asked
    def environment(self, key: str) -> Any:
        """A value of environment.json, such as 'sm_count', 'max_sm_clock_mhz' or 'power_limit_w'."""
        known = self.recording.results.environment
        if key not in known:
            raise InputError(f"there is no '{key}' in environment.json{hint(key, known)}")
        return known[key]

    @asked
    def accuracy(self, what: str, data: str, k: int, column: str) -> float:
        """A column of accuracy.csv: accuracy('tf32_cut', 'normal', 512, 'rms')."""
        return self.recorded("../accuracy.csv", column, what=what, data=data, k=k)

    # ---- what Nsight Compute counted ----

    @asked
    def metric(self, rung: str, name: str, type: str = "") -> float:
        """A metric of the profile at 4096 cubed; the type may be 'bf16@8192' or 'sweep_16': metric('06', 'wavefronts')."""
        metrics = {metric: value for (_, metric), value in self._metrics(rung, type).items()}
        if name not in metrics:
            raise InputError(f"there is no metric '{name}'{hint(name, metrics)}")
        return metrics[name]

    @asked
    def stalls(self, rung: str, *names: str, type: str = "") -> float:
        """Clocks per instruction that a warp waits, for these reasons together."""
        return sum(self.metric(rung, name, type) for name in names)

    @asked
    def waits(self, rung: str, type: str = "") -> dict[str, float]:
        """All stall reasons of a rung, in clocks per instruction."""
        return {name: value for (group, name), value in self._metrics(rung, type).items() if group == "stalls"}

    @asked
    def longest(self, rung: str, count: int = 1, type: str = "") -> list[str]:
        """The reasons of the tables for which a warp waits most, the largest first."""
        waits = self.waits(rung, type)
        return sorted(profiled.STALLS, key=lambda name: -waits.get(name, 0))[:count]

    # ---- what the document shows ----

    @asked
    def shown(self, row: str, column: str | int) -> float:
        """A number of the document's tables, by the first cell of its row and the head or the place of its column; the first."""
        head: list[str] = []
        for line in self.document.splitlines():
            cells = [_plain(cell) for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
            head = (head or cells) if cells else []
            place = column if isinstance(column, int) else head.index(column) if column in head else 0
            if cells[:1] == [row] and 0 < place < len(cells):
                return float(cells[place].replace(",", ""))
        raise InputError(f"no table has a row '{row}' and a column '{column}'")

    def rows(self, file: str, **where: Any) -> list[dict[str, str]]:
        """The rows of a recorded CSV in which the named columns have these values; one at least."""
        known = self.recording.rows(file)
        wanted = {name: self._kernel(value, known) if name == "kernel" else str(value) for name, value in where.items()}
        for name in wanted:
            if known and name not in known[0]:
                raise InputError(f"{file} has no column '{name}'{hint(name, known[0])}")
        found = [row for row in known if all(row[name] == value for name, value in wanted.items())]
        if not found:
            raise InputError(f"{file} has no row with {', '.join(f'{name}={value}' for name, value in wanted.items())}")
        return found

    def _derived(self, name: str) -> Callable[..., Any]:
        """A function of the card that the document reads at the time."""
        return lambda *of, **by: self.recording.derivations[name](*of, **by)

    def _number(self, row: dict[str, str], file: str, column: str) -> float:
        if column not in row:
            raise InputError(f"{file} has no column '{column}'{hint(column, row)}")
        return float(row[column] or "nan")

    def _where(self, rung: str, size: Size | None, type: str) -> dict[str, Any]:
        m, n, k = self._shape(size)
        return {"kernel": rung, "type": self._type(type), "m": m, "n": n, "k": k}

    def _metrics(self, rung: str, type: str) -> profiles.Metrics:
        """Of a rung, or of a variant by its name."""
        profile = self.recording.profile(self._type(type))
        names = {kernel.rpartition("/")[2]: metrics for kernel, metrics in profile.items()}
        of = rung if rung in names else self._stem(rung)
        if of not in names:
            raise InputError(f"there is no profile of '{rung}'{hint(of, names)}")
        return names[of]

    def _table(self, type: str) -> Table:
        return self.recording.table(self._type(type))

    def _type(self, type: str) -> str:
        if not type and not self.type:
            raise InputError("of which type? <!--: type=bf16 --> at the top of the document says it for all its markers")
        return type or self.type

    def _shape(self, size: Size | None) -> Shape:
        size = size or self.size
        return Shape(*size) if isinstance(size, tuple) else Shape(size, size, size)

    def _stem(self, rung: str) -> str:
        """Of a number; other names, such as those of variants, stay."""
        return self.recording.results.facts.find(rung).stem if re.fullmatch(r"\d\d[a-z]?", rung) else rung

    def _kernel(self, word: str, rows: list[dict[str, str]]) -> str:
        """The stem of a number; of one that the series lacks, that in these rows, which may be of another card."""
        if re.fullmatch(r"\d\d[a-z]?", word):
            series = {number(stem) for stem in self.recording.results.facts.rungs}
            own = {number(row["kernel"]): row["kernel"] for row in rows if "kernel" in row}
            if word not in series and word in own:
                return own[word]
        return self._stem(word)

    def _known(self, value: float, rung: str, column: str) -> float:
        if value != value:
            raise InputError(f"{column} of {rung} is not recorded for this type and size")
        return value


def _plain(cell: str) -> str:
    """A cell without its marks."""
    return re.sub(r"<!--.*?-->|[*`]", "", cell).strip()


def listed(recording: Recording) -> str:
    """What expressions can call, a line each."""
    own = [getattr(Numbers, name) for name in vars(Numbers) if hasattr(getattr(Numbers, name), "asked")]
    callable_ = [*own, *recording.derivations.values()]
    lines = [f"{function.__name__}({_parameters(function)}): {inspect.getdoc(function)}" for function in callable_]
    return "\n".join([*lines, f"sms: the SMs of the recorded GPU\nand {', '.join(BASIC)}"])


def _parameters(function: Callable[..., Any]) -> str:
    return ", ".join(str(one).partition(":")[0] for name, one in inspect.signature(function).parameters.items() if name != "self")
