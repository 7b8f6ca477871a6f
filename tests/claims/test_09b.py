"""Numbers in the prose of chapter 09b, which is also of 09c, against the recorded results."""

import pytest
from recorded import agrees, cell, clocks_of_a_warp, gain, metric, said

TYPES = ("bf16", "f16", "tf32")
TILES = {"bf16": 262144, "f16": 262144, "tf32": 524288}  # pairs of a warp and a k tile at 4096 cubed
OF_C = 2 * 4096 * 4096 * 4 / 128  # wavefronts of C, stored to shared memory and loaded from it


def per_tile(type: str, rung: str) -> float:
    return (metric(type, rung, "shared", "wavefronts") - OF_C) / TILES[type]


def test_the_tensor_cores_of_09_are_hardly_busy():
    (percent,) = said("09b", r"busy for less than (\d+) % of the clocks")
    assert metric("bf16", "09", "issue", "tensor pipe") < int(percent)


@pytest.mark.parametrize(("rung", "before"), [("09a", "09"), ("09b", "09a"), ("09b", "09"), ("09c", "09b")])
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
    ],
)
def test_the_table_of_the_other_types(row, group, name, unit):
    cells = said("09b", rf"\| {row} " + r"\| ([\d.]+) " * 4 + r"\|")
    columns = [(type, rung) for type in ("f16", "tf32") for rung in ("09b", "09c")]
    for text, (type, rung) in zip(cells, columns, strict=True):
        assert agrees(text, metric(type, rung, group, name), unit)


def test_the_small_hmma_of_tf32_cost_time():
    percent, part = said("09b", r"active for (\d+) % of the clocks, but reach only ([\d.]+) of their ceiling")
    assert agrees(percent, metric("tf32", "09b", "issue", "tensor pipe"))
    assert agrees(part, cell("tf32", "09b", 4096, "ceiling_fraction"))


NAMED = ("wait", "long scoreboard", "barrier")


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("issuing: instructions", "issuing"),
        (r"\*wait\*[^|]*", "wait"),
        (r"\*long scoreboard\*[^|]*", "long scoreboard"),
        (r"\*barrier\*", "barrier"),
        ("all other stall reasons", "all other stall reasons"),
        ("together", "together"),
    ],
)
def test_where_the_clocks_of_a_warp_go(row, name):
    cells = said("09b", rf"\| {row} " + r"\| (\d+) " * 6 + r"\|")
    columns = [(type, rung) for type in TYPES for rung in ("09b", "09c")]
    for text, (type, rung) in zip(cells, columns, strict=True):
        assert agrees(text, clocks_of_a_warp(type, rung, TILES[type], *NAMED)[name])


def test_the_issue_slots_of_09b_are_far_from_full():
    (percent,) = said("09b", r"issue slots are used to (\d+) % at most")
    assert agrees(percent, max(metric(type, "09b", "issue", "issue active") for type in TYPES))


def test_09c_waits_less_for_global_memory():
    said("09b", r"\*long scoreboard\* falls in all three types")
    for type in TYPES:
        assert (
            clocks_of_a_warp(type, "09c", TILES[type], *NAMED)["long scoreboard"]
            < 0.7 * clocks_of_a_warp(type, "09b", TILES[type], *NAMED)["long scoreboard"]
        )


def test_the_copies_take_more_wavefronts_than_stores():
    numbers = said(
        "09b",
        r"those of C, ([\d.]+) million\. .*? has (\d+) wavefronts per pair in 09b: ([\d.]+) million / 262,144\. .*? "
        r"In 09c it has (\d+)\. .*? 16 copies take (\d+) wavefronts",
    )
    of_c, of_09b, million, of_09c, copies = numbers
    assert agrees(of_c, OF_C, 1e6) and agrees(million, metric("bf16", "09b", "shared", "wavefronts") - OF_C, 1e6)
    for type in TYPES:
        assert agrees(of_09b, per_tile(type, "09b")) and agrees(of_09c, per_tile(type, "09c"))
        assert agrees(copies, per_tile(type, "09c") - 128)


def test_the_barrier_of_09c_in_bf16_alone():
    less, more = said("09b", r"In BF16, warps wait (\d+) clocks less for global memory and (\d+) clocks more at the \*barrier\*")
    before, now = (clocks_of_a_warp("bf16", rung, TILES["bf16"], *NAMED) for rung in ("09b", "09c"))
    assert agrees(less, before["long scoreboard"] - now["long scoreboard"]) and agrees(more, now["barrier"] - before["barrier"])
    said("09b", r"In the other types \*barrier\* changes little, but the other reasons together rise")
    for type in ("f16", "tf32"):
        before, now = (clocks_of_a_warp(type, rung, TILES[type], *NAMED) for rung in ("09b", "09c"))
        assert (
            abs(now["barrier"] - before["barrier"]) < 100 and now["all other stall reasons"] > before["all other stall reasons"]
        )
