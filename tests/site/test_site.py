"""The documentation site as a browser lays it out: on a phone, a laptop and a wide screen, light and dark."""

import html
import json
import re
import shutil
import subprocess
import threading
from concurrent.futures import Future
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
WIDTHS = {"phone": 390, "laptop": 1400, "wide": 1920}
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)

# Loads each page at each width in a frame and tells what is wider than the column that it stands in, or cut by it.
MEASURE = """<!doctype html><title>measuring</title><body><script>
const pages = %s, widths = %s, scheme = new URLSearchParams(location.search).get("scheme");
const name = (element) => element.tagName.toLowerCase() + (element.className ? "." + element.className : "") + " " +
  element.textContent.trim().slice(0, 40);
const measure = (frame) => {
  const page = frame.contentDocument, column = page.querySelector(".md-content__inner").getBoundingClientRect(), found = [];
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
    (site / "measure.html").write_text(MEASURE % (json.dumps([address(page) for page in PAGES]), json.dumps([*WIDTHS.values()])))
    server = Server(site)
    url = f"http://127.0.0.1:{server.server_port}/measure.html?scheme={request.param}"
    # With a port for debugging it stays until it is killed; without, it ends when the page is loaded.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    profile = f"--user-data-dir={tmp_path_factory.mktemp('browser')}"
    process = subprocess.Popen([CHROMIUM, *options, profile, url], stderr=subprocess.DEVNULL)
    try:
        return server.measured.result(timeout=120)
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


def test_the_parts_are_those_of_the_map(site):
    text = html.unescape((site / "index.html").read_text())
    for number, title in re.findall(r"^## Part (\w+): (.+)$", (ROOT / "docs/00_map.md").read_text(), re.MULTILINE):
        assert f"{number} · {title}" in text


def test_no_marker_of_a_number_is_on_a_page(site):
    assert "<!--=" in (ROOT / "docs/01_naive.md").read_text(encoding="utf-8")
    assert [page.name for page in site.rglob("*.html") if re.search(r"(<|&lt;)!--[=?:]", page.read_text(encoding="utf-8"))] == []
