"""From the data sheet's peak to what was measured, as a table: a column for each rung and size."""

from plots.data.losses import CAUSES, PEAK, REST, Losses
from plots.data.units import MISSING, tflops
from plots.tables.grid import Grid

MEASURED = "measured"  # the rate; what it lacks of the line above is what was left over


def grid(found: list[Losses]) -> Grid:
    """A line per cause: TFLOP/s that are left, and in brackets the part that the cause leaves."""
    lines = [[PEAK, *(tflops(case.peak) for case in found)]]
    causes = [cause for cause in CAUSES if any(cause in case.left for case in found)]
    lines += [[_called(cause), *(_cell(case, cause) for case in found)] for cause in causes]
    head = [f"{case.name}: {case.clock:.0f} MHz, {case.power:.0f} W" for case in found]
    return Grid(["TFLOP/s (of the line before)", *head], lines)


def _called(cause: str) -> str:
    return MEASURED if cause == REST else cause


def _cell(case: Losses, cause: str) -> str:
    if cause not in case.left:
        return MISSING
    return f"{tflops(case.left[cause])} ({case.left[cause] / case.before(cause):.3f})"
