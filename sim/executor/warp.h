// The state of a warp.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/async_copy.h"
#include "executor/mbarrier.h"
#include "executor/program.h"
#include "executor/tensor_memory.h"

namespace sim {

struct Block;

/// The state of a warp whose turn ended in a loop. If the warp returns to the same state, it may never leave the loop.
struct Spin {
  uint64_t state = 0;   ///< a hash of its registers and of its lanes' pc
  uint64_t events = 0;  ///< the cluster's, at that time
  uint32_t same = 0;    ///< how often all its lanes have had a turn since, and have left it in that state
};

/// What a lane keeps during a call: of the function that it calls, which may be active already.
struct Kept {
  uint32_t stack = 0;  ///< where its stack ended
  std::vector<std::byte> bytes;
};

struct Warp {
  Block* block = nullptr;
  uint32_t index = 0;  ///< in the block
  uint32_t actor = 0;  ///< in the cluster: its row of the clocks
  std::byte* registers = nullptr;
  std::byte* frames = nullptr;  ///< lane after lane
  std::array<uint32_t, warp_size> pc{};
  std::array<std::vector<uint32_t>, warp_size> calls;  ///< the call operations that a lane is inside of
  std::array<std::vector<Kept>, warp_size> kept;       ///< of those calls whose function keeps something
  std::array<uint32_t, warp_size> stack{};             ///< its end, in a lane's frame
  Mask exist = 0, live = 0;
  Mask parked = 0;  ///< lanes that wait, at their pc, for others of the warp
  /// polling: it can run, but in its last turn it only found a phase of an mbarrier incomplete
  enum { ready, polling, waiting, done } state = ready;
  uint32_t waits_at = 0, barrier = 0;  ///< where waiting or polling: the operation; the barrier's number
  bool spun = false;             ///< after a long loop: any of its lanes may go on, not only those furthest behind
  Mask had_turn = 0;             ///< lanes that have spun since all others had their turn
  bool cluster_arrived = false;  ///< between barrier.cluster.arrive and .wait
  uint64_t cluster_phase = 0;    ///< of the cluster's barrier, when it arrived
  uint64_t cluster_waited = 0;   ///< phases of the cluster's barrier that were complete when it last waited there
  Poll poll;
  Spin spin;
  uint32_t wgmma_under_way = 0;   ///< sets of accumulators that nothing has waited for
  std::vector<bool> accumulates;  ///< by a register's offset / 32: it belongs to one of these sets
  std::vector<TensorMoveUnderWay> tensor_loads, tensor_stores;  ///< tcgen05.ld and st that nothing has waited for
  std::vector<bool> is_loading;              ///< by a register's offset / 32: such a load will fill it
  std::vector<TensorMovedRegister> moved;    ///< what was moved out of such registers
  bool allocates_in_pair = false;            ///< it has come to a tcgen05.alloc with cta_group::2, ...
  uint32_t allocation = 0;                   ///< ... its block's so many-th
  uint32_t registers_held = 0;               ///< per thread, by setmaxnreg
  std::vector<AsyncCopy> copies;             ///< cp.async under way, in the order of their issue
  uint64_t copies_issued = 0;                ///< all of them
  uint32_t landed_at = 0;                    ///< by the clock of the block's copies: the last that landed by itself
  uint32_t waited_at = 0;                    ///< by the warp's own clock: the last that landed at a wait
  std::array<uint32_t, warp_size> groups{};  ///< of each lane: how many it has committed
  std::array<uint32_t, warp_size> bulk_groups{};  ///< how many each lane has committed
};

/// "lanes 0-15 20", for a report.
std::string lanes_of(Mask mask);

inline int first(Mask mask) { return std::countr_zero(mask); }

/// A register, or what lies at some other offset.
template <class T>
T* at(std::byte* registers, uint32_t offset) {
  return reinterpret_cast<T*>(registers + offset);
}
template <class T>
T value(const Warp& warp, uint32_t offset, int lane) {
  return reinterpret_cast<const T*>(warp.registers + offset)[lane];
}

using Addresses = std::array<uint64_t, warp_size>;

/// An address of shared::cluster holds the block's rank + 1 above the offset in its shared memory; mapa makes such addresses.
/// Rank + 1 = 0 is the executing block's own window, shared::cta (PTX ISA 5.1.6; 9.7.9.25, mapa). In a program of block pairs
/// (cta_group::2) it is the rank itself, and each block's own addresses have it, too: such programs clear or set its lowest bit (bit 24)
/// to reach the other block of the pair, as the hardware's addresses allow.
constexpr int cluster_rank_shift = 24;
constexpr uint64_t shared_offset(uint64_t address) { return address & ((1U << cluster_rank_shift) - 1); }

/// The lanes' addresses, as they stand in the instruction's state space.
Addresses addresses(const Warp& warp, const Address& operand);
Addresses addresses(const Warp& warp, const Op& op);

}  // namespace sim
