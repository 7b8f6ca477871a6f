// cp.async (PTX ISA 9.7.9.25.3, "Non-bulk copy").
//
// Nothing is guaranteed about a copy between its issue and the wait that completes it. The executor takes the worst case: the
// copy happens at that wait and reads its source then. Until then every access to the words that it will write is reported.
// Each lane has its own groups. A copy that no lane waits for never lands. An arrival of cp.async.mbarrier.arrive takes place,
// and the copies before it land, when a warp spins on its mbarrier.
#include "executor/async_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "text.h"

namespace sim {

void AsyncCopies::issue(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  AsyncCopy copy;
  copy.op = pc;
  copy.number = warp.copies_issued++;
  copy.bytes = op.bytes;
  copy.mask = mask;
  copy.group = warp.groups;

  // How much of the source is read: src-size bytes, none where ignore-src is true.
  copy.valid.fill(op.bytes);
  if (op.o.b) {
    const uint32_t* size = reinterpret_cast<const uint32_t*>(warp.registers + op.o.b);
    for (int l = 0; l < warp_size; ++l) {
      if (!(mask >> l & 1)) continue;
      if (size[l] > op.bytes)
        reports_.report(warp, l, op, formatted("a copy of {} bytes with a source of {}", op.bytes, size[l]),
                        Fault::launch_failure);
      copy.valid[l] = uint8_t(size[l]);
    }
  } else if (op.o.extra) {
    Mask ignored;
    std::memcpy(&ignored, warp.registers + op.o.extra, sizeof ignored);
    if (op.o.flags & flag_not_c) ignored = ~ignored;
    for (int l = 0; l < warp_size; ++l)
      if (ignored >> l & 1) copy.valid[l] = 0;
  }

  const Addresses to = addresses(warp, op);
  const Addresses from = addresses(warp, op.from);
  std::array<Mask, 17> by_size{};
  uint64_t bytes = 0;
  for (int l = 0; l < warp_size; ++l) {
    copy.to[l] = uint32_t(to[l]);
    copy.from[l] = reinterpret_cast<const std::byte*>(from[l]);
    if (!(mask >> l & 1)) continue;
    by_size[copy.valid[l]] |= Mask{1} << l;
    bytes += copy.valid[l];
  }
  // The last one first: a pattern that is new moves those before it.
  const Mask reading = mask & ~by_size[0];
  Pattern* const some =
      reading && reading != mask ? &checker_.pattern(pc, 1, Space::global, reading, from, op.bytes) : nullptr;
  Pattern& written = checker_.pattern(pc, 0, Space::shared, mask, to, op.bytes);
  Pattern& source = checker_.pattern(pc, 0, Space::global, mask, from, op.bytes);
  checker_.check_aligned(warp, op, to, op.bytes, written);
  checker_.check_aligned(warp, op, from, op.bytes, source);
  for (uint32_t size = 1; size <= op.bytes; ++size)
    if (by_size[size]) {
      checker_.check_bounds(warp, op, pc, by_size[size], from, size, some ? *some : source);
      checker_.check_contents(warp, op, pc, by_size[size], from, size,
                              size < op.bytes ? nullptr
                              : some          ? some
                                              : &source);
    }
  if (reading) {
    Pattern& read = some ? *some : source;
    checker_.count_global(pc, from[std::countr_zero(read.mask)], bytes, read);
  }
  checker_.check_shared(warp, op, pc, mask, *warp.block, to, op.bytes, written);
  warp.copies.push_back(copy);
}

void AsyncCopies::wait(Warp& warp, const Op& op, Mask mask) {
  // Groups before this one are complete. wait_all is commit_group and wait_group 0.
  std::array<uint32_t, warp_size> first{};
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    warp.groups[l] += op.kind == Kind::async_wait_all;
    first[l] = warp.groups[l] - std::min(warp.groups[l], op.o.immediate);
  }
  for (AsyncCopy& copy : warp.copies) {
    Mask due = 0;
    for (int l = 0; l < warp_size; ++l) due |= Mask{copy.group[l] < first[l]} << l;
    if ((due &= copy.mask) == 0) continue;
    warp.waited_at = clocks_.now(warp.actor);
    land(warp, copy, due, warp.actor, warp.waited_at);
  }
  std::erase_if(warp.copies, [](const AsyncCopy& copy) { return copy.mask == 0; });
  // Those that have landed by themselves are waited for, too. (Of which groups they were is not kept.)
  clocks_.order(warp.block->copy_actor, warp.landed_at, warp.actor);
}

/// cp.async.mbarrier.arrive (PTX ISA 9.7.13.15.17). Without .noinc the arrival is one more than the phase expects.
void AsyncCopies::arrive(Warp& warp, const Op& op, Mask mask) {
  AsyncArrival arrival;
  arrival.op = &op;
  arrival.warp = &warp;
  arrival.mask = mask;
  arrival.copies = warp.copies_issued;
  const Addresses address = addresses(warp, op);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    uint64_t a = address[l];
    Block& owner = sync_.mbarrier_owner(warp, l, op, a);
    if (&owner != warp.block)
      reports_.report(warp, l, op, "an mbarrier of another block: copies can only arrive at their own block's",
                      Fault::launch_failure);
    Mbarrier& m = sync_.find_mbarrier(warp, l, op, owner, a);
    if (!(op.o.flags & flag_noinc) && ++m.pending > Mbarrier::max_count)
      reports_.report(warp, l, op,
                      formatted("{} arrivals pending at an mbarrier: {} are the most", m.pending, Mbarrier::max_count),
                      Fault::launch_failure);
    arrival.mbarrier[l] = uint32_t(a);
  }
  arrivals_.push_back(arrival);
}

void AsyncCopies::arrive_after_copies(AsyncArrival& arrival, Mask due, uint32_t address) {
  Warp& warp = *arrival.warp;
  const int lane = std::countr_zero(due);
  const auto found = warp.block->mbarriers.find(address);
  if (found == warp.block->mbarriers.end())
    reports_.report(warp, lane, *arrival.op, "the mbarrier was invalidated before the copies were complete",
                    Fault::launch_failure);
  Mbarrier& m = found->second;
  // Whoever waits for the phase learns of the copies, of those that have landed at a wait, too. The asynchronous proxy has no
  // part in them.
  const uint32_t time = clocks_.event(warp.block->copy_actor, m.arriving, false);
  m.arriving[warp.actor] = std::max(m.arriving[warp.actor], warp.waited_at);
  for (AsyncCopy& copy : warp.copies)
    if (copy.number < arrival.copies)
      if (const Mask lanes = copy.mask & due) land(warp, copy, lanes, warp.block->copy_actor, time);
  std::erase_if(warp.copies, [](const AsyncCopy& copy) { return copy.mask == 0; });
  warp.landed_at = time;
  arrival.mask &= ~due;
  const uint32_t count = uint32_t(std::popcount(due));
  if (count > m.pending)
    reports_.report(
        warp, lane, *arrival.op,
        formatted("{} arrivals at an mbarrier that waits for {} of {} in this phase", count, m.pending, m.expected),
        Fault::launch_failure);
  m.pending -= count;
  m.advance();
}

bool AsyncCopies::arrive_for(const Block& block, uint32_t address) {
  std::vector<std::pair<AsyncArrival*, Mask>> due;
  for (AsyncArrival& arrival : arrivals_) {
    Mask lanes = 0;
    for (int l = 0; l < warp_size; ++l) lanes |= Mask{arrival.mbarrier[l] == address} << l;
    lanes &= arrival.mask;
    if (arrival.warp->block == &block && lanes) due.push_back({&arrival, lanes});
  }
  if (due.empty()) return false;
  const auto [arrival, lanes] = due[unit_.random() % due.size()];
  arrive_after_copies(*arrival, lanes, address);
  std::erase_if(arrivals_, [](const AsyncArrival& a) { return a.mask == 0; });
  ++unit_.progress;
  return true;
}

void AsyncCopies::land(const Warp& warp, AsyncCopy& copy, Mask due, uint32_t actor, uint32_t time) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(due >> l & 1)) continue;
    std::byte* const to = warp.block->shared.data() + copy.to[l];
    if (copy.valid[l] == 16) {
      std::memcpy(to, copy.from[l], 16);
    } else {
      std::memcpy(to, copy.from[l], copy.valid[l]);
      std::memset(to + copy.valid[l], 0, copy.bytes - copy.valid[l]);
    }
    warp.block->shared.end_async_writes(copy.to[l] / 4, copy.bytes / 4, actor, copy.op, time);
  }
  copy.mask &= ~due;
}

bool AsyncCopies::arrive_any() {
  if (arrivals_.empty()) return false;
  const AsyncArrival& first = arrivals_.front();
  return arrive_for(*first.warp->block, first.mbarrier[std::countr_zero(first.mask)]);
}

}  // namespace sim
