#include "executor/synchronisation.h"

#include <bit>
#include <span>
#include <utility>

#include "text.h"

namespace sim {

Synchronisation::Synchronisation(Unit& unit, Reports& reports, MemoryChecker& checker)
    : unit_(unit),
      reports_(reports),
      checker_(checker),
      program_(unit.program),
      launch_(unit.launch),
      clocks_(unit.clocks),
      cluster_barriers_(unit.clusters()) {}

void Synchronisation::start() { std::fill(cluster_barriers_.begin(), cluster_barriers_.end(), ClusterBarrier{}); }

void Synchronisation::ended(const Warp& warp) {
  clocks_.arrive(warp.actor, barrier_of(*warp.block).arriving);  // to the barrier of the cluster, an exit is an arrival
  Block& block = *warp.block;
  --block.live_warps;
  clocks_.arrive(warp.actor, block.exited);
  check_barriers(block);
}

// --- barriers of a block (PTX ISA 9.7.13.1) ----------------------------------------------------------------------------------

/// __syncthreads() in a branch whose other lanes have left the kernel. The barrier does not wait for them, but compute-sanitizer's
/// synccheck, too, wants all lanes of a warp or none.
void Synchronisation::check_exited(const Warp& warp, const Op& op) {
  const Mask gone = warp.exist & ~warp.live;
  if (!gone || !reports_.finds(Check::exited, op)) return;
  reports_.report(warp, first(warp.live), op,
                  formatted("{} without all lanes of the warp: {} {} exited", op.text, lanes_of(gone),
                            std::popcount(gone) == 1 ? "has" : "have"),
                  Check::exited);
}

void Synchronisation::arrive(Warp& warp, const Op& op) {
  check_exited(warp, op);
  std::byte* r = warp.registers;
  const int l = first(warp.live);
  const uint32_t id = at<uint32_t>(r, op.o.a)[l];
  if (id >= warp.block->barriers.size())
    reports_.report(warp, l, op, formatted("there is no barrier {}, only 0 to 15", id), Fault::launch_failure);
  Barrier& barrier = warp.block->barriers[id];
  uint32_t expected = 0;
  if (op.o.b) {
    const uint32_t count = at<uint32_t>(r, op.o.b)[l];
    if (count == 0 || count % warp_size)
      reports_.report(warp, l, op, formatted("a barrier of {} threads: it must be a multiple of 32", count),
                      Fault::launch_failure);
    expected = count / warp_size;
  }
  if (barrier.arrived && barrier.expected != expected)
    reports_.report(warp, l, op, formatted("barrier {} is waited at with different numbers of threads", id),
                    Fault::launch_failure);
  if (barrier.arrived >> warp.index & 1)
    reports_.report(warp, l, op, formatted("the warp arrives at barrier {} a second time before it is complete", id),
                    Fault::launch_failure);
  barrier.expected = expected;
  barrier.arrived |= 1U << warp.index;
  clocks_.arrive(warp.actor, barrier.clock);
  if (reduces(op.barrier)) {
    const Mask p = (*at<Mask>(r, op.o.c) ^ (op.o.flags & flag_not_c ? all_lanes : 0)) & warp.live;
    barrier.sum += std::popcount(p);
    barrier.votes += std::popcount(warp.live);
  }
  if (op.barrier != BarrierOp::arrive) {
    barrier.waiting |= 1U << warp.index;
    warp.state = Warp::waiting;
    warp.barrier = id;
  }
  check_barriers(*warp.block);
}

void Synchronisation::check_barriers(Block& block) {
  uint32_t live = 0;
  for (const Warp& warp : block.warps)
    if (warp.state != Warp::done) live |= 1U << warp.index;
  for (uint32_t id = 0; id < block.barriers.size(); ++id) {
    const Barrier& b = block.barriers[id];
    if (!b.arrived) continue;
    if (b.expected ? std::popcount(b.arrived) >= int(b.expected) : (live & ~b.arrived) == 0) complete(block, id);
  }
}

void Synchronisation::complete(Block& block, uint32_t id) {
  const Barrier barrier = std::exchange(block.barriers[id], {});
  for (Warp& warp : block.warps) {
    if (!(barrier.waiting >> warp.index & 1)) continue;
    clocks_.leave(warp.actor, barrier.clock);
    if (!barrier.expected) clocks_.leave(warp.actor, block.exited);  // it has waited for their end
    warp.state = Warp::ready;
    const Op& op = program_.ops[warp.waits_at];
    if (op.barrier == BarrierOp::popc) {
      for (int l = 0; l < warp_size; ++l)
        if (warp.live >> l & 1) at<uint32_t>(warp.registers, op.o.d)[l] = barrier.sum;
    } else if (reduces(op.barrier)) {
      const bool result = op.barrier == BarrierOp::and_ ? barrier.sum == barrier.votes : barrier.sum > 0;
      *at<Mask>(warp.registers, op.o.d) = result ? all_lanes : 0;
    }
  }
}

// --- barrier.cluster (PTX ISA 9.7.13.3) --------------------------------------------------------------------------------------

void Synchronisation::arrive_at_cluster(Warp& warp, const Op& op) {
  if (warp.cluster_arrived)
    reports_.report(warp, 0, op, "the warp arrives at the cluster's barrier a second time without waiting there",
                    Fault::launch_failure);
  warp.cluster_arrived = true;
  warp.cluster_phase = barrier_of(*warp.block).phase;
  if (op.strong) clocks_.arrive(warp.actor, barrier_of(*warp.block).arriving);
  check_cluster_barrier(*warp.block);
}

bool Synchronisation::wait_for_cluster(Warp& warp, const Op& op) {
  if (!warp.cluster_arrived)
    reports_.report(warp, 0, op, "the warp waits at the cluster's barrier without having arrived there",
                    Fault::launch_failure);
  const ClusterBarrier& barrier = barrier_of(*warp.block);
  if (warp.cluster_phase == barrier.phase) return false;
  warp.cluster_arrived = false;
  warp.cluster_waited = barrier.phase;
  clocks_.leave(warp.actor, barrier.arrived);
  return true;
}

/// Complete when all warps of the block's cluster that have not ended have arrived. A warp that has not yet waited for the last
/// phase cannot have arrived in this one, so one phase's clock is enough.
void Synchronisation::check_cluster_barrier(const Block& of) {
  ClusterBarrier& barrier = barrier_of(of);
  const uint32_t blocks = launch_.blocks_per_cluster();
  const auto cluster = std::span(unit_.blocks).subspan(of.number - of.rank, blocks);
  bool any = false;
  for (const auto& block : cluster)
    for (const Warp& warp : block->warps) {
      if (warp.state == Warp::done) continue;
      if (!warp.cluster_arrived || warp.cluster_phase != barrier.phase) return;
      any = true;
    }
  if (!any) return;
  ++barrier.phase;
  barrier.arrived = std::exchange(barrier.arriving, {});
  for (const auto& block : cluster)
    for (Warp& warp : block->warps)
      if (warp.state == Warp::waiting && program_.ops[warp.waits_at].kind == Kind::cluster_wait)
        warp.state = Warp::ready;
}

// --- registers ---------------------------------------------------------------------------------------------------------------

/// PTX ISA 9.7.18, setmaxnreg. Registers that a warp gives up go to its block's pool. A warp that finds too few
/// there waits.
bool Synchronisation::set_registers(Warp& warp, const Op& op) {
  const int lane = std::countr_zero(warp.live);
  const uint32_t wanted = op.o.immediate;
  if (!program_.registers)
    reports_.report(
        warp, lane, op,
        "setmaxnreg in a kernel whose number of registers is not known when it starts: it needs .maxnreg, or .maxntid "
        "(__launch_bounds__)",
        Fault::launch_failure);
  if (op.kind == Kind::give_registers ? wanted > warp.registers_held : wanted < warp.registers_held)
    reports_.report(
        warp, lane, op,
        formatted("setmaxnreg to {} registers, but the warp has {} per thread", wanted, warp.registers_held),
        Fault::launch_failure);
  if (op.kind == Kind::take_registers) {
    const uint32_t missing = wanted - warp.registers_held;
    if (missing > warp.block->free_registers) return false;
    warp.block->free_registers -= missing;
  } else {
    warp.block->free_registers += warp.registers_held - wanted;
    for (Warp& other : warp.block->warps)
      if (other.state == Warp::waiting && program_.ops[other.waits_at].kind == Kind::take_registers)
        other.state = Warp::ready;
  }
  warp.registers_held = wanted;
  return true;
}

// --- reports -----------------------------------------------------------------------------------------------------------------

std::string Synchronisation::waits_for(const Warp& warp) {
  if (warp.state == Warp::done) return "has ended";
  if (warp.state == Warp::ready) return "spins: " + reports_.where(program_.ops[warp.pc[first(warp.live)]]);
  const Op& op = program_.ops[warp.waits_at];
  if (op.kind == Kind::cluster_wait) return "waits at the cluster's barrier: " + reports_.where(op);
  if (op.kind == Kind::wgmma_wait)
    return "waits for wgmma that other warps of its warpgroup have not issued: " + reports_.where(op);
  if (op.kind == Kind::tensor_allocate && warp.allocates_in_pair &&
      unit_.in_cluster_of(*warp.block, warp.block->rank ^ 1).pair_allocations < warp.allocation)
    return "waits for tcgen05.alloc in the other block of its pair: " + reports_.where(op);
  if (op.kind == Kind::tensor_allocate)
    return formatted("waits for {} columns of tensor memory ({} are free): {}",
                     value<uint32_t>(warp, op.o.b, first(warp.live)), warp.block->tensor.free_columns(),
                     reports_.where(op));
  if (op.kind == Kind::take_registers)
    return formatted("waits for {} registers per thread, of which it has {} and {} more are free: {}", op.o.immediate,
                     warp.registers_held, warp.block->free_registers, reports_.where(op));
  if (warp.state == Warp::polling) return polls_for(warp);
  const Barrier& b = warp.block->barriers[warp.barrier];
  return formatted("waits at barrier {} ({} of {} warps have come): {}", warp.barrier, std::popcount(b.arrived),
                   b.expected ? std::to_string(b.expected) : std::string("all"), reports_.where(op));
}

}  // namespace sim
