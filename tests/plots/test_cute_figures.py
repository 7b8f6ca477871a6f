"""The figures of chapters 19 and 20, from what CuTe says in bench/cute_maps.csv. Both kernels assert that they have these."""

import itertools
import shutil
from pathlib import Path

import pytest

from plots.__main__ import main
from plots.errors import InputError
from plots.maps import cute, fragments, ldmatrix

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maps():
    return cute.read(ROOT)


@pytest.fixture(scope="module")
def drawings(maps):
    return cute.figures(maps)


def texts(drawing):
    return [text.text for text in drawing.texts]


def test_a_changed_map_of_cute_makes_a_figure_stale(printed, tmp_path, capsys):
    for folder in ("bench", "docs/img"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copytree(ROOT / "docs/img", tmp_path / "docs/img", dirs_exist_ok=True)
    own = (ROOT / cute.PRINTED).read_text(encoding="utf-8")
    changed = own.replace("swizzled,333_64,,1,0,36,4,", "swizzled,333_64,,1,0,32,0,", 1)
    assert changed != own
    (tmp_path / cute.PRINTED).write_text(changed, encoding="utf-8")
    csv = tmp_path / "maps.csv"
    csv.write_text(printed, encoding="utf-8")
    assert main(["maps", "--maps", str(csv), "--root", str(tmp_path), "--check"]) == 1
    assert "20_swizzle.svg" in capsys.readouterr().out


def test_a_checkout_without_the_maps_of_cute_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cute_maps\.csv: no such file"):
        cute.read(tmp_path)


def test_the_layout_is_its_shape_and_stride(maps):
    offsets = {(touch.row, touch.col): touch.word for touch in maps["offset", "tensor"]}
    assert offsets == {(row, col): 20 * row + col for row in range(8) for col in range(16)}
    tiles = {(touch.row, touch.col, touch.thread): touch.word for touch in maps["offset", "local_tile"]}
    assert tiles == {at: 80 + 20 * at[0] + at[1] + 4 * at[2] for at in itertools.product(range(4), repeat=3)}


def test_the_fragments_of_the_atom_are_drawn_whole(maps, drawings):
    for matrix, height, width in (("a", 16, 16), ("b", 16, 8), ("c", 16, 8)):
        held = [place for places in fragments.words(maps, matrix, "cute").values() for place in places]
        assert sorted(held) == sorted(itertools.product(range(height), range(width)))
    cells = [text.text for text in drawings["19_fragments"].texts if text.size == 10]
    assert sorted(cells) == sorted([str(lane) for lane in range(32)] * 10)


def test_the_tiled_mma_is_what_the_chapter_says(maps):
    """Of C each pair has one thread. Two warps hold the same rows of A, four the same columns of B."""
    for matrix, rows, pairs, warps in (("a", 64, 8, 2), ("b", 32, 8, 4), ("c", 64, 16, 1)):
        holders = cute.holders(maps, matrix)
        assert sorted(holders) == [(row, 2 * pair) for row in range(rows) for pair in range(pairs)]
        assert {len(held) for held in holders.values()} == {warps}
        touches = maps[f"tiled_{matrix}", "cute"]
        assert len({(touch.thread, touch.word) for touch in touches}) == len(touches) == 256 * 4
    assert {col // 8 for (row, col), warps in cute.holders(maps, "c").items() if warps == (0,)} == {0, 2}
    assert {row // 16 for (row, col), warps in cute.holders(maps, "c").items() if warps == (0,)} == {0}


@pytest.mark.parametrize("matrix", "ab")
def test_ldmatrix_delivers_what_the_tiled_mma_wants(maps, matrix):
    """Of row g of a matrix, whose address lane 8 * matrix + g names, word t goes to lane 4 g + t: for warp 0."""
    delivered = {}
    for touch in maps[f"ldsm_{matrix}", "20"]:
        for t in range(ldmatrix.CHUNK):
            delivered[touch.row, touch.col * ldmatrix.CHUNK + t] = (touch.thread % 8 * 4 + t, touch.word)
    touches = [touch for touch in maps[f"tiled_{matrix}", "cute"] if touch.thread < 32]
    assert delivered == {(touch.row, touch.col // 2): (touch.thread, touch.word) for touch in touches}


def test_the_copy_is_that_of_16(maps, drawings):
    """16: copy_row and copy_chunk = row_major(threadIdx.x, 8), the same chunk COPY_ROWS = 32 rows further down."""
    touches = maps["copy", "20"]
    assert [(touch.row, touch.col) for touch in touches] == [divmod(thread, 8) for thread in range(256)]
    assert [(touch.row, touch.col) for touch in maps["copy", "20_37"]] == [(4 + 32 * i, 5) for i in range(8)]
    for touch in touches:
        assert touch.word == touch.row * 32 + (touch.col ^ touch.row % 8) * 4
    cells = [text for text in texts(drawings["20_copy"]) if text.isdecimal()]
    assert all(cells.count(str(thread)) == (3 if thread < 8 else 2) for thread in range(256)), "8 chunks have numbers, too"


def test_the_swizzle_is_that_of_12(maps):
    for touch in maps["swizzled", "333_64"]:
        assert touch.word * 4 == touch.row * 128 + (touch.col ^ touch.row % 8) * 16
    assert [(touch.row, touch.col, touch.word) for touch in maps["swizzled", "333_64"] if touch.row < 8] == [
        (touch.row, touch.col, touch.word) for touch in maps["row_place", "20"]
    ]


@pytest.mark.parametrize(
    ("which", "count"), [("033_64", 8), ("333_64", 1), ("343_64", 2), ("033_32", 4), ("233_32", 1), ("333_32", 1)]
)
def test_wavefronts_of_a_chunk_of_eight_rows(maps, which, count):
    chunks = range(int(which[4:]) // 8)
    assert {cute.wavefronts(maps, which, chunk) for chunk in chunks} == {count}
    assert {cute.wavefronts(maps, which, chunk, range(8, 16)) for chunk in chunks} == {count}


def test_every_chunk_has_a_place_of_its_own(maps):
    for which in ("333_64", "343_64", "233_32", "333_32"):
        words = [touch.word for touch in maps["swizzled", which]]
        assert len(set(words)) == len(words)


@pytest.mark.parametrize("which", cute.BITS)
def test_a_swizzle_is_its_three_numbers(maps, which):
    b, m, s = map(int, which)
    assert cute.moved(maps, which) == {m + s + i: m + i for i in range(b)}
    assert cute.BITS[which] == f"Swizzle<{b},{m},{s}>"


def test_the_bits_say_where_a_chunk_lies(maps):
    """The picture of bits and that of chunks are of one function: an XOR of what each bit of the offset becomes."""
    image = {touch.thread: touch.word for touch in maps["bits", "333"]}
    for touch in maps["swizzled", "333_64"]:
        offset, place = touch.row * 64 + touch.col * 8, 0
        for bit in range(10):
            place ^= image[bit] if offset >> bit & 1 else 0
        assert place == touch.word * 2


def test_the_pictures_say_how_many_wavefronts(drawings):
    def said(stem):
        return [text.rpartition(": ")[2] for text in texts(drawings[stem]) if "wavefront" in text]

    assert said("20_swizzle") == ["8 wavefronts", "1 wavefront"]
    assert said("20_swizzle_64_bytes") == ["4 wavefronts", "1 wavefront", "1 wavefront"]
