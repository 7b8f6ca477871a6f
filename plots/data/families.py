"""The named shape families, read from the source that the programs are built from."""

import re
from functools import cache
from pathlib import Path

from plots.data.rungs import ROOT
from plots.data.units import Shape

SOURCE = Path("bench/shape_families.cpp")
OTHER = "other"


@cache
def read_families(root: Path = ROOT) -> dict[str, tuple[Shape, ...]]:
    """Shapes by family name, in the source's order; empty where the source is absent."""
    path = root / SOURCE
    parts = re.split(r'\{"(\w+)",', path.read_text(encoding="utf-8"))[1:] if path.is_file() else []
    return {
        name: tuple(Shape(*map(int, sizes)) for sizes in re.findall(r"\{(\d+),\s*(\d+),\s*(\d+)\}", body))
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def family(shape: Shape) -> str:
    """The first family that holds `shape`; a square that none holds counts as "square", anything else as "other"."""
    named = next((name for name, shapes in read_families().items() if shape in shapes), None)
    return named or ("square" if shape.is_square else OTHER)


def by_family(shapes: list[Shape]) -> dict[str, list[Shape]]:
    """`shapes` by family, families and shapes in the source's order, those of no family last and by size."""
    order = {shape: place for members in read_families().values() for place, shape in enumerate(members)}
    groups = {name: [s for s in shapes if family(s) == name] for name in ["square", *read_families(), OTHER]}
    groups["square"].sort()
    return {
        name: sorted(members, key=lambda s: (order.get(s, len(order)), s.flop)) if name != "square" else members
        for name, members in groups.items()
        if members
    }
