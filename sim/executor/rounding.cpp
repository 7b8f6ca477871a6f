#include "executor/rounding.h"

#include <algorithm>

namespace sim {

template <int Digits>
Half<Digits> Half<Digits>::from(double value, Round round) {
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
    const bool to_infinity = round == Round::nearest || (round == Round::up && !sign) || (round == Round::down && sign);
    return {static_cast<uint16_t>(sign | (to_infinity ? infinity : infinity - 1))};
  }
  const auto significand = static_cast<uint32_t>(whole);
  const bool normal = significand >> (Digits - 1);
  const uint32_t biased = normal ? exponent + max_exponent : 0;
  return {static_cast<uint16_t>(sign | biased << (Digits - 1) | (significand & ((1U << (Digits - 1)) - 1)))};
}

template <int Digits>
double Half<Digits>::value() const {
  const int biased = bits >> (Digits - 1) & (2 * max_exponent + 1);
  const int fraction = bits & ((1 << (Digits - 1)) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (biased == 2 * max_exponent + 1) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  if (biased == 0) return sign * std::ldexp(fraction, min_exponent - (Digits - 1));
  return sign * std::ldexp(fraction + (1 << (Digits - 1)), biased - max_exponent - (Digits - 1));
}

template <int Digits>
Quarter<Digits> Quarter<Digits>::from(double value) {
  if (std::isnan(value)) return {0x7f};
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fmin(std::fabs(value), largest);
  const int exponent = magnitude == 0 ? min_exponent : std::max(std::ilogb(magnitude), min_exponent);
  // In units of the last place. A carry into the next exponent, and from the subnormal numbers, comes out right by itself.
  const auto units = static_cast<uint8_t>(std::nearbyint(std::ldexp(magnitude, Digits - 1 - exponent)));
  return {static_cast<uint8_t>(sign | (((exponent - min_exponent) << (Digits - 1)) + units))};
}

template <int Digits>
double Quarter<Digits>::value() const {
  const int biased = (bits & 0x7f) >> (Digits - 1), fraction = bits & ((1 << (Digits - 1)) - 1);
  const double sign = bits & 0x80 ? -1 : 1;
  if (Digits == 4 && (bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  if (Digits == 3 && biased == 31) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  const int implicit = biased ? 1 << (Digits - 1) : 0;
  return sign * std::ldexp(fraction + implicit, std::max(biased, 1) - 1 + min_exponent - (Digits - 1));
}

template struct Half<11>;
template struct Half<8>;
template struct Quarter<4>;
template struct Quarter<3>;

}  // namespace sim
