// wgmma: issues, waits, and multiplies.
#pragma once

#include <cstdint>

#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/unit.h"
#include "executor/wgmma.h"

namespace sim {

class WgmmaEngine {
 public:
  WgmmaEngine(Unit& unit, Reports& reports, MemoryChecker& checker)
      : reports_(reports), checker_(checker), program_(unit.program), clocks_(unit.clocks) {}

  /// Executed by all lanes of a warp together. False: the warp waits.
  bool execute(Warp& warp, const Op& op, uint32_t pc);

  /// Of any instruction: that it uses no accumulator of a wgmma that nothing has waited for.
  void check_accumulators(const Warp& warp, const Op& op, uint32_t pc, Mask mask);

 private:
  static Warpgroup& group_of(const Warp& warp) { return warp.block->warpgroups[warp.index / warpgroup_warps]; }
  void issue(Warp& warp, const Op& op, uint32_t pc);
  bool wait(Warp& warp, const Op& op);
  static void multiply(const Warp& warp, Warpgroup& group, const Wgmma& one);
  static void multiply_bytes(const Warp& warp, Warpgroup& group, const Wgmma& one);  // wgmma_bytes.cpp

  Reports& reports_;
  MemoryChecker& checker_;
  const Program& program_;
  Clocks& clocks_;
};

}  // namespace sim
