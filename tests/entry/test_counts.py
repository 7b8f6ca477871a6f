"""Counts beside source lines, and the simulator's words in its chapter."""

import sys

import pytest

from tests.checkout import ROOT, needs_simulator, one_line, rows, run, run_all
from tools import sim_chapter
from tools.counts import Counts, main, read

HEAD = (
    "kernel,launches,file,line,warp_instructions,flops_fp32,global_loads,global_load_sectors,global_load_bytes,"
    "shared_loads,shared_load_wavefronts,shared_load_ideal,shared_stores,shared_store_wavefronts,shared_store_ideal,barriers"
)


@pytest.fixture
def recorded(tmp_path):
    """Counts of a kernel of two lines, the second with conflicts, as the simulator writes them."""
    source = tmp_path / "kernel.cu"
    source.write_text("first line\nload(a);\nnothing\nfma(tile[i]);\n")
    rows = [
        HEAD,
        "k,2,,0,30,64,10,40,1280,8,32,8,0,0,0,4",
        f"k,2,{source},2,10,0,10,40,1280,0,0,0,0,0,0,0",
        f"k,2,{source},4,20,64,0,0,0,8,32,8,0,0,0,4",
    ]
    file = tmp_path / "counts.csv"
    file.write_text("\n".join(rows) + "\n")
    return file


def test_ratios_are_of_sums():
    counts = Counts({"global_loads": 4, "global_load_sectors": 10, "global_load_bytes": 256,
                     "shared_load_wavefronts": 6, "shared_store_wavefronts": 3, "shared_load_ideal": 2,
                     "shared_store_ideal": 1, "flops_fp32": 5, "flops_fp16": 7})  # fmt: skip
    assert counts.cells() == ["", "4", "2.5", "2", "9", "3", "3", "", "12"]


def test_lines_and_total_are_told_apart(recorded):
    (kernel,) = read(recorded)
    assert kernel.launches == 2
    assert kernel.total["warp_instructions"] == 30
    assert [line for _, line in kernel.lines] == [2, 4]


def test_table_shows_each_line_beside_what_it_did(recorded, capsys):
    main(["--from", str(recorded)])
    lines = capsys.readouterr().out.splitlines()
    (fma,) = (line.split("│") for line in lines if "fma(tile[i]);" in line)
    assert [cell.strip() for cell in fma if cell.strip()] == ["4", "fma(tile[i]);", "20", "32", "8", "4", "4", "64"]
    assert any("nothing" in line for line in lines), "a line between two others is shown"
    assert not any("first line" in line for line in lines)
    (total,) = (line for line in lines if "in total" in line)
    assert "30" in total


def test_csv_holds_the_table(recorded, tmp_path, capsys):
    target = tmp_path / "table.csv"
    main(["--from", str(recorded), "--csv", str(target)])
    table = rows(target)
    assert [row["line"] for row in table] == ["2", "4", ""]
    assert table[1]["source"] == "fma(tile[i]);"
    assert table[1]["shared wavefronts"] == "32"
    assert table[1]["ratio"] == "4"
    assert table[2]["FLOP"] == "64"


def test_tensor_memory_has_columns_where_it_is_used(tmp_path, capsys):
    file, target = tmp_path / "counts.csv", tmp_path / "table.csv"
    head = "kernel,launches,file,line,warp_instructions,mma_f16,mma_mxf4,mma_shared_bytes,tensor_load_bytes,tensor_store_bytes"
    file.write_text(f"{head}\nk,1,,0,9,4,2,6144,512,0\nk,1,k.cu,3,5,4,2,6144,0,0\nk,1,k.cu,4,4,0,0,0,512,0\n")
    main(["--from", str(file), "--csv", str(target)])
    assert "4 f16; 2 mxf4" in capsys.readouterr().out
    multiply, load, total = rows(target)
    assert (multiply["tcgen05 .mma"], multiply["shared bytes read"]) == ("4 f16; 2 mxf4", "6144")
    assert (load["tcgen05 .mma"], load["tensor bytes loaded"], load["tensor bytes stored"]) == ("", "512", "")
    assert total["tensor bytes loaded"] == "512"


@pytest.mark.parametrize(
    ("arguments", "words"), [([], "usage"), (["--from", "nowhere.csv"], "nowhere.csv"), (["06", "--csv"], "takes a file")]
)
def test_usage_errors(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"), [([], "counts takes a rung"), (["99", "64", "64", "64"], "there is no rung '99'")]
)
def test_run_all_refuses_in_one_line(arguments, words):
    assert words in one_line(run_all("counts", *arguments))


@needs_simulator
def test_a_real_rung(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    kernel = sim_chapter.counted("06_bank_conflict_free")
    assert 2 * 256**3 <= kernel.total.flops <= 2 * 256**3 + 4 * 256**2
    conflicts = {line for line, counts in kernel.lines.items()
                 if counts.both("shared_", "_wavefronts") > counts.both("shared_", "_ideal")}  # fmt: skip
    assert not conflicts


@needs_simulator
def test_work_of_an_inlined_function_is_counted_where_it_is_called(monkeypatch):
    """load4() and store4() of rung 05 stand above its kernel; what they do belongs to the lines that call them."""
    monkeypatch.chdir(ROOT)
    kernel = sim_chapter.counted("05_float4")
    lines = (ROOT / "kernels/05_float4.cu").read_text().splitlines()
    definition = next(number for number, line in enumerate(lines, 1) if "__device__ float4 load4(" in line)
    assert all(line > definition for _, line in kernel.lines if line)
    calls = {line: counts for (_, line), counts in kernel.lines.items() if counts["shared_loads"]}
    assert len(calls) >= 2, "A's loads and B's"
    assert all("load4(" in lines[line - 1] for line in calls)


@needs_simulator
def test_counts_of_a_rung_through_its_program(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    target = tmp_path / "table.csv"
    main(["06_bank_conflict_free", "128", "128", "128", "--csv", str(target)])
    assert "06_bank_conflict_free 128 128 128" in capsys.readouterr().out
    total = rows(target)[-1]
    assert total["shared wavefronts"] == total["ideal"] == str(208 * 8 * 8), "208 for each warp and tile of 16 k"


@needs_simulator
def test_the_chapter_quotes_what_the_simulator_says():
    """Compared from the root of the project, where the chapter was written."""
    done = run(sys.executable, "-m", "tools.sim_chapter", folder=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_mistake_of_the_program_is_in_the_chapter():
    text = (ROOT / sim_chapter.CHAPTER).read_text()
    source = (ROOT / "sim/tests/programs/mistakes.cu").read_text()
    kinds = [line.split("(")[0].split()[-1] for line in source.splitlines() if line.startswith("__global__")]
    assert len(kinds) > 5
    for kind in kinds:
        assert f"<!-- simulator: mistakes {kind} -->" in text
