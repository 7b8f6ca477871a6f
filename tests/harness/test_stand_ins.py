"""What the harness makes of every unit and architecture that a rung may state, on the simulator."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests import checkout
from tests.checkout import BIN, WAIVED, needs_simulator, rows

pytestmark = needs_simulator
run = partial(checkout.run, BIN / "stand_ins")


def results(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit status, and of each rung's number its status and reason."""
    file = tmp_path / "rows.csv"
    done = run("--sim", "--csv", file, *arguments)
    return done.returncode, {row["kernel"].partition("_")[0]: (row["status"], row["reason"]) for row in rows(file)}


def test_the_list_holds_what_they_state():
    listed = json.loads(run("--list", "--json").stdout)
    rungs = {rung["number"]: rung for rung in listed["rungs"]}
    assert [(r["arch"], r["instruction"], r["predecessor"]) for r in rungs.values()] == [
        ("sm_70", "FFMA", ""),
        ("sm_80", "mma.sync", "70"),
        ("sm_90a", "wgmma", "80"),
        ("sm_80", "mma.sync", "90"),
        ("sm_70", "FFMA", "90"),
    ]
    assert all(rung["source"] == "tests/gpu/stand_ins/rungs.cu" for rung in rungs.values())


def test_each_unit_has_a_ceiling_of_its_own():
    rungs = json.loads(run("--list", "--json").stdout)["rungs"]
    ceilings = {rung["instruction"]: rung["ceilings"] for rung in rungs if rung["number"] in ("70", "80", "90")}
    assert ceilings == {
        "FFMA": {"f32": "fp32_fma"},
        "mma.sync": {"bf16": "mma_bf16"},
        "wgmma": {"bf16": "wgmma_bf16"},
    }


@pytest.mark.parametrize(
    ("gpu", "waived"),
    [
        ("h200", {}),
        ("b200", {"90": "needs exactly sm_90a, this is sm_100"}),
        ("a100", {"90": "needs exactly sm_90a, this is sm_80"}),
        ("rtx5090", {"90": "needs exactly sm_90a, this is sm_120"}),
    ],
)
def test_each_is_right_or_waived_on_each_gpu(tmp_path, gpu, waived):
    status, found = results(tmp_path, "--sim-gpu", gpu, "64", "72", "40")
    assert status == 0
    assert found == {number: ("waived", waived[number]) if number in waived else ("ok", "") for number in found}
    assert len(found) == 5


def test_where_all_are_waived_so_is_the_run(tmp_path):
    status, found = results(tmp_path, "--sim-gpu", "t4", "64", "64", "64", "--kernels", "80,90")
    assert status == WAIVED
    assert found == {
        "80": ("waived", "needs sm_80, this is sm_75"),
        "90": ("waived", "needs exactly sm_90a, this is sm_75"),
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["65", "64", "64"], "takes whole tiles of 64 rows alone, got 65"),
        (["64", "64", "64", "--beta", "1"], "does not read C, so beta must be 0"),
    ],
)
def test_what_a_rung_refuses_is_waived_with_its_reason(tmp_path, arguments, reason):
    status, found = results(tmp_path, *arguments, "--kernels", "91")
    assert (status, found) == (WAIVED, {"91": ("waived", reason)})


def test_a_long_name_keeps_the_table_in_columns():
    heading, *lines = run("--sim", "64", "64", "64").stdout.splitlines()
    types = [line.split()[1] for line in lines]
    assert [line.index(f" {kind} ") for line, kind in zip(lines, types, strict=True)] == [heading.index(" type ")] * 5


def test_a_type_chooses_its_rungs():
    assert [rung["number"] for rung in json.loads(run("--list", "--json", "--type", "f16").stdout)["rungs"]] == ["90b"]
