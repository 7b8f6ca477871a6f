"""Numbers in the prose of chapter 10 against the recorded results."""

import pytest
from recorded import accuracy, agrees, cell, clocks_of_a_warp, gain, metric, rows, said

TILES = 262144  # pairs of a warp and a k tile at 4096 cubed, 16-bit types


def test_nothing_is_full_in_09b():
    said("10", r"Nothing is full: neither the \[issue slots\]")
    assert max(metric("bf16", "09b", "issue", name) for name in ("issue active", "tensor pipe")) < 50


def test_power_moves_the_ratio_of_13_and_not_its_flop_per_clock():
    free = said("10", r"\| the four in which the power limit did not act \| ([\d.]+)–([\d.]+) \| (\d+)–(\d+) \|")
    limited = said("10", r"\| the one in which it acted \| ([\d.]+) \| (\d+) \|")
    of_13 = {"kernel": "13_ldmatrix", "type": "f16", "out": "f32", "m": "4096", "n": "4096", "k": "4096", "beta": "0"}
    sittings = [row for row in rows("ladder.csv") if all(row[name] == value for name, value in of_13.items())]
    by_limit = {limit: [row for row in sittings if ("power" in row["throttle"]) == limit] for limit in (False, True)}
    assert (len(by_limit[False]), len(by_limit[True])) == (4, 1)
    for texts, column in ((free[:2], "ratio_cublas"), (free[2:], "flop_clk_sm")):
        values = [float(row[column]) for row in by_limit[False]]
        assert agrees(texts[0], min(values)) and agrees(texts[1], max(values))
    for text, column in zip(limited, ("ratio_cublas", "flop_clk_sm"), strict=True):
        assert agrees(text, float(by_limit[True][0][column]))


def test_the_gains_of_bf16_and_tf32():
    for text, type in zip(said("10", r"BF16 and TF32 gained ([\d.]+) and ([\d.]+)\."), ("bf16", "tf32"), strict=True):
        assert agrees(text, gain(type, "10", "09b", 4096))


def test_both_are_below_the_bound():
    parts = said("10", r"in BF16, 09b reaches ([\d.]+) and 10 reaches ([\d.]+)\.")
    for text, rung in zip(parts, ("09b", "10"), strict=True):
        assert agrees(text, cell("bf16", rung, 4096, "ceiling_fraction"))


NAMED = ("wait", "long scoreboard", "lg throttle", "mio throttle", "barrier")


@pytest.mark.parametrize(
    "name",
    ["issuing", "wait", "long scoreboard", "lg throttle", "mio throttle", "barrier", "all other stall reasons", "together"],
)
def test_where_the_clocks_of_a_warp_go(name):
    cells = said("10", rf"\| \*?{name}\*?(?::[^|]*)? \| (\d+) \| (\d+) \| (\d+) \|")
    for text, rung in zip(cells, ("09b", "10", "10b"), strict=True):
        assert agrees(text, clocks_of_a_warp("bf16", rung, TILES, *NAMED)[name])


def test_f16_is_a_draw():
    gains = said("10", r"a draw\*\*: ([\d.]+) of 09b at 4096³, ([\d.]+) at 2048³, ([\d.]+) at 8192³")
    for text, size in zip(gains, (4096, 2048, 8192), strict=True):
        assert agrees(text, gain("f16", "10", "09b", size))


@pytest.mark.parametrize(
    ("row", "group", "name", "unit"),
    [
        ("clocks, thousand", "time", "clocks", 1e3),
        ("instructions, million", "issue", "instructions", 1e6),
        ("shared wavefronts, million", "shared", "wavefronts", 1e6),
        ("stalled, clocks per instruction: long scoreboard", "stalls", "long scoreboard", 1),
        ("stalled, clocks per instruction: short scoreboard", "stalls", "short scoreboard", 1),
        ("stalled, clocks per instruction: mio throttle", "stalls", "mio throttle", 1),
    ],
)
def test_the_profile_of_f16(row, group, name, unit):
    for text, rung in zip(said("10", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \|"), ("09b", "10"), strict=True):
        assert agrees(text, metric("f16", rung, group, name), unit)


def test_the_instructions_of_bf16():
    for text, rung in zip(said("10", r"10 executes (\d+) million .*? where 09b has (\d+)\."), ("10", "09b"), strict=True):
        assert agrees(text, metric("bf16", rung, "issue", "instructions"), 1e6)


def test_a_third_of_the_clocks_is_waiting_for_global_memory_first():
    clocks, more = said("10", r"\| measured: [^|]* \| (\d+) \| .*? The measured clocks are (\d+) more, a third of them\.")
    measured = metric("bf16", "10", "time", "clocks") / (4 * 64)
    assert abs(int(clocks) - measured) < 10 and abs(1 - 2048 / measured - 1 / 3) < 0.03 and int(more) == int(clocks) - 2048
    others = ("short scoreboard", "mio throttle", "lg throttle", "barrier", "math pipe throttle", "dispatch stall", "wait")
    assert metric("bf16", "10", "stalls", "long scoreboard") > max(metric("bf16", "10", "stalls", name) for name in others)


def test_10b_is_more_than_half_of_10():
    (part,) = said("10", r"10b is ([\d.]+) of 10, not half")
    assert agrees(part, gain("bf16", "10b", "10", 4096)) and agrees(
        part, cell("f16", "10b", 4096, "flop_clk_sm") / cell("f16", "10", 4096, "flop_clk_sm")
    )


def test_the_wavefronts_of_10b():
    million, per_tile, again = said(
        "10",
        r"counts ([\d.]+) million shared wavefronts, and [^.]*\.5 million / 262,144 pairs are (\d+): .*? profile \| (\d+) \|",
    )
    wavefronts = metric("bf16", "10b", "shared", "wavefronts")
    assert agrees(million, wavefronts, 1e6) and agrees(per_tile, wavefronts / TILES) and again == per_tile
    assert wavefronts == metric("bf16", "10b", "shared", "ideal wavefronts")


def test_how_near_10_and_10b_are_to_their_bounds():
    parts = said("10", r"wavefronts of 10b take ([\d.]+) of its clocks, the 256 of 10 take ([\d.]+) of its clocks\.")
    for text, rung, each in zip(parts, ("10b", "10"), (512, 256), strict=True):
        assert agrees(text, each * TILES / 132 / metric("bf16", rung, "time", "clocks"))


def test_fp16_sums_against_one_rounding():
    said("10", r"three to four times the error at K = 512, and eight to eleven times at K = 4096")
    for data, k, least, most in (
        ("normal", 512, 3, 4.1),
        ("positive", 512, 2.9, 4),
        ("normal", 4096, 8, 11.5),
        ("positive", 4096, 7.5, 11),
    ):
        assert least < accuracy("f16", data, k, "rms") / accuracy("f32_to_f16", data, k, "rms") < most


def test_fp32_sums_are_too_small():
    for text, data in zip(
        said("10", r"too small by (\d+) in a million \(\*standard normal\*\), and by (\d+) in a million"),
        ("normal", "positive"),
        strict=True,
    ):
        assert agrees(text, accuracy("f32", data, 4096, "shrink"), 1e-6)


def test_the_answer_on_errors_with_rounding_and_without():
    errors = said("10", r"With rounding, ([\d.]+) is recorded\. Rung \[11\]\([^)]*\) does not round TF32, and ([\d.]+) is")
    (expected,) = said("10", r"So expect about ([\d.]+) without rounding")
    assert expected == errors[1]
    for text, number in zip(errors, ("10", "11"), strict=True):
        assert agrees(text, cell("tf32", number, 1024, "max_error") / cell("tf32", number, 1024, "bound"))
