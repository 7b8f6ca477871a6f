// Integer arithmetic (PTX ISA 9.7.1).
#include <algorithm>
#include <cstdlib>

#include "executor/lanes/integers.h"

namespace sim {
namespace {

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

// fns: the position of the c-th set bit of a from position b on, upwards; for negative c downwards; b's own bit for 0.
constexpr auto fns = [](u32 a, u32 b, s32 c) -> u32 {
  if (c == 0) return b < 32 && (a >> b & 1) ? b : 0xffffffff;
  for (s64 position = b, left = c < 0 ? -s64(c) : c; position >= 0 && position < 32; position += c < 0 ? -1 : 1)
    if ((a >> position & 1) && --left == 0) return u32(position);
  return 0xffffffff;
};

// bmsk: b bits that are 1 from bit a on. Both wrap around at 32 bits; with .clamp, 32 and more put the mask, or its end, outside.
template <bool clamp>
constexpr auto bmsk = [](u32 a, u32 b) -> u32 {
  const u32 from = a & 31, length = b & 31;
  if (clamp && a >= 32) return 0;
  const u32 to_the_end = ~0U << from;
  if ((clamp && b >= 32) || from + length >= 32) return to_the_end;
  return to_the_end & ~(~0U << (from + length));
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

/// The two 16-bit integers of a register, each by itself.
template <class T, auto f>
constexpr auto both = [](u32 a, u32 b) -> u32 {
  return u32(Unsigned<T>(f(T(a), T(b)))) | u32(Unsigned<T>(f(T(a >> 16), T(b >> 16)))) << 16;
};
/// .relu: a negative result becomes 0.
template <auto f>
constexpr auto relu = []<class T>(T a, T b) -> T { return std::max(T{0}, f(a, b)); };

/// vabsdiff4 (9.7.17.2): of each pair of bytes; .add: their sum and c.
template <class T>
constexpr auto byte_difference(u32 a, u32 b, int i) -> u32 {
  return u32(std::abs(int(T(a >> (8 * i))) - int(T(b >> (8 * i)))));
}
template <class T>
constexpr auto vabsdiff4 = [](u32 a, u32 b, u32) -> u32 {
  u32 d = 0;
  for (int i = 0; i < 4; ++i) d |= byte_difference<T>(a, b, i) << (8 * i);
  return d;
};
template <class T>
constexpr auto vabsdiff4_add = [](u32 a, u32 b, u32 c) -> u32 {
  for (int i = 0; i < 4; ++i) c += byte_difference<T>(a, b, i);
  return c;
};

}  // namespace

void add_integer(LaneTable& t) {
  add_binary<add, s16, u16, s32, u32, s64, u64>(t, "add");
  add_binary<sub, s16, u16, s32, u32, s64, u64>(t, "sub");
  add_binary<mul_lo, s16, u16, s32, u32, s64, u64>(t, "mul.lo");
  add_binary<mul_hi, s16, u16, s32, u32, s64, u64>(t, "mul.hi");
  t.add({"mul.wide.s16"}, entry<mul_wide, s32, s16, s16>());
  t.add({"mul.wide.u16"}, entry<mul_wide, u32, u16, u16>());
  t.add({"mul.wide.s32"}, entry<mul_wide, s64, s32, s32>());
  t.add({"mul.wide.u32"}, entry<mul_wide, u64, u32, u32>());
  add_ternary<mad_lo, s16, u16, s32, u32, s64, u64>(t, "mad.lo");
  add_ternary<mad_hi, s16, u16, s32, u32, s64, u64>(t, "mad.hi");
  t.add({"mad.wide.s16"}, entry<mad_wide, s32, s16, s16, s32>());
  t.add({"mad.wide.u16"}, entry<mad_wide, u32, u16, u16, u32>());
  t.add({"mad.wide.s32"}, entry<mad_wide, s64, s32, s32, s64>());
  t.add({"mad.wide.u32"}, entry<mad_wide, u64, u32, u32, u64>());
  add_ternary<sad, s16, u16, s32, u32, s64, u64>(t, "sad");
  add_binary<div_int, s16, u16, s32, u32, s64, u64>(t, "div");
  add_binary<rem_int, s16, u16, s32, u32, s64, u64>(t, "rem");
  add_unary<abs_int, s16, s32, s64>(t, "abs");
  add_unary<neg_int, s16, s32, s64>(t, "neg");
  add_binary<min_int, s16, u16, s32, u32, s64, u64>(t, "min");
  add_binary<max_int, s16, u16, s32, u32, s64, u64>(t, "max");
  t.add({"popc.b32"}, entry<popc, u32, u32>());
  t.add({"popc.b64"}, entry<popc, u32, u64>());
  t.add({"clz.b32"}, entry<clz, u32, u32>());
  t.add({"clz.b64"}, entry<clz, u32, u64>());
  t.add({"bfind.u32"}, entry<bfind, u32, u32>());
  t.add({"bfind.s32"}, entry<bfind, u32, s32>());
  t.add({"bfind.u64"}, entry<bfind, u32, u64>());
  t.add({"bfind.s64"}, entry<bfind, u32, s64>());
  t.add({"bfind.shiftamt.u32"}, entry<bfind_shift, u32, u32>());
  t.add({"bfind.shiftamt.s32"}, entry<bfind_shift, u32, s32>());
  t.add({"bfind.shiftamt.u64"}, entry<bfind_shift, u32, u64>());
  t.add({"bfind.shiftamt.s64"}, entry<bfind_shift, u32, s64>());
  t.add({"brev.b32"}, entry<brev, u32, u32>());
  t.add({"brev.b64"}, entry<brev, u64, u64>());
  t.add({"bfe.u32"}, entry<bfe, u32, u32, u32, u32>());
  t.add({"bfe.s32"}, entry<bfe, s32, s32, u32, u32>());
  t.add({"bfe.u64"}, entry<bfe, u64, u64, u32, u32>());
  t.add({"bfe.s64"}, entry<bfe, s64, s64, u32, u32>());
  t.add({"bfi.b32"}, {bfi<u32>, Class::integer, 4, 4, 4, 4, 0});
  t.add({"bfi.b64"}, {bfi<u64>, Class::integer, 8, 8, 8, 4, 0});
  t.add({"dp4a.s32.s32"}, entry<dp4a<true, true>, u32, u32, u32, u32>());
  t.add({"dp4a.u32.u32"}, entry<dp4a<false, false>, u32, u32, u32, u32>());
  t.add({"dp4a.s32.u32"}, entry<dp4a<true, false>, u32, u32, u32, u32>());
  t.add({"dp4a.u32.s32"}, entry<dp4a<false, true>, u32, u32, u32, u32>());
  const auto add_dp2a = [&]<bool a, bool b>(std::string_view types) {
    t.add({"dp2a.lo", types}, entry<dp2a<a, b, false>, u32, u32, u32, u32>());
    t.add({"dp2a.hi", types}, entry<dp2a<a, b, true>, u32, u32, u32, u32>());
  };
  add_dp2a.template operator()<true, true>(".s32.s32");
  add_dp2a.template operator()<true, false>(".s32.u32");
  add_dp2a.template operator()<false, true>(".u32.s32");
  add_dp2a.template operator()<false, false>(".u32.u32");
  const auto add_pairs = [&]<class T>(T, std::string_view type) {
    t.add({"add.", type}, entry<both<T, add>, u32, u32, u32>());
    t.add({"min.", type}, entry<both<T, min_int>, u32, u32, u32>());
    t.add({"max.", type}, entry<both<T, max_int>, u32, u32, u32>());
  };
  add_pairs(s16{}, "s16x2");
  add_pairs(u16{}, "u16x2");
  // The ISA writes .relu before the type, nvcc after it.
  for (const std::string_view name : {"min.relu.s16x2", "min.s16x2.relu"})
    t.add({name}, entry<both<s16, relu<min_int>>, u32, u32, u32>());
  for (const std::string_view name : {"max.relu.s16x2", "max.s16x2.relu"})
    t.add({name}, entry<both<s16, relu<max_int>>, u32, u32, u32>());
  for (const std::string_view name : {"min.relu.s32", "min.s32.relu"})
    t.add({name}, entry<relu<min_int>, s32, s32, s32>());
  for (const std::string_view name : {"max.relu.s32", "max.s32.relu"})
    t.add({name}, entry<relu<max_int>, s32, s32, s32>());
  t.add({"vabsdiff4.u32.u32.u32"}, entry<vabsdiff4<u8>, u32, u32, u32, u32>());
  t.add({"vabsdiff4.u32.u32.u32.add"}, entry<vabsdiff4_add<u8>, u32, u32, u32, u32>());
  t.add({"vabsdiff4.u32.s32.s32"}, entry<vabsdiff4<s8>, u32, u32, u32, u32>());
  t.add({"vabsdiff4.u32.s32.s32.add"}, entry<vabsdiff4_add<s8>, u32, u32, u32, u32>());
  t.add({"bmsk.clamp.b32"}, entry<bmsk<true>, u32, u32, u32>());
  t.add({"bmsk.wrap.b32"}, entry<bmsk<false>, u32, u32, u32>());
  t.add({"fns.b32"}, entry<fns, u32, u32, u32, s32>());
}

}  // namespace sim
