"""run_all.sh python: a program whose matmul() is one rung, on the simulator (one of your own: tests/entry/test_own_kernel.py)."""

import pytest

from tests.checkout import USAGE, needs_simulator, one_line, run_all

PROGRAM = """
import gemm_ladder, numpy as np

random = np.random.default_rng(3)
a, b = random.standard_normal((70, 40), dtype=np.float32), random.standard_normal((40, 90), dtype=np.float32)
print("right:", np.abs(gemm_ladder.matmul(a, b) - a.astype(float) @ b).max() < 1e-4)
print("explained:", gemm_ladder.explain(a, b).splitlines()[0])
print("scaled:", np.abs(gemm_ladder.matmul(a, b, alpha=0.0)).max() == 0)
for c, d in ((a, np.asfortranarray(b)), (a.astype(np.float16), b.astype(np.float16))):
    try:
        gemm_ladder.matmul(c, d)
    except gemm_ladder.GemmLadderError as error:
        print("refused:", error)
"""


@needs_simulator
def test_a_rung_computes_what_it_can_and_refuses_the_rest(tmp_path):
    (tmp_path / "product.py").write_text(PROGRAM)
    done = run_all("python", "04", tmp_path / "product.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "right: True",
        "explained: 04_thread_tile_2d:",
        "scaled: True",
        "refused: 04_thread_tile_2d: this rung takes the layout nn",
        "refused: this library has no rung for f16",
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "python takes a rung and a program, such as: python 90 product.py"),
        (["77", "product.py"], "there is no rung '77'; ./run_all.sh list lists all"),
    ],
)
def test_refused_in_one_line(words, expected):
    assert expected in one_line(run_all("python", *words), USAGE)
