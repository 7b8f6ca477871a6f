"""Chapter 37 shows what `--explain` prints."""

from tests.checkout import BIN, ROOT, needs_simulator, run


@needs_simulator
def test_what_the_chapter_shows_is_printed():
    done = run(BIN / "37_sgemm_hopper", "--sim", "--explain", "--shapes", "1024x1024x1024")
    printed = done.stdout.partition("\n")[2].rstrip("\n")
    assert f"```text\n{printed}\n```" in (ROOT / "docs/37_sgemm_hopper.md").read_text(encoding="utf-8")
