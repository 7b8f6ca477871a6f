import math

import pytest

from plots.data.units import MISSING, Shape, compulsory_bytes, digits, gflops, ratio, tflops


def test_gflops_is_two_mnk_over_time():
    assert gflops(Shape(4096, 4096, 4096), 2.0) == pytest.approx(2 * 4096**3 / 2e-3 / 1e9)


def test_a_rate_in_gflops_is_written_in_tflops():
    assert tflops(50_900) == "50.9"
    assert tflops(512.4) == "0.512"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.05123, "0.0512"), (9.996, "10.0"), (99.96, "100"), (648.4, "648"), (1234.5, "1230"), (math.nan, MISSING)],
)
def test_three_significant_digits_in_plain_decimal(value, text):
    assert digits(value) == text


@pytest.mark.parametrize(("value", "text"), [(1.0049, "1.00"), (0.0996, "0.10"), (0.0114, "0.011"), (math.inf, MISSING)])
def test_a_ratio_keeps_two_decimals_or_two_digits(value, text):
    assert ratio(value) == text


def test_compulsory_bytes_read_c_only_where_beta_is_not_zero():
    shape = Shape(2, 3, 5)
    assert compulsory_bytes(shape, 4, 4, reads_c=False) == 4 * (2 * 5 + 5 * 3 + 2 * 3)
    assert compulsory_bytes(shape, 2, 4, reads_c=True) == 2 * (2 * 5 + 5 * 3) + 2 * 4 * 2 * 3
