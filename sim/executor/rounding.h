// Rounding as PTX prescribes it, of exact results, and the 16-bit and 8-bit formats.
//
// Sums and products are taken in double precision with "round to odd": where the double is not exact, its last bit is
// set. Rounding that once more, to a format at least two bits narrower, gives the correctly rounded exact result
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include <algorithm>
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

/// A format of 6 or 4 bits, without infinities and NaN (PTX ISA 5.2.3): a sign, then so many bits of exponent and of fraction.
template <int ExponentBits, int FractionBits>
struct Small {
  static constexpr int min_exponent = 2 - (1 << (ExponentBits - 1));
  static constexpr int sign_bit = ExponentBits + FractionBits;
  uint8_t bits = 0;

  static constexpr double largest() {
    return std::ldexp(2 - std::ldexp(1.0, -FractionBits), (1 << ExponentBits) - 2 + min_exponent);
  }
  /// To nearest even; what is too large becomes the largest number, and so does NaN (.rn.satfinite).
  static Small from(double value) {
    const double magnitude = std::isnan(value) ? largest() : std::fmin(std::fabs(value), largest());
    const int exponent = magnitude == 0 ? min_exponent : std::max(std::ilogb(magnitude), min_exponent);
    const auto units = static_cast<uint8_t>(std::nearbyint(std::ldexp(magnitude, FractionBits - exponent)));
    const bool negative = std::signbit(value) && !std::isnan(value);
    return {static_cast<uint8_t>(negative << sign_bit | (((exponent - min_exponent) << FractionBits) + units))};
  }
  double value() const {
    const int biased = bits >> FractionBits & ((1 << ExponentBits) - 1), fraction = bits & ((1 << FractionBits) - 1);
    const double magnitude =
        std::ldexp(fraction + (biased ? 1 << FractionBits : 0), std::max(biased, 1) - 1 + min_exponent - FractionBits);
    return bits >> sign_bit & 1 ? -magnitude : magnitude;
  }
};
using e2m1 = Small<2, 1>;
using e2m3 = Small<2, 3>;
using e3m2 = Small<3, 2>;

/// A power of two, or NaN.
struct ue8m0 {
  uint8_t bits = 0;

  /// Of the magnitude; `up`: not below it (.rp), else not above it (.rz). What is too large is NaN, or with `satfinite` the largest number.
  static ue8m0 from(double value, bool up, bool satfinite) {
    const double magnitude = std::fabs(value);
    if (std::isnan(value)) return {255};
    if (std::isinf(magnitude)) return {static_cast<uint8_t>(satfinite ? 254 : 255)};
    if (magnitude <= 0x1p-127) return {0};
    const int exponent = std::ilogb(magnitude) + 127 + (up && std::ldexp(1.0, std::ilogb(magnitude)) < magnitude);
    return {static_cast<uint8_t>(std::min(exponent, satfinite ? 254 : 255))};
  }
  double value() const { return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127); }
};

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
