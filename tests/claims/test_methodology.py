"""Numbers in the prose of the methodology against the recorded results."""

import csv
import json
import re
import subprocess
from statistics import median

import pytest
from recorded import RECORDED, ROOT, agrees, chosen, rows, said

SQUARE = dict.fromkeys("mnk", 4096)
SITTINGS = range(1, 6)
LADDER = ROOT / "build/bin/ladder"
CARDS = [RECORDED, *sorted(RECORDED.parent.glob(f"{RECORDED.name}-*"))]


def sitting(number: int, column: str) -> float:
    """Of rung 14 in the table of sittings."""
    return chosen("ladder.csv", column, kernel="14_multistage", type="bf16", out="f32", sitting=number, **SQUARE)


@pytest.mark.parametrize("number", SITTINGS)
def test_the_table_of_sittings(number):
    columns = ("median_ms", "clock_mhz", "cublas_clock_mhz", "ratio_cublas", "ratio_clk")
    texts = said("methodology", rf"\| {number} " + r"\| ([\d.]+) " * len(columns) + r"\|")
    assert all(agrees(text, sitting(number, column)) for text, column in zip(texts, columns, strict=True))


def test_the_third_sitting_differs_and_no_sitting_shows_it_by_itself():
    longer, lower, in_clocks, within = said(
        "methodology",
        r"14 took (\d) % longer, and its ratio to cuBLAS was (\d) % lower\. In clocks the five ratios agree within (\d) %\. "
        r"Within each sitting the times of 14 agree within about (\d) %",
    )
    others = [number for number in SITTINGS if number != 3]
    for text, column, sign in ((longer, "median_ms", 1), (lower, "ratio_cublas", -1)):
        assert agrees(text, sign * 100 * (sitting(3, column) / median(sitting(n, column) for n in others) - 1))
    ratios = [sitting(number, "ratio_clk") for number in SITTINGS]
    assert max(ratios) / min(ratios) < 1 + float(in_clocks) / 100
    for number in SITTINGS:
        assert sitting(number, "p90_ms") / sitting(number, "p10_ms") < 1 + (float(within) + 0.5) / 100


def test_only_the_third_sitting_met_the_power_limit():
    said("methodology", r"Only in the third sitting did the GPU report its power limit\. Both clocks were lower there")
    own = [row for row in rows("ladder.csv") if row["kernel"] == "14_multistage" and (row["type"], row["out"]) == ("bf16", "f32")]
    own = [row for row in own if {row["m"], row["n"], row["k"]} == {"4096"}]
    assert {row["sitting"]: row["throttle"] for row in own} == {str(n): "sw_power_cap" if n == 3 else "none" for n in SITTINGS}
    for column in ("clock_mhz", "cublas_clock_mhz"):
        assert sitting(3, column) < min(sitting(number, column) for number in SITTINGS if number != 3)


@pytest.mark.parametrize("k", [1, 64, 1024, 4096, 16384])
def test_the_table_of_the_bound(k):
    superscripts = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    digits, power, share = said("methodology", rf"\| {k} \| ([\d.]+)·10(\S+) \| \S+ \| ([\d.,]+) \|")
    gamma = median({float(row["bound"]) for row in rows("ladder.csv") + rows("check.csv") if row["bound"] and is_fp32(row, k)})
    assert agrees(digits, gamma, 10.0 ** int(power.translate(superscripts)))
    assert abs(float(share.replace(",", "")) * gamma * k - 1) < 0.02


def is_fp32(row: dict[str, str], k: int) -> bool:
    return row["type"] == "f32" and row["k"] == str(k)


def test_what_check_csv_covers():
    said("methodology", "`check.csv` records the check of other shapes: 1×1×1, .*? K = 1, K = 4097, .*? two pairs of alpha")
    checked = rows("check.csv")
    assert len({(row["alpha"], row["beta"]) for row in checked}) == 2
    assert {"1", "4097"} <= {row["k"] for row in checked} and any({row["m"], row["n"], row["k"]} == {"1"} for row in checked)


@pytest.mark.parametrize(("what", "name"), [("FMA", "fp32_fma"), ("L2", "l2"), ("DRAM", "dram")])
def test_rates_of_the_predictions(what, name):
    (rate,) = said("methodology", rf"\| {what} \| ([\d.]+) T(?:FLOP|B)/s \|")
    assert [rate] == said("01", rf"\| (?:{what} in FP32|\[{what}\]\S+) \| ([\d.]+) T(?:FLOP|B)/s \|")
    (percent,) = said("methodology", r"The first three agree within ([\d.]+) % with the ceilings recorded on four cards")
    cards = [card / "ceilings.csv" for card in CARDS if (card / "ceilings.csv").exists()]
    assert len(cards) == 4
    for ceilings in cards:
        with ceilings.open(newline="", encoding="utf-8") as lines:
            (measured,) = [float(row["value"]) for row in csv.DictReader(lines) if row["name"] == name]
        assert abs(measured / 1e3 / float(rate) - 1) < float(percent) / 100


def test_the_rate_of_cublas_for_predictions():
    rate, share = said("methodology", r"cuBLAS at 4096³, .*? \| ([\d.]+) TFLOP/s, ([\d.]+) of the FMA \|")
    (fma,) = said("methodology", r"\| FMA \| ([\d.]+) TFLOP/s \|")
    assert agrees(share, float(rate) / float(fma)) and [rate] == said("01", r"\| cuBLAS FP32 at 4096³[^|]*\| ([\d.]+) TFLOP/s \|")


def test_26_and_27_on_two_cards():
    (within,) = said("methodology", r"ratios to cuBLAS on cards 6777c1bb and 73548c13 differ by at most ([\d.]+) %")
    second = RECORDED.with_name(f"{RECORDED.name}-fifth")
    assert json.loads((second / "environment.json").read_text(encoding="utf-8"))["gpu_id"] == "73548c13"
    with (second / "ladder.csv").open(newline="", encoding="utf-8") as lines:
        theirs = list(csv.DictReader(lines))
    differences = []
    for kernel, type, edge in {(row["kernel"], row["type"], row["m"]) for row in theirs}:
        where = {"kernel": kernel, "type": type, "out": "f32", "m": edge, "n": edge, "k": edge}
        for column in ("ratio_clk", "ratio_cublas"):
            other = median(float(row[column]) for row in theirs if all(row[name] == value for name, value in where.items()))
            differences.append(abs(other / chosen("ladder.csv", column, **where) - 1))
    assert len(differences) == 2 * 12 and agrees(within, 100 * max(differences))


def test_the_sittings_of_the_card_that_differs():
    (within,) = said("methodology", r"At 8192³ its own five sittings agree within ([\d.]+) %")
    with (CARDS[-1] / "ladder.csv").open(newline="", encoding="utf-8") as lines:
        own = [row for row in csv.DictReader(lines) if row["type"] == "f32" and {row["m"], row["n"], row["k"]} == {"8192"}]
    for kernel in {row["kernel"] for row in own}:
        for column in ("ratio_clk", "ratio_cublas"):
            ratios = [float(row[column]) for row in own if row["kernel"] == kernel]
            assert len(ratios) == 5 and max(ratios) / min(ratios) - 1 < float(within) / 100


@pytest.mark.skipif(not LADDER.exists(), reason="the ladder is not built here")
def test_every_column_is_explained(tmp_path):
    written = tmp_path / "ladder.csv"
    subprocess.run([LADDER, "--sim", "--kernels", "01", "16", "16", "16", "--csv", written], check=True, capture_output=True)
    header = written.read_text(encoding="utf-8").splitlines()[0].split(",")
    page = (ROOT / "docs/methodology.md").read_text(encoding="utf-8").partition("## The columns of ladder.csv")[2]
    names = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert sorted(re.findall(r"`(\w+)`", names)) == sorted(header)
    assert set(rows("ladder.csv")[0]) <= set(header), "what is recorded has no other columns"
