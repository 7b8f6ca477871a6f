"""Shapes by the named families that the programs know."""

from plots.data.rungs import Facts
from plots.data.units import Shape

OTHER = "other"


def family(shape: Shape, facts: Facts) -> str:
    """The first family that holds `shape`; a square that none holds counts as "square", anything else as "other"."""
    named = next((name for name, shapes in facts.families.items() if shape in shapes), None)
    return named or ("square" if shape.is_square else OTHER)


def by_family(shapes: list[Shape], facts: Facts) -> dict[str, list[Shape]]:
    """`shapes` by family: squares by size, the others in the order of their family, those of no family last and by size."""
    order = {shape: place for members in facts.families.values() for place, shape in enumerate(members)}
    groups = {name: [s for s in shapes if family(s, facts) == name] for name in ["square", *facts.families, OTHER]}
    groups["square"].sort()
    return {
        name: sorted(members, key=lambda s: (order.get(s, len(order)), s.flop)) if name != "square" else members
        for name, members in groups.items()
        if members
    }
