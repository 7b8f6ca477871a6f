"""The table of bench/sweep_08.py fits the kernel that it varies. Compiles nothing."""

import pytest

from bench import sweep_08


@pytest.mark.parametrize("name", sweep_08.VARIANTS)
def test_every_substitution_applies(name):
    assert f'.name = "{name}"' in sweep_08.varied(name)  # ends the process where a line is not there


def test_variants_differ_in_more_than_their_names():
    texts = {name: sweep_08.varied(name).replace(name, "") for name in sweep_08.VARIANTS}
    assert len(set(texts.values())) == len(texts)


def test_a_stale_substitution_is_refused(monkeypatch):
    monkeypatch.setitem(sweep_08.VARIANTS, "stale", [("a line of some other kernel", "")])
    with pytest.raises(SystemExit, match="stale replaces a line that"):
        sweep_08.varied("stale")
