// The blocks that run interleaved on one CPU thread, and what they share: a thread block cluster, of one block where the launch has
// none, or all clusters of a cooperative launch.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "device_memory.h"
#include "executor/block.h"
#include "executor/clocks.h"
#include "executor/launch.h"
#include "ptx/ir.h"

namespace sim {

/// What clusterlaunchcontrol.try_cancel writes; opaque to programs.
struct LaunchCancel {
  uint32_t canceled = 0;
  uint32_t first[3] = {};  ///< block of the cluster
};
static_assert(sizeof(LaunchCancel) == 16);

/// How often an operation has been executed, by warps and by lanes.
struct Executions {
  uint64_t warps = 0, lanes = 0;
};

/// Counts of one operation of the program.
struct OpCount {
  uint64_t warps = 0, lanes = 0;
  uint64_t global_requests = 0, sectors = 0, global_bytes = 0;
  uint64_t shared_requests = 0, wavefronts = 0, ideal = 0, shared_bytes = 0;
  uint64_t flops = 0;         ///< beyond Op::flops: of an operation whose shape is known when it runs
  uint64_t tensor_bytes = 0;  ///< of shared memory that tcgen05.mma or tcgen05.cp reads
};

struct Unit {
  Unit(const Program& program, const ptx::Module& module, const LaunchParams& launch, const DeviceMemory& memory,
       bool races);

  /// Makes it unit `index` of the grid.
  void start(uint64_t index);

  /// All of a warp's `lanes` lanes execute the operations from `begin` to `end`, one after another. What this adds to the counts is
  /// noted at both ends alone, until add_runs().
  void count_run(uint32_t begin, uint32_t end, uint64_t lanes) {
    ++runs_[begin].warps;
    runs_[begin].lanes += lanes;
    --runs_[end].warps;
    runs_[end].lanes -= lanes;
  }
  void add_runs();

  std::byte* param() const { return param_; }
  /// Where block `rank` of cluster `cluster` of the grid lies.
  Extent place(uint64_t cluster, uint32_t rank) const;
  uint32_t clusters() const { return uint32_t(blocks.size()) / launch.blocks_per_cluster(); }
  /// The block with this rank in the cluster of `block`.
  Block& in_cluster_of(const Block& block, uint32_t rank) { return *blocks[block.number - block.rank + rank]; }

  const Program& program;
  const ptx::Module& module;
  const LaunchParams& launch;
  const DeviceMemory& memory;
  Clocks clocks;
  std::vector<OpCount> counts;  ///< by operation
  uint64_t index = 0;
  /// Units that have not started, and that clusterlaunchcontrol.try_cancel may take: this one, and every `stride`-th after it.
  uint64_t to_cancel = 0, stride = 0;
  bool cancel_has_failed = false;
  std::mt19937_64 random;
  uint64_t progress = 0;  ///< how often something has happened that a polling warp may be waiting for
  std::vector<std::unique_ptr<Block>> blocks;

 private:
  std::vector<Executions> runs_;  ///< by operation: more than of the one before it
  std::vector<std::byte> param_bytes_;
  std::byte* param_ = nullptr;  ///< aligned as a tensor map wants it
};

}  // namespace sim
