// cp.async of one warp, under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/executor/program.h"

namespace sim {

struct AsyncCopy {
  uint32_t op = 0;
  uint8_t bytes = 0;                        ///< per lane
  Mask mask = 0;                            ///< the lanes whose part has not landed
  std::array<uint32_t, warp_size> group{};  ///< of the lane's groups, which it belongs to
  std::array<uint32_t, warp_size> to{};     ///< in the block's shared memory
  std::array<const std::byte*, warp_size> from{};
  std::array<uint8_t, warp_size> valid{};  ///< bytes that come from there; the rest is zeros
};

}  // namespace sim
