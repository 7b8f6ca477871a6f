"""The parts of a rung's time, and the roofline by bytes moved: from invented counts, to be computed by hand."""

from pathlib import Path

import pytest
import synthetic
from synthetic import CLOCK, SMS, row, tensor_row, write_folder
from test_figures import assert_legible, drawn_texts
from test_profiled import write
from test_report import report

from plots.__main__ import main
from plots.data import profiles
from plots.data.floors import ISSUE, moved, times
from plots.data.results import load
from plots.data.rungs import number
from plots.data.selection import tables
from plots.data.units import Shape, digits
from plots.documents.chapters import GPU
from plots.figures import floors, intensities, style
from plots.figures.kinds import of_profile

SIZE = Shape(4096, 4096, 4096)
PER_MS = SMS * CLOCK * 1e3  # clocks of all SMs
BANDWIDTHS = {"DRAM": 3970, "L2": 8000, "shared memory": 33000}  # GB/s, as synthetic.write_folder has them


def ms(kernel):
    return float(row(kernel, SIZE)["median_ms"])


def counts(kernel, **shares):
    """Metrics whose least times are these shares of the rung's time."""
    bytes_of = {level: share * ms(kernel) * BANDWIDTHS[level] * 1e6 for level, share in shares.items() if level in BANDWIDTHS}
    return {
        ("issue", "instructions"): shares.get(ISSUE, 0.1) * ms(kernel) * 4 * PER_MS,
        ("shared", "wavefronts"): bytes_of.get("shared memory", 0) / 128,
        ("memory", "L2 bytes"): bytes_of["L2"],
        ("memory", "DRAM read"): 0.75 * bytes_of["DRAM"],
        ("memory", "DRAM written"): 0.25 * bytes_of["DRAM"],
    }


PROFILE = {
    "01_naive": counts("01_naive", **{"DRAM": 0.2, "L2": 0.3, ISSUE: 0.6}),
    "02_smem_tiling": counts("02_smem_tiling", **{"DRAM": 0.2, "L2": 0.3, "shared memory": 0.9}),
    "05_float4": counts("05_float4", **{"DRAM": 0.95, "L2": 0.3, "shared memory": 0.4}),
    "07_double_buffer": counts("07_double_buffer", **{"DRAM": 0.1, "L2": 0.2, "shared memory": 0.3}),
}


@pytest.fixture
def split(results, table):
    return {time.kernel: time for time in times(results, table, PROFILE, SIZE)}


def test_the_pipe_needs_the_flops_at_its_ceiling(split):
    for kernel, factor in synthetic.RATIOS.items():
        share = factor * synthetic.cublas_rate(SIZE) / synthetic.PEAK
        assert split[kernel].pipe == pytest.approx(share * ms(kernel)) and split[kernel].total == pytest.approx(ms(kernel))


@pytest.mark.parametrize(
    ("kernel", "busiest", "share"),
    [("01_naive", ISSUE, 0.6), ("02_smem_tiling", "shared memory", 0.9), ("05_float4", "DRAM", 0.95)],
)
def test_beyond_it_stands_what_the_busiest_needs(split, kernel, busiest, share):
    time = split[kernel]
    assert time.busiest == busiest
    assert time.pipe + time.beyond == pytest.approx(share * ms(kernel)) and time.rest == pytest.approx((1 - share) * ms(kernel))


def test_where_the_pipe_is_the_busiest_nothing_stands_beyond_it(split):
    time = split["07_double_buffer"]
    assert time.beyond == 0 and time.pipe + time.rest == pytest.approx(time.total)


def test_shared_memory_is_slower_at_a_lower_clock_and_dram_is_not(tmp_path):
    rows = [row("02_smem_tiling", SIZE), row("05_float4", SIZE, clock_mhz=CLOCK / 2, flop_clk_sm="")]
    results = load(write_folder(tmp_path, rows))
    _, half = times(results, *tables(results), PROFILE, SIZE)
    assert half.others["shared memory"] == pytest.approx(2 * 0.4 * ms("05_float4"))
    assert half.others["DRAM"] == pytest.approx(0.95 * ms("05_float4"))


def test_parts_never_pass_the_time(results, table):
    metrics = counts("08_warp_tiling", **{"DRAM": 1.4, "L2": 0.2, "shared memory": 0.3})
    (time,) = (time for time in times(results, table, {"08_warp_tiling": metrics}, SIZE) if time.kernel == "08_warp_tiling")
    assert time.pipe + time.beyond == pytest.approx(time.total) and time.rest == pytest.approx(0)


def test_bars_are_the_parts_and_what_was_not_profiled_is_not_split(split, monkeypatch):
    fig = floors.draw(list(split.values()), "f32", SIZE)
    assert_legible(fig, monkeypatch)
    texts = [text for text, _ in drawn_texts(fig, monkeypatch)]
    assert digits(ms("01_naive")) in texts and "not split: no profile of this rung" in texts
    bars = fig.axes[0].patches
    for place, (kernel, time) in enumerate(split.items()):
        widths = [bar.get_width() for bar in bars if round(bar.get_y() + 0.37) == place]
        assert widths == pytest.approx(
            [time.pipe, time.beyond, time.rest] if kernel in PROFILE else [time.pipe, time.total - time.pipe]
        )
    svg = style.svg(fig)
    assert f"<title>02_smem_tiling, {digits(ms('02_smem_tiling'))} ms: shared memory needs more; all of them:" in svg
    assert "longer bars are cut at 5 times" in svg and "beyond it, what L2 needs" not in svg, "it is nobody's busiest"


def test_each_rung_stands_at_the_bytes_that_it_moved(table, monkeypatch):
    found = intensities.points(table, PROFILE, SIZE)
    assert list(found) == list(PROFILE) and "shared memory" not in found["01_naive"]
    assert found["05_float4"]["DRAM"] == pytest.approx(SIZE.flop / (0.95 * ms("05_float4") * 3970e6))
    assert moved(PROFILE["02_smem_tiling"])["shared memory"] == pytest.approx(0.9 * ms("02_smem_tiling") * 33000e6)
    fig = intensities.draw(table, PROFILE, SIZE, BANDWIDTHS)
    assert_legible(fig, monkeypatch)
    texts = [text for text, _ in drawn_texts(fig, monkeypatch)]
    assert {"DRAM, 3.97 TB/s", "L2, 8.00 TB/s", "shared memory, 33.0 TB/s", "FFMA"} <= set(texts)
    assert texts.count("01") == 2 and texts.count("05") == 3, "none where it moved nothing"
    dram = fig.axes[0]
    at = {(line.get_xdata()[0], line.get_ydata()[0]) for line in dram.get_lines() if len(line.get_xdata()) == 1}
    assert (found["05_float4"]["DRAM"], table.value("05_float4", SIZE) / 1000) in at


def test_each_unit_has_its_roof(tmp_path, monkeypatch):
    factors = dict(zip([*synthetic.TENSOR, synthetic.WGMMA], (0.5, 0.7, 0.8, 0.82, 1.3), strict=True))
    (table,) = tables(load(write_folder(tmp_path, [tensor_row(kernel, factor, SIZE) for kernel, factor in factors.items()])))
    fig = intensities.draw(table, dict.fromkeys(factors, PROFILE["07_double_buffer"]), SIZE, BANDWIDTHS)
    assert_legible(fig, monkeypatch)
    texts = [text for text, _ in drawn_texts(fig, monkeypatch)]
    assert texts.count("mma.sync") == texts.count("wgmma") == 3


def test_they_are_committed_and_reported_where_there_is_a_profile(tmp_path, capsys):
    folder = write_folder(tmp_path / "bench/recorded" / GPU)
    synthetic.write_program(tmp_path, synthetic.stated())
    html, _ = report(folder, tmp_path / "before")
    assert "Where the time goes" not in html and not of_profile(load(folder), tables(load(folder))[0])
    write(tmp_path, "profile_f32.csv", 4096, ["07_double_buffer", "08_warp_tiling"])
    html, _ = report(folder, tmp_path / "after")
    assert "Where the time goes" in html and "Roofline by the bytes that each rung moved" in html
    assert main(["recorded", "--root", str(tmp_path)]) == 0
    for name in ("time_f32", "roofline_measured_f32"):
        assert (tmp_path / f"docs/img/recorded/{name}.svg").is_file()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 0
    write(tmp_path, "profile_f32.csv", 4096, ["07_double_buffer"])
    capsys.readouterr()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 1
    stale = capsys.readouterr().out
    assert "time_f32.svg" in stale and "roofline_measured_f32.svg" in stale and "/ladder_f32.svg" not in stale


RECORDED = Path(__file__).parents[2] / "bench/recorded" / GPU


def recorded(kind):
    """The recorded times of a type's profiled rungs, by number."""
    results = load(RECORDED)
    (table,) = (table for table in tables(results) if table.type == kind)
    profile, shape = profiles.read(RECORDED / f"profile_{kind}.csv")
    return {number(time.kernel): time for time in times(results, table, profile, shape) if time.others}


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded results")
def test_what_the_map_says_of_the_recorded_times():
    near = {rung: time.others.get("shared memory", 0) / time.total for rung, time in recorded("f32").items()}
    assert all(near[rung] > 0.75 for rung in ("02", "03", "04", "05")) and all(near[rung] < 0.7 for rung in ("06", "07", "08"))
    assert 0.7 < near["37"] < 0.8
    beyond = {rung: time.busiest for rung, time in recorded("bf16").items() if time.beyond > 0}
    assert {rung for rung in recorded("bf16") if rung < "14"} | {"22"} <= set(beyond)
    assert {rung for rung, busiest in beyond.items() if busiest != "L2"} == {"10b", "14", "15", "16", "16b"} & set(beyond)
    assert beyond["10b"] == "shared memory"
    assert all(
        abs(time.others["shared memory"] / time.pipe - 1) < 0.03 for rung, time in recorded("bf16").items() if "14" <= rung < "17"
    )


@pytest.mark.parametrize("kind", ["f32", "tf32", "bf16", "f16"])
@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded results")
def test_no_recorded_time_is_less_than_a_least_time(kind):
    assert all(max(time.pipe, *time.others.values()) < 1.02 * time.total for time in recorded(kind).values())
