#include "executor/memory_checker.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "text.h"

namespace sim {

MemoryChecker::MemoryChecker(Unit& unit, Reports& reports, GlobalRaces* races)
    : unit_(unit),
      reports_(reports),
      program_(unit.program),
      launch_(unit.launch),
      memory_(unit.memory),
      clocks_(unit.clocks),
      counts_(unit.counts),
      races_(races),
      patterns_(program_.ops.size()),
      ranges_(program_.ops.size()),
      contents_(program_.ops.size()),
      last_loads_(program_.ops.size()) {}

Pattern& MemoryChecker::pattern(uint32_t pc, uint32_t part, Space space, Mask mask, const Addresses& address,
                                uint32_t bytes) {
  std::vector<Pattern>& known = patterns_[pc];
  const size_t index = 2 * part + (space == Space::shared);
  if (index >= known.size()) known.resize(index + 1);
  Pattern& pattern = known[index];
  if (!pattern.is_of(mask, address)) {
    pattern.learn(mask, address, bytes);
    last_loads_[pc].pattern = nullptr;
  }
  return pattern;
}

void MemoryChecker::keep_for_next_load(const Op& op, uint32_t pc, uint32_t bytes, Pattern& pattern) {
  LastLoad& last = last_loads_[pc];
  last.pattern = nullptr;
  if (op.address_bytes != 8 || op.counted == Class::param || races_ || pattern.mask != all_lanes) return;
  const KnownContents& known = contents_[pc];
  const uint64_t extent = uint64_t(pattern.high - pattern.low) + bytes;
  if (pattern.low <= -Pattern::far || pattern.high >= Pattern::far || extent > known.bytes ||
      pattern.bits & (bytes - 1))
    return;
  last.pattern = &pattern;
  last.origin = known.begin - uint64_t(pattern.low);
  last.origins = known.bytes - extent + 1;
  last.bytes = bytes;
  const Element& first = op.elements[0];
  const bool word =
      pattern.form != Pattern::Form::general && op.elements.size() == 1 && op.bytes == 4 && first.bytes == 4;
  last.word_register = word ? first.offset : discarded;
  last.complete = !known.contents || known.contents->complete();
  last.read_only = op.read_only ? known.contents : nullptr;
}

void MemoryChecker::reject(const Warp& warp, int lane, const Op& op, Check check,
                           const std::function<std::string()>& what) {
  const bool by_lanes = op.kind == Kind::load || op.kind == Kind::store || op.kind == Kind::atomic;
  if (!by_lanes) reports_.report(warp, lane, op, what(), Reports::fault_of(check));
  if (reports_.finds(check, op)) reports_.report(warp, lane, op, what(), check);
  throw Skip{Mask{1} << lane};
}

void MemoryChecker::check_aligned(const Warp& warp, const Op& op, const Addresses& address, uint32_t bytes,
                                  const Pattern& pattern) {
  if (((address[first(pattern.mask)] | pattern.bits) & (bytes - 1)) == 0) return;
  for (int l = 0; l < warp_size; ++l)
    if ((pattern.mask >> l & 1) && (address[l] & (bytes - 1)))
      reject(warp, l, op, Check::misaligned, [&] {
        return formatted("misaligned address {:#x}: {} bytes at once need a multiple of {}", address[l], bytes, bytes);
      });
}

void MemoryChecker::check_global(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                                 uint32_t bytes, Pattern& pattern) {
  check_bounds(warp, op, pc, mask, address, bytes, pattern);
  check_contents(warp, op, pc, mask, address, bytes, &pattern);
  if (op.counted != Class::param)
    count_global(pc, address[first(pattern.mask)], uint64_t{bytes} * std::popcount(mask), pattern);
}

/// `pattern`: of these lanes, or of more.
void MemoryChecker::check_bounds(const Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address,
                                 uint32_t bytes, const Pattern& pattern) {
  auto& [begin, end] = ranges_[pc];
  if (pattern.within(address[first(pattern.mask)] - begin, bytes, end - begin)) return;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    if (address[l] >= begin && address[l] < end && bytes <= end - address[l]) continue;
    const Allocation* allocation = memory_.find(address[l]);
    if (allocation && allocation->contains(address[l], bytes)) {
      begin = allocation->base;
      end = allocation->base + allocation->bytes;
      continue;
    }
    // The parameters can be read through generic addresses (__grid_constant__).
    const uint64_t param = reinterpret_cast<uint64_t>(unit_.param());
    if (op.kind == Kind::load && address[l] >= param && address[l] + bytes <= param + launch_.params.size()) continue;
    reject(warp, l, op, Check::bounds, [&] {
      return formatted("{} of {} bytes outside of every allocation: {}",
                       op.kind == Kind::async_copy ? "a copy"
                       : is_read(op.kind)          ? "a load"
                       : is_write(op.kind)         ? "a store"
                                                   : "an atomic operation",
                       bytes, memory_.describe(address[l]));
    });
  }
}

/// The block in whose shared memory an address of shared::cluster, or a generic one, lies.
Block& MemoryChecker::owner_of(const Warp& warp, int lane, const Op& op, uint64_t address) {
  uint64_t rank = (in_shared_window(address) ? address - shared_window : address) >> cluster_rank_shift;
  Block& own = *warp.block;
  if (program_.block_pairs) ++rank;
  if (rank == 0 || rank == own.rank + 1) return own;
  if (rank > launch_.cluster.count())
    reports_.report(warp, lane, op, formatted("{:#x} is no address of the cluster's shared memory", address),
                    Fault::illegal_address);
  return unit_.in_cluster_of(own, uint32_t(rank - 1));
}

/// Another block's shared memory exists from its start to its end, of which a cluster barrier tells (CUDA C++ Programming
/// Guide, "Distributed Shared Memory").
void MemoryChecker::check_reachable(const Warp& warp, int lane, const Op& op, const Block& owner) {
  if (&owner == warp.block) return;
  const Extent& other = owner.index;
  if (owner.ended() && reports_.finds(Check::ended, op))
    reports_.report(
        warp, lane, op,
        formatted("an access to the shared memory of block ({}, {}, {}), which has ended", other.x, other.y, other.z),
        Check::ended);
  bool started = warp.cluster_waited > 0;  // a relaxed barrier, too, has waited for all to start
  for (const Warp& w : owner.warps) started = started || clocks_.happens_before(w.actor, 1, warp.actor);
  if (!started)
    reports_.report(
        warp, lane, op,
        formatted("an access to the shared memory of block ({}, {}, {}), which may not have started: no cluster "
                  "barrier before it",
                  other.x, other.y, other.z),
        Fault::illegal_address);
}

void MemoryChecker::check_shared(const Warp& warp, const Op& op, uint32_t pc, Mask mask, Block& owner,
                                 const Addresses& address, uint32_t bytes, Pattern& pattern) {
  check_reachable(warp, first(mask), op, owner);
  SharedMemory& shared = owner.shared;
  const uint64_t origin = address[first(mask)];
  if (!pattern.within(origin, bytes, shared.size())) {
    for (int l = 0; l < warp_size; ++l)
      if ((mask >> l & 1) && !shared.contains(address[l], bytes)) {
        const auto what = [&] {
          return formatted("{} bytes at {:#x} are outside of the block's {} bytes of shared memory", bytes, address[l],
                           shared.size());
        };
        if (&owner != warp.block) reports_.report(warp, l, op, what(), Fault::illegal_address);
        reject(warp, l, op, Check::bounds, what);
      }
  }

  // Wavefronts and distinct words depend on the addresses relative to one another: moving all by some words moves all
  // to other banks alike.
  const auto place = uint8_t(origin % 4);
  if (pattern.ideal == 0 || pattern.place != place) {
    pattern.place = place;
    std::array<int64_t, warp_size> byte;
    for (int l = 0; l < warp_size; ++l) byte[l] = pattern.relative[l] + place;
    SharedCost cost;
    if (op.kind == Kind::matrix_load ||
        op.kind == Kind::matrix_store) {  // matrix by matrix, eight rows of 16 bytes each
      for (Mask rows = 0xff; rows; rows <<= 8) {
        const SharedCost one = shared_cost(byte, int(bytes), mask & rows);
        cost.wavefronts += one.wavefronts;
        cost.ideal += one.ideal;
      }
    } else {
      cost = shared_cost(byte, int(bytes), mask);
    }
    pattern.wavefronts = cost.wavefronts;
    pattern.ideal = cost.ideal;
    struct Touched {
      int32_t word;
      uint8_t bytes;
      Mask lane;
    };
    std::array<Touched, 4 * warp_size> touched;
    int n = 0;
    for (int l = 0; l < warp_size; ++l) {
      if (!(mask >> l & 1)) continue;
      const int32_t word = int32_t(byte[l] >> 2);
      if (bytes < 4)
        touched[n++] = {word, uint8_t(((1U << bytes) - 1) << (byte[l] & 3)), Mask{1} << l};
      else
        for (uint32_t i = 0; i < bytes / 4; ++i) touched[n++] = {word + int32_t(i), 0xf, Mask{1} << l};
    }
    std::sort(touched.begin(), touched.begin() + n, [](const Touched& a, const Touched& b) { return a.word < b.word; });
    pattern.words = 0;
    for (int i = 0; i < n; ++i) {
      if (const int last = pattern.words - 1; last >= 0 && pattern.word[last] == touched[i].word) {
        const bool same = pattern.bytes[last] == touched[i].bytes && pattern.lanes[last];
        pattern.lanes[last] = same ? pattern.lanes[last] | touched[i].lane : 0;
        pattern.bytes[last] |= touched[i].bytes;
        continue;
      }
      pattern.word[pattern.words] = touched[i].word;
      pattern.lanes[pattern.words] = touched[i].lane;
      pattern.bytes[pattern.words++] = touched[i].bytes;
    }
    if (meeting(op.kind) != Meeting::none) pattern.lanes.fill(0);  // a lane's address is not what the lane touches
  }
  OpCount& count = counts_[pc];
  ++count.shared_requests;
  count.shared_bytes += uint64_t{bytes} * std::popcount(mask);
  count.wavefronts += pattern.wavefronts;
  count.ideal += pattern.ideal;

  const uint32_t first_word = uint32_t(origin >> 2);
  const auto fail = [&](int i, SharedMemory::Verdict verdict) {
    const uint32_t word = first_word + uint32_t(pattern.word[i]);
    int lane = first(mask);
    for (int l = warp_size - 1; l >= 0; --l)
      if ((mask >> l & 1) && address[l] < 4 * uint64_t{word} + 4 && address[l] + bytes > 4 * uint64_t{word}) lane = l;
    using Found = SharedMemory::Found;
    verdict.same_value = op.kind == Kind::store &&
                         (verdict.found == Found::race_with_write || verdict.found == Found::lanes_race_with_write) &&
                         writes_what_is_there(warp, op, mask, address, bytes, word, shared.data());
    report_shared(warp, lane, op, word, is_read(op.kind) ? "read" : "write", verdict);
  };
  const int32_t* const word = pattern.word.data();
  const uint8_t* const touched = pattern.bytes.data();
  const Mask* const lanes = pattern.lanes.data();
  const int words = pattern.words;
  SharedMemory::Verdict verdict;
  if (is_read(op.kind)) {
    for (int i = 0; (i += shared.read(first_word, word + i, touched + i, lanes + i, words - i, warp.actor, pc,
                                      op.strong, verdict)) < words;
         ++i) {
      fail(i, verdict);
      shared.read_anyway(first_word + uint32_t(word[i]), touched[i], warp.actor, pc, op.strong, lanes[i]);
    }
  } else if (is_write(op.kind)) {
    for (int i = 0; (i += shared.write(first_word, word + i, touched + i, lanes + i, words - i, warp.actor, pc,
                                       op.strong, verdict)) < words;
         ++i) {
      fail(i, verdict);
      shared.write_anyway(first_word + uint32_t(word[i]), touched[i], warp.actor, pc, op.strong, lanes[i]);
    }
  } else {
    for (int i = 0; i < words; ++i) {
      const uint32_t one = first_word + uint32_t(word[i]);
      if (op.kind == Kind::async_copy) {
        verdict = shared.begin_async_write(one, warp.actor, pc);
        if (verdict.found == SharedMemory::Found::nothing) continue;
        fail(i, verdict);
        shared.begin_async_write(one, warp.actor, pc, true);
        continue;
      }
      verdict = shared.read(one, touched[i], warp.actor, pc, op.strong, lanes[i]);
      if (verdict.found == SharedMemory::Found::nothing)
        verdict = shared.write(one, touched[i], warp.actor, pc, op.strong, lanes[i]);
      if (verdict.found == SharedMemory::Found::nothing) continue;
      fail(i, verdict);
      shared.read_anyway(one, touched[i], warp.actor, pc, op.strong, lanes[i]);
      shared.write_anyway(one, touched[i], warp.actor, pc, op.strong, lanes[i]);
    }
  }
}

/// Whether a store changes nothing in this word of shared memory.
bool MemoryChecker::writes_what_is_there(const Warp& warp, const Op& op, Mask mask, const Addresses& address,
                                         uint32_t bytes, uint32_t word, const std::byte* memory) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1) || address[l] >= 4 * uint64_t{word} + 4 || address[l] + bytes <= 4 * uint64_t{word}) continue;
    uint64_t at = address[l];
    for (const Element& e : op.elements) {
      if (at < 4 * uint64_t{word} + 4 && at + op.bytes > 4 * uint64_t{word} &&
          std::memcmp(memory + at, warp.registers + e.offset + size_t(l) * e.bytes, op.bytes) != 0)
        return false;
      at += op.bytes;
    }
  }
  return true;
}

void MemoryChecker::report_shared(const Warp& warp, int lane, const Op& op, uint32_t word, const char* access,
                                  const SharedMemory::Verdict& verdict) {
  using Found = SharedMemory::Found;
  if (verdict.found == Found::unfenced) return report_unfenced(warp, lane, op, word);
  const bool by_lanes = verdict.found == Found::lanes_race_with_write || verdict.found == Found::lanes_race_with_read;
  const Check check = verdict.found == Found::uninitialised     ? Check::uninitialised
                      : verdict.found == Found::write_under_way ? Check::copy
                      : verdict.found == Found::read_under_way  ? Check::copy
                      : verdict.same_value                      ? Check::same_value
                      : by_lanes                                ? Check::warp_race
                                                                : Check::race;
  if (!reports_.finds(check, op)) return;
  const uint32_t address = 4 * word;
  const std::string other =
      verdict.found == Found::uninitialised
          ? ""
          : reports_.name_of(verdict.warp, *warp.block) +
                (verdict.op == SharedMemory::some_op ? "" : " at " + reports_.where(program_.ops[verdict.op]));
  const auto message = [&] {
    switch (verdict.found) {
      case Found::uninitialised:
        return formatted("a read of shared memory at {:#x}, which nobody in this block has written", address);
      case Found::write_under_way:
        return formatted(
            "a {} of shared memory at {:#x} while the asynchronous copy into it, of {}, is still under way: "
            "nobody has waited for it",
            access, address, other);
      case Found::read_under_way:
        return formatted(
            "a {} of shared memory at {:#x} while an asynchronous operation still reads it, that of {}: "
            "nobody has waited for it",
            access, address, other);
      case Found::lanes_race_with_write:
      case Found::lanes_race_with_read:
        return formatted(
            "a race of two lanes of a warp in shared memory at {:#x}: no __syncwarp() between this {} and the {} at "
            "{}{}",
            address, access, verdict.found == Found::lanes_race_with_write ? "write" : "read",
            reports_.where(program_.ops[verdict.op]), verdict.same_value ? ", which write the same value" : "");
      default:
        return formatted("a race in shared memory at {:#x}: no barrier between this {} and the {} of {}{}", address,
                         access, verdict.found == Found::race_with_write ? "write" : "read", other,
                         verdict.same_value ? ", which writes the same value" : "");
    }
  };
  reports_.report(warp, lane, op, message(), check);
}

void MemoryChecker::report_unfenced(const Warp& warp, int lane, const Op& op, uint32_t word) {
  if (!reports_.finds(Check::proxy, op)) return;
  reports_.report(warp, lane, op,
                  formatted("the asynchronous proxy reads shared memory at {:#x}, which the generic proxy wrote: no "
                            "fence.proxy.async between",
                            4 * word),
                  Check::proxy);
}

}  // namespace sim
