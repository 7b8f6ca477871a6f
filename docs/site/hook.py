"""MkDocs hook: what the site has and the files alone do not.

The chapters stand by part, and beside each its kernels, whole, so that a link to a line of a kernel leads there. The first page
has a card per chapter. A shared link shows the page's first sentence and the stair. The style and the scripts in this folder do
the rest.
"""

import html
import io
import os
import re
import sys
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from plots.documents import cards, committed  # noqa: E402  of this checkout
from plots.documents.numbers import Recording  # noqa: E402

START = ["index.md", "path.md", "your_own_kernel.md", "exercises.md", "use.md", "00_gpu.md", "00_map.md"]
REFERENCE = ["results.md", "sim.md", "methodology.md", "glossary.md"]
CARDS = "<!-- cards -->"  # of the first page
STAIR = "img/stair.png"
ENOUGH = 60  # characters
MARKER = re.compile(r"<!--[=?:].*?-->")  # plots fills numbers and tests claims by it
LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#L(\d+))?\)")


def parts() -> dict[str, tuple[str, str]]:
    """The ladder's parts as the map names them, each with the number of its first rung and what the map says of it."""
    text = (ROOT / "docs/00_map.md").read_text()
    sections = re.findall(r"^## (Part \w+: [^\n]+)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {title: (re.search(r"^\| \[?(\d\d)", body, re.MULTILINE)[1], body) for title, body in sections}


def on_config(config, **_: object):
    known = parts()
    chapters = {title: [] for title in known}
    reference = list(REFERENCE)
    for page in sorted(path.name for path in (ROOT / "docs").glob("*.md")):
        if page in START + REFERENCE:
            continue
        linked = [title for title, (_, body) in known.items() if f"]({page})" in body]
        numbered = [title for title, (number, _) in known.items() if number <= page[:2]]
        of_part = linked[:1] or (numbered if page[:2].isdigit() else [])  # the part that names it first
        (chapters[of_part[-1]] if of_part else reference).append(page)
    tabs = {title.removeprefix("Part ").replace(": ", " · "): pages for title, pages in chapters.items()}
    config.nav = [{title: pages} for title, pages in {"Start": START, **tabs, "Reference": reference}.items()]
    config.extra["parts"] = tabs
    config.site_url = os.environ.get("SITE_URL", config.site_url)
    return config


def on_files(files, config, **_: object):
    """The first page's picture as previews of links show it: none of them shows SVG."""
    files.append(File.generated(config, STAIR, content=stair()))
    return files


@cache
def stair() -> bytes:
    file = io.BytesIO()
    committed.first_page(Recording(ROOT).results).savefig(file, format="png", dpi=125)
    return file.getvalue()


def sources(markdown: str, page: str) -> list[str]:
    """The files to show beside a page: the rung of its name, then whatever an excerpt is cut from."""
    own = [f"kernels/{Path(page).stem}.cu"]
    cut = re.findall(r"<!-- generated: code (\S+) ", markdown)
    return [file for file in dict.fromkeys(own + cut) if (ROOT / file).is_file()]


def anchor(file: str) -> str:
    return re.sub(r"\W+", "-", file)


def region(file: str, text: str) -> str:
    """The first line of the region that an excerpt's link names; empty where it names none."""
    named = re.search(r", region ([\w-]+)$", text)
    lines = [line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    return str(lines.index(f"// [{named[1]}]") + 2) if named else ""


def on_page_markdown(markdown: str, page, config, **_: object) -> str:
    """A link to a source file leads to that file beside the page; where it is not there, its text stays. No markers."""
    if CARDS in markdown:
        markdown = markdown.replace(CARDS, cards_of(config.extra["parts"]))
    shown = sources(markdown, page.file.src_uri)

    def target(link: re.Match) -> str:
        text, file, line = link.groups()
        if file not in shown:
            return text
        name, line = anchor(file), line or region(file, text)
        to = f"{name}-{line}" if line else name
        return f'[{text}](#{to}){{ .source data-file="{name}" data-line="{line or 1}" }}'

    return LINK.sub(target, MARKER.sub("", markdown))


def cards_of(parts: dict[str, list[str]]) -> str:
    """A list of cards per part; a card is a link to its chapter."""
    recording, out = Recording(ROOT), []
    for part, pages in parts.items():
        out += [f"### {part}", "", '<ul class="cards">']
        for card in (cards.card(recording, ROOT / "docs" / page) for page in pages):
            title = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(card.title))
            lines = f"<p>{html.escape(card.idea)}</p><p><strong>{card.gain}</strong></p>" if card.gain else ""
            out.append(f'<li><a href="{Path(card.page).stem}.html">{title}</a>{lines}</li>')
        out += ["</ul>", ""]
    return "\n".join(out)


def on_page_content(content: str, page, **_: object) -> str:
    """The kernels below the chapter, or on a wide screen beside it. A picture in text becomes as small as its column asks for."""
    page.meta.setdefault("description", first_sentences(content))
    shown = sources(Path(page.file.abs_src_path).read_text(encoding="utf-8"), page.file.src_uri)
    content = re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", content)  # a corner of a table heads nothing
    content = re.sub(r'<div class="language-text highlight">(.*?)</div>', fitted, content, flags=re.DOTALL)
    if not shown:
        return content
    return f'{content}\n<section class="sources" aria-label="Source">\n{"".join(map(listing, shown))}</section>\n'


def fitted(block: re.Match) -> str:
    columns = max(len(html.unescape(re.sub(r"<[^>]+>", "", line))) for line in block[1].splitlines())
    return f'<div class="language-text highlight picture" style="--columns: {columns}">{block[1]}</div>'


def listing(file: str) -> str:
    name = anchor(file)
    lines = HtmlFormatter(linenos="inline", linespans=name, cssclass="highlight")
    code = highlight((ROOT / file).read_text(encoding="utf-8"), CudaLexer(), lines)
    return f'<details class="source" id="{name}" open><summary>{file}</summary>{code}</details>\n'


def first_sentences(content: str) -> str:
    """Those of a page without marks, until they say enough for a preview. A paragraph in italics says what a table is of."""
    paragraphs = re.findall(r"<p>(?!<em>.*?</em>\.?</p>)(.*?)</p>", content, re.DOTALL)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", " ".join(paragraphs))).split())
    return re.match(rf".{{{ENOUGH},}}?[.:?!](?=\s|$)|.*", text)[0]


def on_post_page(output: str, page, config, **_: object) -> str:
    """What a shared link shows. Its picture has a whole address where the site's own is known: SITE_URL, or `site_url`."""
    is_first = page.file.src_uri == "index.md"
    title = page.title if is_first else f"{page.title} · {config.site_name}"
    up = config.site_url or "../" * page.url.count("/")
    shown = {
        "og:type": "website" if is_first else "article",
        "og:site_name": config.site_name,
        "og:title": title,
        "og:description": page.meta["description"],
        "og:image": f"{up.rstrip('/')}/{STAIR}" if up else STAIR,
        "og:image:alt": "Two stairs: the speed of the numbered kernels as a part of cuBLAS's, in FP32 and in BF16",
    }
    if page.canonical_url:
        shown["og:url"] = page.canonical_url
    tags = [f'<meta property="{name}" content="{html.escape(text)}">' for name, text in shown.items()]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    output = output.replace('role="dialog"', 'role="dialog" aria-label="Search"')  # the theme's only one
    return output.replace("</head>", "\n".join([*tags, "</head>"]), 1)
