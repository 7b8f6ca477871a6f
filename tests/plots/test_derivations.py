"""What chapters derive by more than an expression: the plan of 18f, constants of a kernel."""

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
}


@pytest.fixture
def derived(tmp_path):
    """Of synthetic results, whose last rung is 33 and states constants."""
    folder = synthetic.write_folder(tmp_path)
    stated = synthetic.stated()
    stated["rungs"][-1] |= {"number": "33", "constants": CONSTANTS}
    (folder / "rungs.json").write_text(json.dumps(stated))
    return functions(load(folder))


def test_constants_are_those_that_the_rung_states(derived):
    constant = derived["constant"]
    assert [constant("33", "start"), constant("33", "k_tile"), constant("33", "k_tile", "Deep")] == [14400, 1790, 1040]
    assert 1 / constant("33", "add_byte") == 11.5
    with pytest.raises(InputError, match="33 states no 'add_byte' of Large"):
        constant("33", "add_byte", "Large")


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
