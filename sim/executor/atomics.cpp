#include "executor/atomics.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "executor/rounding.h"

namespace sim {
namespace {

/// .min and .max of a 16-bit format: of a NaN and a number, the number; -0 is less than +0.
template <class H>
H extreme_of(Reduction reduction, H a, H b) {
  const double x = a.value(), y = b.value();
  if (x != x || y != y) return x == x ? a : y == y ? b : H{0x7fff};
  const bool a_is_less = x < y || (x == y && std::signbit(x));
  return a_is_less == (reduction == Reduction::min) ? a : b;
}

/// The new value that an atomic operation gives.
template <class U>
U combine(const Op& op, U old, U b, U c) {
  using S = std::make_signed_t<U>;
  const auto as_half = [&]<class H>(U x, U y) {
    if (op.reduction != Reduction::add) return U(extreme_of(op.reduction, H{uint16_t(x)}, H{uint16_t(y)}).bits);
    return U(H::from(add_odd(H{uint16_t(x)}.value(), H{uint16_t(y)}.value())).bits);
  };
  switch (op.reduction) {
    case Reduction::exch:
      return b;
    case Reduction::cas:
      return old == b ? c : old;
    case Reduction::inc:
      return old >= b ? U{0} : U(old + 1);
    case Reduction::dec:
      return old == 0 || old > b ? b : U(old - 1);
    case Reduction::and_:
      return old & b;
    case Reduction::or_:
      return old | b;
    case Reduction::xor_:
      return old ^ b;
    case Reduction::min:
      if (!is_integer(op.type)) break;
      return op.type == NumberType::signed_ ? U(std::min(S(old), S(b))) : std::min(old, b);
    case Reduction::max:
      if (!is_integer(op.type)) break;
      return op.type == NumberType::signed_ ? U(std::max(S(old), S(b))) : std::max(old, b);
    case Reduction::add:
      break;
  }
  switch (op.type) {
    case NumberType::f32:
      if constexpr (sizeof(U) == 4) return std::bit_cast<U>(std::bit_cast<float>(old) + std::bit_cast<float>(b));
      break;
    case NumberType::f64:
      if constexpr (sizeof(U) == 8) return std::bit_cast<U>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
      break;
    case NumberType::f16:
      return as_half.template operator()<f16>(old, b);
    case NumberType::bf16:
      return as_half.template operator()<bf16>(old, b);
    case NumberType::f16x2:
      return U(as_half.template operator()<f16>(old & 0xffff, b & 0xffff) |
               as_half.template operator()<f16>(U(uint64_t(old) >> 16), U(uint64_t(b) >> 16)) << 16);
    case NumberType::bf16x2:
      return U(as_half.template operator()<bf16>(old & 0xffff, b & 0xffff) |
               as_half.template operator()<bf16>(U(uint64_t(old) >> 16), U(uint64_t(b) >> 16)) << 16);
    default:
      break;
  }
  return U(old + b);
}

template <class U>
U update(const Op& op, std::byte* at, const std::byte* b, const std::byte* c) {
  U operand_b, operand_c = 0;
  std::memcpy(&operand_b, b, sizeof(U));
  if (op.reduction == Reduction::cas) std::memcpy(&operand_c, c, sizeof(U));
  U* target = reinterpret_cast<U*>(at);
  U old = __atomic_load_n(target, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(target, &old, combine(op, old, operand_b, operand_c), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

}  // namespace

uint32_t reduced(const Op& op, uint32_t a, uint32_t b) { return combine<uint32_t>(op, a, b, 0); }

uint64_t update_atomically(const Op& op, std::byte* at, const std::byte* b, const std::byte* c) {
  return op.bytes == 8   ? update<uint64_t>(op, at, b, c)
         : op.bytes == 4 ? update<uint32_t>(op, at, b, c)
                         : update<uint16_t>(op, at, b, c);
}

}  // namespace sim
