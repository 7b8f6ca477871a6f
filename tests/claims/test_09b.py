"""Numbers in the prose of chapter 09b, which is also of 09c, against the recorded results."""

import pytest
from recorded import agrees, cell, gain, metric, said

TYPES = ("bf16", "f16", "tf32")
TILES = {"bf16": 262144, "f16": 262144, "tf32": 524288}  # pairs of a warp and a k tile at 4096 cubed
OF_C = 2 * 4096 * 4096 * 4 / 128  # wavefronts of C, stored to shared memory and loaded from it


def per_tile(type: str, rung: str) -> float:
    return (metric(type, rung, "shared", "wavefronts") - OF_C) / TILES[type]


def test_the_tensor_cores_of_09_are_hardly_busy():
    (percent,) = said("09b", r"busy for less than (\d+) % of the clocks")
    assert metric("bf16", "09", "issue", "tensor pipe") < int(percent)


@pytest.mark.parametrize(("rung", "before"), [("09b", "09"), ("09c", "09b")])
def test_the_gains(rung, before):
    gains = said("09b", rf"\| {rung} over {before} [^|]*\| [\d.]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
    for text, type in zip(gains, TYPES, strict=True):
        assert agrees(text, gain(type, rung, before, 4096))


@pytest.mark.parametrize(
    ("row", "group", "name", "unit"),
    [
        ("issue slots used, %", "issue", "issue active", 1),
        ("tensor pipe active, %", "issue", "tensor pipe", 1),
        ("instructions, million", "issue", "instructions", 1e6),
        ("shared wavefronts, million", "shared", "wavefronts", 1e6),
        ("stalled, clocks per instruction: long scoreboard", "stalls", "long scoreboard", 1),
        ("stalled, clocks per instruction: barrier", "stalls", "barrier", 1),
    ],
)
def test_the_table_of_the_other_types(row, group, name, unit):
    cells = said("09b", rf"\| {row} " + r"\| ([\d.]+) " * 4 + r"\|")
    columns = [(type, rung) for type in ("f16", "tf32") for rung in ("09b", "09c")]
    for text, (type, rung) in zip(cells, columns, strict=True):
        assert agrees(text, metric(type, rung, group, name), unit)


def test_the_small_hmma_of_tf32_cost_time():
    percent, part = said("09b", r"active for (\d+) % of the clocks, but do only ([\d.]+) of the FLOP of their ceiling")
    assert agrees(percent, metric("tf32", "09b", "issue", "tensor pipe"))
    assert agrees(part, cell("tf32", "09b", 4096, "ceiling_fraction"))


def test_09c_waits_less_for_global_memory():
    said("09b", r"falls to a half in BF16 and TF32, and to a seventh in FP16")
    for type, least, most in (("bf16", 0.4, 0.6), ("tf32", 0.4, 0.6), ("f16", 0.12, 0.17)):
        now, before = (metric(type, rung, "stalls", "long scoreboard") for rung in ("09c", "09b"))
        assert least < now / before < most


def test_the_copies_take_more_wavefronts_than_stores():
    more, of_09b, of_09c, copies = said(
        "09b",
        r"has (\d+) million more in BF16, .*? (\d+) in 09b and (\d+) in 09c\. .*? 16 copies take (\d+) wavefronts",
    )
    assert agrees(more, sum(metric("bf16", rung, "shared", "wavefronts") * sign for rung, sign in (("09c", 1), ("09b", -1))), 1e6)
    for type in TYPES:
        assert agrees(of_09b, per_tile(type, "09b")) and agrees(of_09c, per_tile(type, "09c"))
        assert agrees(copies, per_tile(type, "09c") - 128)


def test_the_barrier_of_09c_in_bf16_alone():
    before, now = said("09b", r"In BF16 \*barrier\* rises from ([\d.]+) to ([\d.]+); in the other types it does not rise")
    assert agrees(before, metric("bf16", "09b", "stalls", "barrier"))
    assert agrees(now, metric("bf16", "09c", "stalls", "barrier"))
    for type in ("f16", "tf32"):
        assert metric(type, "09c", "stalls", "barrier") <= metric(type, "09b", "stalls", "barrier")
