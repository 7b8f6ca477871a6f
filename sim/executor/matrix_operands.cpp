#include "executor/matrix_operands.h"

#include <cstring>
#include <unordered_set>

namespace sim {

std::optional<uint32_t> poison_rows(std::span<const uint32_t> units, size_t of_a, bool a_k_contiguous,
                                    bool b_k_contiguous, uint32_t element_bytes, const std::vector<uint32_t>& unwritten,
                                    std::byte* memory) {
  if (unwritten.empty()) return {};
  const std::unordered_set<uint32_t> words(unwritten.begin(), unwritten.end());
  const auto poison = [&](std::span<const uint32_t> matrix, bool k_contiguous) {
    const size_t each = k_contiguous ? units_per_row : operand_k_bytes / element_bytes, count = matrix.size() / each;
    size_t missing = 0;
    for (size_t row = 0; row < count; ++row) {
      const auto unit = [&](size_t i) { return matrix[k_contiguous ? row * each + i : i * count + row]; };
      size_t here = 0;
      for (size_t i = 0; i < each; ++i)
        for (uint32_t word = 0; word < 4; ++word) here += words.contains(unit(i) / 4 + word);
      if (here == 0) continue;
      if (here < 4 * each) return false;
      ++missing;
      for (size_t i = 0; i < each; ++i) std::memset(memory + unit(i), 0xff, 16);
    }
    return missing == 0 || missing < count;
  };
  if (poison(units.first(of_a), a_k_contiguous) && poison(units.subspan(of_a), b_k_contiguous)) return {};
  return unwritten[0];
}

}  // namespace sim
