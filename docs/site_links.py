"""MkDocs hook: links from a chapter to a source file work in the repository, where the site has no such page."""

import re


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leaves the text of a link that leads out of docs/, such as [`kernels/01_naive.cu`](../kernels/01_naive.cu)."""
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", markdown)
