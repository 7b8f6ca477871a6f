// What a launch asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/program.h"
#include "executor/warnings.h"
#include "sim/checks.h"

namespace sim {

class PrintBuffer;

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// A minute on the CPU; a block of a rung at 4096 x 4096 x 4096 takes less than a hundredth of this.
constexpr uint64_t default_limit = 2'000'000'000;

struct LaunchParams {
  Extent grid, block;
  Extent cluster;                 ///< blocks of a cluster; divides the grid
  bool explicit_cluster = false;  ///< the kernel or its launch asked for clusters
  bool cooperative = false;       ///< all blocks run at the same time: they may wait for one another
  uint32_t dynamic_smem = 0;
  uint32_t sms = 1;               ///< multiprocessors of the GPU
  std::vector<std::byte> params;  ///< the values of the .param list, laid out by size and alignment
  uint64_t seed = 0;              ///< decides the order in which warps run
  unsigned threads = 0;           ///< CPU threads; 0: as many as there are
  uint64_t grid_workspace = 0;    ///< address of zeroed memory for grid-wide barriers, as %envreg1 and %envreg2 give it
  PrintBuffer* print = nullptr;   ///< where printf goes; null: nowhere
  Checks checks;                  ///< what a finding of each check does
  Warnings* warnings = nullptr;   ///< where warnings go; null: nowhere
  bool tensor_memory = false;     ///< the program uses it: set when it is run
  uint64_t limit = default_limit;  ///< warp instructions of one block; with more it is taken for a loop without an end

  uint32_t threads_per_block() const { return uint32_t(block.count()); }
  uint32_t warps_per_block() const { return (threads_per_block() + warp_size - 1) / warp_size; }
  /// Of the clocks: its warps, then the copies into it, then the tensor core that tcgen05 works with.
  uint32_t actors_per_block() const { return warps_per_block() + (tensor_memory ? 2 : 1); }
  uint32_t blocks_per_cluster() const { return uint32_t(cluster.count()); }
};

}  // namespace sim
