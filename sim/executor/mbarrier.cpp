// Addresses within a cluster, and mbarriers (PTX ISA 9.7.13.15).
#include "executor/mbarrier.h"

#include <cstring>

#include "executor/cluster.h"
#include "text.h"

namespace sim {
namespace {

template <class T>
T value(const Warp& warp, uint32_t offset, int lane) {
  return reinterpret_cast<const T*>(warp.registers + offset)[lane];
}

}  // namespace

bool Mbarrier::advance() {
  if (pending || tx_count) return false;
  ++phase;
  pending = expected;
  arrived.resize(arriving.size());
  for (size_t i = 0; i < arriving.size(); ++i) arrived[i] = std::max(arrived[i], arriving[i]);
  arriving.clear();
  return true;
}

std::string Mbarrier::describe() const {
  std::string text = formatted("in phase {}, {} of {} arrivals pending", phase, pending, expected);
  if (tx_count > 0) text += formatted(", {} bytes missing", tx_count);
  if (tx_count < 0) text += formatted(", {} bytes more than it was told to expect", -tx_count);
  return text;
}

/// mapa and getctarank.
void Block::map_address(Warp& warp, const Op& op, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const uint64_t a = op.bytes == 8 ? value<uint64_t>(warp, op.o.a, l) : value<uint32_t>(warp, op.o.a, l);
    if (op.space == Space::generic && !in_shared_window(a))
      report(warp, l, op, formatted("{:#x} is no address of shared memory", a), Fault::illegal_address);
    if (op.kind == Kind::cluster_rank) {
      const uint32_t rank = owner_of(warp, l, op, a).rank_;
      std::memcpy(warp.registers + op.o.d + size_t(l) * 4, &rank, 4);
      continue;
    }
    const uint32_t rank = value<uint32_t>(warp, op.o.b, l);
    if (rank >= launch_.cluster.count())
      report(warp, l, op, formatted("there is no block {} in a cluster of {}", rank, launch_.cluster.count()),
             Fault::illegal_address);
    const uint64_t base = op.space == Space::generic ? shared_window : 0;
    const uint64_t mapped = base + (uint64_t{rank + 1} << cluster_rank_shift | shared_offset(a));
    std::memcpy(warp.registers + op.o.d + size_t(l) * op.bytes, &mapped, op.bytes);
  }
}

/// fence.mbarrier_init: the objects that the warp has initialised are known to the asynchronous proxy, and to the warps that
/// wait for a phase of the cluster's barrier in which this warp arrives afterwards (PTX ISA 9.7.13.4, membar/fence).
void Block::fence_mbarriers(const Warp& warp) {
  const bool has_arrived = warp.cluster_arrived && warp.cluster_phase == cluster_.barrier_of(warp).phase;
  for (auto& [address, m] : mbarriers_) {
    if (m.made_by != warp.actor || m.fenced) continue;
    m.fenced = true;
    m.fenced_in = cluster_.barrier_of(warp).phase + (has_arrived ? 1 : 0);
  }
}

/// The object at an offset of `owner`'s shared memory, which the warp must know to be there.
Mbarrier& Block::find_mbarrier(const Warp& warp, int lane, const Op& op, Block& owner, uint64_t address) const {
  check_reachable(warp, lane, op, owner);
  const auto found = owner.mbarriers_.find(uint32_t(address));
  if (found == owner.mbarriers_.end())
    report(warp, lane, op, formatted("no mbarrier has been initialised at {:#x}", address), Fault::launch_failure);
  const Mbarrier& m = found->second;
  const bool by_cluster = m.fenced && warp.cluster_waited > m.fenced_in;
  if (!by_cluster && !clocks_.happens_before(m.made_by, m.made_at, warp.actor))
    report(warp, lane, op,
           formatted("the mbarrier at {:#x}: no barrier between its initialisation by {} and this", address,
                     cluster_.name_of(m.made_by, *this)),
           Fault::launch_failure);
  return found->second;
}

/// The block whose mbarrier an address stands for. The address becomes the offset in that block's shared memory.
Block& Block::mbarrier_owner(const Warp& warp, int lane, const Op& op, uint64_t& address) {
  if (op.space == Space::generic) {
    if (!in_shared_window(address))
      report(warp, lane, op, formatted("{:#x} is no address of shared memory", address), Fault::illegal_address);
    address -= shared_window;
  }
  const bool anywhere = op.cluster || op.space == Space::generic;
  Block& owner = anywhere ? owner_of(warp, lane, op, address) : *this;
  if (anywhere) address = shared_offset(address);
  if (address % 8)
    report(warp, lane, op, formatted("misaligned address {:#x}: an mbarrier needs a multiple of 8", address),
           Fault::misaligned);
  if (address + 8 > owner.shared_.size())
    report(warp, lane, op,
           formatted("the mbarrier at {:#x} is outside of the block's {} bytes of shared memory", address,
                     owner.shared_.size()),
           Fault::illegal_address);
  return owner;
}

/// False where a wait found its phase incomplete.
bool Block::mbarrier_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  const MbarrierOp what = op.mbarrier;
  if (what == MbarrierOp::pending_count) {
    for (int l = 0; l < warp_size; ++l) {
      const uint32_t pending = value<uint64_t>(warp, op.o.a, l) & Mbarrier::max_count;
      if (mask >> l & 1) std::memcpy(warp.registers + op.o.d + size_t(l) * 4, &pending, 4);
    }
    return true;
  }
  const Addresses address = addresses(warp, op);
  Mask incomplete = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    uint64_t a = address[l];
    Block& owner = mbarrier_owner(warp, l, op, a);
    if (what == MbarrierOp::init) {
      init_mbarrier(warp, l, op, pc, a, value<uint32_t>(warp, op.o.b, l));
      continue;
    }
    Mbarrier& m = find_mbarrier(warp, l, op, owner, a);
    const bool keeps_state = !op.elements.empty() && op.elements[0].offset != discarded;
    if (&owner != this && (what == MbarrierOp::inval || what == MbarrierOp::wait || keeps_state))
      report(warp, l, op, "an mbarrier of another block: only arrivals without a state can go there",
             Fault::launch_failure);
    const auto add_bytes = [&](int64_t bytes) {
      m.tx_count += bytes;
      if (m.tx_count > Mbarrier::max_count || m.tx_count < -Mbarrier::max_count)
        report(
            warp, l, op,
            formatted("the mbarrier at {:#x}: {} bytes at once, {} are the most", a, m.tx_count, Mbarrier::max_count),
            Fault::launch_failure);
    };
    switch (what) {
      case MbarrierOp::inval:
        mbarriers_.erase(uint32_t(a));
        continue;
      case MbarrierOp::expect_tx:
        add_bytes(value<uint32_t>(warp, op.o.b, l));
        break;
      case MbarrierOp::complete_tx:  // a simulated copy: nothing is handed on
        add_bytes(-int64_t{value<uint32_t>(warp, op.o.b, l)});
        break;
      case MbarrierOp::wait:
        if (test_wait(warp, l, op, m)) continue;
        if (warp.poll.progress != cluster_.progress_) warp.poll.times = 0;
        warp.poll = {uint32_t(a), m.phase, cluster_.progress_, warp.poll.times};
        incomplete |= Mask{1} << l;
        continue;
      default:
        if (op.o.flags & flag_expect_tx) add_bytes(value<uint32_t>(warp, op.o.b, l));
        arrive(warp, l, op, m);
    }
    if (m.advance()) cluster_.progress();
  }
  if (incomplete) ++warp.poll.times;
  return !incomplete;
}

void Block::init_mbarrier(Warp& warp, int lane, const Op& op, uint32_t pc, uint64_t address, uint32_t count) {
  if (count == 0 || count > Mbarrier::max_count)
    report(warp, lane, op, formatted("arrival count {} is outside [1, {}]", count, Mbarrier::max_count),
           Fault::launch_failure);
  if (mbarriers_.count(uint32_t(address)))
    report(warp, lane, op,
           formatted("the mbarrier at {:#x} is initialised a second time, without mbarrier.inval", address),
           Fault::launch_failure);
  for (uint32_t word = uint32_t(address / 4); word < address / 4 + 2; ++word)
    if (const auto verdict = shared_.write(word, 0xf, warp.actor, pc, false);
        verdict.found != SharedMemory::Found::nothing) {
      report_shared(warp, lane, op, word, "write", verdict);
      shared_.write_anyway(word, 0xf, warp.actor, pc, false, 0);
    }
  Mbarrier m;
  m.expected = m.pending = count;
  m.made_by = warp.actor;
  m.made_at = clocks_.now(warp.actor);
  mbarriers_[uint32_t(address)] = m;
}

/// An arrival hands on the warp's clock whatever its scope: kernels release buffers to other blocks of the cluster by
/// the unqualified form, whose scope is the block.
void Block::arrive(Warp& warp, int lane, const Op& op, Mbarrier& m) {
  const uint32_t count = op.o.flags & flag_expect_tx ? 1 : value<uint32_t>(warp, op.o.b, lane);
  if (count == 0 || count > m.pending)
    report(warp, lane, op,
           formatted("{} arrivals at an mbarrier that waits for {} of {} in this phase", count, m.pending, m.expected),
           Fault::launch_failure);
  const uint64_t state = mbarrier_state(m.phase, m.pending);
  if (op.elements[0].offset != discarded)
    std::memcpy(warp.registers + op.elements[0].offset + size_t(lane) * 8, &state, 8);
  if (op.strong) clocks_.arrive(warp.actor, m.arriving);
  m.pending -= count;
  if (op.mbarrier == MbarrierOp::arrive_drop) m.expected -= count;
  if ((op.o.flags & flag_no_complete) && m.pending == 0 && m.tx_count == 0)
    report(warp, lane, op, "an arrival with .noComplete completes the phase", Fault::launch_failure);
}

bool Block::test_wait(Warp& warp, int lane, const Op& op, const Mbarrier& m) {
  bool complete = false;
  if (op.o.flags & flag_parity) {
    const uint32_t parity = value<uint32_t>(warp, op.o.b, lane);
    if (parity > 1)
      report(warp, lane, op, formatted("a phase parity of {}, not 0 or 1", parity), Fault::launch_failure);
    complete = m.complete(parity);
  } else {
    const uint64_t phase = value<uint64_t>(warp, op.o.b, lane) >> 20;
    if (phase > m.phase || phase + 1 < m.phase)
      report(warp, lane, op,
             formatted("the state is of phase {}, the mbarrier is in phase {}: neither the current nor the last one",
                       phase, m.phase),
             Fault::launch_failure);
    complete = m.phase > phase;
  }
  Mask& d = *reinterpret_cast<Mask*>(warp.registers + op.o.d);
  d = (d & ~(Mask{1} << lane)) | Mask{complete} << lane;
  if (complete && op.strong) clocks_.leave(warp.actor, m.arrived);
  return complete;
}

std::string Block::polls_for(const Warp& warp) const {
  const Op& op = program_.ops[warp.waits_at];
  const auto found = mbarriers_.find(warp.poll.address);
  return formatted("waits for the end of phase {} of the mbarrier at {:#x} ({}): {}", warp.poll.phase,
                   warp.poll.address, found == mbarriers_.end() ? "invalidated" : found->second.describe(), where(op));
}

}  // namespace sim
