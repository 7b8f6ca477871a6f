"""What the simulator counted: the derived numbers, the figure, and the report of a machine without a GPU."""

import itertools

import pytest
import synthetic
from synthetic import counted as row
from synthetic import write_simulation
from test_figures import drawn_texts
from test_report import Page, report

from plots.__main__ import main
from plots.data.counters import MMA, WGMMA, counted, terms
from plots.data.results import load, load_simulation
from plots.data.units import Shape, digits
from plots.documents import chapters
from plots.figures import counters, style

pytestmark = pytest.mark.usefixtures("without_png")

SIZE = Shape(512, 512, 512)


@pytest.fixture
def simulated(tmp_path):
    return write_simulation(tmp_path / "simulated")


@pytest.fixture
def table(simulated):
    ((largest, _),) = counted(load_simulation(simulated))
    return largest


def test_counters_are_told_for_each_fma(table):
    assert table.shape == SIZE and list(table.rows) == list(synthetic.RATIOS)
    assert table.instructions("01_naive") == pytest.approx(8)
    assert table.per(table.terms.traffic, table.loaded("01_naive")) == pytest.approx(10)
    assert table.wavefronts(table.rows["05_float4"].sim_shared_ideal) == pytest.approx(1)
    assert table.wavefronts(table.excess("05_float4")) == pytest.approx(0.5)
    assert table.excess("06_bank_conflict_free") == 0


def test_rows_that_are_not_right_are_not_counted(tmp_path):
    rows = [row("01_naive", SIZE), row("02_smem_tiling", SIZE, status="wrong", reason="1 element wrong")]
    ((table,),) = counted(load_simulation(write_simulation(tmp_path, rows)))
    assert list(table.rows) == ["01_naive"]


def of_units():
    """BF16 and TF32 by mma.sync, BF16 by wgmma, FP32: in the order of an alphabet, which is not the ladder's."""
    kinds = {"bf16": [*synthetic.TENSOR, synthetic.WGMMA], "f32": ["01_naive", "06_bank_conflict_free"], "tf32": synthetic.TENSOR}
    work = {"sim_shared_wavefronts": SIZE.flop / 2 / 1024, "sim_shared_ideal": SIZE.flop / 2 / 2048}
    own = {"f32": {}, "bf16": work, "tf32": work}
    stands_for = row("06_bank_conflict_free", SIZE)
    return [
        (stands_for if kind != "f32" else row(kernel, SIZE)) | {"kernel": kernel, "type": kind} | own[kind]
        for kind, kernels in kinds.items()
        for kernel in kernels
    ]


def test_types_stand_in_the_ladders_order_and_each_unit_has_its_own_terms(tmp_path, monkeypatch):
    found = counted(load_simulation(write_simulation(tmp_path / "simulated", of_units())))
    assert [(sizes[0].type, sizes[0].instruction) for sizes in found] == [
        ("f32", "FFMA"),
        ("tf32", MMA),
        ("bf16", MMA),
        ("bf16", WGMMA),
    ]
    *_, mma, wgmma = (sizes[0] for sizes in found)
    assert mma.wavefronts(mma.rows["13_ldmatrix"].sim_shared_wavefronts) == pytest.approx(2), "an mma has 16 x 8 x 16 FMAs"
    per_wgmma = wgmma.wavefronts(wgmma.rows[synthetic.WGMMA].sim_shared_wavefronts)
    assert per_wgmma == pytest.approx(2 * 64 * 256 / (16 * 8)), "a wgmma 64 x 256 x 16"
    monkeypatch.setattr(chapters, "recorded", lambda root: None)
    html, summary = report(tmp_path / "simulated", tmp_path / "out")
    for text in (html, summary):
        places = [text.index(f"Counted, {said}, at") for said in ("f32 by FFMA", "tf32 by mma.sync", "bf16 by wgmma")]
        assert places == sorted(places)
    of_bf16 = html[html.index("Counted, bf16 by mma.sync") :]
    assert "wavefronts per mma" in of_bf16 and "instructions per wgmma" in of_bf16
    assert "one mma of m16n8k16" in of_bf16 and "one wgmma of m64n256k16" in of_bf16
    assert "FMAs" not in of_bf16 and "is the limit" not in of_bf16 and "1 is the best" not in of_bf16
    drawn = [line for ax in counters.draw(wgmma).axes for line in ax.get_lines()]
    assert not drawn and any(line for ax in counters.draw(found[0][0]).axes for line in ax.get_lines())


def test_an_instruction_multiplies_32_bytes_along_k():
    assert [terms(MMA, size).shape for size in (2, 4)] == ["m16n8k16", "m16n8k8"]
    assert terms(WGMMA, 4).wavefronts.fmas == 64 * 256 * 8


def test_the_largest_size_is_in_front_and_the_others_are_folded(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "recorded", lambda root: None)
    html, _ = report(simulated, tmp_path / "out")
    assert "<summary>The same at 256³</summary>" in html
    assert html.index("at 512³</h2>") < html.index("<details>") < html.index("at 256³</summary>") < html.index("</details>")


def test_the_values_are_told_under_the_pointer(table):
    svg = style.svg(counters.draw(table))
    assert "<title>05_float4: 1.00 + 0.500 wavefronts per 4 FMAs</title>" in svg and style.HOVER not in svg
    committed = style.svg(counters.draw(table), "sha256:0")
    assert "<title>" not in committed and style.HOVER not in committed


def test_the_figure_shows_the_numbers_and_no_text_touches_another(table, monkeypatch):
    fig = counters.draw(table)
    found, canvas = drawn_texts(fig, monkeypatch), fig.bbox
    texts = [text for text, _ in found]
    for kernel in synthetic.RATIOS:
        assert kernel in texts
        assert digits(table.instructions(kernel)) in texts
    assert digits(1.5) in texts, "ideal and conflicts of 05 together"
    for text, box in found:
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1, f"'{text}' leaves the picture sideways"
        assert canvas.y0 <= box.y0 and box.y1 <= canvas.y1, f"'{text}' leaves the picture"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 0.5 or high <= 0.5, f"'{one}' and '{other}' overlap by {wide:.0f}×{high:.0f} pixels"
    assert style.svg(counters.draw(table)) == style.svg(counters.draw(table))


def test_the_report_shows_counters_first_and_what_a_gpu_did_below(simulated, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "recorded", lambda root: load(folder))
    html, summary = report(simulated, tmp_path / "out")
    assert "There was no GPU." in html
    label = f"measured on {synthetic.GPU} on 2001-02-03, not on the machine"
    for text in (html, summary):
        assert "10 rungs: 30 of 30 products are right. Counted, not timed." in text
        assert text.index("Counted, f32 by FFMA, at 512³") < text.index(label) < text.index("The ladder, f32, at 4096³")
    page = Page(html)
    assert page.open == [] and page.requests == [] and len(page.ids) == len(set(page.ids))
    assert html.count("<svg") == 2 + 7
    counts = [cells[4:6] for cells in page.rows if len(cells) == 10 and cells[0] == "05_float4"]
    assert counts == [["1,572,864", "524,288"], ["196,608", "65,536"]], "the largest size in front"
    assert ["host cpu", "Synthetic CPU"] in page.rows


def test_the_report_without_recorded_results(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "recorded", lambda root: None)
    html, summary = report(simulated, tmp_path / "out")
    assert "Recorded" not in html + summary and "Counted, f32 by FFMA, at 512³" in html
    assert Page(html).open == []


def test_a_wrong_rung_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "recorded", lambda root: None)
    rows = [row("01_naive", SIZE), row("02_smem_tiling", SIZE, status="failed", reason="race on shared memory")]
    html, _ = report(write_simulation(tmp_path / "simulated", rows), tmp_path / "out")
    assert "2 rungs: 11 of 12 products are right." in html
    assert ["failed", "f32 512 × 512 × 512", "02", "race on shared memory"] in Page(html).rows


def test_the_counters_have_a_command(simulated, folder, tmp_path, capsys):
    assert main(["counters", "--results", str(simulated), "--out", str(tmp_path / "out")]) == 0
    names = {f"counters_f32_ffma_{n}x{n}x{n}.{kind}" for n in (256, 512) for kind in ("svg", "png")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert main(["counters", "--results", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert "no counts.csv of the simulator" in capsys.readouterr().err
