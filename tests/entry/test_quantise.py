"""bin/quantise on the simulator: every number and every scale is the CPU's."""

import csv
import io

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, run

pytestmark = needs_simulator
RECORDED = sorted((ROOT / "bench/recorded").glob("*/quantise.csv"))


@pytest.fixture(scope="module")
def rows():
    done = run(BIN / "quantise", "--sim")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_every_block_of_every_type_is_the_cpus(rows):
    assert {row["block"] for row in rows} == {"all", "row", "1x128", "128x128"}
    assert {row["type"] for row in rows} == {"bf16", "f32", "f16"}
    assert all(row["wrong"] == "0" and row["us"] == "" for row in rows)


def test_a_gpu_was_recorded():
    assert RECORDED


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.parent.name)
def test_what_a_gpu_made_is_the_cpus_too(file, rows):
    with file.open(newline="", encoding="utf-8") as lines:
        recorded = list(csv.DictReader(lines))
    assert list(recorded[0]) == list(rows[0])
    assert {(row["block"], row["type"]) for row in recorded} == {(row["block"], row["type"]) for row in rows}
    assert all(row["wrong"] == "0" and float(row["us"]) > 0 for row in recorded)


def test_another_option_is_refused():
    done = run(BIN / "quantise", "--fast")
    assert (done.returncode, done.stderr) == (2, "usage: quantise [--sim]\n")
