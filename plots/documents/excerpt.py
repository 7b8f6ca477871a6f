"""Code for a chapter, cut out of a source file between the comment lines `// [TAG]` and `// [/TAG]`."""

import textwrap
from pathlib import Path

from plots.errors import InputError

LANGUAGE = {".cu": "cuda", ".cuh": "cuda", ".h": "cpp", ".cpp": "cpp", ".py": "python"}


def cut(root: Path, file: str, tag: str) -> str:
    """The dedented text of a region; marker lines of regions inside it are left out."""
    path = root / file
    if not path.is_file():
        raise InputError(f"code {file} {tag}: no such file")
    lines = path.read_text(encoding="utf-8").splitlines()
    bare = [line.strip() for line in lines]
    starts, ends = ([i for i, line in enumerate(bare) if line == mark] for mark in (f"// [{tag}]", f"// [/{tag}]"))
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        raise InputError(f"code {file} {tag}: needs one line '// [{tag}]' and below it one line '// [/{tag}]'")
    region = [line for line in lines[starts[0] + 1 : ends[0]] if not _is_mark(line.strip())]
    return textwrap.dedent("\n".join(region)).strip("\n")


def _is_mark(line: str) -> bool:
    return line.startswith("// [") and line.endswith("]")


def render(root: Path, file: str, tag: str, up: str) -> str:
    """A fenced block under a link to the file that names the region; `up` leads from the document's folder to the root."""
    code = cut(root, file, tag)
    fence = LANGUAGE.get(Path(file).suffix, "")
    return f"[`{file}`, region {tag}]({up}{file})\n\n```{fence}\n{code}\n```"
