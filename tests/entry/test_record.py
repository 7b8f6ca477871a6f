"""bench/record.sh and tests/gpu/sanitize.sh, with stand-ins for the GPU: what is recorded follows from the facts of rungs."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACTS = {
    "types": [{"name": kind, "bytes": 4, "result_bytes": {"f32": 4, "same": 4}} for kind in ("f32", "f8")],
    "families": {},
    "rungs": [
        {"number": n, "name": name, "stem": f"{n}_{name}", "idea": "", "predecessor": "", "types": [kind], "arch": "sm_90a"}
        | {"kind": "step", "instruction": "wgmma", "ceilings": {}, "plans": n == "88", "source": f"kernels/{n}_{name}.cu"}
        for n, name, kind in (("01", "naive", "f32"), ("88", "eighth", "f8"))
    ],
}
TOOLS = {
    "nvidia-smi": 'case "$*" in *list*) echo "GPU 0: stand-in" ;; *) echo "Stand-In GPU" ;; esac',
    "ncu": 'echo "ncu $*" >>log; printf \'"ID","x"\\n"",""\\n"0","1"\\n\'',
    "compute-sanitizer": 'echo "sanitizer $*" >>log; echo "= ERROR SUMMARY: 0 errors"',
}


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose programs and tools note how they were called."""
    for name in ("bench", "plots", "tools", "tests/gpu"):
        ignored = shutil.ignore_patterns("recorded", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for folder in ("docs", "kernels", "build/bin", "tools-on-path"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "kernels/88_eighth.cu").touch()
    (tmp_path / "docs/88_eighth.md").write_text(
        "<!-- generated: conditions 01 88 -->\n<!-- generated: profiled f8@512 88 nvidia-h100 -->\n"
        "<!-- generated: profiled f8 01 88 -->\n"
    )
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    states = '[ "$*" = "--list --json" ] && exec cat facts.json\n'
    programs = {f"tools-on-path/{name}": text for name, text in TOOLS.items()}
    programs |= {f"build/bin/{name}": f'{states}echo "{name} $*" >>log' for name in ("ladder", "ceilings")}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(checkout: Path, *command: str) -> tuple[subprocess.CompletedProcess, list[str]]:
    """What a script did, and how it called the programs."""
    environment = {**os.environ, "PATH": f"{checkout / 'tools-on-path'}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    log = checkout / "log"
    calls = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return done, calls


def test_every_type_is_recorded_in_sittings(checkout):
    done, calls = run(checkout, "bench/record.sh", "published", "second")
    assert done.returncode == 0, done.stderr
    of_sittings = [call.partition("--sittings ")[2].split()[0] for call in calls if "--sittings" in call]
    assert of_sittings == [f"{sitting}/5" for sitting in range(1, 6) for _ in range(2)] * 2, "each goes through every type"
    for folder in ("stand-in-gpu", "stand-in-gpu-second"):
        assert json.loads((checkout / f"bench/recorded/{folder}/rungs.json").read_text()) == FACTS
        for kind in ("f32", "f8"):
            call, *_ = (call for call in calls if f"--type {kind} " in call and f"/{folder}/ladder.csv" in call)
            assert "2048x2048x2048,4096x4096x4096,8192x8192x8192" in call and "--kernels" not in call


def test_what_chapters_show_is_recorded(checkout):
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "conditions", "profile", "profiles")
    assert done.returncode == 0, done.stderr
    assert {call.partition("--kernels ")[2].split()[0] for call in calls if call.startswith("ladder")} == {"01,88", "31-33"}
    assert [call.split("regex:")[1].split()[0] for call in calls if call.startswith("ncu")] == [
        *(rf"^_ZN.*_\d+_{stem}_cu_" for stem in ("01_naive", "88_eighth", "88_eighth")),
    ]
    files = {"rungs.json", "profile_f32.csv", "profile_f8.csv", "profile_512_f8.csv"}
    assert {path.name for path in (checkout / "here").iterdir()} == files


def test_the_sweep_over_waves_goes_into_the_record(checkout):
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "waves")
    assert done.returncode == 0, done.stderr
    assert [call.partition("--type ")[2].split()[0] for call in calls] == ["bf16", "f32"]
    assert all("--csv here/waves.csv" in call and "--ceilings here/ceilings.csv" in call for call in calls)


def test_plans_are_timed_over_the_shapes_of_the_map_and_those_of_the_fit(checkout):
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "plans")
    assert done.returncode == 0, done.stderr
    assert [call.partition("--shapes ")[2].split()[0] for call in calls] == [
        "bench/shapes/map.txt",
        "bench/shapes/fit_cost_model.txt",
    ]
    assert all("--tune --plans here/plans.csv" in call and "--csv here/tuned.csv" in call for call in calls)


def test_power_is_recorded_of_rungs_and_of_plans(checkout):
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "power")
    assert done.returncode == 0, done.stderr
    rungs, *plans = calls
    assert "--kernels 22-25" in rungs and all("--csv here/power.csv" in call and "--protocol steady" in call for call in calls)
    assert [call.partition("--out ")[2].split()[0] for call in plans] == ["f32", "same"] * 4
    assert all("--plans" in call and "--resume" not in call for call in plans)


def test_the_timeline_is_recorded_where_its_program_was_built(checkout):
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "timeline")
    assert (done.returncode, calls) == (0, []) and "cmake --build build --target timeline" in done.stderr
    shutil.copy(checkout / "build/bin/ceilings", checkout / "build/bin/timeline")
    done, calls = run(checkout, "bench/record.sh", "--to", "here", "timeline")
    assert done.returncode == 0, done.stderr
    assert len(calls) == 1 and "--shape 4096x4096x4096" in calls[0] and calls[0].endswith("--csv here/timeline.csv")


def test_what_quantising_takes_is_recorded_as_printed(checkout):
    program = checkout / "build/bin/quantise"
    program.write_text("#!/usr/bin/env bash\necho block,type\n")
    program.chmod(0o755)
    done, _ = run(checkout, "bench/record.sh", "--to", "here", "quantise")
    assert done.returncode == 0, done.stderr
    assert (checkout / "here/quantise.csv").read_text() == "block,type\n"


def test_a_step_begins_anew_unless_it_is_to_go_on(checkout):
    profile = ["bench/record.sh", "--to", "here", "profile"]
    assert len(run(checkout, *profile)[1]) == len(run(checkout, *profile)[1]) == 2
    assert run(checkout, *profile, "--resume")[1] == []


def test_types_can_be_confined(checkout):
    calls = run(checkout, "env", "TYPES=f8", "bench/record.sh", "checks")[1]
    assert len(calls) == 4 and all("--type f8 " in call for call in calls)


@pytest.mark.parametrize(
    ("arguments", "status", "said"), [(["publish"], 2, "no step 'publish'"), (["--to"], 2, "--to takes a folder")]
)
def test_bad_words_are_refused(checkout, arguments, status, said):
    done, calls = run(checkout, "bench/record.sh", *arguments)
    assert done.returncode == status and said in done.stderr and calls == []


def test_without_programs_it_says_what_to_build(checkout):
    (checkout / "build/bin/ladder").unlink()
    done, _ = run(checkout, "bench/record.sh", "published")
    assert done.returncode == 2 and "cmake --build build --target ladder ceilings" in done.stderr


def test_every_type_is_sanitized(checkout):
    done, calls = run(checkout, "tests/gpu/sanitize.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    sanitized = [call for call in calls if call.startswith("sanitizer")]
    assert len(sanitized) == 4 * (2 * 2 + 8 + 1) and sum("--type f8 " in call for call in sanitized) == 8
    assert sum("--scales blocks --groups" in call for call in sanitized) == 4
    assert sum("--kernels 88" in call for call in sanitized) == 4  # blocks that wait for one another
