// The lane map of a warp tile (08): which thread tile of its warp's tile a lane owns. Beside common/layout.h, whose
// Coord and wavefronts() it uses; tests/host/layout_warp_test.cpp proves what is said here.
#pragma once

#include "common/layout.h"

namespace ladder {

/// Place of `lane` among the 4 x 8 thread tiles of a warp tile. Row by row would be {lane / 8, lane % 8}; the XOR
/// leaves no lane in the row or the column of its neighbours lane ^ 1 and lane ^ 2, so that 16-byte shared loads of both
/// operands take 4 wavefronts. Loads that all lanes share with such a neighbour merge into 2, and are slower: they
/// return two registers a clock, which takes the register file's write port from the FFMAs.
constexpr LADDER_HOST_DEVICE Coord lane_tile(int lane) { return {lane % 4, lane / 4 ^ lane % 4}; }

}  // namespace ladder
