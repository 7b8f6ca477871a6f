// What a kernel finds in global memory: bytes that nobody has written, bytes that change while it reads them.
#include <bit>

#include "executor/memory_checker.h"
#include "text.h"

namespace sim {

/// Each lane's access, of `bytes` bytes. `pattern`: of accesses of so many bytes, of these lanes or of more; null: not known.
void MemoryChecker::check_contents(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                                   uint32_t bytes, const Pattern* pattern) {
  if (races_) check_global_race(warp, op, pc, mask, address, bytes);
  KnownContents& known = contents_[pc];
  if (pattern && pattern->mask == mask && have_contents(op, known, address[std::countr_zero(mask)], bytes, *pattern))
    return;
  const bool reads = !is_write(op.kind), writes = !is_read(op.kind) && op.kind != Kind::async_copy;
  const uint8_t launch = memory_.launch();
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    if (address[l] - known.begin >= known.bytes) {
      const Allocation* const allocation = memory_.find(address[l]);
      if (!allocation) continue;  // a parameter
      known = {allocation->base, allocation->bytes, allocation->contents.get()};
    }
    if (!known.contents) continue;
    const uint64_t first = address[l] - known.begin;
    if (reads && !known.contents->may_be_read(first, bytes, op.read_only, launch))
      check_contents(warp, l, op, address[l], bytes, true, false);
    if (writes) known.contents->kernel_wrote(first, bytes, launch);
  }
}

/// One access of any size, which lies in one allocation.
void MemoryChecker::check_contents(const Warp& warp, int lane, const Op& op, uint64_t address, uint64_t bytes,
                                   bool reads, bool writes) {
  const Allocation* const allocation = memory_.find(address);
  if (!allocation || !allocation->contents) return;
  Contents& contents = *allocation->contents;
  const uint64_t first = address - allocation->base;
  const uint8_t launch = memory_.launch();
  if (reads) {
    if (const size_t i = contents.find_unwritten(first, bytes);
        i < bytes && reports_.finds(Check::global_uninitialised, op))
      reports_.report(warp, lane, op,
                      "a read of global memory that nobody has written: " + memory_.describe(address + i),
                      Check::global_uninitialised);
    if (!op.read_only) return;
    if (const size_t i = contents.find_written_by(launch, first, bytes);
        i < bytes && reports_.finds(Check::read_only, op))
      reports_.report(warp, lane, op,
                      formatted("ld.global.nc (__ldg, const __restrict__) of memory that this launch has written: {}",
                                memory_.describe(address + i)),
                      Check::read_only);
  }
  if (writes) contents.kernel_wrote(first, bytes, launch);
}

// --- races -------------------------------------------------------------------------------------------------------------------

void MemoryChecker::check_global_race(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                                      uint32_t bytes) {
  if (op.strong) note_synchronisation(warp, op);
  GlobalRaces::Access access;
  access.block = number_in_grid(*warp.block);
  access.cluster = unit_.index;
  access.actor = warp.actor;
  access.time = clocks_.now(warp.actor);
  access.op = pc;
  access.strong = op.strong;
  access.write = !is_read(op.kind) && op.kind != Kind::async_copy;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    for (uint64_t word = address[l] / 4; word <= (address[l] + bytes - 1) / 4; ++word) {
      const auto other = races_->note(word, access, [&](const GlobalRaces::Access& earlier) {
        return clocks_.happens_before(earlier.actor, earlier.time, warp.actor);
      });
      if (!other || !reports_.finds(Check::global_race, op)) continue;
      const Extent& grid = launch_.grid;
      const bool same = other->block == access.block;
      reports_.report(warp, l, op,
                      formatted("a race in global memory at {:#x}: nothing orders this {} and the {} of {} at {}",
                                4 * word, access.write ? "write" : "read", other->write ? "write" : "read",
                                same ? reports_.name_of(other->actor, *warp.block)
                                     : formatted("block ({}, {}, {})", other->block % grid.x,
                                                 other->block / grid.x % grid.y, other->block / grid.x / grid.y),
                                reports_.where(program_.ops[other->op])),
                      Check::global_race);
    }
  }
}

void MemoryChecker::note_synchronisation(const Warp& warp, const Op& op) {
  if (races_ && op.strong) races_->synchronises(number_in_grid(*warp.block));
}

uint64_t MemoryChecker::number_in_grid(const Block& block) const {
  return (uint64_t{block.index.z} * launch_.grid.y + block.index.y) * launch_.grid.x + block.index.x;
}

}  // namespace sim
