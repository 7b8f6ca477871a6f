"""tools/includes.py: what it resolves, its arrows, its circles, its layers."""

from pathlib import Path

import pytest

from tools.includes import circles, edges, included, main

SOURCES = {
    "a/one.h": '#include "two.h"\n#include <vector>\n',
    "a/one.cpp": '#include "one.h"\n  #  include "b/three.h"\n#include "generated.inc"\n',
    "a/two.h": "",
    "b/three.h": '#include "public/four.h"\n// #include "a/one.h"\n',
    "c/include/public/four.h": "",
    "a/five.py": "import json\nfrom b import six\nfrom b.six import name\nfrom c import other\n",
    "b/six.py": "",
    "c/__init__.py": "",
    "b/local/yours.cu": '#include "a/one.h"\n',
    "README.md": '#include "a/one.h"\n',
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_arrows(tmp_path):
    write(tmp_path, SOURCES)
    assert edges(included(tmp_path, ["."])) == {
        "a/one": {"a/two", "b/three"},
        "a/two": set(),
        "a/five": {"b/six", "c/__init__"},
        "b/six": set(),
        "c/__init__": set(),
        "b/three": {"c/include/public/four"},
        "c/include/public/four": set(),
    }
    assert edges(included(tmp_path, ["a"]), by="file") == {
        "a/one.h": {"a/two.h"},
        "a/one.cpp": {"a/one.h", "b/three.h"},
        "a/two.h": set(),
        "a/five.py": {"b/six.py", "c/__init__.py"},
    }


def test_circles():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"d"}}) == []
    assert circles({"a": {"b", "x"}, "b": {"c"}, "c": {"a"}, "x": {"y"}, "y": {"x"}, "z": {"a"}}) == [["a", "b", "c"], ["x", "y"]]


def test_a_circle_fails(tmp_path, monkeypatch, capsys):
    write(tmp_path, SOURCES)
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert "a/one -> b/three\n" in capsys.readouterr().out
    write(tmp_path, {"c/include/public/four.cpp": '#include "four.h"\n#include "a/one.h"\n'})
    assert main(["--by", "module"]) == 1
    assert "circle: a/one, b/three, c/include/public/four\n" in capsys.readouterr().out
    assert main(["nowhere"]) == 2
    with pytest.raises(SystemExit):
        main(["--by", "chance"])


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        ("plots/data/results.py", "from plots.figures import style\n", "plots/figures/style.py"),
        ("plots/figures/style.py", "from plots.tables.grid import Grid\n", "plots/tables/grid.py"),  # beside, not below
        ("plots/data/rungs.py", "def late():\n    import plots.data.results\n", "plots/data/results.py"),
        ("bench/sweep.py", "from tools import test\n", "tools/test.py"),
        ("common/rung.h", '#include "harness/run.h"\n', "common/harness/run.h"),
        ("sim/ptx/parser.cpp", '#include "sim/executor/block.h"\n', "sim/executor/block.h"),
    ],
    ids=lambda value: value if "/" in value and "\n" not in value else "",
)
def test_an_arrow_that_does_not_lead_downwards_fails(file, text, other, tmp_path, monkeypatch, capsys):
    write(tmp_path, {file: text, other: ""})
    monkeypatch.chdir(tmp_path)
    assert main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"not downwards: {file} -> {other}"
    write(tmp_path, {file: "", other: ""})
    assert main([]) == 0


def test_arrows_between_boxes(tmp_path):
    write(tmp_path, {"plots/figures/style.py": "from plots.data import rungs\n", "plots/data/rungs.py": "", "mine/x.py": ""})
    assert edges(included(tmp_path, ["."]), by="box") == {"plots/figures": {"plots/data/rungs"}, "plots/data/rungs": set()}
