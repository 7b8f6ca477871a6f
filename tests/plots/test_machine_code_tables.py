"""Tables of machine code: counted in what was built, left as they are where that is not here, stale where it has moved on."""

import json

import pytest
import synthetic

from plots.__main__ import main
from plots.data import rungs
from plots.data.cubin import Kernel
from plots.errors import Unavailable
from plots.tables import machine_code

STEMS = ["11_a", "12_b"]
LOOP = ("LDS", "LDS", "HMMA.16816.F32{0}", "HMMA.16816.F32{0}", "IADD3", "BRA")


def kernel(kind: str, result: str, loop: tuple[str, ...], registers: int) -> Kernel:
    code = ("LDG.E", *(name.format(kind) for name in loop), "STG.E")
    return Kernel("sm_90a", f"gemmTypeE7E{result}E", registers, 0, 0, 0, 128, 1, code, (range(1, len(code) - 1),))


BUILT = {
    "11_a": [
        kernel(".BF16", "f", LOOP, 200),
        kernel(".BF16", "6__half", ("HMMA.16816.F32.BF16",), 1),
        kernel("", "f", LOOP, 200),
    ],
    "12_b": [kernel(".BF16", "f", (*LOOP, "LOP3.LUT"), 210), kernel("", "f", LOOP, 199)],
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout with one chapter and two rungs that are built, by the compiler 9.9."""
    objects = []
    for stem in STEMS:
        (tmp_path / f"{stem}.o").write_bytes(b"")
        objects.append({"stem": stem, "architectures": ["80-virtual", "90a"], "object": str(tmp_path / f"{stem}.o")})
    (tmp_path / machine_code.BUILT).parent.mkdir(parents=True)
    (tmp_path / machine_code.BUILT).write_text(json.dumps(objects))
    stated = synthetic.stated()
    known = stated["rungs"][0]
    stated["rungs"] = [known | {"number": stem[:2], "name": stem[3:], "stem": stem} for stem in STEMS]
    synthetic.write_program(tmp_path, stated)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/11_a.md").write_text("<!-- generated: machine-code bf16,f16 11 12 -->\nold\n<!-- end generated -->\n")
    monkeypatch.setattr(machine_code.cubin, "kernels", lambda path: BUILT[path.stem])
    monkeypatch.setattr(machine_code.cubin, "compiler", lambda path: "9.9")
    monkeypatch.setattr(machine_code.shutil, "which", lambda name: f"/bin/{name}")
    return tmp_path


def run(root, *more):
    return main(["docs", "--root", str(root), *more])


def lines(root):
    return [line for line in (root / "docs/11_a.md").read_text().splitlines() if line.startswith("|")]


def test_types_that_are_alike_share_a_row_and_empty_columns_are_left_out(root):
    assert run(root) == 0
    assert lines(root) == [
        "| per warp and pass of the main loop | type | `HMMA` | `LDS` | `LOP3`, `IADD3` | all | registers |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| 11_a | bf16, f16 | 2 | 2 | 1 | 6 | 200 |",
        "| 12_b | bf16 | 2 | 2 | 2 | 7 | 210 |",
        "| 12_b | f16 | 2 | 2 | 1 | 6 | 199 |",
    ]
    assert run(root, "--check") == 0


def test_a_rung_has_rows_of_its_own_types_alone(root):
    stated = synthetic.stated()
    known = stated["rungs"][0]
    stated["rungs"] = [
        known | {"number": stem[:2], "name": stem[3:], "stem": stem, "types": types}
        for stem, types in zip(STEMS, [["f16"], ["bf16"]], strict=True)
    ]
    synthetic.write_program(root, stated)
    assert run(root) == 0
    assert [line.split("|")[1:3] for line in lines(root)[2:]] == [[" 11_a ", " f16 "], [" 12_b ", " bf16 "]]


def test_a_table_of_other_machine_code_is_stale(root, capsys):
    assert run(root, "--check") == 1
    assert "stale: docs/11_a.md: machine-code bf16,f16 11 12" in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["tool", "list", "object", "architecture"])
def test_what_cannot_be_read_here_leaves_the_table_as_it_is_and_is_said(root, missing, monkeypatch, capsys):
    if missing == "tool":
        monkeypatch.setattr(machine_code.shutil, "which", lambda name: None)
    elif missing == "list":
        (root / machine_code.BUILT).unlink()
    elif missing == "object":
        (root / "12_b.o").unlink()
    else:
        text = (root / machine_code.BUILT).read_text()
        (root / machine_code.BUILT).write_text(text.replace('"90a"', '"120"'))
    assert run(root, "--check") == 0
    assert capsys.readouterr().err.startswith("left as it is: machine-code bf16,f16 11 12: ")


def test_another_compiler_than_that_of_the_recorded_results_is_no_reason_to_fail(root):
    with pytest.raises(Unavailable, match="of CUDA 9.9, the recorded results are of 9.8"):
        machine_code.table(root, rungs.of_checkout(root), ["bf16"], ["11"], "9.8")


@pytest.mark.parametrize(("kind", "said"), [("f8", "'f8' is not one of"), ("f32", "multiplies f32")])
def test_a_type_that_the_rung_does_not_multiply_is_refused(root, capsys, kind, said):
    (root / "docs/11_a.md").write_text(f"<!-- generated: machine-code {kind} 11 -->\n<!-- end generated -->\n")
    assert run(root) == 2
    assert said in capsys.readouterr().err
