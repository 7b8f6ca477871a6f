"""The figure of a kernel's own record: who waits for whom, from invented clocks."""

import csv

import pytest

from plots.errors import InputError
from plots.figures import timeline

K_TILES, TILES, PERIOD, COPY = 24, 2, 100, 10
EPILOGUE = 400


def producer(begin):
    """Waits 60 of 100 clocks until a stage is empty, then asks for two copies."""
    for k_tile in range(K_TILES * TILES):
        at = begin + k_tile * PERIOD
        yield from [("mbarrier_wait", 1024, at, at + 60), ("mbarrier_arrive_expect_tx", 1000, at + 60, at + 64)]
        yield from [("bulk_tensor_load", 1000, at + 65, at + 70), ("bulk_tensor_load", 1000, at + 70, at + 75)]


def consumer(begin, copies=False):
    """Waits 10 clocks for a full stage and 70 for the group before; in the end for its last one."""
    at = begin
    for _ in range(TILES):
        for _ in range(K_TILES):
            yield from [("mbarrier_wait", 1000, at, at + 10), ("wgmma_commit_group", 0, at + 15, at + 16)]
            yield ("wgmma_wait_group", 1, at + 16, at + 86)
            if copies:
                yield from [("bar_sync", 0, at + 86, at + 90), ("bulk_tensor_load", 1000, at + 91, at + 93)]
            at += PERIOD
        yield ("wgmma_wait_group", 0, at, at + 80)
        at += 80 + EPILOGUE


def rows(warps, kernel="23_warp_specialized", block=0):
    return [
        [kernel, "bf16", 1024, 512, 1536, block, 7, 0, warp, *record] for warp, records in warps.items() for record in records
    ]


def write(folder, records, plain="0.2", recorded="0.21"):
    for name, header, lines in (
        (timeline.FILE, timeline.COLUMNS, records),
        (timeline.RUNS, timeline.RUN_COLUMNS, [[*row, plain, recorded] for row in sorted({(r[0], r[1]) for r in records})]),
    ):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *lines])
    return folder


@pytest.fixture
def specialised(tmp_path):
    warps = {0: list(producer(0)), 4: list(consumer(50)), 8: list(consumer(70))}
    (found,) = timeline.read(write(tmp_path, rows(warps) + rows(warps, block=1)))
    return found


def test_roles_come_from_what_warps_did(specialised, tmp_path):
    assert [(lane.warp, lane.role) for lane in specialised.lanes] == [(0, "producer"), (4, "consumer"), (8, "consumer")]
    (found,) = timeline.read(write(tmp_path, rows({0: list(consumer(0, copies=True)), 4: list(consumer(0))}, "22_wgmma")))
    assert [lane.role for lane in found.lanes] == ["copies and multiplies", "consumer"]


def test_a_group_runs_until_the_wait_that_covers_it(specialised):
    flying = specialised.lanes[1].flying
    assert len(flying) == K_TILES * TILES
    assert flying[0] == (60, 236)  # until the next k tile's wait for all but one
    last = 50 + K_TILES * PERIOD
    assert flying[K_TILES - 1] == (last - PERIOD + 10, last + 80)  # until the wait for all


def test_an_epilogue_ends_where_the_next_tile_is_waited_for(specialised):
    end = 50 + K_TILES * PERIOD + 80
    assert specialised.lanes[1].epilogues == [(end, end + EPILOGUE)]  # behind the last tile comes nothing
    assert specialised.lanes[0].epilogues == []


def test_the_window_holds_the_epilogue_and_k_tiles_around_it(specialised):
    begin, end = specialised.window
    (first, last), around = specialised.lanes[1].epilogues[0], timeline.AROUND * PERIOD
    assert (begin, end) == (first - around, last + 20 + around)


def test_waits_are_parts_of_the_window(specialised):
    waited = specialised.lanes[0].waited((0, 10 * PERIOD))
    assert waited[timeline.EMPTY] == pytest.approx(0.6) and sum(waited.values()) == pytest.approx(0.6)
    waited = specialised.lanes[1].waited((50, 50 + 10 * PERIOD))
    assert (waited[timeline.FULL], waited[timeline.WGMMA]) == (pytest.approx(0.1), pytest.approx(0.7))


def test_one_tile_has_a_window_too(tmp_path):
    records = list(consumer(0))
    (found,) = timeline.read(write(tmp_path, rows({0: records[: 3 * K_TILES + 1]})))
    assert found.window[0] < found.window[1] == records[3 * K_TILES][3]
    timeline.draw(found)


def test_the_figure_has_a_lane_per_warp_and_says_what_recording_costs(specialised):
    fig = timeline.draw(specialised)
    axes = fig.axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["warp 0\nproducer", "warp 4\nconsumer", "warp 8\nconsumer"]
    assert axes.get_title(loc="left") == "23, bf16 at 1024×512×1536, block 0; recording lengthens the launch by 5.0 %"
    legend = [text.get_text() for text in fig.legends[0].get_texts()]
    assert legend[:3] == ["waits until a stage is full", "waits until a stage is empty", "waits for wgmma"]
    assert "asks for a copy" in legend and "waits at a barrier" not in legend


def test_without_times_the_title_says_nothing_of_the_cost(tmp_path):
    (found,) = timeline.read(write(tmp_path, rows({0: list(consumer(0))}), "", ""))
    assert found.cost is None and "recording" not in timeline.draw(found).axes[0].get_title(loc="left")


def test_rows_out_of_order_are_named(tmp_path):
    records = list(consumer(0))
    records[4], records[5] = records[5], records[4]
    with pytest.raises(InputError, match=r"timeline.csv:7: begins before"):
        timeline.read(write(tmp_path, rows({0: records})))


def test_a_kind_that_nobody_knows_is_named(tmp_path):
    with pytest.raises(InputError, match="no such kind: nap"):
        timeline.read(write(tmp_path, rows({0: [*consumer(0), ("nap", 0, 9000, 9001)]})))


def test_a_block_without_wgmma_is_refused(tmp_path):
    with pytest.raises(InputError, match="no wgmma in block 0 of 23"):
        timeline.read(write(tmp_path, rows({0: list(producer(0))})))


def test_a_kernel_without_times_is_named(tmp_path):
    write(tmp_path, rows({0: list(consumer(0))}))
    (tmp_path / timeline.RUNS).write_text(",".join(timeline.RUN_COLUMNS) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="0 rows of 23_warp_specialized in bf16"):
        timeline.read(tmp_path)
