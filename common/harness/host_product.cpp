#include "common/harness/host_product.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>

#include "common/rung.h"

namespace ladder {
namespace {

enum class Format { fp32, bf16, fp16 };

Format operand_format(Type type) {
  return type == Type::bf16 ? Format::bf16 : type == Type::f16 ? Format::fp16 : Format::fp32;
}

double to_double(const std::byte* element, Format format) {
  uint32_t bits = 0;
  std::memcpy(&bits, element, format == Format::fp32 ? 4 : 2);
  if (format == Format::fp16) return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  return std::bit_cast<float>(format == Format::bf16 ? bits << 16 : bits);
}

/// A row-major matrix of the device, without its padding; its transpose where `transposed`.
std::vector<double> fetch(const void* data, size_t rows, size_t cols, size_t ld, Format format, bool transposed) {
  const size_t bytes = format == Format::fp32 ? 4 : 2;
  std::vector<std::byte> raw(rows * ld * bytes);
  cuda_check(cudaMemcpy(raw.data(), data, raw.size(), cudaMemcpyDeviceToHost));
  std::vector<double> matrix(rows * cols);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j)
      matrix[transposed ? j * rows + i : i * cols + j] = to_double(&raw[(i * ld + j) * bytes], format);
  return matrix;
}

// A block of D whose sums stay in the L1 cache while k runs; each element of B serves all its rows.
constexpr size_t block_rows = 4, block_cols = 256;

struct Block {
  double sum[block_rows][block_cols] = {}, magnitude[block_rows][block_cols] = {};
};

}  // namespace

HostProduct host_product(const Problem& p) {
  const size_t m = p.m, n = p.n, k = p.k;
  const Format format = operand_format(p.type);
  const std::vector<double> a = fetch(p.a, m, k, p.lda, format, false);
  const std::vector<double> b =
      p.layout_b == LayoutB::row_major ? fetch(p.b, k, n, p.ldb, format, false) : fetch(p.b, n, k, p.ldb, format, true);
  const std::vector<double> c = p.beta == 0.0F
                                    ? std::vector<double>(m * n)
                                    : fetch(p.c, m, n, p.ldc, p.out == Out::f32 ? Format::fp32 : format, false);
  const double alpha = p.alpha, beta = p.beta;
  HostProduct product{std::vector<float>(m * n), std::vector<float>(m * n)};

  const auto compute = [&](size_t row, size_t col) {
    const size_t rows = std::min(block_rows, m - row), cols = std::min(block_cols, n - col);
    Block block;
    for (size_t l = 0; l < k; ++l)
      for (size_t i = 0; i < rows; ++i) {
        const double left = a[(row + i) * k + l];
        const double* const right = &b[l * n + col];
        for (size_t j = 0; j < cols; ++j) {
          block.sum[i][j] += left * right[j];
          block.magnitude[i][j] += std::fabs(left * right[j]);
        }
      }
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

}  // namespace ladder
