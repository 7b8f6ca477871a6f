"""bin/accuracy on the simulator: what chapters 09 and 10 show is what it computes, and what they say of it is true."""

import pytest

from plots.tables import accuracy
from tests.checkout import BIN, ROOT, needs_simulator, run

pytestmark = needs_simulator


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    done = run(BIN / "accuracy", "--sim")
    assert done.returncode == 0, done.stderr
    file = tmp_path_factory.mktemp("accuracy") / "accuracy.csv"
    file.write_text(done.stdout)
    return accuracy.read(file)


@pytest.fixture(scope="module")
def value(computed):
    def of(what, data, k, column):
        return float(computed[what, data, k][column])

    return of


CELLS = [(data, k) for data in accuracy.DATA for k in (512, 4096)]


def test_recorded_numbers_are_those_of_the_program(computed):
    recorded = accuracy.read(ROOT / accuracy.FILE)
    assert recorded.keys() == computed.keys()
    near = 0.02 if next(iter(recorded.values()))["device"].startswith("Simulated") else 1.0
    for key, row in recorded.items():
        assert row["bound"] == computed[key]["bound"]
        for column in ("rms", "largest"):
            assert float(computed[key][column]) == pytest.approx(float(row[column]), rel=near), (key, column)


@pytest.mark.parametrize(("data", "k"), CELLS)
def test_cut_operands_make_results_smaller_and_rounded_ones_do_not(value, data, k):
    assert value("tf32_cut", data, k, "shrink") == pytest.approx(0.0007, rel=0.1)
    assert abs(value("tf32_rounded", data, k, "shrink")) < 2e-5
    ratio = value("tf32_cut", data, k, "rms") / value("tf32_rounded", data, k, "rms")
    assert ratio == pytest.approx(2.6, rel=0.05) if data == "normal" else ratio > 40
    for what in ("tf32_rounded", "tf32_cut"):
        assert value(what, data, k, "largest") < value(what, data, k, "bound") / 2


@pytest.mark.parametrize(("data", "k"), CELLS)
def test_fp16_sums_lose_what_fp32_sums_keep(value, data, k):
    once = value("f32_to_f16", data, k, "rms")
    assert once == pytest.approx(2.1e-4, rel=0.05)
    low, high = {512: (2.9, 4.1), 4096: (7.8, 11.5)}[k]
    assert low < value("f16", data, k, "rms") / once < high
    assert value("f16", data, k, "largest") > value("f16", data, k, "bound"), "the check refuses them"
    assert value("f32", data, k, "largest") < value("f32", data, k, "bound") / 20
    assert value("f32", data, 4096, "shrink") == pytest.approx(5e-6, rel=0.15)


def test_what_the_chapters_say_of_the_recorded_numbers():
    recorded = accuracy.read(ROOT / accuracy.FILE)

    def number(what, data, k, column):
        return float(recorded[what, data, k][column])

    def worse(data, k):
        return number("tf32_cut", data, k, "rms") / number("tf32_rounded", data, k, "rms")

    assert all(0.00065 <= number("tf32_cut", data, k, "shrink") < 0.00075 for data, k in CELLS)
    assert [worse("normal", k) for k in (512, 4096)] == pytest.approx([2.6, 2.6], rel=0.03)
    assert [worse("positive", k) for k in (512, 4096)] == pytest.approx([42, 24], abs=0.5)
    assert number("f32", "normal", 4096, "shrink") == pytest.approx(4e-6, abs=5e-7)
    assert number("f32", "positive", 4096, "shrink") == pytest.approx(24e-6, abs=6e-7)
    for k, low, high in ((512, 2.9, 4.1), (4096, 7.8, 11.5)):
        assert all(low < number("f16", d, k, "rms") / number("f32_to_f16", d, k, "rms") < high for d in accuracy.DATA)


def test_small_numbers_read_well():
    assert accuracy.number("0.000294") == "2.9·10⁻⁴"
    assert accuracy.percent("-2.9e-06") == "0.000 %"
