"""One look for all figures: colours that colour-blind people tell apart and that stay apart in grey, and saving.

Rungs run along a sequential ramp whose lightness falls monotonically (viridis, without its yellow end): the naive kernel
is light, the best is dark. Markers and, for variants, dashes repeat what the colour says.
"""

import io
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from plots.data.rungs import is_variant

INK = "#222222"
FAINT = "#8a8a8a"
MARKERS = "osD^vPX*<>hp"
WIDTH = 9.6  # inches; the report shows a figure at this width or narrower

plt.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "text.color": INK,
        "grid.color": "#e2e2e2",
        "hatch.linewidth": 0.6,
        "svg.fonttype": "none",  # text stays text: searchable, and legible at any size
        "svg.hashsalt": "gemm-ladder",  # the same input gives the same bytes
    }
)


def figure(height: float) -> Figure:
    """An empty figure of the common width, `height` inches high."""
    return Figure(figsize=(WIDTH, height))


def colours(kernels: list[str]) -> dict[str, str]:
    """A colour for each kernel, light to dark along the ladder."""
    ramp = matplotlib.colormaps["viridis"]
    last = max(len(kernels) - 1, 1)
    return {k: matplotlib.colors.to_hex(ramp(0.78 * (1 - i / last))) for i, k in enumerate(kernels)}


def markers(kernels: list[str]) -> dict[str, str]:
    """A marker for each kernel."""
    return {k: MARKERS[i % len(MARKERS)] for i, k in enumerate(kernels)}


def dashes(kernel: str) -> str:
    """Solid for a rung, dashed for a lettered variant."""
    return "--" if is_variant(kernel) else "-"


CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # the box of a text that lines run under
HOVER = "hover: "  # begins the ids of what shows a text under the pointer


def hover(text: str, *artists: Artist) -> None:
    """The text that a browser shows when the pointer is over any of these parts of a figure."""
    for artist in artists:
        artist.set_gid(HOVER + text)


def svg(fig: Figure, source: str | None = None) -> str:
    """The figure as SVG text without date or version; `source` names what it was drawn from, in its metadata."""
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Source": source})
    text = buffer.getvalue().replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    told = r"<g><title>\1</title>" if source is None else "<g>"  # a committed picture is shown as an image, which tells nothing
    text = re.sub(rf'<g id="{HOVER}([^"]*)">', told, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def save(fig: Figure, folder: Path, name: str) -> str:
    """Writes folder/name.svg and folder/name.png; the text of the SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    text = svg(fig)
    (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    fig.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
    return text
