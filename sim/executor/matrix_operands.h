// The operands of wgmma and of tcgen05.mma in shared memory, as the descriptors describe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/wgmma.h"

namespace sim {

constexpr uint32_t operand_k_bytes = 32;  ///< of one row of A or column of B: K is 32 bytes, 16 halves or 8 words
constexpr uint32_t units_per_row = operand_k_bytes / 16;

/// Calls f(row of M or N, column of K, address, elements) for each 16 bytes of an operand; elements lie along K where K is
/// contiguous, else along M or N. Where K is contiguous, a row has `units` of 16 bytes.
template <class F>
void for_each_unit(const MatrixDescriptor& d, bool k_contiguous, uint32_t extent, uint32_t element_bytes, const F& f,
                   uint32_t units = units_per_row) {
  const uint32_t each = 16 / element_bytes, k = operand_k_bytes / element_bytes;
  if (k_contiguous)
    for (uint32_t i = 0; i < extent; ++i)
      for (uint32_t j = 0; j < units; ++j) f(i, j * each, d.address(true, i, j));
  else
    for (uint32_t j = 0; j < k; ++j)
      for (uint32_t i = 0; i < extent / each; ++i) f(i * each, j, d.address(false, i, j));
}

/// Nobody may have written some of the rows of A, or columns of B: then the rows or columns of D that they make are NaN, and
/// whoever uses none of these is right. `units`: of A, `of_a` of them, and of B, as for_each_unit() has them; `unwritten`: the words
/// that nobody has written. Where K is contiguous, two units are a row; else as many as K has elements are eight or four of them.
/// Returns one where such rows are written in part, or none of a matrix's.
std::optional<uint32_t> poison_rows(std::span<const uint32_t> units, size_t of_a, bool a_k_contiguous,
                                    bool b_k_contiguous, uint32_t element_bytes, const std::vector<uint32_t>& unwritten,
                                    std::byte* memory);

}  // namespace sim
