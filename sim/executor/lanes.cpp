#include "sim/executor/lanes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "sim/executor/rounding.h"

namespace sim {
namespace {

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

using Table = std::unordered_map<std::string, LaneInstruction>;

template <class T>
constexpr const char* type_name = nullptr;
template <>
constexpr const char* type_name<s8> = "s8";
template <>
constexpr const char* type_name<u8> = "u8";
template <>
constexpr const char* type_name<s16> = "s16";
template <>
constexpr const char* type_name<u16> = "u16";
template <>
constexpr const char* type_name<s32> = "s32";
template <>
constexpr const char* type_name<u32> = "u32";
template <>
constexpr const char* type_name<s64> = "s64";
template <>
constexpr const char* type_name<u64> = "u64";
template <>
constexpr const char* type_name<f32> = "f32";
template <>
constexpr const char* type_name<f64> = "f64";
template <>
constexpr const char* type_name<f16> = "f16";
template <>
constexpr const char* type_name<bf16> = "bf16";
template <>
constexpr const char* type_name<f16x2> = "f16x2";
template <>
constexpr const char* type_name<bf16x2> = "bf16x2";

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

template <class T>
T* at(std::byte* registers, uint32_t offset) {
  return reinterpret_cast<T*>(registers + offset);
}

/// Results that are NaN are the canonical one (PTX ISA 9.7.3, "Floating Point Instructions": 0x7fffffff).
inline f32 canonical(f32 x) { return x == x ? x : std::bit_cast<f32>(0x7fffffffU); }
inline f64 canonical(f64 x) { return x; }
template <class T>
T canonical(T x) {
  return x;
}

inline f32 flush(f32 x) { return std::fabs(x) < std::numeric_limits<f32>::min() ? std::copysign(0.0F, x) : x; }
template <int Digits>
Half<Digits> flush(Half<Digits> x) {
  constexpr uint16_t smallest_normal = 1 << (Digits - 1);
  return (x.bits & 0x7fff) < smallest_normal ? Half<Digits>{static_cast<uint16_t>(x.bits & 0x8000)} : x;
}

// --- the loops: d = f(a, b, c) for each lane; without a test for each lane where all take part ---------------------------

/// For the width of a predicate operand: bit `lane` of a mask.
template <auto f, class D, class A>
void unary(std::byte* r, const Operands& o, Mask mask) {
  D* d = at<D>(r, o.d);
  const A* a = at<A>(r, o.a);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int l = 0; l < warp_size; ++l) d[l] = canonical(f(a[l]));
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (mask >> l & 1) d[l] = canonical(f(a[l]));
  }
}

template <auto f, class D, class A, class B>
void binary(std::byte* r, const Operands& o, Mask mask) {
  D* d = at<D>(r, o.d);
  const A* a = at<A>(r, o.a);
  const B* b = at<B>(r, o.b);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int l = 0; l < warp_size; ++l) d[l] = canonical(f(a[l], b[l]));
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (mask >> l & 1) d[l] = canonical(f(a[l], b[l]));
  }
}

template <auto f, class D, class A, class B, class C>
void ternary(std::byte* r, const Operands& o, Mask mask) {
  D* d = at<D>(r, o.d);
  const A* a = at<A>(r, o.a);
  const B* b = at<B>(r, o.b);
  const C* c = at<C>(r, o.c);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int l = 0; l < warp_size; ++l) d[l] = canonical(f(a[l], b[l], c[l]));
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (mask >> l & 1) d[l] = canonical(f(a[l], b[l], c[l]));
  }
}

template <class T>
constexpr uint8_t width = sizeof(T);

template <auto f, class... Ts>
void unary_for(Table& t, const std::string& name, uint8_t flops = 0) {
  ((t[name + "." + type_name<Ts>] = {unary<f, Ts, Ts>, class_of<Ts>(), width<Ts>, width<Ts>, 0, 0, flops}), ...);
}
template <auto f, class... Ts>
void binary_for(Table& t, const std::string& name, uint8_t flops = 0) {
  ((t[name + "." + type_name<Ts>] = {binary<f, Ts, Ts, Ts>, class_of<Ts>(), width<Ts>, width<Ts>, width<Ts>, 0,
                                     static_cast<uint8_t>(is_pair<Ts> ? 2 * flops : flops)}),
   ...);
}
template <auto f, class... Ts>
void ternary_for(Table& t, const std::string& name, uint8_t flops = 0) {
  ((t[name + "." + type_name<Ts>] = {ternary<f, Ts, Ts, Ts, Ts>, class_of<Ts>(), width<Ts>, width<Ts>, width<Ts>,
                                     width<Ts>, static_cast<uint8_t>(is_pair<Ts> ? 2 * flops : flops)}),
   ...);
}

// --- integers (PTX ISA 9.7.1) ---------------------------------------------------------------------------------------

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

constexpr auto add = []<class T>(T a, T b) { return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b)); };
constexpr auto sub = []<class T>(T a, T b) { return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b)); };
constexpr auto mul_lo = []<class T>(T a, T b) { return static_cast<T>(u64(a) * u64(b)); };
constexpr auto mul_hi = []<class T>(T a, T b) { return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T))); };
constexpr auto mul_wide = []<class T>(T a, T b) { return Wide<T>(Wide<T>(a) * Wide<T>(b)); };
constexpr auto mad_lo = []<class T>(T a, T b, T c) { return static_cast<T>(u64(a) * u64(b) + u64(c)); };
constexpr auto mad_hi = []<class T>(T a, T b, T c) { return add(mul_hi(a, b), c); };
constexpr auto mad_wide = []<class T>(T a, T b, Wide<T> c) { return add(mul_wide(a, b), c); };
// "Division by zero yields an unspecified, machine-specific value": all bits set, as the hardware does.
constexpr auto div_int = []<class T>(T a, T b) -> T {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return sub(T{0}, a);
  return a / b;
};
constexpr auto rem_int = []<class T>(T a, T b) -> T {
  if (b == 0) return static_cast<T>(a);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
};
constexpr auto abs_int = []<class T>(T a) { return a < 0 ? sub(T{0}, a) : a; };
constexpr auto neg_int = []<class T>(T a) { return sub(T{0}, a); };
constexpr auto min_int = []<class T>(T a, T b) { return a < b ? a : b; };
constexpr auto max_int = []<class T>(T a, T b) { return a > b ? a : b; };
constexpr auto sad = []<class T>(T a, T b, T c) { return add(c, a < b ? sub(b, a) : sub(a, b)); };
constexpr auto popc = []<class T>(T a) { return u32(std::popcount(a)); };
constexpr auto clz = []<class T>(T a) { return u32(std::countl_zero(a)); };
constexpr auto bfind = []<class T>(T a) {
  const auto magnitude = static_cast<Unsigned<T>>(std::is_signed_v<T> && a < T{0} ? ~a : a);
  return u32(int(8 * sizeof(T)) - 1 - std::countl_zero(magnitude));  // 0xffffffff where there is none
};
constexpr auto bfind_shift = []<class T>(T a) {
  const u32 bit = bfind(a);
  return bit == 0xffffffff ? bit : u32(8 * sizeof(T) - 1 - bit);
};
constexpr auto brev = []<class T>(T a) {
  T result = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) result |= T(a >> i & 1) << (8 * sizeof(T) - 1 - i);
  return result;
};
// bfe: bits [position, position + length) of a, sign-extended for signed types.
constexpr auto bfe = []<class T>(T a, u32 b, u32 c) -> T {
  constexpr u32 msb = 8 * sizeof(T) - 1;
  const u32 position = b & 0xff, length = c & 0xff;
  bool sign = false;
  if (std::is_signed_v<T> && length) sign = u64(a) >> std::min(position + length - 1, msb) & 1;
  Unsigned<T> d = 0;
  for (u32 i = 0; i <= msb; ++i) {
    const bool bit = i < length && position + i <= msb ? u64(a) >> (position + i) & 1 : sign;
    d |= Unsigned<T>(bit) << i;
  }
  return static_cast<T>(d);
};
// shifts by more than the width: PTX clamps the amount (unlike C++).
constexpr auto shl = []<class T>(T a, u32 b) -> T {
  return b < 8 * sizeof(T) ? T(a << (b & (8 * sizeof(T) - 1))) : T(0);
};
constexpr auto shr = []<class T>(T a, u32 b) -> T {
  constexpr u32 bits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return T(a >> (b < bits ? b : bits - 1));
  else
    return b < bits ? T(a >> (b & (bits - 1))) : T(0);
};
constexpr auto and_ = []<class T>(T a, T b) { return T(a & b); };
constexpr auto or_ = []<class T>(T a, T b) { return T(a | b); };
constexpr auto xor_ = []<class T>(T a, T b) { return T(a ^ b); };
constexpr auto not_ = []<class T>(T a) { return T(~a); };
constexpr auto cnot = []<class T>(T a) { return T(a == 0 ? 1 : 0); };
constexpr auto identity = []<class T>(T a) { return a; };

// Funnel shifts: the upper (.l) or lower (.r) word of {b, a} shifted by c.
constexpr auto shf_l_wrap = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) << (c & 31) >> 32); };
constexpr auto shf_l_clamp = [](u32 a, u32 b, u32 c) { return c >= 32 ? a : u32((u64(b) << 32 | a) << c >> 32); };
constexpr auto shf_r_wrap = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> (c & 31)); };
constexpr auto shf_r_clamp = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> std::min(c, u32{32})); };

// prmt: byte i of d is byte (selector & 7) of {b, a}, or its sign where selector & 8.
constexpr auto prmt = [](u32 a, u32 b, u32 c) {
  const u64 bytes = u64(b) << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 selector = c >> (4 * i) & 0xf;
    u32 byte = bytes >> (8 * (selector & 7)) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    d |= byte << (8 * i);
  }
  return d;
};
// prmt with a mode: four neighbouring bytes from byte c on, up (.f4e) or down (.b4e) or at most to byte 3 and from byte 0
// on (.ecl, .ecr); byte c in all four (.rc8); one half in both (.rc16).
constexpr auto selected = [](u32 a, u32 b, u32 c, auto byte_of) {
  u32 selector = 0;
  for (u32 i = 0; i < 4; ++i) selector |= (byte_of(c & 3, i) & 7) << (4 * i);
  return prmt(a, b, selector);
};
constexpr auto prmt_f4e = [](u32 a, u32 b, u32 c) { return selected(a, b, c, [](u32 k, u32 i) { return k + i; }); };
constexpr auto prmt_b4e = [](u32 a, u32 b, u32 c) { return selected(a, b, c, [](u32 k, u32 i) { return k - i; }); };
constexpr auto prmt_rc8 = [](u32 a, u32 b, u32 c) { return selected(a, b, c, [](u32 k, u32) { return k; }); };
constexpr auto prmt_ecl = [](u32 a, u32 b, u32 c) {
  return selected(a, b, c, [](u32 k, u32 i) { return std::max(k, i); });
};
constexpr auto prmt_ecr = [](u32 a, u32 b, u32 c) {
  return selected(a, b, c, [](u32 k, u32 i) { return std::min(k, i); });
};
constexpr auto prmt_rc16 = [](u32 a, u32 b, u32 c) {
  return selected(a, b, c, [](u32 k, u32 i) { return (k & 1) * 2 + (i & 1); });
};

// fns: the position of the c-th set bit of a from position b on, upwards; for negative c downwards; b's own bit for 0.
constexpr auto fns = [](u32 a, u32 b, s32 c) -> u32 {
  if (c == 0) return b < 32 && (a >> b & 1) ? b : 0xffffffff;
  for (s64 position = b, left = c < 0 ? -s64(c) : c; position >= 0 && position < 32; position += c < 0 ? -1 : 1)
    if ((a >> position & 1) && --left == 0) return u32(position);
  return 0xffffffff;
};

/// bfi f, a, b, c, d: `length` bits of a into b at `position`. Here d = result, a, b, c = position, extra = length.
template <class T>
void bfi(std::byte* r, const Operands& o, Mask mask) {
  T* d = at<T>(r, o.d);
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b);
  const u32 *position = at<u32>(r, o.c), *length = at<u32>(r, o.extra);
  constexpr u32 bits = 8 * sizeof(T);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const u32 p = position[l] & 0xff, n = length[l] & 0xff;
    const T ones = n >= bits ? T(-1) : T((T{1} << n) - 1);
    const T field = p >= bits ? T{0} : T(ones << p);
    d[l] = T((b[l] & ~field) | (p >= bits ? T{0} : T((a[l] << p) & field)));
  }
}

/// lop3 d, a, b, c, table: bit i of d is bit (a_i, b_i, c_i) of the table.
void lop3(std::byte* r, const Operands& o, Mask mask) {
  u32* d = at<u32>(r, o.d);
  const u32 *a = at<u32>(r, o.a), *b = at<u32>(r, o.b), *c = at<u32>(r, o.c);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const u32 x = a[l], y = b[l], z = c[l], t = o.immediate;
    u32 v = 0;
    for (u32 i = 0; i < 8; ++i)
      if (t >> i & 1) v |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
    d[l] = v;
  }
}

template <bool SignedA, bool SignedB>
constexpr auto dp4a = [](u32 a, u32 b, u32 c) {
  for (int i = 0; i < 4; ++i) {
    const u32 x = a >> (8 * i) & 0xff, y = b >> (8 * i) & 0xff;
    c += (SignedA ? u32(s32(s8(x))) : x) * (SignedB ? u32(s32(s8(y))) : y);
  }
  return c;
};

/// dp2a: two 16-bit elements of a with the lower or upper two bytes of b.
template <bool SignedA, bool SignedB, bool Upper>
constexpr auto dp2a = [](u32 a, u32 b, u32 c) {
  for (int i = 0; i < 2; ++i) {
    const u32 x = a >> (16 * i) & 0xffff, y = b >> (8 * i + 16 * Upper) & 0xff;
    c += (SignedA ? u32(s32(s16(x))) : x) * (SignedB ? u32(s32(s8(y))) : y);
  }
  return c;
};

// --- extended precision (PTX ISA 9.7.2): the carry flag goes in and out --------------------------------------------------

/// Add, sub, mad.lo and mad.hi with carry. In: uses CC.CF; Out: sets it.
enum class Ext { add, sub, mad_lo, mad_hi };
template <Ext what, bool In, bool Out, class T>
void extended(std::byte* r, const Operands& o, Mask mask) {
  T* d = at<T>(r, o.d);
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b), *c = at<T>(r, o.c);
  Mask& carry = *at<Mask>(r, carry_register);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const unsigned cf = In ? carry >> l & 1 : 0;
    unsigned __int128 wide;
    if constexpr (what == Ext::add)
      wide = static_cast<unsigned __int128>(a[l]) + b[l] + cf;
    else if constexpr (what == Ext::sub)
      wide = static_cast<unsigned __int128>(a[l]) - b[l] - cf;
    else if constexpr (what == Ext::mad_lo)
      wide = static_cast<unsigned __int128>(mul_lo(a[l], b[l])) + c[l] + cf;
    else
      wide = static_cast<unsigned __int128>(mul_hi(a[l], b[l])) + c[l] + cf;
    const bool out = wide >> (8 * sizeof(T)) & 1;  // carry, or borrow
    d[l] = static_cast<T>(wide);
    if (Out) carry = (carry & ~(1U << l)) | Mask{out} << l;
  }
}

template <class U, class... Names>
void extended_for(Table& t, Names... names) {
  const auto put = [&]<Ext what>(const std::string& base, const std::string& half, const std::string& type) {
    const uint8_t w = width<U>, c = what == Ext::mad_lo || what == Ext::mad_hi ? w : 0;
    t[base + half + ".cc." + type] = {extended<what, false, true, U>, Class::integer, w, w, w, c, 0};
    t[base + "c" + half + ".cc." + type] = {extended<what, true, true, U>, Class::integer, w, w, w, c, 0};
    t[base + "c" + half + "." + type] = {extended<what, true, false, U>, Class::integer, w, w, w, c, 0};
  };
  for (const char* type : {names...}) {
    put.template operator()<Ext::add>("add", "", type);
    put.template operator()<Ext::sub>("sub", "", type);
    put.template operator()<Ext::mad_lo>("mad", ".lo", type);
    if (type[0] == 'u') put.template operator()<Ext::mad_hi>("mad", ".hi", type);
  }
}

// --- floating point (PTX ISA 9.7.3, 9.7.4) -------------------------------------------------------------------------------

/// A sum that is zero is +0, and -0 where rounding goes down; that of zeros of one sign keeps it (IEEE 754, 6.3).
template <Round round>
f32 rounded_sum(f64 a, f64 b) {
  const f64 sum = add_odd(a, b);
  if (round == Round::down && sum == 0 && (std::signbit(a) || std::signbit(b))) return -0.0F;
  return to_float(sum, round);
}
template <Round round>
constexpr auto fma_to = [](f32 a, f32 b, f32 c) { return rounded_sum<round>(f64(a) * b, c); };  // an exact product
template <Round round>
constexpr auto add_to = [](f32 a, f32 b) { return rounded_sum<round>(a, b); };
template <Round round>
constexpr auto sub_to = [](f32 a, f32 b) { return rounded_sum<round>(a, -f64(b)); };
template <Round round>
constexpr auto mul_to = [](f32 a, f32 b) { return to_float(double(a) * double(b), round); };

/// f in one of the CPU's own rounding modes: for what has no narrower exact result to round.
template <Round round, auto f>
constexpr auto in_mode = []<class T>(T a, auto... rest) -> T {
  constexpr int mode = round == Round::zero   ? FE_TOWARDZERO
                       : round == Round::down ? FE_DOWNWARD
                       : round == Round::up   ? FE_UPWARD
                                              : FE_TONEAREST;
  if constexpr (round == Round::nearest) return f(a, rest...);
  std::fesetround(mode);
  volatile T first = a;  // volatile: the compiler takes the mode for constant
  const volatile T result = f(T(first), rest...);
  std::fesetround(FE_TONEAREST);
  return result;
};

constexpr auto fadd = []<class T>(T a, T b) -> T {
  if constexpr (is_half<T>)
    return T::from(add_odd(a.value(), b.value()));
  else
    return a + b;
};
constexpr auto fsub = []<class T>(T a, T b) -> T {
  if constexpr (is_half<T>)
    return T::from(add_odd(a.value(), -b.value()));
  else
    return a - b;
};
constexpr auto fmul = []<class T>(T a, T b) -> T {
  if constexpr (is_half<T>)
    return T::from(a.value() * b.value());
  else
    return a * b;
};
constexpr auto ffma = []<class T>(T a, T b, T c) -> T {
  if constexpr (is_half<T>)
    return T::from(fma_odd(a.value(), b.value(), c.value()));
  else
    return std::fma(a, b, c);
};
constexpr auto fdiv = []<class T>(T a, T b) -> T { return a / b; };
constexpr auto fsqrt = []<class T>(T a) -> T { return std::sqrt(a); };
constexpr auto frcp = []<class T>(T a) -> T { return T(1) / a; };

// min and max: of a NaN and a number, the number; -0 is less than +0. With .NaN: the NaN.
template <bool nan>
constexpr auto fmin_ = []<class T>(T a, T b) -> T {
  if constexpr (is_half<T>) {
    const double x = a.value(), y = b.value();
    if (std::isnan(x) || std::isnan(y))
      return nan || (std::isnan(x) && std::isnan(y)) ? T{0x7fff} : std::isnan(x) ? b : a;
    return x < y || (x == y && std::signbit(x)) ? a : b;
  } else {
    if (nan && (a != a || b != b)) return std::numeric_limits<T>::quiet_NaN();
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};
template <bool nan>
constexpr auto fmax_ = []<class T>(T a, T b) -> T {
  if constexpr (is_half<T>) {
    const double x = a.value(), y = b.value();
    if (std::isnan(x) || std::isnan(y))
      return nan || (std::isnan(x) && std::isnan(y)) ? T{0x7fff} : std::isnan(x) ? b : a;
    return x > y || (x == y && !std::signbit(x)) ? a : b;
  } else {
    if (nan && (a != a || b != b)) return std::numeric_limits<T>::quiet_NaN();
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};
constexpr auto fabs_ = []<class T>(T a) -> T {
  if constexpr (is_half<T>)
    return T{static_cast<uint16_t>(a.bits & 0x7fff)};
  else
    return std::fabs(a);
};
constexpr auto fneg = []<class T>(T a) -> T {
  if constexpr (is_half<T>)
    return T{static_cast<uint16_t>(a.bits ^ 0x8000)};
  else
    return -a;
};
constexpr auto copysign_ = []<class T>(T a, T b) -> T { return std::copysign(b, a); };  // sign of a, rest of b

/// Both halves of a pair.
template <auto f>
constexpr auto both = []<class T, class... Ts>(T a, Ts... rest) -> T {
  return {f(a.low, rest.low...), f(a.high, rest.high...)};
};

/// .ftz: subnormal inputs and results are zero with their sign.
template <auto f>
constexpr auto ftz = [](auto... x) { return flush(f(flush(x)...)); };
/// .sat: the result is clamped to [0, 1], NaN to 0.
template <auto f>
constexpr auto saturate = []<class T>(T a, auto... rest) -> T {
  const T v = f(a, rest...);
  if constexpr (is_half<T>)
    return v.value() > 0 ? (v.value() < 1 ? v : T::from(1)) : T{0};
  else
    return v > 0 ? (v < 1 ? v : T(1)) : T(0);
};
/// .relu: negative results are 0, NaN stays.
template <auto f>
constexpr auto relu = []<class T>(T a, auto... rest) -> T {
  const T v = f(a, rest...);
  return v.value() < 0 || v.bits == 0x8000 ? T{0} : v;
};

/// Approximations (.approx): computed in double precision and rounded, so closer than the hardware's.
// div.approx (9.7.3.8): beyond 2^126 the divisor's reciprocal is taken for 0.
constexpr auto div_approx = [](f32 a, f32 b) {
  return std::fabs(b) > 0x1p126F && std::isfinite(b) ? a * std::copysign(0.0F, b) : a / b;
};
constexpr auto ex2 = [](f32 a) { return f32(std::exp2(double(a))); };
constexpr auto lg2 = [](f32 a) { return f32(std::log2(double(a))); };
constexpr auto sin_ = [](f32 a) { return f32(std::sin(double(a))); };
constexpr auto cos_ = [](f32 a) { return f32(std::cos(double(a))); };
constexpr auto tanh_ = [](f32 a) { return f32(std::tanh(double(a))); };
/// f of a single, for 16-bit formats.
template <auto f>
constexpr auto by_single = []<class T>(T a) -> T { return T::from(f(f32(a.value()))); };
constexpr auto rsqrt = []<class T>(T a) { return T(1 / std::sqrt(double(a))); };
// rcp.approx.ftz.f64 (9.7.3.13): the upper 32 bits of the result alone.
constexpr auto rcp_upper = [](f64 a) {
  const auto flush = [](f64 x) { return std::fabs(x) < std::numeric_limits<f64>::min() ? std::copysign(0.0, x) : x; };
  return flush(std::bit_cast<f64>(std::bit_cast<u64>(1 / flush(a)) & 0xffffffff00000000));
};

// --- comparison and selection (PTX ISA 9.7.6) ----------------------------------------------------------------------------

template <class T>
auto number(T x) {
  if constexpr (is_half<T>)
    return x.value();
  else
    return x;
}
template <class T>
bool is_nan(T x) {
  return number(x) != number(x);
}

constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return (a < b) | (a > b); };  // false for NaN; "neu" is true
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
/// The unordered comparisons are true where an operand is NaN.
template <auto f>
constexpr auto unordered = [](auto a, auto b) { return f(a, b) | (a != a) | (b != b); };
constexpr auto num = [](auto a, auto b) { return (a == a) & (b == b); };
constexpr auto nan = [](auto a, auto b) { return (a != a) | (b != b); };

template <auto f, class T>
Mask compare(const std::byte* r, const Operands& o) {
  const T *a = reinterpret_cast<const T*>(r + o.a), *b = reinterpret_cast<const T*>(r + o.b);
  Mask result = 0;
  for (int l = 0; l < warp_size; ++l) result |= Mask{static_cast<bool>(f(number(a[l]), number(b[l])))} << l;
  return result;
}

/// setp p|q, a, b, c: p = cmp OP c, q = !cmp OP c. q is at o.immediate, 0: none.
template <auto f, class T>
void setp(std::byte* r, const Operands& o, Mask mask) {
  Mask p = compare<f, T>(r, o), q = ~p;
  if (o.flags) {
    const Mask c = *at<Mask>(r, o.extra) ^ (o.flags & flag_not_c ? all_lanes : 0);
    const int combine = o.flags & flag_combine;
    p = combine == flag_and ? p & c : combine == flag_or ? p | c : p ^ c;
    q = combine == flag_and ? q & c : combine == flag_or ? q | c : q ^ c;
  }
  Mask& d = *at<Mask>(r, o.d);
  d = (d & ~mask) | (p & mask);
  if (o.immediate) {
    Mask& second = *at<Mask>(r, o.immediate);
    second = (second & ~mask) | (q & mask);
  }
}

/// set.CMP.dtype.stype: all ones (integer) or 1.0 where true.
template <auto f, class D, class T>
void set(std::byte* r, const Operands& o, Mask mask) {
  const Mask p = compare<f, T>(r, o);
  D* d = at<D>(r, o.d);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const bool on = p >> l & 1;
    if constexpr (is_half<D>)
      d[l] = D::from(on);
    else if constexpr (std::is_floating_point_v<D>)
      d[l] = on;
    else
      d[l] = on ? static_cast<D>(-1) : D{0};
  }
}

/// testp: what kind of number a is, of testp_kinds.
constexpr const char* testp_kinds[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
template <int kind, class T>
void testp(std::byte* r, const Operands& o, Mask mask) {
  const T* a = at<T>(r, o.a);
  Mask result = 0;
  for (int l = 0; l < warp_size; ++l) {
    const int c = std::fpclassify(a[l]);
    const bool is[] = {
        c != FP_INFINITE && c != FP_NAN, c == FP_INFINITE, c != FP_NAN, c == FP_NAN, c == FP_NORMAL, c == FP_SUBNORMAL};
    result |= Mask{is[kind]} << l;
  }
  Mask& d = *at<Mask>(r, o.d);
  d = (d & ~mask) | (result & mask);
}

/// slct: a where c >= 0, else b (also where c is NaN).
constexpr auto slct = []<class T>(T a, T b, auto c) { return c >= 0 ? a : b; };
constexpr auto slct_ftz = []<class T>(T a, T b, f32 c) { return flush(c) >= 0 ? a : b; };

/// set of pairs: each half on its own, 1.0 or all ones.
template <auto f, class D, class T>
void set_pair(std::byte* r, const Operands& o, Mask mask) {
  D* d = at<D>(r, o.d);
  const Pair<T>*a = at<Pair<T>>(r, o.a), *b = at<Pair<T>>(r, o.b);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const bool low = f(a[l].low.value(), b[l].low.value()), high = f(a[l].high.value(), b[l].high.value());
    if constexpr (is_pair<D>)
      d[l] = {T::from(low), T::from(high)};
    else
      d[l] = (low ? 0xffffU : 0) | (high ? 0xffff0000U : 0);
  }
}

template <class T>
void selp(std::byte* r, const Operands& o, Mask mask) {
  T* d = at<T>(r, o.d);
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b);
  const Mask p = *at<Mask>(r, o.c);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int l = 0; l < warp_size; ++l) d[l] = p >> l & 1 ? a[l] : b[l];
  } else {
    for (int l = 0; l < warp_size; ++l)
      if (mask >> l & 1) d[l] = p >> l & 1 ? a[l] : b[l];
  }
}

template <auto f>
void predicate_binary(std::byte* r, const Operands& o, Mask mask) {
  Mask& d = *at<Mask>(r, o.d);
  d = (d & ~mask) | (f(*at<Mask>(r, o.a), *at<Mask>(r, o.b)) & mask);
}
template <auto f>
void predicate_unary(std::byte* r, const Operands& o, Mask mask) {
  Mask& d = *at<Mask>(r, o.d);
  d = (d & ~mask) | (f(*at<Mask>(r, o.a)) & mask);
}

template <class T, class... Names>
void compare_for(Table& t, Names... types) {  // of integers and floating point
  const auto put = [&]<auto f>(const char* op) {
    for (const char* type : {types...}) {
      t[std::string("setp.") + op + "." + type] = {setp<f, T>, Class::predicate, predicate, width<T>, width<T>, 0, 0};
      if constexpr (std::is_same_v<T, f32>)
        t[std::string("setp.") + op + ".ftz." + type] = {setp<[](f32 a, f32 b) { return f(flush(a), flush(b)); }, T>,
                                                         Class::predicate,
                                                         predicate,
                                                         width<T>,
                                                         width<T>,
                                                         0,
                                                         0};
      const std::string set_op = std::string("set.") + op;
      if constexpr (std::is_same_v<T, f32>) {
        constexpr auto flushed = [](f32 a, f32 b) { return f(flush(a), flush(b)); };
        t[set_op + ".ftz.u32." + type] = {set<flushed, u32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
        t[set_op + ".ftz.s32." + type] = {set<flushed, s32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
        t[set_op + ".ftz.f32." + type] = {set<flushed, f32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
      }
      t[set_op + ".u32." + type] = {set<f, u32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
      t[set_op + ".s32." + type] = {set<f, s32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
      t[set_op + ".f32." + type] = {set<f, f32, T>, Class::predicate, 4, width<T>, width<T>, 0, 0};
      if constexpr (is_half<T>) {
        t[set_op + "." + type + "." + type] = {set<f, T, T>, Class::predicate, 2, 2, 2, 0, 0};
        const std::string pair = std::string(type) + "x2";
        t[set_op + "." + pair + "." + pair] = {set_pair<f, Pair<T>, T>, Class::predicate, 4, 4, 4, 0, 0};
        t[set_op + ".u32." + pair] = {set_pair<f, u32, T>, Class::predicate, 4, 4, 4, 0, 0};
      }
    }
  };
  put.template operator()<eq>("eq");
  if constexpr (std::is_integral_v<T>)
    put.template operator()<[](auto a, auto b) { return a != b; }>("ne");
  else
    put.template operator()<ne>("ne");
  put.template operator()<lt>("lt");
  put.template operator()<le>("le");
  put.template operator()<gt>("gt");
  put.template operator()<ge>("ge");
  if constexpr (std::is_unsigned_v<T>) {  // lower, same, higher: other names for unsigned integers
    put.template operator()<lt>("lo");
    put.template operator()<le>("ls");
    put.template operator()<gt>("hi");
    put.template operator()<ge>("hs");
  }
  if constexpr (!std::is_integral_v<T>) {
    put.template operator()<unordered<eq>>("equ");
    put.template operator()<unordered<ne>>("neu");
    put.template operator()<unordered<lt>>("ltu");
    put.template operator()<unordered<le>>("leu");
    put.template operator()<unordered<gt>>("gtu");
    put.template operator()<unordered<ge>>("geu");
    put.template operator()<num>("num");
    put.template operator()<nan>("nan");
  }
}

// --- conversion (PTX ISA 9.7.9.22, cvt) ----------------------------------------------------------------------------------

enum class Integral { none, nearest, zero, down, up };  // .rni .rzi .rmi .rpi

inline double to_integral(double x, Integral mode) {
  switch (mode) {
    case Integral::nearest:
      return std::nearbyint(x);
    case Integral::zero:
      return std::trunc(x);
    case Integral::down:
      return std::floor(x);
    case Integral::up:
      return std::ceil(x);
    case Integral::none:
      break;
  }
  return x;
}

/// One value. Float to integer clamps to the range, NaN to 0 (from f64 or to 64 bits: the top bit); integer to integer wraps, or
/// clamps with .sat; integer to float rounds.
template <class D, class A, Round round, Integral integral, bool sat>
D convert(A a);

/// .ftz: of an operand or a result that is f32.
template <class D, class A, Round round, Integral integral, bool sat>
D convert_ftz(A a) {
  if constexpr (std::is_same_v<A, f32>) a = flush(a);
  D d = convert<D, A, round, integral, sat>(a);
  if constexpr (std::is_same_v<D, f32>) d = flush(d);
  return d;
}

template <class D, class A, Round round, Integral integral, bool sat>
D convert(A a) {
  constexpr bool from_int = std::is_integral_v<A>, to_int = std::is_integral_v<D>;
  if constexpr (from_int && to_int) {
    if constexpr (sat) {
      const __int128 v = a, low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
      return static_cast<D>(v < low ? low : v > high ? high : v);
    } else {
      return static_cast<D>(a);
    }
  } else if constexpr (to_int) {
    const double x = to_integral(number(a), integral);
    if (std::isnan(x))
      return sizeof(D) == 8 || std::is_same_v<A, f64> ? static_cast<D>(u64{1} << (8 * sizeof(D) - 1)) : D{0};
    constexpr double high = static_cast<double>(std::numeric_limits<D>::max());
    constexpr double low = static_cast<double>(std::numeric_limits<D>::min());
    return x >= high ? std::numeric_limits<D>::max() : x <= low ? std::numeric_limits<D>::min() : static_cast<D>(x);
  } else if constexpr (from_int) {
    // A 64-bit integer is split so that its sum in double is exact or rounded to odd.
    if (sat) a = std::clamp<A>(a, 0, 1);
    const auto exact = [&]() -> double {
      if constexpr (sizeof(A) < 8)
        return double(a);
      else
        return add_odd(double(static_cast<std::conditional_t<std::is_signed_v<A>, s32, u32>>(a >> 32)) * 0x1p32,
                       double(u32(a)));
    };
    if constexpr (is_half<D>)
      return D::from(exact(), round);
    else if constexpr (std::is_same_v<D, f32>)
      return to_float(exact(), round);
    else {
      static_assert(std::is_same_v<D, f64>);
      return static_cast<f64>(a);  // in the current mode: to nearest
    }
  } else {
    double x = number(a);
    if constexpr (integral != Integral::none) x = to_integral(x, integral);
    if constexpr (sat) x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
    if constexpr (is_half<D>)
      return D::from(x, round);
    else if constexpr (std::is_same_v<D, f32>)
      return canonical(to_float(x, round));
    else
      return x;
  }
}

uint64_t read_lane(const std::byte* r, uint32_t offset, int bytes, int lane) {
  uint64_t value = 0;
  std::memcpy(&value, r + offset + size_t(lane) * bytes, bytes);
  return value;
}
void write_lane(std::byte* r, uint32_t offset, int bytes, int lane, uint64_t value) {
  std::memcpy(r + offset + size_t(lane) * bytes, &value, bytes);
}

/// The registers may be wider than the types: the source's low bits count, the result is extended by its sign.
template <auto f, class D, class A>
void cvt(std::byte* r, const Operands& o, Mask mask) {
  if (o.d_bytes == sizeof(D) && o.a_bytes == sizeof(A)) return unary<f, D, A>(r, o, mask);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const uint64_t raw = read_lane(r, o.a, o.a_bytes, l);
    A a;
    std::memcpy(static_cast<void*>(&a), &raw, sizeof(A));
    const D d = f(a);
    uint64_t wide = 0;
    if constexpr (std::is_integral_v<D> && std::is_signed_v<D>)
      wide = static_cast<uint64_t>(static_cast<int64_t>(d));
    else
      std::memcpy(&wide, &d, sizeof(D));
    write_lane(r, o.d, o.d_bytes, l, wide);
  }
}

template <class D, class A, Round round = Round::nearest, Integral integral = Integral::none>
void cvt_one(Table& t, const std::string& modifiers) {
  const std::string types = std::string(".") + type_name<D> + "." + type_name<A>;
  t["cvt" + modifiers + types] = {
      cvt<convert<D, A, round, integral, false>, D, A>, Class::convert, width<D>, width<A>, 0, 0, 0};
  if constexpr (std::is_integral_v<D> || std::is_same_v<D, f32>)
    t["cvt" + modifiers + ".sat" + types] = {
        cvt<convert<D, A, round, integral, true>, D, A>, Class::convert, width<D>, width<A>, 0, 0, 0};
  if constexpr ((std::is_same_v<D, f32> && !std::is_integral_v<A>) || std::is_same_v<A, f32>) {
    t["cvt" + modifiers + ".ftz" + types] = {
        cvt<convert_ftz<D, A, round, integral, false>, D, A>, Class::convert, width<D>, width<A>, 0, 0, 0};
    if constexpr (std::is_same_v<D, f32>)
      t["cvt" + modifiers + ".ftz.sat" + types] = {
          cvt<convert_ftz<D, A, round, integral, true>, D, A>, Class::convert, width<D>, width<A>, 0, 0, 0};
  }
}
template <class D, class A>
void cvt_integral(Table& t) {
  cvt_one<D, A, Round::nearest, Integral::nearest>(t, ".rni");
  cvt_one<D, A, Round::nearest, Integral::zero>(t, ".rzi");
  cvt_one<D, A, Round::nearest, Integral::down>(t, ".rmi");
  cvt_one<D, A, Round::nearest, Integral::up>(t, ".rpi");
}
template <class D, class A>
void cvt_rounded(Table& t) {
  cvt_one<D, A, Round::nearest>(t, ".rn");
  if constexpr (!std::is_same_v<D, f64>) {
    cvt_one<D, A, Round::zero>(t, ".rz");
    cvt_one<D, A, Round::down>(t, ".rm");
    cvt_one<D, A, Round::up>(t, ".rp");
  }
}
template <class... Ts>
struct Types {};
template <class D, class... As>
void cvt_integers(Table& t, Types<As...>) {
  (cvt_one<D, As>(t, ""), ...);
}
template <class... Ds, class All>
void cvt_all_integers(Table& t, Types<Ds...>, All all) {
  (cvt_integers<Ds>(t, all), ...);
}
template <class F, class... Is>
void cvt_int_float(Table& t, Types<Is...>) {
  (cvt_rounded<F, Is>(t), ...);
  (cvt_integral<Is, F>(t), ...);
}

/// A single to a 16-bit format; .relu: negative becomes 0; .satfinite: what is too large becomes the largest finite.
template <class T, Round round, bool relu, bool satfinite>
constexpr auto narrow = [](f32 a) -> T {
  T d = T::from(a, round);
  const uint16_t infinity = T::from(INFINITY).bits, sign = d.bits & 0x8000;
  if (satfinite && (d.bits & 0x7fff) == infinity) d.bits = static_cast<uint16_t>(sign | (infinity - 1));
  if (relu && sign && a == a) d.bits = 0;
  return d;
};
/// cvt.rn.f16x2.f32 d, a, b: a into the upper half, b into the lower.
template <auto f>
constexpr auto both_of = [](f32 a, f32 b) {
  return Pair<decltype(f(a))>{f(b), f(a)};
};

template <class T>
void cvt_narrow(Table& t) {
  const auto put = [&]<Round round, bool relu, bool satfinite>(const std::string& modifiers) {
    constexpr auto f = narrow<T, round, relu, satfinite>;
    t["cvt" + modifiers + "." + type_name<T> + ".f32"] = {cvt<f, T, f32>, Class::convert, 2, 4, 0, 0, 0};
    t["cvt" + modifiers + "." + type_name<T> + "x2.f32"] = {
        binary<both_of<f>, Pair<T>, f32, f32>, Class::convert, 4, 4, 4, 0, 0};
  };
  const auto rounded = [&]<Round round>(const std::string& name) {
    put.template operator()<round, false, false>(name);
    put.template operator()<round, true, false>(name + ".relu");
    put.template operator()<round, false, true>(name + ".satfinite");
    put.template operator()<round, true, true>(name + ".relu.satfinite");
  };
  rounded.template operator()<Round::nearest>(".rn");
  rounded.template operator()<Round::zero>(".rz");
}

/// cvt to tf32: 10 explicit significand bits, the rest is zero. `half`: what is added to round, before the cut.
template <auto half, bool relu>
constexpr auto tf32 = [](u32 a) -> u32 {
  if ((a & 0x7fffffff) > 0x7f800000) return 0x7fffffff;  // NaN
  if (relu && a >> 31) return 0;
  return (a & 0x7fffffff) == 0x7f800000 ? a : (a + half(a)) & ~0x1fffU;
};
constexpr auto ties_away = [](u32) -> u32 { return 0x1000; };
constexpr auto ties_even = [](u32 a) -> u32 { return 0xfff + (a >> 13 & 1); };
constexpr auto cut_off = [](u32) -> u32 { return 0; };

// --- the table -----------------------------------------------------------------------------------------------------------

template <auto f, class T, class A, class B>
LaneInstruction entry2(Class c = class_of<A>(), uint8_t flops = 0) {
  return {binary<f, T, A, B>, c, width<T>, width<A>, width<B>, 0, flops};
}

Table make_table() {
  Table t;
  // 9.7.1 Integer arithmetic
  binary_for<add, s16, u16, s32, u32, s64, u64>(t, "add");
  binary_for<sub, s16, u16, s32, u32, s64, u64>(t, "sub");
  binary_for<mul_lo, s16, u16, s32, u32, s64, u64>(t, "mul.lo");
  binary_for<mul_hi, s16, u16, s32, u32, s64, u64>(t, "mul.hi");
  t["mul.wide.s16"] = entry2<mul_wide, s32, s16, s16>();
  t["mul.wide.u16"] = entry2<mul_wide, u32, u16, u16>();
  t["mul.wide.s32"] = entry2<mul_wide, s64, s32, s32>();
  t["mul.wide.u32"] = entry2<mul_wide, u64, u32, u32>();
  ternary_for<mad_lo, s16, u16, s32, u32, s64, u64>(t, "mad.lo");
  ternary_for<mad_hi, s16, u16, s32, u32, s64, u64>(t, "mad.hi");
  t["mad.wide.s16"] = {ternary<mad_wide, s32, s16, s16, s32>, Class::integer, 4, 2, 2, 4, 0};
  t["mad.wide.u16"] = {ternary<mad_wide, u32, u16, u16, u32>, Class::integer, 4, 2, 2, 4, 0};
  t["mad.wide.s32"] = {ternary<mad_wide, s64, s32, s32, s64>, Class::integer, 8, 4, 4, 8, 0};
  t["mad.wide.u32"] = {ternary<mad_wide, u64, u32, u32, u64>, Class::integer, 8, 4, 4, 8, 0};
  ternary_for<sad, s16, u16, s32, u32, s64, u64>(t, "sad");
  binary_for<div_int, s16, u16, s32, u32, s64, u64>(t, "div");
  binary_for<rem_int, s16, u16, s32, u32, s64, u64>(t, "rem");
  unary_for<abs_int, s16, s32, s64>(t, "abs");
  unary_for<neg_int, s16, s32, s64>(t, "neg");
  binary_for<min_int, s16, u16, s32, u32, s64, u64>(t, "min");
  binary_for<max_int, s16, u16, s32, u32, s64, u64>(t, "max");
  t["popc.b32"] = {unary<popc, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["popc.b64"] = {unary<popc, u32, u64>, Class::integer, 4, 8, 0, 0, 0};
  t["clz.b32"] = {unary<clz, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["clz.b64"] = {unary<clz, u32, u64>, Class::integer, 4, 8, 0, 0, 0};
  t["bfind.u32"] = {unary<bfind, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["bfind.s32"] = {unary<bfind, u32, s32>, Class::integer, 4, 4, 0, 0, 0};
  t["bfind.u64"] = {unary<bfind, u32, u64>, Class::integer, 4, 8, 0, 0, 0};
  t["bfind.s64"] = {unary<bfind, u32, s64>, Class::integer, 4, 8, 0, 0, 0};
  t["bfind.shiftamt.u32"] = {unary<bfind_shift, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["bfind.shiftamt.s32"] = {unary<bfind_shift, u32, s32>, Class::integer, 4, 4, 0, 0, 0};
  t["bfind.shiftamt.u64"] = {unary<bfind_shift, u32, u64>, Class::integer, 4, 8, 0, 0, 0};
  t["bfind.shiftamt.s64"] = {unary<bfind_shift, u32, s64>, Class::integer, 4, 8, 0, 0, 0};
  t["brev.b32"] = {unary<brev, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["brev.b64"] = {unary<brev, u64, u64>, Class::integer, 8, 8, 0, 0, 0};
  t["bfe.u32"] = {ternary<bfe, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["bfe.s32"] = {ternary<bfe, s32, s32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["bfe.u64"] = {ternary<bfe, u64, u64, u32, u32>, Class::integer, 8, 8, 4, 4, 0};
  t["bfe.s64"] = {ternary<bfe, s64, s64, u32, u32>, Class::integer, 8, 8, 4, 4, 0};
  t["bfi.b32"] = {bfi<u32>, Class::integer, 4, 4, 4, 4, 0};
  t["bfi.b64"] = {bfi<u64>, Class::integer, 8, 8, 8, 4, 0};
  t["dp4a.s32.s32"] = {ternary<dp4a<true, true>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["dp4a.u32.u32"] = {ternary<dp4a<false, false>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["dp4a.s32.u32"] = {ternary<dp4a<true, false>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["dp4a.u32.s32"] = {ternary<dp4a<false, true>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  const auto dp2a_for = [&]<bool a, bool b>(const std::string& types) {
    t["dp2a.lo" + types] = {ternary<dp2a<a, b, false>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
    t["dp2a.hi" + types] = {ternary<dp2a<a, b, true>, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  };
  dp2a_for.template operator()<true, true>(".s32.s32");
  dp2a_for.template operator()<true, false>(".s32.u32");
  dp2a_for.template operator()<false, true>(".u32.s32");
  dp2a_for.template operator()<false, false>(".u32.u32");
  t["fns.b32"] = {ternary<fns, u32, u32, u32, s32>, Class::integer, 4, 4, 4, 4, 0};
  // 9.7.2 Extended precision
  extended_for<u32>(t, "u32", "s32");
  extended_for<u64>(t, "u64", "s64");

  // 9.7.3 Floating point. The default of add, sub and mul is .rn; these three may then be fused, which we do not do.
  const auto rounded = [&]<Round round, auto sum, auto difference, auto product, auto fused>(const std::string& name) {
    const auto put = [&]<auto f>(const std::string& base, uint8_t flops) {
      binary_for<f, f32>(t, base, flops);
      binary_for<ftz<f>, f32>(t, base + ".ftz", flops);
      binary_for<saturate<f>, f32>(t, base + ".sat", flops);
      binary_for<saturate<ftz<f>>, f32>(t, base + ".ftz.sat", flops);
    };
    put.template operator()<sum>("add" + name, 1);
    put.template operator()<difference>("sub" + name, 1);
    put.template operator()<product>("mul" + name, 1);
    binary_for<in_mode<round, fadd>, f64>(t, "add" + name, 1);
    binary_for<in_mode<round, fsub>, f64>(t, "sub" + name, 1);
    binary_for<in_mode<round, fmul>, f64>(t, "mul" + name, 1);
    if (name.empty()) return;  // these name their rounding
    for (const char* base : {"fma", "mad"}) {
      ternary_for<fused, f32>(t, base + name, 2);
      ternary_for<ftz<fused>, f32>(t, base + name + ".ftz", 2);
      ternary_for<saturate<fused>, f32>(t, base + name + ".sat", 2);
      ternary_for<saturate<ftz<fused>>, f32>(t, base + name + ".ftz.sat", 2);
      ternary_for<in_mode<round, ffma>, f64>(t, base + name, 2);
    }
    binary_for<in_mode<round, fdiv>, f32, f64>(t, "div" + name, 1);
    unary_for<in_mode<round, frcp>, f32, f64>(t, "rcp" + name, 1);
    unary_for<in_mode<round, fsqrt>, f32, f64>(t, "sqrt" + name, 1);
    binary_for<ftz<in_mode<round, fdiv>>, f32>(t, "div" + name + ".ftz", 1);
    unary_for<ftz<in_mode<round, frcp>>, f32>(t, "rcp" + name + ".ftz", 1);
    unary_for<ftz<in_mode<round, fsqrt>>, f32>(t, "sqrt" + name + ".ftz", 1);
  };
  const auto directed = [&]<Round round>(const std::string& name) {
    rounded.template operator()<round, add_to<round>, sub_to<round>, mul_to<round>, fma_to<round>>(name);
  };
  directed.template operator()<Round::zero>(".rz");
  directed.template operator()<Round::down>(".rm");
  directed.template operator()<Round::up>(".rp");
  for (const char* name : {"", ".rn"}) rounded.template operator()<Round::nearest, fadd, fsub, fmul, ffma>(name);
  binary_for<div_approx, f32>(t, "div.approx", 1);
  binary_for<ftz<div_approx>, f32>(t, "div.approx.ftz", 1);
  binary_for<fdiv, f32>(t, "div.full", 1);
  binary_for<ftz<fdiv>, f32>(t, "div.full.ftz", 1);
  unary_for<frcp, f32>(t, "rcp.approx", 1);
  unary_for<ftz<frcp>, f32>(t, "rcp.approx.ftz", 1);
  unary_for<rcp_upper, f64>(t, "rcp.approx.ftz", 1);
  unary_for<fsqrt, f32>(t, "sqrt.approx", 1);
  unary_for<ftz<fsqrt>, f32>(t, "sqrt.approx.ftz", 1);
  unary_for<rsqrt, f32, f64>(t, "rsqrt.approx", 1);
  unary_for<ftz<rsqrt>, f32>(t, "rsqrt.approx.ftz", 1);
  unary_for<ex2, f32>(t, "ex2.approx");
  unary_for<ftz<ex2>, f32>(t, "ex2.approx.ftz");
  unary_for<lg2, f32>(t, "lg2.approx");
  unary_for<ftz<lg2>, f32>(t, "lg2.approx.ftz");
  unary_for<sin_, f32>(t, "sin.approx");
  unary_for<cos_, f32>(t, "cos.approx");
  unary_for<ftz<sin_>, f32>(t, "sin.approx.ftz");
  unary_for<ftz<cos_>, f32>(t, "cos.approx.ftz");
  unary_for<tanh_, f32>(t, "tanh.approx");
  unary_for<by_single<tanh_>, f16, bf16>(t, "tanh.approx");
  unary_for<both<by_single<tanh_>>, f16x2, bf16x2>(t, "tanh.approx");
  unary_for<by_single<ex2>, f16>(t, "ex2.approx");
  unary_for<both<by_single<ex2>>, f16x2>(t, "ex2.approx");
  unary_for<ftz<by_single<ex2>>, bf16>(t, "ex2.approx.ftz");
  unary_for<both<ftz<by_single<ex2>>>, bf16x2>(t, "ex2.approx.ftz");
  unary_for<fabs_, f32, f64, f16, bf16>(t, "abs");
  unary_for<ftz<fabs_>, f32>(t, "abs.ftz");
  unary_for<fneg, f32, f64, f16, bf16>(t, "neg");
  unary_for<ftz<fneg>, f32>(t, "neg.ftz");
  unary_for<both<fabs_>, f16x2, bf16x2>(t, "abs");
  unary_for<both<fneg>, f16x2, bf16x2>(t, "neg");
  binary_for<fmin_<false>, f32, f64, f16, bf16>(t, "min");
  binary_for<fmax_<false>, f32, f64, f16, bf16>(t, "max");
  binary_for<ftz<fmin_<false>>, f32>(t, "min.ftz");
  binary_for<ftz<fmax_<false>>, f32>(t, "max.ftz");
  binary_for<fmin_<true>, f32, f16, bf16>(t, "min.NaN");
  binary_for<fmax_<true>, f32, f16, bf16>(t, "max.NaN");
  binary_for<ftz<fmin_<true>>, f32>(t, "min.ftz.NaN");
  binary_for<ftz<fmax_<true>>, f32>(t, "max.ftz.NaN");
  binary_for<both<fmin_<false>>, f16x2, bf16x2>(t, "min");
  binary_for<both<fmax_<false>>, f16x2, bf16x2>(t, "max");
  binary_for<both<fmin_<true>>, f16x2, bf16x2>(t, "min.NaN");
  binary_for<both<fmax_<true>>, f16x2, bf16x2>(t, "max.NaN");
  binary_for<copysign_, f32, f64>(t, "copysign");
  // 9.7.4 Half precision
  for (const char* round : {"", ".rn"}) {
    binary_for<fadd, f16, bf16>(t, std::string("add") + round, 1);
    binary_for<fsub, f16, bf16>(t, std::string("sub") + round, 1);
    binary_for<fmul, f16, bf16>(t, std::string("mul") + round, 1);
    binary_for<both<fadd>, f16x2, bf16x2>(t, std::string("add") + round, 1);
    binary_for<both<fsub>, f16x2, bf16x2>(t, std::string("sub") + round, 1);
    binary_for<both<fmul>, f16x2, bf16x2>(t, std::string("mul") + round, 1);
  }
  ternary_for<ffma, f16, bf16>(t, "fma.rn", 2);
  ternary_for<both<ffma>, f16x2, bf16x2>(t, "fma.rn", 2);
  ternary_for<relu<ffma>, f16, bf16>(t, "fma.rn.relu", 2);
  ternary_for<both<relu<ffma>>, f16x2, bf16x2>(t, "fma.rn.relu", 2);
  const auto half = [&]<auto f>(const std::string& base) {
    for (const char* round : {"", ".rn"}) {
      binary_for<ftz<f>, f16>(t, base + round + ".ftz", 1);
      binary_for<saturate<f>, f16>(t, base + round + ".sat", 1);
      binary_for<saturate<ftz<f>>, f16>(t, base + round + ".ftz.sat", 1);
      binary_for<both<ftz<f>>, f16x2>(t, base + round + ".ftz", 1);
      binary_for<both<saturate<f>>, f16x2>(t, base + round + ".sat", 1);
      binary_for<both<saturate<ftz<f>>>, f16x2>(t, base + round + ".ftz.sat", 1);
    }
  };
  half.template operator()<fadd>("add");
  half.template operator()<fsub>("sub");
  half.template operator()<fmul>("mul");
  ternary_for<ftz<ffma>, f16>(t, "fma.rn.ftz", 2);
  ternary_for<saturate<ffma>, f16>(t, "fma.rn.sat", 2);
  ternary_for<both<ftz<ffma>>, f16x2>(t, "fma.rn.ftz", 2);
  ternary_for<both<saturate<ffma>>, f16x2>(t, "fma.rn.sat", 2);

  // 9.7.6 Comparison and selection
  compare_for<s16>(t, "s16");
  compare_for<u16>(t, "u16", "b16");
  compare_for<s32>(t, "s32");
  compare_for<u32>(t, "u32", "b32");
  compare_for<s64>(t, "s64");
  compare_for<u64>(t, "u64", "b64");
  compare_for<f32>(t, "f32");
  compare_for<f64>(t, "f64");
  compare_for<f16>(t, "f16");
  compare_for<bf16>(t, "bf16");
  for (const char* type : {"b16", "u16", "s16"})
    t[std::string("selp.") + type] = {selp<u16>, Class::predicate, 2, 2, 2, predicate, 0};
  for (const char* type : {"b32", "u32", "s32", "f32"})
    t[std::string("selp.") + type] = {selp<u32>, Class::predicate, 4, 4, 4, predicate, 0};
  for (const char* type : {"b64", "u64", "s64", "f64"})
    t[std::string("selp.") + type] = {selp<u64>, Class::predicate, 8, 8, 8, predicate, 0};

  const auto slct_for = [&]<class T>(const char* type) {
    const std::string name = std::string(type);
    t["slct." + name + ".s32"] = {ternary<slct, T, T, T, s32>, Class::predicate, width<T>, width<T>, width<T>, 4, 0};
    t["slct." + name + ".f32"] = {ternary<slct, T, T, T, f32>, Class::predicate, width<T>, width<T>, width<T>, 4, 0};
    t["slct.ftz." + name + ".f32"] = {
        ternary<slct_ftz, T, T, T, f32>, Class::predicate, width<T>, width<T>, width<T>, 4, 0};
  };
  for (const char* type : {"b16", "u16", "s16"}) slct_for.template operator()<u16>(type);
  for (const char* type : {"b32", "u32", "s32", "f32"}) slct_for.template operator()<u32>(type);
  for (const char* type : {"b64", "u64", "s64", "f64"}) slct_for.template operator()<u64>(type);
  [&]<size_t... kind>(std::index_sequence<kind...>) {
    const auto put = [&](const char* name, LaneFunction of_f32, LaneFunction of_f64) {
      t[std::string("testp.") + name + ".f32"] = {of_f32, Class::predicate, predicate, 4, 0, 0, 0};
      t[std::string("testp.") + name + ".f64"] = {of_f64, Class::predicate, predicate, 8, 0, 0, 0};
    };
    (put(testp_kinds[kind], testp<kind, f32>, testp<kind, f64>), ...);
  }
  (std::make_index_sequence<std::size(testp_kinds)>{});

  // 9.7.8 Logic and shift
  const auto logic = [&]<auto f>(const std::string& name) {
    t[name + ".b16"] = {binary<f, u16, u16, u16>, Class::integer, 2, 2, 2, 0, 0};
    t[name + ".b32"] = {binary<f, u32, u32, u32>, Class::integer, 4, 4, 4, 0, 0};
    t[name + ".b64"] = {binary<f, u64, u64, u64>, Class::integer, 8, 8, 8, 0, 0};
    t[name + ".pred"] = {predicate_binary<f>, Class::predicate, predicate, predicate, predicate, 0, 0};
  };
  logic.template operator()<and_>("and");
  logic.template operator()<or_>("or");
  logic.template operator()<xor_>("xor");
  t["not.b16"] = {unary<not_, u16, u16>, Class::integer, 2, 2, 0, 0, 0};
  t["not.b32"] = {unary<not_, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["not.b64"] = {unary<not_, u64, u64>, Class::integer, 8, 8, 0, 0, 0};
  t["not.pred"] = {predicate_unary<not_>, Class::predicate, predicate, predicate, 0, 0, 0};
  t["cnot.b16"] = {unary<cnot, u16, u16>, Class::integer, 2, 2, 0, 0, 0};
  t["cnot.b64"] = {unary<cnot, u64, u64>, Class::integer, 8, 8, 0, 0, 0};
  t["cnot.b32"] = {unary<cnot, u32, u32>, Class::integer, 4, 4, 0, 0, 0};
  t["lop3.b32"] = {lop3, Class::integer, 4, 4, 4, 4, 0};
  t["shl.b16"] = entry2<shl, u16, u16, u32>();
  t["shl.b32"] = entry2<shl, u32, u32, u32>();
  t["shl.b64"] = entry2<shl, u64, u64, u32>();
  for (const char* type : {"b16", "u16"}) t[std::string("shr.") + type] = entry2<shr, u16, u16, u32>();
  for (const char* type : {"b32", "u32"}) t[std::string("shr.") + type] = entry2<shr, u32, u32, u32>();
  for (const char* type : {"b64", "u64"}) t[std::string("shr.") + type] = entry2<shr, u64, u64, u32>();
  t["shr.s16"] = entry2<shr, s16, s16, u32>();
  t["shr.s32"] = entry2<shr, s32, s32, u32>();
  t["shr.s64"] = entry2<shr, s64, s64, u32>();
  t["shf.l.wrap.b32"] = {ternary<shf_l_wrap, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["shf.l.clamp.b32"] = {ternary<shf_l_clamp, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["shf.r.wrap.b32"] = {ternary<shf_r_wrap, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["shf.r.clamp.b32"] = {ternary<shf_r_clamp, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};

  // 9.7.9 Data movement and conversion
  for (const char* type : {"b16", "u16", "s16", "f16", "bf16"})
    t[std::string("mov.") + type] = {unary<identity, u16, u16>, Class::move, 2, 2, 0, 0, 0};
  for (const char* type : {"b32", "u32", "s32", "f32"})
    t[std::string("mov.") + type] = {unary<identity, u32, u32>, Class::move, 4, 4, 0, 0, 0};
  for (const char* type : {"b64", "u64", "s64", "f64"})
    t[std::string("mov.") + type] = {unary<identity, u64, u64>, Class::move, 8, 8, 0, 0, 0};
  t["mov.pred"] = {predicate_unary<identity>, Class::predicate, predicate, predicate, 0, 0, 0};
  t["prmt.b32"] = {ternary<prmt, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.f4e"] = {ternary<prmt_f4e, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.b4e"] = {ternary<prmt_b4e, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.rc8"] = {ternary<prmt_rc8, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.ecl"] = {ternary<prmt_ecl, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.ecr"] = {ternary<prmt_ecr, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};
  t["prmt.b32.rc16"] = {ternary<prmt_rc16, u32, u32, u32, u32>, Class::integer, 4, 4, 4, 4, 0};

  using Integers = Types<s8, u8, s16, u16, s32, u32, s64, u64>;
  cvt_all_integers(t, Integers{}, Integers{});
  cvt_int_float<f32>(t, Integers{});
  cvt_int_float<f64>(t, Integers{});
  cvt_int_float<f16>(t, Integers{});
  cvt_int_float<bf16>(t, Integers{});
  cvt_rounded<f32, f64>(t);
  cvt_rounded<f16, f64>(t);
  cvt_rounded<f16, f32>(t);
  cvt_rounded<bf16, f32>(t);
  cvt_one<f64, f32>(t, "");
  cvt_one<f64, f16>(t, "");
  cvt_one<f32, f16>(t, "");
  cvt_one<f32, bf16>(t, "");
  cvt_one<f32, f32>(t, "");
  cvt_integral<f32, f32>(t);
  cvt_integral<f64, f64>(t);
  cvt_integral<f16, f16>(t);
  cvt_narrow<f16>(t);
  cvt_narrow<bf16>(t);
  t["cvt.rna.tf32.f32"] = {unary<tf32<ties_away, false>, u32, u32>, Class::convert, 4, 4, 0, 0, 0};
  t["cvt.rn.tf32.f32"] = {unary<tf32<ties_even, false>, u32, u32>, Class::convert, 4, 4, 0, 0, 0};
  t["cvt.rz.tf32.f32"] = {unary<tf32<cut_off, false>, u32, u32>, Class::convert, 4, 4, 0, 0, 0};
  t["cvt.rn.relu.tf32.f32"] = {unary<tf32<ties_even, true>, u32, u32>, Class::convert, 4, 4, 0, 0, 0};
  t["cvt.rz.relu.tf32.f32"] = {unary<tf32<cut_off, true>, u32, u32>, Class::convert, 4, 4, 0, 0, 0};
  return t;
}

}  // namespace

namespace {

const Table& table() {
  static const Table table = make_table();
  return table;
}

}  // namespace

const LaneInstruction* find_lane_instruction(const std::string& mnemonic) {
  const auto found = table().find(mnemonic);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string> lane_instructions() {
  std::vector<std::string> names;
  for (const auto& [name, instruction] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sim
