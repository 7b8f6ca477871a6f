"""The report: self-contained, escaped, with the CSV's numbers, and still there when half of the input is not."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import synthetic
import test_waves
from synthetic import row, waived, write_folder, write_rows

from plots.__main__ import main
from plots.data.units import Shape, ratio, tflops
from plots.documents import chapters
from plots.figures import waves

pytestmark = pytest.mark.usefixtures("without_png")  # `made` has them

SIZE = Shape(4096, 4096, 4096)
VOID = {"meta", "link", "br", "hr", "img"}


def report(folder: Path, out: Path, *more: str) -> tuple[str, str]:
    assert main(["report", "--results", str(folder), "--out", str(out), *more]) == 0
    return (out / "report.html").read_text(), (out / "summary.md").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder of the report of synthetic results as they are."""
    results = synthetic.write_folder(tmp_path_factory.mktemp("report") / "results")
    report(results, results.parent / "out")
    return results.parent / "out"


@pytest.fixture
def html(made) -> str:
    return (made / "report.html").read_text()


@pytest.fixture
def summary(made) -> str:
    return (made / "summary.md").read_text()


class Page(HTMLParser):
    """Cells of each table row, attributes that would make a request, ids, and whether tags are balanced."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.cell, self.requests, self.ids, self.open = [], None, [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = ""
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                self.requests.append(value)
            if name == "id":
                self.ids.append(value)
        self.requests += [tag] if tag in ("script", "link", "iframe") else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.rows[-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def test_the_ladder_table_holds_the_csvs_numbers(html, summary):
    rows = {cells[0]: cells for cells in reversed(Page(html).rows) if len(cells) == 15}  # the first, of the size in front
    for kernel, factor in synthetic.RATIOS.items():
        written = row(kernel, SIZE)
        assert rows[kernel][2:4] == [tflops(float(written[column])) for column in ("gflops", "cublas_gflops")]
        of_ceiling = float(written["gflops"]) / 65000
        assert rows[kernel][4:7] == [ratio(r) for r in (factor, factor * 0.99, factor / 1.002)]
        assert rows[kernel][8:10] == [ratio(of_ceiling), f"{of_ceiling * 65e6 / (132 * 1980):.0f} ({ratio(of_ceiling)})"]
        assert rows[kernel][10:] == ["128", "16", "2", "1980", "0.00050"]
    assert "| 08_warp_tiling |" in summary and "| 50.4 | 49.9 | 1.01 | 1.00 | 1.01 | 1.09 × 07 |" in summary


def test_each_type_has_its_own_ceiling(tmp_path):
    rows = [row("08_warp_tiling", SIZE), synthetic.tensor_row("14_multistage", 0.84, SIZE)]
    html, _ = report(write_folder(tmp_path, rows), tmp_path / "out")
    assert "reaches 504 TFLOP/s at 4096³ beside 720 of cuBLAS, 0.70 × cuBLAS" in html
    assert "84.0 % of the measured ceiling of mma.sync" in html and "of the measured ceiling of FFMA" in html
    (cells,) = (cells for cells in Page(html).rows if len(cells) == 15 and cells[0] == "14_multistage")
    assert cells[8:10] == ["0.84", "1928 (0.84)"]
    assert "mma.sync 600 TFLOP/s" in html, "the roofline's"
    assert ["mma_bf16", "600", "TFLOP/s", "2296 FLOP"] in Page(html).rows


KNOWN_BEFORE = "132 SMs, SM clock up to 1980 MHz, L2 50 MiB, memory 80 GiB"


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ((), f"{KNOWN_BEFORE}, memory rate 3.35 TB/s (2619 MHz, 5120 bits)"),
        (("memory_clock_mhz", "memory_bus_bits"), KNOWN_BEFORE),  # as recorded before
        (("memory_clock_mhz", "max_sm_clock_mhz"), "132 SMs, L2 50 MiB, memory 80 GiB"),
    ],
)
def test_the_card_stands_above_its_ladder(folder, tmp_path, left_out, said):
    path = folder / "environment.json"
    environment = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(environment | dict.fromkeys(left_out)), encoding="utf-8")
    for text, line in zip(report(folder, tmp_path / "out"), (f"<dt>card</dt><dd>{said}</dd>", f"- card: {said}\n"), strict=True):
        assert 0 < text.index(line) < text.index("The ladder, f32")


def test_clocks_that_were_not_counted_are_left_out(tmp_path):
    rows = [r | {"flop_clk_sm": ""} for r in synthetic.all_rows()]
    html, _ = report(write_folder(tmp_path, rows), tmp_path / "out")
    assert {cells[9] for cells in Page(html).rows if len(cells) == 15 and cells[0] in synthetic.RATIOS} == {"–"}


def test_every_shape_and_rung_is_in_the_shape_table(html):
    rows = {cells[1]: cells for cells in Page(html).rows if len(cells) == 2 + len(synthetic.RATIOS)}
    shapes = [Shape(n, n, n) for n in synthetic.SQUARES] + [Shape(*s) for s in synthetic.OTHERS]
    for shape in shapes:
        cublas = tflops(synthetic.cublas_rate(shape))
        rates = [f"{tflops(float(row(kernel, shape)['gflops']))} / {cublas}" for kernel in synthetic.RATIOS]
        assert rows[f"{shape.m} × {shape.n} × {shape.k}"][2:] == rates


def test_one_file_without_requests_and_without_a_repeated_id(html, made):
    page = Page(html)
    assert page.open == [] and page.requests == []
    assert not re.findall(r"url\((?!#)|@import", html)
    assert len(page.ids) == len(set(page.ids))
    for target in re.findall(r'(?:href="#|url\(#)([^")]+)', html):
        assert target in page.ids
    assert html.count("<svg") == 7
    drawn = ["reach", "clocks", "best", *(f"{name}_f32" for name in ("ladder", "gflops", "heatmap", "roofline"))]
    names = {f"{name}.{kind}" for name in drawn for kind in ("svg", "png")}
    assert {path.name for path in (made / "plots").iterdir() if path.stat().st_size} == names


def test_the_first_page_answers_an_owners_questions_and_the_detail_comes_after(tmp_path):
    held = {"throttle": "sw_power_cap", "clock_mhz": 1485, "power_w": 700}
    rows = [*synthetic.all_rows(), row("08_warp_tiling", SIZE, **held, utc="2001-02-04T00:00:00Z")]
    html, summary = report(write_folder(tmp_path / "results", rows), tmp_path / "out")
    page = Page(html)
    heads = ["08_warp_tiling reaches", "How far each rung gets", "Where the card throttles", "Which shapes the library wins"]
    for text, asked in ((html, heads), (summary, [heads[0], *heads[2:]])):
        places = [text.index(said) for said in [*asked, "The ladder, f32, at 4096³"]]
        assert places == sorted(places)
    assert "Under rounds protocol, normal data, cold L2, alpha 1, beta 0, out f32, all types." in html
    kernels = str(len(synthetic.RATIOS))
    slowest = ["1485", "75 %", "08_warp_tiling", "512", "700"]
    assert ["rounds", "f32", "4096³", f"1 of {kernels}", "sw_power_cap", *slowest] in page.rows
    assert ["steady", "f32", "4096³", f"0 of {kernels}", "", "1900", "96 %", "01_naive", "512", "512"] in page.rows
    wins = sum(synthetic.RATIOS["08_warp_tiling"] ** (1.3 if min(s) < 1024 else 1) >= 0.997 for s in shapes())
    assert ["f32", str(len(shapes())), str(wins), str(len(shapes()) - wins), "–", "–"] in page.rows


def shapes() -> list[Shape]:
    return [Shape(n, n, n) for n in synthetic.SQUARES] + [Shape(*s) for s in synthetic.OTHERS]


def test_the_shape_that_the_library_wins_most_clearly_is_named(tmp_path):
    lost = Shape(512, 512, 16384)
    rows = [row("07_double_buffer", shape) | ({"ratio_best": 0.5} if shape == lost else {}) for shape in shapes()]
    html, _ = report(write_folder(tmp_path / "results", rows), tmp_path / "out")
    all_lost = ["f32", str(len(shapes())), "0", str(len(shapes())), str(lost), "07_double_buffer, 0.50 of the library"]
    assert all_lost in Page(html).rows


def test_one_size_is_in_front_and_the_others_are_folded(html):
    folded = re.findall(r"<details>\n<summary>(.*?)</summary>", html)
    assert folded[:3] == ["The ladder, f32, at 2048³", "The ladder, f32, at 8192³", "Every shape, f32, in TFLOP/s"]
    assert "<h2>The ladder, f32, at 4096³</h2>" in html


def test_values_are_told_under_the_pointer(html):
    share = 0.65 * synthetic.cublas_rate(SIZE) / synthetic.PEAK
    told = "05_float4, f32 at 4096³: 32.5 TFLOP/s, cuBLAS 49.9 in the same rounds"
    told += f", 0.65 of cuBLAS, 0.65 of the fastest library, {ratio(share)} of the ceiling"
    assert html.count(f"<title>{told} of FFMA, 1980 MHz, 512 W") >= 5, "in every figure of single cells"
    assert "<title>08_warp_tiling, f32 at 4096³: 1.01 of the fastest library</title>" in html


def test_text_from_the_csv_is_escaped(tmp_path):
    bad = '<script>alert("x")</script> & | more, and more'
    rows = [row("01_naive", SIZE), waived("02_smem_tiling", SIZE, bad)]
    html, summary = report(write_folder(tmp_path, rows), tmp_path / "out")
    assert "<script" not in html and "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt; &amp; | more" in html
    assert "<script" not in summary.replace("\\<", "")
    assert bad in [cell for cells in Page(html).rows for cell in cells]


def test_recorded_results_are_labelled_with_gpu_and_date(folder, html, summary, tmp_path):
    label = f"measured on {synthetic.GPU} on 2001-02-03, not on the machine"
    assert label not in html + summary
    assert all(label in text for text in report(folder, tmp_path / "flag", "--recorded"))
    lying = write_folder(tmp_path / "bench" / "recorded" / "gpu")
    assert all(label in text for text in report(lying, tmp_path / "folder"))


def test_results_without_a_commit_say_so_in_the_first_lines(html, summary, tmp_path, monkeypatch):
    said = "commit is unknown"
    rows = [row(kernel, SIZE, commit="unknown") for kernel in synthetic.RATIOS]
    measured = report(write_folder(tmp_path / "measured", rows), tmp_path / "out")
    monkeypatch.setattr(chapters, "recorded", lambda root: None)
    counted = [synthetic.counted(kernel, Shape(256, 256, 256), commit="unknown") for kernel in synthetic.RATIOS]
    simulated = report(synthetic.write_simulation(tmp_path / "simulated", counted), tmp_path / "out_simulated")
    for text, headline in ((measured, "reaches"), (simulated, "products are right")):
        for page in text:
            assert page.index(said) < page.index(headline)
            assert page.count(said) == 1
    known = [*rows[1:], row("01_naive", SIZE)]
    assert "The commit of some rows is unknown" in report(write_folder(tmp_path / "mixed", known), tmp_path / "out_mixed")[0]
    assert said not in html + summary


def test_refusals_failures_and_wrong_results_are_listed(tmp_path):
    odd = Shape(1020, 1020, 1020)
    rows = [
        *synthetic.all_rows(),
        waived("05_float4", odd, "needs rows of 16 bytes"),
        waived("06_bank_conflict_free", odd, "needs rows of 16 bytes"),
        row("07_double_buffer", odd, status="wrong", reason="3 elements wrong", utc="2001-02-04T00:00:00Z"),
    ]
    rows = [r | {"utc": "2001-02-04T00:00:00Z"} if r["status"] == "waived" else r for r in rows]
    html, _ = report(write_folder(tmp_path, rows), tmp_path / "out")
    rows = Page(html).rows
    assert ["wrong", "f32 1020 × 1020 × 1020", "07", "3 elements wrong"] in rows
    assert ["waived", "f32 1020 × 1020 × 1020", "05, 06", "needs rows of 16 bytes"] in rows
    checked = {cells[0]: cells for cells in rows if len(cells) == 7 and cells[0] in synthetic.RATIOS}
    assert checked["07_double_buffer"][1:6] == ["17", "16", "1", "0", "0"]
    assert checked["05_float4"][1:6] == ["16", "16", "0", "0", "1"]


def test_sittings_and_steady_are_told_where_they_were_measured(folder, html, summary, tmp_path):
    assert "Sitting by sitting" not in html + summary
    assert "Steady protocol" in html and "Steady protocol" in summary
    (folder / "steady.csv").unlink()
    sittings = synthetic.sittings(row("05_float4", SIZE), [0.65, 0.652, 0.645])
    write_rows(folder / "ladder.csv", [*synthetic.all_rows(), *sittings])
    html, summary = report(folder, tmp_path / "out")
    assert "Sitting by sitting" in html and "Sitting by sitting" in summary
    (checked,) = (cells for cells in Page(html).rows if len(cells) == 7 and cells[:2] == ["05_float4", "17"])
    assert checked[1:3] == ["17", "17"], "a cell is checked once, in its first sitting"
    rate, clocks = "32.5 (32.2–32.6)", "124 (124–124)"
    assert ["05_float4", "4096³", rate, "49.9 (49.9–49.9)", clocks, "0.650 (0.645–0.652)", "0.643"] in Page(html).rows
    assert "Steady protocol" not in html + summary


def test_the_noise_of_a_cell_is_told(summary):
    assert "3.0 % of a cell's median time (median over cells), 3.0 % at most" in summary


def test_throttling_is_counted(tmp_path):
    held = {"01_naive": "sw_power_cap+sw_thermal", "02_smem_tiling": "sw_power_cap"}
    rows = [row(k, SIZE, throttle=t) for k, t in held.items()]
    html, _ = report(write_folder(tmp_path, [*rows, row("08_warp_tiling", SIZE)]), tmp_path / "out")
    assert "held back in 2 of 3 timed cells: sw_power_cap in 2, sw_thermal in 1." in html


def only_check_rows(rows):
    return [r | {"protocol": "check", "median_ms": "", "gflops": ""} for r in rows]


def nothing_known(rows):
    gone = ["clock_mhz", "power_w", "temperature_c", "throttle", "cublaslt_ms", "cublaslt_gflops", "ratio_best"]
    return [r | dict.fromkeys([*gone, "ceiling", "ceiling_fraction", "flop_clk_sm", "max_error", "bound"], "") for r in rows]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[:37], "cells (rungs × shapes) have no row"),
        (lambda rows: [r for r in rows if r["kernel"] != "05_float4"], "no rows for 05_float4"),
        (lambda rows: [r for r in rows if r["m"] == r["n"] == r["k"] == 4096], "one square size only"),
        (lambda rows: [r for r in rows if not r["m"] == r["n"] == r["k"]], "no gflops: no square size was measured"),
        (only_check_rows, "nothing was timed"),
        (nothing_known, "cuBLASLt was not measured"),
        (nothing_known, "clocks, power and temperature were not recorded"),
        (lambda rows: [r | {"status": "failed", "reason": "?", "gflops": ""} for r in rows], "no rung has a result"),
        (lambda rows: [], "nothing was timed"),
        (lambda rows: [*rows, row("01_naive", SIZE, beta=1)], "1 rows not under rounds protocol"),
    ],
)
def test_an_incomplete_run_still_gives_a_report_that_says_what_is_missing(tmp_path, change, said):
    html, summary = report(write_folder(tmp_path, change(synthetic.all_rows())), tmp_path / "out")
    assert said in html and said in summary
    assert Page(html).open == []
    assert "nan" not in re.sub(r"<svg.*?</svg>|<style.*?</style>", "", html, flags=re.S).lower().split()


def test_missing_files_are_named(folder, tmp_path):
    for name in ("ceilings.csv", "environment.json", "check.csv"):
        (folder / name).unlink()
    html, _ = report(folder, tmp_path / "out")
    assert (
        "ceilings.csv is missing" in html
        and "no roofline: ceilings.csv lacks dram" in html
        and "environment.json is missing" in html
        and "<dt>card</dt><dd>not recorded</dd>" in html
    )
    assert html.count("<svg") == 6


@pytest.mark.parametrize("command", ["report", "gflops", "ladder", "roofline", "heatmap"])
def test_bad_input_is_one_line_and_status_2(tmp_path, capsys, command):
    arguments = [command, "--results", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    write_rows(tmp_path / "ladder.csv", [row("01_naive", SIZE, gflops="fast")])
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.splitlines()[0].endswith("no ladder.csv in it")
    assert error.splitlines()[1].endswith("ladder.csv:2: gflops is not a number: 'fast'")
    assert len(error.splitlines()) == 2


@pytest.mark.parametrize("command", ["gflops", "ladder", "roofline", "heatmap"])
def test_each_figure_has_a_command(folder, tmp_path, command):
    assert main([command, "--results", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"{command}_f32.svg", f"{command}_f32.png"}


def test_the_report_shows_the_sweep_over_waves_where_there_was_one(folder, html, tmp_path):
    assert "Waves of tiles" not in html
    write_rows(folder / waves.FILE, test_waves.rows())
    html, _ = report(folder, tmp_path / "out")
    assert "<h2>Waves of tiles</h2>" in html and "17f: split-K" in html
    for name in waves.KINDS:
        assert (tmp_path / f"out/plots/{name}_f32.svg").is_file()
    assert not Page(html).requests


def test_an_unfinished_sweep_over_waves_is_noted(folder, tmp_path):
    write_rows(folder / waves.FILE, test_waves.rows()[:-1])
    html, summary = report(folder, tmp_path / "out")
    assert "Waves of tiles" not in html
    assert "no figures of waves" in summary and "no row of 18f_stream_k_fp32" in summary
