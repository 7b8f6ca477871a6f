"""Every published throughput stands beside the library's of the same rounds, and their quotient is the ratio shown.

Read from what is published, as a reader sees it: README, the chapters, and the report of the recorded results.
"""

import re
from pathlib import Path

import pytest
import synthetic
from synthetic import row, write_folder

from plots.data.results import load
from plots.data.rungs import FILE, read
from plots.data.selection import tables
from plots.data.units import Shape
from plots.documents.chapters import GPU
from plots.tables import summaries

ROOT = Path(__file__).parents[2]
WITHIN = 0.02
SIZE = Shape(4096, 4096, 4096)
NUMBER = r"\d+(?:\.\d+)?"
TOGETHER = re.compile(rf"({NUMBER}) / ({NUMBER}) \(({NUMBER})")  # 38.4 / 51.3 (0.75)
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def column(head: list[str], *names: str) -> int | None:
    """The column with the first of these headings that there is."""
    return next((head.index(name) for name in names if name in head), None)


def shown(text: str) -> list[tuple[str, str, str]]:
    """Throughput, the library's and the ratio, from every row of every table that has them."""
    found = TOGETHER.findall(text)
    head: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        own = cells(line)
        head = head or own
        both, rate = column(head, "TFLOP/s / cuBLAS"), column(head, "TFLOP/s", "TFLOP/s, steady")
        library = column(head, "cuBLAS, same rounds", "cuBLAS, same blocks")
        ratio = column(head, "of cuBLAS", "of cuBLAS, steady", "ratio")
        if ratio is None or len(own) != len(head) or not re.match(NUMBER, own[ratio]):
            continue
        if both is not None:
            found.append((*own[both].split(" / "), own[ratio]))
        elif rate is not None and library is not None:
            found.append((own[rate], own[library], own[ratio]))
    return [tuple(re.match(NUMBER, text)[0] for text in row) for row in found]


def apart(rate: str, library: str, ratio: str) -> float:
    """How far the quotient is from the ratio beyond what the ratio's last digit hides, as a part of it."""
    hidden = 0.5 * 10.0 ** -len(ratio.partition(".")[2])
    return max(abs(float(rate) / float(library) - float(ratio)) - hidden, 0) / float(ratio)


def assert_agree(found: list[tuple[str, str, str]]) -> None:
    assert not [row for row in found if apart(*row) > WITHIN]


def test_the_methodology_says_how_near():
    text = " ".join((ROOT / "docs/methodology.md").read_text(encoding="utf-8").split())
    (percent,) = re.findall(r"Their quotient is the published ratio within (\d+) %", text)
    assert int(percent) == 100 * WITHIN


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_agrees(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = shown(text)
    assert bool(found) == bool(re.search(r"<!-- generated: (measured|ladder-table|steps)", text))
    assert_agree(found)


@pytest.mark.parametrize("folder", sorted((ROOT / "bench/recorded").glob(f"{GPU}*")), ids=lambda folder: folder.name)
def test_what_a_report_of_a_recording_shows_agrees(folder):
    results = load(folder, read(ROOT / "bench/recorded" / GPU / FILE))
    for table in tables(results):
        for shape in table.front:
            found = shown(summaries.ladder_grid(table, shape).plain_markdown())
            assert len(found) == sum(table.value(kernel, shape) > 0 for kernel in table.kernels) > 0
            assert_agree(found)
        for grid in (summaries.sittings_grid(table), summaries.steady_grid(results, table)):
            assert_agree(shown(grid.plain_markdown()) if grid else [])


def test_no_generated_table_has_a_row_of_the_library_alone():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in re.findall(r"<!-- generated: .*?<!-- end generated -->", text, re.DOTALL):
            assert "| cuBLAS |" not in block, page


@pytest.mark.parametrize("rate", [38.4, 40.0])
def test_a_library_of_other_rounds_would_be_found(rate):
    table = f"| rung | TFLOP/s / cuBLAS | of cuBLAS |\n| --- | ---: | ---: |\n| 05 | {rate} / 51.3 | 0.75 |\n"
    assert shown(table) == [(str(rate), "51.3", "0.75")]
    assert (apart(*shown(table)[0]) > WITHIN) == (rate == 40.0)
    assert shown(f"| f32 | 4096³ |\n| --- | ---: |\n| 05 | {rate} / 51.3 (0.748, 0.746–0.750) |\n") == [
        (str(rate), "51.3", "0.748")
    ]


def test_both_rates_are_of_the_sitting_nearest_to_the_medians(tmp_path):
    """The sitting with the median ratio may have met a low clock; that with the median rate an odd ratio."""
    of = row("05_float4", SIZE)
    pairs = [(30_000, 40_000), (20_000, 26_600), (30_100, 40_300), (30_050, 42_000), (30_150, 39_000)]
    sittings = [
        of | {"gflops": rate, "cublas_gflops": library, "ratio_cublas": rate / library, "sitting": place}
        for place, (rate, library) in enumerate(pairs, 1)
    ]
    (table,) = tables(load(write_folder(tmp_path, sittings)))
    assert (table.value("05_float4", SIZE), table.cublas("05_float4", SIZE)) == pairs[0]
    assert table.value("05_float4", SIZE, "ratio_cublas") == pytest.approx(0.75)


def test_of_four_sittings_both_rates_are_means_of_the_two_in_the_middle(tmp_path):
    of = row("05_float4", SIZE)
    pairs = [(30_000, 50_000), (30_000, 40_000), (32_000, 40_000), (36_000, 40_000)]
    sittings = [
        of | {"gflops": rate, "cublas_gflops": library, "ratio_cublas": rate / library, "sitting": place}
        for place, (rate, library) in enumerate(pairs, 1)
    ]
    (table,) = tables(load(write_folder(tmp_path, sittings)))
    assert (table.value("05_float4", SIZE), table.cublas("05_float4", SIZE)) == (31_000, 40_000)
    assert table.value("05_float4", SIZE, "ratio_cublas") == pytest.approx(31 / 40)


def test_the_libraries_span_is_over_the_rungs(tmp_path):
    rates = dict(zip(synthetic.RATIOS, (50_000, 40_000, 51_000), strict=False))
    (table,) = tables(load(write_folder(tmp_path, [row(kernel, SIZE, cublas_gflops=rate) for kernel, rate in rates.items()])))
    assert table.span("cuBLAS", SIZE) == (40_000, 50_000, 51_000)
