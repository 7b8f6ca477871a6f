"""Numbers in the prose of chapter 21 against the recorded results."""

import pytest
from recorded import agrees, cell, gain, metric, said, stalls

SIZES = (2048, 4096, 8192)
TYPES = {"BF16": "bf16", "F16": "f16", "TF32": "tf32"}
WARP_K_TILES = 512 * 64 * 8  # at 4096 cubed: tiles of C, k tiles, warps that multiply


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_21_against_16():
    (percent,) = said("21", r"21 is within (\d) % of 16 for all types and sizes")
    assert all(round(abs(gain(type, "21", "16", size) - 1) * 100) <= int(percent) for type in TYPES.values() for size in SIZES)
    (ratio,) = said("21", r"At 4096³ it reaches ([\d.]+) of cuBLAS in BF16")
    assert agrees(ratio, cell("bf16", "21", 4096, "ratio_cublas"))


def test_clocks_of_16():
    clocks, per_tile = said("21", r"16: ([\d,]+) / 4 \| ([\d,]+) \|")
    assert number(clocks) == metric("bf16", "16", "time", "clocks") and abs(number(per_tile) - number(clocks) / 4) < 50

    of_16, predicted = said("21", r"16 reaches ([\d.]+) of cuBLAS with FP32 results\. [\d.]+ · 1\.06 = ([\d.]+),")
    assert agrees(of_16, cell("bf16", "16", 4096, "ratio_cublas")) and agrees(predicted, float(of_16) * 1.06)


def test_instructions():
    left, of = said("21", r"([\d.]+) million are left of ([\d.]+)\.")
    assert agrees(left, metric("bf16", "21", "issue", "instructions"), 1e6)
    assert agrees(of, metric("bf16", "16", "issue", "instructions"), 1e6)
    assert metric("bf16", "21", "issue", "tensor pipe") <= metric("bf16", "16", "issue", "tensor pipe")
    (fewer,) = said("21", r"21 needs (\d) % fewer clocks than 16")
    assert agrees(fewer, 100 - 100 * metric("bf16", "21", "time", "clocks") / metric("bf16", "16", "time", "clocks"))
    assert gain("bf16", "21", "16", 4096) < 1


def test_clocks_at_the_barrier():
    of_21, of_16 = said("21", r"a warp of 21 waits ([\d.]+) clocks at the \*barrier\*, a warp of 16 only (\d\.\d+)\.")
    assert agrees(of_21, stalls("bf16", "21", "barrier")) and agrees(of_16, stalls("bf16", "16", "barrier"))
    factor, instructions, per_k_tile = said("21", r"per warp and k tile: ([\d.]+) · (\d+) instructions[^|]*\| (\d+) \|")
    assert factor == of_21
    assert agrees(instructions, metric("bf16", "21", "issue", "instructions") / WARP_K_TILES)
    assert agrees(per_k_tile, float(factor) * int(instructions))
    (per_tile,) = said("21", r"per warp and tile of C: 64 k tiles \| ([\d,]+) \|")
    assert abs(64 * int(per_k_tile) - number(per_tile)) < 50


def test_21b_against_cublas():
    (ratio,) = said("21b", r"In BF16 at 4096³, 21b reaches ([\d.]+) of cuBLAS,")
    assert agrees(ratio, cell("bf16", "21b", 4096, "ratio_cublas"))


@pytest.mark.parametrize("name", TYPES)
def test_gain_of_21b(name: str):
    gains = said("21b", rf"\| {name} \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
    assert all(agrees(text, gain(TYPES[name], "21b", "21", size)) for text, size in zip(gains, SIZES, strict=True))


def test_profile_of_21b():
    barrier, tensor = said("21b", r"\*barrier\* is ([\d.]+) for 21b, and the tensor pipe is active for ([\d.]+) %")
    assert agrees(barrier, stalls("bf16", "21b", "barrier")) and agrees(tensor, metric("bf16", "21b", "issue", "tensor pipe"))
    rate, producer = said("21b", r"0\.25 warps per scheduler / ([\d.]+) instructions per clock \| ([\d.]+) \|")
    rest, wait = said("21b", r"\| consumers, about as in 21 \| ([\d.]+) \| \| \*\*together\*\* \| \*\*([\d.]+)\*\* \|")
    assert agrees(wait, stalls("bf16", "21b", "long scoreboard"))
    assert agrees(rate, metric("bf16", "21b", "issue", "issue active") / 100) and agrees(producer, 0.25 / float(rate))
    assert agrees(rest, float(wait) - float(producer))
    assert abs(float(rest) - stalls("bf16", "21", "long scoreboard")) < 0.05


def test_floor_of_21b():
    floor, percent, clocks = said("21b", r"4 · ([\d,]+) clocks, is (\d+) % of the profile's ([\d,]+) clocks")
    assert number(clocks) == metric("bf16", "21b", "time", "clocks")
    assert agrees(percent, 400 * number(floor) / number(clocks))
    total, per_tile = said("21b", r"A tile of C takes ([\d,]+) / 4 = ([\d,]+) clocks\. As many were")
    assert total == clocks and abs(number(per_tile) - number(clocks) / 4) < 50
    assert said("21", r"\| \*\*21\*\* \| \*\*([\d,]+)\*\* \|") == [per_tile]
