// Runs a warp from one point of synchronisation to the next: its lanes in lockstep, the ones furthest behind first, so that they
// meet again after a branch. What is more than arithmetic it hands to the parts that it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/async_copies.h"
#include "executor/bulk_copies.h"
#include "executor/memory_checker.h"
#include "executor/reports.h"
#include "executor/synchronisation.h"
#include "executor/tcgen05_engine.h"
#include "executor/unit.h"
#include "executor/wgmma_engine.h"

namespace sim {

class Interpreter {
 public:
  Interpreter(Unit& unit, Reports& reports, MemoryChecker& checker, Synchronisation& sync, AsyncCopies& async_copies,
              BulkCopies& bulk_copies, WgmmaEngine& wgmma, Tcgen05Engine& tcgen05);

  void run(Warp& warp);

 private:
  struct Turn;
  enum class Then;
  Then run_straight(Warp& warp, Turn& turn);
  Then execute(Warp& warp, const Op& op, Turn& turn, Mask& mask);

  Then branch(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then call(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then call_indirect(Warp& warp, const Op& op, Turn& turn, Mask mask);
  void enter(Warp& warp, int lane, const Op& op, const Callee& callee);
  void restore(Warp& warp, int lane, const Callee& callee);
  uint32_t grow_stack(Warp& warp, int lane, const Op& op, uint64_t bytes, uint32_t alignment);
  void stack_operation(Warp& warp, const Op& op, Mask mask);
  Then leave(Warp& warp, const Op& op, Turn& turn, Mask mask);
  Then yield(Warp& warp, const Turn& turn);
  static void spin(Warp& warp, const Turn& turn);
  Then mbarrier(Warp& warp, const Op& op, const Turn& turn, Mask mask);
  void copy_in_frame(Warp& warp, int lane, std::span<const Copy> copies);
  [[noreturn]] void trap(const Warp& warp, const Op& op, Mask mask);
  void pack(Warp& warp, const Op& op, Mask mask);
  void unpack(Warp& warp, const Op& op, Mask mask);
  void read_clock(Warp& warp, const Op& op, Mask mask);
  void is_space(Warp& warp, const Op& op, Mask mask);
  void query_launch(Warp& warp, const Op& op, Mask mask);
  void map_address(Warp& warp, const Op& op, Mask mask);

  // Lanes that go different ways, and meet again.
  bool regroup(Warp& warp, Turn& turn);
  Then meet(Warp& warp, const Op& op, const Turn& turn, Mask& mask);
  bool synchronise(Warp& warp, uint32_t pc, Mask& mask);
  static Mask parked_with(const Warp& warp, Mask parked, int lane);
  void release_parked(Warp& warp);
  bool can_meet_at_different_barriers(const Warp& warp);
  void meet_at_different_barriers(Warp& warp);
  bool collective(Warp& warp, const Op& op, uint32_t pc);

  // interpreter_memory.cpp
  void memory_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  bool load_as_before(Warp& warp, const Op& op, uint32_t pc);
  void move_data_as_before(Warp& warp, const Op& op, Pattern::Form form);
  void access(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address, bool generic);
  void access_or_skip(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address, bool generic);
  void store_in_any_order(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);
  static void move_data(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at,
                        Pattern::Form form = Pattern::Form::general);
  static void atomic(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at);

  // interpreter_warp.cpp
  void warp_operation(Warp& warp, const Op& op, Mask mask);
  void shuffle(Warp& warp, const Op& op, Mask mask);

  // interpreter_matrix.cpp
  void matrix_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask);
  Addresses shared_addresses(const Warp& warp, const Op& op, Mask mask);
  void move_matrices(Warp& warp, const Op& op, uint32_t pc);
  void move_fragment(Warp& warp, const Op& op, uint32_t pc);

  // interpreter_print.cpp
  void print(Warp& warp, const Op& op, Mask mask);
  const std::byte* readable(const Warp& warp, int lane, uint64_t address, uint64_t bytes);
  std::string text_at(const Warp& warp, int lane, const Op& op, uint64_t address);
  std::string argument_text(const Warp& warp, int lane, const Op& op, uint32_t argument);

  Unit& unit_;
  Reports& reports_;
  MemoryChecker& checker_;
  Synchronisation& sync_;
  AsyncCopies& async_copies_;
  BulkCopies& bulk_copies_;
  WgmmaEngine& wgmma_;
  Tcgen05Engine& tcgen05_;
  const Program& program_;
  const LaunchParams& launch_;
  const DeviceMemory& memory_;
  Clocks& clocks_;
  std::vector<OpCount>& counts_;
};

}  // namespace sim
