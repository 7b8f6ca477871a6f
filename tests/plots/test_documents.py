"""Generated blocks: filled from recorded results and sources, and found stale when either moves on."""

from pathlib import Path

import pytest
import synthetic
from synthetic import OTHER, write_folder

from plots.__main__ import main
from plots.data import rungs
from plots.data.units import Shape
from plots.documents.blocks import fill
from plots.documents.numbers import GPU
from plots.errors import InputError

ROOT = Path(__file__).parents[2]
KERNELS = ["05_float4", "06_bank_conflict_free", "06b_padded"]
SOURCE = """// 06
int before;
  // [inner]
  for (int k = 0; k < BK; ++k) {
    // [deep]
    work(k);
    // [/deep]
  }
  // [/inner]
"""
CHAPTER = """# 06

<!-- generated: measured 06 -->
<!-- end generated -->

<!-- generated: code kernels/06_bank_conflict_free.cu inner -->
<!-- end generated -->

```
<!-- generated: an example in a fence -->
```
"""
README = "top\n\n<!-- generated: steps f32 -->\n<!-- end generated -->\nbottom\n"
RESULTS = "<!-- generated: ladder-table f32 -->\n<!-- end generated -->\n"


@pytest.fixture
def root(tmp_path):
    """A small checkout: three kernels, one chapter, README, a page of results, recorded results, a program that states facts."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "docs").mkdir()
    for stem in KERNELS:
        (tmp_path / "kernels" / f"{stem}.cu").write_text(SOURCE)
    (tmp_path / "docs" / "06_bank_conflict_free.md").write_text(CHAPTER)
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs" / "results.md").write_text(RESULTS)
    write_folder(tmp_path / "bench" / "recorded" / GPU)
    synthetic.write_program(tmp_path, synthetic.stated())
    return tmp_path


def run(command, root, *more):
    return main([command, "--root", str(root), *more])


def test_readme_gets_the_numbered_rungs_in_four_columns_under_the_gpus_that_run_them(root):
    assert run("readme", root) == 0
    text = (root / "README.md").read_text()
    assert text.startswith("top\n") and text.endswith("bottom\n")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == "| rung | idea | TFLOP/s / cuBLAS | of cuBLAS |"
    assert lines[2] == "| **every GPU since Volta (sm_70)** |  |  |  |"
    assert "| [06_bank_conflict_free](docs/06_bank_conflict_free.md) | the idea of 06 | 38.9 / 49.9 | 0.78 |" in lines
    assert len(lines) == 3 + sum(not rungs.is_variant(kernel) for kernel in synthetic.RATIOS)
    assert f"**FP32** at 4096³, {synthetic.GPU}, 2001-02-03:" in text


def test_the_page_of_results_has_every_rung_at_every_published_size(root):
    assert run("docs", root) == 0
    text = (root / "docs/results.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("| [06_bank_conflict_free]") and "the idea of 06" in line]
    assert "(../kernels/06_bank_conflict_free.cu)" in line
    assert line.endswith("| [06](06_bank_conflict_free.md) | 38.9 / 49.9 | 0.78 | 0.77 | 1.20 × 05 | 149 (0.60) | 2001-02-03 |")
    heads = [f"**FP32 at M = N = K = {size}**" for size in (4096, 2048, 8192)]
    assert [text.index(head) for head in heads] == sorted(text.index(head) for head in heads)
    assert text.count("| [06b_padded]") == 3 and f"Measured on {synthetic.GPU}, 2001-02-03" in text


def test_a_block_shows_the_card_that_it_names(root):
    halved = [
        row | {"gpu": "Other GPU", "ratio_cublas": 0.25} for row in synthetic.all_rows() if row["kernel"] != "07_double_buffer"
    ]
    write_folder(root / "bench/recorded" / OTHER, halved)
    (root / "README.md").write_text(README.replace("steps f32", f"steps f32 {OTHER}"))
    (root / "docs/results.md").write_text(RESULTS + RESULTS.replace("f32 -->", f"f32 {OTHER} -->", 1))
    (root / "docs/00_map.md").write_text(f"<!-- generated: climb f32 05 07 {OTHER} -->\n<!-- end generated -->\n")
    (root / "docs/ceilings.md").write_text(f"<!-- generated: ceilings {OTHER} -->\n<!-- end generated -->\n")
    assert run("readme", root) == 0 and run("docs", root) == 0 and run("recorded", root) == 0
    first = (root / "README.md").read_text()
    assert "4096³, Other GPU" in first and "| 38.9 / 49.9 | 0.25 |" in first and "07_double_buffer" not in first
    own, other = (root / "docs/results.md").read_text().split("<!-- end generated -->")[:2]
    assert synthetic.GPU in own and "ladder_f32.svg" in own and f"bench/recorded/{GPU}/" in own
    assert "Other GPU" in other and f"bench/recorded/{OTHER}/" in other
    assert ".svg" not in other, "the pictures are of the chapters' card"
    assert (root / "docs/img/recorded/stairs.svg").is_file()
    lines = (root / "docs/00_map.md").read_text().splitlines()
    assert lines[1] == "| rung | idea | 4096³ | 4096³, in clocks | 8192³ |"
    assert lines[3:5] == [
        "| 05 float4 | the idea of 05 | 0.250 | 0.643 | 0.250 |",
        "| 07 double buffer | the idea of 07 | – | – | – |",
    ]
    assert f"*Other GPU; recorded in `bench/recorded/{OTHER}/ceilings.csv`.*" in (root / "docs/ceilings.md").read_text()


def test_all_days_are_named(root):
    later = [row | {"utc": "2001-02-05T00:00:00Z"} for row in synthetic.all_rows() if row["kernel"] == "07_double_buffer"]
    write_folder(root / "bench" / "recorded" / GPU, [*synthetic.all_rows(), *later])
    run("readme", root)
    run("docs", root)
    assert f"{synthetic.GPU}, 2001-02-03 and 2001-02-05:" in (root / "README.md").read_text()
    assert f"Measured on {synthetic.GPU}, 2001-02-03:" in (root / "docs/06_bank_conflict_free.md").read_text(), "07 is not in it"


def test_a_chapter_gets_predecessor_rung_and_variant_beside_cublas_at_three_sizes(root):
    assert run("docs", root) == 0
    text = (root / "docs/06_bank_conflict_free.md").read_text()
    lines = [line.split(" | ")[0].lstrip("| ") for line in text.splitlines() if line.startswith("| ")]
    assert lines == ["f32", "---", "05_float4", "**06_bank_conflict_free**", "06b_padded"]
    assert " | ".join(f"{size}³, TFLOP/s / cuBLAS (ratio)" for size in (2048, 4096, 8192)) in text
    assert "| 4096³, in clocks | 4096³, FLOP/clk/SM (of ceiling) | registers |" in text
    rates = "38.6 / 49.4 (0.78) | 38.9 / 49.9 (0.78) | 39.0 / 50.0 (0.78)"
    assert f"| **06_bank_conflict_free** | {rates} | 0.77 | 149 (0.60) | 128 | 16 | 2 |" in text
    assert "Gain over 05_float4 in FLOP/clk/SM: × 1.20 at 2048³, × 1.20 at 4096³, × 1.20 at 8192³." in text


def test_gains_are_over_the_stated_predecessor_per_clock(root):
    moved = {"gflops": 1000.0, "median_ms": 2 * 4096**3 / 1000.0 / 1e6}  # at a clock of its own
    rows = [row | (moved if row["kernel"] == "06_bank_conflict_free" else {}) for row in synthetic.all_rows()]
    write_folder(root / "bench" / "recorded" / GPU, rows)
    run("docs", root)
    text = (root / "docs/results.md").read_text()
    assert "*gain* is FLOP/clk/SM over that of the rung named" in text
    assert "| 1.20 × 05 |" in text and "| 1.19 × 06 |" in text, "07's is over 06, not over 06b"
    write_folder(root / "bench" / "recorded" / GPU, [row | {"flop_clk_sm": ""} for row in rows])
    run("docs", root)
    assert "*gain* is TFLOP/s over that of the rung named" in (root / "docs/results.md").read_text()


def test_sittings_show_their_median_and_range(root):
    row = synthetic.row("06_bank_conflict_free", Shape(4096, 4096, 4096))
    sittings = synthetic.sittings(row, [0.664, 0.671, 0.669, 0.668, 0.67])
    write_folder(root / "bench" / "recorded" / GPU, [*synthetic.all_rows(), *sittings])
    run("docs", root)
    text = (root / "docs/results.md").read_text()
    assert "numbers are medians of 5 sittings, with the range of the ratios" in text
    assert "| 33.4 / 49.9 | 0.669 (0.664–0.671) | 0.772 | 1.20 × 05 | 149 (0.60) |" in text
    assert "33.4 / 49.9 (0.669, 0.664–0.671)" in (root / "docs/06_bank_conflict_free.md").read_text()


def test_the_recorded_ceilings_are_told(root):
    page = root / "docs/methodology.md"
    page.write_text("<!-- generated: ceilings -->\n<!-- end generated -->\n")
    run("docs", root)
    assert "| fp32_fma | 65.0 | TFLOP/s | 249 FLOP |\n| dram | 3.97 | TB/s | 15.2 bytes |" in page.read_text()
    (root / "bench/recorded" / GPU / "ceilings.csv").unlink()
    run("docs", root)
    assert "*No recorded results yet.*" in page.read_text()


def test_code_is_cut_out_dedented_with_a_link_that_names_its_region(root):
    run("docs", root)
    text = (root / "docs/06_bank_conflict_free.md").read_text()
    code = "```cuda\nfor (int k = 0; k < BK; ++k) {\n  work(k);\n}\n```"
    assert f"[`kernels/06_bank_conflict_free.cu`, region inner](../kernels/06_bank_conflict_free.cu)\n\n{code}" in text


@pytest.mark.parametrize("command", ["readme", "docs"])
def test_check_names_stale_blocks_and_changes_nothing(root, command, capsys):
    path = root / {"readme": "README.md", "docs": "docs/06_bank_conflict_free.md"}[command]
    before = path.read_text()
    assert run(command, root, "--check") == 1
    assert f"stale: {path.relative_to(root)}: " in capsys.readouterr().out
    assert path.read_text() == before
    assert run(command, root) == 0
    capsys.readouterr()
    assert run(command, root, "--check") == 0
    assert capsys.readouterr().out == ""


def test_committed_figures_follow_the_recorded_numbers(root, capsys):
    assert run("recorded", root, "--check") == 1
    assert run("recorded", root) == 0
    svg = root / "docs/img/recorded/ladder_f32.svg"
    assert ">38.9<" in svg.read_text()
    assert run("recorded", root, "--check") == 0
    recorded = root / "bench/recorded" / GPU / "ladder.csv"
    recorded.write_text(recorded.read_text().replace(",0.78,", ",0.79,"))
    capsys.readouterr()
    assert run("recorded", root, "--check") == 1
    assert "stale: docs/img/recorded/ladder_f32.svg" in capsys.readouterr().out


def test_a_readers_own_rung_makes_nothing_stale(root, capsys):
    for command in ("readme", "docs", "recorded"):
        assert run(command, root) == 0
    facts = synthetic.stated()
    own = facts["rungs"][0] | {"number": "90", "name": "mine", "stem": "90_mine", "source": "kernels/local/90_mine.cu"}
    facts["rungs"].append(own)
    synthetic.write_program(root, facts)
    rungs.of_checkout.cache_clear()
    for command in ("readme", "docs", "recorded"):
        assert run(command, root, "--check") == 0, capsys.readouterr().out


def test_new_numbers_and_new_code_make_blocks_stale(root, capsys):
    run("docs", root)
    recorded = root / "bench/recorded" / GPU / "ladder.csv"
    recorded.write_text(recorded.read_text().replace(",0.78,", ",0.79,"))
    kernel = root / "kernels/06_bank_conflict_free.cu"
    capsys.readouterr()
    assert run("docs", root, "--check") == 1
    pages = ["docs/06_bank_conflict_free.md: measured 06", "docs/results.md: ladder-table f32"]
    assert capsys.readouterr().out.splitlines() == [f"stale: {page}" for page in pages]
    kernel.write_text(SOURCE.replace("work(k)", "rest(k)"))
    assert run("docs", root, "--check") == 1
    assert "stale: docs/06_bank_conflict_free.md: code kernels/06_bank_conflict_free.cu inner" in capsys.readouterr().out


def test_a_chapters_table_of_one_type(root):
    """As the whole block, if no other type was recorded."""
    chapter = root / "docs/06_bank_conflict_free.md"
    run("docs", root)
    whole = chapter.read_text()
    assert "| f32 |" in whole and "Gain over" in whole
    chapter.write_text(whole.replace("measured 06 -->", "measured 06 f32 -->"))
    assert run("docs", root, "--check") == 0


def test_without_recorded_results_the_blocks_say_so(root):
    (root / "bench/recorded" / GPU / "ladder.csv").unlink()
    run("readme", root)
    run("docs", root)
    assert "*No recorded results yet.*" in (root / "README.md").read_text()
    assert "*No recorded results yet.*" in (root / "docs/06_bank_conflict_free.md").read_text()


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("measure 06", "unknown block 'measure 06'"),
        ("measured 99", "there is no rung '99'"),
        ("measured 06 f23", "there is no type 'f23'"),
        ("code kernels/none.cu inner", "no such file"),
        ("code kernels/05_float4.cu outer", "needs one line '// [outer]'"),
    ],
)
def test_a_block_that_cannot_be_filled_is_one_line_and_status_2(root, capsys, block, said):
    chapter = root / "docs/06_bank_conflict_free.md"
    chapter.write_text(f"<!-- generated: {block} -->\n<!-- end generated -->\n")
    assert run("docs", root) == 2
    error = capsys.readouterr().err
    assert said in error and chapter.name in error and error.count("\n") == 1


def test_an_unclosed_block_is_an_error():
    with pytest.raises(InputError, match="line 2: block 'x' has no"):
        fill("a\n<!-- generated: x -->\nb\n", lambda name: name)
    with pytest.raises(InputError, match="line 2: a block starts inside 'x'"):
        fill("<!-- generated: x -->\n<!-- generated: y -->\n<!-- end generated -->\n", lambda name: name)


@pytest.mark.skipif(not (ROOT / "build/bin/ladder").exists(), reason="build/bin/ladder, which states the facts, is not built")
def test_the_repositorys_own_blocks_are_fresh(capsys):
    root = ROOT
    assert run("readme", root, "--check") == 0, f"run python3 -m plots readme: {capsys.readouterr().out}"
    assert run("docs", root, "--check") == 0, f"run python3 -m plots docs: {capsys.readouterr().out}"
    assert run("recorded", root, "--check") == 0, f"run python3 -m plots recorded: {capsys.readouterr().out}"
