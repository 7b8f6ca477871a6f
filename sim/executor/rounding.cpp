#include "sim/executor/rounding.h"

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

template struct Half<11>;
template struct Half<8>;

}  // namespace sim
