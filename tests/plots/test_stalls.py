"""The figure of stall reasons: shares of a warp's time that come to 100 % and are those of the profile."""

import pytest
import synthetic
from synthetic import write_folder
from test_figures import assert_legible
from test_profiled import write

from plots.__main__ import main
from plots.data.units import Shape
from plots.documents.chapters import GPU
from plots.figures import stalls, style

PROFILE = {
    "07_double_buffer": {("stalls", "wait"): 1.0, ("stalls", "barrier"): 2.0, ("time", "clocks"): 7.0},
    "01_naive": {("stalls", "long scoreboard"): 12.0, ("stalls", "lg throttle"): 3.0, ("stalls", "wait"): float("nan")},
    "02_smem_tiling": {("time", "clocks"): 7.0},
}


def test_shares_are_of_the_stalled_warps_and_the_one_that_issues():
    found = stalls.shares(PROFILE)
    assert list(found) == ["01_naive", "07_double_buffer"], "ladder order; nothing of a rung without stall reasons"
    assert found["01_naive"]["long scoreboard"] == pytest.approx(12 / 16) and found["01_naive"]["wait"] == 0
    assert found["07_double_buffer"][stalls.ISSUING] == pytest.approx(1 / 4)
    assert all(sum(parts.values()) == pytest.approx(1) for parts in found.values())


def test_bars_are_the_shares_and_reach_100(monkeypatch):
    fig = stalls.draw(PROFILE, "f32", Shape(4096, 4096, 4096))
    assert_legible(fig, monkeypatch)
    widths = [sum(bar.get_width() for bar in fig.axes[0].patches if round(bar.get_y() + 0.37) == place) for place in (0, 1)]
    assert widths == pytest.approx([100, 100])
    svg = style.svg(fig)
    for text in (
        "75",
        "19",
        "25",
        "50",
        "01_naive",
        "long scoreboard: for global memory",
        "Where a warp&apos;s time goes, f32 at 4096³",
    ):
        assert f">{text.replace('&apos;', chr(39))}<" in svg
    colours = [colour for colour, _ in stalls.REASONS.values()]
    assert len(set(colours)) == len(colours)


def test_an_unknown_reason_still_counts():
    parts = stalls.shares({"01_naive": {("stalls", "membar"): 3.0}})["01_naive"]
    assert parts["membar"] == pytest.approx(3 / 4)


def test_the_committed_figure_follows_the_profile(tmp_path, capsys):
    write_folder(tmp_path / "bench/recorded" / GPU)
    synthetic.write_program(tmp_path, synthetic.stated())
    write(tmp_path, "profile_bf16.csv", 4096)
    assert main(["recorded", "--root", str(tmp_path)]) == 0
    text = (tmp_path / "docs/img/recorded/stalls_bf16.svg").read_text()
    assert ">14_multistage<" in text and not (tmp_path / "docs/img/recorded/stalls_f32.svg").exists()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 0
    write(tmp_path, "profile_bf16.csv", 4096, ["16_epilogue"])
    capsys.readouterr()
    assert main(["recorded", "--root", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == "stale: docs/img/recorded/stalls_bf16.svg\n"
