// The asynchronous copies of cp.async.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/async_copy.h"
#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/synchronisation.h"
#include "executor/unit.h"

namespace sim {

class AsyncCopies {
 public:
  AsyncCopies(Unit& unit, Reports& reports, MemoryChecker& checker, Synchronisation& sync)
      : unit_(unit), reports_(reports), checker_(checker), sync_(sync), clocks_(unit.clocks) {}

  /// The unit starts.
  void start() { arrivals_.clear(); }

  /// cp.async, cp.async.wait_group and cp.async.mbarrier.arrive.
  void issue(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void wait(Warp& warp, const Op& op, Mask mask);
  void arrive(Warp& warp, const Op& op, Mask mask);

  /// The arrivals of one instruction's lanes at the mbarrier of `block` at `address`, chosen at random. False where there are none.
  bool arrive_for(const Block& block, uint32_t address);
  /// At any mbarrier.
  bool arrive_any();

 private:
  /// The copies before an arrival land, for the lanes `due`, which arrive at the mbarrier at `address`.
  void arrive_after_copies(AsyncArrival& arrival, Mask due, uint32_t address);
  /// The parts of a copy that belong to the lanes `due` take place, as writes by `actor` at `time`.
  static void land(const Warp& warp, AsyncCopy& copy, Mask due, uint32_t actor, uint32_t time);

  Unit& unit_;
  Reports& reports_;
  MemoryChecker& checker_;
  Synchronisation& sync_;
  Clocks& clocks_;
  std::vector<AsyncArrival> arrivals_;
};

}  // namespace sim
