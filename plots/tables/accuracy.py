"""The chapters' tables of what sums and operands of the tensor cores cost, from what build/bin/accuracy printed."""

import csv
from pathlib import Path

from plots.errors import InputError
from plots.tables.grid import Grid

FILE = "bench/recorded/accuracy.csv"
DATA = {"normal": "standard normal", "positive": "uniform, 0 to 1"}

Row = dict[str, str]


def read(path: Path) -> dict[tuple[str, str, int], Row]:
    """The rows by what, data and k."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; build/bin/accuracy prints it")
    with path.open(newline="", encoding="utf-8") as lines:
        return {(row["what"], row["data"], int(row["k"])): row for row in csv.DictReader(lines)}


def number(text: str) -> str:
    """Two digits of a small number, as 2.9·10⁻⁴."""
    mantissa, exponent = f"{float(text):.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def percent(text: str) -> str:
    """In hundredths, without a sign where it is nothing."""
    return f"{round(100 * float(text), 3) + 0.0:.3f} %"


def of_bound(row: Row) -> str:
    """The largest error as a multiple of what the check allows."""
    return f"{float(row['largest']) / float(row['bound']):.2g}"


def table(root: Path, which: str) -> str:
    """`sums`: FP16 operands, added in FP32 and in FP16. `tf32`: operands rounded and cut."""
    rows = read(root / FILE)
    cells = [(data, k) for what, data, k in rows if what == "f32"]
    if which == "sums":
        head = ["data", "K", "FP32 sums", "FP32 sums, rounded to FP16 once", "FP16 sums", "of the bound: FP32", "FP16"]
        body = [
            [
                DATA[data],
                str(k),
                *(number(rows[what, data, k]["rms"]) for what in ("f32", "f32_to_f16", "f16")),
                *(of_bound(rows[what, data, k]) for what in ("f32", "f16")),
            ]
            for data, k in cells
        ]
    elif which == "tf32":
        head = ["data", "K", "rounded", "cut off", "too small: rounded", "cut off", "of the bound: rounded", "cut off"]
        both = ("tf32_rounded", "tf32_cut")
        body = [
            [
                DATA[data],
                str(k),
                *(number(rows[what, data, k]["rms"]) for what in both),
                *(percent(rows[what, data, k]["shrink"]) for what in both),
                *(of_bound(rows[what, data, k]) for what in both),
            ]
            for data, k in cells
        ]
    else:
        raise InputError(f"unknown table of accuracies '{which}': expected sums or tf32")
    device = next(iter(rows.values()))["device"]
    return Grid(head, body).markdown() + f"\n\n*`build/bin/accuracy` on {said(device)}; recorded in `{FILE}`.*"


def said(device: str) -> str:
    """The device; of the simulator, what its tensor cores do."""
    if not device.startswith("Simulated"):
        return device
    return "the simulator, which adds the products of an instruction exactly and rounds their sum once"
