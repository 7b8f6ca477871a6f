"""Why the simulator cannot run a program, in one line, before it is started.

The status is 2 where the program must be built otherwise, and 77 where it needs a library that the simulator does not stand in
for. The program is not run: only its ELF headers are read.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

USAGE, WAIVED = 2, 77
RUNTIME, DRIVER = "libcudart.so.13", "libcuda.so.1"
# NVIDIA's libraries run kernels of their own through a runtime of their own.
NVIDIA = re.compile(r"lib(cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|npp\w+|nvjpeg|nccl|nvrtc|nvJitLink)\.so")


class Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    link: int


class Elf:
    """What a program or library of 64 bits needs and defines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        if self.data[:4] != b"\x7fELF" or self.data[4] != 2:
            raise ValueError("no ELF file of 64 bits")
        table, _, _, _, _, size, count, names = struct.unpack_from("<QIHHHHHH", self.data, 40)
        raw = [struct.unpack_from("<IIQQQQII", self.data, table + i * size) for i in range(count)]
        strings = raw[names][4] if raw else 0
        self.sections = [Section(self.text(strings + r[0]), r[1], r[4], r[5], r[6]) for r in raw]
        self.dynamic: list[tuple[int, int]] = []
        for section in self.of_kind(6):
            self.dynamic = list(struct.iter_unpack("<QQ", self.data[section.offset : section.offset + section.size // 16 * 16]))
            self.strings = self.sections[section.link].offset

    def text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode(errors="replace")

    def of_kind(self, kind: int) -> Iterator[Section]:
        return (s for s in self.sections if s.kind == kind)

    def named(self, name: str) -> bytes:
        return b"".join(self.data[s.offset : s.offset + s.size] for s in self.sections if s.name == name and s.kind != 8)

    def entries(self, tag: int) -> list[str]:
        return [self.text(self.strings + value) for key, value in self.dynamic if key == tag]

    @property
    def needed(self) -> list[str]:
        return self.entries(1)

    @property
    def folders(self) -> list[Path]:
        paths = ":".join(self.entries(15) + self.entries(29)).replace("${ORIGIN}", "$ORIGIN")
        return [Path(p.replace("$ORIGIN", str(self.path.parent))) for p in paths.split(":") if p]


def kinds_of_code(fatbins: bytes) -> set[int]:
    """1: PTX, 2: machine code. The layout is in sim/fatbin.h."""
    kinds: set[int] = set()
    at = 0
    while (at := fatbins.find(b"\x50\xed\x55\xba", at)) >= 0 and at + 16 <= len(fatbins):
        header, size = struct.unpack_from("<HQ", fatbins, at + 6)
        entry, end = at + header, min(at + header + size, len(fatbins))
        while entry + 16 <= end:
            kind, _, header, payload = struct.unpack_from("<HHIQ", fatbins, entry)
            kinds.add(kind)
            entry += max(header + payload, 16)
        at = max(end, at + 16)
    return kinds


def with_libraries(program: Elf) -> list[Elf]:
    """The program, and of the libraries that it needs those that are its own: not in the system's folders."""
    found, names = [program], set()
    search = [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    for elf in found:
        for name in elf.needed:
            if name in names or name.startswith(("libcudart.so", "libcuda.so")) or NVIDIA.match(name):
                continue
            names.add(name)
            paths = [folder / name for folder in search + elf.folders if (folder / name).is_file()]
            if paths:
                found.append(Elf(paths[0]))
    return found


def check(path: Path) -> None:
    if not path.exists():
        raise Refused(USAGE, "there is no such program")
    if path.is_dir():
        raise Refused(USAGE, "it is a folder")
    if path.suffix in (".cu", ".cpp", ".cc", ".c"):
        raise Refused(USAGE, f"it is a source file: compile it first: nvcc -arch=sm_80 -lineinfo -cudart shared {path.name}")
    if not os.access(path, os.X_OK):
        raise Refused(USAGE, "it is not executable")
    try:
        elves = with_libraries(Elf(path))
    except (ValueError, struct.error):
        raise Refused(USAGE, "it is no program of this machine (no ELF file)") from None

    needed = {name for elf in elves for name in elf.needed}
    with_code = [elf for elf in elves if elf.named(".nv_fatbin") or elf.named("__nv_relfatbin")]
    for elf in with_code:
        what = "it" if elf is elves[0] else elf.path.name
        if not any(name.startswith("libcudart.so") for name in elf.needed):
            raise Refused(USAGE, f"{what} links the static runtime, which cannot be replaced; relink it: nvcc -cudart shared")
        if elf.named("__nv_relfatbin"):
            raise Refused(USAGE, f"{what} was compiled with -rdc=true (or -dc), which is not supported; compile without it")
        if 1 not in kinds_of_code(elf.named(".nv_fatbin")):
            raise Refused(USAGE, f"{what} holds no PTX, only machine code; compile it with nvcc -arch=sm_80, or add "
                          "-gencode arch=compute_90,code=compute_90")  # fmt: skip
    runtimes = sorted(name for name in needed if name.startswith("libcudart.so"))
    if not with_code and not runtimes and DRIVER not in needed:
        raise Refused(USAGE, "it holds no CUDA code")
    for name in runtimes:
        if name != RUNTIME:
            raise Refused(USAGE, f"it was built for {name}: the simulator stands in for the runtime of CUDA 13")
    for name in sorted(needed):
        if NVIDIA.match(name):
            raise Refused(WAIVED, f"it needs {name}, which the simulator does not stand in for")
