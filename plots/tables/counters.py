"""The report's table of what the simulator counted."""

from plots.data.counters import Counted
from plots.data.units import digits
from plots.tables.grid import Grid


def counter_grid(table: Counted) -> Grid:
    """Every counter of every rung; two of them for each instruction that multiplies."""
    head = ["rung", "loaded, MB in sectors", "asked for by lanes, MB", "stored, MB in sectors", "shared wavefronts"]
    head += ["of them conflicts", f"wavefronts per {table.terms.wavefronts.name}", "PTX warp instructions"]
    head += [f"instructions per {table.terms.instruction}", "warps at barriers"]
    rows = []
    for kernel, row in table.rows.items():
        cells = [
            *(digits(size / 1e6) for size in (table.loaded(kernel), row.sim_global_load_bytes, table.stored(kernel))),
            f"{row.sim_shared_wavefronts:,.0f}",
            f"{table.excess(kernel):,.0f}",
            digits(table.wavefronts(row.sim_shared_wavefronts)),
            f"{row.sim_warp_instructions:,.0f}",
            digits(table.instructions(kernel)),
            f"{row.sim_barriers:,.0f}",
        ]
        rows.append([kernel, *cells])
    return Grid(head, rows)
