// libgemm_ladder.so through its C header: right as BLAS defines it, whichever kernel a call takes. GEMM_LADDER_RANDOM=N: so many random
// problems (1,000 without, 60 on the simulator).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "include/gemm_ladder.h"

namespace {

using testing::HasSubstr;

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

bool simulated() {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, 0) == cudaSuccess && std::strstr(properties.name, "Simulated");
}

int bytes_of(gemm_ladder_type_t type) {
  return type == GEMM_LADDER_E4M3 ? 1 : type == GEMM_LADDER_BF16 || type == GEMM_LADDER_F16 ? 2 : 4;
}
int result_bytes(const gemm_ladder_problem_t& p) {
  return p.result == GEMM_LADDER_RESULT_F32 ? 4 : std::max(2, bytes_of(p.type));
}

double decoded(const char* at, gemm_ladder_type_t type, int bytes) {
  if (bytes == 4) {
    float x;
    std::memcpy(&x, at, 4);
    return x;
  }
  if (bytes == 1) {
    __nv_fp8_e4m3 x;
    std::memcpy(&x.__x, at, 1);
    return static_cast<float>(x);
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  if (type == GEMM_LADDER_F16) return __half2float(__half(__half_raw{bits}));
  return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{bits}));
}
void encode(double x, char* at, gemm_ladder_type_t type, int bytes) {
  const float single = static_cast<float>(x);
  if (bytes == 4) {
    std::memcpy(at, &single, 4);
  } else if (bytes == 1) {
    const __nv_fp8_e4m3 x(single);
    std::memcpy(at, &x.__x, 1);
  } else if (type == GEMM_LADDER_F16) {
    const __half_raw raw = __half(single);
    std::memcpy(at, &raw.x, 2);
  } else {
    const __nv_bfloat16_raw raw = __nv_bfloat16(single);
    std::memcpy(at, &raw.x, 2);
  }
}

/// Many normally distributed numbers, which are drawn once: their number is a prime, so rows do not repeat.
const std::vector<double>& normal() {
  static const std::vector<double> numbers = [] {
    std::mt19937 random(11);
    std::normal_distribution<double> distribution;
    std::vector<double> drawn(65537);
    for (double& x : drawn) x = distribution(random);
    return drawn;
  }();
  return numbers;
}

/// A batch of matrices in device memory, some elements after its start; between rows and after them NaN.
class Matrices {
 public:
  /// `rows` stored rows of `columns`. `exact`: the memory ends with the last of them.
  Matrices(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch, int offset,
           gemm_ladder_type_t type, int bytes, bool poisoned, std::mt19937& random, bool exact = false)
      : rows_(rows), columns_(columns), ld_(ld), stride_(stride), type_(type), bytes_(bytes), offset_(offset) {
    elements_ = offset + std::max<int64_t>(0, batch - 1) * stride + (exact ? (rows - 1) * ld + columns : rows * ld + 8);
    host_.resize(elements_ * bytes);
    for (int64_t i = 0; i < elements_; ++i) encode(NOT_A_NUMBER, &host_[i * bytes], type, bytes);
    size_t next = random();  // of `normal`
    if (!poisoned)
      for (int64_t set = 0; set < batch; ++set)
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            encode(normal()[next++ % normal().size()], at(set, row, column), type, bytes);
    EXPECT_EQ(cudaMalloc(&device_, host_.size()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device_, host_.data(), host_.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Matrices() { cudaFree(device_); }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  void* data() const { return static_cast<char*>(device_) + offset_ * bytes_; }
  double value(int64_t set, int64_t row, int64_t column) { return decoded(at(set, row, column), type_, bytes_); }

  /// What the device holds now.
  std::vector<char> fetched() const {
    std::vector<char> now(host_.size());
    EXPECT_EQ(cudaMemcpy(now.data(), device_, now.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    return now;
  }
  double value(const std::vector<char>& now, int64_t set, int64_t row, int64_t column) {
    return decoded(now.data() + (at(set, row, column) - host_.data()), type_, bytes_);
  }
  /// Whether anything but the elements of the matrices differs from what was put there.
  bool padding_changed(const std::vector<char>& now, int64_t batch) {
    std::vector<char> mine = host_;
    for (int64_t set = 0; set < batch; ++set)
      for (int64_t row = 0; row < rows_; ++row)
        std::memcpy(mine.data() + (at(set, row, 0) - host_.data()), now.data() + (at(set, row, 0) - host_.data()),
                    columns_ * bytes_);
    return mine != now;
  }

 private:
  char* at(int64_t set, int64_t row, int64_t column) {
    return &host_[(offset_ + set * stride_ + row * ld_ + column) * bytes_];
  }
  int64_t rows_, columns_, ld_, stride_, elements_;
  gemm_ladder_type_t type_;
  int bytes_, offset_;
  std::vector<char> host_;
  void* device_ = nullptr;
};

/// Numbers on the host, and a copy on the device.
template <class T>
struct Copied {
  std::vector<T> host;
  T* device = nullptr;

  explicit Copied(std::vector<T> numbers) : host(std::move(numbers)) {
    if (host.empty()) return;
    EXPECT_EQ(cudaMalloc(&device, host.size() * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~Copied() { cudaFree(device); }
  Copied(const Copied&) = delete;
  Copied& operator=(const Copied&) = delete;
};

struct Options {
  float alpha = 1.0F, beta = 0.0F;
  int offset_a = 0, offset_b = 0, offset_c = 0;  // elements from an address that is aligned to 256 bytes
  int64_t pad = 0;                               // elements added to each leading dimension
  bool exact = false;                            // nothing follows the last element of A, nor that of B and of C
};

/// m, n, k and what else is asked; leading dimensions and strides as small as they can be, but for `pad`.
gemm_ladder_problem_t problem(int64_t m, int64_t n, int64_t k, gemm_ladder_type_t type = GEMM_LADDER_F32,
                              gemm_ladder_operation_t op_a = GEMM_LADDER_N,
                              gemm_ladder_operation_t op_b = GEMM_LADDER_N,
                              gemm_ladder_order_t order = GEMM_LADDER_ROW_MAJOR,
                              gemm_ladder_result_t result = GEMM_LADDER_RESULT_F32, int64_t batch = 1,
                              int64_t pad = 0) {
  gemm_ladder_problem_t p{order, type, result, op_a, op_b, m, n, k, 0, 0, 0, batch, 0, 0, 0, GEMM_LADDER_SCALES_NONE,
                          0};
  const bool rows = order == GEMM_LADDER_ROW_MAJOR;
  const auto ld = [&](gemm_ladder_operation_t op, int64_t height, int64_t width) {
    return std::max<int64_t>(1, (op == GEMM_LADDER_N) == rows ? width : height) + pad;
  };
  p.lda = ld(op_a, m, k), p.ldb = ld(op_b, k, n), p.ldc = ld(GEMM_LADDER_N, m, n);
  const auto stored = [&](gemm_ladder_operation_t op, int64_t height, int64_t width) {
    return (op == GEMM_LADDER_N) == rows ? height : width;
  };
  p.stride_a = stored(op_a, m, k) * p.lda, p.stride_b = stored(op_b, k, n) * p.ldb,
  p.stride_c = stored(GEMM_LADDER_N, m, n) * p.ldc;
  return p;
}

/// C = A B of E4M3 with scales, or in groups. Leading dimensions are multiples of `step` elements.
gemm_ladder_problem_t scaled(int64_t m, int64_t n, int64_t k, gemm_ladder_scales_t scales, int64_t groups = 0,
                             gemm_ladder_type_t type = GEMM_LADDER_E4M3,
                             gemm_ladder_result_t result = GEMM_LADDER_RESULT_SAME, int64_t step = 16) {
  gemm_ladder_problem_t p = problem(m, n, k, type, GEMM_LADDER_N, GEMM_LADDER_T, GEMM_LADDER_ROW_MAJOR, result);
  p.scales = scales, p.groups = groups;
  for (int64_t* const ld : {&p.lda, &p.ldb, &p.ldc}) *ld = (*ld + step - 1) / step * step;
  return p;
}

/// Where the header says that the scale of an element of A lies, and of B in column `column` of a group.
int64_t scale_at_a(const gemm_ladder_problem_t& p, int64_t row, int64_t k) {
  if (p.scales == GEMM_LADDER_SCALES_TENSOR) return 0;
  return p.scales == GEMM_LADDER_SCALES_ROWS ? row : k / 128 * ((p.m + 3) / 4 * 4) + row;
}
int64_t scale_at_b(const gemm_ladder_problem_t& p, int64_t group, int64_t column, int64_t k) {
  if (p.scales == GEMM_LADDER_SCALES_TENSOR) return 0;
  if (p.scales == GEMM_LADDER_SCALES_ROWS) return group * p.n + column;
  const int64_t ld = (p.k + 511) / 512 * 4;
  return (group * ((p.n + 127) / 128) + column / 128) * ld + k / 128;
}

std::string described(const gemm_ladder_problem_t& p, const Options& o) {
  return std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + " type " +
         std::to_string(p.type) + " result " + std::to_string(p.result) + " order " + std::to_string(p.order) +
         " ops " + std::to_string(p.op_a) + std::to_string(p.op_b) + " ld " + std::to_string(p.lda) + " " +
         std::to_string(p.ldb) + " " + std::to_string(p.ldc) + " batch " + std::to_string(p.batch) + " alpha " +
         std::to_string(o.alpha) + " beta " + std::to_string(o.beta) + " offsets " + std::to_string(o.offset_a) + " " +
         std::to_string(o.offset_b) + " " + std::to_string(o.offset_c) + " scales " + std::to_string(p.scales) +
         " groups " + std::to_string(p.groups);
}

/// The three operands of a problem, their scales, and its groups.
struct Operands {
  Matrices a, b, c;
  Copied<float> scale_a, scale_b;
  Copied<int32_t> first_row;
  Operands(const gemm_ladder_problem_t& p, const Options& o, std::mt19937& random)
      : a(stored(p.order, p.op_a, p.m, p.k), stored(p.order, p.op_a, p.k, p.m), p.lda, p.stride_a, p.batch, o.offset_a,
          p.type, bytes_of(p.type), o.alpha == 0.0F, random, o.exact),
        b(stored(p.order, p.op_b, p.k, p.n) * std::max<int64_t>(1, p.groups), stored(p.order, p.op_b, p.n, p.k), p.ldb,
          p.stride_b, p.batch, o.offset_b, p.type, bytes_of(p.type), o.alpha == 0.0F, random, o.exact),
        c(stored(p.order, GEMM_LADDER_N, p.m, p.n), stored(p.order, GEMM_LADDER_N, p.n, p.m), p.ldc, p.stride_c,
          p.batch, o.offset_c, c_type(p), result_bytes(p), o.beta == 0.0F, random, o.exact),
        scale_a(scales(p, scale_at_a(p, p.m - 1, p.k - 1) + 1, random)),
        scale_b(scales(p, scale_at_b(p, std::max<int64_t>(1, p.groups) - 1, p.n - 1, p.k - 1) + 1, random)),
        first_row(first_rows(p, random)) {}

  gemm_ladder_operands_t of(const Options& o) const {
    return {o.alpha, a.data(), b.data(), o.beta, c.data(), scale_a.device, scale_b.device, first_row.device};
  }
  /// Of a row of C; 0 where there are none.
  int64_t group(int64_t row) const {
    const auto after = std::upper_bound(first_row.host.begin(), first_row.host.end(), row);
    return std::max<int64_t>(0, after - first_row.host.begin() - 1);
  }

  static gemm_ladder_type_t c_type(const gemm_ladder_problem_t& p) {
    return p.type == GEMM_LADDER_E4M3 ? GEMM_LADDER_BF16 : p.type;
  }
  static std::vector<float> scales(const gemm_ladder_problem_t& p, int64_t count, std::mt19937& random) {
    std::vector<float> drawn(p.scales == GEMM_LADDER_SCALES_NONE ? 0 : count);
    for (float& scale : drawn) scale = std::ldexp(1 + static_cast<float>(random() % 1000) / 1000, random() % 5 - 2);
    return drawn;
  }
  /// Every third group has no rows, on average.
  static std::vector<int32_t> first_rows(const gemm_ladder_problem_t& p, std::mt19937& random) {
    std::vector<int32_t> first(p.groups == 0 ? 0 : p.groups + 1);
    for (int64_t group = 1; group < p.groups; ++group)
      first[group] = random() % 3 == 0 ? first[group - 1] : static_cast<int32_t>(random() % (p.m + 1));
    if (p.groups > 0) first.back() = static_cast<int32_t>(p.m);
    std::sort(first.begin(), first.end());
    return first;
  }
  /// Of height and width, the one that is the number of stored rows.
  static int64_t stored(gemm_ladder_order_t order, gemm_ladder_operation_t op, int64_t height, int64_t width) {
    return (order == GEMM_LADDER_ROW_MAJOR) == (op == GEMM_LADDER_N) ? height : width;
  }
};

/// The largest error of a result of `now` over what rounding allows, of all elements or of 400.
double worst(const gemm_ladder_problem_t& p, const Options& o, Operands& x, const std::vector<char>& now,
             std::mt19937& random) {
  const bool rows = p.order == GEMM_LADDER_ROW_MAJOR;
  const auto element = [&](Matrices& matrix, gemm_ladder_operation_t op, int64_t set, int64_t row, int64_t column) {
    return rows == (op == GEMM_LADDER_N) ? matrix.value(set, row, column) : matrix.value(set, column, row);
  };
  const int64_t all = p.batch * p.m * p.n;
  double most = 0;
  for (int64_t i = 0; i < std::min<int64_t>(all, 400); ++i) {
    const int64_t at = all <= 400 ? i : static_cast<int64_t>(random() % all), set = at / (p.m * p.n),
                  row = at / p.n % p.m, column = at % p.n;
    double sum = 0, scale = 0;
    const int64_t group = x.group(row);
    if (o.alpha != 0.0F)
      for (int64_t k = 0; k < p.k; ++k) {
        double product = element(x.a, p.op_a, set, row, k) * element(x.b, p.op_b, set, k, group * p.n + column);
        if (p.scales != GEMM_LADDER_SCALES_NONE)
          product *= static_cast<double>(x.scale_a.host[scale_at_a(p, row, k)]) *
                     x.scale_b.host[scale_at_b(p, group, column, k)];
        sum += product, scale += std::fabs(product);
      }
    const double c = o.beta == 0.0F ? 0 : element(x.c, GEMM_LADDER_N, set, row, column);
    const double want = o.alpha * sum + o.beta * c;
    const double operands = p.type == GEMM_LADDER_TF32   ? 0x1p-9
                            : p.type == GEMM_LADDER_E4M3 ? 0x1p-10  // sums of 13 bits
                            : p.type == GEMM_LADDER_F32  ? 0
                                                         : 0x1p-20;
    const double rounded = result_bytes(p) == 4 ? 0x1p-22 : p.type == GEMM_LADDER_F16 ? 0x1p-11 : 0x1p-8;
    // To 16 bits cuBLAS may round partial sums, too.
    const double partial = result_bytes(p) == 4 ? 0 : rounded;
    const double allowed = std::fabs(o.alpha) * scale * (operands + partial + (p.k + 8) * 0x1p-23) +
                           (std::fabs(want) + std::fabs(o.beta * c)) * rounded + 1e-6;
    const double got = rows ? x.c.value(now, set, row, column) : x.c.value(now, set, column, row);
    const double error = std::fabs(got - want) / allowed;
    most = std::max(most, std::isnan(error) ? 1e30 : error);
  }
  return most;
}

class Library : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU here";
    ASSERT_EQ(gemm_ladder_create(&handle_), GEMM_LADDER_OK);
  }
  void TearDown() override {
    if (handle_) {
      EXPECT_EQ(gemm_ladder_destroy(handle_), GEMM_LADDER_OK);
    }
  }

  void expect_right(const gemm_ladder_problem_t& p, const Options& o = {}) {
    Operands x(p, o, random_);
    const gemm_ladder_operands_t of = x.of(o);
    const bool plain = p.scales == GEMM_LADDER_SCALES_NONE && p.groups == 0;
    ASSERT_EQ(plain ? gemm_ladder_run(handle_, &p, o.alpha, of.a, of.b, o.beta, of.c)
                    : gemm_ladder_run_operands(handle_, &p, &of),
              GEMM_LADDER_OK)
        << gemm_ladder_last_error(handle_) << ": " << described(p, o);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << described(p, o);
    const std::vector<char> now = x.c.fetched();
    EXPECT_LE(worst(p, o, x, now, random_), 1) << described(p, o);
    EXPECT_FALSE(x.c.padding_changed(now, p.batch)) << described(p, o);
  }

  /// A matrix of value(row, column), its rows `pad` elements apart.
  template <class F>
  void expect_quantised(gemm_ladder_type_t type, gemm_ladder_scale_t mode, int64_t rows, int64_t columns, int64_t pad,
                        F&& value) {
    const std::string what = std::to_string(rows) + "x" + std::to_string(columns) + " pad " + std::to_string(pad) +
                             " type " + std::to_string(type) + " scales " + std::to_string(mode);
    const int64_t ld = columns + pad, bytes = bytes_of(type), high = (rows + 127) / 128, wide = (columns + 127) / 128;
    const int64_t ld_scale = mode == GEMM_LADDER_SCALE_1X128     ? (rows + 3) / 4 * 4
                             : mode == GEMM_LADDER_SCALE_128X128 ? (wide + 3) / 4 * 4
                                                                 : 1;
    const int64_t scales = mode == GEMM_LADDER_SCALE_ALL ? 1
                           : mode == GEMM_LADDER_SCALE_ROWS
                               ? rows
                               : ld_scale * (mode == GEMM_LADDER_SCALE_1X128 ? wide : high);
    std::vector<char> x(rows * ld * bytes);
    for (int64_t i = 0; i < rows * ld; ++i)
      encode(i % ld < columns ? value(i / ld, i % ld) : NOT_A_NUMBER, &x[i * bytes], type, static_cast<int>(bytes));
    char *device_x, *device_to;
    float* device_scale;
    ASSERT_EQ(cudaMalloc(&device_x, x.size()), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&device_to, rows * ld + 16), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&device_scale, scales * sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(device_x, x.data(), x.size(), cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemset(device_to, 0x55, rows * ld + 16), cudaSuccess);
    ASSERT_EQ(gemm_ladder_quantise(handle_, type, mode, rows, columns, device_x, ld, device_to, ld, device_scale),
              GEMM_LADDER_OK)
        << gemm_ladder_last_error(handle_) << ": " << what;
    std::vector<uint8_t> got(rows * ld + 16);
    std::vector<float> scale(scales);
    ASSERT_EQ(cudaMemcpy(got.data(), device_to, got.size(), cudaMemcpyDeviceToHost), cudaSuccess) << what;
    ASSERT_EQ(cudaMemcpy(scale.data(), device_scale, scales * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    for (void* const memory :
         {static_cast<void*>(device_x), static_cast<void*>(device_to), static_cast<void*>(device_scale)})
      ASSERT_EQ(cudaFree(memory), cudaSuccess);

    const auto element = [&](int64_t row, int64_t column) {
      return static_cast<float>(decoded(&x[(row * ld + column) * bytes], type, static_cast<int>(bytes)));
    };
    const auto block = [&](int64_t row, int64_t column) {
      return mode == GEMM_LADDER_SCALE_ALL     ? 0
             : mode == GEMM_LADDER_SCALE_ROWS  ? row
             : mode == GEMM_LADDER_SCALE_1X128 ? column / 128 * ld_scale + row
                                               : row / 128 * ld_scale + column / 128;
    };
    std::vector<float> largest(scales, -1.0F);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        largest[block(row, column)] = std::fmax(largest[block(row, column)], std::fabs(element(row, column)));
    int64_t wrong = 0;
    for (int64_t i = 0; i < scales; ++i)
      if (largest[i] >= 0) wrong += scale[i] != std::fmax(largest[i] / 448, 0x1p-126F);
    EXPECT_EQ(wrong, 0) << "scales of " << what;
    wrong = 0;
    for (int64_t i = 0; i < rows * ld + 16; ++i) {
      const bool of_matrix = i < rows * ld && i % ld < columns;
      const uint8_t want = !of_matrix
                               ? 0x55
                               : __nv_cvt_float_to_fp8(element(i / ld, i % ld) * (1 / scale[block(i / ld, i % ld)]),
                                                       __NV_SATFINITE, __NV_E4M3);
      wrong += got[i] != want;
    }
    EXPECT_EQ(wrong, 0) << what;
  }

  std::string explained(const gemm_ladder_problem_t& p) {
    char text[4096];
    EXPECT_EQ(gemm_ladder_explain(handle_, &p, text, sizeof text), GEMM_LADDER_OK);
    return text;
  }

  gemm_ladder_handle_t handle_ = nullptr;
  std::mt19937 random_{7};
};

TEST_F(Library, EveryLayoutOfEveryTypeIsRight) {
  for (const auto type : {GEMM_LADDER_F32, GEMM_LADDER_TF32, GEMM_LADDER_BF16, GEMM_LADDER_F16})
    for (const auto result : {GEMM_LADDER_RESULT_F32, GEMM_LADDER_RESULT_SAME})
      for (const auto order : {GEMM_LADDER_ROW_MAJOR, GEMM_LADDER_COL_MAJOR})
        for (const auto op_a : {GEMM_LADDER_N, GEMM_LADDER_T})
          for (const auto op_b : {GEMM_LADDER_N, GEMM_LADDER_T})
            expect_right(problem(72, 136, 40, type, op_a, op_b, order, result), {.alpha = -1.5F, .beta = 0.5F});
}

// The kernels for few rows: every M, K a multiple of 4 or not. B stored by columns has its last row end with its memory.
TEST_F(Library, FewRowsAreRightInEveryLayout) {
  for (int64_t m = 1; m <= 8; ++m)
    for (const auto op_a : {GEMM_LADDER_N, GEMM_LADDER_T})
      for (const auto op_b : {GEMM_LADDER_N, GEMM_LADDER_T})
        for (const int64_t k : {1, 131, 514, 1160}) {
          auto p = problem(m, 67, k, GEMM_LADDER_F32, op_a, op_b);
          for (int64_t* const ld : {&p.lda, &p.ldb, &p.ldc}) *ld = (*ld + 3) / 4 * 4;
          expect_right(p, {.alpha = -1.5F, .beta = m % 2 ? 0.0F : 0.5F, .exact = op_b == GEMM_LADDER_T});
        }
}

TEST_F(Library, RandomProblemsAreRight) {
  const char* const asked = std::getenv("GEMM_LADDER_RANDOM");
  const int count = asked ? std::atoi(asked) : simulated() ? 60 : 1000;
  const auto one_of = [&](std::initializer_list<int> values) { return values.begin()[random_() % values.size()]; };
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const auto size = [&] {
      return static_cast<int64_t>(one_of({1, 4, 16, 64, 100, simulated() ? 100 : 700}) + random_() % 9);
    };
    const auto op = [&] { return static_cast<gemm_ladder_operation_t>(random_() % 2); };
    const bool odd = random_() % 3 == 0;
    const int64_t step = odd ? 1 : 8;
    const auto rounded = [&](int64_t x) { return (x + step - 1) / step * step; };
    const auto p =
        problem(rounded(size()), rounded(size()), rounded(size()), static_cast<gemm_ladder_type_t>(random_() % 4), op(),
                op(), static_cast<gemm_ladder_order_t>(random_() % 2), static_cast<gemm_ladder_result_t>(random_() % 2),
                one_of({1, 1, 1, 1, 3}), step * one_of({0, 0, 1, 3}));
    const auto offset = [&] { return odd ? one_of({0, 0, 1, 2, 3}) : one_of({0, 8}); };
    const float factors[] = {1.0F, 0.0F, -1.5F, 0.5F};
    expect_right(p, {.alpha = factors[random_() % 4],
                     .beta = factors[random_() % 4],
                     .offset_a = offset(),
                     .offset_b = offset(),
                     .offset_c = offset()});
  }
}

TEST_F(Library, OperandsTransposedFirstAreRight) {
  for (const auto& p : {problem(1028, 1100, 72, GEMM_LADDER_TF32, GEMM_LADDER_T, GEMM_LADDER_N),
                        problem(3004, 68, 36, GEMM_LADDER_TF32, GEMM_LADDER_N, GEMM_LADDER_N),
                        problem(68, 3004, 36, GEMM_LADDER_TF32, GEMM_LADDER_T, GEMM_LADDER_T)}) {
    expect_right(p, {.alpha = -1.5F, .beta = 0.5F});
    if (!explained(p).starts_with("33")) continue;  // no Hopper
    EXPECT_THAT(explained(p), HasSubstr(" transposed first\n"));
  }
}

constexpr gemm_ladder_scales_t ALL_SCALES[] = {GEMM_LADDER_SCALES_NONE, GEMM_LADDER_SCALES_TENSOR,
                                               GEMM_LADDER_SCALES_ROWS, GEMM_LADDER_SCALES_BLOCKS};
constexpr gemm_ladder_type_t ALL_TYPES[] = {GEMM_LADDER_F32, GEMM_LADDER_TF32, GEMM_LADDER_BF16, GEMM_LADDER_F16,
                                            GEMM_LADDER_E4M3};

TEST_F(Library, ScaledProductsAreRight) {
  for (const auto scales : ALL_SCALES)
    for (const auto result : {GEMM_LADDER_RESULT_F32, GEMM_LADDER_RESULT_SAME})
      for (const int64_t step : {16, 1})  // 1: rows of 300 numbers, for the plain kernel
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{70, 261, 300}, {1, 1, 1}, {3, 136, 700}})
          expect_right(scaled(m, n, k, scales, 0, GEMM_LADDER_E4M3, result, step),
                       {.alpha = -1.5F, .beta = m == 1 ? 0.0F : 0.5F});
}

// Of one group and of more than a warp looks at; some have no rows.
TEST_F(Library, GroupedProductsAreRight) {
  for (const int64_t groups : {1, 3, 37})
    for (const auto type : ALL_TYPES)
      for (const auto result : {GEMM_LADDER_RESULT_F32, GEMM_LADDER_RESULT_SAME})
        expect_right(scaled(groups == 3 ? 70 : 45, 72, 72, GEMM_LADDER_SCALES_NONE, groups, type, result),
                     {.alpha = -1.5F, .beta = groups == 1 ? 0.0F : 0.5F});
  for (const auto scales : ALL_SCALES) expect_right(scaled(70, 133, 300, scales, 5));
}

TEST_F(Library, RandomScaledAndGroupedProductsAreRight) {
  const char* const asked = std::getenv("GEMM_LADDER_RANDOM");
  const int count = asked ? std::atoi(asked) : simulated() ? 60 : 1000;
  const auto one_of = [&](std::initializer_list<int> values) { return values.begin()[random_() % values.size()]; };
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const auto size = [&] {
      return static_cast<int64_t>(one_of({1, 16, 100, 150, simulated() ? 100 : 1000}) + random_() % 9);
    };
    const auto type = random_() % 2 ? GEMM_LADDER_E4M3 : ALL_TYPES[random_() % 5];
    const auto scales = type == GEMM_LADDER_E4M3 ? ALL_SCALES[random_() % 4] : GEMM_LADDER_SCALES_NONE;
    const int64_t groups = type == GEMM_LADDER_E4M3 ? one_of({0, 0, 0, 1, 6}) : one_of({1, 2, 7, 40}),
                  step = one_of({16, 16, 16, 1});
    const auto p =
        scaled(size(), size(), size(), scales, groups, type, static_cast<gemm_ladder_result_t>(random_() % 2), step);
    const auto offset = [&] { return step == 1 ? one_of({0, 0, 1, 2, 3}) : one_of({0, 16}); };
    const float factors[] = {1.0F, 0.0F, -1.5F, 0.5F};
    expect_right(p, {.alpha = factors[random_() % 4],
                     .beta = factors[random_() % 4],
                     .offset_a = offset(),
                     .offset_b = offset(),
                     .offset_c = offset()});
  }
}

TEST_F(Library, ScalesElsewhereAndOfOtherValuesAreTaken) {
  for (const auto scales : {GEMM_LADDER_SCALES_TENSOR, GEMM_LADDER_SCALES_ROWS, GEMM_LADDER_SCALES_BLOCKS}) {
    const auto p = scaled(64, 128, 256, scales);
    Operands x(p, {}, random_);
    for (int i = 0; i < 3; ++i) {
      for (Copied<float>* const of : {&x.scale_a, &x.scale_b}) {
        for (float& scale : of->host) scale *= 1.25F;
        if (i == 2) {  // 4 bytes further on, where nobody may load 16 at a time
          ASSERT_EQ(cudaFree(of->device), cudaSuccess);
          ASSERT_EQ(cudaMalloc(&of->device, (of->host.size() + 1) * sizeof(float)), cudaSuccess);
        }
        ASSERT_EQ(
            cudaMemcpy(of->device + (i == 2), of->host.data(), of->host.size() * sizeof(float), cudaMemcpyHostToDevice),
            cudaSuccess);
      }
      gemm_ladder_operands_t of = x.of({});
      of.scale_a += i == 2, of.scale_b += i == 2;
      ASSERT_EQ(gemm_ladder_run_operands(handle_, &p, &of), GEMM_LADDER_OK) << gemm_ladder_last_error(handle_);
      const std::vector<char> now = x.c.fetched();
      EXPECT_LE(worst(p, {}, x, now, random_), 1) << described(p, {}) << " call " << i;
    }
  }
}

TEST_F(Library, SizesOfNothing) {
  expect_right(problem(0, 5, 7));
  expect_right(problem(5, 0, 7));
  expect_right(problem(5, 7, 0));  // C becomes 0, though it held NaN
  expect_right(problem(5, 7, 0), {.beta = 0.5F});
  expect_right(
      problem(5, 7, 0, GEMM_LADDER_BF16, GEMM_LADDER_N, GEMM_LADDER_T, GEMM_LADDER_COL_MAJOR, GEMM_LADDER_RESULT_SAME),
      {.beta = 0.5F});
  expect_right(scaled(5, 7, 0, GEMM_LADDER_SCALES_NONE, 3, GEMM_LADDER_BF16), {.beta = 0.5F});
  expect_right(scaled(0, 7, 5, GEMM_LADDER_SCALES_NONE, 3, GEMM_LADDER_BF16));
  const auto p =
      problem(8, 8, 8, GEMM_LADDER_F32, GEMM_LADDER_N, GEMM_LADDER_N, GEMM_LADDER_ROW_MAJOR, GEMM_LADDER_RESULT_F32, 0);
  EXPECT_EQ(gemm_ladder_run(handle_, &p, 1, nullptr, nullptr, 0, nullptr), GEMM_LADDER_OK);
}

TEST_F(Library, FactorsOfZeroReadNothing) {  // what is not to be read holds NaN
  for (const auto type : {GEMM_LADDER_F32, GEMM_LADDER_BF16}) {
    expect_right(problem(40, 72, 24, type), {.alpha = 0.0F, .beta = 0.5F});
    expect_right(problem(40, 72, 24, type), {.alpha = 0.0F, .beta = 0.0F});
    expect_right(problem(40, 72, 24, type), {.alpha = 0.0F, .beta = 1.0F});
    expect_right(problem(40, 72, 24, type), {.alpha = 1.0F, .beta = 0.0F});
  }
}

TEST_F(Library, ACallThatWasSeenIsRightForOtherData) {
  const auto p = problem(136, 264, 72, GEMM_LADDER_F32, GEMM_LADDER_N, GEMM_LADDER_T);
  Operands first(p, {}, random_), second(p, {}, random_);
  for (int i = 0; i < 3; ++i)
    for (Operands* x : {&first, &second}) {
      const Options o{.alpha = 1.0F + static_cast<float>(i)};
      ASSERT_EQ(gemm_ladder_run(handle_, &p, o.alpha, x->a.data(), x->b.data(), o.beta, x->c.data()), GEMM_LADDER_OK);
      const std::vector<char> now = x->c.fetched();
      EXPECT_LE(worst(p, o, *x, now, random_), 1);
    }
}

/// C = A B by `count` launches of a graph that holds the call.
TEST_F(Library, CapturedIntoAGraph) {
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(gemm_ladder_set_stream(handle_, stream), GEMM_LADDER_OK);
  // The first call of its kind is in a capture; then one after a call outside it.
  for (const bool seen : {false, true})
    for (const auto& p :
         {problem(136, 264, 2056), problem(64, 64, 64),
          problem(136, 264, 72, GEMM_LADDER_F32, GEMM_LADDER_N, GEMM_LADDER_T), problem(3004, 68, 36, GEMM_LADDER_TF32),
          scaled(64, 128, 272, GEMM_LADDER_SCALES_ROWS), scaled(64, 128, 272, GEMM_LADDER_SCALES_BLOCKS),
          scaled(64, 128, 72, GEMM_LADDER_SCALES_NONE, 4, GEMM_LADDER_BF16)}) {
      const Options o{.beta = 1.0F};
      Operands x(p, o, random_);
      const auto call = [&] {
        const gemm_ladder_operands_t of = x.of({.beta = seen ? 0.0F : o.beta});
        return gemm_ladder_run_operands(handle_, &p, &of);
      };
      if (seen) {
        ASSERT_EQ(call(), GEMM_LADDER_OK);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      }
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      ASSERT_EQ(call(), GEMM_LADDER_OK) << gemm_ladder_last_error(handle_);
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
      const int count = seen ? 3 : 1;
      for (int i = 0; i < count; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      const std::vector<char> now = x.c.fetched();
      EXPECT_LE(worst(p, {.alpha = 1, .beta = seen ? 0.0F : 1.0F}, x, now, random_), 1)
          << described(p, o) << (seen ? " seen" : "");
      cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
    }
  ASSERT_EQ(gemm_ladder_set_stream(handle_, nullptr), GEMM_LADDER_OK);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Library, GraphsOfOneStreamDoNotShareAWorkspace) {
  std::vector<cudaStream_t> streams(3);  // of the captures, and of each launch
  for (cudaStream_t& stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(gemm_ladder_set_stream(handle_, streams[0]), GEMM_LADDER_OK);
  // K is divided among blocks; blocks draw more tiles than there are SMs.
  for (const auto& p :
       {problem(136, 264, 2056), scaled(600, 1288, 72, GEMM_LADDER_SCALES_NONE, 40, GEMM_LADDER_BF16)}) {
    std::vector<std::unique_ptr<Operands>> all;
    std::vector<cudaGraphExec_t> executables(2);
    for (cudaGraphExec_t& executable : executables) {
      all.push_back(std::make_unique<Operands>(p, Options{}, random_));
      const auto& x = all.back();
      const gemm_ladder_operands_t of = x->of({});
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      cudaGraph_t graph;
      ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
      ASSERT_EQ(gemm_ladder_run_operands(handle_, &p, &of), GEMM_LADDER_OK) << gemm_ladder_last_error(handle_);
      ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
      ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    for (int i = 0; i < (simulated() ? 1 : 50); ++i)
      for (size_t j = 0; j < executables.size(); ++j)
        ASSERT_EQ(cudaGraphLaunch(executables[j], streams[j + 1]), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const auto& x : all) {
      const std::vector<char> now = x->c.fetched();
      EXPECT_LE(worst(p, {}, *x, now, random_), 1);
    }
    for (const cudaGraphExec_t executable : executables) ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  }
  ASSERT_EQ(gemm_ladder_set_stream(handle_, nullptr), GEMM_LADDER_OK);
  for (const cudaStream_t stream : streams) ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Library, StreamsOfOneHandleDoNotShareAWorkspace) {
  const auto p = problem(136, 264, 2056);  // K is divided among blocks
  std::vector<cudaStream_t> streams(3);
  std::vector<std::unique_ptr<Operands>> all;
  for (cudaStream_t& stream : streams) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    all.push_back(std::make_unique<Operands>(p, Options{}, random_));
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (size_t i = 0; i < streams.size(); ++i) {
    ASSERT_EQ(gemm_ladder_set_stream(handle_, streams[i]), GEMM_LADDER_OK);
    ASSERT_EQ(gemm_ladder_run(handle_, &p, 1, all[i]->a.data(), all[i]->b.data(), 0, all[i]->c.data()), GEMM_LADDER_OK);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (const auto& x : all) {
    const std::vector<char> now = x->c.fetched();
    EXPECT_LE(worst(p, {}, *x, now, random_), 1);
  }
  ASSERT_EQ(gemm_ladder_set_stream(handle_, nullptr), GEMM_LADDER_OK);
  for (const cudaStream_t stream : streams) ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Library, ThreadsEachWithAHandle) {
  std::vector<std::thread> threads;
  std::vector<double> errors(4, 1e30);
  for (size_t i = 0; i < errors.size(); ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      gemm_ladder_handle_t mine;
      if (gemm_ladder_create(&mine) != GEMM_LADDER_OK) return;
      const auto p = problem(64 + 8 * static_cast<int64_t>(i), 136, simulated() ? 264 : 1032);
      double most = 0;
      for (int n = 0; n < (simulated() ? 1 : 20); ++n) {
        Operands x(p, {}, random);
        if (gemm_ladder_run(mine, &p, 1, x.a.data(), x.b.data(), 0, x.c.data()) != GEMM_LADDER_OK) return;
        const std::vector<char> now = x.c.fetched();
        most = std::max(most, worst(p, {}, x, now, random));
      }
      if (gemm_ladder_destroy(mine) == GEMM_LADDER_OK) errors[i] = most;
    });
  for (std::thread& thread : threads) thread.join();
  for (const double error : errors) EXPECT_LE(error, 1);
}

TEST_F(Library, TheCallersWorkspaceIsUsedWhereItIsLargeEnough) {
  void* workspace;
  ASSERT_EQ(cudaMalloc(&workspace, 64 << 20), cudaSuccess);
  ASSERT_EQ(gemm_ladder_set_workspace(handle_, workspace, 64 << 20), GEMM_LADDER_OK);
  expect_right(problem(136, 264, 2056));
  ASSERT_EQ(gemm_ladder_set_workspace(handle_, workspace, 256), GEMM_LADDER_OK);  // too small: the handle's own
  expect_right(problem(136, 264, 2056));
  ASSERT_EQ(gemm_ladder_set_workspace(handle_, nullptr, 0), GEMM_LADDER_OK);
  EXPECT_EQ(gemm_ladder_set_workspace(handle_, static_cast<char*>(workspace) + 8, 1024), GEMM_LADDER_INVALID_VALUE);
  EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr("256 bytes"));
  ASSERT_EQ(cudaFree(workspace), cudaSuccess);
}

TEST_F(Library, WrongArgumentsAreNamed) {
  const auto refused = [&](gemm_ladder_problem_t p, const char* what) {
    float dummy = 0;
    EXPECT_EQ(gemm_ladder_run(handle_, &p, 1, &dummy, &dummy, 0, &dummy), GEMM_LADDER_INVALID_VALUE) << what;
    EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr(what));
  };
  const auto with = [](auto change) {
    gemm_ladder_problem_t p = problem(8, 16, 24);
    change(p);
    return p;
  };
  refused(with([](auto& p) { p.m = -1; }), "m, n and k must be at least 0");
  refused(with([](auto& p) { p.k = int64_t{1} << 31; }), "below 2^31");
  refused(with([](auto& p) { p.lda = 23; }), "lda");
  refused(with([](auto& p) { p.ldb = 15; }), "ldb");
  refused(with([](auto& p) { p.ldc = 15; }), "ldc");
  auto by_columns = problem(8, 16, 24, GEMM_LADDER_F32, GEMM_LADDER_N, GEMM_LADDER_N, GEMM_LADDER_COL_MAJOR);
  by_columns.lda = 7;
  refused(by_columns, "lda");
  refused(with([](auto& p) { p.batch = -1; }), "batch");
  refused(with([](auto& p) { p.type = static_cast<gemm_ladder_type_t>(9); }), "type");
  refused(with([](auto& p) { p.op_b = static_cast<gemm_ladder_operation_t>(2); }), "op_b");
  const auto scaled_with = [](auto change) {
    gemm_ladder_problem_t p = scaled(8, 16, 32, GEMM_LADDER_SCALES_ROWS);
    change(p);
    return p;
  };
  refused(with([](auto& p) { p.type = GEMM_LADDER_BF16, p.scales = GEMM_LADDER_SCALES_ROWS; }), "GEMM_LADDER_E4M3");
  refused(scaled_with([](auto& p) { p.scales = static_cast<gemm_ladder_scales_t>(4); }), "scales is none of");
  refused(scaled_with([](auto& p) { p.groups = -1; }), "groups must be at least 0");
  refused(scaled_with([](auto& p) { p.batch = 2; }), "batch 1");
  refused(scaled_with([](auto& p) { p.op_b = GEMM_LADDER_N; }), "row-major, with op_a N and op_b T");
  refused(scaled_with([](auto& p) { p.op_a = GEMM_LADDER_T, p.lda = 32; }), "row-major, with op_a N and op_b T");
  refused(scaled_with([](auto& p) { p.order = GEMM_LADDER_COL_MAJOR, p.ldb = 32; }),
          "row-major, with op_a N and op_b T");
  refused(scaled_with([](auto&) {}), "scale_a is a null pointer");
  refused(scaled_with([](auto& p) { p.scales = GEMM_LADDER_SCALES_NONE, p.groups = 2; }),
          "first_row is a null pointer");
  const auto rows = scaled_with([](auto&) {});
  float number = 0;
  const gemm_ladder_operands_t half{1, &number, &number, 0, &number, &number, nullptr, nullptr};
  EXPECT_EQ(gemm_ladder_run_operands(handle_, &rows, &half), GEMM_LADDER_INVALID_VALUE);
  EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr("scale_b is a null pointer"));
  EXPECT_EQ(gemm_ladder_run_operands(handle_, &rows, nullptr), GEMM_LADDER_INVALID_VALUE);
  EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr("operands"));
  const auto p = problem(8, 16, 24);
  float c = 0;
  EXPECT_EQ(gemm_ladder_run(handle_, &p, 1, nullptr, &c, 0, &c), GEMM_LADDER_INVALID_VALUE);
  EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr("A is a null pointer"));
  EXPECT_EQ(gemm_ladder_run(handle_, &p, 1, &c, &c, 0, nullptr), GEMM_LADDER_INVALID_VALUE);
  EXPECT_EQ(gemm_ladder_run(nullptr, &p, 1, &c, &c, 0, &c), GEMM_LADDER_INVALID_VALUE);
  EXPECT_EQ(gemm_ladder_create(nullptr), GEMM_LADDER_INVALID_VALUE);
}

// Bit by bit what common/quantise.h says, with aligned rows and others, and nothing else is written.
TEST_F(Library, QuantisesEachBlockByItsScale) {
  struct Size {
    int64_t rows, columns, pad;
  };
  const auto types = {GEMM_LADDER_F32, GEMM_LADDER_TF32, GEMM_LADDER_BF16, GEMM_LADDER_F16};
  const auto modes = {GEMM_LADDER_SCALE_ALL, GEMM_LADDER_SCALE_ROWS, GEMM_LADDER_SCALE_1X128,
                      GEMM_LADDER_SCALE_128X128};
  for (const auto type : types)
    for (const auto mode : modes)
      for (const auto& [rows, columns, pad] :
           {Size{1, 1, 0}, {5, 131, 3}, {130, 264, 8}, {2, 17000, 0}, {2, 33000, 24}})
        expect_quantised(type, mode, rows, columns, pad, [&](int64_t row, int64_t column) {
          return normal()[random_() % normal().size()] * (row == 1 ? 0x1p-10 : column % 384 < 128 ? 0x1p-6 : 1);
        });
}

TEST_F(Library, QuantisesZerosAndWhatIsNoNumber) {
  for (const auto mode :
       {GEMM_LADDER_SCALE_ALL, GEMM_LADDER_SCALE_ROWS, GEMM_LADDER_SCALE_1X128, GEMM_LADDER_SCALE_128X128}) {
    expect_quantised(GEMM_LADDER_F32, mode, 8, 256, 0, [](int64_t, int64_t) { return 0.0; });
    expect_quantised(GEMM_LADDER_F32, mode, 8, 256, 0, [](int64_t row, int64_t column) {
      return std::ldexp(1.0 + static_cast<double>(row) / 8, -149 + static_cast<int>(column % 40));
    });
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double odd : {NOT_A_NUMBER, infinity, -infinity})
      expect_quantised(GEMM_LADDER_F32, mode, 8, 256, 0, [&](int64_t row, int64_t column) {
        return row == 3 && column == 130 ? odd : 1.0 + static_cast<double>(column);
      });
  }
}

TEST_F(Library, QuantiseNamesWrongArguments) {
  float data[4] = {};
  const auto refused = [&](gemm_ladder_status_t status, const char* what) {
    EXPECT_EQ(status, GEMM_LADDER_INVALID_VALUE) << what;
    EXPECT_THAT(gemm_ladder_last_error(handle_), HasSubstr(what));
  };
  const auto call = [&](int64_t rows, int64_t columns, int64_t ld, int64_t ld_quantised, const void* x, void* to,
                        float* scale, int type = GEMM_LADDER_F32, int scales = GEMM_LADDER_SCALE_ROWS) {
    return gemm_ladder_quantise(handle_, static_cast<gemm_ladder_type_t>(type),
                                static_cast<gemm_ladder_scale_t>(scales), rows, columns, x, ld, to, ld_quantised,
                                scale);
  };
  refused(call(-1, 1, 1, 1, data, data, data), "rows and columns must be at least 0");
  refused(call(1, int64_t{1} << 30, int64_t{1} << 30, int64_t{1} << 30, data, data, data), "too large");
  refused(call(1, 8, 7, 8, data, data, data), "ld is smaller");
  refused(call(1, 8, 8, 7, data, data, data), "ld_quantised is smaller");
  refused(call(1, 1, 1, 1, nullptr, data, data), "x is a null pointer");
  refused(call(1, 1, 1, 1, data, nullptr, data), "quantised is a null pointer");
  refused(call(1, 1, 1, 1, data, data, nullptr), "scale is a null pointer");
  refused(call(1, 1, 1, 1, data, data, data, 9), "type");
  refused(call(1, 1, 1, 1, data, data, data, GEMM_LADDER_F32, 4), "scales");
  EXPECT_EQ(call(0, 8, 8, 8, nullptr, nullptr, nullptr), GEMM_LADDER_OK);
  EXPECT_EQ(gemm_ladder_quantise(nullptr, GEMM_LADDER_F32, GEMM_LADDER_SCALE_ALL, 1, 1, data, 1, data, 1, data),
            GEMM_LADDER_INVALID_VALUE);
}

TEST_F(Library, ExplainsWhatRunsAndWhy) {
  const std::string first = explained(problem(4096, 4096, 4096));
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  if (properties.major != 9) {
    EXPECT_THAT(first, HasSubstr("sm_90a"));
    return;
  }
  EXPECT_THAT(first, testing::StartsWith("38_sgemm_layouts:\n"));
  for (const auto op_a : {GEMM_LADDER_N, GEMM_LADDER_T})
    for (const auto op_b : {GEMM_LADDER_N, GEMM_LADDER_T})
      EXPECT_THAT(explained(problem(8, 4096, 4096, GEMM_LADDER_F32, op_a, op_b)),
                  testing::StartsWith("38_sgemm_layouts:\n* few rows, "));
  EXPECT_THAT(explained(problem(16, 4096, 4096)), testing::StartsWith("38_sgemm_layouts:\n"));
  EXPECT_THAT(explained(problem(4096, 4096, 4096, GEMM_LADDER_BF16, GEMM_LADDER_N, GEMM_LADDER_T)),
              HasSubstr("33_cost_model"));
  for (const auto type : {GEMM_LADDER_BF16, GEMM_LADDER_F16})
    EXPECT_THAT(explained(problem(4096, 4096, 4096, type)), testing::StartsWith("39_layouts_16bit:\n"));
  // By columns the rung computes the transpose of C, in which B comes first.
  EXPECT_THAT(
      explained(problem(4096, 4096, 4096, GEMM_LADDER_BF16, GEMM_LADDER_T, GEMM_LADDER_N, GEMM_LADDER_COL_MAJOR)),
      HasSubstr("33_cost_model"));
  EXPECT_THAT(
      explained(problem(4096, 4096, 4096, GEMM_LADDER_BF16, GEMM_LADDER_N, GEMM_LADDER_T, GEMM_LADDER_COL_MAJOR)),
      HasSubstr("39_layouts_16bit"));
  EXPECT_THAT(explained(problem(4096, 4096, 1024, GEMM_LADDER_TF32)),
              testing::StartsWith("33_cost_model:\nB is transposed first\n"));
  EXPECT_THAT(explained(problem(4096, 4096, 4096, GEMM_LADDER_TF32, GEMM_LADDER_T)),
              testing::StartsWith("33_cost_model:\nA and B are transposed first\n"));
  EXPECT_THAT(explained(problem(4096, 4097, 4096)), HasSubstr("multiples of 16 bytes"));
  // No FP32 product is left to cuBLAS for its shape: few rows, few columns, long K.
  for (const auto op_a : {GEMM_LADDER_N, GEMM_LADDER_T})
    for (const auto op_b : {GEMM_LADDER_N, GEMM_LADDER_T})
      for (const auto& [m, n, k] : {std::tuple{16, 14336, 4096}, {14336, 16, 4096}, {256, 256, 65536}})
        EXPECT_THAT(explained(problem(m, n, k, GEMM_LADDER_F32, op_a, op_b)),
                    testing::StartsWith("38_sgemm_layouts:\n"));
  for (const auto scales : ALL_SCALES)
    EXPECT_THAT(explained(scaled(4096, 4096, 4096, scales)),
                testing::ContainsRegex(scales == GEMM_LADDER_SCALES_BLOCKS ? "^43b_fp8_last_wave:\n" : "^41_fp8:\n"));
  EXPECT_THAT(explained(scaled(4096, 4096, 4096, GEMM_LADDER_SCALES_NONE, 64, GEMM_LADDER_BF16)),
              testing::StartsWith("44_grouped:\n"));
  EXPECT_THAT(explained(scaled(4096, 4096, 4096, GEMM_LADDER_SCALES_BLOCKS, 64)),
              testing::StartsWith("46_grouped_fp8:\n"));
  EXPECT_EQ(explained(scaled(4096, 4096, 4096, GEMM_LADDER_SCALES_ROWS, 64)),
            "plain kernel: this library has no rung for e4m3 with scales (rows) in groups\n");
  EXPECT_EQ(explained(scaled(64, 64, 64, GEMM_LADDER_SCALES_NONE, 4, GEMM_LADDER_F32)),
            "plain kernel: this library has no rung for f32 in groups\n");
  EXPECT_THAT(explained(scaled(64, 64, 100, GEMM_LADDER_SCALES_ROWS, 0, GEMM_LADDER_E4M3, GEMM_LADDER_RESULT_SAME, 1)),
              testing::StartsWith("plain kernel: rows do not begin"));
  EXPECT_THAT(explained(problem(4096, 0, 4096)), HasSubstr("no product"));
}

TEST(Status, HasASentence) {
  for (int status = GEMM_LADDER_OK; status <= GEMM_LADDER_CUBLAS_ERROR; ++status)
    EXPECT_THAT(gemm_ladder_status_string(static_cast<gemm_ladder_status_t>(status)),
                testing::Not(HasSubstr("no status")));
  EXPECT_THAT(gemm_ladder_status_string(static_cast<gemm_ladder_status_t>(99)), HasSubstr("no status"));
}

}  // namespace
