// What warps wait for, and what happens before what by it: barriers of a block and of a cluster, mbarriers, registers that
// setmaxnreg hands from warp to warp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/unit.h"

namespace sim {

class Synchronisation {
 public:
  Synchronisation(Unit& unit, Reports& reports, MemoryChecker& checker);

  /// The unit starts.
  void start();
  /// A warp has exited: looks again at the block's barriers that waited for it.
  void ended(const Warp& warp);

  /// bar, barrier: the warp arrives; it may have to wait.
  void arrive(Warp& warp, const Op& op);
  /// barrier.cluster.arrive and .wait of a warp; wait: whether the barrier is complete.
  void arrive_at_cluster(Warp& warp, const Op& op);
  bool wait_for_cluster(Warp& warp, const Op& op);
  void check_cluster_barrier(const Block& of);

  /// setmaxnreg. False: the warp waits for registers.
  bool set_registers(Warp& warp, const Op& op);

  // mbarrier_operations.cpp
  /// False where a wait found its phase incomplete.
  bool mbarrier_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  /// The block whose mbarrier an address stands for. The address becomes the offset in that block's shared memory.
  Block& mbarrier_owner(const Warp& warp, int lane, const Op& op, uint64_t& address);
  /// The object at an offset of `owner`'s shared memory, which the warp must know to be there.
  Mbarrier& find_mbarrier(const Warp& warp, int lane, const Op& op, Block& owner, uint64_t address);
  void fence_mbarriers(const Warp& warp);
  /// Whether a polling warp waits for a phase that it has missed. It is reported; if that returns, the warp may go on.
  bool missed_phase(Warp& warp);

  /// What a waiting, polling or spinning warp waits for, for a report.
  std::string waits_for(const Warp& warp);

 private:
  /// barrier.cluster of one cluster.
  struct ClusterBarrier {
    uint64_t phase = 0;
    VectorClock arriving, arrived;  ///< of the current phase, of the last complete one
  };
  ClusterBarrier& barrier_of(const Block& block) {
    return cluster_barriers_[block.number / launch_.blocks_per_cluster()];
  }

  void check_exited(const Warp& warp, const Op& op);
  void check_barriers(Block& block);
  void complete(Block& block, uint32_t id);
  void init_mbarrier(Warp& warp, int lane, const Op& op, uint32_t pc, uint64_t address, uint32_t count);
  void arrive(Warp& warp, int lane, const Op& op, Mbarrier& m);
  bool test_wait(Warp& warp, int lane, const Op& op, uint32_t address, Mbarrier& m);
  std::string polls_for(const Warp& warp);

  Unit& unit_;
  Reports& reports_;
  MemoryChecker& checker_;
  const Program& program_;
  const LaunchParams& launch_;
  Clocks& clocks_;
  std::vector<ClusterBarrier> cluster_barriers_;  ///< more than one in a cooperative launch
};

}  // namespace sim
