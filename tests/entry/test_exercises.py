"""The exercises: the answers pass, and plausible wrong ones get the message that is meant for them. On the simulator."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.checkout import ROOT, needs_simulator, one_line, run_all
from tools import exercise

EXERCISES = {one.number: one for one in exercise.exercises()}


@dataclass(frozen=True)
class Answer:
    """Lines for some holes of an exercise; the others have the rung's own lines."""

    exercise: str
    message: str = ""  # a regular expression for what the checker says; "" for an answer that is right
    holes: tuple[tuple[str, str], ...] = ()
    says: str = ""  # likewise, what it says of the program's run; "" for an answer that is not built, only looked at


def swizzle(place: str, message: str = "", says: str = "") -> Answer:
    line = f"constexpr LADDER_HOST_DEVICE int swizzle_128b(int row, int chunk) {{ return {place}; }}\n"
    return Answer("1", message, (("swizzle", line),), says)


def fragments(message: str, says: str = "", **maps: str) -> Answer:
    lines = EXERCISES["2"].answers["fragments"]
    for name, place in maps.items():
        lines, places = re.subn(rf"({name}\(int lane, int r\)) .*", rf"\1 {{ return {{{place}}}; }}", lines)
        assert places == 1
    return Answer("2", message, (("fragments", lines),), says)


def wait(message: str, *lines: str, says: str = "") -> Answer:
    """Of 14's main loop, in the last step of a k tile."""
    text = "".join(f"  {line};\n" for line in lines)
    return Answer("3", message, (("wait", f"if (k_step == K_STEPS - 1) {{\n{text}}}\n"),), says)


def descriptor(message: str, address: str = "tile >> 4", stride: int = 64, swizzle: int = 1, says: str = "") -> Answer:
    value = f"{address} | uint64_t{{{stride}}} << 32 | uint64_t{{{swizzle}}} << 62"
    line = f"__device__ __forceinline__ uint64_t descriptor(uint32_t tile) {{ return {value}; }}\n"
    return Answer("4", message, (("descriptor", line),), says)


def fix_up(hole: str, line: str, message: str, says: str = "") -> Answer:
    return Answer("5", message, ((hole, line),), says)


def phases(hole: str, message: str, *lines: str, says: str = "") -> Answer:
    return Answer("6", message, ((hole, "".join(f"{line}\n" for line in lines)),), says)


def elect(hole: str, message: str, *changes: tuple[str, str], says: str = "") -> Answer:
    """Of 47's lines in a hole, with some text replaced."""
    lines = EXERCISES["7"].answers[hole]
    for old, new in changes:
        assert old in lines
        lines = lines.replace(old, new)
    return Answer("7", message, ((hole, lines),), says)


SEND = "st_async4(mapa(place(split, owner, i, k), owner), acc[i][j], mapa(arrived, owner));"


def cluster(hole: str, message: str, line: str, says: str = "") -> Answer:
    return Answer("8", message, ((hole, f"{line}\n" if line else ""),), says)


def lanes(address: str, message: str, *after: str, before: str = "", says: str = "") -> Answer:
    lines = [before, "float x[8];", f"tcgen05_ld_32x32b_x8(x, {address});", *(after or ["tcgen05_wait_ld(x);"])]
    return Answer("10", message, (("tensor-memory", "".join(f"{line}\n" for line in lines if line)),), says)


def promotion(message: str, *changes: tuple[str, str], says: str = "") -> Answer:
    """Of 42's lines, with some text replaced."""
    lines = dict(EXERCISES["9"].answers)
    for old, new in changes:
        (name,) = (name for name, text in lines.items() if old in text)
        lines[name] = lines[name].replace(old, new)
    return Answer("9", message, tuple(lines.items()), says)


RIGHT = [Answer(number) for number in EXERCISES]
OTHER = [
    swizzle("row * 128 + (chunk ^ (7 - row % 8)) * 16"),  # not the rung's, and right
    descriptor(""),
    lanes("acc + (warp << 21 | j)", ""),
    elect("set-up", "", ("__syncwarp();", "__syncthreads();")),
]
WRONG = [
    wait("there are 2 barriers per k tile", "__syncthreads()", "cp_async_wait_group<1>()", "__syncthreads()"),
    swizzle(
        "row * 128 + chunk * 16",
        "does not depend on the row.* takes 8 wavefronts",
        r"57,344 of them conflicts\. 13 has 12,288 and 0",
    ),
    swizzle(
        "row * 128 + (chunk + row) % 8 * 16",
        "a sum carries from bit to bit, an XOR does not",
        "the result is wrong: .* elements wrong",
    ),
    swizzle("row * 128 + (chunk ^ row / 2 % 4) * 16", "in only 4 of the 8 columns.* 2 of them share four banks"),
    swizzle("row * 128 + (chunk | row % 8) * 16", "both lie at byte .*: the later copy overwrites the earlier one"),
    swizzle("row * 128 + (chunk ^ row / 8 % 8) * 16", "may depend on row % 8 alone"),
    swizzle("row * 128 + (chunk ^ row) * 16", "Chunk 0 of row 8 lies at byte 1152, but the row has the bytes 1024 to 1151"),
    fragments(
        r"A, register 1: this is the map of register 2\. For rows 8 to 15, words 0 to 3 mma\.sync gets rows 0 to 7, words 4 to 7",
        mma_a="lane / 4 + r / 2 * 8, lane % 4 + r % 2 * 4",
        says="the result is wrong: .* elements wrong",
    ),
    fragments(
        r"C, register 1: lane 0 holds row 0, column 4 where mma\.sync takes row 0, column 1",
        mma_c="lane / 4 + r / 2 * 8, lane % 4 + r % 2 * 4",
        says="it failed: misaligned address",
    ),
    fragments(
        r"^B, register 0: together the lanes hold the right places .* lane 1 holds column 1, word 0 where mma\.sync takes col",
        mma_b="lane % 8, lane / 8 + r * 4",
    ),
    fragments(r"So no lane holds rows 8 to 15, words 0 to 7 of A", mma_a="lane / 4, lane % 4 + r / 2 * 4"),
    fragments(r"A has 16 rows and 8 words: there is no row \d+, word 8", mma_a="lane / 4 + r % 2 * 8, lane % 4 * 2 + r / 2 * 4"),
    wait("no barrier follows the wait", "__syncthreads()", "cp_async_wait_group<STAGES - 2>()", says="it failed"),
    wait("the pipeline runs dry: after wait_group<0>", "cp_async_wait_group<0>()", "__syncthreads()"),
    wait(
        "wait_group<2> lets the 2 youngest groups be, and theirs is number 2 from the youngest",
        "cp_async_wait_group<STAGES - 1>()",
        "__syncthreads()",
        says="it failed: .*still under way",
    ),
    wait("k tile 1 are loaded while its copies may still be under way: nobody waits for them"),
    Answer("3", "k tile 0 are loaded while its copies may still be under way: nobody waits for them", (("first-wait", ""),)),
    descriptor(
        "stride offset: they hold 8. wgmma looks for row 8 of the tile 128 bytes after row 0, which is row 1",
        stride=8,
        says="the result is wrong: .* elements wrong",
    ),
    descriptor(
        "Bits 62 and 63, the swizzle: they hold 0, which means none", swizzle=0, says="the result is wrong: .* elements wrong"
    ),
    descriptor("16384 bytes after row 0, so it is 16 times too much", stride=1024),
    descriptor("for a tile at 0x400 they hold 0x400, the address as it is", address="tile"),
    fix_up(
        "adds",
        "const int first_block = blockIdx.x - 1;\n",
        r"Tile 0 has parts of blocks 0, 1 and 2\. Block 2, .*, adds the sums of block 1: the products of block 0 are missing",
        "the result is wrong: .* elements wrong",
    ),
    fix_up("clear", "", "the locks of blocks 2, 3 and 4 still are 1", r"the result is wrong: left \d+ of \d+ locks set"),
    fix_up("wait", "", "added without a wait"),
    fix_up("wait", "while (ld_acquire_gpu(lock_of(first_block)) != 1) {}\n", "does not wait for blocks 3 and 4"),
    fix_up("left", "st_release_gpu(lock_of(blockIdx.x), 1);\n", "set before all 32 lanes of the warp have stored their sums"),
    fix_up("left", "", "Nobody sets the lock"),
    phases(
        "producer-acquire",
        r"k tile 0: it waits for parity 0 of empty.* But k tile 0 is not even copied: the producer waits for ever",
        "mbarrier_wait_parity(empty + state.index * 8, state.phase);",
        says="it failed: ",
    ),
    phases(
        "producer-acquire",
        r"k tile 4: it waits for parity 1 of empty again.* the wait passes while k tile 0 is still being multiplied",
        "mbarrier_wait_parity(empty + state.index * 8, 1);",
        says="it failed: ",
    ),
    phases("producer-acquire", "k tile 4: its copies go into stage 0, which has k tile 0, and no wait"),
    phases(
        "producer-acquire",
        r"it waits on full of stage 0, .* only when the copies that it is about to issue have landed",
        "mbarrier_wait_parity(full + state.index * 8, state.phase ^ 1);",
    ),
    phases(
        "consumer-wait",
        r"k tile 0: it waits for parity 1 of full, the phase before the first.* before anything has landed",
        "mbarrier_wait_parity(full + state.index * 8, state.phase ^ 1);",
        says="it failed: ",
    ),
    phases(
        "consumer-wait",
        r"k tile 4: it waits for parity 0 of full, as for k tile 0.* The parity flips each time the stages have come round",
        "mbarrier_wait_parity(full + state.index * 8, 0);",
    ),
    phases(
        "consumer-wait",
        "some threads do not wait for its copies",
        "if (lane == 0 && warp % 4 == 0) mbarrier_wait_parity(full + state.index * 8, state.phase);",
    ),
    phases(
        "consumer-release",
        r"expects 8 arrivals, and 1 comes per k tile: .* waits for ever before k tile 4",
        "if (multiplied >= 0 && threadIdx.x == 128) mbarrier_arrive(empty + multiplied * 8);",
        says="it failed: ",
    ),
    phases(
        "consumer-release",
        r"expects 8 arrivals, and 256 come per k tile\. It is complete after the first 8: the producer fills the stage again",
        "if (multiplied >= 0) mbarrier_arrive(empty + multiplied * 8);",
    ),
    phases(
        "consumer-release",
        r"arrives on empty of stage 1, the stage whose wgmma it has just issued: .* says that those of k tile 0",
        "if (multiplied >= 0 && lane == 0) mbarrier_arrive(empty + state.index * 8);",
    ),
    phases(
        "consumer-release",
        "arrives on full of stage 3 all the same: that is the mbarrier before empty of stage 0",
        "if (lane == 0) mbarrier_arrive(empty + multiplied * 8);",
    ),
    phases("consumer-release", "Nobody arrives on empty of stage 0 after k tile 0"),
    phases(
        "arrivals",
        r"expects 1 arrival, and 8 come per k tile\. It is complete after the first one: .* other warps still multiply",
        "mbarrier_init(full + stage * 8, 1);",
        "mbarrier_init(empty + stage * 8, 1);",
    ),
    phases(
        "arrivals",
        "A phase of full expects 2 arrivals, and one comes",
        "mbarrier_init(full + stage * 8, 2);",
        "mbarrier_init(empty + stage * 8, Tile::CONSUMERS / 32);",
    ),
    lanes("acc + j", "Warp 1, j = 0: it loads lanes 0 to 31, those of warp 0.* warp 1 lanes 32 to 63", says="it failed: .*warp"),
    lanes("acc + ((warp ^ 1) * 32 << 16) + j", "Warp 0, j = 0: it loads lanes 32 to 63, those of warp 1"),
    lanes("acc + (warp << 16) + j", "Warp 1, j = 0: it loads from lane 1 on"),
    lanes(
        "acc + (warp * 32 << 16) + j * 4", "j = 8: it loads columns 32 to 39 of the tile.* counts columns of 32 bits, not bytes"
    ),
    lanes("(warp * 32 << 16) + j", "in columns 256 to 511: they begin at acc, which is not always 0"),
    lanes(
        "acc + (warp * 32 << 16) + j",
        "j = 0: x is used and nobody has waited for it",
        ";",
        says="it failed: ",
    ),
    Answer(
        "10",
        "Thread 32 of the tile at row 384 stores row 384.* it has the sums of row 416",
        (("row", "const int m = tile_row * BM + threadIdx.x % 32;\n"),),
        "the result is wrong: .* elements wrong",
    ),
    promotion(
        r"Warp 4, lane 0, k tile 0: scale\[1\] has the scale of row 1, .* are in row 8 of the block",
        ("mma_c(lane, half * 2).row", "mma_c(lane, 0).row + half"),
        says="the result is wrong: .* elements wrong",
    ),
    promotion(
        r"Warp 5, lane 0, .* the scale of row 0, .* are in row 16 of the block: row 0 of the warp's 16, whose first is row 16",
        ("(warp - 4) * 16 + ", ""),
    ),
    promotion(
        r"k tile 0: scale\[0\] has the scale of B of k tile 3, and the sum is that of k tile 0",
        ("k_tile % 4", "(k_tile + 3) % 4"),
    ),
    promotion("In k tile 4 a scale is read 16 bytes after scale_b, which has 16", ("k_tile % 4 * 4", "k_tile * 4")),
    promotion(r"scale\[0\] lacks the scale of B", ("load_shared(scale_b + k_tile % 4 * 4)", "1.0F")),
    promotion(
        "In k tile 1 partial also has the sum of k tile 0, and all of it is multiplied by the scales of k tile 1",
        ("k_step > 0);", "k_step > 0 || k_tile % 2 == 1);"),
        ("acc[0][j][e] +=", "if (k_tile % 2 == 1) acc[0][j][e] +="),
        says="the result is wrong: .* elements wrong",
    ),
    promotion("In k tile 1 partial also has the sum of k tile 0", ("k_step > 0);", "1);")),
    promotion("In k tile 0 the products of k step 0 are not in partial: a later wgmma with 0", ("k_step > 0);", "0);")),
    promotion(
        "The sum of k tile 0 is never added to acc: the first wgmma of k tile 1 overwrites it",
        ("acc[0][j][e] +=", "if (k_tile % 2 == 1) acc[0][j][e] +="),
    ),
    promotion(
        "In k tile 0 partial is added to acc while its wgmma are still under way", ("wgmma_wait_group<0>", "wgmma_wait_group<1>")
    ),
    promotion("is multiplied by the scale of the lane's other row.* e / 2 says which", ("scale[e / 2]", "scale[e % 2]")),
    promotion("result 0 of columns 0 to 7 loses the k tiles before", ("+= scale", "= scale")),
    promotion("No lane 0 arrives on empty", ("if (lane == 0) mbarrier_arrive(empty + state.index * 8);", "")),
    cluster("sends", "Block 0 sends part 0, owned by block 0, to itself. Its own partial sums are in acc already", SEND),
    cluster(
        "sends",
        "Block 0 sends part 1, owned by block 1, to itself: an address without mapa",
        "if (owner != split) st_async4(place(split, owner, i, k), acc[i][j], arrived);",
    ),
    cluster(
        "sends",
        "lets an mbarrier of block 0 count the bytes. The one that waits for them is block 1",
        f"if (owner != split) {SEND.replace('mapa(arrived, owner)', 'arrived')}",
    ),
    cluster("sends", "block 0 is sent nothing, and it owns 2 parts", ""),
    cluster("slot", "to a slot that there is not: block 0 has 3 slots, 0 to 2, none for itself", "const int slot = from;"),
    cluster(
        "slot",
        "Blocks 0 and 1 send parts to the same place in block 2: the later ones overwrite",
        "const int slot = 0;",
    ),
    cluster(
        "bytes",
        "block 0 expects 16384 bytes, and 12288 come, 2 parts of 2,048 bytes from each of 3 blocks: it waits for ever",
        "return splits * ((Tile::BN / 8 - split + splits - 1) / splits) * Tile::BM / 64 * 64 * 32;",
        says="it failed: .*deadlock",
    ),
    cluster(
        "bytes",
        "Of 8 blocks with tiles of 64x96, block 0 expects 14336 bytes, and 28672 come.* may end before they are all there",
        "return (splits - 1) * (Tile::BN / 8 / splits) * Tile::BM / 64 * 64 * 32;",
    ),
    cluster("wait", "added without a wait: st_async returns at once", ""),
    cluster("wait", "parity 1 of `arrived`, the phase before the first", "mbarrier_wait_parity_cluster(arrived, 1);"),
    cluster("wait", "has the scope of the block", "mbarrier_wait_parity(arrived, 0);"),
    cluster("adds", "part 0 of block 0 lacks the partial sums of block 1", ""),
    Answer(
        "8",
        "part 0 of block 0 lacks the partial sums of block 3",
        (("adds", EXERCISES["8"].answers["adds"].replace("from < splits;", "from < splits - 1;")),),
    ),
    Answer(
        "8",
        "Block 0 adds four sums from a slot that there is not: it has none for itself",
        (("adds", EXERCISES["8"].answers["adds"].replace("if (from == split) continue;", "")),),
    ),
    elect(
        "issue",
        "issued by all 32 threads: each of them multiplies the whole tile once more",
        ("if (elect_sync()) {", "{"),
        says="it failed: |the result is wrong: ",
    ),
    elect(
        "issue",
        "tcgen05_commit is executed by all 32 threads: that many arrivals come at `multiplied`, which expects one",
        ("  tcgen05_commit(multiplied);\n}", "}\ntcgen05_commit(multiplied);"),
    ),
    elect(
        "issue",
        "Thread 0 commits, and thread 1 has issued the mma",
        ("elect_sync()", "threadIdx.x == 1"),
        ("  tcgen05_commit(multiplied);\n}", "}\nif (elect_sync()) tcgen05_commit(multiplied);"),
    ),
    elect("issue", "Nobody commits: .* waits for ever", ("tcgen05_commit(multiplied);", "")),
    elect(
        "issue",
        r"Only 1 lane of warp 0 executes elect_sync\(\)\. .* all of them have to be there",
        ("elect_sync()", "threadIdx.x == 0 && elect_sync()"),
    ),
    elect(
        "set-up",
        "Only 1 lane of warp 0 executes tcgen05_alloc. It is .aligned: all 32 lanes of a warp execute it together",
        ("__syncwarp();\nif (warp == 0) {", "if (warp == 0 && elect_sync()) {"),
        says="it failed: ",
    ),
    elect(
        "set-up",
        "4 threads initialise the mbarrier full of stage 0, one of each warp",
        ("if (warp == 0 && elect_sync())", "if (elect_sync())"),
    ),
    elect("set-up", "128 threads initialise the mbarrier full of stage 0. One thread", ("if (warp == 0 && elect_sync())", "")),
    elect("set-up", r"tcgen05_alloc is \.aligned: nothing says that the lanes are together again", ("__syncwarp();", "")),
    elect("set-up", "4 warps allocate 256 columns each, and an SM has 512", ("if (warp == 0) {", "{")),
    elect("set-up", r"No __syncthreads\(\) follows: the other warps read `address`", ("__syncthreads();", "")),
    elect("set-up", r"No fence_mbarrier_init\(\) follows", ("fence_mbarrier_init();", "")),
    elect("set-up", "Nobody says that this block allocates no more", ("tcgen05_relinquish_alloc_permit();", "")),
]
ANSWERS = [*RIGHT, *OTHER, *WRONG]
RUN = [answer for answer in ANSWERS if answer in RIGHT or answer.says]
LOOKED_AT = [answer for answer in ANSWERS if answer not in RUN]


def write(answer: Answer, folder: Path, stem: str) -> Path:
    """The learner's file with an answer, as a rung named `stem`."""
    one = EXERCISES[answer.exercise]
    number, _, name = stem.partition("_")
    text = exercise.with_facts(one.filled(one.answers | dict(answer.holes)), stem, {"number": number, "name": name})
    file = folder / f"{stem}.cu"
    file.write_text(text, encoding="utf-8")
    file.with_suffix(".options").write_text(exercise.OPTIONS, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def built(own_checkout, tmp_path_factory) -> dict[Answer, Path]:
    """The answers that are run, built together."""
    folder = tmp_path_factory.mktemp("built")
    files = {answer: write(answer, folder, f"{60 + i}z_answer_{i}") for i, answer in enumerate(RUN)}
    programs = [*(file.stem for file in files.values()), *(one.rung.stem for one in EXERCISES.values())]
    for arguments in (["--preset", "default", f"-DLADDER_WITH:PATH={folder}"], ["--build", "build", "--target", *programs]):
        done = subprocess.run(["cmake", *arguments], cwd=own_checkout, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return files


@pytest.fixture(scope="module")
def verdicts(built, own_checkout) -> dict[Answer, tuple[bool, str]]:
    """Of the checker, on the simulator alone."""
    programs = own_checkout / "build/bin"
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(os.cpu_count()) as pool:
        patch.setattr(exercise, "has_gpu", lambda: False)
        found = list(pool.map(lambda answer: exercise.verdict(EXERCISES[answer.exercise], built[answer], programs), RUN))
    return dict(zip(RUN, found, strict=True))


@needs_simulator
@pytest.mark.parametrize("answer", [RUN[0], next(answer for answer in RUN if answer.message)], ids=["right", "wrong"])
def test_only_what_the_simulator_passes_runs_on_a_gpu(answer, built, own_checkout, monkeypatch):
    """The program itself decides where it runs: here it is given the simulator's sizes."""
    monkeypatch.setattr(exercise, "has_gpu", lambda: True)
    monkeypatch.setattr(exercise.Exercise, "arguments", lambda one, place: ["128", "128", "128", "--type", "bf16"])
    solved, text = exercise.verdict(EXERCISES[answer.exercise], built[answer], own_checkout / "build/bin")
    assert solved == (not answer.message)
    assert text.count(f"\n{built[answer].stem} ") == (1 if answer.message else 2)


@needs_simulator
@pytest.mark.parametrize("answer", RUN, ids=lambda answer: f"{answer.exercise}: {answer.message[:40] or 'right'}")
def test_an_answer_that_is_run_gets_its_verdict(answer, verdicts):
    solved, text = verdicts[answer]
    text = " ".join(text.split())
    assert solved == (not answer.message), text
    assert re.search(answer.says or "Solved: as right as", text), text
    assert re.search(answer.message, text), text


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory) -> dict[Answer, list[str]]:
    """What the checker says of the lines of the other answers."""
    folder = tmp_path_factory.mktemp("answers")
    files = {answer: write(answer, folder, f"{60 + i}z_answer_{i}") for i, answer in enumerate(LOOKED_AT)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda answer: exercise.findings(EXERCISES[answer.exercise], files[answer]), LOOKED_AT)
        return dict(zip(LOOKED_AT, found, strict=True))


@pytest.mark.parametrize("answer", LOOKED_AT, ids=lambda answer: f"{answer.exercise}: {answer.message[:40] or 'right'}")
def test_the_lines_of_an_answer_get_their_message(answer, looked_at):
    found = looked_at[answer]
    assert any(re.search(answer.message, line) for line in found) if answer.message else not found, found


@pytest.mark.parametrize("one", EXERCISES.values(), ids=lambda one: one.number)
def test_a_new_copy_is_the_rung_with_holes(one, tmp_path):
    """Beside the holes, it is the rung; and as it stands, every exercise is unsolved."""
    file = exercise.copy(one, tmp_path)
    mine, rung = file.read_text(encoding="utf-8"), one.rung.read_text(encoding="utf-8")
    assert re.search(rf"// Run +\./run_all\.sh exercise {one.number}\n", mine)
    assert mine.count("HOLE") == one.text.count("HOLE") > 0
    assert exercise.findings(one, file)

    def outside(text: str) -> list[str]:
        text = exercise.REGION.sub(lambda m: "" if m[2] in one.holes else m[0], text[text.index("#include") :])
        for _ in range(3):  # regions in regions
            text = exercise.REGION.sub(lambda m: "" if m[2] in one.holes else m[3], text)
        lines = [line for line in text.splitlines() if line.strip()]
        return [line for line in lines if not re.match(r"    \.(number|name|idea|predecessor) = ", line)]

    assert outside(mine) == outside(rung)
    file.write_text("mine")
    assert exercise.copy(one, tmp_path) == file and file.read_text() == "mine", "the learner's work stays"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["99"], "there is no exercise '99'; there are 1, 2, 3"),
        (["swizzle"], "there is no exercise 'swizzle'"),
        (["1", "2"], "exercise takes one number"),
        (["1", "--solutions"], "there is no option '--solutions'; the nearest is --solution"),
        (["1", "--zzz"], "there is no option '--zzz'; ./run_all.sh exercise --help lists all"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_words_are_refused_in_one_line(arguments, expected, tmp_path):
    assert expected in one_line(run_all("exercise", *arguments, "--with", tmp_path))
    assert not list(tmp_path.iterdir())


@needs_simulator
def test_diff_of_a_file_without_machine_code_shows_its_text(built, own_checkout):
    """As --with has it: the build without a GPU makes PTX alone of an exercise."""
    pytest.importorskip("rich")
    file = built[RUN[0]]
    done = run_all("diff", EXERCISES["1"].rung_number, file.stem, "--with", str(file.parent), checkout=own_checkout)
    assert done.returncode == 0, done.stderr
    assert "swizzle_128b(int row, int chunk)" in done.stdout
    assert f"{file.stem} has no machine code" in done.stdout or "registers per thread" in done.stdout


def test_without_a_number_they_are_listed():
    done = run_all("exercise")
    assert done.returncode == 0, done.stderr
    for one in EXERCISES.values():
        assert f"{one.number}  {one.title}, from {one.rung.stem}" in done.stdout


@pytest.mark.skipif(not shutil.which("patch"), reason="no patch here, which applies a diff")
def test_the_solution_is_a_diff_that_makes_the_answer(tmp_path):
    done = run_all("exercise", "5", "--solution", "--with", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.cu")
    applied = subprocess.run(["patch", file, "-"], input=done.stdout, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stdout
    assert exercise.findings(EXERCISES["5"], file) == []
    assert "HOLE" not in file.read_text()


def test_lines_that_cannot_be_looked_at_are_said_to_be_so(tmp_path):
    one = EXERCISES["1"]
    file = write(swizzle("no_such_function(row, chunk)"), tmp_path, "60z_answer")
    with pytest.raises(exercise.Refused, match="no_such_function"):
        exercise.findings(one, file)
    file.write_text(file.read_text().replace("// [swizzle]", ""))
    with pytest.raises(exercise.Refused, match="no longer in"):
        exercise.findings(one, file)
    file = write(swizzle("row / (chunk - chunk)"), tmp_path, "60z_answer")
    assert "stop the program" in exercise.findings(one, file)[0]


@needs_simulator
def test_the_page_shows_what_the_checker_says(verdicts):
    """Of exercise 1 as it stands, whose hole has the place that the first wrong answer has."""
    page = (ROOT / "docs/exercises.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    (answer,) = (answer for answer in RUN if answer.exercise == "1" and "row * 128 + chunk * 16" in str(answer.holes))
    assert "return row * 128 + chunk * 16;" in EXERCISES["1"].holes["swizzle"]
    said = re.sub(r"^\d\dz_answer_\d+ *", "13x_exercise_1           ", verdicts[answer][1], flags=re.MULTILINE)
    assert said.split() == shown.split()


def test_the_page_has_a_section_for_each():
    page = (ROOT / "docs/exercises.md").read_text(encoding="utf-8")
    for one in EXERCISES.values():
        (section,) = re.findall(rf"^## {one.number} · (.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert f"./run_all.sh exercise {one.number}" in section and f"`{one.stem}.cu`" in section
        assert section.count("<summary>Hint") >= 2
        for name in one.holes:
            assert f"`[{name}]`" in section
