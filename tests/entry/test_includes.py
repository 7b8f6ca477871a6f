"""tools/includes.py: what it resolves, its arrows, its circles."""

from pathlib import Path

import pytest

from tools.includes import circles, edges, main

SOURCES = {
    "a/one.h": '#include "two.h"\n#include <vector>\n',
    "a/one.cpp": '#include "one.h"\n  #  include "b/three.h"\n#include "generated.inc"\n',
    "a/two.h": "",
    "b/three.h": '#include "public/four.h"\n// #include "a/one.h"\n',
    "c/include/public/four.h": "",
    "b/local/yours.cu": '#include "a/one.h"\n',
    "README.md": '#include "a/one.h"\n',
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_arrows(tmp_path):
    write(tmp_path, SOURCES)
    assert edges(tmp_path, ["."]) == {
        "a/one": {"a/two", "b/three"},
        "a/two": set(),
        "b/three": {"c/include/public/four"},
        "c/include/public/four": set(),
    }
    assert edges(tmp_path, ["."], by="folder") == {"a": {"b"}, "b": {"c/include/public"}, "c/include/public": set()}
    assert edges(tmp_path, ["a"], by="file") == {
        "a/one.h": {"a/two.h"},
        "a/one.cpp": {"a/one.h", "b/three.h"},
        "a/two.h": set(),
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
