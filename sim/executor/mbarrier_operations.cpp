// mbarriers (PTX ISA 9.7.13.15).
#include <cstring>

#include "executor/synchronisation.h"
#include "text.h"

namespace sim {

/// fence.mbarrier_init: the objects that the warp has initialised are known to the asynchronous proxy, and to the warps that
/// wait for a phase of the cluster's barrier in which this warp arrives afterwards (PTX ISA 9.7.13.4, membar/fence).
void Synchronisation::fence_mbarriers(const Warp& warp) {
  const bool has_arrived = warp.cluster_arrived && warp.cluster_phase == barrier_of(*warp.block).phase;
  for (auto& [address, m] : warp.block->mbarriers) {
    if (m.made_by != warp.actor || m.fenced) continue;
    m.fenced = true;
    m.fenced_in = barrier_of(*warp.block).phase + (has_arrived ? 1 : 0);
  }
}

/// The object at an offset of `owner`'s shared memory, which the warp must know to be there.
Mbarrier& Synchronisation::find_mbarrier(const Warp& warp, int lane, const Op& op, Block& owner, uint64_t address) {
  checker_.check_reachable(warp, lane, op, owner);
  const auto found = owner.mbarriers.find(uint32_t(address));
  if (found == owner.mbarriers.end())
    reports_.report(warp, lane, op, formatted("no mbarrier has been initialised at {:#x}", address),
                    Fault::launch_failure);
  Mbarrier& m = found->second;
  if (!m.fenced && warp.cluster_waited > m.made_in && !clocks_.happens_before(m.made_by, m.made_at, warp.actor)) {
    if (reports_.finds(Check::proxy, op))
      reports_.report(
          warp, lane, op,
          formatted("the mbarrier at {:#x}: between its initialisation by {} and this only a relaxed barrier "
                    "of the cluster, and no fence.mbarrier_init",
                    address, reports_.name_of(m.made_by, *warp.block)),
          Check::proxy);
    m.fenced = true;
    m.fenced_in = m.made_in;
  }
  const bool by_cluster = m.fenced && warp.cluster_waited > m.fenced_in;
  if (!by_cluster && !clocks_.happens_before(m.made_by, m.made_at, warp.actor))
    reports_.report(warp, lane, op,
                    formatted("the mbarrier at {:#x}: no barrier between its initialisation by {} and this", address,
                              reports_.name_of(m.made_by, *warp.block)),
                    Fault::launch_failure);
  return found->second;
}

/// The block whose mbarrier an address stands for. The address becomes the offset in that block's shared memory.
Block& Synchronisation::mbarrier_owner(const Warp& warp, int lane, const Op& op, uint64_t& address) {
  if (op.space == Space::generic) {
    if (!in_shared_window(address))
      reports_.report(warp, lane, op, formatted("{:#x} is no address of shared memory", address),
                      Fault::illegal_address);
    address -= shared_window;
  }
  const bool anywhere = op.cluster || op.space == Space::generic;
  Block& owner = anywhere ? checker_.owner_of(warp, lane, op, address) : *warp.block;
  if (anywhere) address = shared_offset(address);
  if (address % 8)
    reports_.report(warp, lane, op, formatted("misaligned address {:#x}: an mbarrier needs a multiple of 8", address),
                    Fault::misaligned);
  if (address + 8 > owner.shared.size())
    reports_.report(warp, lane, op,
                    formatted("the mbarrier at {:#x} is outside of the block's {} bytes of shared memory", address,
                              owner.shared.size()),
                    Fault::illegal_address);
  return owner;
}

/// False where a wait found its phase incomplete.
bool Synchronisation::mbarrier_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
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
    if (&owner != warp.block && (what == MbarrierOp::inval || what == MbarrierOp::wait || keeps_state))
      reports_.report(warp, l, op, "an mbarrier of another block: only arrivals without a state can go there",
                      Fault::launch_failure);
    const auto add_bytes = [&](int64_t bytes) {
      m.tx_count += bytes;
      if (m.tx_count > Mbarrier::max_count || m.tx_count < -Mbarrier::max_count)
        reports_.report(
            warp, l, op,
            formatted("the mbarrier at {:#x}: {} bytes at once, {} are the most", a, m.tx_count, Mbarrier::max_count),
            Fault::launch_failure);
    };
    switch (what) {
      case MbarrierOp::inval:
        warp.block->mbarriers.erase(uint32_t(a));
        continue;
      case MbarrierOp::expect_tx:
        add_bytes(value<uint32_t>(warp, op.o.b, l));
        break;
      case MbarrierOp::complete_tx:  // a simulated copy: nothing is handed on
        add_bytes(-int64_t{value<uint32_t>(warp, op.o.b, l)});
        break;
      case MbarrierOp::wait:
        if (test_wait(warp, l, op, uint32_t(a), m)) continue;
        if (warp.poll.progress != unit_.progress) warp.poll.times = 0;
        warp.poll = {uint32_t(a), m.phase, unit_.progress, warp.poll.times, false, 0};
        incomplete |= Mask{1} << l;
        continue;
      default:
        if (op.o.flags & flag_expect_tx) add_bytes(value<uint32_t>(warp, op.o.b, l));
        arrive(warp, l, op, m);
    }
    if (m.advance()) ++unit_.progress;
  }
  if (incomplete) ++warp.poll.times;
  warp.poll.lanes = incomplete;
  warp.poll.missed = false;
  return !incomplete;
}

void Synchronisation::init_mbarrier(Warp& warp, int lane, const Op& op, uint32_t pc, uint64_t address, uint32_t count) {
  if (count == 0 || count > Mbarrier::max_count)
    reports_.report(warp, lane, op, formatted("arrival count {} is outside [1, {}]", count, Mbarrier::max_count),
                    Fault::launch_failure);
  if (warp.block->mbarriers.count(uint32_t(address)))
    reports_.report(warp, lane, op,
                    formatted("the mbarrier at {:#x} is initialised a second time, without mbarrier.inval", address),
                    Fault::launch_failure);
  for (uint32_t word = uint32_t(address / 4); word < address / 4 + 2; ++word)
    if (const auto verdict = warp.block->shared.write(word, 0xf, warp.actor, pc, false);
        verdict.found != SharedMemory::Found::nothing) {
      checker_.report_shared(warp, lane, op, word, "write", verdict);
      warp.block->shared.write_anyway(word, 0xf, warp.actor, pc, false, 0);
    }
  Mbarrier m;
  m.expected = m.pending = count;
  m.made_by = warp.actor;
  m.made_at = clocks_.now(warp.actor);
  const uint64_t phase = barrier_of(*warp.block).phase;
  m.made_in = phase + (warp.cluster_arrived && warp.cluster_phase == phase ? 1 : 0);
  warp.block->mbarriers[uint32_t(address)] = m;
}

/// An arrival hands on the warp's clock whatever its scope: kernels release buffers to other blocks of the cluster by
/// the unqualified form, whose scope is the block.
void Synchronisation::arrive(Warp& warp, int lane, const Op& op, Mbarrier& m) {
  const uint32_t count = op.o.flags & flag_expect_tx ? 1 : value<uint32_t>(warp, op.o.b, lane);
  if (count == 0 || count > m.pending)
    reports_.report(
        warp, lane, op,
        formatted("{} arrivals at an mbarrier that waits for {} of {} in this phase", count, m.pending, m.expected),
        Fault::launch_failure);
  const uint64_t state = mbarrier_state(m.phase, m.pending);
  if (op.elements[0].offset != discarded)
    std::memcpy(warp.registers + op.elements[0].offset + size_t(lane) * 8, &state, 8);
  if (op.strong) clocks_.arrive(warp.actor, m.arriving);
  m.pending -= count;
  if (op.mbarrier == MbarrierOp::arrive_drop) m.expected -= count;
  if ((op.o.flags & flag_no_complete) && m.pending == 0 && m.tx_count == 0)
    reports_.report(warp, lane, op, "an arrival with .noComplete completes the phase", Fault::launch_failure);
}

bool Synchronisation::test_wait(Warp& warp, int lane, const Op& op, uint32_t address, Mbarrier& m) {
  bool complete = false;
  if (op.o.flags & flag_parity) {
    const uint32_t parity = value<uint32_t>(warp, op.o.b, lane);
    if (parity > 1)
      reports_.report(warp, lane, op, formatted("a phase parity of {}, not 0 or 1", parity), Fault::launch_failure);
    complete = m.complete(parity);
    if (m.seen.empty()) m.seen.resize(warp.block->warps.size() * warp_size);
    uint64_t& seen = m.seen[warp.index * warp_size + uint32_t(lane)];
    complete = complete || (warp.poll.missed && warp.poll.address == address && seen + 2 <= m.phase);
    if (complete && (seen & 1) == parity) ++seen;
  } else {
    const uint64_t phase = value<uint64_t>(warp, op.o.b, lane) >> 20;
    if (phase > m.phase || phase + 1 < m.phase)
      reports_.report(
          warp, lane, op,
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

/// PTX ISA 9.7.13.15.16, mbarrier.test_wait: by parity a thread can wait for the current phase or the one before. Where all threads wait for
/// each phase, and nothing else holds them together, one that comes two phases late takes the current phase for its own. Threads of a GPU
/// hardly ever are as late. Nothing but a deadlock shows that a thread means an earlier phase.
bool Synchronisation::missed_phase(Warp& warp) {
  const auto found = warp.block->mbarriers.find(warp.poll.address);
  if (found == warp.block->mbarriers.end() || found->second.seen.empty()) return false;
  const Mbarrier& m = found->second;
  const Op& op = program_.ops[warp.waits_at];
  for (int l = 0; l < warp_size; ++l) {
    const uint64_t seen = m.seen[warp.index * warp_size + uint32_t(l)];
    const bool waits = (warp.poll.lanes >> l & 1) && seen + 2 <= m.phase && (m.phase - seen) % 2 == 0;
    if (!waits) continue;
    warp.poll.missed = true;
    warp.poll.times = 0;
    ++unit_.progress;
    if (reports_.finds(Check::phase, op))
      reports_.report(
          warp, l, op,
          formatted("a deadlock, unless the warp goes on: by its waits it is at phase {} of the mbarrier at {:#x}, "
                    "which has come to phase {}, and it waits by parity (PTX ISA 9.7.13.15.16)",
                    seen, warp.poll.address, m.phase),
          Check::phase);
    return true;
  }
  return false;
}

std::string Synchronisation::polls_for(const Warp& warp) {
  const Op& op = program_.ops[warp.waits_at];
  const auto found = warp.block->mbarriers.find(warp.poll.address);
  return formatted("waits for the end of phase {} of the mbarrier at {:#x} ({}): {}", warp.poll.phase,
                   warp.poll.address, found == warp.block->mbarriers.end() ? "invalidated" : found->second.describe(),
                   reports_.where(op));
}

}  // namespace sim
