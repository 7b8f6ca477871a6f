"""The pages beside the code: what they link to is there, the commands that they show exist, and the licence is one."""

import re

import pytest

from tests.checkout import ROOT, run_all

yaml = pytest.importorskip("yaml")

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "kernels/local/README.md", "sim/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    file = ROOT / page
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8"))
    files = [link for link in links if "://" not in link]
    assert not [link for link in files if not (file.parent / link).exists()]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/your_own_kernel.md"])
def test_commands_are_those_of_run_all(page):
    known = re.findall(r"^  \./run_all\.sh ([a-z]+)", run_all("help").stdout, re.MULTILINE)
    shown = re.findall(r"\./run_all\.sh ([a-z]\w*)", (ROOT / page).read_text(encoding="utf-8"))
    assert shown and set(shown) <= set(known)


def test_citation_and_licence_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith(f"{citation['license']} License\n")
    assert citation["authors"][0]["name"].removeprefix("The ") in licence
