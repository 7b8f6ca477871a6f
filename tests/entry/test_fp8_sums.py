"""bin/fp8_sums on the simulator gives the errors that a GPU gave, to the digit; what chapter 41 says of them is true."""

import csv
import io
import math
import re
from random import Random

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, run

pytestmark = needs_simulator
RECORDED = sorted((ROOT / "bench/recorded").glob("*/fp8_sums.csv"))
CHAPTER = ROOT / "docs/41_fp8.md"
DEPTHS = [128 << i for i in range(8)]


def read(lines):
    """The numbers by sums, data and k, without the device."""
    return {
        (row["sums"], row["data"], int(row["k"])): {column: row[column] for column in ("rms", "bias", "largest")}
        for row in csv.DictReader(lines)
    }


@pytest.fixture(scope="module")
def simulated():
    done = run(BIN / "fp8_sums", "--sim")
    assert done.returncode == 0, done.stderr
    return read(io.StringIO(done.stdout))


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.parent.name)
def test_every_number_is_that_of_the_gpu(file, simulated):
    with file.open(newline="", encoding="utf-8") as lines:
        assert read(lines) == simulated


def test_one_accumulator_gets_worse_with_k_and_promoted_ones_do_not(simulated):
    for data in ("normal", "positive"):
        straight, promoted = ([float(simulated[way, data, k]["rms"]) for k in DEPTHS] for way in ("straight", "promoted"))
        assert straight == sorted(straight) and straight[0] == promoted[0]
        assert max(promoted) < 1.05 * min(promoted)
    for k in DEPTHS:
        assert all(abs(float(simulated[way, "normal", k]["bias"])) < 1e-6 for way in ("straight", "promoted"))
        assert float(simulated["promoted", "positive", k]["bias"]) == pytest.approx(-6.2e-4, rel=0.03)


def test_the_chapters_table_is_of_these_numbers(simulated):
    rows = re.findall(
        r"^\| ([\d,]+) \| (\S+) \| (\S+) \| (\S+) % \| (\S+) % \|$", CHAPTER.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == 4
    for k, *cells in rows:
        k = int(k.replace(",", ""))
        errors = [float(simulated[way, "normal", k]["rms"]) for way in ("straight", "promoted")]
        biases = [100 * float(simulated[way, "positive", k]["bias"]) for way in ("straight", "promoted")]
        assert cells == [*(f"{error:.5f}" for error in errors), *(f"{bias:.2f}".replace("-", "−") for bias in biases)]


def test_what_the_chapter_says_is_cut_off_of_a_product():
    """Of magnitudes of normal numbers in E4M3, by the multiple that remains."""
    random = Random(1)

    def operand():
        number = abs(random.gauss(0, 1))
        unit = 2.0 ** (max(math.frexp(number)[1], -5) - 4)
        return round(number / unit) * unit

    products = [operand() * operand() for _ in range(200_000)]
    mean = sum(products) / len(products)
    assert mean == pytest.approx(0.636, abs=0.005)
    for unit, lost in ((0.5, 0.30), (1, 0.52)):
        assert sum(product % unit for product in products) / sum(products) == pytest.approx(lost, abs=0.006)
