// Rounding as PTX prescribes it, of exact results, and the 16-bit and 8-bit formats.
//
// Sums and products are taken in double precision with "round to odd": where the double is not exact, its last bit is
// set. Rounding that once more, to a format at least two bits narrower, gives the correctly rounded exact result
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sim {

enum class Round : uint8_t { nearest, zero, down, up };

/// a + b, rounded to odd.
inline double add_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_in_sum = sum - a;
  const double error = (a - (sum - b_in_sum)) + (b - b_in_sum);  // exact (Knuth)
  if (error == 0.0 || std::bit_cast<uint64_t>(sum) & 1) return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

/// a * b + c, rounded to odd, for a and b of at most 26 bits each (float and narrower): their product is exact.
inline double fma_odd(double a, double b, double c) { return add_odd(a * b, c); }

/// `value` to float in direction `round`.
inline float to_float(double value, Round round) {
  const float nearest = static_cast<float>(value);
  if (round == Round::nearest || std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  const bool above = static_cast<double>(nearest) > value;
  if ((round == Round::down || (round == Round::zero && value > 0)) && above)
    return std::nextafterf(nearest, -INFINITY);
  if ((round == Round::up || (round == Round::zero && value < 0)) && !above) return std::nextafterf(nearest, INFINITY);
  return nearest;
}

/// A 16-bit floating-point format: `Digits` significand bits with the implicit one, the rest exponent.
template <int Digits>
struct Half {
  static constexpr int digits = Digits;
  static constexpr int max_exponent = (1 << (15 - Digits)) - 1;  ///< of 1.xxx * 2^e
  static constexpr int min_exponent = 1 - max_exponent;
  uint16_t bits = 0;

  static Half from(double value, Round round = Round::nearest);
  double value() const;
};

using f16 = Half<11>;
using bf16 = Half<8>;

/// An 8-bit format (PTX ISA 5.2.3, "Alternate Floating-Point Data Formats"). E4M3 has no infinities and one NaN of either sign;
/// E5M2 is the upper half of an FP16.
template <int Digits>
struct Quarter {
  static constexpr int min_exponent = Digits == 4 ? -6 : -14;
  static constexpr double largest = Digits == 4 ? 448 : 57344;
  uint8_t bits = 0;

  /// To nearest even; what is too large becomes the largest finite number (.rn.satfinite).
  static Quarter from(double value);
  double value() const;
};
using e4m3 = Quarter<4>;
using e5m2 = Quarter<3>;

/// Two of them in one register, the first in the low half.
template <class T>
struct Pair {
  T low, high;
};
using f16x2 = Pair<f16>;
using bf16x2 = Pair<bf16>;
using e4m3x2 = Pair<e4m3>;
using e5m2x2 = Pair<e5m2>;

}  // namespace sim
