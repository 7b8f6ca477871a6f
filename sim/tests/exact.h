// Arithmetic without rounding, and then one rounding to any binary format, for tests: what IEEE 754 defines, computed with
// integers of as many digits as needed. It shares no code with sim/executor/rounding.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sim::test {

/// A binary format by its significand's digits (with the implicit one) and its largest exponent.
struct Format {
  int digits, max_exponent;
  int min_exponent() const { return 1 - max_exponent; }
  double largest() const { return std::ldexp(2 - std::ldexp(1.0, 1 - digits), max_exponent); }
  double smallest_normal() const { return std::ldexp(1.0, min_exponent()); }
};

enum class Mode { nearest, zero, down, up };

/// sign * digits * 2^exponent; `digits` are 32 bits each, the lowest first.
class Exact {
 public:
  static Exact of(double x) {
    int exponent;
    const double fraction = std::frexp(std::fabs(x), &exponent);  // x = fraction * 2^exponent
    return {std::signbit(x), static_cast<uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
  }
  static Exact of(__int128 x) {
    const auto magnitude = static_cast<unsigned __int128>(x < 0 ? -x : x);
    Exact high{false, static_cast<uint64_t>(magnitude >> 64), 64}, low{false, static_cast<uint64_t>(magnitude), 0};
    Exact sum = high + low;
    sum.negative_ = x < 0;
    return sum;
  }

  friend Exact operator*(const Exact& a, const Exact& b) {
    Exact product;
    product.negative_ = a.negative_ != b.negative_;
    product.exponent_ = a.exponent_ + b.exponent_;
    product.digits_.assign(a.digits_.size() + b.digits_.size(), 0);
    for (size_t i = 0; i < a.digits_.size(); ++i) {
      uint64_t carry = 0;
      for (size_t j = 0; j < b.digits_.size() || carry; ++j) {
        carry += product.digits_[i + j];
        if (j < b.digits_.size()) carry += uint64_t{a.digits_[i]} * b.digits_[j];
        product.digits_[i + j] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
    }
    return product;
  }

  friend Exact operator+(Exact a, Exact b) {
    const int exponent = std::min(a.exponent_, b.exponent_);
    a.extend_to(exponent);
    b.extend_to(exponent);
    const size_t size = std::max(a.digits_.size(), b.digits_.size()) + 1;
    a.digits_.resize(size);
    b.digits_.resize(size);
    if (a.negative_ == b.negative_) {
      uint64_t carry = 0;
      for (size_t i = 0; i < size; ++i) {
        carry += uint64_t{a.digits_[i]} + b.digits_[i];
        a.digits_[i] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
      return a;
    }
    if (std::lexicographical_compare(a.digits_.rbegin(), a.digits_.rend(), b.digits_.rbegin(), b.digits_.rend()))
      std::swap(a, b);
    int64_t borrow = 0;
    for (size_t i = 0; i < size; ++i) {
      const int64_t d = int64_t{a.digits_[i]} - b.digits_[i] + borrow;
      a.digits_[i] = static_cast<uint32_t>(d);
      borrow = d < 0 ? -1 : 0;
    }
    return a;
  }

  /// To 64 digits and one more that tells whether anything is left: enough for one rounding.
  static Exact quotient(double a, double b) {
    const Exact x = of(a), y = of(b);
    unsigned __int128 n = x.word(), d = y.word();
    n <<= 64;
    const unsigned __int128 q = n / d;  // up to 117 bits
    Exact high{false, static_cast<uint64_t>(q >> 64), 64}, low{false, static_cast<uint64_t>(q), 0};
    Exact whole = high + low;
    const Exact rest{false, n % d ? 1U : 0U, -1};
    Exact result = whole + rest;
    result.negative_ = x.negative_ != y.negative_;
    result.exponent_ += x.exponent_ - y.exponent_ - 64;
    return result;
  }
  static Exact root(double a) {
    Exact x = of(a);
    unsigned __int128 n = x.word();
    int exponent = x.exponent_ - 62;
    n <<= 62;
    if (exponent % 2) {
      n <<= 1;
      --exponent;
    }
    uint64_t r = 0;
    for (int bit = 62; bit >= 0; --bit) {
      const uint64_t trial = r | uint64_t{1} << bit;
      if (static_cast<unsigned __int128>(trial) * trial <= n) r = trial;
    }
    const bool rest = static_cast<unsigned __int128>(r) * r != n;
    Exact result = Exact{false, r, 0} + Exact{false, rest ? 1U : 0U, -1};
    result.exponent_ += exponent / 2;
    return result;
  }

  bool is_zero() const {
    return std::all_of(digits_.begin(), digits_.end(), [](uint32_t d) { return d == 0; });
  }

  /// The nearest number of the format in that direction. Zero is +0.
  double rounded(Format format, Mode mode) const {
    if (is_zero()) return 0;
    int top = static_cast<int>(digits_.size()) * 32 - 1;
    while (!bit(top)) --top;
    const int last =
        std::max(top + exponent_, format.min_exponent()) - (format.digits - 1);  // exponent of the last digit
    const int dropped = last - exponent_;
    uint64_t kept = 0;
    for (int i = top; i >= std::max(dropped, 0); --i) kept = kept << 1 | bit(i);
    if (dropped < 0) kept <<= -dropped;
    bool half = false, rest = false;
    for (int i = 0; i < dropped && i <= top; ++i) (i == dropped - 1 ? half : rest) |= bit(i);
    const bool up = mode == Mode::nearest ? half && (rest || kept % 2)
                    : mode == Mode::zero  ? false
                                          : (half || rest) && negative_ == (mode == Mode::down);
    double magnitude = std::ldexp(static_cast<double>(kept + up), last);
    if (magnitude > format.largest())
      magnitude = mode == Mode::nearest || (mode != Mode::zero && negative_ == (mode == Mode::down))
                      ? std::numeric_limits<double>::infinity()
                      : format.largest();
    return negative_ ? -magnitude : magnitude;
  }

 private:
  Exact() = default;
  Exact(bool negative, uint64_t digits, int exponent)
      : negative_(negative),
        exponent_(exponent),
        digits_{static_cast<uint32_t>(digits), static_cast<uint32_t>(digits >> 32)} {}

  bool bit(int i) const { return digits_[i / 32] >> (i % 32) & 1; }
  uint64_t word() const { return digits_[0] | uint64_t{digits_[1]} << 32; }
  void extend_to(int exponent) {
    const int by = exponent_ - exponent;
    digits_.insert(digits_.begin(), by / 32, 0);
    uint32_t carry = 0;
    for (uint32_t& d : digits_) {
      const uint64_t shifted = uint64_t{d} << (by % 32) | carry;
      d = static_cast<uint32_t>(shifted);
      carry = static_cast<uint32_t>(shifted >> 32);
    }
    digits_.push_back(carry);
    exponent_ = exponent;
  }

  bool negative_ = false;
  int exponent_ = 0;
  std::vector<uint32_t> digits_;
};

/// a * b + c and a + b, NaN, infinities and signs of zero included.
inline double fused(double a, double b, double c, Format format, Mode mode) {
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c))
    return std::isfinite(a) && std::isfinite(b) ? c : a * b + c;
  const bool negative_product = std::signbit(a) != std::signbit(b);
  const Exact sum = Exact::of(a) * Exact::of(b) + Exact::of(c);
  if (!sum.is_zero()) return sum.rounded(format, mode);
  const bool both_zero = (a == 0 || b == 0) && c == 0;
  if (both_zero && negative_product == std::signbit(c)) return c;
  return mode == Mode::down ? -0.0 : 0.0;
}
inline double sum(double a, double b, Format format, Mode mode) { return fused(a, 1, b, format, mode); }
inline double product(double a, double b, Format format, Mode mode) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a * b;
  return (Exact::of(a) * Exact::of(b)).rounded(format, mode);
}
inline double quotient(double a, double b, Format format, Mode mode) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a / b;
  return Exact::quotient(a, b).rounded(format, mode);
}
inline double root(double a, Format format, Mode mode) {
  if (!(a > 0) || !std::isfinite(a)) return std::sqrt(a);
  return Exact::root(a).rounded(format, mode);
}

}  // namespace sim::test
