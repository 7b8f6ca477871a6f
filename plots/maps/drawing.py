"""A small SVG canvas for figures made of cells: the same input gives the same bytes, whatever is installed."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

INK = "#222222"
GRID = "#d5d5d5"
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"  # Okabe and Ito


@dataclass(frozen=True)
class Text:
    """A text with its middle height at y; pixels."""

    x: float
    y: float
    text: str
    size: float
    anchor: str
    bold: bool
    colour: str


@dataclass
class Drawing:
    """Shapes in pixels, x to the right and y down, on white."""

    width: float
    height: float
    title: str
    shapes: list[str] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def rect(self, x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> None:
        """A filled rectangle."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.shapes.append(f'<rect {place} fill="{fill}" stroke="{stroke}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = INK, width: float = 1) -> None:
        """A straight line."""
        place = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self.shapes.append(f'<line {place} stroke="{colour}" stroke-width="{width:g}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12,
        anchor: str = "middle",
        bold: bool = False,
        colour: str = INK,
    ) -> None:
        """A line of text; `anchor` is start, middle or end."""
        self.texts.append(Text(x, y, text, size, anchor, bold, colour))

    def svg(self) -> str:
        """The whole file."""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
            'font-family="DejaVu Sans, Verdana, Helvetica, sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="white"/>',
            *self.shapes,
            *(_text(text) for text in self.texts),
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _text(text: Text) -> str:
    weight = ' font-weight="bold"' if text.bold else ""
    baseline = text.y + 0.36 * text.size
    place = f'x="{text.x:g}" y="{baseline:g}" font-size="{text.size:g}" text-anchor="{text.anchor}"'
    return f'<text {place}{weight} fill="{text.colour}">{escape(text.text)}</text>'
