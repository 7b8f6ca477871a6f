// Rounding as PTX prescribes it, of exact results, and the 16-bit formats.
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

  static Half from(double value, Round round = Round::nearest) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    constexpr uint16_t infinity = (2 * max_exponent + 1) << (Digits - 1);
    if (std::isnan(value)) return {0x7fff};
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return {static_cast<uint16_t>(sign | infinity)};
    if (magnitude == 0) return {sign};
    int exponent = std::ilogb(magnitude);
    if (exponent < min_exponent) exponent = min_exponent;
    const double scaled = std::ldexp(magnitude, Digits - 1 - exponent);  // integer part: the significand
    double whole = std::floor(scaled);
    const double rest = scaled - whole;
    const bool up = round == Round::nearest ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1)
                    : round == Round::down  ? sign && rest > 0
                    : round == Round::up    ? !sign && rest > 0
                                            : false;
    if (up) whole += 1;
    if (whole == std::ldexp(1.0, Digits)) {
      whole /= 2;
      ++exponent;
    }
    if (exponent > max_exponent) {
      const bool to_infinity =
          round == Round::nearest || (round == Round::up && !sign) || (round == Round::down && sign);
      return {static_cast<uint16_t>(sign | (to_infinity ? infinity : infinity - 1))};
    }
    const auto significand = static_cast<uint32_t>(whole);
    const bool normal = significand >> (Digits - 1);
    const uint32_t biased = normal ? exponent + max_exponent : 0;
    return {static_cast<uint16_t>(sign | biased << (Digits - 1) | (significand & ((1U << (Digits - 1)) - 1)))};
  }

  double value() const {
    const int biased = bits >> (Digits - 1) & (2 * max_exponent + 1);
    const int fraction = bits & ((1 << (Digits - 1)) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (biased == 2 * max_exponent + 1) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
    if (biased == 0) return sign * std::ldexp(fraction, min_exponent - (Digits - 1));
    return sign * std::ldexp(fraction + (1 << (Digits - 1)), biased - max_exponent - (Digits - 1));
  }
};

using f16 = Half<11>;
using bf16 = Half<8>;

/// Two of them in one 32-bit register, the first in the low half.
template <class T>
struct Pair {
  T low, high;
};
using f16x2 = Pair<f16>;
using bf16x2 = Pair<bf16>;

}  // namespace sim
