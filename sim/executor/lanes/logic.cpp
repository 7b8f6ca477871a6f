// Logic and shift (PTX ISA 9.7.8).
#include <algorithm>

#include "executor/lanes/table.h"

namespace sim {
namespace {

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

// Funnel shifts: the upper (.l) or lower (.r) word of {b, a} shifted by c.
constexpr auto shf_l_wrap = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) << (c & 31) >> 32); };
constexpr auto shf_l_clamp = [](u32 a, u32 b, u32 c) { return c >= 32 ? a : u32((u64(b) << 32 | a) << c >> 32); };
constexpr auto shf_r_wrap = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> (c & 31)); };
constexpr auto shf_r_clamp = [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> std::min(c, u32{32})); };

/// Bit i of the result is bit (a_i, b_i, c_i) of the table.
void lop3(std::byte* r, const Operands& o, Mask mask) {
  const u32 *a = at<u32>(r, o.a), *b = at<u32>(r, o.b), *c = at<u32>(r, o.c), table = o.immediate;
  for_lanes<u32>(r, o.d, mask, [=](int l) {
    u32 d = 0;
    for (u32 i = 0; i < 8; ++i) {
      const u32 selected = (i & 4 ? a[l] : ~a[l]) & (i & 2 ? b[l] : ~b[l]) & (i & 1 ? c[l] : ~c[l]);
      d |= selected & (table >> i & 1 ? ~0U : 0);
    }
    return d;
  });
}

template <auto f>
void of_predicates(std::byte* r, const Operands& o, Mask mask) {
  write_predicate(r, o.d, f(*at<Mask>(r, o.a), *at<Mask>(r, o.b)), mask);
}
void not_predicate(std::byte* r, const Operands& o, Mask mask) { write_predicate(r, o.d, ~*at<Mask>(r, o.a), mask); }

template <auto f>
void add_logic(LaneTable& t, std::string_view name) {
  t.add({name, ".b16"}, entry<f, u16, u16, u16>());
  t.add({name, ".b32"}, entry<f, u32, u32, u32>());
  t.add({name, ".b64"}, entry<f, u64, u64, u64>());
  t.add({name, ".pred"}, {of_predicates<f>, Class::predicate, predicate, predicate, predicate, 0, 0});
}

template <auto f, class T>
void add_shift(LaneTable& t, std::string_view name) {
  t.add({name}, entry<f, T, T, u32>());
}

}  // namespace

void add_logic(LaneTable& t) {
  add_logic<and_>(t, "and");
  add_logic<or_>(t, "or");
  add_logic<xor_>(t, "xor");
  t.add({"not.b16"}, entry<not_, u16, u16>());
  t.add({"not.b32"}, entry<not_, u32, u32>());
  t.add({"not.b64"}, entry<not_, u64, u64>());
  t.add({"not.pred"}, {not_predicate, Class::predicate, predicate, predicate, 0, 0, 0});
  t.add({"cnot.b16"}, entry<cnot, u16, u16>());
  t.add({"cnot.b32"}, entry<cnot, u32, u32>());
  t.add({"cnot.b64"}, entry<cnot, u64, u64>());
  t.add({"lop3.b32"}, {lop3, Class::integer, 4, 4, 4, 4, 0});
  add_shift<shl, u16>(t, "shl.b16");
  add_shift<shl, u32>(t, "shl.b32");
  add_shift<shl, u64>(t, "shl.b64");
  for (const char* name : {"shr.b16", "shr.u16"}) add_shift<shr, u16>(t, name);
  for (const char* name : {"shr.b32", "shr.u32"}) add_shift<shr, u32>(t, name);
  for (const char* name : {"shr.b64", "shr.u64"}) add_shift<shr, u64>(t, name);
  add_shift<shr, s16>(t, "shr.s16");
  add_shift<shr, s32>(t, "shr.s32");
  add_shift<shr, s64>(t, "shr.s64");
  t.add({"shf.l.wrap.b32"}, entry<shf_l_wrap, u32, u32, u32, u32>());
  t.add({"shf.l.clamp.b32"}, entry<shf_l_clamp, u32, u32, u32, u32>());
  t.add({"shf.r.wrap.b32"}, entry<shf_r_wrap, u32, u32, u32, u32>());
  t.add({"shf.r.clamp.b32"}, entry<shf_r_clamp, u32, u32, u32, u32>());
}

}  // namespace sim
