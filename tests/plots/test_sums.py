"""The figure of long FP8 sums: whose table it takes, what it draws, and what is refused."""

import pytest
from test_figures import assert_legible

from plots.errors import InputError
from plots.figures import sums

HEADER = "sums,data,k,rms,bias,largest,device\n"
DEPTHS = [128 << i for i in range(8)]


def rms(way, data, k):
    return (1e-4 if way == "promoted" else k * 1e-6) * (5 if data == "positive" else 1)


@pytest.fixture
def table(tmp_path):
    cells = [(way, data, k) for way in sums.SUMS for data in sums.DATA for k in DEPTHS]
    rows = [
        f"{way},{data},{k},{rms(way, data, k)},{-k / 7e4 if data == 'positive' else 0},1e-3,a card\n" for way, data, k in cells
    ]
    file = tmp_path / "a-card" / sums.FILE
    file.parent.mkdir()
    file.write_text(HEADER + "".join(rows))
    return file


def test_each_panel_has_a_line_per_way_and_data_over_k(table, monkeypatch):
    fig = sums.draw(sums.read(table))
    error, bias = ({line.get_label(): line for line in ax.get_lines()} for ax in fig.axes)
    assert len(error) == len(bias) == 4
    line = error["straight; positive data"]
    assert list(line.get_xdata()) == DEPTHS and list(line.get_ydata()) == [rms("straight", "positive", k) for k in DEPTHS]
    assert bias["straight; positive data"].get_ydata()[-1] == pytest.approx(-100 * 16384 / 7e4)
    assert_legible(fig, monkeypatch)


def test_it_is_of_the_first_card_that_has_one(table):
    assert sums.find(table.parents[1]) == table
    assert sums.find(table.parent) is None


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEADER])
def test_what_is_no_such_table_is_refused(text, table):
    table.write_text(text)
    with pytest.raises(InputError, match="fp8_sums.csv: "):
        sums.read(table)
