"""The figure of bench/use.py: which group a row is of, and what is refused."""

import pytest

from plots.errors import InputError
from plots.figures import style, use

HEADER = "what,type,m,n,k,layout,with_ms,without_ms,times\n"
ROWS = """\
"qkv, forward",f32,128,12288,4096,nt,0.3,0.33,1.100
"qkv, gradient of x",f32,128,4096,12288,nn,0.3,0.363,1.210
"qkv, gradient of w",bf16,12288,4096,128,tn,0.3,0.33,1.100
"ResNet-50, forward",f32,1568,512,4608,nt,0.1,0.12,1.200
"training step, 4 layers of 2048",f32,2048,2048,2048,,50,55,1.050
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "use.csv").write_text(HEADER + ROWS)
    return use.read(tmp_path / "use.csv")


def test_rows_are_grouped_by_tokens_by_network_and_by_step(table):
    assert list(table["group"]) == ["128 tokens"] * 3 + ["ResNet-50", "training step, 4 layers of 2048"]


def test_a_dot_is_the_geometric_mean_of_a_group_and_type(table):
    text = style.svg(use.draw(table))
    shown = "128 tokens, FP32: 1.15, 1.10 to 1.21"  # sqrt(1.1 * 1.21) = 1.1537
    assert f"<title>{shown}</title>" in text and "<title>128 tokens, BF16: 1.10</title>" in text
    assert "<title>training step, 4 layers of 2048, FP32: 1.05</title>" in text


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEADER])
def test_what_is_no_such_table_is_refused(text, tmp_path):
    (tmp_path / "use.csv").write_text(text)
    with pytest.raises(InputError, match="use.csv: "):
        use.read(tmp_path / "use.csv")
