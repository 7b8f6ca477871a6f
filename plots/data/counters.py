"""What the simulator counted, rung by rung, and what it is per multiply-add."""

from dataclasses import dataclass
from typing import Any

from plots.data.results import Simulation
from plots.data.rungs import order
from plots.data.units import Shape

SECTOR_BYTES = 32
WARP = 32


@dataclass(frozen=True)
class Counted:
    """The counters of one type at one shape, of every kernel that came out right."""

    type: str
    shape: Shape
    rows: dict[str, Any]  # kernel, in ladder order -> row with the CSV's columns as attributes

    def loaded(self, kernel: str) -> float:
        """Bytes that global loads move, in whole sectors; a GPU takes some of them from L1."""
        return self.rows[kernel].sim_global_load_sectors * SECTOR_BYTES

    def stored(self, kernel: str) -> float:
        """Bytes that global stores move, in whole sectors."""
        return self.rows[kernel].sim_global_store_sectors * SECTOR_BYTES

    def excess(self, kernel: str) -> float:
        """Wavefronts beyond the fewest that the bytes need: bank conflicts."""
        return self.rows[kernel].sim_shared_wavefronts - self.rows[kernel].sim_shared_ideal

    def per_fma(self, count: float) -> float:
        """A count for each of the M·N·K multiply-adds."""
        return count / (self.shape.flop / 2)

    def instructions_per_fma(self, kernel: str) -> float:
        """Warp instructions of PTX per FMA of a warp."""
        return self.per_fma(WARP * self.rows[kernel].sim_warp_instructions)

    def per_four_fmas(self, wavefronts: float) -> float:
        """Wavefronts per four FMAs of a warp, which an SM starts in the time of one wavefront."""
        return self.per_fma(4 * WARP * wavefronts)


def counted(simulation: Simulation) -> list[Counted]:
    """The counters by type and shape, small shapes first."""
    frame = simulation.counts[(simulation.counts["status"] == "ok") & simulation.counts["sim_warp_instructions"].notna()]
    tables = []
    for (kind, shape), rows in frame.groupby(["type", "shape"], sort=False):
        by_kernel = {row.kernel: row for row in sorted(rows.itertuples(), key=lambda row: order(row.kernel))}
        tables.append(Counted(str(kind), shape, by_kernel))
    return sorted(tables, key=lambda table: (table.type, table.shape.flop, table.shape))
