"""The check of the language: what it reads of a page, what it finds there, and that no finding fails a test run."""

import shutil
import sys

import pytest

from tests.checkout import ROOT
from tools import words
from tools.test import SUITES, Count, Log

needs_harper = pytest.mark.skipif(not shutil.which("harper"), reason="no harper here, which checks the language")
PAGE = """# A page

The kernel could of been fast.<!--= teh_marker --> A warp waits for its mbarrier and for `teh_code`, as [wgmma](teh_link.md) does.

```c
teh = code;
```

Teh end.
"""


def test_code_markers_and_targets_of_links_are_not_read():
    read = words.prose(PAGE)
    assert read.count("\n") == PAGE.count("\n") and "wgmma does" in read
    assert not [hidden for hidden in ("teh_marker", "teh_link", "= code") if hidden in read]


def test_terms_are_those_of_the_glossary_and_of_the_list(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert {"Wavefront", "mbarrier"} <= words.terms()
    listed = words.TERMS.read_text(encoding="utf-8").split()
    assert listed == sorted(set(listed), key=str.lower)


@needs_harper
def test_a_page_is_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert words.main([str(page)]) == 0
    found = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:2] for line in found[:-1]] == [[f"{page}:3", "'could of'"], [f"{page}:9", "'Teh'"]]
    assert found[-1] == "2 findings in 1 pages"


def test_findings_fail_no_test_run(monkeypatch):
    statuses, asked = iter([0, words.WAIVED]), []
    monkeypatch.setattr(Log, "run", lambda log, command: asked.append(command) or next(statuses))
    assert SUITES["words"](Log()) == Count(passed=1)
    assert SUITES["words"](Log()) == Count(skipped=1)
    assert asked == [[sys.executable, "-m", "tools.words"]] * 2


def test_without_harper_it_says_so(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert words.main([]) == words.WAIVED
    assert "no harper here" in capsys.readouterr().out
