"""The table of bench/sweep_16.py fits the kernel that it varies. Compiles nothing."""

import re
from types import SimpleNamespace

import pytest

from bench import sweep, sweep_16
from bench.sweep_16 import SWEEP, VARIANTS
from plots.data import rungs

SHARED_BYTES = 228 * 1024  # of an SM of sm_90; of each block's the system takes 1024


@pytest.mark.parametrize("name", VARIANTS)
def test_every_substitution_applies(name):
    assert f'.name = "{name}"' in SWEEP.varied(name)  # ends the process where a line is not there


def test_variants_differ_in_more_than_their_names():
    texts = {name: SWEEP.varied(name).replace(name, "") for name in VARIANTS if name != "again"}
    assert len(set(texts.values())) == len(texts)
    assert len({variant.what for variant in VARIANTS.values()}) == len(VARIANTS)
    assert not VARIANTS["again"].changes and list(VARIANTS)[-1] == "again"


@pytest.mark.parametrize("name", VARIANTS)
def test_a_tile_keeps_what_the_kernel_takes_for_granted(name):
    text = SWEEP.varied(name)
    bn, wm, stages = (int(re.search(rf" {of} = (\d+);", text)[1]) for of in ("BN", "WM", "STAGES"))
    bm, wn = map(int, re.search(r"using Large = TileConfig<(\d+), (\d+)>;", text).groups())
    threads = bm // wm * (bn // wn) * 32
    rows = threads // 8
    blocks = int(re.search(r"__launch_bounds__\(Tile::THREADS, (\d)\)", text)[1])
    assert bm % wm == bn % wn == wm % 16 == 0
    assert bm % rows == bn % rows == rows % 8 == 0  # a copy is of A or of B, and no row is left over
    assert wn % 32 == 0  # four lanes by 16 bytes of 16-bit results
    assert "TOGETHER = 16 / SIZE;" in text and all(2 * wn // (4 * size) % (16 // size) == 0 for size in (4, 8))
    assert (rows % 32 == 0) == ("COPY_ROWS % 32 == 0 &&" in text) == ("permuted_column(copy_row + i * COPY_ROWS" not in text)
    assert ("COPY_STEPS = 4;" in text) == ("COPY_STEPS == K_STEPS" in text) == ("COPY_STEPS < K_STEPS" not in text)
    fits = blocks * (stages * (bm + bn) * 128 + 1024) <= SHARED_BYTES
    assert fits != (name == "block_128x128_twice_stages_4")  # which shows what happens when it does not
    assert (blocks == 2) == ("2 * device_limits().sms" in text)


def test_the_kernel_that_is_timed_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(rungs, "of_checkout", lambda: SimpleNamespace(types=["f32", "tf32", "bf16"]))
    tile = "gemmINS_10TileConfigILi256ELi64EEE"
    symbols = [f"{tile}LN6ladder4TypeE{type}E{rest}EEvv" for type in (1, 2) for rest in ("fLb1", "fLb0", "6__halfLb0")]
    assert sweep_16.timed(symbols, "bf16") == f"{tile}LN6ladder4TypeE2EfLb0EEvv"
    assert sweep_16.timed(symbols[:1], "tf32") == f"{tile}LN6ladder4TypeE1EfLb1EEvv"


def test_what_ptxas_says_is_read():
    said = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1a' for 'sm_90a'
ptxas info    : Function properties for _Z1a
    96 bytes stack frame, 88 bytes spill stores, 92 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 96 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z1b' for 'sm_90a'
ptxas info    : Function properties for _Z1b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 250 registers, used 1 barriers
"""
    assert sweep.built(said) == {"_Z1a": (128, 88), "_Z1b": (250, 0)}


def test_spills_are_told_in_the_table(tmp_path, capsys):
    file = tmp_path / "ladder.csv"
    row = "16_{},4096,0.5,ok,600000,128,147456\n"
    head = "kernel,m,ratio_cublas,status,gflops,registers,smem_bytes\n"
    file.write_text(head + row.format("as_written") + row.format("warps_16_of_64x32"))
    sweep.print_table(sweep.add_spills(file, {"as_written": 0, "warps_16_of_64x32": 88}))
    assert file.read_text().splitlines()[0] == head.strip() + ",spill_bytes"
    assert [line.rpartition(",")[2] for line in file.read_text().splitlines()[1:]] == ["0", "88"]
    assert capsys.readouterr().out.count("88 bytes spilled") == 1
