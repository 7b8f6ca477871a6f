"""What chapters derive by more than an expression: the plan of 18f, constants of a kernel, bytes per clock of a sweep."""

import json
import math

import pytest
import synthetic

from plots.data.results import load
from plots.data.stream_k import SMS, plan_of_18f, splits_of_17f, stream_k_of_18f
from plots.data.units import Shape
from plots.documents.derivations import functions
from plots.errors import InputError

CONSTANTS = {
    "Large": {"start": 14400, "k_tile": 1790},
    "Deep": {"start": 14400, "k_tile": 1040, "add_byte": 1 / 11.5},
    "cost": {"LAUNCH_US": 4.9},
    "p128x192": {"bm": 128, "bn": 192, "cluster_m": 2, "cluster_n": 1, "fixed": 7331},
}


@pytest.fixture
def derived(tmp_path):
    """Of synthetic results, whose last rung is 26 and states constants."""
    folder = synthetic.write_folder(tmp_path)
    stated = synthetic.stated()
    stated["rungs"][-1] |= {"number": "26", "constants": CONSTANTS}
    (folder / "rungs.json").write_text(json.dumps(stated))
    return functions(load(folder))


def test_constants_are_those_that_the_rung_states(derived):
    constant = derived["constant"]
    assert [constant("26", "start"), constant("26", "k_tile"), constant("26", "k_tile", "Deep")] == [14400, 1790, 1040]
    assert 1 / constant("26", "add_byte") == 11.5
    with pytest.raises(InputError, match="26 states no 'add_byte' of Large"):
        constant("26", "add_byte", "Large")


@pytest.mark.parametrize(("height", "clocks_per_k_tile", "bytes_per_k_tile"), [("p128x192", 1280, (128 / 1 + 192 / 2) * 128)])
def test_bytes_per_clock_are_those_of_a_k_tile_that_copies_limit(derived, tmp_path, height, clocks_per_k_tile, bytes_per_k_tile):
    waves, k_tiles, mhz = math.ceil(math.ceil(5128 / 256) * math.ceil(5112 / 192) / 66), math.ceil(2056 / 64), 1000.0
    ms = ((waves * k_tiles * clocks_per_k_tile + 7331) / mhz + 4.9) / 1e3
    file = tmp_path / "sweep_26.csv"
    file.write_text(f"kernel,m,n,k,median_ms,clock_mhz\n26_{height},5128,5112,2056,{ms},{mhz}\n26_{height},4096,4096,2056,1,1\n")
    assert derived["split_rows"]() == [pytest.approx(bytes_per_k_tile / clocks_per_k_tile)]
    file.write_text(f"kernel,m,n,k,median_ms,clock_mhz\n26_{height},5128,5112,2056,{ms / 2},{mhz}\n")
    assert derived["split_rows"]() == [], "the tensor cores limit it"


def test_one_wave_of_whole_tiles_is_left_as_it_is():
    assert plan_of_18f(Shape(SMS * 128, 256, 4096)) == (False, splits_of_17f(Shape(SMS * 128, 256, 4096), 1))


def test_a_plan_with_stream_k_is_as_long_as_its_longest_work_unit():
    """50 tiles of 256 k tiles: 12,800 for 132 blocks, 97 at most, and a tile in the work of up to four blocks."""
    assert stream_k_of_18f(50, 256, 0) == 6300 + 97 * 2700 + 16000 + 2 * 2000
    assert plan_of_18f(Shape(1280, 1280, 2048)) == (True, 288200)
    assert plan_of_18f(Shape(3072, 3072, 3072))[0] is False, "splits are within 2 %"


def test_few_tiles_are_split():
    stream_k, clocks = plan_of_18f(Shape(1024, 1024, 1024))
    assert (stream_k, round(clocks)) == (False, 107852)


def test_without_a_rest_there_is_nothing_to_share():
    assert stream_k_of_18f(2 * SMS, 64, 2) == math.inf
