#include "executor/tensor_map.h"

#include <algorithm>

#include "text.h"

namespace sim {

uint32_t TensorMap::rows() const {
  uint32_t rows = 1;
  for (int d = 1; d < rank; ++d) rows *= rows_in(d);
  return rows;
}

/// CUDA Driver API, cuTensorMapEncodeTiled, with interleave NONE.
std::string TensorMap::check() const {
  if (rank < 1 || rank > 5) return formatted("rank {}: 1 to 5 can be", rank);
  if (!base || base % 16) return formatted("the tensor's address {:#x} is no multiple of 16", base);
  for (int d = 0; d < rank; ++d) {
    if (size[d] == 0 || size[d] > uint64_t{1} << 32) return formatted("a size of {} in dimension {}", size[d], d);
    if (box[d] == 0 || box[d] > 256) return formatted("a box of {} in dimension {}: 1 to 256 can be", box[d], d);
    if (step[d] == 0 || step[d] > 8) return formatted("an element stride of {} in dimension {}", step[d], d);
  }
  for (int d = 1; d < rank; ++d)
    if (stride[d - 1] % 16 || stride[d - 1] >= uint64_t{1} << 40)
      return formatted("a stride of {} bytes in dimension {}: multiples of 16 below 2^40 can be", stride[d - 1], d);
  if (padded_bits) {
    if (base % 32) return formatted("the tensor's address {:#x} is no multiple of 32", base);
    if (size[0] % 128) return formatted("a size of {} in dimension 0: multiples of 128 can be", size[0]);
    if (box[0] != 128) return formatted("a box of {} in dimension 0: of this type 128", box[0]);
    if (swizzle && swizzle != 128) return formatted("a swizzle of {} bytes: of this type 128", swizzle);
    for (int d = 1; d < rank; ++d)
      if (stride[d - 1] % 32)
        return formatted("a stride of {} bytes in dimension {}: multiples of 32 can be", stride[d - 1], d);
  }
  if (row_bytes() % 16) return formatted("a box {} bytes wide: multiples of 16 can be", row_bytes());
  if (swizzle && row_bytes() > swizzle)
    return formatted("a box {} bytes wide is wider than its swizzle's {}", row_bytes(), swizzle);
  return "";
}

TensorRow row_of(const TensorMap& map, const std::array<int32_t, 5>& corner, uint32_t row, bool units) {
  TensorRow found;
  uint64_t address = map.base;
  for (int d = 1; d < map.rank; ++d) {
    const int64_t at = int64_t{corner[d]} + row % map.rows_in(d) * map.step[d];
    row /= map.rows_in(d);
    if (at < 0 || at >= int64_t(map.size[d])) return found;
    address += uint64_t(at) * map.stride[d - 1];
  }
  const int64_t begin = std::max<int64_t>(corner[0], 0);
  const int64_t end = std::min<int64_t>(int64_t{corner[0]} + map.box[0], int64_t(map.size[0]));
  if (begin >= end) return found;
  found.skipped = uint32_t(begin - corner[0]) * map.element_bytes;
  if (map.padded_bits) {
    found.address = address + uint64_t(begin) * map.padded_bits / 8;
    found.bytes = map.tensor_bytes(uint32_t(end - begin));
    return found;
  }
  found.address = address + uint64_t(begin) * map.element_bytes;
  found.bytes = uint32_t(end - begin) * map.element_bytes;
  if (units) found.bytes = std::min((found.bytes + 15) / 16 * 16, map.row_bytes() - found.skipped);
  return found;
}

}  // namespace sim
