"""bin/fp8_tiles on the simulator gives the checksums that a GPU gave: it sums FP8 bit for bit as Hopper's wgmma does."""

import csv
import io

import pytest

from tests.checkout import BIN, ROOT, needs_simulator, run

pytestmark = needs_simulator
RECORDED = sorted((ROOT / "bench/recorded").glob("*/fp8_tiles.csv"))


@pytest.fixture(scope="module")
def simulated():
    done = run(BIN / "fp8_tiles", "--sim")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_gpu_was_recorded():
    assert RECORDED


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.parent.name)
def test_every_tile_has_the_bits_of_the_gpu(file, simulated):
    with file.open(newline="", encoding="utf-8") as rows:
        assert simulated == list(csv.DictReader(rows))
    assert sum(int(row["tiles"]) for row in simulated if row["operands"] == "e4m3 e4m3") >= 10_000
