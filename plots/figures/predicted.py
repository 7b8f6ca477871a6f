"""Predicted against measured: what each rung reaches of the gain that its header predicts."""

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from plots.data.expectations import Expectation
from plots.data.rungs import order
from plots.data.selection import HEADLINE, Table
from plots.data.units import digits, quotient
from plots.figures import style

HUES = {"f32": "#0072B2", "bf16": "#D55E00"}  # the types that are shown: one for each part of the ladder
COLUMNS = {"predicted": 1.40, "measured": 1.58}  # right edges, in axes widths


@dataclass(frozen=True)
class Outcome:
    """A rung's prediction and what was measured of it."""

    kernel: str
    type: str
    expected: Expectation
    measured: float

    @property
    def reached(self) -> tuple[float, float]:
        """Measured over predicted: by the higher and by the lower number of the prediction."""
        return quotient(self.measured, self.expected.high), quotient(self.measured, self.expected.low)


def outcomes(tables: list[Table], other: list[Table], expectations: dict[str, Expectation]) -> list[Outcome]:
    """Every rung with a prediction and a number at its shape, in ladder order. `other` has the results of 16 bits."""
    found = []
    for table in tables:
        for kernel in table.kernels if table.type in HUES else []:
            if (expected := expectations.get(kernel)) is None:
                continue
            own = next((t for t in other if t.type == table.type and t.condition.out == expected.out), table)
            measured = _measured(own, kernel, expected)
            if math.isfinite(measured):
                found.append(Outcome(kernel, table.type, expected, measured))
    return sorted(found, key=lambda outcome: order(outcome.kernel))


def _measured(table: Table, kernel: str, expected: Expectation) -> float:
    """The gain in FLOP/clk/SM over the rung that is named, or the ratio to cuBLAS."""
    shape = expected.shape or HEADLINE
    if not expected.of:
        return table.value(kernel, shape, "ratio_cublas")
    named = next((stem for stem, rung in table.facts.rungs.items() if rung.number == expected.of), "")
    return quotient(*(table.value(stem, shape, table.gain_column) for stem in (kernel, named)))


def draw(found: list[Outcome]) -> Figure:
    """A line per rung: a dot at measured over predicted, the numbers at the right; 1 is as predicted."""
    below = 1.02 if any(outcome.expected.shape for outcome in found) else 0.82  # inches: the axis, and one or two notes
    fig = style.figure(0.53 + below + 0.3 * len(found))
    height = fig.get_figheight()
    ax = fig.add_axes((0.19, below / height, 0.49, 1 - (below + 0.4) / height))
    ax.axvline(1, color=style.INK, linewidth=1.2)
    for place, outcome in enumerate(found):
        low, high = outcome.reached
        colour = HUES[outcome.type]
        ax.plot(
            [1, low if abs(low - 1) > abs(high - 1) else high],
            [place, place],
            color=colour,
            linewidth=2,
            solid_capstyle="butt",
            zorder=1.5,
        )
        ax.plot([low, high], [place, place], color=colour, linewidth=5, solid_capstyle="butt", zorder=1.6)
        face = "white" if outcome.expected.at_most else colour
        ax.plot([low], [place], "o", color=colour, markerfacecolor=face, markersize=8, markeredgewidth=1.8)
        starred = " *" * (outcome.expected.out == "same") + " †" * (outcome.expected.shape is not None)
        for text, edge in zip((str(outcome.expected), digits(outcome.measured) + starred), COLUMNS.values(), strict=True):
            ax.text(edge, place, text, transform=ax.get_yaxis_transform(), ha="right", va="center")
    for head, edge in COLUMNS.items():
        ax.text(edge, -0.95, head, transform=ax.get_yaxis_transform(), ha="right", va="center", fontweight="bold")
    _axes(ax, found)
    _key(fig, found)
    return fig


def _axes(ax, found: list[Outcome]) -> None:
    ends = [value for outcome in found for value in outcome.reached]
    ax.set_xlim(min([0.5, *ends]) - 0.05, max([1.3, *ends]) + 0.05)
    ax.set_yticks(range(len(found)), [outcome.kernel for outcome in found])
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    ax.set_xlabel(f"measured / predicted at {HEADLINE}; × NN: FLOP/clk/SM over that of rung NN")


def _key(fig: Figure, found: list[Outcome]) -> None:
    """The types, and the two kinds of dots, below the axis; above them the shapes that differ."""
    inch = 1 / fig.get_figheight()
    for i, (kind, colour) in enumerate((kind, HUES[kind]) for kind in HUES if any(o.type == kind for o in found)):
        fig.text(0.02 + 0.075 * i, 0.16 * inch, f"● {kind}", color=colour, va="center")
    note = "○ the prediction is an upper bound (≤)"
    if any(outcome.expected.out == "same" for outcome in found):
        note += "     * with 16-bit results; the others with FP32 results"
    if other := [outcome for outcome in found if outcome.expected.shape]:  # a line of their own
        said = ", ".join(f"{outcome.expected.shape} ({outcome.kernel.partition('_')[0]})" for outcome in other)
        fig.text(0.19, 0.34 * inch, f"† not at {HEADLINE} but at {said}", va="center")
    fig.text(0.19, 0.16 * inch, note, va="center")
