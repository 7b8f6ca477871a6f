// Every rung of the ladder on the simulator: odd shapes, paddings and factors against an FP64 product on the CPU.
// NaN lies in the padding of A and B, a mark in that of C and around it, which must stay.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "common/harness/bound.h"
#include "common/rung.h"

namespace ladder {
namespace {

struct Shape {
  int m, n, k;
};

/// From tests/shapes/odd.txt, what the CPU multiplies within a second.
constexpr Shape shapes[] = {
    {1, 1, 1},     {1, 1, 2},     {2, 3, 5},     {1, 7, 1},     {7, 1, 1},       {1, 1, 4097},   {3, 4, 4096},
    {5, 4, 4},     {8, 8, 8},     {15, 17, 19},  {31, 33, 7},   {33, 31, 9},     {32, 32, 32},   {63, 65, 8},
    {65, 63, 7},   {64, 64, 64},  {127, 129, 8}, {129, 127, 9}, {128, 255, 16},  {129, 257, 17}, {256, 512, 1},
    {100, 100, 5}, {128, 128, 3}, {128, 128, 4}, {128, 128, 9}, {211, 223, 227}, {513, 1, 33},   {1, 513, 33},
};

struct Factors {
  float alpha, beta;
  int ld_pad;  ///< elements behind each row, before rounding up to the rung's alignment
};
constexpr Factors factors[] = {{1, 0, 0}, {-1.5F, 0.75F, 3}, {0, -1.5F, 0}};

constexpr float mark = 12345.0F;
constexpr size_t guard = 64;  // elements before and behind C

/// A matrix of whole rows on the host and on the device.
class Matrix {
 public:
  Matrix(int rows, int columns, int ld, float padding, size_t guard = 0)
      : host(guard + static_cast<size_t>(rows) * ld + guard, padding),
        rows_(rows),
        columns_(columns),
        ld_(ld),
        guard_(guard) {
    cuda_check(cudaMalloc(&device_, host.size() * sizeof(float)));
  }
  ~Matrix() { cudaFree(device_); }
  Matrix(const Matrix&) = delete;

  float& at(int row, int column) { return host[guard_ + static_cast<size_t>(row) * ld_ + column]; }
  float* device() const { return device_ + guard_; }
  int ld() const { return ld_; }
  void fill(std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (int i = 0; i < rows_; ++i)
      for (int j = 0; j < columns_; ++j) at(i, j) = normal(random);
  }
  void upload() { cuda_check(cudaMemcpy(device_, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice)); }
  void download() { cuda_check(cudaMemcpy(host.data(), device_, host.size() * sizeof(float), cudaMemcpyDeviceToHost)); }
  /// Elements outside the rows that are not the mark.
  int disturbed() const {
    int count = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      const bool inside = i >= guard_ && i < host.size() - guard_ && (i - guard_) % ld_ < static_cast<size_t>(columns_);
      count += !inside && host[i] != mark;
    }
    return count;
  }

  std::vector<float> host;

 private:
  int rows_, columns_, ld_;
  size_t guard_;
  float* device_ = nullptr;
};

class EveryRung : public testing::TestWithParam<size_t> {};

void check(const Rung& rung, const Shape& shape, const Factors& f, std::mt19937& random) {
  const auto [m, n, k] = shape;
  SCOPED_TRACE(fmt::format("{} x {} x {}, alpha {}, beta {}, padding {}", m, n, k, f.alpha, f.beta, f.ld_pad));
  const int unit = std::max<int>(1, rung.row_align_bytes / static_cast<int>(sizeof(float)));
  const auto ld = [&](int columns) { return (columns + f.ld_pad + unit - 1) / unit * unit; };
  const bool row_major = rung.layout_b == LayoutB::row_major;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Matrix a(m, k, ld(k), nan), b(row_major ? k : n, row_major ? n : k, ld(row_major ? n : k), nan);
  Matrix c(m, n, ld(n), mark, guard);
  a.fill(random);
  b.fill(random);
  c.fill(random);
  std::vector<float> before = c.host;
  if (f.beta == 0)  // then C is not read
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) c.at(i, j) = nan;
  for (Matrix* matrix : {&a, &b, &c}) matrix->upload();

  Problem problem{.m = m, .n = n, .k = k, .type = Type::f32, .layout_b = rung.layout_b};
  problem.alpha = f.alpha;
  problem.beta = f.beta;
  problem.a = a.device(), problem.lda = a.ld();
  problem.b = b.device(), problem.ldb = b.ld();
  problem.c = c.device(), problem.ldc = c.ld();
  rung.launch(problem);
  cuda_check(cudaDeviceSynchronize());
  c.download();

  EXPECT_EQ(c.disturbed(), 0) << "elements beside C were written";
  const Bound bound = error_bound(Type::f32, Out::f32, k);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int l = 0; l < k; ++l) {
        const double product = static_cast<double>(a.at(i, l)) * (row_major ? b.at(l, j) : b.at(j, l));
        sum += product;
        size += std::fabs(product);
      }
      const double old = before[guard + static_cast<size_t>(i) * c.ld() + j];
      const double expected = f.alpha * sum + f.beta * old;
      const double allowed = bound.gamma * (std::fabs(f.alpha) * size + std::fabs(f.beta * old)) + bound.tiny;
      ASSERT_LE(std::fabs(c.at(i, j) - expected), allowed)
          << fmt::format("C[{}][{}] is {}, expected {}", i, j, c.at(i, j), expected);
    }
}

TEST_P(EveryRung, IsRightOverOddShapes) {
  const Rung& rung = rungs()[GetParam()];
  std::mt19937 random(1);
  for (const Shape& shape : shapes)
    for (const Factors& f : factors) {
      check(rung, shape, f, random);
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Simulator, EveryRung, testing::Range<size_t>(0, rungs().size()),
                         [](const auto& rung) { return rungs()[rung.param].stem(); });

}  // namespace
}  // namespace ladder
