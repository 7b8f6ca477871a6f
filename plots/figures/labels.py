"""Labels at the ends of lines, pushed apart just enough that none touches another; what is told under the pointer."""

from dataclasses import dataclass

from matplotlib.axes import Axes

from plots.data.selection import Table
from plots.data.units import Shape, ratio, tflops, whole

LINE_HEIGHT = 1.4  # of the font size
FONT_SIZE = 9.5
LEADER = {"shrinkA": 3, "shrinkB": 4, "relpos": (0, 0.5)}  # from the middle of the text's left edge


@dataclass(frozen=True)
class Label:
    """A text for the data point (x, y)."""

    x: float
    y: float
    text: str
    colour: str
    weight: str = "normal"


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart, inside [low, high] where they fit, as near as possible to those wanted.

    Least squares under an order constraint: subtracting i*gap turns it into isotonic regression, which pooling
    neighbours that violate the order solves exactly.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    pools: list[tuple[float, int]] = []  # mean, members
    for i, source in enumerate(order):
        mean, members = wanted[source] - i * gap, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, members = (mean * members + other * count) / (members + count), members + count
        pools.append((mean, members))
    top = max(high - (len(wanted) - 1) * gap, low)
    flat = [min(max(mean, low), top) for mean, members in pools for _ in range(members)]
    result = [0.0] * len(wanted)
    for i, source in enumerate(order):
        result[source] = flat[i] + i * gap
    return result


def height_of(labels: int, font_size: float = FONT_SIZE) -> float:
    """Inches that a column of so many labels takes."""
    return labels * LINE_HEIGHT * font_size / 72


def label_right(ax: Axes, labels: list[Label], font_size: float = FONT_SIZE) -> None:
    """Writes the labels in a column right of `ax`, each tied to its point by a thin line. Limits must be final."""
    height_points = ax.get_position().height * ax.figure.get_figheight() * 72
    to_axes = ax.transData + ax.transAxes.inverted()
    points = [to_axes.transform((label.x, label.y)) for label in labels]
    places = spread([float(y) for _, y in points], LINE_HEIGHT * font_size / height_points, 0.0, 1.0)
    for label, (x, y), place in zip(labels, points, places, strict=True):
        ax.annotate(
            label.text,
            xy=(x, y),
            xytext=(1.035, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=font_size,
            fontweight=label.weight,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": label.colour, "linewidth": 0.8, **LEADER},
        )


def told(table: Table, kernel: str, shape: Shape) -> str:
    """A cell in one line: rate, ratios, clock and power as far as they were recorded, or why there are none."""
    where, cell = f"{kernel}, {table.type} at {shape}: ", table.cells.get((kernel, shape))
    if cell is None or cell.status != "ok":
        return where + (cell.status if cell else "not run")
    ceiling, share = table.ceiling(kernel), table.share(kernel, shape)
    parts = [f"{tflops(cell.value('gflops'))} TFLOP/s"]
    parts += [f"cuBLAS {tflops(beside)} in the same rounds"] if (beside := table.cublas(kernel, shape)) > 0 else []
    parts += [f"{ratio(cell.value(column))} of {of}" for column, of in OF_LIBRARIES.items() if cell.value(column) > 0]
    parts += [f"{ratio(share)} of the ceiling of {ceiling.instruction}"] if share > 0 else []
    parts += [f"{whole(cell.value(column))} {unit}" for column, unit in UNITS.items() if cell.value(column) > 0]
    return where + ", ".join(parts)


OF_LIBRARIES = {"ratio_cublas": "cuBLAS", "ratio_best": "the fastest library"}
UNITS = {"clock_mhz": "MHz", "power_w": "W"}
