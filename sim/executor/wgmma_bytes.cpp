// wgmma of 8-bit types: FP8 and integers, K of 32 bytes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "executor/rounding.h"
#include "executor/wgmma_engine.h"

namespace sim {
namespace {

constexpr uint32_t rows = 64, k_size = 32;

using Matrix = std::vector<double>;

double to_double(NumberType type, std::byte byte) {
  const auto bits = uint8_t(byte);
  switch (type) {
    case NumberType::e4m3:
      return e4m3{bits}.value();
    case NumberType::e5m2:
      return e5m2{bits}.value();
    case NumberType::signed_:
      return int8_t(bits);
    default:
      return bits;
  }
}

/// Of D: the column of element `i` of a lane (PTX ISA 9.7.15.5.1.1).
constexpr uint32_t fragment_column(uint32_t lane, uint32_t i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

bool is_fp8(NumberType type) { return type == NumberType::e4m3 || type == NumberType::e5m2; }

/// How Hopper sums in FP8, bit for bit (bench/fp8_tiles.cu, measured on an H100): every product and the old D are cut off 13
/// bits below the largest exponent among them, toward zero; their sum is exact, and is cut off 13 bits below its own leading bit. The
/// exponent of a product is the sum of its factors' exponents, although it may reach 3.5; that of a product of zero does not count. So a
/// long sum of numbers of one sign loses percents.
class Fp8Sum {
 public:
  static constexpr int kept_bits = 13;

  Fp8Sum(uint32_t n, uint32_t k) : n_(n), k_(k), b_exponent_(size_t{k} * n), top_(n), scale_(n), plain_(n) {}

  void set_b(const Matrix& b, NumberType type) {
    for (size_t i = 0; i < b_exponent_.size(); ++i) b_exponent_[i] = exponent(b[i], type);
  }
  /// sum[n] = a row of A times B + d[n].
  void add(const double* a, NumberType type, const Matrix& b, const std::vector<double>& d, std::vector<double>& sum) {
    for (uint32_t n = 0; n < n_; ++n) {
      plain_[n] = d[n];
      top_[n] = d[n] == 0 || !std::isfinite(d[n]) ? none : std::ilogb(d[n]);
    }
    for (uint32_t k = 0; k < k_; ++k) {
      const int mine = exponent(a[k], type);
      const int* const others = &b_exponent_[size_t{k} * n_];
      for (uint32_t n = 0; n < n_; ++n) top_[n] = std::max(top_[n], mine + others[n]);
    }
    for (uint32_t n = 0; n < n_; ++n) {
      scale_[n] = top_[n] > none / 2 ? std::ldexp(1.0, kept_bits - top_[n]) : 1;
      sum[n] = std::trunc(d[n] * scale_[n]);
    }
    for (uint32_t k = 0; k < k_; ++k) {
      const double* const row = &b[size_t{k} * n_];
      for (uint32_t n = 0; n < n_; ++n) {
        const double product = a[k] * row[n];
        sum[n] += std::trunc(product * scale_[n]);
        plain_[n] += product;
      }
    }
    for (uint32_t n = 0; n < n_; ++n) sum[n] = std::isfinite(plain_[n]) ? cut(sum[n]) / scale_[n] : plain_[n];
  }

 private:
  static constexpr int none = -10000;
  /// A whole number without what lies more than 13 bits below its leading bit.
  static double cut(double whole) {
    constexpr double least = 1 << (kept_bits + 1);  // with a bit more than that
    if (std::fabs(whole) < least) return whole;
    const double unit = std::ldexp(1.0, std::ilogb(whole) - kept_bits);
    return std::trunc(whole / unit) * unit;
  }
  static int exponent(double x, NumberType type) {
    const int least = type == NumberType::e4m3 ? e4m3::min_exponent : e5m2::min_exponent;
    return x == 0 || !std::isfinite(x) ? none : std::max(std::ilogb(x), least);
  }

  uint32_t n_, k_;
  std::vector<int> b_exponent_, top_;
  std::vector<double> scale_, plain_;
};

}  // namespace

/// Integers are exact, and wrap around or saturate. Both operands are contiguous along K.
void WgmmaEngine::multiply_bytes(const Warp& warp, Warpgroup& group, const Wgmma& one) {
  const Op& op = *one.op;
  const WgmmaShape shape = WgmmaShape::unpack(op.o.immediate);
  const uint32_t n_size = shape.n;
  Matrix a(rows * k_size), b(size_t{k_size} * n_size);  // a[m][k], b[k][n]
  const auto read = [&](NumberType type, uint64_t bits, uint32_t extent, bool negate, const auto& put) {
    const MatrixDescriptor descriptor(bits);
    for (uint32_t i = 0; i < extent; ++i)
      for (uint32_t k = 0; k < k_size; ++k) {
        const double value = to_double(type, warp.block->shared.data()[descriptor.address(true, i, k / 16) + k % 16]);
        put(i, k, negate ? -value : value);
      }
  };
  read(op.b_type, one.b, n_size, shape.negate_b,
       [&](uint32_t n, uint32_t k, double value) { b[k * n_size + n] = value; });
  if (!shape.a_in_registers)
    read(op.type, one.a, rows, shape.negate_a,
         [&](uint32_t m, uint32_t k, double value) { a[m * k_size + k] = value; });
  warp.block->shared.end_async_reads(one.units, one.reader, one.pc, one.time);

  const uint32_t first_warp = warp.index / warpgroup_warps * warpgroup_warps;
  Matrix sum(n_size), old(n_size);
  const bool fp8 = is_fp8(op.type);
  Fp8Sum fp8_sum(n_size, k_size);
  if (fp8) fp8_sum.set_b(b, op.b_type);
  for (uint32_t w = 0; w < warpgroup_warps; ++w) {
    const Warp& owner = warp.block->warps[first_warp + w];
    const size_t d_registers = n_size * op.o.d_bytes / 8;
    // Of A, register r holds lane 4 g + t's bytes 4 t to 4 t + 3 of row g + 8 (r % 2), in the r / 2-th 16 bytes of K.
    for (uint32_t r = 0; shape.a_in_registers && r < 4; ++r)
      for (uint32_t i = 0; i < 4 * warp_size; ++i) {
        const double value = to_double(op.type, owner.registers[op.elements[d_registers + r].offset + i]);
        a[(16 * w + i / 16 + 8 * (r % 2)) * k_size + 16 * (r / 2) + i % 16] = shape.negate_a ? -value : value;
      }
    Accumulators& d = group.accumulators[w][op.elements[0].offset];
    for (uint32_t row = 0; row < 16; ++row) {
      // The row's elements of D lie in four lanes.
      const auto for_each_element = [&](const auto& f) {
        for (uint32_t l = row % 8 * 4; l < row % 8 * 4 + 4; ++l)
          for (uint32_t i = row / 8 * 2; i < n_size / 2; i += i % 2 ? 3 : 1)
            f(d.values[(op.o.d_bytes == 4 ? i : i / 2) * warp_size + l], i % 2, fragment_column(l, i));
      };
      const double* const a_row = &a[(16 * w + row) * k_size];
      std::fill(old.begin(), old.end(), 0);
      if (one.add[w])
        for_each_element([&](uint32_t value, uint32_t half, uint32_t n) {
          old[n] = is_integer(op.type) ? int32_t(value)
                   : op.o.d_bytes == 4 ? double(std::bit_cast<float>(value))
                                       : f16{uint16_t(value >> 16 * half)}.value();
        });
      if (fp8) {
        fp8_sum.add(a_row, op.type, b, old, sum);
      } else {
        sum = old;
        for (uint32_t k = 0; k < k_size; ++k)
          for (uint32_t n = 0; n < n_size; ++n) sum[n] += a_row[k] * b[k * n_size + n];
      }
      for_each_element([&](uint32_t& value, uint32_t half, uint32_t n) {
        if (is_integer(op.type)) {
          const auto whole = int64_t(sum[n]);
          value = uint32_t(shape.saturate ? std::clamp<int64_t>(whole, INT32_MIN, INT32_MAX) : whole);
        } else if (op.o.d_bytes == 4) {
          value = std::bit_cast<uint32_t>(float(sum[n]));
        } else {
          value = (value & (0xffffU << 16 * (1 - half))) | uint32_t{f16::from(sum[n]).bits} << 16 * half;
        }
      });
    }
  }
}

}  // namespace sim
