// cvt (PTX ISA 9.7.9.22).
//
// A conversion that reads or writes floating point is a chain of steps, each a loop over the lanes: the source is read as
// FP64, which holds every value of every type but large 64-bit integers; steps change it as the modifiers say; it is
// rounded once where it is written. So the number of loops is the sum of the types and modifiers, not their product.
// Conversions between integers, which every kernel makes for its addresses, are one loop each.
//
// The registers may be wider than the types: the source's low bits count, the result is extended by its sign.
#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/lanes/table.h"

namespace sim {
namespace {

// --- registers wider than their type ---------------------------------------------------------------------------------------

/// The low bytes of each lane of the source, side by side.
void take_low_bytes(std::byte* to, size_t bytes, const std::byte* from, size_t from_bytes) {
  for (int l = 0; l < warp_size; ++l) std::memcpy(to + l * bytes, from + l * from_bytes, bytes);
}

void extend(std::byte* to, size_t to_bytes, const std::byte* from, size_t bytes, bool is_signed, Mask mask) {
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    uint64_t value = 0;
    std::memcpy(&value, from + l * bytes, bytes);
    const size_t unused = 64 - 8 * bytes;
    if (is_signed && unused) value = uint64_t(int64_t(value << unused) >> unused);
    std::memcpy(to + l * to_bytes, &value, to_bytes);
  }
}

/// d = f(a), of types D and A, in registers at least as wide.
template <auto f, class D, class A>
void convert(std::byte* d_register, size_t d_bytes, const std::byte* a_register, size_t a_bytes, Mask mask) {
  alignas(32) A narrow[warp_size];
  const A* a = reinterpret_cast<const A*>(a_register);
  if (a_bytes != sizeof(A)) {
    take_low_bytes(reinterpret_cast<std::byte*>(narrow), sizeof(A), a_register, a_bytes);
    a = narrow;
  }
  alignas(32) D some[warp_size];
  const bool wider = d_bytes != sizeof(D);
  D* const d = mask == all_lanes && !wider ? reinterpret_cast<D*>(d_register) : some;
#pragma GCC ivdep
  for (int l = 0; l < warp_size; ++l) d[l] = f(a[l]);
  const std::byte* const values = reinterpret_cast<const std::byte*>(some);
  if (wider)
    extend(d_register, d_bytes, values, sizeof(D), std::is_integral_v<D> && std::is_signed_v<D>, mask);
  else if (mask != all_lanes)
    merge(d_register, values, sizeof(D), mask);
}

template <class... Ts>
struct Types {};
using Integers = Types<s8, u8, s16, u16, s32, u32, s64, u64>;

// --- between integers ------------------------------------------------------------------------------------------------------

/// Wraps around; .sat clamps.
template <class D, bool saturate>
constexpr auto to_integer = []<class A>(A a) -> D {
  using Limits = std::numeric_limits<D>;
  if (saturate && std::cmp_less(a, Limits::min())) return Limits::min();
  if (saturate && std::cmp_greater(a, Limits::max())) return Limits::max();
  return static_cast<D>(a);
};

template <class D, class A, bool saturate>
void between_integers(std::byte* r, const Operands& o, Mask mask) {
  convert<to_integer<D, saturate>, D, A>(r + o.d, o.d_bytes, r + o.a, o.a_bytes, mask);
}

template <class D, class... As>
void add_from_integers(LaneTable& t, Types<As...>) {
  (t.add({"cvt.", type_name<D>, ".", type_name<As>},
         {between_integers<D, As, false>, Class::convert, width<D>, width<As>, 0, 0, 0}),
   ...);
  (t.add({"cvt.sat.", type_name<D>, ".", type_name<As>},
         {between_integers<D, As, true>, Class::convert, width<D>, width<As>, 0, 0, 0}),
   ...);
}
template <class... Ds>
void add_between_integers(LaneTable& t, Types<Ds...> all) {
  (add_from_integers<Ds>(t, all), ...);
}

// --- steps -----------------------------------------------------------------------------------------------------------------

/// What goes from step to step.
struct Conversion {
  Conversion(std::byte* registers, const Operands& o, Mask mask) : registers(registers), o(o), mask(mask) {}

  std::byte* const registers;
  const Operands& o;
  const Mask mask;
  alignas(32) double x[warp_size];
};

template <void (*... step)(Conversion&)>
void chain(std::byte* r, const Operands& o, Mask mask) {
  Conversion c(r, o, mask);
  (step(c), ...);
}

/// The value in FP64. A 64-bit integer is rounded to odd, so that one more rounding is right (rounding.h); it is rounded to
/// nearest where FP64 is the result.
template <bool to_odd>
constexpr auto exactly = []<class A>(A a) -> double {
  if constexpr (std::is_integral_v<A> && sizeof(A) == 8 && to_odd)
    return add_odd(double(static_cast<std::conditional_t<std::is_signed_v<A>, s32, u32>>(a >> 32)) * 0x1p32,
                   double(u32(a)));
  else
    return double(number(a));
};
template <class A, auto value>
[[gnu::noinline]] void read(Conversion& c) {
  convert<value, double, A>(reinterpret_cast<std::byte*>(c.x), sizeof(double), c.registers + c.o.a, c.o.a_bytes,
                            all_lanes);
}

template <auto f>
[[gnu::noinline]] void change(Conversion& c) {
  for (double& x : c.x) x = f(x);
}
void no_change(Conversion&) {}
constexpr auto nearest_integral = [](double x) { return std::nearbyint(x); };            // .rni
constexpr auto truncated = [](double x) { return std::trunc(x); };                       // .rzi
constexpr auto next_lower = [](double x) { return std::floor(x); };                      // .rmi
constexpr auto next_higher = [](double x) { return std::ceil(x); };                      // .rpi
constexpr auto clamped = [](double x) { return x > 0 ? (x < 1 ? x : 1.0) : 0.0; };       // .sat
constexpr auto positive = [](double x) { return std::signbit(x) && x == x ? 0.0 : x; };  // .relu

template <class D, auto rounded>
[[gnu::noinline]] void write(Conversion& c) {
  convert<rounded, D, double>(c.registers + c.o.d, c.o.d_bytes, reinterpret_cast<const std::byte*>(c.x), sizeof(double),
                              c.mask);
}
/// To an integer: clamped to its range. NaN is 0; from FP64 or to 64 bits, the top bit alone.
template <class D, bool nan_is_top_bit>
constexpr auto integer = [](double x) -> D {
  using Limits = std::numeric_limits<D>;
  if (std::isnan(x)) return nan_is_top_bit ? static_cast<D>(u64{1} << (8 * sizeof(D) - 1)) : D{0};
  return x >= static_cast<double>(Limits::max())   ? Limits::max()
         : x <= static_cast<double>(Limits::min()) ? Limits::min()
                                                   : static_cast<D>(x);
};
template <Round round>
constexpr auto single = [](double x) { return canonical(to_float(x, round)); };
constexpr auto unchanged = [](double x) { return x; };
/// .satfinite: what is too large becomes the largest finite number.
template <class D, Round round, bool satfinite>
constexpr auto half = [](double x) -> D {
  D d = D::from(x, round);
  const uint16_t infinity = D::from(INFINITY).bits;
  if (satfinite && (d.bits & 0x7fff) == infinity) --d.bits;
  return d;
};

// --- floating point --------------------------------------------------------------------------------------------------------

template <class D, class A, Round round>
constexpr auto written_as() {
  if constexpr (std::is_integral_v<D>)
    return write<D, integer<D, sizeof(D) == 8 || std::is_same_v<A, f64>>>;
  else if constexpr (is_half<D>)
    return write<D, half<D, round, false>>;
  else if constexpr (std::is_same_v<D, f32>)
    return write<D, single<round>>;
  else
    return write<D, unchanged>;
}

/// cvt{modifiers}{.ftz}{.sat}.D.A, of which `integral` is what .rni and the like do. An integer is clamped with .sat and without.
template <class D, class A, Round round, void (*integral)(Conversion&) = no_change>
void add_one(LaneTable& t, std::string_view modifiers) {
  constexpr auto in = read<A, exactly<!std::is_same_v<D, f64>>>;
  constexpr auto out = written_as<D, A, round>();
  constexpr bool to_f32 = std::is_same_v<D, f32>, from_f32 = std::is_same_v<A, f32>;
  const auto put = [&](std::string_view more, LaneFunction function) {
    t.add({"cvt", modifiers, more, ".", type_name<D>, ".", type_name<A>},
          {function, Class::convert, width<D>, width<A>, 0, 0, 0});
  };
  put("", chain<in, integral, out>);
  if constexpr (std::is_integral_v<D>) put(".sat", chain<in, integral, out>);
  if constexpr (to_f32) put(".sat", chain<in, integral, change<clamped>, out>);
  // .ftz: of an operand or a result that is f32
  constexpr auto flushed_value = [](A a) { return exactly<true>(flush(a)); };
  constexpr auto flushed_single = [](double x) { return flush(single<round>(x)); };
  if constexpr (from_f32 && to_f32) {
    put(".ftz", chain<read<A, flushed_value>, integral, write<D, flushed_single>>);
    put(".ftz.sat", chain<read<A, flushed_value>, integral, change<clamped>, write<D, flushed_single>>);
  } else if constexpr (from_f32) {
    put(".ftz", chain<read<A, flushed_value>, integral, out>);
  } else if constexpr (to_f32 && !std::is_integral_v<A>) {
    put(".ftz", chain<in, integral, write<D, flushed_single>>);
    put(".ftz.sat", chain<in, integral, change<clamped>, write<D, flushed_single>>);
  }
}
template <class D, class A>
void add_integral(LaneTable& t) {
  add_one<D, A, Round::nearest, change<nearest_integral>>(t, ".rni");
  add_one<D, A, Round::nearest, change<truncated>>(t, ".rzi");
  add_one<D, A, Round::nearest, change<next_lower>>(t, ".rmi");
  add_one<D, A, Round::nearest, change<next_higher>>(t, ".rpi");
}
template <class D, class A>
void add_rounded(LaneTable& t) {
  add_one<D, A, Round::nearest>(t, ".rn");
  if constexpr (!std::is_same_v<D, f64>) {
    add_one<D, A, Round::zero>(t, ".rz");
    add_one<D, A, Round::down>(t, ".rm");
    add_one<D, A, Round::up>(t, ".rp");
  }
}
template <class F, class... Is>
void add_with_integers(LaneTable& t, Types<Is...>) {
  (add_rounded<F, Is>(t), ...);
  (add_integral<Is, F>(t), ...);
}

/// cvt.rn.f16x2.f32 d, a, b: a into the upper half, b into the lower.
template <class T, Round round, bool relu, bool satfinite>
constexpr auto pair = [](f32 a, f32 b) -> Pair<T> {
  constexpr auto one = [](f32 x) { return half<T, round, satfinite>(relu ? positive(x) : double(x)); };
  return {one(b), one(a)};
};

/// From f32 to a 16-bit format and to pairs of it, with .relu and .satfinite.
template <class T, Round round>
void add_narrowing(LaneTable& t, std::string_view rounding) {
  const auto put = [&]<bool relu, bool satfinite>(std::string_view modifiers) {
    if constexpr (relu || satfinite) {
      constexpr auto before = relu ? change<positive> : no_change;
      t.add({"cvt", rounding, modifiers, ".", type_name<T>, ".f32"},
            {chain<read<f32, exactly<true>>, before, write<T, half<T, round, satfinite>>>, Class::convert, 2, 4, 0, 0,
             0});
    }
    t.add({"cvt", rounding, modifiers, ".", type_name<T>, "x2.f32"},
          entry<pair<T, round, relu, satfinite>, Pair<T>, f32, f32>(Class::convert));
  };
  put.template operator()<false, false>("");
  put.template operator()<true, false>(".relu");
  put.template operator()<false, true>(".satfinite");
  put.template operator()<true, true>(".relu.satfinite");
}

/// A 64-bit integer to FP64, in a direction. The x87's numbers of 64 digits hold it.
template <Round round>
constexpr auto directed = [](auto a) -> f64 {
  const f64 nearest = f64(a);
  const long double exact = static_cast<long double>(a);
  const bool above = nearest > exact, below = nearest < exact;
  const bool down = round == Round::down || (round == Round::zero && a > 0);
  return above && down    ? std::nextafter(nearest, -INFINITY)
         : below && !down ? std::nextafter(nearest, INFINITY)
                          : nearest;
};
template <class A>
void add_directed(LaneTable& t) {
  t.add({"cvt.rz.f64.", type_name<A>}, entry<directed<Round::zero>, f64, A>(Class::convert));
  t.add({"cvt.rm.f64.", type_name<A>}, entry<directed<Round::down>, f64, A>(Class::convert));
  t.add({"cvt.rp.f64.", type_name<A>}, entry<directed<Round::up>, f64, A>(Class::convert));
}

/// Pairs of an 8-bit format, of which the numbers of cvt.rn.satfinite are pairs of f16 or two of f32, a into the upper half.
template <class T, bool relu>
constexpr auto to_pair = [](f32 a, f32 b) -> Pair<T> {
  constexpr auto one = [](f32 x) { return T::from(relu ? positive(x) : double(x)); };
  return {one(b), one(a)};
};
template <class T, bool relu>
constexpr auto pair_to_pair = [](f16x2 a) -> Pair<T> {
  constexpr auto one = [](f16 x) { return T::from(relu ? positive(x.value()) : x.value()); };
  return {one(a.low), one(a.high)};
};
template <class T, bool relu>
constexpr auto from_pair = [](Pair<T> a) -> f16x2 {
  constexpr auto one = [](T x) { return f16::from(relu ? positive(x.value()) : x.value()); };
  return {one(a.low), one(a.high)};
};
template <class T>
void add_eight_bits(LaneTable& t) {
  const std::string_view name = type_name<Pair<T>>;
  const auto put = [&]<bool relu>(std::string_view modifier) {
    t.add({"cvt.rn.satfinite", modifier, ".", name, ".f32"},
          entry<to_pair<T, relu>, Pair<T>, f32, f32>(Class::convert));
    t.add({"cvt.rn.satfinite", modifier, ".", name, ".f16x2"},
          entry<pair_to_pair<T, relu>, Pair<T>, f16x2>(Class::convert));
    t.add({"cvt.rn", modifier, ".f16x2.", name}, entry<from_pair<T, relu>, f16x2, Pair<T>>(Class::convert));
  };
  put.template operator()<false>("");
  put.template operator()<true>(".relu");
}

/// Pairs of a format of 6 bits, a byte each, or of 4 bits in one byte; from two numbers of f32, a into the upper one, and to f16.
template <class T>
constexpr int small_step = T::sign_bit == 3 ? 4 : 8;  ///< bits from one of the pair to the other
template <class T>
using SmallPair = std::conditional_t<small_step<T> == 4, u8, u16>;
template <class T, bool relu>
constexpr auto to_small = [](f32 a, f32 b) -> SmallPair<T> {
  constexpr auto one = [](f32 x) { return T::from(relu ? positive(x) : double(x)).bits; };
  return SmallPair<T>(one(b) | one(a) << small_step<T>);
};
template <class T, bool relu>
constexpr auto from_small = [](SmallPair<T> a) -> f16x2 {
  constexpr auto one = [](int bits) {
    const double x = T{u8(bits & ((2 << T::sign_bit) - 1))}.value();
    return f16::from(relu ? positive(x) : x);
  };
  return {one(a), one(a >> small_step<T>)};
};
template <class T>
void add_small(LaneTable& t, std::string_view name) {
  const auto put = [&]<bool relu>(std::string_view modifier) {
    t.add({"cvt.rn.satfinite", modifier, ".", name, ".f32"},
          entry<to_small<T, relu>, SmallPair<T>, f32, f32>(Class::convert));
    t.add({"cvt.rn", modifier, ".f16x2.", name}, entry<from_small<T, relu>, f16x2, SmallPair<T>>(Class::convert));
  };
  put.template operator()<false>("");
  put.template operator()<true>(".relu");
}

/// Pairs of UE8M0, from two numbers of f32 or a pair of bf16, and to bf16.
template <bool up, bool satfinite>
constexpr auto to_scales = [](double low, double high) -> u16 {
  return u16(ue8m0::from(low, up, satfinite).bits | ue8m0::from(high, up, satfinite).bits << 8);
};
template <bool up, bool satfinite>
void add_scale(LaneTable& t, std::string_view modifiers) {
  t.add({"cvt", modifiers, ".ue8m0x2.f32"},
        entry<[](f32 a, f32 b) { return to_scales<up, satfinite>(b, a); }, u16, f32, f32>(Class::convert));
  t.add({"cvt", modifiers, ".ue8m0x2.bf16x2"},
        entry<[](bf16x2 a) { return to_scales<up, satfinite>(a.low.value(), a.high.value()); }, u16, bf16x2>(
            Class::convert));
}
constexpr auto from_scale = [](u16 a) -> bf16x2 {
  return {bf16::from(ue8m0{u8(a)}.value()), bf16::from(ue8m0{u8(a >> 8)}.value())};
};

/// cvt.pack.sat.D.s32 d, a, b{, c}: a and b, clamped to D, side by side, b below; c's low bits above them.
template <int bits, bool is_signed>
constexpr auto clamped_to = [](u32 x) -> u32 {
  constexpr s32 most = (1 << (bits - is_signed)) - 1, least = is_signed ? -most - 1 : 0;
  return u32(std::clamp(s32(x), least, most)) & ((1U << bits) - 1);
};
template <int bits, bool is_signed>
constexpr auto packed = [](u32 a, u32 b, u32 c) -> u32 {
  return c << (2 * bits) | clamped_to<bits, is_signed>(a) << bits | clamped_to<bits, is_signed>(b);
};
template <int bits, bool is_signed>
void add_pack(LaneTable& t, std::string_view type) {
  if constexpr (bits == 16)
    t.add({"cvt.pack.sat.", type, ".s32"},
          entry<[](u32 a, u32 b) { return clamped_to<16, is_signed>(a) << 16 | clamped_to<16, is_signed>(b); }, u32,
                u32, u32>(Class::convert));
  else
    t.add({"cvt.pack.sat.", type, ".s32.b32"}, entry<packed<bits, is_signed>, u32, u32, u32, u32>(Class::convert));
}

/// To tf32: 10 explicit significand bits, the rest is zero. `half`: what is added to round, before the cut.
template <auto half, bool relu>
constexpr auto tf32 = [](u32 a) -> u32 {
  if ((a & 0x7fffffff) > 0x7f800000) return 0x7fffffff;  // NaN
  if (relu && a >> 31) return 0;
  return (a & 0x7fffffff) == 0x7f800000 ? a : (a + half(a)) & ~0x1fffU;
};
constexpr auto ties_away = [](u32) -> u32 { return 0x1000; };
constexpr auto ties_even = [](u32 a) -> u32 { return 0xfff + (a >> 13 & 1); };
constexpr auto cut_off = [](u32) -> u32 { return 0; };

template <auto half, bool relu>
void add_tf32(LaneTable& t, std::string_view modifiers) {
  t.add({"cvt", modifiers, ".tf32.f32"}, entry<tf32<half, relu>, u32, u32>(Class::convert));
}

}  // namespace

void add_conversion(LaneTable& t) {
  add_between_integers(t, Integers{});
  add_with_integers<f32>(t, Integers{});
  add_with_integers<f64>(t, Integers{});
  add_with_integers<f16>(t, Integers{});
  add_with_integers<bf16>(t, Integers{});
  add_rounded<f32, f64>(t);
  add_rounded<f16, f64>(t);
  add_rounded<bf16, f64>(t);
  add_rounded<f16, f32>(t);
  add_rounded<bf16, f32>(t);
  add_one<f64, f32, Round::nearest>(t, "");
  add_one<f64, f16, Round::nearest>(t, "");
  add_one<f32, f16, Round::nearest>(t, "");
  add_one<f32, bf16, Round::nearest>(t, "");
  add_one<f32, f32, Round::nearest>(t, "");
  add_integral<f32, f32>(t);
  add_integral<f64, f64>(t);
  add_integral<f16, f16>(t);
  add_integral<bf16, bf16>(t);
  add_narrowing<f16, Round::nearest>(t, ".rn");
  add_narrowing<f16, Round::zero>(t, ".rz");
  add_narrowing<bf16, Round::nearest>(t, ".rn");
  add_narrowing<bf16, Round::zero>(t, ".rz");
  add_tf32<ties_away, false>(t, ".rna");
  add_tf32<ties_even, false>(t, ".rn");
  add_tf32<cut_off, false>(t, ".rz");
  add_tf32<ties_even, true>(t, ".rn.relu");
  add_tf32<cut_off, true>(t, ".rz.relu");
  add_directed<s64>(t);
  add_directed<u64>(t);
  add_eight_bits<e4m3>(t);
  add_eight_bits<e5m2>(t);
  add_small<e2m1>(t, "e2m1x2");
  add_small<e2m3>(t, "e2m3x2");
  add_small<e3m2>(t, "e3m2x2");
  add_scale<false, false>(t, ".rz");
  add_scale<false, true>(t, ".rz.satfinite");
  add_scale<true, false>(t, ".rp");
  add_scale<true, true>(t, ".rp.satfinite");
  t.add({"cvt.rn.bf16x2.ue8m0x2"}, entry<from_scale, bf16x2, u16>(Class::convert));
  add_pack<16, true>(t, "s16");
  add_pack<16, false>(t, "u16");
  add_pack<8, true>(t, "s8");
  add_pack<8, false>(t, "u8");
  add_pack<4, true>(t, "s4");
  add_pack<4, false>(t, "u4");
  add_pack<2, true>(t, "s2");
  add_pack<2, false>(t, "u2");
}

}  // namespace sim
