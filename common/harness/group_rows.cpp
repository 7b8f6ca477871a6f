#include "common/harness/group_rows.h"

#include <cmath>
#include <random>

#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"

namespace ladder {

std::vector<int> first_rows(int m, int groups, GroupRows rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> before(groups + 1);  // of a group: what those before it weigh
  for (int group = 0; group < groups; ++group) {
    double weight = rows == GroupRows::equal || group == groups / 2;
    if (rows == GroupRows::random) {
      const double drawn = static_cast<double>(random() >> 11) * 0x1p-53;
      weight = drawn < 1.0 / 16 && groups > 1 ? 0.0 : drawn;
    }
    before[group + 1] = before[group] + weight;
  }
  if (before.back() == 0.0) before.back() = 1.0;  // every group was drawn as an empty one: the last has all
  std::vector<int> first(groups + 1);
  for (int group = 0; group <= groups; ++group)
    first[group] = group == groups ? m : static_cast<int>(std::floor(m * before[group] / before.back()));
  return first;
}

std::vector<Problem> products(const Problem& p, const std::vector<int>& first_row) {
  if (p.groups == 0) return {p};
  const size_t result = result_bytes(p.type, p.out);
  const size_t rows_b = p.layout_b == MatrixLayout::row_major ? p.k : p.n;
  std::vector<Problem> found;
  for (int group = 0; group < p.groups; ++group) {
    const size_t first = first_row[group];
    Problem q = p;
    q.m = first_row[group + 1] - first_row[group];
    q.a = static_cast<const char*>(p.a) +
          operand_bytes(p.type, first * (p.layout_a == MatrixLayout::row_major ? p.lda : 1));
    q.b = static_cast<const char*>(p.b) + operand_bytes(p.type, group * rows_b * p.ldb);
    q.c = static_cast<char*>(p.c) + first * p.ldc * result;
    if (p.scales != Scales::none) {
      q.scale_a = p.scale_a + (p.scales == Scales::tensor ? 0 : first);
      q.scale_b = p.scale_b + group * scale_stride_b(p.scales, p.n, p.k);
    }
    q.groups = 0, q.first_row = nullptr;
    if (q.m > 0) found.push_back(q);
  }
  return found;
}

std::vector<Problem> products(const Problem& p) {
  std::vector<int> first_row(p.groups + 1);
  if (p.groups > 0)
    cuda_check(cudaMemcpy(first_row.data(), p.first_row, first_row.size() * sizeof(int), cudaMemcpyDeviceToHost));
  return products(p, first_row);
}

}  // namespace ladder
