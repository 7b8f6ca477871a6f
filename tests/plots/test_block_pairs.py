"""The figures of chapters 50 to 54 say what the kernels and common/scales.h say."""

import itertools
import re
from pathlib import Path

import pytest

from plots.maps import block_pairs

ROOT = Path(__file__).parents[2]


def kernel(stem):
    return (ROOT / f"kernels/{stem}.cu").read_text(encoding="utf-8")


def test_a_pair_of_50_is_that_of_the_kernel():
    source = kernel("50_two_blocks")
    for name in ("BM", "BN", "BK_BYTES", "PAIR"):
        assert f"static constexpr int {name} = {getattr(block_pairs, name)};" in source
    assert block_pairs.kilobytes() == (16, 16)


def test_the_mbarriers_of_50_count_what_the_kernel_initialises():
    """Arrivals per phase; the 4 warps of each block's epilogue; 64 KB in full of block 0."""
    source = kernel("50_two_blocks")
    counts = dict(re.findall(r"mbarrier_init\((\w+)(?: \+ stage \* 8)?, ([^;]+?)\)(?=[,;])", source))
    assert counts == {"full": "1", "empty": "1", "acc_full": "1", "acc_empty": "PAIR * Tile::EPILOGUE / 32"}
    to = [arrival.end for arrival in block_pairs.ARRIVALS]
    assert to.count("acc_empty 0") == 2 and to.count("full 0") == 2 and to.count("empty 1") == to.count("acc_full 1") == 1
    assert not {"full 1", "acc_empty 1"} & set(to), "block 1 has them, and nobody uses them"
    assert {start for start, _ in block_pairs.WAITS} == set(to), "somebody waits for each"


@pytest.mark.parametrize("count", [1, 2])
def test_an_accumulator_is_overwritten_only_when_it_has_been_read(count):
    bars = block_pairs.accumulators(count)
    for one, other in itertools.combinations(bars, 2):
        assert one.line != other.line or one.end <= other.start or other.end <= one.start
    of = {line: {bar.tile: bar for bar in bars if bar.line == line} for line in ("tensor cores", "epilogue")}
    for tile, stores in of["epilogue"].items():
        assert of["tensor cores"][tile].end <= stores.start
    busy = [of["tensor cores"][tile] for tile in range(block_pairs.TILES)]
    rests = [later.start - earlier.end for earlier, later in itertools.pairwise(busy)]
    assert all(rest > 0 for rest in rests) if count == 1 else not any(rests)


def test_a_late_pair_makes_only_the_lists_longer():
    ends = {}
    for schedule in (block_pairs.by_list, block_pairs.by_request):
        found = schedule()
        assert sorted(tile for _, _, tile in found) == list(range(block_pairs.OF_C))
        assert len({(pair, start) for pair, start, _ in found}) == block_pairs.OF_C, "a pair computes one tile at a time"
        assert min(start for pair, start, _ in found if pair == block_pairs.PAIRS - 1) == block_pairs.LATE
        ends[schedule.__name__] = max(start for _, start, _ in found) + 1
    assert ends == {"by_list": 8, "by_request": 6}, "as chapter 52 says"


def test_scales_lie_where_scales_h_puts_them():
    """The two expressions of scale_index_vector(), evaluated as they stand there."""
    text = (ROOT / "common/scales.h").read_text(encoding="utf-8")
    (body,) = re.findall(r"size_t scale_index_vector\(.*?\) \{\n(.*?)\n\}", text, re.DOTALL)
    along_k, tile, index = (
        re.sub(r"static_cast<size_t>", "", expression).replace("/", "//")
        for expression in re.findall(r"(?:along_k =|tile =|return) (.*?);", body)
    )
    for vector, depth in ((block_pairs.MX, 208), (block_pairs.NV, 416)):
        for row, k in itertools.product(range(0, 300, 7), range(0, depth, vector)):
            names = {"vector": vector, "depth": depth, "row": row, "k": k}
            names["along_k"] = eval(along_k, {}, names)
            names["tile"] = eval(tile, {}, names)
            assert block_pairs.scale_index(vector, depth, row, k) == eval(index, {}, names)
    found = {block_pairs.scale_index(32, 128, row, 32 * step) for row in range(128) for step in range(4)}
    assert found == set(range(512)), "each of the 512 bytes once"


def test_e2m1_has_the_values_of_the_picture():
    assert [block_pairs.e2m1(code) for code in range(8)] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert len({block_pairs.e2m1(code) for code in range(16)}) == 15
