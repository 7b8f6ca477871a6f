// Bulk copies that have been issued and have not landed (PTX ISA 9.7.9.27, "Data Movement and Conversion Instructions: Bulk
// copy"). They land as late as they may. A copy that completes on an mbarrier lands when a warp spins on that mbarrier. A copy
// of a bulk group lands when its thread waits for the group, or when the cluster ends. The source is read only then.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "executor/tensor_map.h"

namespace sim {

struct Block;
struct Warp;

struct BulkCopy {
  /// One end: global memory where `block` is null, else that block's shared memory.
  struct End {
    Block* block = nullptr;
    uint64_t address = 0;
  };

  const Op* op = nullptr;
  uint32_t pc = 0;
  Warp* warp = nullptr;  ///< the warp that issued it, and its lane
  int lane = 0;
  End from, to;
  uint32_t bytes = 0;
  std::vector<uint32_t> units;  ///< of 16 bytes in shared memory that it writes: their addresses
  TensorMap map;                ///< of the global end; rank 0: none, plain bytes
  std::array<int32_t, 5> corner{};
  End mbarrier;           ///< on which it completes; no block: it belongs to a bulk group
  uint32_t group = 0;     ///< of its thread
  bool was_read = false;  ///< its bytes are in `data`
  std::vector<std::byte> data;

  /// Where byte `at` of the box, row after row, lies at the shared end. A row narrower than the swizzle's span takes a whole
  /// span (as an H200 does; tests/programs/tma.cu).
  uint32_t shared_address(const End& end, uint32_t at) const {
    uint32_t place = at;
    if (map.swizzle && map.swizzle != map.row_bytes())
      place = at / map.row_bytes() * map.swizzle + at % map.row_bytes();
    return Swizzle{map.swizzle, map.swizzles_pairs}(uint32_t(end.address) + place);
  }
  /// The part of the box's row `r` that it moves. Reductions were not tried on a GPU: they end with the last element.
  TensorRow tensor_row(uint32_t r) const { return row_of(map, corner, r, from.block && !(op->o.flags & flag_reduce)); }
  /// Calls f(word, byte_mask) for each word of shared memory that it reads of the tensor's elements. What lies behind them in their
  /// last 16 bytes is stored, too, but a kernel need not have written it.
  template <class F>
  void for_each_word_read(const F& f) const {
    const auto part = [&](uint32_t at, uint32_t end) {  // bytes of the box
      while (at < end) {
        const uint32_t next = std::min(at / 4 * 4 + 4, end), below = (1U << (next - at)) - 1;
        f(shared_address(from, at / 4 * 4) / 4, below << at % 4);
        at = next;
      }
    };
    if (!map.rank) return part(0, bytes);
    for (uint32_t r = 0; r < map.rows(); ++r) {
      const TensorRow row = row_of(map, corner, r);
      const uint32_t begin = r * map.row_bytes() + row.skipped;
      part(begin, begin + row.bytes);
    }
  }
  /// Bytes that it takes at the shared end.
  uint32_t shared_bytes() const { return map.swizzle ? map.rows() * map.swizzle : bytes; }
};

}  // namespace sim
