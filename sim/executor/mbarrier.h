// Memory barrier objects (PTX ISA 9.7.13.15, "mbarrier"): a phase is complete when no arrival is pending and the bytes that
// it expects have come. The 64 bits in shared memory are opaque to programs; the state is kept here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/clocks.h"

namespace sim {

struct Mbarrier {
  static constexpr int64_t max_count = (1 << 20) - 1;  ///< of arrivals, and of bytes in both directions

  uint64_t phase = 0;     ///< how many are complete
  uint32_t expected = 0;  ///< arrivals of the phases to come
  uint32_t pending = 0;   ///< arrivals that this phase lacks
  int64_t tx_count = 0;   ///< bytes that this phase lacks; below 0 where a copy was faster than its expect_tx
  uint32_t made_by = 0;   ///< the actor of mbarrier.init, and when
  uint32_t made_at = 0;
  uint64_t made_in = 0;  ///< the first phase of the cluster's barrier that ends after that
  bool fenced = false;   ///< fence.mbarrier_init made it known to the asynchronous proxy
  /// and, by any phase of the cluster's barrier from this one on, to the cluster: its arrivals may be relaxed
  uint64_t fenced_in = 0;
  std::vector<uint64_t> seen;  ///< how many phases each of the block's threads has waited for by parity; empty: none
  VectorClock arriving;        ///< of those that arrived in this phase
  VectorClock arrived;         ///< of all in the complete ones

  /// Whether the phase that `parity` stands for is complete: the one before the current phase, or the current one.
  bool complete(uint32_t parity) const { return (phase & 1) != parity; }

  /// Ends the phase if nothing is missing.
  bool advance();

  std::string describe() const;
};

/// By address in the block's shared memory.
using Mbarriers = std::map<uint32_t, Mbarrier>;

/// The state that mbarrier.arrive gives out: the phase that it belongs to, and the arrivals pending before it.
constexpr uint64_t mbarrier_state(uint64_t phase, uint32_t pending) { return phase << 20 | pending; }

/// What a warp found incomplete: the mbarrier at `address` of its block.
struct Poll {
  uint32_t address = 0;
  uint64_t phase = 0;     ///< that it waits for
  uint64_t progress = 0;  ///< the cluster's, when it last looked
  uint32_t times = 0;     ///< how often it has looked since
  bool missed = false;    ///< it waits for a phase that is over, and may go on
  uint32_t lanes = 0;     ///< that wait, one bit each
};

}  // namespace sim
