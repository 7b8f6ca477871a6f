"""Where an average warp's time goes along the ladder: stall reasons as Nsight Compute counted them, as shares."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from plots.data.profiles import Profile
from plots.data.rungs import order
from plots.data.units import Shape
from plots.figures import style

ISSUING = "issuing"
# What a warp does: the colour and the words of the legend. Blue waits for shared memory, orange for global memory.
REASONS = {
    ISSUING: ("#222222", "an instruction is issued"),
    "math pipe throttle": ("#009E73", "the FMA or tensor pipe is taken"),
    "dispatch stall": ("#8fd3bd", "the dispatcher is held up"),
    "wait": ("#8a8a8a", "the fixed delay after an instruction"),
    "not selected": ("#d5d5d5", "ready, another warp was taken"),
    "short scoreboard": ("#0072B2", "for shared memory"),
    "mio throttle": ("#9fcbe8", "the queue to shared memory is full"),
    "long scoreboard": ("#D55E00", "for global memory"),
    "lg throttle": ("#F3BE7B", "the queue to global memory is full"),
    "barrier": ("#CC79A7", "for the block's other warps"),
}
WHITE_INK = {ISSUING, "math pipe throttle", "wait", "short scoreboard", "long scoreboard"}
LEAST_WRITTEN = 0.045  # a smaller share has no number in its bar


def shares(profile: Profile) -> dict[str, dict[str, float]]:
    """Of each rung, in ladder order, the part of a warp's time by reason. Per issue one warp issues, and others wait."""
    found = {}
    for kernel in sorted(profile, key=order):
        stalls = {name: value for (group, name), value in profile[kernel].items() if group == "stalls" and value == value}
        if not stalls:
            continue
        parts = {ISSUING: 1.0} | stalls
        found[kernel] = {name: parts.get(name, 0.0) / sum(parts.values()) for name in [*REASONS, *(stalls.keys() - REASONS)]}
    return found


def draw(profile: Profile, type: str, shape: Shape) -> Figure:
    """A stacked bar per rung, 100 % each; the numbers are per cent."""
    found = shares(profile)
    fig = style.figure(2.35 + 0.34 * len(found))
    height = fig.get_figheight()
    ax = fig.add_axes((0.19, 1.75 / height, 0.79, 1 - 2.15 / height))
    for place, parts in enumerate(found.values()):
        start = 0.0
        for name, share in parts.items():
            colour = REASONS[name][0] if name in REASONS else "white"
            ax.barh(place, 100 * share, left=100 * start, height=0.74, color=colour, edgecolor="white", linewidth=0.6)
            if share >= LEAST_WRITTEN:
                ink = "white" if name in WHITE_INK else style.INK
                ax.text(100 * (start + share / 2), place, f"{100 * share:.0f}", ha="center", va="center", color=ink, fontsize=9)
            start += share
    ax.set_yticks(range(len(found)), list(found))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.set_xlim(0, 100)
    ax.set_xlabel("per cent of an average warp's time, from warps stalled per issue")
    ax.set_title(f"Where a warp's time goes, {type} at {shape}", fontsize=11)
    patches = [Patch(facecolor=colour, edgecolor="white", label=f"{name}: {said}") for name, (colour, said) in REASONS.items()]
    fig.legend(handles=patches, loc="lower center", ncols=2, frameon=False, fontsize=9, bbox_to_anchor=(0.5, 0.0))
    return fig
