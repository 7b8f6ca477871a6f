"""bin/quantise on the simulator: every number and every scale is the CPU's."""

import csv
import io

from tests.checkout import BIN, needs_simulator, run

pytestmark = needs_simulator


def test_every_block_of_every_type_is_the_cpus():
    done = run(BIN / "quantise", "--sim")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["block"] for row in rows} == {"all", "row", "1x128", "128x128"}
    assert {row["type"] for row in rows} == {"bf16", "f32", "f16"}
    assert all(row["wrong"] == "0" and row["us"] == "" for row in rows)


def test_another_option_is_refused():
    done = run(BIN / "quantise", "--fast")
    assert (done.returncode, done.stderr) == (2, "usage: quantise [--sim]\n")
