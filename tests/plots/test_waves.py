"""The figures of waves, from invented rows, and the recorded sweep held to the prediction that they draw."""

from pathlib import Path

import pytest
from synthetic import HEADER, row, write_rows

from plots.data.units import Shape
from plots.documents.chapters import GPU
from plots.errors import InputError
from plots.figures import waves

RECORDED = Path(__file__).parents[2] / "bench/recorded" / GPU / waves.FILE
KERNELS = {"08_warp_tiling": 1.0, "17f_split_k_fp32": 1.1, "18f_stream_k_fp32": 1.2}
SHAPES = [Shape(n, n, 2048) for n in (1024, 2048, 3072, 4096)] + [Shape(256, 256, k) for k in (512, 1024)]
SMS = 60  # that the rows' column `waves` says


def rows():
    """Rungs of 128 x 256 results per tile; the first one in whole waves of the same length."""
    made = []
    for shape in SHAPES:
        full = waves.wave_efficiency(shape, (128, 256), SMS)
        tiles = -(-shape.m // 128) * -(-shape.n // 256)
        for kernel, factor in KERNELS.items():
            rate = 40_000 * full * factor
            fields = {"kernel": kernel, "gflops": rate, "median_ms": shape.flop / rate / 1e6, "cublas_gflops": 50_000.0}
            made.append(row("08_warp_tiling", shape) | fields | {"tile": "128x256x8", "waves": tiles / SMS})
    return made


@pytest.fixture
def file(tmp_path):
    assert {"tile", "waves"} <= set(HEADER)
    write_rows(tmp_path / waves.FILE, rows())
    return tmp_path / waves.FILE


def test_tile_and_sms_come_from_the_rows(file):
    (sweep,) = waves.read(file)
    assert (sweep.type, sweep.kernels, sweep.tile, sweep.sms) == ("f32", list(KERNELS), (128, 256), SMS)
    assert sweep.squares == SHAPES[:4] and sweep.small == {(256, 256): SHAPES[4:]}


def test_the_prediction_is_what_whole_waves_of_equal_length_take(file):
    (sweep,) = waves.read(file)
    for shape, rate in sweep.predicted().items():
        assert rate == pytest.approx(sweep.gflops["08_warp_tiling", shape])


def test_a_full_wave_has_no_loss_and_one_tile_more_needs_a_second():
    assert waves.wave_efficiency(Shape(128 * 6, 256 * 10, 64), (128, 256), 60) == 1
    assert waves.wave_efficiency(Shape(128 * 61, 256, 64), (128, 256), 60) == pytest.approx(61 / 120)
    assert waves.wave_efficiency(Shape(64, 256, 64), (128, 256), 1) == 0.5


def test_a_type_that_was_waived_is_left_out(tmp_path):
    waived = [r | {"type": "bf16", "status": "waived", "gflops": "", "median_ms": ""} for r in rows()]
    write_rows(tmp_path / waves.FILE, rows() + waived)
    assert [sweep.type for sweep in waves.read(tmp_path / waves.FILE)] == ["f32"]


@pytest.mark.parametrize("kind", waves.KINDS.values())
def test_figures_show_all_rungs_and_cublas(file, kind):
    (sweep,) = waves.read(file)
    legend = [text.get_text() for text in kind.draw(sweep).axes[0].get_legend().get_texts()]
    assert legend[:4] == ["08: whole tiles", "17f: split-K", "18f: stream-K", "cuBLAS, beside the three"]


def test_a_row_that_is_missing_is_named(tmp_path):
    write_rows(tmp_path / waves.FILE, rows()[:-1])
    with pytest.raises(InputError, match="no row of 18f_stream_k_fp32 at 256×256×1024"):
        waves.read(tmp_path / waves.FILE)


def test_a_rung_that_is_missing_is_named(tmp_path):
    write_rows(tmp_path / waves.FILE, [r for r in rows() if not str(r["kernel"]).startswith("17f")])
    with pytest.raises(InputError, match="2 rungs of f32"):
        waves.read(tmp_path / waves.FILE)


@pytest.mark.skipif(not RECORDED.is_file(), reason="not recorded yet")
def test_whole_tiles_of_fp32_follow_the_saw_tooth():
    (sweep,) = (sweep for sweep in waves.read(RECORDED) if sweep.type == "f32")
    assert sweep.sms == 132
    for shape, rate in sweep.predicted().items():
        assert sweep.gflops[sweep.kernels[0], shape] == pytest.approx(rate, rel=0.02), shape
