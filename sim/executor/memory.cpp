// Loads, stores and atomics of a warp: each address is checked, the cost is counted, the data moves.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "executor/cluster.h"
#include "executor/rounding.h"
#include "text.h"

namespace sim {
namespace {

int first(Mask mask) { return std::countr_zero(mask); }

}  // namespace

Block::Addresses Block::addresses(const Warp& warp, const Address& operand) {
  Addresses address;
  if (operand.bytes == 8) {
    const uint64_t* base = reinterpret_cast<const uint64_t*>(warp.registers + operand.base);
    for (int l = 0; l < warp_size; ++l) address[l] = base[l] + uint64_t(operand.displacement);
  } else {
    const uint32_t* base = reinterpret_cast<const uint32_t*>(warp.registers + operand.base);
    for (int l = 0; l < warp_size; ++l) address[l] = uint32_t(base[l] + uint64_t(operand.displacement));
  }
  return address;
}

Pattern& Block::pattern(uint32_t pc, uint32_t part, Space space, Mask mask, const Addresses& address, uint32_t bytes) {
  std::vector<Pattern>& known = patterns_[pc];
  const size_t index = 2 * part + (space == Space::shared);
  if (index >= known.size()) known.resize(index + 1);
  Pattern& pattern = known[index];
  const uint64_t origin = address[first(mask)];
  uint64_t differs = pattern.mask ^ mask;
  if (mask == all_lanes) {
    for (int l = 0; l < warp_size; ++l) differs |= uint64_t(pattern.relative[l]) ^ (address[l] - origin);
  } else {
    for (int l = 0; l < warp_size; ++l)
      differs |= uint64_t(pattern.relative[l]) ^ (mask >> l & 1 ? address[l] - origin : 0);
  }
  if (differs) learn(pattern, mask, address, bytes);
  return pattern;
}

void Block::learn(Pattern& pattern, Mask mask, const Addresses& address, uint32_t bytes) {
  const uint64_t origin = address[first(mask)];
  int64_t low = 0, high = 0;
  uint64_t bits = 0, from_consecutive = 0;
  for (int l = 0; l < warp_size; ++l) {
    const int64_t relative = mask >> l & 1 ? int64_t(address[l] - origin) : 0;
    pattern.relative[l] = relative;
    low = std::min(low, relative);
    high = std::max(high, relative);
    bits |= uint64_t(relative);
    from_consecutive |= uint64_t(relative - int64_t{bytes} * l);
  }
  pattern.mask = mask;
  pattern.form = mask != all_lanes       ? Pattern::Form::general
                 : bits == 0             ? Pattern::Form::uniform
                 : from_consecutive == 0 ? Pattern::Form::consecutive
                                         : Pattern::Form::general;
  pattern.low = low < -Pattern::far || high > Pattern::far ? -Pattern::far : low;
  pattern.high = std::min(high, Pattern::far);
  pattern.bits = bits;
  pattern.sectors.fill(0);
  pattern.ideal = 0;
}

namespace {

/// The distinct aligned 32 bytes that the lanes touch. They depend on the addresses relative to one another, and on where in its
/// sector the first one lies.
uint8_t sectors_of(const Pattern& pattern, int64_t place) {
  std::array<int64_t, warp_size> sector;
  int n = 0;
  for (int l = 0; l < warp_size; ++l)
    if (pattern.mask >> l & 1) sector[n++] = (pattern.relative[l] + place) >> 5;
  if (!std::is_sorted(sector.begin(), sector.begin() + n)) std::sort(sector.begin(), sector.begin() + n);
  return uint8_t(std::unique(sector.begin(), sector.begin() + n) - sector.begin());
}

}  // namespace

/// A load from global memory in the form of this operation's last one, where nothing speaks against it: most are such loads, and
/// here they cost little. False: it is not known to be one, and nothing has happened.
bool Block::load_as_before(Warp& warp, const Op& op, uint32_t pc) {
  if (op.kind != Kind::load || op.space != Space::global || op.address_bytes != 8 || op.counted == Class::param ||
      cluster_.races_ || patterns_[pc].empty())
    return false;
  Pattern& pattern = patterns_[pc][0];
  const uint64_t* const base = reinterpret_cast<const uint64_t*>(warp.registers + op.o.a);
  uint64_t differs = pattern.mask ^ all_lanes;
#pragma GCC unroll 8
  for (int l = 0; l < warp_size; ++l) differs |= uint64_t(pattern.relative[l]) ^ (base[l] - base[0]);
  if (differs) return false;

  const uint64_t origin = base[0] + uint64_t(op.displacement);
  const uint32_t bytes = op.bytes * uint32_t(op.elements.size());
  if (((origin | pattern.bits) & (bytes - 1)) || !have_contents(op, contents_[pc], origin, bytes, pattern))
    return false;
  count_global(pc, origin, uint64_t{bytes} * warp_size, pattern);
  alignas(32) std::array<std::byte*, warp_size> at;
  const bool of_first_lane =
      pattern.form != Pattern::Form::general && op.elements.size() == 1;  // all that is looked at
  for (int l = 0; l < (of_first_lane ? 1 : warp_size); ++l)
    at[l] = reinterpret_cast<std::byte*>(base[l] + uint64_t(op.displacement));
  move_data(warp, op, all_lanes, at, pattern.form);
  return true;
}

void Block::memory_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  if (mask == all_lanes && load_as_before(warp, op, pc)) return;
  alignas(32) Addresses address = addresses(warp, op);
  if (op.space != Space::generic) return access_or_skip(warp, op, pc, mask, op.space, address, false);
  // A generic address says by itself where it points (PTX ISA 5.1, "Generic Addressing").
  Mask shared = 0, local = 0;
  for (int l = 0; l < warp_size; ++l) {
    if (in_shared_window(address[l])) shared |= mask & Mask{1} << l;
    if (in_local_window(address[l])) local |= mask & Mask{1} << l;
  }
  for (int l = 0; l < warp_size; ++l) address[l] -= shared >> l & 1 ? shared_window : local >> l & 1 ? local_window : 0;
  if (shared) access_or_skip(warp, op, pc, shared, Space::shared, address, true);
  if (local) access_or_skip(warp, op, pc, local, Space::local, address, true);
  if (const Mask rest = mask & ~shared & ~local) access_or_skip(warp, op, pc, rest, Space::global, address, true);
}

/// Where the kernel goes on after an access out of bounds or misaligned, the lanes concerned make none; they load 0.
void Block::access_or_skip(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address,
                           bool generic) {
  while (mask) {
    try {
      return access(warp, op, pc, mask, space, address, generic);
    } catch (const Skip& skip) {
      mask &= ~skip.lanes;
      if (op.kind == Kind::store) continue;
      for (const Element& e : op.elements)
        if (e.offset != discarded)
          std::memset(warp.registers + e.offset + size_t(first(skip.lanes)) * e.bytes, 0, e.bytes);
    }
  }
}

void Block::reject(const Warp& warp, int lane, const Op& op, Check check,
                   const std::function<std::string()>& what) const {
  const bool by_lanes = op.kind == Kind::load || op.kind == Kind::store || op.kind == Kind::atomic;
  if (!by_lanes) report(warp, lane, op, what(), fault_of(check));
  if (finds(check, op)) report(warp, lane, op, what(), check);
  throw Skip{Mask{1} << lane};
}

/// `address`: in the state space `space`; of shared memory, changed to offsets in it. `generic`: they were generic ones.
void Block::access(Warp& warp, const Op& op, uint32_t pc, Mask mask, Space space, Addresses& address, bool generic) {
  const uint32_t bytes = op.bytes * uint32_t(op.elements.size());
  std::array<std::byte*, warp_size> at;  // of the lanes of `mask`
  const bool of_cluster = space == Space::shared && (generic || op.cluster);
  Pattern* pattern = &this->pattern(pc, 0, space, mask, address, bytes);
  check_aligned(warp, op, address, bytes, *pattern);
  switch (space) {
    case Space::shared:
      if (!of_cluster) {
        check_shared(warp, op, pc, mask, *this, address, bytes, *pattern);
        for (int l = 0; l < warp_size; ++l) at[l] = shared_.data() + address[l];
        break;
      }
      for (Mask rest = mask; rest;) {  // block by block
        Mask here = rest;
        const uint64_t rank = address[first(rest)] >> cluster_rank_shift;
        Block& owner = owner_of(warp, first(rest), op, address[first(rest)]);
        for (int l = 0; l < warp_size; ++l) {
          if (!(rest >> l & 1)) continue;
          if (address[l] >> cluster_rank_shift != rank)
            here &= ~(Mask{1} << l);
          else
            address[l] = shared_offset(address[l]);
        }
        pattern = &this->pattern(pc, 0, space, here, address, bytes);
        check_shared(warp, op, pc, here, owner, address, bytes, *pattern);
        for (int l = 0; l < warp_size; ++l)
          if (here >> l & 1) at[l] = owner.shared_.data() + address[l];
        rest &= ~here;
      }
      break;
    case Space::local:
      for (int l = 0; l < warp_size; ++l) {
        if (!(mask >> l & 1)) continue;
        if (address[l] + bytes > program_.frame_bytes || address[l] + bytes < address[l])
          reject(warp, l, op, Check::bounds, [&] {
            return formatted("address {:#x} is outside of the thread's {} bytes of local memory", address[l],
                             program_.frame_bytes);
          });
        at[l] = warp.frames + size_t(l) * program_.frame_bytes + address[l];
      }
      break;
    case Space::param:  // of the kernel
      for (int l = 0; l < warp_size; ++l) {
        const uint64_t begin = reinterpret_cast<uint64_t>(cluster_.param());
        if ((mask >> l & 1) && (address[l] < begin || address[l] + bytes > begin + launch_.params.size()))
          report(warp, l, op, "an address outside of the kernel's parameters", Fault::illegal_address);
        at[l] = reinterpret_cast<std::byte*>(address[l]);
      }
      break;
    default:
      check_global(warp, op, pc, mask, address, bytes, *pattern);
      for (int l = 0; l < warp_size; ++l) at[l] = reinterpret_cast<std::byte*>(address[l]);
  }
  if (op.kind == Kind::atomic)
    atomic(warp, op, mask, at);
  else if (space == Space::shared && op.kind == Kind::store &&
           uint32_t(pattern->words) * 4 < uint32_t(std::popcount(mask)) * bytes)
    store_in_any_order(warp, op, mask, at);
  else
    move_data(warp, op, mask, at,
              pattern->mask == mask && space != Space::local ? pattern->form : Pattern::Form::general);
}

/// Lanes that write to one place at once: which of them wins is not specified (CUDA C++ Programming Guide, "SIMT
/// Architecture"), so it is another with every seed.
void Block::store_in_any_order(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at) {
  const int last = static_cast<int>(cluster_.random() % warp_size);
  move_data(warp, op, mask, at);
  if (mask >> last & 1) move_data(warp, op, Mask{1} << last, at);  // once more, after the others
}

void Block::check_aligned(const Warp& warp, const Op& op, const Addresses& address, uint32_t bytes,
                          const Pattern& pattern) const {
  if (((address[first(pattern.mask)] | pattern.bits) & (bytes - 1)) == 0) return;
  for (int l = 0; l < warp_size; ++l)
    if ((pattern.mask >> l & 1) && (address[l] & (bytes - 1)))
      reject(warp, l, op, Check::misaligned, [&] {
        return formatted("misaligned address {:#x}: {} bytes at once need a multiple of {}", address[l], bytes, bytes);
      });
}

void Block::check_global(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                         Pattern& pattern) {
  check_bounds(warp, op, pc, mask, address, bytes, pattern);
  check_contents(warp, op, pc, mask, address, bytes, &pattern);
  if (op.counted != Class::param)
    count_global(pc, address[first(pattern.mask)], uint64_t{bytes} * std::popcount(mask), pattern);
}

/// `pattern`: of these lanes, or of more.
void Block::check_bounds(Warp& warp, const Op& op, uint32_t pc, Mask mask, const Addresses& address, uint32_t bytes,
                         const Pattern& pattern) {
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
    const uint64_t param = reinterpret_cast<uint64_t>(cluster_.param());
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

void Block::count_global(uint32_t pc, uint64_t origin, uint64_t bytes, Pattern& pattern) {
  OpCount& count = counts_[pc];
  ++count.global_requests;
  count.global_bytes += bytes;
  uint8_t& sectors = pattern.sectors[origin % 32];
  if (sectors == 0) sectors = sectors_of(pattern, int64_t(origin % 32));
  count.sectors += sectors;
}

/// The block in whose shared memory an address of shared::cluster, or a generic one, lies.
Block& Block::owner_of(const Warp& warp, int lane, const Op& op, uint64_t address) {
  const uint64_t rank = (in_shared_window(address) ? address - shared_window : address) >> cluster_rank_shift;
  if (rank == 0 || rank == rank_ + 1) return *this;
  if (rank > launch_.cluster.count())
    report(warp, lane, op, formatted("{:#x} is no address of the cluster's shared memory", address),
           Fault::illegal_address);
  return cluster_.block(number_ - rank_ + uint32_t(rank - 1));
}

/// Another block's shared memory exists from its start to its end, of which a cluster barrier tells (CUDA C++ Programming
/// Guide, "Distributed Shared Memory").
void Block::check_reachable(const Warp& warp, int lane, const Op& op, const Block& owner) const {
  if (&owner == this) return;
  const Extent& other = owner.block_index_;
  if (owner.ended() && finds(Check::ended, op))
    report(
        warp, lane, op,
        formatted("an access to the shared memory of block ({}, {}, {}), which has ended", other.x, other.y, other.z),
        Check::ended);
  bool started = warp.cluster_waited > 0;  // a relaxed barrier, too, has waited for all to start
  for (const Warp& w : owner.warps_) started = started || clocks_.happens_before(w.actor, 1, warp.actor);
  if (!started)
    report(warp, lane, op,
           formatted("an access to the shared memory of block ({}, {}, {}), which may not have started: no cluster "
                     "barrier before it",
                     other.x, other.y, other.z),
           Fault::illegal_address);
}

void Block::check_shared(Warp& warp, const Op& op, uint32_t pc, Mask mask, Block& owner, const Addresses& address,
                         uint32_t bytes, Pattern& pattern) {
  check_reachable(warp, first(mask), op, owner);
  SharedMemory& shared = owner.shared_;
  const uint64_t origin = address[first(mask)];
  if (!pattern.within(origin, bytes, shared.size())) {
    for (int l = 0; l < warp_size; ++l)
      if ((mask >> l & 1) && !shared.contains(address[l], bytes)) {
        const auto what = [&] {
          return formatted("{} bytes at {:#x} are outside of the block's {} bytes of shared memory", bytes, address[l],
                           shared.size());
        };
        if (&owner != this) report(warp, l, op, what(), Fault::illegal_address);
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
bool Block::writes_what_is_there(const Warp& warp, const Op& op, Mask mask, const Addresses& address, uint32_t bytes,
                                 uint32_t word, const std::byte* memory) {
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

void Block::report_shared(const Warp& warp, int lane, const Op& op, uint32_t word, const char* access,
                          const SharedMemory::Verdict& verdict) const {
  using Found = SharedMemory::Found;
  if (verdict.found == Found::unfenced) return report_unfenced(warp, lane, op, word);
  const bool by_lanes = verdict.found == Found::lanes_race_with_write || verdict.found == Found::lanes_race_with_read;
  const Check check = verdict.found == Found::uninitialised     ? Check::uninitialised
                      : verdict.found == Found::write_under_way ? Check::copy
                      : verdict.found == Found::read_under_way  ? Check::copy
                      : verdict.same_value                      ? Check::same_value
                      : by_lanes                                ? Check::warp_race
                                                                : Check::race;
  if (!finds(check, op)) return;
  const uint32_t address = 4 * word;
  const std::string other =
      verdict.found == Found::uninitialised
          ? ""
          : cluster_.name_of(verdict.warp, *this) +
                (verdict.op == SharedMemory::some_op ? "" : " at " + where(program_.ops[verdict.op]));
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
            where(program_.ops[verdict.op]), verdict.same_value ? ", which write the same value" : "");
      default:
        return formatted("a race in shared memory at {:#x}: no barrier between this {} and the {} of {}{}", address,
                         access, verdict.found == Found::race_with_write ? "write" : "read", other,
                         verdict.same_value ? ", which writes the same value" : "");
    }
  };
  report(warp, lane, op, message(), check);
}

namespace {

/// Two matrices of 4 x 4 words, one in each half of the vectors.
void transpose(__m256 (&row)[4]) {
  const __m256 a = _mm256_unpacklo_ps(row[0], row[1]), b = _mm256_unpackhi_ps(row[0], row[1]);
  const __m256 c = _mm256_unpacklo_ps(row[2], row[3]), d = _mm256_unpackhi_ps(row[2], row[3]);
  row[0] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(1, 0, 1, 0));
  row[1] = _mm256_shuffle_ps(a, c, _MM_SHUFFLE(3, 2, 3, 2));
  row[2] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(1, 0, 1, 0));
  row[3] = _mm256_shuffle_ps(b, d, _MM_SHUFFLE(3, 2, 3, 2));
}

/// One element of a load. A wider register is filled with zeros, or with the sign (PTX ISA 9.7.9.8, ld).
template <class Element, class Register>
void load_lanes(std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                Pattern::Form form) {
  alignas(32) Element values[warp_size];
  Register* const d = reinterpret_cast<Register*>(registers);
  if (form == Pattern::Form::uniform) {
    std::memcpy(values, at[0] + offset, sizeof(Element));
    for (int l = 0; l < warp_size; ++l) d[l] = Register(values[0]);
  } else if (form == Pattern::Form::consecutive) {
    std::memcpy(values, at[0], sizeof values);
    for (int l = 0; l < warp_size; ++l) d[l] = Register(values[l]);
  } else if (mask == all_lanes) {
    for (int l = 0; l < warp_size; ++l) {
      std::memcpy(values, at[l] + offset, sizeof(Element));
      d[l] = Register(values[0]);
    }
  } else {
    for (Mask rest = mask; rest; rest &= rest - 1) {
      const int l = first(rest);
      std::memcpy(values, at[l] + offset, sizeof(Element));
      d[l] = Register(values[0]);
    }
  }
}

template <class Element, class Register>
void store_lanes(const std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                 Pattern::Form form) {
  const Register* const d = reinterpret_cast<const Register*>(registers);
  if (form == Pattern::Form::consecutive) {
    alignas(32) Element values[warp_size];
    for (int l = 0; l < warp_size; ++l) values[l] = Element(d[l]);
    std::memcpy(at[0], values, sizeof values);
    return;
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    const int l = first(rest);
    const auto value = Element(d[l]);
    std::memcpy(at[l] + offset, &value, sizeof value);
  }
}

template <class Element, class Register>
void move_lanes(bool load, std::byte* registers, const std::array<std::byte*, warp_size>& at, size_t offset, Mask mask,
                Pattern::Form form) {
  if (load)
    load_lanes<Element, Register>(registers, at, offset, mask, form);
  else
    store_lanes<Element, Register>(registers, at, offset, mask, form);
}

/// By the widths of the element and of the register.
template <class Element>
auto move_lanes_of(uint8_t register_bytes) {
  return register_bytes == 2   ? move_lanes<Element, uint16_t>
         : register_bytes == 4 ? move_lanes<Element, uint32_t>
                               : move_lanes<Element, uint64_t>;
}

/// Four words per lane, of all lanes: four registers, of which each pass fills 8 lanes.
void load_quads(std::byte* const (&registers)[4], const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; l += 8) {
    __m256 row[4];  // the words of lane l + i, and of lane l + 4 + i
    for (int i = 0; i < 4; ++i)
      row[i] = _mm256_set_m128(_mm_loadu_ps(reinterpret_cast<const float*>(at[l + 4 + i])),
                               _mm_loadu_ps(reinterpret_cast<const float*>(at[l + i])));
    transpose(row);
    for (int i = 0; i < 4; ++i) _mm256_store_ps(reinterpret_cast<float*>(registers[i]) + l, row[i]);
  }
}
void store_quads(std::byte* const (&registers)[4], const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; l += 8) {
    __m256 row[4];
    for (int i = 0; i < 4; ++i) row[i] = _mm256_load_ps(reinterpret_cast<const float*>(registers[i]) + l);
    transpose(row);
    for (int i = 0; i < 4; ++i) _mm_storeu_ps(reinterpret_cast<float*>(at[l + i]), _mm256_castps256_ps128(row[i]));
    for (int i = 0; i < 4; ++i)
      _mm_storeu_ps(reinterpret_cast<float*>(at[l + 4 + i]), _mm256_extractf128_ps(row[i], 1));
  }
}

}  // namespace

void Block::move_data(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at,
                      Pattern::Form form) {
  const bool load = op.kind == Kind::load;
  if (op.elements.size() == 4 && op.bytes == 4 && mask == all_lanes) {
    std::byte* registers[4];
    bool words = true;
    for (int i = 0; i < 4; ++i) {
      words = words && op.elements[i].offset != discarded && op.elements[i].bytes == 4;
      registers[i] = warp.registers + op.elements[i].offset;
    }
    if (words) return load ? load_quads(registers, at) : store_quads(registers, at);
  }
  if (op.elements.size() > 1 && form == Pattern::Form::consecutive) form = Pattern::Form::general;
  size_t offset = 0;
  for (const Element& e : op.elements) {
    if (e.offset != discarded) {
      const auto move =
          op.bytes == 4   ? op.is_signed ? move_lanes_of<int32_t>(e.bytes) : move_lanes_of<uint32_t>(e.bytes)
            : op.bytes == 8 ? move_lanes_of<uint64_t>(e.bytes)
          : op.bytes == 2 ? op.is_signed ? move_lanes_of<int16_t>(e.bytes) : move_lanes_of<uint16_t>(e.bytes)
          : op.is_signed ? move_lanes_of<int8_t>(e.bytes)
                          : move_lanes_of<uint8_t>(e.bytes);
      move(load, warp.registers + e.offset, at, offset, mask, form);
    }
    offset += op.bytes;
  }
}

// --- atomics (PTX ISA 9.7.13.5) ------------------------------------------------------------------------------------------------

namespace {

/// The new value that an atomic operation gives.
/// .min and .max of a 16-bit format: of a NaN and a number, the number; -0 is less than +0.
template <class H>
H extreme_of(Reduction reduction, H a, H b) {
  const double x = a.value(), y = b.value();
  if (x != x || y != y) return x == x ? a : y == y ? b : H{0x7fff};
  const bool a_is_less = x < y || (x == y && std::signbit(x));
  return a_is_less == (reduction == Reduction::min) ? a : b;
}

template <class U>
U combine(const Op& op, U old, U b, U c) {
  using S = std::make_signed_t<U>;
  const auto as_half = [&]<class H>(U x, U y) {
    if (op.reduction != Reduction::add) return U(extreme_of(op.reduction, H{uint16_t(x)}, H{uint16_t(y)}).bits);
    return U(H::from(add_odd(H{uint16_t(x)}.value(), H{uint16_t(y)}.value())).bits);
  };
  switch (op.reduction) {
    case Reduction::exch:
      return b;
    case Reduction::cas:
      return old == b ? c : old;
    case Reduction::inc:
      return old >= b ? U{0} : U(old + 1);
    case Reduction::dec:
      return old == 0 || old > b ? b : U(old - 1);
    case Reduction::and_:
      return old & b;
    case Reduction::or_:
      return old | b;
    case Reduction::xor_:
      return old ^ b;
    case Reduction::min:
      if (!is_integer(op.type)) break;
      return op.type == NumberType::signed_ ? U(std::min(S(old), S(b))) : std::min(old, b);
    case Reduction::max:
      if (!is_integer(op.type)) break;
      return op.type == NumberType::signed_ ? U(std::max(S(old), S(b))) : std::max(old, b);
    case Reduction::add:
      break;
  }
  switch (op.type) {
    case NumberType::f32:
      if constexpr (sizeof(U) == 4) return std::bit_cast<U>(std::bit_cast<float>(old) + std::bit_cast<float>(b));
      break;
    case NumberType::f64:
      if constexpr (sizeof(U) == 8) return std::bit_cast<U>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
      break;
    case NumberType::f16:
      return as_half.template operator()<f16>(old, b);
    case NumberType::bf16:
      return as_half.template operator()<bf16>(old, b);
    case NumberType::f16x2:
      return U(as_half.template operator()<f16>(old & 0xffff, b & 0xffff) |
               as_half.template operator()<f16>(U(uint64_t(old) >> 16), U(uint64_t(b) >> 16)) << 16);
    case NumberType::bf16x2:
      return U(as_half.template operator()<bf16>(old & 0xffff, b & 0xffff) |
               as_half.template operator()<bf16>(U(uint64_t(old) >> 16), U(uint64_t(b) >> 16)) << 16);
    default:
      break;
  }
  return U(old + b);
}

template <class U>
U update(const Op& op, std::byte* at, const std::byte* b, const std::byte* c) {
  U operand_b, operand_c = 0;
  std::memcpy(&operand_b, b, sizeof(U));
  if (op.reduction == Reduction::cas) std::memcpy(&operand_c, c, sizeof(U));
  U* target = reinterpret_cast<U*>(at);
  U old = __atomic_load_n(target, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(target, &old, combine(op, old, operand_b, operand_c), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

}  // namespace

uint32_t reduced(const Op& op, uint32_t a, uint32_t b) { return combine<uint32_t>(op, a, b, 0); }

void reduce_atomically(const Op& op, std::byte* at, const std::byte* value) {
  if (op.bytes == 8)
    update<uint64_t>(op, at, value, nullptr);
  else if (op.bytes == 4)
    update<uint32_t>(op, at, value, nullptr);
  else
    update<uint16_t>(op, at, value, nullptr);
}

void add_atomically(NumberType type, uint32_t bytes, std::byte* at, const std::byte* value) {
  Op op;
  op.reduction = Reduction::add;
  op.type = type;
  op.bytes = uint8_t(bytes);
  reduce_atomically(op, at, value);
}

void Block::atomic(Warp& warp, const Op& op, Mask mask, const std::array<std::byte*, warp_size>& at) {
  for (int l = 0; l < warp_size; ++l) {  // blocks on other CPU threads do the same to global memory
    if (!(mask >> l & 1)) continue;
    for (size_t i = 0; i < op.values.size(); ++i) {
      const Element &d = op.elements[i], &b = op.values[i];
      const std::byte* const operand = warp.registers + b.offset + size_t(l) * b.bytes;
      std::byte* const place = at[l] + i * op.bytes;
      const uint32_t old =
          op.bytes == 4 ? update<uint32_t>(op, place, operand, nullptr) : update<uint16_t>(op, place, operand, nullptr);
      if (d.offset != discarded) std::memcpy(warp.registers + d.offset + size_t(l) * d.bytes, &old, d.bytes);
    }
    if (!op.values.empty()) continue;
    const std::byte *b = warp.registers + op.o.b + size_t(l) * op.bytes,
                    *c = warp.registers + op.o.c + size_t(l) * op.bytes;
    const uint64_t old = op.bytes == 8   ? update<uint64_t>(op, at[l], b, c)
                         : op.bytes == 4 ? update<uint32_t>(op, at[l], b, c)
                                         : update<uint16_t>(op, at[l], b, c);
    const Element& d = op.elements[0];
    if (d.offset != discarded) std::memcpy(warp.registers + d.offset + size_t(l) * d.bytes, &old, d.bytes);
  }
}

}  // namespace sim
