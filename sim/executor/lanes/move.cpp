// mov of scalars, and prmt (PTX ISA 9.7.9).
#include <algorithm>

#include "executor/lanes/table.h"

namespace sim {
namespace {

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

template <class T>
void add_mov(LaneTable& t, std::initializer_list<std::string_view> types) {
  constexpr auto copy = [](T a) { return a; };
  for (const std::string_view type : types) t.add({"mov.", type}, entry<copy, T, T>(Class::move));
}
void move_predicate(std::byte* r, const Operands& o, Mask mask) { write_predicate(r, o.d, *at<Mask>(r, o.a), mask); }

}  // namespace

void add_move(LaneTable& t) {
  add_mov<u16>(t, {"b16", "u16", "s16", "f16", "bf16"});
  add_mov<u32>(t, {"b32", "u32", "s32", "f32"});
  add_mov<u64>(t, {"b64", "u64", "s64", "f64"});
  t.add({"mov.pred"}, {move_predicate, Class::predicate, predicate, predicate, 0, 0, 0});
  t.add({"prmt.b32"}, entry<prmt, u32, u32, u32, u32>());
  t.add({"prmt.b32.f4e"}, entry<prmt_f4e, u32, u32, u32, u32>());
  t.add({"prmt.b32.b4e"}, entry<prmt_b4e, u32, u32, u32, u32>());
  t.add({"prmt.b32.rc8"}, entry<prmt_rc8, u32, u32, u32, u32>());
  t.add({"prmt.b32.ecl"}, entry<prmt_ecl, u32, u32, u32, u32>());
  t.add({"prmt.b32.ecr"}, entry<prmt_ecr, u32, u32, u32, u32>());
  t.add({"prmt.b32.rc16"}, entry<prmt_rc16, u32, u32, u32, u32>());
}

}  // namespace sim
