"""The figures of the order of operations: the kernels' order, and the stages that the kernels' own formulas give."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from plots.maps import timelines

ROOT = Path(__file__).parents[2]
STEMS = {path.stem.partition("_")[0]: path for path in (ROOT / "kernels").glob("*.cu")}
OPERATIONS = {  # what each operation looks like in a main loop
    "load": r"next(?:A)?\[i\] = load",
    "store": r"sA\[a_k \+ 0\]|store16<type>\(&(?:sA|smem)|store_tile\(",
    "barrier": r"__syncthreads\(\)",
    "wait": r"cp_async_wait_group<",
    "copy": r"copy_tile\(|(?<!next_)copy\(write_stage_bytes",
    "ldmatrix": r"ldmatrix_x4\(rA|load_fragments\(k_step",
    "compute": r"acc\[i\]\[j_serpentine\] \+=|Operand<type>::mma\(",
}


def main_loop(rung: str) -> str:
    text = STEMS[rung].read_text(encoding="utf-8")
    return text[text.index("// 3. main loop") : text.index("// 4. epilogue")]


def in_source(rung: str) -> list[str]:
    """The operations in the order of a main loop's text; the two branches of a load are one."""
    found = sorted((match.start(), name) for name, form in OPERATIONS.items() for match in re.finditer(form, main_loop(rung)))
    names = [name for _, name in found]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def is_subsequence(some: list[str], all_of_them: list[str]) -> bool:
    rest = iter(all_of_them)
    return all(name in rest for name in some)


@pytest.mark.parametrize("rung", timelines.SCHEDULES)
def test_the_order_is_that_of_the_kernel(rung):
    source = in_source(rung)
    for steps in timelines.SCHEDULES[rung]().log.values():
        assert all(is_subsequence(step, source) for step in steps), f"{steps}, in the kernel {source}"
        assert {name for step in steps for name in step} == set(source)
    if rung not in ("13", "14"):  # without steps an iteration is the loop's text
        assert steps == [source]


@pytest.mark.parametrize("rung", ["07", "11", "13", "14"])
def test_the_stages_are_those_of_the_kernels_formulas(rung, tmp_path):
    """The expressions are cut out of the kernel, compiled for the host and run for as many k tiles as are drawn."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("no C++ compiler")
    text = STEMS[rung].read_text(encoding="utf-8")
    stages = timelines.SCHEDULES[rung]().stages
    if rung == "14":
        next_stage, write = (
            re.search(rf"const uint32_t {name}_stage_bytes =\s*(.*?);", text, re.S)[1] for name in ("next", "write")
        )
        count = re.search(r"int STAGES = (\d+);", text)[1]
        tile = f"struct Tile {{ static constexpr int STAGE_BYTES = 128, SMEM_BYTES = {count} * STAGE_BYTES; }};"
        step = f'std::printf("%d %d\\n", read_stage_bytes / 128, ({write}) / 128); read_stage_bytes = {next_stage};'
        start = "int read_stage_bytes = 0;"
    else:
        write = re.search(r"(?:store|copy)_tile\((read_stage[^,)]*)", main_loop(rung))[1]
        turn = re.search(r"^ *(read_stage .*;)$", main_loop(rung), re.M)[1]
        tile, start = "", re.search(r"int read_stage = 0;", text)[0]
        step = f'std::printf("%d %d\\n", read_stage, {write}); {turn}'
    program = tmp_path / "stages.cpp"
    loop = f"for (int k_tile = 0; k_tile < {len(stages)}; ++k_tile) {{ {step} }}"
    program.write_text(f"#include <cstdio>\n{tile}\nint main() {{ {start} {loop} }}\n")
    subprocess.run([compiler, "-std=c++20", program, "-o", tmp_path / "stages"], check=True)
    said = subprocess.run([tmp_path / "stages"], capture_output=True, text=True, check=True).stdout.split("\n")
    assert [f"{read} {written}" for read, written in stages.values()] == said[:-1]


@pytest.mark.parametrize("rung", ["07", "11", "13", "14"])
def test_no_stage_is_written_while_it_is_read(rung):
    schedule = timelines.SCHEDULES[rung]()
    assert all(read != written for read, written in schedule.stages.values())
    ahead = 2 if rung == "14" else 1
    for tile, (_, written) in schedule.stages.items():
        assert schedule.stages.get(tile + ahead, (written,))[0] == written, "what is copied now is read then"


def test_constants_of_14_are_the_kernels():
    text = STEMS["14"].read_text(encoding="utf-8")
    assert f"int STAGES = {timelines.STAGES_14};" in text and f"int COPY_STEPS = {timelines.COPY_STEPS_14};" in text
    assert timelines.STAGE_BYTES_14 == (256 + 128) * 128 and "using Large = TileConfig<256, 64>" in text
    bytes_of = dict(re.findall(r"int (\w+_BYTES) = (\d+);", text))
    assert int(bytes_of["BK_BYTES"]) // int(bytes_of["MMA_K_BYTES"]) == timelines.STEPS


def busy(schedule, line):
    return sorted((bar.start, bar.end) for bar in schedule.bars if bar.line == line and bar.k_tile >= 0)


@pytest.mark.parametrize(("before", "after"), [("06", "07"), ("10", "11")])
def test_loads_overlap_with_the_multiplication_only_in_the_later_rung(before, after):
    def overlaps(rung):
        schedule = timelines.SCHEDULES[rung]()
        flights, math = (busy(schedule, line) for line in (timelines.FLIGHT, timelines.MATH))
        return any(a < d and c < b for a, b in flights for c, d in math)

    assert not overlaps(before) and overlaps(after)


def test_13_waits_in_every_k_tile_and_14_only_before_the_first():
    waits = {rung: [bar for bar in timelines.SCHEDULES[rung]().bars if bar.text == "waits"] for rung in ("13", "14")}
    assert len(waits["13"]) == len(timelines.SCHEDULES["13"]().log) and len(waits["14"]) == 1


def test_every_picture_says_that_it_is_no_measurement():
    for name, drawing in timelines.figures().items():
        assert any("rder, not to scale" in text.text for text in drawing.texts), name


def test_two_blocks_take_turns():
    """No two blocks multiply at once, and one multiplies while the other waits."""
    offset = (timelines.WAIT + timelines.PUT + timelines.FMAS) / 2
    of = [list(timelines.phases(offset * block, 40)) for block in (0, 1)]
    for start, end, phase, _ in of[0]:
        if phase == 2:
            others = [(a, b, p) for a, b, p, _ in of[1] if a < end and b > start]
            assert others and all(p != 2 for _, _, p in others) and any(p == 0 for _, _, p in others)
