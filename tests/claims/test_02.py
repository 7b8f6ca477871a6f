"""Numbers in the prose of chapter 02 against the recorded results."""

from recorded import agrees, cell, gain, metric, said

PAIRS = 2**31 / 64  # of a warp and 64 k, in 01 and in 02


def clocks(number: str) -> float:
    """Of an SM, per warp and 64 k."""
    return metric("f32", number, "time", "clocks") * 132 / PAIRS


def test_the_bounds_and_what_was_counted():
    rows = {number: said("02", rf"\| {number} " + r"\| (\d+) \| ([\d.]+) \| (0\.\d+) \|") for number in ("01", "02")}
    for number, (wavefronts, counted, per_clock) in rows.items():
        assert agrees(counted, clocks(number)) and agrees(per_clock, int(wavefronts) / clocks(number))
    (waiting,) = said("02", r"0\.912 / 0\.764 = ([\d.]+) from less waiting")
    assert agrees(waiting, 104 / clocks("02") / (128 / clocks("01")))
    (both,) = said("02", r"\| 01 / 02 \| 1\.23 \| ([\d.]+) \| \|")
    assert agrees(both, clocks("01") / clocks("02"))


def test_three_quarters_of_the_clocks_of_01_are_wavefronts():
    (million,) = said("02", r"These are 2 · 2³¹ / 132 = ([\d.]+) million clocks per SM, three quarters of the clocks")
    assert abs(float(million) * 1e6 / metric("f32", "01", "time", "clocks") - 3 / 4) < 0.03


def test_wavefronts_per_pair():
    million, per_pair = said("02", r"(\d+) million shared wavefronts are (\d+) per pair")
    assert agrees(per_pair, metric("f32", "02", "shared", "wavefronts") / PAIRS)
    assert abs(int(million) * 1e6 / metric("f32", "02", "shared", "wavefronts") - 1) < 0.005


def test_the_stall_reasons():
    said("02", r"here the wait for global memory, and \*barrier\* are each about a sixth of \*mio throttle\*")
    (clocks_waited,) = said("02", r"is now \*mio throttle\*, (\d+) clocks per instruction")
    throttle = metric("f32", "02", "stalls", "mio throttle")
    assert agrees(clocks_waited, throttle)
    for reason in ("long scoreboard", "barrier"):
        assert abs(metric("f32", "02", "stalls", reason) / throttle - 1 / 6) < 0.02


def test_the_gain_grows_with_the_size():
    said("02", r"At 2048³ the gain is smaller and at 8192³ larger")
    assert gain("f32", "02", "01", 2048) < gain("f32", "02", "01", 4096) < gain("f32", "02", "01", 8192)


def test_the_row_of_02_among_the_depths():
    (ratio,) = said("02", r"\| 64 \| 1\.625 \| 2 \| 16 KB \| ([\d.]+) \|")
    assert agrees(ratio, cell("f32", "02", 4096, "ratio_cublas"))


def test_the_time_beside_that_of_l2():
    rate, ms = said("02", r"02 takes 137\.4 GFLOP / ([\d.]+) TFLOP/s = ([\d.]+) ms")
    assert agrees(rate, cell("f32", "02", 4096, "gflops"), 1e3)
    assert agrees(ms, 2 * 4096**3 / cell("f32", "02", 4096, "gflops") / 1e6)
