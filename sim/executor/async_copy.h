// cp.async of one warp, under way, and the arrivals at mbarriers that wait for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/program.h"

namespace sim {

struct Warp;

struct AsyncCopy {
  uint32_t op = 0;
  uint64_t number = 0;                      ///< how many the warp had issued before
  uint8_t bytes = 0;                        ///< per lane
  Mask mask = 0;                            ///< the lanes whose part has not landed
  std::array<uint32_t, warp_size> group{};  ///< of the lane's groups, which it belongs to
  std::array<uint32_t, warp_size> to{};     ///< in the block's shared memory
  std::array<const std::byte*, warp_size> from{};
  std::array<uint8_t, warp_size> valid{};  ///< bytes that come from there; the rest is zeros
};

/// What cp.async.mbarrier.arrive leaves behind: arrivals, one per lane, after the copies that the lane had issued before.
struct AsyncArrival {
  const Op* op = nullptr;
  Warp* warp = nullptr;
  Mask mask = 0;                               ///< the lanes that have not arrived
  std::array<uint32_t, warp_size> mbarrier{};  ///< in the warp's block
  uint64_t copies = 0;                         ///< how many the warp had issued before
};

}  // namespace sim
