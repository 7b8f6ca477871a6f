// cp.async (PTX ISA 9.7.9.25.3, "Non-bulk copy").
//
// Nothing is guaranteed about a copy between its issue and the wait that completes it. The executor takes the worst case: the
// copy happens at that wait and reads its source then. Until then every access to the words that it will write is reported.
// Each lane has its own groups. A copy that no lane waits for never lands.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "common/text.h"
#include "sim/executor/block.h"

namespace sim {

void Block::async_copy(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  AsyncCopy copy;
  copy.op = pc;
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
        report(warp, l, op, ladder::formatted("a copy of {} bytes with a source of {}", op.bytes, size[l]),
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
  Pattern* const some = reading && reading != mask ? &pattern(pc, 1, Space::global, reading, from, op.bytes) : nullptr;
  Pattern& written = pattern(pc, 0, Space::shared, mask, to, op.bytes);
  Pattern& source = pattern(pc, 0, Space::global, mask, from, op.bytes);
  check_aligned(warp, op, to, op.bytes, written);
  check_aligned(warp, op, from, op.bytes, source);
  for (uint32_t size = 1; size <= op.bytes; ++size)
    if (by_size[size]) check_bounds(warp, op, pc, by_size[size], from, size, some ? *some : source);
  if (reading) count_global(pc, from, bytes, some ? *some : source);
  check_shared(warp, op, pc, mask, *this, to, op.bytes, written);
  warp.copies.push_back(copy);
}

void Block::async_wait(Warp& warp, const Op& op, Mask mask) {
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
    if (due &= copy.mask) land(copy, due, warp.actor, clocks_.now(warp.actor));
  }
  std::erase_if(warp.copies, [](const AsyncCopy& copy) { return copy.mask == 0; });
}

void Block::land(AsyncCopy& copy, Mask due, uint32_t actor, uint32_t time) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(due >> l & 1)) continue;
    std::byte* const to = shared_.data() + copy.to[l];
    if (copy.valid[l] == 16) {
      std::memcpy(to, copy.from[l], 16);
    } else {
      std::memcpy(to, copy.from[l], copy.valid[l]);
      std::memset(to + copy.valid[l], 0, copy.bytes - copy.valid[l]);
    }
    shared_.end_async_writes(copy.to[l] / 4, copy.bytes / 4, actor, copy.op, time);
  }
  copy.mask &= ~due;
}

}  // namespace sim
