"""Every rung on every GPU that the simulator describes: right, or waived with the reason."""

import json
import re

import pytest

from tests.checkout import LADDER, WAIVED, needs_ptx_for_all, needs_simulator, rows, run

SHAPES = "129x136x72,64x256x40"  # edges of every tile; whole tiles
GPUS = ("h200", "h100", "b200", "a100", "rtx4090", "rtx5090", "t4")


pytestmark = [needs_simulator, needs_ptx_for_all]


@pytest.fixture(scope="module")
def facts() -> dict:
    return json.loads(run(LADDER, "--list", "--json").stdout)


def runs_on(arch: str, sm: int) -> bool:
    least, exact = re.fullmatch(r"sm_(\d+)(a?)", arch).groups()
    return sm == int(least) if exact else sm >= int(least)


def test_these_are_all_described_gpus():
    assert f"--sim-gpu takes {', '.join(GPUS)}, got 'none'" in run(LADDER, "--sim", "--sim-gpu", "none").stderr


@pytest.mark.parametrize("gpu", GPUS)
def test_every_rung_is_right_or_waived_with_the_reason(gpu, facts, tmp_path):
    arch = {rung["stem"]: rung["arch"] for rung in facts["rungs"]}
    right, too_large, with_scales = set(), set(), set()
    for kind in (known["name"] for known in facts["types"]):
        file = tmp_path / f"{kind}.csv"
        arguments = ["--sim", "--sim-gpu", gpu, "--type", kind, "--check-only", "--shapes", SHAPES, "--ld-pad", "align"]
        done = run(LADDER, *arguments, "--csv", file)
        assert done.returncode in (0, WAIVED), done.stderr[-2000:]
        for row in rows(file):
            sm = int(row["sm"])
            if row["status"] == "ok":
                assert runs_on(arch[row["kernel"]], sm)
                right.add((row["kernel"], kind))
                continue
            assert row["status"] == "waived" and "needs " in row["reason"], row
            if "CUTLASS" in row["reason"]:  # it was not there when this was built
                too_large.add((row["kernel"], kind))
                continue
            if "--scales" in row["reason"]:
                with_scales.add((row["kernel"], kind))
                continue
            assert not runs_on(arch[row["kernel"]], sm) or kind in row["reason"] or "shared" in row["reason"]
            if "bytes of shared memory" in row["reason"]:
                needed, held = map(int, re.findall(r"\d+", row["reason"]))
                assert needed > held
                too_large.add((row["kernel"], kind))
    # What the GPU has the instructions and the shared memory for does run: from sm_80 on, every type of a rung that its
    # architecture allows.
    expected = {(rung["stem"], kind) for rung in facts["rungs"] if runs_on(rung["arch"], sm) for kind in rung["types"]}
    if sm >= 80:
        assert right == expected - too_large - with_scales
    else:
        assert {(stem, kind) for stem, kind in expected if kind in ("f32", "f16")} == right


@pytest.mark.parametrize(("kind", "k"), [("bf16", 1 << 30), ("tf32", 1 << 29)])
def test_rows_of_two_gigabytes_are_refused_by_rungs_that_count_bytes(kind, k, facts, tmp_path):
    numbers = [rung["number"] for rung in facts["rungs"] if rung["instruction"] == "mma.sync" and kind in rung["types"]]
    file = tmp_path / "rows.csv"
    arguments = ["--sim", "--type", kind, "--check-only", "--shapes", f"8x8x{k}", "--kernels", ",".join(numbers), "--csv", file]
    assert run(LADDER, *arguments, timeout=60).returncode == WAIVED
    reasons = [row["reason"] for row in rows(file)]
    assert len(reasons) == len(numbers)
    assert all(re.search("counts bytes along k in an int|needs CUTLASS", reason) for reason in reasons)
