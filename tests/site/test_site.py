"""The documentation site as a browser lays it out: on a phone, a laptop and a wide screen, light and dark.

What takes a browser is skipped where there is no Chromium, and what takes axe where that is not installed (requirements/axe.txt).
"""

import html
import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import threading
from concurrent.futures import Future
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from plots.data.units import digits
from plots.documents.numbers import Numbers, Recording

pytest.importorskip("mkdocs")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
WIDTHS = {"phone": 390, "laptop": 1400, "wide": 1920}
JUDGED = ["index", "01_naive", "00_map", "glossary", "results", "use"]  # by axe: one page of each kind
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
HEADLESS = ["--headless", "--no-sandbox", "--disable-gpu"]
AXE = next(iter(getattr(importlib.util.find_spec("axe_playwright_python"), "submodule_search_locations", [])), None)

# Loads each page at each width in a frame and tells what is wider than the column that it stands in, or cut by it.
MEASURE = """<!doctype html><title>measuring</title><body><script>
const pages = %s, widths = %s, judged = %s, scheme = new URLSearchParams(location.search).get("scheme");
const name = (element) => element.tagName.toLowerCase() + (element.className ? "." + element.className : "") + " " +
  element.textContent.trim().slice(0, 40);
const measure = (frame) => {
  const page = frame.contentDocument;
  page.head.append(Object.assign(page.createElement("style"), { textContent: "* { transition: none !important }" }));
  const column = page.querySelector(".md-content__inner").getBoundingClientRect(), found = [];
  page.body.dataset.mdColorScheme = scheme;
  if (page.documentElement.scrollWidth > frame.clientWidth) found.push("the page: " + page.documentElement.scrollWidth);
  const panel = page.querySelector(".sources");
  for (const element of page.querySelectorAll(".md-content__inner :is(pre, table, img, p, li, h1, h2, h3)")) {
    const box = element.getBoundingClientRect();
    const within = panel && panel.contains(element) ? panel.getBoundingClientRect() : column;
    if (box.width > 0 && (box.right > within.right + 1 || box.left < within.left - 1)) found.push("wider: " + name(element));
    for (const part of [element, ...element.children])
      if (part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1 && element.matches("pre, table"))
        found.push("cut: " + name(part));
  }
  const beside = panel && panel.getBoundingClientRect().left >= page.querySelector("h1").getBoundingClientRect().right;
  return { found: [...new Set(found)], sources: !!panel, beside };
};
const judge = async (frame) => {
  const script = frame.contentDocument.createElement("script");
  script.src = "axe.min.js";
  frame.contentDocument.head.append(script);
  await new Promise((loaded) => script.addEventListener("load", loaded));
  const { violations } = await frame.contentWindow.axe.run();
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`));
};
(async () => {
  const results = {};
  for (const width of widths)
    for (const page of pages) {
      const frame = document.createElement("iframe");
      frame.style = `width: ${width}px; height: 1000px; border: 0`;
      frame.src = page;
      document.body.append(frame);
      await new Promise((loaded) => frame.addEventListener("load", loaded));
      results[`${width} ${page}`] = measure(frame);
      if (judged.includes(page)) results[`${width} ${page}`].violations = await judge(frame);
      frame.remove();
    }
  fetch("/results", { method: "POST", body: JSON.stringify(results) });
})();
</script>"""


class Server(ThreadingHTTPServer):
    """Serves a folder, and takes what the page has measured."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=folder))
        self.measured: Future[dict] = Future()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.measured.set_result(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def address(page: str) -> str:
    return f"{page}.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--site-dir", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module", params=["default", "slate"])
def measured(site, request, tmp_path_factory) -> dict:
    if not CHROMIUM:
        pytest.skip("no Chromium here, which lays the site out")
    if AXE:
        shutil.copy(Path(AXE, "axe.min.js"), site)
    pages, judged = ([address(page) for page in some] for some in (PAGES, JUDGED if AXE else []))
    (site / "measure.html").write_text(MEASURE % tuple(map(json.dumps, (pages, [*WIDTHS.values()], judged))))
    server = Server(site)
    url = f"http://127.0.0.1:{server.server_port}/measure.html?scheme={request.param}"
    # With a port for debugging it stays until it is killed; without, it ends when the page is loaded.
    options = [*HEADLESS, "--remote-debugging-port=0"]
    profile = f"--user-data-dir={tmp_path_factory.mktemp('browser')}"
    process = subprocess.Popen([CHROMIUM, *options, profile, url], stderr=subprocess.DEVNULL)
    try:
        return server.measured.result(timeout=300)
    finally:
        process.kill()
        process.wait()
        server.shutdown()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_its_column_or_cut(measured, width):
    of_width = {key: value["found"] for key, value in measured.items() if key.startswith(f"{WIDTHS[width]} ")}
    assert len(of_width) == len(PAGES)
    assert {key: found for key, found in of_width.items() if found} == {}


def test_a_chapter_has_its_kernel_beside_it_on_a_wide_screen(measured):
    for kernel in (ROOT / "kernels").glob("*.cu"):
        if kernel.stem not in PAGES:
            continue  # a variant, in the chapter of its rung
        assert measured[f"{WIDTHS['wide']} {address(kernel.stem)}"]["beside"], kernel
        below = measured[f"{WIDTHS['phone']} {address(kernel.stem)}"]
        assert below["sources"] and not below["beside"], kernel


@pytest.mark.skipif(not AXE, reason="no axe here: pip install --no-deps -r requirements/axe.txt")
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation(measured, width):
    found = {page: measured[f"{WIDTHS[width]} {address(page)}"]["violations"] for page in JUDGED}
    assert {page: violations for page, violations in found.items() if violations} == {}


class Anchors(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a" and "source" in (found.get("class") or "").split():
            self.links.add(found["href"].removeprefix("#"))


@pytest.mark.parametrize("page", PAGES)
def test_every_excerpt_leads_to_its_line(site, page):
    excerpts = re.findall(r"<!-- generated: code (\S+) ", (ROOT / f"docs/{page}.md").read_text())
    anchors = Anchors((site / address(page)).read_text())
    assert anchors.links <= anchors.ids
    assert len([link for link in anchors.links if re.search(r"-\d+$", link)]) >= len(set(excerpts))


def test_the_source_beside_a_chapter_is_whole(site):
    text = (site / address("01_naive")).read_text()
    assert all(f'id="kernels-01_naive-cu-{line}"' in text for line in range(1, len(source("01_naive").splitlines()) + 1))


def source(stem: str) -> str:
    return (ROOT / f"kernels/{stem}.cu").read_text()


def test_every_link_leads_to_a_file(site):
    """As pages that are opened from the disk follow it: no folder stands for its index.html."""
    targets = {}
    for page in set(site.rglob("*.html")) - {site / "404.html"}:  # only a server shows that one
        for link in re.findall(r"""(?:href|src)=["']?([^"'> ]+)""", page.read_text()):
            parts = urlsplit(html.unescape(link))
            if parts.path and not parts.scheme:
                targets[page.parent / unquote(parts.path)] = f"{page.name}: {link}"
    assert len(targets) > len(PAGES)
    assert [link for file, link in targets.items() if not file.is_file()] == []


def test_every_link_leads_to_a_place_on_its_page(site):
    """mkdocs --strict says it, too, but not under --quiet, and it does not know the sources beside a chapter."""
    pages = {page.name: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    ids = {name: set(re.findall(r"""\bid=["']?([^"'> ]+)""", text)) for name, text in pages.items()}
    lost, seen = set(), 0
    for name, text in pages.items():
        for link in re.findall(r'<a [^>]*?href="([^"]*#[^"]+)"', text):
            to = urlsplit(html.unescape(link))
            if not to.scheme and (to.path or name) in ids:
                seen += 1
                lost |= {(name, link)} if unquote(to.fragment) not in ids[to.path or name] else set()
    assert seen > len(PAGES) and lost == set()


def test_the_parts_are_those_of_the_map(site):
    text = html.unescape((site / "index.html").read_text())
    for number, title in re.findall(r"^## Part (\w+): (.+)$", (ROOT / "docs/00_map.md").read_text(), re.MULTILINE):
        assert f"{number} · {title}" in text


def test_no_marker_of_a_number_is_on_a_page(site):
    assert "<!--=" in (ROOT / "docs/01_naive.md").read_text(encoding="utf-8")
    assert [page.name for page in site.rglob("*.html") if re.search(r"(<|&lt;)!--[=?:]", page.read_text(encoding="utf-8"))] == []


# ---- the search ----


def test_the_search_needs_no_network(site):
    """A page that is opened as a file may not fetch: the index is a script, and nothing comes from elsewhere."""
    start, index = (site / "search/search_index.js").read_text(encoding="utf-8").split("{", 1)
    assert start == "var __index = "
    found = {entry["location"].partition("#")[0] for entry in json.loads("{" + index)["docs"]}
    assert found == {address(page) for page in PAGES}
    for page in site.glob("*.html"):
        loaded = re.findall(r"<(?:script|link)[^>]*(?:src|href)=[\"']?([^\"'> ]+)", page.read_text(encoding="utf-8"))
        assert [link for link in loaded if urlsplit(link).netloc] == [], page.name


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium here, which searches")
def test_the_search_works_in_a_page_opened_as_a_file(site):
    asked = [CHROMIUM, *HEADLESS, "--virtual-time-budget=20000", "--dump-dom", f"file://{site}/index.html?q=wavefront"]
    page = subprocess.run(asked, capture_output=True, text=True, timeout=120).stdout
    assert int(re.search(r"(\d+) matching documents", page)[1]) > 10


# ---- previews of links ----


def preview(page: Path) -> dict[str, str]:
    tags = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', page.read_text(encoding="utf-8"))
    assert len(dict(tags)) == len(tags)
    return {name: html.unescape(text) for name, text in tags}


@pytest.mark.parametrize("page", PAGES)
def test_a_shared_link_shows_the_stair(site, page):
    shown = preview(site / address(page))
    assert shown["twitter:card"] == "summary_large_image"
    assert shown["og:title"].endswith("GEMM Ladder") and shown["og:image:alt"]
    assert 30 < len(shown["og:description"]) < 250 and shown["og:description"] == shown["description"]
    picture = (site / shown["og:image"]).read_bytes()
    assert picture.startswith(b"\x89PNG") and struct.unpack(">II", picture[16:24]) == (1200, 625)


def test_pages_have_titles_and_descriptions_of_their_own(site):
    for name in ("og:title", "og:description"):
        assert len({preview(site / address(page))[name] for page in PAGES}) == len(PAGES)


def test_a_site_that_knows_its_address_shows_whole_addresses(tmp_path):
    told = os.environ | {"SITE_URL": "https://example.org/book/"}
    subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path], cwd=ROOT, check=True, env=told)
    shown = preview(tmp_path / "glossary.html")
    assert shown["og:image"] == "https://example.org/book/img/stair.png"
    assert shown["og:url"] == "https://example.org/book/glossary.html"


# ---- cards ----


def card_texts(site: Path) -> dict[str, str]:
    """What the first page's cards say, by the page that each leads to."""
    lists = re.findall(r'<ul class="cards">(.*?)</ul>', (site / "index.html").read_text(encoding="utf-8"), re.DOTALL)
    found = re.findall(r'<li><a href="([^"]+)">(.*?)</li>', "".join(lists), re.DOTALL)
    return {link: html.unescape(re.sub(r"<[^>]+>", " ", text)) for link, text in found}


def test_every_chapter_has_a_card_with_its_number_idea_and_gain(site):
    said = card_texts(site)
    chapters = [page for page in PAGES if page[:2].isdigit() and page[:2] != "00"]
    assert set(said) >= {address(page) for page in chapters}
    for page in chapters:
        if (ROOT / f"kernels/{page}.cu").is_file():
            assert said[address(page)].startswith(f"{page.partition('_')[0]} · ")
            assert re.search(r'\.idea = "(.*)",', source(page))[1].replace('\\"', '"') in said[address(page)]
            assert re.search(r"\d (× \d\d|of cuBLAS|TFLOP/s)|not measured", said[address(page)]), page


def test_cards_say_what_was_recorded(site):
    said, numbers = card_texts(site), Numbers(Recording(ROOT))
    for rung, before, kind, size in (("04", "03", "f32", 4096), ("17", "16", "bf16", (128, 4096, 4096))):
        page = next(page for page in PAGES if page.startswith(f"{rung}_"))
        ratio = numbers.ratio(rung, size, kind)
        assert f" {digits(numbers.gain(rung, before, size, kind))} × {before}, {ratio:.2f} of cuBLAS (" in said[address(page)]
    assert {page for page in said if "not measured" in said[page]} == {
        address(page) for page in PAGES if (ROOT / f"kernels/{page}.cu").is_file() and "sm_100a" in arch(page)
    }


def arch(page: str) -> str:
    return re.search(r'\.arch = "(.*)"', source(page))[1]
