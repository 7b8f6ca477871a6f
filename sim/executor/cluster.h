// The blocks that run interleaved on one CPU thread: a thread block cluster, of one block where the launch has none, or all
// clusters of a cooperative launch. Their warps take turns in one seeded random order.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/block.h"
#include "executor/clocks.h"
#include "executor/global_races.h"
#include "executor/progress_watchdog.h"

namespace sim {

/// An address of shared::cluster holds the block's rank + 1 above the offset in its shared memory; mapa makes such addresses.
/// Rank + 1 = 0 is the executing block's own window, shared::cta (PTX ISA 5.1.6; 9.7.9.25, mapa).
constexpr int cluster_rank_shift = 24;
constexpr uint64_t shared_offset(uint64_t address) { return address & ((1U << cluster_rank_shift) - 1); }

class Cluster {
 public:
  /// `worker`: the number of the CPU thread. `races`: null where races in global memory are not looked for.
  Cluster(const Program& program, const ptx::Module& module, const LaunchParams& launch, const DeviceMemory& memory,
          ProgressWatchdog& watchdog, size_t worker, GlobalRaces* races = nullptr);
  ~Cluster();

  /// Thrown where a fault elsewhere has ended the launch.
  struct Stopped {};

  /// Runs unit `index` of the grid to its end.
  void run(uint64_t index);

  const std::vector<OpCount>& counts() const { return counts_; }

  // What its blocks share.
  const Program& program;
  const ptx::Module& module;
  const LaunchParams& launch;
  const DeviceMemory& memory;
  Clocks clocks;
  uint32_t blocks() const { return uint32_t(blocks_.size()); }
  Block& block(uint32_t rank) { return *blocks_[rank]; }
  uint32_t blocks_of_cluster() const { return uint32_t(launch.cluster.count()); }
  uint32_t threads() const { return uint32_t(launch.block.count()); }
  uint32_t warps_per_block() const { return (threads() + warp_size - 1) / warp_size; }
  uint32_t actors_per_block() const {
    return warps_per_block() + 1;
  }  ///< of the clocks: its warps, then the copies into it
  uint64_t random() { return random_(); }
  std::byte* param() const { return param_; }
  uint64_t index() const { return index_; }

  /// barrier.cluster.arrive and .wait of a warp; wait: whether the barrier is complete.
  void arrive(Warp& warp, const Op& op);
  bool wait(Warp& warp, const Op& op);

  bool land_for(const Block& block, uint32_t address);
  bool arrive_for(const Block& block, uint32_t address);
  bool land_any();

  /// Something happened that a polling warp may be waiting for.
  void progress() { ++progress_; }

  /// The name of an actor of the clocks, as seen from `block`.
  std::string name_of(uint32_t actor, const Block& block) const;

 private:
  friend class Block;

  uint64_t instructions() const;
  void check_limit(const Warp& warp);

  void start(uint64_t index);
  Warp* next();
  template <class Which>
  bool land_one(const Which& which);
  void finish();
  void check_barrier(const Warp& one);
  void look_at(Warp& warp);
  bool has_patience(const Warp& warp) const;
  [[noreturn]] void deadlock();
  [[noreturn]] void livelock(const Warp& warp);

  std::vector<OpCount> counts_;
  std::vector<std::vector<Pattern>> patterns_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  std::vector<KnownContents> contents_;
  WarningsByOp warnings_;
  GlobalRaces* races_;
  uint64_t turns_ = 0, instructions_before_ = 0;  ///< of warps; of earlier units
  std::vector<std::byte> param_bytes_;
  std::byte* param_ = nullptr;  ///< aligned as a tensor map wants it
  uint64_t index_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Warp*> warps_, ready_, polling_;  ///< all; those that can run
  std::vector<BulkCopy> pending_;
  std::vector<AsyncArrival> arrivals_;
  uint64_t progress_ = 0;
  uint64_t events_ = 0;  ///< turns that changed the state of their warp
  ProgressWatchdog& watchdog_;
  size_t worker_;
  std::mt19937_64 random_;

  /// barrier.cluster of one cluster.
  struct Barrier {
    uint64_t phase = 0;
    VectorClock arriving, arrived;  ///< of the current phase, of the last complete one
  };
  Barrier& barrier_of(const Warp& warp) { return barriers_[warp.actor / actors_per_block() / blocks_of_cluster()]; }
  std::vector<Barrier> barriers_;  ///< more than one in a cooperative launch
};

}  // namespace sim
