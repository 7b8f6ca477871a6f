"""What the compiler made of a kernel: registers, memory, launch bounds and instructions, read with cuobjdump.

Works on any file that holds GPU code (object, fatbin, program) and needs no GPU.
"""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

NEVER = "@!PT "  # the condition of instructions that ptxas puts before copies and that are never executed


@dataclass(frozen=True)
class Kernel:
    """One __global__ function, compiled for one architecture."""

    arch: str  # "sm_90a"
    symbol: str  # mangled
    registers: int  # per thread
    stack_bytes: int  # per thread
    local_bytes: int  # per thread; spills among them
    shared_bytes: int  # per block, without dynamic shared memory
    threads: int  # per block, as its launch bounds promise; 0 without
    min_blocks: int  # per SM, as its launch bounds promise; 1 without
    instructions: tuple[str, ...]  # "LDG.E.128.CONSTANT", in the order of the code; one that is never executed is a "NOP"
    loops: tuple[range, ...] = ()  # which of them, from the target of each branch backwards to that branch
    skips: tuple[range, ...] = ()  # which of them each branch forwards leaps over
    operands: tuple[str, ...] = ()  # of each of them, as the disassembler writes them

    def count(self, pattern: str, part: range | None = None) -> int:
        """How many instructions (of that part) begin with `pattern`, a regular expression for whole dotted parts."""
        whole = re.compile(rf"(?:{pattern})(?:\.|$)")
        among = self.instructions if part is None else self.instructions[part.start : part.stop]
        return sum(bool(whole.match(instruction)) for instruction in among)

    def main_loop(self, pattern: str) -> range:
        """The shortest loop with most of `pattern`: around it, the loop over tiles of C has those of the epilogue, too."""
        counts = {loop: self.count(pattern, loop) for loop in self.loops}
        return min((loop for loop, count in counts.items() if count >= 2 / 3 * max(counts.values())), key=len)

    def around_main_loop(self, pattern: str) -> "Kernel | None":
        """What a loop executes around the main loop, if that is not the outermost."""
        inner = self.main_loop(pattern)
        outer = [loop for loop in self.loops if loop.start <= inner.start and inner.stop <= loop.stop and loop != inner]
        if not outer:
            return None
        loop = min(outer, key=len)
        kept = self.instructions[loop.start : inner.start] + self.instructions[inner.stop : loop.stop]
        return replace(self, instructions=kept, loops=(), skips=())

    def usual_round(self, pattern: str, keep: str) -> "Kernel":
        """Of the main loop alone what a usual round executes: without what a branch skips, where nothing in there matches
        `keep`. Such parts are for the edges of a matrix, or for another tile of C."""
        loop = self.main_loop(pattern)
        skips = {skip.start: skip.stop for skip in self.skips if skip.stop <= loop.stop and not self.count(keep, skip)}
        executed, place = [], loop.start
        while place < loop.stop:
            executed.append(self.instructions[place])
            place = skips.get(place + 1, place + 1)
        return replace(self, instructions=tuple(executed), loops=(), skips=())


def kernels(file: Path) -> list[Kernel]:
    """All kernels in `file`, for each architecture that it was compiled for."""
    bounds = _launch_bounds(_cuobjdump("--dump-ptx", file))
    code = _code(_cuobjdump("--dump-sass", file))
    found = []
    for arch, text in _by_arch(_cuobjdump("--dump-resource-usage", file)):
        for symbol, usage in re.findall(r"Function (\S+):\n(.*)", text):
            sizes = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", usage)}
            shared = sizes["SHARED"]
            if shared and sm_number(arch) >= 90:
                shared -= reserved_shared_bytes(sm_number(arch))  # from sm_90 on the dump counts them in
            threads, min_blocks = bounds.get(symbol, (0, 1))
            per_thread = (sizes["REG"], sizes["STACK"], sizes["LOCAL"])
            found.append(Kernel(arch, symbol, *per_thread, shared, threads, min_blocks, *code[arch, symbol]))
    return found


def compiler(file: Path) -> str:
    """The CUDA release, such as 13.0, whose compiler made the machine code in `file`."""
    return re.search(r"Cuda compilation tools, release ([0-9.]+)", _cuobjdump("--dump-elf", file))[1]


def sm_number(arch: str) -> int:
    """90 for "sm_90a"."""
    return int(re.fullmatch(r"sm_(\d+)[a-z]?", arch)[1])


@dataclass(frozen=True)
class Limits:
    """What an SM has; CUDA C++ Programming Guide, table of compute capabilities."""

    threads: int
    blocks: int
    shared_bytes: int


SM_LIMITS = {
    70: Limits(2048, 32, 96 * 1024),
    75: Limits(1024, 16, 64 * 1024),
    80: Limits(2048, 32, 164 * 1024),
    86: Limits(1536, 16, 100 * 1024),
    89: Limits(1536, 24, 100 * 1024),
    90: Limits(2048, 32, 228 * 1024),
    100: Limits(2048, 32, 228 * 1024),
    120: Limits(1536, 24, 100 * 1024),
}


def reserved_shared_bytes(sm: int) -> int:
    """What the system takes of each block's shared memory."""
    return 1024 if sm >= 80 else 0


def blocks_per_sm(sm: int, threads: int, registers: int, shared_bytes: int) -> int | None:
    """Resident blocks per SM; None for an SM whose limits are not in the table."""
    if sm not in SM_LIMITS or not threads:
        return None
    limits = SM_LIMITS[sm]
    warps = -(-threads // 32)
    registers_per_warp = -(-registers // 8) * 8 * 32  # handed out in units of 256
    warps_by_registers = 16384 // registers_per_warp * 4  # four partitions of 16384 registers
    return min(
        limits.blocks,
        limits.threads // (warps * 32),
        warps_by_registers // warps,
        limits.shared_bytes // max(shared_bytes + reserved_shared_bytes(sm), 1),
    )


def _cuobjdump(option: str, file: Path) -> str:
    return subprocess.run(["cuobjdump", option, str(file)], check=True, capture_output=True, text=True).stdout


def _by_arch(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^arch = (\S+)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _launch_bounds(ptx: str) -> dict[str, tuple[int, int]]:
    bounds = {}
    for symbol, head in re.findall(r"\.entry (\w+)\((.*?)\{", ptx, flags=re.DOTALL):
        threads = re.search(r"\.maxntid (\d+)(?:, (\d+))?(?:, (\d+))?", head)
        blocks = re.search(r"\.minnctapersm (\d+)", head)
        size = 0
        if threads:
            size = int(threads[1]) * int(threads[2] or 1) * int(threads[3] or 1)
        bounds[symbol] = (size, int(blocks[1]) if blocks else 1)
    return bounds


Code = tuple[tuple[str, ...], tuple[range, ...], tuple[range, ...], tuple[str, ...]]


def _code(sass: str) -> dict[tuple[str, str], Code]:
    """The instructions of each kernel, its loops, what its branches skip, and the operands."""
    code = {}
    for arch, text in _by_arch(sass):
        parts = re.split(r"Function : (\S+)\n", text)
        for symbol, body in zip(parts[1::2], parts[2::2], strict=True):
            lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)(.*?);", body, re.MULTILINE)
            place = {int(address, 16): number for number, (address, *_) in enumerate(lines)}
            loops, skips = [], []
            for number, (_, _, mnemonic, operands) in enumerate(lines):
                target = re.search(r"0x[0-9a-f]+", operands)
                if mnemonic.startswith("BRA") and target:
                    to = place[int(target[0], 16)]
                    if to < number:
                        loops.append(range(to, number + 1))
                    elif to > number:
                        skips.append(range(number + 1, to))
            names = tuple("NOP" if condition == NEVER else mnemonic for _, condition, mnemonic, _ in lines)
            code[arch, symbol] = (names, tuple(loops), tuple(skips), tuple(operands for *_, operands in lines))
    return code
