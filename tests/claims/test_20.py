"""Numbers in the prose of chapter 20 against the recorded results and against what CuTe prints."""

import re

import pytest
from recorded import ROOT, agrees, cell, gain, said

from plots.maps import cute


def test_what_19_lacks():
    own, other = said("20", r"\| FLOP per clock and SM at 4096³ \| (\d+) \| (\d+) \|")
    assert agrees(own, cell("bf16", "19", 4096, "flop_clk_sm")) and agrees(other, cell("bf16", "16", 4096, "flop_clk_sm"))
    (part,) = said("20", r"reaches ([\d.]+) of what L1 allows it")
    assert agrees(part, cell("bf16", "19", 4096, "flop_clk_sm") * 12 / 4096)
    wavefronts, multiplies, each = said("20", r"\[(\d+) / (\d+)\]\(14_\S*\) = ([\d.]+) \|")
    assert agrees(each, int(wavefronts) / int(multiplies))


@pytest.mark.parametrize(
    ("type", "pattern"), [("f16", r"as fast as 16\*\*, ([\d.]+) times"), ("bf16", r"slower\*\* than 16, at ([\d.]+) times")]
)
def test_against_16(type, pattern):
    (times,) = said("20", pattern)
    assert agrees(times, gain(type, "20", "16", 4096))


def test_the_loss_with_fp32_sums():
    (percent,) = said("20", r"FP32 sums 20 is (\d) % slower\*\*")
    assert round((1 - gain("bf16", "20", "16", 4096)) * 100) == int(percent)
    assert all(gain("f16", "20", "16", size) > 0.97 for size in (2048, 4096, 8192)), "the aim was 3 %"


def test_beside_the_published_kernel():
    for row, type in (("FP16 sums", "f16"), ("FP32 sums; 20 with BF16 operands", "bf16")):
        published, own = said("20", rf"\| {row} \| ([\d.]+) \| ([\d.]+) \|")
        assert agrees(own, cell(type, "20", 4096, "ratio_cublas")) and float(own) > float(published)


def test_registers():
    own, by_hand = said("20", r"\| (\d+) registers, of at most 255 \| 16 has (\d+) \|")
    assert int(own) == cell("bf16", "20", 4096, "registers") and int(by_hand) == cell("bf16", "16", 4096, "registers")
    with_fp16, with_fp32 = said("20", r"half as many registers: (\d+) registers per thread in place of (\d+)")
    assert int(with_fp16) == cell("f16", "20", 4096, "registers") and with_fp32 == own


def test_c_through_shared_memory_costs_little():
    (percent,) = said("20", r"16b against 16: at most \[(\d) %\]")
    assert gain("bf16", "16b", "16", 4096) > 1 - float(percent) / 100


def test_the_instructions_add_up():
    work = said("20", r"\| `HMMA`, `LDSM`, `LDGSTS` \| (\d+) \| (\d+) \|")
    others = said("20", r"\| others \| (\d+) \| (\d+) \|")
    together = said("20", r"\| \*\*all\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \|")
    table = (ROOT / "docs/20_cute_multistage.md").read_text(encoding="utf-8")
    for stem, *numbers in zip(("16_epilogue", "20_cute_multistage"), work, others, together, strict=True):
        (row,) = re.findall(rf"^\| {stem} \| bf16 \| (\d+) \| (\d+) \| (\d+) \| \d+ \| (\d+) \|", table, re.MULTILINE)
        multiply, load, copy, all_of_them = map(int, row)
        assert [multiply + load + copy, all_of_them - multiply - load - copy, all_of_them] == list(map(int, numbers))


def test_layouts_are_those_that_cute_prints():
    printed = (ROOT / cute.PRINTED).read_text(encoding="utf-8").splitlines()
    quoted = re.findall(r"```text\n(.*?)```", (ROOT / "docs/20_cute_multistage.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [f"# {line}" in printed for block in quoted for line in block.splitlines()] == [True] * 4


def swizzled(offset: int) -> int:
    """What Swizzle<3,3,3> makes of an offset, from CuTe's images of its bits."""
    place = 0
    for touch in cute.read(ROOT)["bits", "333"]:
        place ^= touch.word if offset >> touch.thread & 1 else 0
    return place


def test_offsets_that_are_worked_out():
    row, chunk, element, offset = said("20", r"the offset (\d) · 64 \+ (\d) · 8 \+ (\d) = (\d+)\. In bits, this")
    before, after, place = said("20", r"In bits, this is ([01 ]+)\. The swizzle makes it ([01 ]+), which is (\d+)")
    assert int(row) * 64 + int(chunk) * 8 + int(element) == int(offset) == int(before.replace(" ", ""), 2)
    assert swizzled(int(offset)) == int(place) == int(after.replace(" ", ""), 2)
    offset, bits = said("20", r"The offset is 3 · 64 \+ 7 · 8 \+ 5 = (\d+), in bits ([01 ]+)\.")
    (answer,) = said("20", r"The new offset is 3 · 64 \+ 4 · 8 \+ 5 = (\d+)")
    assert int(offset) == int(bits.replace(" ", ""), 2) and swizzled(int(offset)) == int(answer)


def test_the_walk_of_thread_37():
    """Lane 5 of warp 1 names row 21 of A, chunk 0; the k steps are 2 chunks apart."""
    maps = cute.read(ROOT)
    (five,) = [touch for touch in maps["ldsm_a", "20"] if touch.thread == 5]
    assert (five.row, five.col) == (5, 0), "16 rows further in warp 1"
    place = {touch.col: touch.word * 2 for touch in maps["swizzled", "333_64"] if touch.row == 5}
    assert [place[2 * k_step] - place[0] for k_step in range(4)] == [0, 16, -32, 16 - 32]
    for k_step in range(4):
        chunk, at = said("20", rf"\| {k_step} \| (\d) \| (\d) \| [^|]+ \|")
        assert int(chunk) == 2 * k_step and int(at) * 8 + 5 * 64 == place[2 * k_step]


def test_wavefronts_of_the_wrong_swizzle_add_up():
    lines = {
        name: [int(number.replace(",", "")) for number in said("20", rf"\| {name}[^|]*\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|")]
        for name in ("`ldmatrix`: 2", "copies: 2", "C to shared memory")
    }
    together = said("20", r"as the simulator counts\*\* \| \*\*([\d,]+)\*\* \| \*\*([\d,]+)\*\* \| \*\*([\d,]+)\*\* \|")
    assert [sum(column) for column in zip(*lines.values(), strict=True)] == [int(number.replace(",", "")) for number in together]
    maps = cute.read(ROOT)
    each = [cute.wavefronts(maps, which, 2) for which in ("333_64", "343_64", "033_64")]
    assert [int(number) for number in said("20", r"\| per `ldmatrix` \| (\d+) \| (\d+) \| (\d+) \|")] == [
        4 * count for count in each
    ]
    assert lines["`ldmatrix`: 2"] == [2 * 8 * (4 * 32 + 8) * 4 * count for count in each]
