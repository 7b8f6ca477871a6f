"""The chapters' table of profiles, from invented rows in the format of tools/profile.py."""

import csv

import pytest
import synthetic
from synthetic import OTHER, write_folder

from plots.__main__ import main
from plots.documents.numbers import GPU

HEAD = ["kernel", "m", "n", "k", "group", "metric", "value", "unit", "ncu"]
VALUES = {
    ("time", "clocks"): "467942",
    ("issue", "tensor pipe"): "86.24",
    ("issue", "instructions"): "60970624",
    ("shared", "wavefronts"): "46272512",
    ("shared", "ideal wavefronts"): "45000000",
    ("memory", "L2 hit rate"): "76.49",
    ("memory", "DRAM read"): "174204416",
    ("stalls", "math pipe throttle"): "2.47",
    ("stalls", "wait"): "3.1",
    ("issue", "FMA pipe"): "1.3",  # of the addresses; too little for a row
    ("stalls", "lg throttle"): "0.12",
    ("stalls", "mio throttle"): "0.04",
    ("stalls", "barrier"): "",
}


@pytest.fixture
def root(tmp_path):
    """A checkout of one chapter with a profile of two rungs."""
    write_folder(tmp_path / "bench/recorded" / GPU)
    synthetic.write_program(tmp_path, synthetic.stated())
    write(tmp_path, "profile_bf16.csv", 4096)
    return tmp_path


def write(root, name, size, kernels=("14_multistage", "13_ldmatrix"), gpu=GPU, **changed):
    with (root / "bench/recorded" / gpu / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, HEAD, lineterminator="\n")
        writer.writeheader()
        for kernel in kernels:
            row = {"kernel": kernel, "m": size, "n": size, "k": size, "unit": "", "ncu": ""} | changed
            writer.writerows(row | {"group": group, "metric": name, "value": value} for (group, name), value in VALUES.items())


def rendered(root, block):
    chapter = root / "docs/14_multistage.md"
    chapter.parent.mkdir(exist_ok=True)
    chapter.write_text(f"<!-- generated: {block} -->\n<!-- end generated -->\n")
    assert main(["docs", "--root", str(root)]) == 0
    return chapter.read_text()


def test_a_column_a_rung_in_the_order_asked_for(root):
    text = rendered(root, "profiled bf16 13 14")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert lines[0] == ["bf16 at 4096³", "13_ldmatrix", "14_multistage"]
    assert [(name, value) for name, _, value in lines[2:]] == [
        ("clocks", "467942"),
        ("issue slots used, %", "–"),  # a metric that the profile does not have
        ("tensor pipe active, %", "86.2"),
        ("warps active, %", "–"),
        ("instructions, million", "61.0"),
        ("shared wavefronts / ideal, million", "46.3 / 45.0"),
        ("L2 hit rate, %", "76.5"),
        ("DRAM read, GB", "0.174"),
        ("stalled, clocks per instruction: lg throttle", "0.12"),
        ("stalled, clocks per instruction: math pipe throttle", "2.47"),
        ("stalled, clocks per instruction: wait", "3.10"),
    ]
    assert f"*Nsight Compute on {synthetic.GPU}, " in text and f"`bench/recorded/{GPU}/profile_bf16.csv`.*" in text


def test_another_size_has_a_file_of_its_own(root):
    write(root, "profile_8192_bf16.csv", 8192)
    text = rendered(root, "profiled bf16@8192 14")
    assert "| bf16 at 8192³ | 14_multistage |" in text and "profile_8192_bf16.csv" in text
    write(root, "profile_f32.csv", 4096, ["08_warp_tiling"])
    assert "| f32 at 4096³ | 08_warp_tiling |" in rendered(root, "profiled f32 08")


def test_the_folder_of_another_card(root):
    write_folder(root / "bench/recorded" / OTHER)
    assert "*No recorded results yet.*" in rendered(root, f"profiled bf16 13 14 {OTHER}")
    write(root, "profile_bf16.csv", 4096, gpu=OTHER)
    text = rendered(root, f"profiled bf16 13 14 {OTHER}")
    assert "| bf16 at 4096³ | 13_ldmatrix | 14_multistage |" in text and f"`bench/recorded/{OTHER}/profile_bf16.csv`" in text


@pytest.mark.parametrize("block", ["profiled tf32 14", "profiled bf16@8192 14", "profiled bf16 15 16"])
def test_without_a_record_the_chapter_says_so(root, block):
    assert "*No recorded results yet.*" in rendered(root, block)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("profiled bf61 14", "no profile of 'bf61'"),
        ("profiled bf16@ 14", "no profile of 'bf16@'"),
        ("profiled bf16", "unknown block 'profiled bf16'"),
        ("profiled f16 14", "profile_f16.csv:2: not a metric"),
        ("profiled tf32 14", "2 shapes"),
    ],
)
def test_what_does_not_fit_is_one_line_and_status_2(root, capsys, block, said):
    write(root, "profile_f16.csv", 4096, k="many")
    write(root, "profile_tf32.csv", 4096)
    with (root / "bench/recorded" / GPU / "profile_tf32.csv").open("a") as file:
        file.write("15_block_raster,1,2,3,time,clocks,4,clocks,\n")
    chapter = root / "docs/14_multistage.md"
    chapter.parent.mkdir()
    chapter.write_text(f"<!-- generated: {block} -->\n<!-- end generated -->\n")
    assert main(["docs", "--root", str(root)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
