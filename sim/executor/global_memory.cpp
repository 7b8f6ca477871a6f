// What a kernel finds in global memory: bytes that nobody has written, bytes that change while it reads them.
#include <bit>

#include "common/text.h"
#include "sim/executor/cluster.h"

namespace sim {

/// Each lane's access, of `bytes` bytes. Memory that the host has filled, and in which this launch has not stored, needs no
/// look at the single bytes.
void Block::check_contents(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                           uint32_t bytes) {
  if (cluster_.races_) check_global_race(warp, op, pc, mask, address, bytes);
  KnownContents& known = contents_[pc];
  const uint8_t launch = memory_.launch();
  const bool is_load = is_read(op.kind) || op.kind == Kind::async_copy;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    if (address[l] - known.begin >= known.bytes) {
      const Allocation* const allocation = memory_.find(address[l]);
      if (!allocation) continue;  // a parameter
      known = {allocation->base, allocation->bytes, allocation->contents.get()};
    }
    if (!known.contents) continue;
    const uint64_t first = address[l] - known.begin;
    if (is_load && known.contents->complete() && !(op.read_only && known.contents->has_stores_of(launch))) {
      // So do the other lanes' bytes, if they lie there.
      const int last = warp_size - 1 - std::countl_zero(rest);
      if (address[last] - known.begin < known.bytes) return;
      continue;
    }
    if (!is_write(op.kind)) check_contents(warp, l, op, address[l], bytes, true, false);
    if (!is_load) known.contents->kernel_wrote(first, bytes, launch);
  }
}

/// One access of any size, which lies in one allocation.
void Block::check_contents(const Warp& warp, int lane, const Op& op, uint64_t address, uint64_t bytes, bool reads,
                           bool writes) const {
  const Allocation* const allocation = memory_.find(address);
  if (!allocation || !allocation->contents) return;
  Contents& contents = *allocation->contents;
  const uint64_t first = address - allocation->base;
  const uint8_t launch = memory_.launch();
  if (reads) {
    if (const size_t i = contents.find_unwritten(first, bytes); i < bytes && finds(Check::global_uninitialised, op))
      report(warp, lane, op, "a read of global memory that nobody has written: " + memory_.describe(address + i),
             Check::global_uninitialised);
    if (!op.read_only) return;
    if (const size_t i = contents.find_written_by(launch, first, bytes); i < bytes && finds(Check::read_only, op))
      report(warp, lane, op,
             ladder::formatted("ld.global.nc (__ldg, const __restrict__) of memory that this launch has written: {}",
                               memory_.describe(address + i)),
             Check::read_only);
  }
  if (writes) contents.kernel_wrote(first, bytes, launch);
}

// --- races -------------------------------------------------------------------------------------------------------------------

void Block::check_global_race(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                              uint32_t bytes) const {
  if (op.strong) note_synchronisation(op);
  GlobalRaces::Access access;
  access.block = (uint64_t{block_index_.z} * launch_.grid.y + block_index_.y) * launch_.grid.x + block_index_.x;
  access.cluster = cluster_.index();
  access.actor = warp.actor;
  access.time = clocks_.now(warp.actor);
  access.op = pc;
  access.strong = op.strong;
  access.write = !is_read(op.kind) && op.kind != Kind::async_copy;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    for (uint64_t word = address[l] / 4; word <= (address[l] + bytes - 1) / 4; ++word) {
      const auto other = cluster_.races_->note(word, access, [&](const GlobalRaces::Access& earlier) {
        return clocks_.knows(warp.actor, earlier.actor, earlier.time);
      });
      if (!other || !finds(Check::global_race, op)) continue;
      const Extent& grid = launch_.grid;
      const bool same = other->block == access.block;
      report(warp, l, op,
             ladder::formatted("a race in global memory at {:#x}: nothing orders this {} and the {} of {} at {}",
                               4 * word, access.write ? "write" : "read", other->write ? "write" : "read",
                               same ? cluster_.name_of(other->actor, *this)
                                    : ladder::formatted("block ({}, {}, {})", other->block % grid.x,
                                                        other->block / grid.x % grid.y, other->block / grid.x / grid.y),
                               where(program_.ops[other->op])),
             Check::global_race);
    }
  }
}

void Block::note_synchronisation(const Op& op) const {
  if (!cluster_.races_ || !op.strong) return;
  cluster_.races_->synchronises((uint64_t{block_index_.z} * launch_.grid.y + block_index_.y) * launch_.grid.x +
                                block_index_.x);
}

}  // namespace sim
