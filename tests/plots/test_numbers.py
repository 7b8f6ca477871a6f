"""Numbers and claims beside their sentence: filled, found stale, found untrue; and those of this checkout hold."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import synthetic
from synthetic import OTHER, all_rows, write_folder, write_rows

from plots.__main__ import main
from plots.data.units import Shape
from plots.documents import markers
from plots.documents.expressions import define, evaluate, untrue
from plots.documents.markers import Untrue, fill, written
from plots.documents.numbers import GPU, Numbers, Recording
from plots.errors import InputError

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "bench/recorded" / GPU / "rungs.json"
DOCUMENTS = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if "<!--" in path.read_text("utf-8"))


@pytest.fixture
def recording(tmp_path):
    write_folder(tmp_path / "bench/recorded" / GPU)
    return Recording(tmp_path)


@pytest.fixture
def numbers(recording):
    return Numbers(recording, type="f32")


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (2.345, "1.25", "2.35"),
        (2.675, "3", "3"),
        (1234567.4, "98,765", "1,234,567"),
        (1234.5, "999", "1234"),
        (-7.06, "−1.4", "−7.1"),
        (7.06, "+1.4", "+7.1"),
        (-0.4, "3", "0"),
        (-2, "3", "−2"),
        (-2, "-3", "-2"),
    ],
)
def test_a_number_keeps_the_form_of_the_old_one(value, like, text):
    assert written(value, like) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "12", None])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="no number"):
        written(value, "1")


def test_numbers_are_filled_where_they_stand(numbers):
    text = (
        "# 1\n<!--: two(x) = 2 * x -->\n<!--: four = two(2) -->\n| **3<!--= four --> times** | `1,000`<!--= 1e3 * four --> |\n"
        "from 1.5<!--= four / 3 --> to −3<!--= -four -->.<!--? four > 3 -->\n"
    )
    found = fill(text, numbers)
    assert "| **4<!--= four --> times** | `4,000`<!--= 1e3 * four --> |" in found.text
    assert "from 1.3<!--= four / 3 --> to −4<!--= -four -->." in found.text
    assert found.stale[0] == "4: 3 is now 4: four" and len(found.stale) == 4
    assert fill(found.text, Numbers(numbers.recording)).stale == []


def test_text_in_fences_and_generated_blocks_is_left_alone(numbers):
    text = "```\n1<!--= 2 -->\n```\n<!-- generated: x -->\n1<!--= 2 -->\n<!-- end generated -->\n1<!--= 2 -->\n"
    assert fill(text, numbers).stale == ["7: 1 is now 2: 2"]


def test_a_claim_that_does_not_hold_says_what_was_compared(numbers):
    text = "07 is slower than 08.<!--? tflops('08') > 1 and tflops('07') > tflops('08') -->\n"
    (why,) = fill(text, numbers).stale
    assert isinstance(why, Untrue)
    assert re.fullmatch(
        r"1: does not hold: tflops\('07'\) > tflops\('08'\) \(tflops\('07'\) is 46\.\d+, tflops\('08'\) is 50\.\d+\)", why
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("so <!--= 1 -->", "1: no number before <!--= 1 -->"),
        ("a\n1<!--= 1 + -->", "2: '1 +' is no expression"),
        ("1<!--= ratioo('04') -->", "there is no 'ratioo'; the nearest is ratio"),
        ("1<!--= ratio('44') -->", "there is no rung '44'"),
        ("1<!--= cell('04', 'gflop') -->", "gflop"),
        ("1<!--= recorded('ladder.csv', 'gflops', kernal='04') -->", "no column 'kernal'; the nearest is kernel"),
        ("1<!--= recorded('leader.csv', 'gflops') -->", "there is no leader.csv"),
        ("1<!--= ceiling('l3') -->", "there is no ceiling 'l3'"),
        ("1<!--= 1 / 0 -->", "division by zero"),
        ("1<!--= 'a'.upper() -->", "Attribute has no place in a marker"),
        ("1<!--= __import__('os') -->", "there is no '__import__'"),
        ("1<!--= 1", "a marker without its end"),
        ("1<!--= 1 --1 -->", "GitHub would show"),
        ("a<!--? 1 + 1 -->", "neither true nor false"),
        ("<!--: ratio = 1 -->", "'ratio' is defined already"),
        ("<!--: type=f31 -->", "there is no type 'f31'"),
        ("<!--: size=big -->", "size=big"),
        ("<!--: gpu=nvidia-h201 -->", "there is no folder 'nvidia-h201' in"),
    ],
)
def test_a_marker_that_cannot_be_read_is_one_line_with_its_place(numbers, text, said):
    with pytest.raises(InputError) as caught:
        fill(text + "\n", numbers)
    assert said in str(caught.value) and re.match(r"\d+: ", str(caught.value)) and "\n" not in str(caught.value)


def test_a_call_without_a_type_says_where_to_write_it(recording):
    with pytest.raises(InputError, match="of which type"):
        Numbers(recording).evaluate("ratio('04')")


@pytest.fixture
def other(recording):
    """A second card: twice as fast as the first, with fewer SMs, a ceiling of its own and a file that the first does not have."""
    doubled = [one | {"gflops": 2 * one["gflops"], "median_ms": one["median_ms"] / 2, "ratio_cublas": 0.5} for one in all_rows()]
    folder = write_folder(recording.root / "bench/recorded" / OTHER, doubled)
    environment = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(environment | {"sm_count": 114}))
    (folder / "ceilings.csv").write_text("name,value,unit\nfp32_fma,51000,GFLOP/s\n")
    write_rows(folder / "more.csv", [synthetic.row("04_thread_tile_2d", Shape(64, 64, 64), clock_mhz=1234)])
    return folder


def test_a_document_chooses_its_card(recording, other):
    """For all that a marker can ask, and for what is defined above the line, too; until another line says otherwise."""
    asked = "<!--= tflops('04') --> 0.00<!--= ratio('04') --> 0<!--= ceiling('fp32_fma') --> 0<!--= environment('sm_count') --> "
    asked += "0<!--= sms --> 0.0<!--= twice('04') --> 0.000<!--= whole(4096) -->"
    text = "<!--: type=f32 -->\n<!--: twice(rung) = 2 * tflops(rung) -->\n<!--: whole(m) = efficiency(m, '128x256x8') -->\n"
    text += f"0.0{asked}\n<!--: gpu={OTHER} -->\n0.0{asked} 0<!--= recorded('more.csv', 'clock_mhz', kernel='04') -->\n"
    text += "a.<!--? words('more.csv', 'type') == ['f32'] and every('more.csv', 'm') == [64] -->\n"
    text += "b.<!--? steady('04', 'clock_mhz') == 1900 -->\n"
    text += f"<!--: gpu={GPU} -->\n0.0{asked}\n"
    found = fill(text, Numbers(recording)).text
    shown = [re.sub(r"<!--.*?-->", "", line).split() for line in found.splitlines() if line[0].isdecimal()]
    own = ["26.0", "0.52", "65000", "132", "132", "51.9", "0.970"]
    assert shown[0] == shown[2] == own
    assert shown[1] == ["51.9", "0.50", "51000", "114", "114", "103.8", "0.898", "1234"]
    assert fill(found, Numbers(recording)).stale == []


def test_a_document_waits_for_a_file_of_its_card(recording, other, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"<!--: gpu={OTHER} type=f32 needs=power.csv -->\n9.99<!--= ratio('04') -->\n")
    assert markers.update(page, recording, check=False) == []
    assert "left as it is" in capsys.readouterr().err and "9.99<" in page.read_text()
    shutil.copy(other / "more.csv", other / "power.csv")
    assert markers.update(page, recording, check=False) == ["2: 9.99 is now 0.50: ratio('04')"]
    assert "\n0.50<" in page.read_text()


def test_definitions_and_relations():
    names = {}
    define("double(x, *more) = 2 * x + sum(more)", names)
    define("of = {'a': [1, 2]}", names)
    assert evaluate("double(of['a'][1], 1, 1)", names) == 6
    assert untrue("1 < 2 and max([x for x in of['a']]) == 2", names) == ""
    assert untrue("1 < 2 and double(1) == 3", names) == "double(1) == 3 (double(1) is 2)"


def test_the_command_says_what_an_expression_yields(recording, capsys):
    assert main(["number", "round(ratio('04'), 2)", "--type", "f32", "--root", str(recording.root)]) == 0
    assert capsys.readouterr().out == f"{synthetic.RATIOS['04_thread_tile_2d']}\n"
    assert main(["number", "--root", str(recording.root)]) == 0
    assert "gain(rung, before, size, type): How many times" in capsys.readouterr().out
    assert main(["number", "gian('04', '03')", "--root", str(recording.root)]) == 2
    assert capsys.readouterr().err.endswith("the nearest is gain\n")


@pytest.fixture(scope="module")
def checked():
    return Recording(ROOT)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_numbers_and_claims_of_a_document_hold(path, checked):
    assert markers.update(path, checked, check=True) == [], "python3 -m plots docs fills numbers"


@pytest.fixture
def copy(tmp_path):
    """A checkout of links, with two chapters and recorded results of its own."""
    for entry in ROOT.iterdir():
        if entry.name not in ("docs", "bench", "README.md") and not entry.name.startswith("."):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "docs").mkdir()
    for chapter in ("04_thread_tile_2d", "23_warp_specialized"):
        shutil.copy(ROOT / f"docs/{chapter}.md", tmp_path / "docs")
    shutil.copytree(ROOT / "bench/recorded", tmp_path / "bench/recorded")
    return tmp_path


def docs(root: Path, *more: str) -> int:
    return main(["docs", "--root", str(root), "--rungs", str(FACTS), *more])


def test_a_sentence_said_otherwise_makes_nothing_stale(copy):
    chapter = copy / "docs/23_warp_specialized.md"
    before = chapter.read_text(encoding="utf-8")
    after = re.sub(r"^[^|<\n]*? (\S+<!--= )", r"Said in other words, it is \1", before, flags=re.MULTILINE)
    chapter.write_text(after, encoding="utf-8")
    assert after.count("Said in other words") > 1
    assert markers.update(chapter, Recording(copy), check=True) == []


def test_a_changed_row_of_the_ladder_is_rendered_by_one_command(copy, capsys):
    ladder = copy / "bench/recorded" / GPU / "ladder.csv"
    rows = list(csv.DictReader(ladder.read_text(encoding="utf-8").splitlines()))
    for row in rows:
        if row["kernel"] == "04_thread_tile_2d" and row["m"] == "4096" and row["ratio_cublas"]:
            row["ratio_cublas"] = "0.617"
    with ladder.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    assert docs(copy) == 0
    changed = capsys.readouterr().out
    assert re.search(r"^updated: docs/04_thread_tile_2d\.md:\d+: 0\.60 is now 0\.62: ratio\('04'\)$", changed, re.MULTILINE)
    assert "04 reaches more: 0.62<!--=" in (copy / "docs/04_thread_tile_2d.md").read_text(encoding="utf-8")
    assert docs(copy, "--check") == 0
