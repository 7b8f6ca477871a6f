"""The facts of rungs: read from what the program prints or from a results folder, found by any name, printed for scripts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic

from plots.data import rungs
from plots.data.rungs import by_generation, main, parse
from plots.data.units import Shape
from plots.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def facts():
    return parse(json.dumps(synthetic.stated()), "synthetic")


def test_a_rung_is_what_it_states(facts):
    rung = facts.rungs["16_epilogue"]
    assert (rung.number, rung.predecessor, rung.instruction, rung.arch) == ("16", "15", "mma.sync", "sm_80")
    assert rung.types == ("tf32", "bf16", "f16") and rung.ceilings["bf16"] == "mma_bf16"
    assert facts.types["bf16"].result_bytes == {"f32": 4, "same": 2}
    assert facts.families["square"][0] == Shape(256, 256, 256)


@pytest.mark.parametrize("word", ["6", "06", "bank_conflict_free", "06_bank_conflict_free"])
def test_every_name_of_a_rung_finds_it(facts, word):
    assert facts.find(word).stem == "06_bank_conflict_free"


def test_an_unknown_name_is_told_the_nearest(facts):
    with pytest.raises(InputError, match="no rung 'bank_conflict'; the nearest is 06_bank_conflict_free"):
        facts.find("bank_conflict")
    with pytest.raises(InputError, match="no type 'bf61'; the nearest is bf16"):
        facts.computing("bf61")
    with pytest.raises(InputError, match="no rung 'zzz'$"):
        facts.find("zzz")


def test_the_predecessor_is_the_stated_one(facts):
    assert facts.predecessor("07_double_buffer").stem == "06_bank_conflict_free"
    assert facts.predecessor("13_ldmatrix") is None and facts.predecessor("99_of_another_checkout") is None


def test_rungs_by_the_gpus_that_run_them(facts):
    rungs_of = ["17_wgmma", "08_warp_tiling", "16_epilogue"]
    found = by_generation(facts.rungs[stem] for stem in rungs_of)
    assert {name: [rung.number for rung in own] for name, own in found.items()} == {
        "every GPU since Ampere (sm_80)": ["08", "16"],
        "Hopper alone (sm_90a)": ["17"],
    }


@pytest.mark.parametrize("text", ["", "{}", '{"types": [], "families": {}, "rungs": [{"number": "01"}]}', "[]"])
def test_what_is_not_facts_is_one_line(text):
    with pytest.raises(InputError, match="rungs.json: not the facts of rungs") as caught:
        parse(text, "rungs.json")
    assert "\n" not in str(caught.value)


def test_a_folder_keeps_its_own(folder, monkeypatch):
    monkeypatch.setattr(rungs, "of_checkout", lambda: pytest.fail("the folder has them"))
    assert "08_warp_tiling" in rungs.of_folder(folder).rungs


def test_scripts_get_a_fact_per_line(tmp_path, monkeypatch, capsys):
    synthetic.write_program(tmp_path, synthetic.stated())
    monkeypatch.setattr(rungs, "of_checkout", lambda **_: rungs.read(tmp_path / "rungs.json"))
    (tmp_path / "rungs.json").write_text(json.dumps(synthetic.stated()))
    for arguments, expected in (
        (["types"], ["f32", "tf32", "bf16", "f16"]),
        (["stem", "bf16"], [*synthetic.TENSOR, synthetic.WGMMA]),
        (["number"], [stem.partition("_")[0] for stem in [*synthetic.RATIOS, *synthetic.TENSOR, synthetic.WGMMA]]),
        (["predecessor", "15_block_raster"], ["14"]),
    ):
        assert main(arguments) == 0
        assert capsys.readouterr().out.split() == expected
    assert main(["stem", "f8"]) == 2 and "no type 'f8'" in capsys.readouterr().err
    assert main(["colour"]) == 2


def test_it_needs_nothing_but_python():
    done = subprocess.run([sys.executable, "-S", "-m", "plots.data.rungs"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "usage:" in done.stderr, done.stderr


@pytest.mark.skipif(not (ROOT / "build/bin/ladder").exists(), reason="build/bin/ladder is not built")
def test_the_checkouts_own_facts():
    facts = rungs.of_checkout(ROOT)
    assert {rung.source for rung in facts.rungs.values()} >= {str(p.relative_to(ROOT)) for p in (ROOT / "kernels").glob("*.cu")}
    assert facts.predecessor("10_mma_ptx").number == "09b"
    assert all(facts.predecessor(stem) or not rung.predecessor for stem, rung in facts.rungs.items())
