// Private to the arithmetic instructions: the loop that each of them is, and the table that the sections of the PTX ISA
// add their instructions to, one file per section.
//
// An instruction is a function of one lane's operands, `f`. lanes<f, D, A, B, C> is the loop over the lanes, with the types
// that the registers hold; entry<f, D, A, B, C>() is that loop as a line of the table.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "executor/lanes.h"
#include "executor/rounding.h"

namespace sim {

using s8 = int8_t;
using u8 = uint8_t;
using s16 = int16_t;
using u16 = uint16_t;
using s32 = int32_t;
using u32 = uint32_t;
using s64 = int64_t;
using u64 = uint64_t;
using f32 = float;
using f64 = double;
using f32x2 = Pair<f32>;

class LaneTable {
 public:
  /// The mnemonic with its modifiers, in parts that are put together. Each is added once.
  void add(std::initializer_list<std::string_view> name, const LaneInstruction& instruction);

  const std::unordered_map<std::string, LaneInstruction>& all() const { return instructions_; }

 private:
  std::unordered_map<std::string, LaneInstruction> instructions_;
};

// The sections of PTX ISA 9.7 that have arithmetic instructions.
void add_integer(LaneTable& t);         // 9.7.1
void add_extended(LaneTable& t);        // 9.7.2
void add_floating_point(LaneTable& t);  // 9.7.3
void add_half(LaneTable& t);            // 9.7.3 and 9.7.4, of the 16-bit formats
void add_comparison(LaneTable& t);      // 9.7.6
void add_logic(LaneTable& t);           // 9.7.8
void add_move(LaneTable& t);            // 9.7.9, mov and prmt
void add_conversion(LaneTable& t);      // 9.7.9, cvt

// --- types -----------------------------------------------------------------------------------------------------------------

template <class T>
constexpr std::string_view type_name = "";
template <>
inline constexpr std::string_view type_name<s8> = "s8";
template <>
inline constexpr std::string_view type_name<u8> = "u8";
template <>
inline constexpr std::string_view type_name<s16> = "s16";
template <>
inline constexpr std::string_view type_name<u16> = "u16";
template <>
inline constexpr std::string_view type_name<s32> = "s32";
template <>
inline constexpr std::string_view type_name<u32> = "u32";
template <>
inline constexpr std::string_view type_name<s64> = "s64";
template <>
inline constexpr std::string_view type_name<u64> = "u64";
template <>
inline constexpr std::string_view type_name<f32> = "f32";
template <>
inline constexpr std::string_view type_name<f64> = "f64";
template <>
inline constexpr std::string_view type_name<f16> = "f16";
template <>
inline constexpr std::string_view type_name<bf16> = "bf16";
template <>
inline constexpr std::string_view type_name<f16x2> = "f16x2";
template <>
inline constexpr std::string_view type_name<bf16x2> = "bf16x2";

template <>
inline constexpr std::string_view type_name<e4m3x2> = "e4m3x2";
template <>
inline constexpr std::string_view type_name<e5m2x2> = "e5m2x2";

template <class T>
constexpr bool is_half = false;
template <int D>
constexpr bool is_half<Half<D>> = true;
template <class T>
constexpr bool is_pair = false;
template <class T>
constexpr bool is_pair<Pair<T>> = true;

template <class T>
constexpr Class class_of() {
  if constexpr (std::is_same_v<T, f32>)
    return Class::fp32;
  else if constexpr (std::is_same_v<T, f64>)
    return Class::fp64;
  else if constexpr (is_half<T> || is_pair<T>)
    return Class::fp16;
  else
    return Class::integer;
}

/// A value as the CPU can calculate with it.
template <class T>
auto number(T x) {
  if constexpr (is_half<T>)
    return x.value();
  else
    return x;
}

/// Results that are NaN are the canonical one (PTX ISA 9.7.3, "Floating Point Instructions": 0x7fffffff).
inline f32 canonical(f32 x) { return x == x ? x : std::bit_cast<f32>(0x7fffffffU); }
inline f32x2 canonical(f32x2 x) { return {canonical(x.low), canonical(x.high)}; }
template <class T>
T canonical(T x) {
  return x;
}

/// Subnormal values are zero with their sign.
inline f32 flush(f32 x) { return std::fabs(x) < std::numeric_limits<f32>::min() ? std::copysign(0.0F, x) : x; }
template <int Digits>
Half<Digits> flush(Half<Digits> x) {
  constexpr uint16_t smallest_normal = 1 << (Digits - 1);
  return (x.bits & 0x7fff) < smallest_normal ? Half<Digits>{static_cast<uint16_t>(x.bits & 0x8000)} : x;
}
/// .ftz: subnormal operands and results are flushed.
template <auto f>
constexpr auto ftz = [](auto... x) { return flush(f(flush(x)...)); };

/// Both halves of a pair.
template <auto f>
constexpr auto in_pair = []<class T, class... Ts>(T a, Ts... rest) -> T {
  return {f(a.low, rest.low...), f(a.high, rest.high...)};
};

// --- the loop --------------------------------------------------------------------------------------------------------------

template <class T>
T* at(std::byte* registers, uint32_t offset) {
  return reinterpret_cast<T*>(registers + offset);
}

/// The lanes of `mask` take their values, of so many bytes each, from `values`.
void merge(std::byte* d, const std::byte* values, size_t bytes, Mask mask);

/// d = result(lane), for the lanes of `mask`. It is calculated for all lanes, so that the compiler vectorises it: `result`
/// must be defined for any bits that a register can hold.
template <class D, class F>
[[gnu::always_inline]] inline void for_lanes(std::byte* r, uint32_t offset, Mask mask, const F& result) {
  alignas(32) D some[warp_size];
  D* const d = mask == all_lanes ? at<D>(r, offset) : some;
#pragma GCC ivdep
  for (int l = 0; l < warp_size; ++l) d[l] = canonical(result(l));
  if (mask != all_lanes) merge(r + offset, reinterpret_cast<const std::byte*>(some), sizeof(D), mask);
}

template <auto f, class D, class A, class B = void, class C = void>
void lanes(std::byte* r, const Operands& o, Mask mask) {
  const A* const a = at<A>(r, o.a);
  if constexpr (std::is_void_v<B>) {
    for_lanes<D>(r, o.d, mask, [=](int l) { return f(a[l]); });
  } else {
    const B* const b = at<B>(r, o.b);
    if constexpr (std::is_void_v<C>) {
      for_lanes<D>(r, o.d, mask, [=](int l) { return f(a[l], b[l]); });
    } else {
      const C* const c = at<C>(r, o.c);
      for_lanes<D>(r, o.d, mask, [=](int l) { return f(a[l], b[l], c[l]); });
    }
  }
}

/// A predicate is one bit per lane.
inline void write_predicate(std::byte* r, uint32_t offset, Mask value, Mask mask) {
  Mask& p = *at<Mask>(r, offset);
  p = (p & ~mask) | (value & mask);
}

// --- lines of the table ----------------------------------------------------------------------------------------------------

template <class T>
constexpr uint8_t width = sizeof(T);
template <>
inline constexpr uint8_t width<void> = 0;

template <auto f, class D, class A, class B = void, class C = void>
constexpr LaneInstruction entry(Class counted = class_of<A>(), uint8_t flops = 0) {
  return {lanes<f, D, A, B, C>, counted, width<D>, width<A>, width<B>, width<C>, flops};
}

/// name.T for each T: one type for the result and for all operands, of which f has one, two or three.
template <auto f, class... Ts>
void add_unary(LaneTable& t, std::string_view name, uint8_t flops = 0) {
  (t.add({name, ".", type_name<Ts>}, entry<f, Ts, Ts>(class_of<Ts>(), flops)), ...);
}
template <auto f, class... Ts>
void add_binary(LaneTable& t, std::string_view name, uint8_t flops = 0) {
  (t.add({name, ".", type_name<Ts>},
         entry<f, Ts, Ts, Ts>(class_of<Ts>(), static_cast<uint8_t>(is_pair<Ts> ? 2 * flops : flops))),
   ...);
}
template <auto f, class... Ts>
void add_ternary(LaneTable& t, std::string_view name, uint8_t flops = 0) {
  (t.add({name, ".", type_name<Ts>},
         entry<f, Ts, Ts, Ts, Ts>(class_of<Ts>(), static_cast<uint8_t>(is_pair<Ts> ? 2 * flops : flops))),
   ...);
}

}  // namespace sim
