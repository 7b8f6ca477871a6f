"""The plan of 18f, the FP32 kernel with stream-K: splits of K, or work units of the last wave, and the clocks expected of it.

The terms are those of the kernels' models; chapters 17 and 18 explain them.
"""

import math

from plots.data.units import Shape

BM, BN, BK, SMS = 128, 256, 8, 132
START, K_TILE, UNIT = 6300, 2505, 6700
ADD, ADD_SPLIT, ADD_BYTE = 3000, 160, 1 / 11.5
STREAM_K_TILE, FIX_UP, OTHER = 2700, 16000, 2000  # in a plan with stream-K
MOST_SPLITS = 128


def plan_of_18f(shape: Shape) -> tuple[bool, float]:
    """Whether 18f takes stream-K, and the clocks that its model expects for its plan."""
    tiles, k_tiles = math.ceil(shape.m / BM) * math.ceil(shape.n / BN), math.ceil(shape.k / BK)
    one = splits_of_17f(shape, 1)
    best = min(splits_of_17f(shape, count) for count in range(1, min(k_tiles, MOST_SPLITS) + 1))
    clocks, stream_k = (one if best >= 0.95 * one else best), False
    for whole_waves in {tiles // SMS, max(tiles // SMS - 1, 0)}:
        units = stream_k_of_18f(tiles, k_tiles, whole_waves)
        if units < 0.98 * clocks:
            clocks, stream_k = units, True
    return stream_k, clocks


def splits_of_17f(shape: Shape, count: int) -> float:
    """Clocks of a plan with this many splits of K."""
    tiles, k_tiles = math.ceil(shape.m / BM) * math.ceil(shape.n / BN), math.ceil(shape.k / BK)
    reduction = ADD + ADD_SPLIT * count + 4 * count * shape.m * shape.n / SMS * ADD_BYTE if count > 1 else 0
    return START + math.ceil(tiles * count / SMS) * (math.ceil(k_tiles / count) * K_TILE + UNIT) + reduction


def stream_k_of_18f(tiles: int, k_tiles: int, whole_waves: int, k_tile: int = STREAM_K_TILE) -> float:
    """Clocks of a plan with whole waves of tiles, the other tiles in equal work units; infinite where none is left."""
    left = (tiles - whole_waves * SMS) * k_tiles
    if left < SMS:
        return math.inf
    others = (k_tiles - 1) // (left // SMS)
    return START + whole_waves * (k_tiles * k_tile + UNIT) + math.ceil(left / SMS) * k_tile + FIX_UP + others * OTHER
