"""The map of wins: its table and its picture, of made-up times."""

import csv
import json
import math

import pandas as pd
import pytest
from synthetic import OTHER, stated, tensor_row, write_rows

from plots.data.rungs import parse
from plots.data.units import Shape
from plots.documents import chapters, front
from plots.documents.chapters import NOT_YET
from plots.documents.numbers import GPU
from plots.errors import InputError
from plots.figures import style
from plots.figures import wins as figure
from plots.tables import wins

FACTS = parse(json.dumps(stated()), "the tests")


def write(path, **changed):
    made = []
    for sitting, factor in enumerate((0.9, 1.0, 1.3), 1):
        for size, best in ((512, 0.5), (4096, 1.0), (8192, 2.0)):
            for kind, out in (("bf16", "same"), ("tf32", "f32")):
                of = {
                    "type": kind,
                    "out": out,
                    "sitting": sitting,
                    "ratio_best": best * factor,
                    "ratio_cublas": 2 * best * factor,
                }
                made.append(tensor_row("33_cost_model", 0.8, Shape(size, size, size)) | of | changed)
    return write_rows(path, made)


def test_medians_over_sittings_and_means_over_shapes(tmp_path):
    found = wins.read(write(tmp_path / "map.csv"), FACTS)
    assert list(dict.fromkeys(found["type"])) == ["tf32", "bf16"], "the ladder's order, not the file's"
    assert len(found) == 6 and set(found["results"]) == {"bf16", "f32"}
    assert sorted(set(found["ratio_best"])) == [0.5, 1.0, 2.0]
    assert math.isclose(wins.mean(found["ratio_best"]), 1.0)
    text = wins.grid(found).markdown()
    assert "| bf16 | bf16 | 3 | 1.00 | 2.00 | 0.50, 512³ | 1 | 2 |" in text


def test_results_of_fp8_with_the_same_type_are_bf16(tmp_path):
    row = {"type": "e4m3", "out": "same", "sitting": 1, "ratio_best": 1.0, "ratio_cublas": 1.0}
    rows = [tensor_row("33_cost_model", 0.8, Shape(512, 512, 512)) | row]
    found = wins.read(write_rows(tmp_path / "map.csv", rows), FACTS)
    assert list(found["results"]) == ["bf16"]


def test_the_first_page_says_how_often_it_loses_and_where(tmp_path):
    write(tmp_path / "bench/recorded" / GPU / "map.csv")
    said, head, _, tf32, bf16, source = front.where_it_loses(tmp_path, FACTS).replace("\n\n", "\n").splitlines()
    assert said == "2 of 6 products reach less than 0.95 of the best library: 2 of 6 that are square."
    assert head.endswith("| least, at | under 0.95 |")
    assert (tf32, bf16) == tuple(f"| 33: {what} | 1.00 | 0.50, 512³ | 1 of 3 |" for what in ("TF32, FP32 results", "BF16"))
    assert source == "*Synthetic GPU 9000, 2001-02-03.*"
    assert front.where_it_loses(tmp_path / "nowhere", FACTS) == NOT_YET


def test_of_several_rungs_the_last_is_shown(tmp_path):
    path = write(tmp_path / "map.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    earlier = [row | {"kernel": "31_split_k_grid", "ratio_best": "0.1"} for row in rows]
    both = wins.read(write_rows(path, [*earlier, *rows]), FACTS)
    assert set(both["kernel"]) == {"33_cost_model"} and len(both) == 6 and both["ratio_best"].min() == 0.5


def test_the_folder_of_another_card(tmp_path):
    write(tmp_path / "bench/recorded" / OTHER / "map.csv")
    assert chapters.won(tmp_path, FACTS, "../") == front.where_it_loses(tmp_path, FACTS) == NOT_YET
    text = chapters.won(tmp_path, FACTS, "../", OTHER)
    assert "| 33 | bf16 |" in text and "wins.svg" not in text and f"bench/recorded/{OTHER}/map.csv" in text
    assert "| 33: BF16 |" in front.where_it_loses(tmp_path, FACTS, OTHER)


def test_rows_that_were_not_timed_count_for_nothing(tmp_path):
    assert wins.read(write(tmp_path / "map.csv", status="waived"), FACTS).empty


def test_a_column_that_is_missing_is_named(tmp_path):
    path = write(tmp_path / "map.csv")
    pd.read_csv(path).drop(columns="ratio_best").to_csv(path, index=False)
    with pytest.raises(InputError, match="ratio_best"):
        wins.read(path, FACTS)


@pytest.mark.parametrize(
    ("shape", "of"),
    [
        ((4096, 4096, 4096), "square"),
        ((1000, 1000, 1000), "beside tiles"),
        ((16, 4096, 4096), "few rows or columns"),
        ((512, 512, 16384), "long or short k"),
        ((4096, 6144, 4096), "large, not square"),
    ],
)
def test_groups(shape, of):
    assert figure.group(Shape(*shape)) == of


def test_the_picture_has_every_ratio(tmp_path):
    text = style.svg(figure.draw(wins.read(write(tmp_path / "map.csv"), FACTS)), "made up")
    assert all(label in text for label in ("512³", "4096³", "8192³", "0.50", "2.00", "tf32, f32"))
