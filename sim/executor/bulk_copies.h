// TMA and the like: bulk copies, tensor copies, st.async and red.async.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/async_copies.h"
#include "executor/bulk_copy.h"
#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/synchronisation.h"
#include "executor/unit.h"

namespace sim {

class BulkCopies {
 public:
  BulkCopies(Unit& unit, Reports& reports, MemoryChecker& checker, Synchronisation& sync, AsyncCopies& async_copies)
      : unit_(unit),
        reports_(reports),
        checker_(checker),
        sync_(sync),
        async_copies_(async_copies),
        launch_(unit.launch),
        memory_(unit.memory),
        clocks_(unit.clocks),
        counts_(unit.counts) {}

  /// The unit starts.
  void start() { pending_.clear(); }

  /// cp.async.bulk and cp.reduce.async.bulk, st.async and red.async, cp.async.bulk.wait_group.
  void issue(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void issue_stores(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  void wait(Warp& warp, const Op& op, Mask mask);
  /// clusterlaunchcontrol.try_cancel.
  void cancel_launches(Warp& warp, const Op& op, uint32_t pc, Mask mask);

  /// One copy, or the arrivals of one cp.async.mbarrier.arrive, that the mbarrier of `block` at `address` waits for. False where
  /// there is none.
  bool land_for(const Block& block, uint32_t address);
  /// That any mbarrier waits for.
  bool land_any();

  void block_ends(const Block& block);
  /// At the kernel's end, the copies to global memory that are still pending land.
  void finish();

 private:
  BulkCopy::End shared_end(const Warp& warp, int lane, const Op& op, uint64_t address, bool cluster);
  TensorMap tensor_map(const Warp& warp, int lane, const Op& op, uint64_t address);
  void begin(BulkCopy copy);
  void begin_store(BulkCopy copy);
  void count(const BulkCopy& copy);
  void check_tensor_row(const BulkCopy& copy, const TensorRow& row);
  void read_source(BulkCopy& copy);
  void write_destination(BulkCopy& copy);
  template <class Which>
  bool land_one(const Which& which);

  Unit& unit_;
  Reports& reports_;
  MemoryChecker& checker_;
  Synchronisation& sync_;
  AsyncCopies& async_copies_;
  const LaunchParams& launch_;
  const DeviceMemory& memory_;
  Clocks& clocks_;
  std::vector<OpCount>& counts_;
  std::vector<BulkCopy> pending_;
};

}  // namespace sim
