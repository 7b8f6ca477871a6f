// Whose turn it is among the warps of the blocks that run interleaved on one CPU thread: one seeded random order. And whether they
// still get anywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/async_copies.h"
#include "executor/bulk_copies.h"
#include "executor/global_races.h"
#include "executor/interpreter.h"
#include "executor/memory_checker.h"
#include "executor/progress_watchdog.h"
#include "executor/reports.h"
#include "executor/synchronisation.h"
#include "executor/tcgen05_engine.h"
#include "executor/unit.h"
#include "executor/wgmma_engine.h"

namespace sim {

class Cluster {
 public:
  /// `worker`: the number of the CPU thread. `races`: null where races in global memory are not looked for.
  Cluster(const Program& program, const ptx::Module& module, const LaunchParams& launch, const DeviceMemory& memory,
          ProgressWatchdog& watchdog, size_t worker, GlobalRaces* races = nullptr);

  /// Thrown where a fault elsewhere has ended the launch.
  struct Stopped {};

  /// Runs unit `index` of the grid to its end. It may cancel the launch of every `stride`-th one after it, in their order; gives back the
  /// first that it has not cancelled.
  uint64_t run(uint64_t index, uint64_t stride = 0);

  const std::vector<OpCount>& counts() {
    unit_.add_runs();
    return unit_.counts;
  }

 private:
  void start(uint64_t index);
  Warp* next();
  void look_at(Warp& warp);
  bool has_patience(const Warp& warp) const;
  uint64_t instructions();
  void check_limit(const Warp& warp);
  bool missed_phase();
  [[noreturn]] void deadlock();
  [[noreturn]] void livelock(const Warp& warp);

  Unit unit_;
  Reports reports_;
  MemoryChecker checker_;
  Synchronisation sync_;
  AsyncCopies async_copies_;
  BulkCopies bulk_copies_;
  WgmmaEngine wgmma_;
  Tcgen05Engine tcgen05_;
  Interpreter interpreter_;
  ProgressWatchdog& watchdog_;
  const size_t worker_;
  uint64_t turns_ = 0, instructions_before_ = 0;  ///< of warps; of earlier units
  uint64_t events_ = 0;                           ///< turns that changed the state of their warp
  std::vector<Warp*> warps_, ready_, polling_;    ///< all; those that can run
};

}  // namespace sim
