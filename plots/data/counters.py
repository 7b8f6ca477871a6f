"""What the simulator counted, rung by rung, and what it is for each instruction that multiplies."""

from dataclasses import dataclass
from typing import Any

from plots.data.results import Simulation
from plots.data.rungs import Facts, order
from plots.data.units import Shape

SECTOR_BYTES = 32
WARP = 32
FFMA, MMA, WGMMA = "FFMA", "mma.sync", "wgmma"
K_BYTES = 32  # along k per mma or wgmma: 16 elements of 16 bits, 8 of TF32


@dataclass(frozen=True)
class Per:
    """What counters are told for each of, in the terms of an instruction."""

    name: str
    fmas: int


@dataclass(frozen=True)
class Terms:
    """What the counters of an instruction's rungs are told for each of, and whether 1 is a limit there."""

    traffic: Per
    wavefronts: Per
    instructions: Per
    shape: str = ""  # of that instruction, where it has one
    has_limit: bool = False

    @property
    def instruction(self) -> str:
        """The instruction that multiplies."""
        return self.instructions.name


def terms(instruction: str, operand_bytes: int) -> Terms:
    """FMAs of FFMA, of which an SM starts four warps' in the time of a wavefront; else the instruction itself."""
    k = K_BYTES // operand_bytes
    if instruction == MMA:
        return Terms(*[Per("mma", 16 * 8 * k)] * 3, f"m16n8k{k}")
    if instruction == WGMMA:
        return Terms(*[Per("wgmma", 64 * 256 * k)] * 3, f"m64n256k{k}")
    return Terms(Per("FMA", 1), Per("4 FMAs", 4 * WARP), Per("FMA", WARP), has_limit=instruction == FFMA)


@dataclass(frozen=True)
class Counted:
    """The counters of one type and instruction at one shape, of every kernel that came out right."""

    type: str
    instruction: str
    shape: Shape
    terms: Terms
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

    def per(self, what: Per, count: float) -> float:
        """A count for each of the product's parts of so many multiply-adds."""
        return count * what.fmas / (self.shape.flop / 2)

    def traffic(self, kernel: str) -> float:
        """Bytes of global loads and stores, in the instruction's terms."""
        return self.per(self.terms.traffic, self.loaded(kernel) + self.stored(kernel))

    def wavefronts(self, count: float) -> float:
        """Wavefronts of shared memory, in the instruction's terms."""
        return self.per(self.terms.wavefronts, count)

    def instructions(self, kernel: str) -> float:
        """Warp instructions of PTX, in the instruction's terms."""
        return self.per(self.terms.instructions, self.rows[kernel].sim_warp_instructions)


def counted(simulation: Simulation) -> list[list[Counted]]:
    """The counters by type, in the facts' order, and instruction, in the ladder's; of each the shapes, the largest first."""
    facts = simulation.facts
    frame = simulation.counts[(simulation.counts["status"] == "ok") & simulation.counts["sim_warp_instructions"].notna()]
    found: dict[tuple[str, str], list[Counted]] = {}
    for kind in facts.types:
        rows = sorted(frame[frame["type"] == kind].itertuples(), key=lambda row: (-row.shape.flop, row.shape, order(row.kernel)))
        for instruction in sorted({_instruction(facts, row.kernel) for row in rows}, key=list(_instructions(facts)).index):
            own = [row for row in rows if _instruction(facts, row.kernel) == instruction]
            words = terms(instruction, facts.types[kind].bytes)
            found[kind, instruction] = [
                Counted(kind, instruction, shape, words, {row.kernel: row for row in own if row.shape == shape})
                for shape in dict.fromkeys(row.shape for row in own)
            ]
    return list(found.values())


def _instruction(facts: Facts, kernel: str) -> str:
    """The instruction that a rung states; empty for a kernel unknown here."""
    return facts.rungs[kernel].instruction if kernel in facts.rungs else ""


def _instructions(facts: Facts) -> dict[str, None]:
    """The instructions in the order in which the ladder takes them up."""
    return dict.fromkeys([*(rung.instruction for rung in facts.rungs.values()), ""])
