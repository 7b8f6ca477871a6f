"""The index-map figures: drawn from what bench/maps.cpp prints, legible, and as committed."""

import functools
import itertools
import re
from pathlib import Path

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from plots.__main__ import main
from plots.errors import InputError
from plots.maps import (
    block_pairs,
    columns,
    cute,
    fragments,
    hierarchy,
    index_maps,
    ldmatrix,
    persistent,
    pictures,
    raster,
    rows,
    splits,
    tensor_memory,
    timelines,
    tma,
    warp_roles,
    wgmma,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def drawings(read):
    drawn = pictures.figures() | timelines.figures() | warp_roles.figures() | cute.figures(cute.read(ROOT))
    of_maps = (index_maps, hierarchy, fragments, rows, ldmatrix, raster, columns, splits, tma, wgmma, persistent, tensor_memory)
    for module in of_maps:
        drawn |= module.figures(read)
    return drawn | block_pairs.figures()


def test_committed_figures_are_those_of_the_code(printed, tmp_path, capsys):
    csv = tmp_path / "maps.csv"
    csv.write_text(printed)
    status = main(["maps", "--maps", str(csv), "--check"])
    assert status == 0, f"run python3 -m plots maps: {capsys.readouterr().out}"


def test_a_changed_map_makes_a_figure_stale(printed, tmp_path, capsys):
    csv = tmp_path / "maps.csv"
    csv.write_text(
        printed.replace("sB_load,05,31,0,248,", "sB_load,05,30,0,248,", 1).replace(
            "sB_load,06,0,0,0,0,0,0", "sB_load,06,1,0,0,0,0,0", 1
        )
    )
    assert csv.read_text() != printed
    assert main(["maps", "--maps", str(csv), "--check"]) == 1
    assert "06_load_b.svg" in capsys.readouterr().out


@functools.cache
def width_of(text, size, bold):
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width


def boxes(drawing):
    for text in drawing.texts:
        width = width_of(text.text, text.size, text.bold)
        left = text.x - {"start": 0, "middle": width / 2, "end": width}[text.anchor]
        yield text.text, left, left + width, text.y - text.size / 2, text.y + text.size / 2


def test_no_text_touches_another_or_leaves_the_picture(drawings):
    for name, drawing in drawings.items():
        found = list(boxes(drawing))
        for text, left, right, top, bottom in found:
            assert left >= 0 and right <= drawing.width, f"{name}: '{text}'"
            assert top >= 0 and bottom <= drawing.height, f"{name}: '{text}'"
        for one, other in itertools.combinations(found, 2):
            apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
            assert apart, f"{name}: '{one[0]}' and '{other[0]}' overlap"


def test_every_lane_and_wavefront_of_a_load_is_drawn(read, drawings):
    for rung, count in (("05", 8), ("06", 4), ("06b", 4)):
        assert 1 + max(touch.wavefront for touch in read["sB_load", rung]) == count
        assert f"{rung}: {count} wavefronts" in [text.text for text in drawings["06_load_b"].texts]
    cells = [text.text for text in drawings["06_load_b"].texts if text.text.isdecimal()]
    assert all(cells.count(str(lane)) >= 3 for lane in range(32))


def test_regions_cover_every_element_once(read):
    owner = {(touch.row, touch.col): touch.thread for touch in read["C", "06"]}
    covered = {}
    for thread, (row, col, height, width) in index_maps.regions(owner):
        for place in itertools.product(range(row, row + height), range(col, col + width)):
            assert place not in covered
            covered[place] = thread
    assert covered == owner


@pytest.mark.parametrize(("figure", "depth"), [("10_fragments_16bit", 16), ("10_fragments_tf32", 8), ("40_fragments_8bit", 32)])
def test_every_element_of_a_fragment_is_drawn_once(read, drawings, figure, depth):
    kind = figure.rpartition("_")[2]
    for matrix, height, width in (("a", 16, depth), ("b", depth, 8), ("c", 16, 8)):
        held = [place for places in fragments.words(read, matrix, kind).values() for place in places]
        assert sorted(held) == sorted(itertools.product(range(height), range(width)))
    cells = [text.text for text in drawings[figure].texts if text.size == 10]
    registers = 4 + 2 + 4  # of A, B and C, in each lane
    assert sorted(cells) == sorted([str(lane) for lane in range(32)] * registers)


def test_a_word_of_16_bit_types_is_two_neighbours_along_k(read):
    for matrix, along in (("a", 1), ("b", 0)):
        for first, second in fragments.words(read, matrix, "16bit").values():
            assert second[along] == first[along] + 1 and first[along] % 2 == 0
            assert second[1 - along] == first[1 - along]


def test_a_word_of_e4m3_is_four_neighbours_along_k_and_two_of_16_bits_wide(read):
    """Chapter 40: the same bytes of a row in the same registers, so ldmatrix serves both."""
    for matrix, along in (("a", 1), ("b", 0)):
        of_16_bits = fragments.words(read, matrix, "16bit")
        for register, places in fragments.words(read, matrix, "8bit").items():
            first = places[0][along]
            assert first % 4 == 0 and [place[along] for place in places] == [first + i for i in range(4)]
            assert {place[1 - along] for place in places} == {place[1 - along] for place in of_16_bits[register]}
            assert first == 2 * of_16_bits[register][0][along], "the same byte"


def test_rows_of_128_bytes_are_as_chapter_12_says(read):
    """Chunk 2 of eight rows: conflicts without a skew. A warp's copy: 7 pieces of lines with it."""
    loads = {layout: 1 + max(touch.wavefront for touch in read["row_load", layout]) for layout in rows.LAYOUTS}
    assert loads == {"no skew": 8, "11": 1, "12": 1}
    assert {layout: rows.lines(read, layout) for layout in rows.LAYOUTS} == {"no skew": 4, "11": 7, "12": 4}
    for layout in rows.LAYOUTS:
        touched = read["row_copy", layout]
        assert 1 + max(touch.wavefront for touch in touched) == 4
        assert len({touch.word for touch in touched}) == len(touched) == 128


def test_the_order_of_tiles_is_as_chapter_15_says(read):
    """Every tile once, and the rows of A and columns of B that the first 132 tiles need."""
    for group in raster.TITLES:
        assert {(tile.row, tile.col) for tile in read["raster", group]} == set(itertools.product(range(32), range(64)))
    assert raster.needed(read, "1") == (3, 64)
    assert raster.needed(read, "8") == (8, 17)


def test_waves_of_the_kernels_own_tiles(read, drawings, stated):
    """At 4096 cubed every tile once; the size of a tile and of a group are those of 15."""
    assert stated("15") == {"BM": 256, "BN": 128, "GROUP_SIZE_M": 8}
    for group in raster.TITLES:
        tiles = read[raster.AT_4096, group]
        assert {(tile.row, tile.col) for tile in tiles} == set(itertools.product(range(4096 // 256), range(4096 // 128)))
    assert raster.needed(read, "1", 0, raster.AT_4096) == (5, 32) and raster.needed(read, "8", 0, raster.AT_4096) == (8, 17)
    shapes = drawings["15_waves"].shapes
    cells = {colour: sum(f'width="14" height="28" fill="{colour}"' in shape for shape in shapes) for colour in raster.ALL_WAVES}
    assert list(cells.values()) == [2 * count for count in (132, 132, 132, 116)], "in both orders"


def test_splits_cover_k_once(read, drawings):
    """Each tile of C has every k tile once, and each work tile has a bar."""
    for count in splits.TITLES:
        of = read["splits", count]
        assert [unit.row for unit in sorted(of, key=lambda unit: unit.thread)] == sorted(list(range(4096 // 128)) * int(count))
        covered = sorted((unit.row, k_tile) for unit in of for k_tile in range(unit.col, unit.col + unit.word))
        assert covered == list(itertools.product(range(4096 // 128), range(splits.K_TILES)))
    shapes = drawings["17_splits"].shapes
    bars = {
        colour: sum(f'width="6" height="{height}" fill="{colour}"' in shape for shape in shapes for height in (128, 32))
        for colour in splits.COLOURS
    }
    assert list(bars.values()) == [2 * 32, 32, 32, 32]


@pytest.mark.parametrize("way", [splits.parallel, splits.serial])
def test_partials_are_added_after_they_are_stored(way):
    """No line does two things at once, and nothing is added before the sums that it needs are stored."""
    bars = way(4)
    for one, other in itertools.combinations(bars, 2):
        assert one.line != other.line or one.end <= other.start or other.end <= one.start
    stored = {bar.line: bar.end for bar in bars if bar.what == "stores sums"}
    for bar in bars:
        if bar.what == "adds sums":
            needed = [bar.line - 1] if way is splits.serial else list(stored)
            assert all(stored[line] <= bar.start for line in needed)
    assert [bar.what for bar in bars].count("stores C") == 1


def test_torn_sectors_are_those_of_chapter_11(read, drawings):
    """Rows with an odd number have four torn sectors, one of them across two lines; eight rows want 36 sectors."""
    for number, row in rows.chunks(read, "11").items():
        pairs = rows.pairs(row)
        assert [touch.col for pair in pairs for touch in pair] == list(range(8))
        assert [rows.torn(pair) for pair in pairs] == [number % 2 == 1] * 4
        assert len(rows.row_pieces(row)) == (2 if number else 1) and rows.sectors(row) == 4 + number % 2
    texts = [text.text for text in drawings["11_torn_sectors"].texts]
    assert {"15 pieces", "16", "36"} <= set(texts)
    assert {f"{row}.{chunk}" for row in range(8) for chunk in range(8)} <= set(texts)
    for whole in ("no skew", "12"):
        assert not any(rows.torn(pair) for row in rows.chunks(read, whole).values() for pair in rows.pairs(row)), whole


def test_ldmatrix_delivers_what_mma_wants(read):
    for matrix in "ab":
        assert sorted(lane for lane, _ in ldmatrix.named(read, matrix).values()) == list(range(32))
        assert ldmatrix.delivered(read, matrix) == ldmatrix.wanted(read, matrix)


def test_every_lane_and_word_of_ldmatrix_is_drawn(drawings):
    texts = [text.text for text in drawings["13_ldmatrix_rows"].texts]
    assert all(texts.count(f"lane {lane}") == 2 for lane in range(32)), "one row of A and one column of B"
    cells = [text.text for text in drawings["13_ldmatrix_rows"].texts if text.size == 10 and text.text.isdecimal()]
    assert sorted(cells, key=int) == [str(lane) for lane in range(32) for _ in range(8)], "four words of A and four of B"


@pytest.mark.parametrize("size", [columns.FP32, columns.SIXTEEN])
def test_permuted_columns_give_each_lane_16_bytes(read, size):
    rows_of_b = 4 * int(size)
    permuted = [touch for touch in read["permuted", size] if touch.row < rows_of_b]
    assert sorted(touch.col for touch in permuted) == list(range(rows_of_b)), "every column once"
    assert all(touch.thread == touch.row % 8 // 2 for touch in permuted), "the lane is that of mma_c"
    after, before = (columns.held(read, size, rows_of_b, before) for before in (False, True))
    for lane in range(4):
        assert columns.pieces(after, lane) == [(lane * int(size), (lane + 1) * int(size) - 1)]
        assert len(columns.pieces(before, lane)) == int(size) // 2


def test_the_picture_says_what_lane_0_holds(drawings):
    said = [text.text for text in drawings["16_permuted_columns"].texts if text.text.startswith("lane 0 holds")]
    one = "lane 0 holds one piece of 16 bytes: one store"
    assert said == ["lane 0 holds 2 pieces of 8 bytes", one, "lane 0 holds 4 pieces of 4 bytes", one]


@pytest.mark.parametrize(("size", "wavefronts"), [("4", 2), ("8", 4)])
def test_named_columns_lie_in_eight_places(read, size, wavefronts):
    """An ldmatrix matrix of B takes one wavefront in 21; in the order of 16 it would take more."""
    for matrix in range(int(size) // 2):
        places = [place for _, place in tma.columns_of(read, "named", matrix, size)]
        assert sorted(places) == list(range(8))
        places = [place for _, place in tma.columns_of(read, "in_order_of_16", matrix, size)]
        assert max(places.count(place) for place in places) == wavefronts


def test_the_mbarrier_of_the_picture_is_that_of_21(stated):
    """The bytes of a stage, and a phase that ends when nothing is pending."""
    of_21 = stated("21")
    assert (of_21["BM"] * of_21["BK_BYTES"], of_21["BN"] * of_21["BK_BYTES"]) == (tma.A_BYTES, tma.B_BYTES)
    for before, after in itertools.pairwise(tma.life()):
        assert (after.phase > before.phase) == (before.arrivals == 0 and after.bytes == 0)


def test_the_prologue_of_the_picture_is_that_of_21():
    """The k step of the copies, the stages and the k steps are the kernel's; a k tile lands before its use, in a free stage."""
    source = (ROOT / "kernels/21_tma.cu").read_text()
    for line in (
        f"if (k_step == {tma.COPY_STEP}) copy();",
        f"STAGES = {tma.STAGES};",
        "for (int stage = 0; stage < STAGES - 1; ++stage) copy();",
        "load_fragments(k_step == K_STEPS - 1 ? next_stage_bytes",
    ):
        assert line in source
    (bytes_of_tile,), (bytes_of_mma,) = (re.findall(rf" {name} = (\d+);", source) for name in ("BK_BYTES", "MMA_K_BYTES"))
    assert int(bytes_of_tile) // int(bytes_of_mma) == tma.K_STEPS
    tiles = tma.started()
    for k_tile, tile in enumerate(tiles):
        assert tile.landed <= tile.used < tile.multiplied
        if k_tile >= tma.STAGES:
            assert tiles[k_tile - tma.STAGES].free < tile.issued


def test_the_descriptor_of_the_picture_is_that_of_22(read):
    """The kernel sets the bits of the fields' values, and the address those of the first field; no two fields share a bit."""
    printed = {by_address: {bit.thread for bit in read["descriptor", "22"] if bit.col == by_address} for by_address in (0, 1)}
    assert sum(1 << bit for bit in printed[0]) == sum((field.value or 0) << field.first for field in wgmma.FIELDS)
    assert printed[1] == set(range(wgmma.FIELDS[0].last + 1))
    for one, other in itertools.pairwise(wgmma.FIELDS):
        assert one.first <= one.last < other.first


def test_a_k_step_of_22_reads_two_chunks_of_each_row(read, stated):
    assert stated("22") == {"BN": 256, "WM": 64, "BK_BYTES": wgmma.ROW_BYTES, "MMA_K_BYTES": wgmma.STEP_BYTES}
    found = wgmma.places(read)
    assert len(found) == 64
    for row in range(8):
        assert sorted(found[row, place] for place in range(8)) == list(range(8))
        assert found[row, row] == 0, "chunk 0 of row r lies in place r"


def test_accumulators_of_22_are_those_of_its_epilogue(read):
    """Every result once."""
    held = wgmma.held(read)
    assert sorted(held) == sorted(itertools.product(range(64), range(wgmma.COLUMNS)))
    assert len(set(held.values())) == len(held) == len(read["wgmma_c", "22"])
    for (row, col), (thread, register) in held.items():
        assert (row // 16, col // 8) == (thread // 32, register // 4)


def test_sectors_that_a_warp_touches():
    """tests/sim/claims_test.cpp counts the kernels' own."""
    counts = {
        rung: [pictures.sectors(places) for places in pictures.touched(lanes).values()]
        for rung, lanes in pictures.THREAD_MAPS.items()
    }
    assert counts == {"01": [1, 4, 4], "01b": [32, 1, 32]}


def test_a_wrong_line_is_named():
    with pytest.raises(InputError, match="maps:2: expected 8 fields"):
        index_maps.parse(",".join(index_maps.HEADER) + "\nC,03,0,0\n", "maps")
    with pytest.raises(InputError, match="maps:1: expected the header"):
        index_maps.parse("a,b\n", "maps")


def test_a_map_that_an_older_program_does_not_print_is_named():
    printed = index_maps.parse(",".join(index_maps.HEADER) + "\nC,03,0,0,0,,,\n", "maps")
    with pytest.raises(InputError, match="does not print 'ldsm_a' of rung 13: build it anew"):
        printed["ldsm_a", "13"]


def test_the_order_of_clusters_is_as_chapter_25_says(read, stated):
    """Every tile of a cluster once; the first wave's rows and columns; the sizes are those of 25."""
    sizes = dict(zip(("BM", "BN", "WM", "CLUSTER"), (*persistent.BLOCK, persistent.WARPGROUP[0], 2), strict=True))
    counts = {"STAGES": persistent.STAGES, "GROUP_SIZE_M": int(persistent.GROUP), "BUFFERS": persistent.BUFFERS}
    assert stated("25") == sizes | counts
    for group, wave in (("4", (6, 16)), ("8", (8, 9))):
        tiles = read[persistent.RASTER, group]
        assert {(tile.row, tile.col) for tile in tiles} == set(itertools.product(range(16), repeat=2))
        assert persistent.needed(read, group) == wave


@pytest.mark.parametrize("direct", [True, False])
def test_the_schedule_of_25_keeps_its_order(direct):
    """No line does two things at once; a part is written when its buffer is read out, stored when it is written."""
    bars = persistent.schedule(direct)
    for one, other in itertools.combinations(bars, 2):
        assert one.line != other.line or one.end <= other.start or other.end <= one.start
    of = {line: {bar.number: bar for bar in bars if bar.line == line} for line in ("wgmma", "epilogue", "stores")}
    assert sorted(of["wgmma"]) == list(range(2 * persistent.K_TILES))
    if direct:
        return
    assert sorted(of["stores"]) == sorted(of["epilogue"]) == list(range(2 * persistent.PARTS))
    for number, store in of["stores"].items():
        assert of["epilogue"][number].end <= store.start
        if number >= persistent.BUFFERS:
            assert of["stores"][number - persistent.BUFFERS].end <= of["epilogue"][number].start
    assert of["stores"][persistent.PARTS - 1].end > of["wgmma"][persistent.K_TILES].start, "under the next main loop"


def test_the_mbarriers_of_21b(stated):
    """A stage is copied into only after all warps have released it, and a warp reads a k tile only after it has landed."""
    tiles = warp_roles.schedule(warp_roles.WARPS, warp_roles.SLOW_21B)
    assert stated("21b") == {"STAGES": warp_roles.STAGES}
    for k_tile, tile in enumerate(tiles):
        assert tile.landed <= min(tile.begun)
        if k_tile >= warp_roles.STAGES:
            assert max(tiles[k_tile - warp_roles.STAGES].ended) <= tile.asked
    for phase in warp_roles.phases(0, False, tiles):
        assert len(phase.arrivals) == warp_roles.WARPS and phase.start <= phase.arrivals[0] and phase.arrivals[-1] == phase.end


def test_the_mbarriers_of_24():
    """A copy into both blocks waits for the consumers of both, and a consumer for the copies of both."""
    tiles = warp_roles.in_cluster()
    for k_tile, tile in enumerate(tiles):
        assert max(tile.own) == tile.landed <= min(map(min, tile.begun))
        if k_tile >= warp_roles.STAGES:
            assert max(map(max, tiles[k_tile - warp_roles.STAGES].ended)) <= min(tile.asked)


def test_the_descriptors_of_the_picture_are_those_of_47(read):
    """Bits that are set whatever the arguments, and those that each of them sets."""
    printed = {col: {touch.thread for touch in read["descriptor", "47"] if touch.col == col} for col in (0, 1)}
    assert printed[1] == set(range(tensor_memory.SHARED[0].last + 1))
    address = tensor_memory.SHARED[0]._replace(value=0)
    assert sum(1 << bit for bit in printed[0]) == tensor_memory.value([address, *tensor_memory.SHARED[1:]])
    of_22 = {touch.thread for touch in read["descriptor", "22"] if touch.col == 0}
    assert printed[0] - of_22 == {46} and of_22 < printed[0], "chapter 47: one bit more than in 22"
    for fields in (tensor_memory.SHARED, tensor_memory.INSTRUCTION):
        for one, other in itertools.pairwise(fields):
            assert one.last < other.first
    of = {field.name: field for field in tensor_memory.INSTRUCTION}
    for by, name in enumerate(("D", "A", "B", "M / 16", "N / 8")):
        bits = {touch.thread for touch in read["instruction_descriptor", "47"] if touch.col == by}
        assert sum(1 << bit for bit in bits) == of[name].value << of[name].first, name
    assert f"{tensor_memory.value(tensor_memory.SHARED):#x} {tensor_memory.value(tensor_memory.INSTRUCTION):#010x}" == (
        "0x4000404000010400 0x08400490"
    ), "the values in chapter 47"


def test_shapes_of_tcgen05_ld(read):
    """Each place once. Of 16x256b, that of an accumulator of wgmma in 16 rows and 8 columns."""
    held = {(touch.thread, touch.word): (touch.row, touch.col) for touch in read["wgmma_c", "22"]}
    for place, height, width in ((tensor_memory.loaded_32x32b, 32, 4), (tensor_memory.loaded_16x256b, 16, 8)):
        found = {(t, r): place(t, r) for t in range(32) for r in range(tensor_memory.REGISTERS)}
        assert sorted(found.values()) == sorted(itertools.product(range(height), range(width)))
    assert found == {key: held[key] for key in found}


def test_a_store_of_48_takes_a_wavefront_per_eight_lanes(read):
    """Its chunk lies in eight places of eight rows with the swizzle, and in one without."""
    swizzled = wgmma.places(read)
    for stored in range(8):
        assert len({place for (_, place), chunk in swizzled.items() if chunk == stored}) == 8
    texts = [text.text for text in tensor_memory.transposition(read).texts]
    assert "8 lanes, 8 places: 1 wavefront" in texts and "8 lanes, 1 place: 8 wavefronts" in texts


@pytest.mark.parametrize("schedule", [tensor_memory.one_lane, tensor_memory.roles])
def test_no_stage_of_47_and_49_is_copied_into_before_it_is_multiplied(schedule):
    bars = schedule()
    for one, other in itertools.combinations(bars, 2):
        assert one.line != other.line or one.end <= other.start or other.end <= one.start, (one, other)
    multiplied = {bar.k_tile: bar for bar in bars if bar.line == "tensor cores"}
    copies = {bar.k_tile: bar for bar in bars if bar.text.startswith("copy")}
    assert sorted(multiplied) == sorted(copies) == list(range(tensor_memory.K_TILES * tensor_memory.TILES_OF_C))
    for k_tile, copy in copies.items():
        assert copy.end <= multiplied[k_tile].start
        if k_tile >= tensor_memory.STAGES:
            assert multiplied[k_tile - tensor_memory.STAGES].end < copy.start
    stores = [bar for bar in bars if bar.line == "epilogue" and bar.k_tile >= 0]
    for bar in stores:
        assert multiplied[bar.k_tile].end < bar.start
        assert bar.k_tile + 1 not in multiplied or multiplied[bar.k_tile + 1].start > bar.start


def test_the_gap_after_each_k_tile_is_gone_in_49():
    """But for the one of an epilogue."""
    before, after = tensor_memory.gaps(tensor_memory.one_lane()), tensor_memory.gaps(tensor_memory.roles())
    assert all(gap > 0 for gap in before)
    assert [number for number, gap in enumerate(after) if gap > 0] == [tensor_memory.K_TILES - 1]
    assert after[tensor_memory.K_TILES - 1] < before[tensor_memory.K_TILES - 1]
