"""The figures of the order of operations: no stage is written while it is read, and what overlaps with what."""

import pytest

from plots.maps import timelines


@pytest.mark.parametrize("rung", ["07", "11", "13", "14"])
def test_no_stage_is_written_while_it_is_read(rung):
    schedule = timelines.SCHEDULES[rung]()
    assert all(read != written for read, written in schedule.stages.values())
    ahead = 2 if rung == "14" else 1
    for tile, (_, written) in schedule.stages.items():
        assert schedule.stages.get(tile + ahead, (written,))[0] == written, "what is copied now is read then"


def test_constants_of_14_are_the_kernels(stated):
    of_14 = stated("14")
    assert (of_14["STAGES"], of_14["COPY_STEPS"]) == (timelines.STAGES_14, timelines.COPY_STEPS_14)
    assert of_14["STAGE_BYTES"] == timelines.STAGE_BYTES_14
    assert of_14["BK_BYTES"] // of_14["MMA_K_BYTES"] == timelines.STEPS


def busy(schedule, line):
    return sorted((bar.start, bar.end) for bar in schedule.bars if bar.line == line and bar.k_tile >= 0)


@pytest.mark.parametrize(("before", "after"), [("06", "07"), ("10", "11")])
def test_loads_overlap_with_the_multiplication_only_in_the_later_rung(before, after):
    def overlaps(rung):
        schedule = timelines.SCHEDULES[rung]()
        flights, math = (busy(schedule, line) for line in (timelines.FLIGHT, timelines.MATH))
        return any(a < d and c < b for a, b in flights for c, d in math)

    assert not overlaps(before) and overlaps(after)


def test_13_waits_in_every_k_tile_and_14_only_before_the_first():
    waits = {rung: [bar for bar in timelines.SCHEDULES[rung]().bars if bar.text == "waits"] for rung in ("13", "14")}
    assert len(waits["13"]) == timelines.TILES - 1 and len(waits["14"]) == 1


def test_every_picture_says_that_it_is_no_measurement():
    for name, drawing in timelines.figures().items():
        assert any("rder, not to scale" in text.text for text in drawing.texts), name


def test_two_blocks_take_turns():
    """No two blocks multiply at once, and one multiplies while the other waits."""
    offset = (timelines.WAIT + timelines.PUT + timelines.FMAS) / 2
    of = [list(timelines.phases(offset * block, 40)) for block in (0, 1)]
    for start, end, phase, _ in of[0]:
        if phase == 2:
            others = [(a, b, p) for a, b, p, _ in of[1] if a < end and b > start]
            assert others and all(p != 2 for _, _, p in others) and any(p == 0 for _, _, p in others)
