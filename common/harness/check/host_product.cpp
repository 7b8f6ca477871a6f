#include "common/harness/check/host_product.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "common/harness/group_rows.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"

namespace ladder {
namespace {

/// A row-major matrix of the device, without its padding; its transpose where `transposed`.
template <class Element, int per_byte = 1>
std::vector<double> fetch(const void* data, size_t rows, size_t cols, size_t ld, bool transposed) {
  std::vector<char> raw(rows * ld * sizeof(Element));  // enough, where elements share bytes, too
  cuda_check(cudaMemcpy(raw.data(), data, raw.size() / per_byte, cudaMemcpyDeviceToHost));
  const Elements<Element> element{raw.data()};
  std::vector<double> matrix(rows * cols);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) matrix[transposed ? j * rows + i : i * cols + j] = to_float(element[i * ld + j]);
  return matrix;
}

/// A, B and C as FP64, M x K, K x N and M x N.
struct Matrices {
  std::vector<double> a, b, c;
};
Matrices fetch(const Problem& p) {
  const size_t m = p.m, n = p.n, k = p.k;
  return visit(AllTypes{}, p.type, p.out, [&]<Type type, class C>() {
    using Element = typename Operand<type>::Element;
    using ElementB = typename Operand<of_b(type)>::Element;
    return Matrices{p.layout_a == MatrixLayout::row_major ? fetch<Element, per_byte<type>()>(p.a, m, k, p.lda, false)
                                                          : fetch<Element, per_byte<type>()>(p.a, k, m, p.lda, true),
                    p.layout_b == MatrixLayout::row_major ? fetch<ElementB, per_byte<type>()>(p.b, k, n, p.ldb, false)
                                                          : fetch<ElementB, per_byte<type>()>(p.b, n, k, p.ldb, true),
                    p.beta == 0.0F ? std::vector<double>(m * n) : fetch<C>(p.c, m, n, p.ldc, false)};
  });
}

/// As they lie on the device: for scale_at().
std::vector<float> fetch_scales(const float* data, size_t floats) {
  std::vector<float> scales(floats);
  cuda_check(cudaMemcpy(scales.data(), data, floats * sizeof(float), cudaMemcpyDeviceToHost));
  return scales;
}

/// Multiplies A and B by their scales. `all_rows`: of A, of which p may be a group.
void scale(const Problem& p, int all_rows, Matrices& matrices) {
  if (p.scales == Scales::none) return;
  const size_t floats_a = scale_vector(p.scales) > 0 ? scale_floats_a(p.scales, all_rows, p.k)
                                                     : scale_index_a(p.scales, all_rows, p.k, p.m - 1, p.k - 1) + 1;
  const std::vector<float> of_a = fetch_scales(p.scale_a, floats_a),
                           of_b = fetch_scales(p.scale_b, scale_floats_b(p.scales, p.n, p.k));
  double* at = matrices.a.data();
  for (int row = 0; row < p.m; ++row)
    for (int k = 0; k < p.k; ++k)
      *at++ *= scale_at(p.scales, of_a.data(), scale_index_a(p.scales, all_rows, p.k, row, k));
  at = matrices.b.data();
  for (int k = 0; k < p.k; ++k)
    for (int col = 0; col < p.n; ++col) *at++ *= scale_at(p.scales, of_b.data(), scale_index_b(p.scales, p.k, col, k));
}

// A block of D whose sums stay in the L1 cache while k runs; each element of B serves all its rows.
constexpr size_t block_rows = 4, block_cols = 256;

struct Block {
  double sum[block_rows][block_cols] = {}, magnitude[block_rows][block_cols] = {};
};

/// Adds the products of an element of A and a part of a row of B. With AVX2 four at once, without it two: the same sums.
#ifdef __x86_64__
[[gnu::target_clones("avx2", "default")]]
#endif
void add_products(double left, const double* right, size_t cols, double* sum, double* magnitude) {
  for (size_t j = 0; j < cols; ++j) {
    sum[j] += left * right[j];
    magnitude[j] += std::fabs(left * right[j]);
  }
}

/// The same of four neighbours in a row of A and four rows of B, one after another: sums are loaded and stored once for all.
#ifdef __x86_64__
[[gnu::target_clones("avx2", "default")]]
#endif
void add_four_products(const double* left, const double* right, size_t pitch, size_t cols, double* __restrict__ sum,
                       double* __restrict__ magnitude) {
  const double left0 = left[0], left1 = left[1], left2 = left[2], left3 = left[3];
  const double *const right1 = right + pitch, *const right2 = right1 + pitch, *const right3 = right2 + pitch;
  for (size_t j = 0; j < cols; ++j) {
    const double p0 = left0 * right[j], p1 = left1 * right1[j], p2 = left2 * right2[j], p3 = left3 * right3[j];
    sum[j] = sum[j] + p0 + p1 + p2 + p3;
    magnitude[j] = magnitude[j] + std::fabs(p0) + std::fabs(p1) + std::fabs(p2) + std::fabs(p3);
  }
}

/// Of a problem without groups, or of a group of one with `all_rows`.
HostProduct one_product(const Problem& p, int all_rows) {
  const size_t m = p.m, n = p.n, k = p.k;
  Matrices matrices = fetch(p);
  scale(p, all_rows, matrices);
  const auto& [a, b, c] = matrices;
  const double alpha = p.alpha, beta = p.beta;
  HostProduct product{std::vector<float>(m * n), std::vector<float>(m * n)};

  const auto compute = [&](size_t row, size_t col) {
    const size_t rows = std::min(block_rows, m - row), cols = std::min(block_cols, n - col);
    Block block;
    size_t l = 0;
    for (; l + 4 <= k; l += 4)
      for (size_t i = 0; i < rows; ++i)
        add_four_products(&a[(row + i) * k + l], &b[l * n + col], n, cols, block.sum[i], block.magnitude[i]);
    for (; l < k; ++l)
      for (size_t i = 0; i < rows; ++i)
        add_products(a[(row + i) * k + l], &b[l * n + col], cols, block.sum[i], block.magnitude[i]);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < cols; ++j) {
        const size_t at = (row + i) * n + col + j;
        product.value[at] = static_cast<float>(alpha * block.sum[i][j] + beta * c[at]);
        product.scale[at] = static_cast<float>(std::fabs(alpha) * block.magnitude[i][j] + std::fabs(beta * c[at]));
      }
  };

  std::atomic<size_t> next_row = 0;
  const auto work = [&] {
    for (size_t row; (row = next_row.fetch_add(block_rows)) < m;)
      for (size_t col = 0; col < n; col += block_cols) compute(row, col);
  };
  std::vector<std::jthread> threads(std::max(1U, std::thread::hardware_concurrency()) - 1);
  for (std::jthread& thread : threads) thread = std::jthread(work);
  work();
  threads.clear();  // joins
  return product;
}

}  // namespace

HostProduct host_product(const Problem& p) {
  HostProduct all;  // groups have neighbouring rows
  for (const Problem& of_group : products(p)) {
    const HostProduct product = one_product(of_group, p.m);
    all.value.insert(all.value.end(), product.value.begin(), product.value.end());
    all.scale.insert(all.scale.end(), product.scale.begin(), product.scale.end());
  }
  return all;
}

}  // namespace ladder
