"""The figures as pictures: every text inside the canvas and clear of every other; numbers equal to the CSV's."""

import itertools

import pytest
import synthetic
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from synthetic import row, waived, write_folder

from plots.data.results import load
from plots.data.rungs import is_variant
from plots.data.selection import tables
from plots.data.units import Shape, ratio, tflops
from plots.figures import clocks, gflops, heatmap, ladder, reach, roofline, stairs, style, wins
from plots.figures.labels import spread
from plots.tables import best
from plots.tables.summaries import per_clock

SIZE = Shape(4096, 4096, 4096)
ODD = Shape(1020, 1020, 1020)

DRAW = {
    "gflops": gflops.draw,
    "ladder": lambda table: ladder.draw(table, table.headline),
    "roofline": roofline.draw,
    "heatmap": heatmap.draw,
    "reach": lambda table: reach.draw([table]),
    "clocks": lambda table: clocks.draw([table], synthetic.CLOCK),
    "wins": lambda table: wins.draw(best.of_ladder([table]), "the best rung"),
}


def one_size():
    return [row(kernel, SIZE) for kernel in synthetic.RATIOS]


def all_alike():
    """Ten kernels and both baselines within half a per cent of one another, at two sizes."""
    shapes = [Shape(n, n, n) for n in (2048, 4096)]
    return [row(k, s, gflops=50_000.0 + 20 * i) for s in shapes for i, k in enumerate(synthetic.RATIOS)]


def slow_gpu():
    """A GPU a thousand times slower, with no cuBLASLt."""
    keys = ("gflops", "cublas_gflops", "ratio_best")
    return [r | {k: float(r[k]) / 1000 for k in keys} | {"cublaslt_gflops": ""} for r in synthetic.all_rows()]


def refused():
    return [
        waived(k, ODD, "no") if (r["m"], k) == (1020, "05_float4") else r for r in synthetic.all_rows() for k in [r["kernel"]]
    ]


def two_units():
    """Tensor cores by mma.sync, and by wgmma past what mma.sync reaches."""
    factors = dict(zip(synthetic.TENSOR, (0.7, 0.8, 0.82, 0.83), strict=True)) | {synthetic.WGMMA: 1.3}
    shapes = [Shape(n, n, n) for n in (1024, 2048, 4096, 8192)]
    return [synthetic.tensor_row(kernel, factor, shape) for shape in shapes for kernel, factor in factors.items()]


def many():
    """As many rungs as a type's ladder may have, with two ceilings and two baselines; some far below, one shape refused."""
    shapes = [Shape(n, n, n) for n in (256, 1024, 2048, 4096, 8192)]
    named = [f"{place:02}b_rung" for place in range(20, 50)]
    factors = [0.005, 0.06, *(0.8 + 0.01 * place for place in range(len(named) - 2))]
    rungs = list(zip(named, factors, strict=True))
    parts = [synthetic.tensor_row("13_ldmatrix", factor, s) | {"kernel": k} for s in shapes for k, factor in rungs]
    refused = [waived("08_warp_tiling", ODD, "no") | {"kernel": k, "type": "bf16"} for k in named]
    return [*parts, *refused, *two_units()]


CASES = {
    "many": many,
    "all": synthetic.all_rows,
    "one": one_size,
    "alike": all_alike,
    "slow": slow_gpu,
    "two units": two_units,
    "refused": refused,
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    return tables(load(write_folder(tmp_path, CASES[request.param]())))[0]


def drawn_texts(fig, monkeypatch):
    """Every text that is really drawn, with its box in pixels (a label's leader line not counted)."""
    drawn = []
    plain = Text.draw
    monkeypatch.setattr(Text, "draw", lambda self, renderer: (drawn.append(self), plain(self, renderer)))
    renderer = FigureCanvasAgg(fig).get_renderer()
    fig.draw(renderer)
    return [(t.get_text(), Text.get_window_extent(t, renderer)) for t in drawn if t.get_visible() and t.get_text().strip()]


def assert_legible(fig, monkeypatch):
    """No text touches another or leaves the picture."""
    found, canvas = drawn_texts(fig, monkeypatch), fig.bbox
    assert len(found) > 5
    for text, box in found:
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1, f"'{text}' leaves the picture sideways"
        assert canvas.y0 <= box.y0 and box.y1 <= canvas.y1, f"'{text}' leaves the picture"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 0.5 or high <= 0.5, f"'{one}' and '{other}' overlap by {wide:.0f}×{high:.0f} pixels"


@pytest.mark.parametrize("name", DRAW)
def test_no_text_touches_another_or_leaves_the_picture(name, case, monkeypatch):
    assert_legible(DRAW[name](case), monkeypatch)


@pytest.mark.parametrize("name", DRAW)
def test_the_same_input_gives_the_same_bytes(name, table):
    assert style.svg(DRAW[name](table)) == style.svg(DRAW[name](table))
    assert "2001" not in style.svg(DRAW[name](table))


def test_curves_hold_the_csvs_numbers(table):
    lines = {line.get_label(): line for line in gflops.draw(table).axes[0].get_lines()}
    for kernel in synthetic.RATIOS:
        want = [float(row(kernel, Shape(n, n, n))["gflops"]) / 1000 for n in synthetic.SQUARES]
        assert list(lines[kernel].get_xdata()) == synthetic.SQUARES
        assert list(lines[kernel].get_ydata()) == pytest.approx(want)
    assert list(lines["cuBLAS"].get_ydata())[-1] == pytest.approx(synthetic.cublas_rate(Shape(8192, 8192, 8192)) / 1000)


def test_cublas_is_marked_on_each_bar_and_has_a_band_over_the_sizes(tmp_path):
    rates = dict(zip(synthetic.RATIOS, range(40_000, 50_000, 1000), strict=True))
    found = load(write_folder(tmp_path, [row(kernel, SIZE, cublas_gflops=rate) for kernel, rate in rates.items()]))
    (table,) = tables(found)
    marks = {tuple(line.get_xdata()) for line in ladder.draw(table, SIZE).axes[0].get_lines() if line.get_color() == "black"}
    assert marks == {(rate / 1000, rate / 1000) for rate in rates.values()}
    (band,) = gflops.draw(table).axes[0].collections
    (box,) = (path.get_extents() for path in band.get_paths())
    assert (box.y0, box.y1) == (40, 49)


def test_ladder_prints_the_csvs_numbers(table):
    svg = style.svg(ladder.draw(table, SIZE))
    for kernel in synthetic.RATIOS:
        assert f">{tflops(float(row(kernel, SIZE)['gflops']))}<" in svg
        assert f">{ratio(synthetic.RATIOS[kernel])}<" in svg
    assert f">{0.34 / 0.18:.2f} × 02<" in svg, "the gain of 03 is over 02"
    assert f">{0.93 / 0.78:.2f} × 06<" in svg, "the gain of 07 is over 06, not over its variant 06b"
    assert ">0.974 × 06<" in svg, "a variant is compared with its own rung"


def test_heatmap_prints_every_ratio_and_names_refusals(tmp_path):
    table = tables(load(write_folder(tmp_path, refused())))[0]
    svg = style.svg(heatmap.draw(table))
    assert svg.count(">waived<") == 1
    for shape in table.shapes:
        assert f">{shape}<" in svg
    assert svg.count(f">{ratio(1.01)}<") == len(table.shapes)


def test_heatmap_is_centred_at_one(table):
    norm = heatmap._norm(table)
    assert norm(1.0) == 0.5
    assert norm(0.5) < 0.5 < norm(1.1)


def test_roofline_points_lie_at_the_compulsory_intensity(table):
    assert roofline.intensity(table, SIZE) == pytest.approx(4096 / 6)
    points = [line for line in roofline.draw(table).axes[0].get_lines() if line.get_marker() == "o"]
    assert points[0].get_xdata()[-1] == pytest.approx(4096 / 6)
    assert points[0].get_ydata()[-1] == pytest.approx(float(row("01_naive", SIZE)["gflops"]) / 1000)


def test_a_rung_is_a_share_of_its_own_units_ceiling(tmp_path):
    folder = write_folder(tmp_path, two_units())
    (table,) = tables(load(folder))
    assert [ceiling.name for ceiling in table.ceilings] == ["mma_bf16", "wgmma_bf16"]
    assert table.ceiling("16_epilogue").name == "mma_bf16"
    wgmma = table.ceiling(synthetic.WGMMA)
    assert table.value(synthetic.WGMMA, SIZE) / wgmma.gflops == pytest.approx(1.3 * 600 / 900)
    assert per_clock(table, synthetic.WGMMA, SIZE).endswith("(0.87)") and per_clock(table, "16_epilogue", SIZE).endswith("(0.83)")
    ceilings = folder / "ceilings.csv"
    ceilings.write_text("".join(line for line in ceilings.read_text().splitlines(True) if not line.startswith("wgmma")))
    (table,) = tables(load(folder))
    assert table.ceiling(synthetic.WGMMA) is None and "(" not in per_clock(table, synthetic.WGMMA, SIZE)


def test_roofline_needs_ceilings(folder):
    (folder / "ceilings.csv").unlink()
    assert not roofline.possible(tables(load(folder))[0])


def test_spread_keeps_order_and_gap_and_moves_little():
    assert spread([0.1, 0.5, 0.9], 0.1, 0, 1) == pytest.approx([0.1, 0.5, 0.9])
    assert spread([0.5, 0.5], 0.1, 0, 1) == pytest.approx([0.45, 0.55])
    placed = spread([0.99, 1.0, 0.98, 0.2], 0.1, 0, 1)
    assert placed == pytest.approx([0.9, 1.0, 0.8, 0.2])


def test_neighbouring_rungs_differ_in_lightness(table):
    def lightness(colour):
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    shades = [lightness(colour) for colour in style.colours(table.kernels).values()]
    assert shades == sorted(shades, reverse=True)
    assert min(a - b for a, b in itertools.pairwise(shades)) > 5


def of_two_types(tmp_path):
    """FP32 at a few sizes, and BF16 by two units."""
    rows = [row(kernel, shape) for kernel in synthetic.RATIOS for shape in (SIZE, Shape(2048, 2048, 2048))]
    return tables(load(write_folder(tmp_path, [*rows, *two_units()])))


def test_a_ceiling_is_named_after_its_unit(tmp_path, monkeypatch):
    _, bf16 = of_two_types(tmp_path)
    assert min(bf16.span("cuBLAS", SIZE)) > bf16.ceilings[0].gflops, "which cuBLAS passes, by the other unit"
    for draw in (gflops.draw, DRAW["ladder"], roofline.draw, lambda table: reach.draw([table])):
        texts = " ".join(text for text, _ in drawn_texts(draw(bf16), monkeypatch))
        assert "mma.sync" in texts and "wgmma" in texts and "mma_bf16" not in texts


def test_how_far_each_rung_gets_is_drawn_for_all_types_under_their_units(tmp_path, monkeypatch):
    found = of_two_types(tmp_path)
    fig = reach.draw(found)
    assert_legible(fig, monkeypatch)
    places = {text: box.y0 for text, box in drawn_texts(fig, monkeypatch)}
    order = ["FFMA", "01_naive", "08_warp_tiling", "mma.sync", "13_ldmatrix", "wgmma", synthetic.WGMMA]
    assert [places[text] for text in order] == sorted((places[text] for text in order), reverse=True)
    widths = {bar.get_width() for bar in fig.axes[0].patches}
    for table in found:
        for kernel in table.kernels:
            assert any(abs(width - 0.94 * min(table.share(kernel, SIZE), 1)) < 1e-9 for width in widths)


def test_clocks_are_coloured_by_their_share_and_dotted_where_a_limit_held_them(tmp_path):
    rows = [row("08_warp_tiling", SIZE, clock_mhz=1485, throttle="sw_power_cap", cublas_clock_mhz=1500), row("01_naive", SIZE)]
    svg = style.svg(clocks.draw(tables(load(write_folder(tmp_path, rows))), 1980))
    assert ">1485 •<" in svg and ">1980<" in svg and ">1500<" in svg
    assert "75 % of the highest clock" in svg and "cuBLAS, f32 at 4096³: 1500 MHz; 76 % of the highest clock" in svg


def test_the_stairs_are_the_numbered_rungs_beside_cublas(tmp_path, monkeypatch):
    fig = stairs.draw(of_two_types(tmp_path), "a card, a day")
    assert_legible(fig, monkeypatch)
    texts = [text for text, _ in drawn_texts(fig, monkeypatch)]
    assert texts.count("cuBLAS") == 2
    assert {"a card, a day", "Speed as a part of cuBLAS's in the same rounds, at 4096³"} <= set(texts)
    assert {"08 warp tiling", "17 wgmma", "■ every GPU since Volta (sm_70)", "■ Hopper alone (sm_90a)"} <= set(texts)
    assert not any(text.startswith(("01b", "06b")) for text in texts)
    f32, bf16 = ([bar.get_height() for bar in ax.patches] for ax in fig.axes)
    assert f32 == pytest.approx([value for kernel, value in synthetic.RATIOS.items() if not is_variant(kernel)])
    assert bf16 == pytest.approx([factor / 1.2 for factor in (0.7, 0.8, 0.82, 0.83, 1.3)])
    assert all(any(list(line.get_ydata()) == [1, 1] for line in ax.get_lines()) for ax in fig.axes)
