// Floating point (PTX ISA 9.7.3).
#include <cfenv>

#include "executor/lanes/table.h"

namespace sim {
namespace {

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

constexpr auto fadd = [](auto a, auto b) { return a + b; };
constexpr auto fsub = [](auto a, auto b) { return a - b; };
constexpr auto fmul = [](auto a, auto b) { return a * b; };
constexpr auto ffma = []<class T>(T a, T b, T c) -> T { return std::fma(a, b, c); };
constexpr auto fdiv = [](auto a, auto b) { return a / b; };
constexpr auto fsqrt = []<class T>(T a) -> T { return std::sqrt(a); };
constexpr auto frcp = []<class T>(T a) -> T { return T(1) / a; };

// min and max: of a NaN and a number, the number; -0 is less than +0. With .NaN: the NaN.
template <bool nan>
constexpr auto fmin_ = []<class T>(T a, T b) -> T {
  if (nan && (a != a || b != b)) return std::numeric_limits<T>::quiet_NaN();
  if (a != a) return b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
};
template <bool nan>
constexpr auto fmax_ = []<class T>(T a, T b) -> T {
  if (nan && (a != a || b != b)) return std::numeric_limits<T>::quiet_NaN();
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
};
constexpr auto fabs_ = []<class T>(T a) -> T { return std::fabs(a); };
constexpr auto fneg = []<class T>(T a) -> T { return -a; };
constexpr auto copysign_ = []<class T>(T a, T b) -> T { return std::copysign(b, a); };  // sign of a, rest of b

/// .sat: the result is clamped to [0, 1], NaN to 0.
template <auto f>
constexpr auto saturate = []<class T>(T a, auto... rest) -> T {
  const T v = f(a, rest...);
  return v > 0 ? (v < 1 ? v : T(1)) : T(0);
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
constexpr auto rsqrt = []<class T>(T a) { return T(1 / std::sqrt(double(a))); };
// rcp.approx.ftz.f64 (9.7.3.13): the upper 32 bits of the result alone.
constexpr auto rcp_upper = [](f64 a) {
  const auto flush = [](f64 x) { return std::fabs(x) < std::numeric_limits<f64>::min() ? std::copysign(0.0, x) : x; };
  return flush(std::bit_cast<f64>(std::bit_cast<u64>(1 / flush(a)) & 0xffffffff00000000));
};

/// name.f32, and the same with .ftz.
template <auto f>
void add_with_ftz(LaneTable& t, std::string_view name, uint8_t flops = 0) {
  t.add({name, ".f32"}, entry<f, f32, f32>(Class::fp32, flops));
  t.add({name, ".ftz.f32"}, entry<ftz<f>, f32, f32>(Class::fp32, flops));
}

/// The basic operations in one rounding mode, of which `round` is the suffix. Without one it is to nearest, and the
/// instruction may be fused, which we do not do.
template <Round mode, auto sum, auto difference, auto product, auto fused>
void add_rounded(LaneTable& t, std::string_view round) {
  const auto with_modifiers = [&]<auto f>(std::string_view base, auto add) {
    add.template operator()<f>(base, "");
    add.template operator()<ftz<f>>(base, ".ftz");
    add.template operator()<saturate<f>>(base, ".sat");
    add.template operator()<saturate<ftz<f>>>(base, ".ftz.sat");
  };
  const auto two = [&]<auto f>(std::string_view base, std::string_view modifiers) {
    t.add({base, round, modifiers, ".f32"}, entry<f, f32, f32, f32>(Class::fp32, 1));
  };
  const auto three = [&]<auto f>(std::string_view base, std::string_view modifiers) {
    t.add({base, round, modifiers, ".f32"}, entry<f, f32, f32, f32, f32>(Class::fp32, 2));
  };
  const auto packed_two = [&]<auto f>(std::string_view base) {  // of sm_100
    t.add({base, round, ".f32x2"}, entry<in_pair<f>, f32x2, f32x2, f32x2>(Class::fp32, 2));
    t.add({base, round, ".ftz.f32x2"}, entry<in_pair<ftz<f>>, f32x2, f32x2, f32x2>(Class::fp32, 2));
  };
  packed_two.template operator()<sum>("add");
  packed_two.template operator()<difference>("sub");
  packed_two.template operator()<product>("mul");
  with_modifiers.template operator()<sum>("add", two);
  with_modifiers.template operator()<difference>("sub", two);
  with_modifiers.template operator()<product>("mul", two);
  t.add({"add", round, ".f64"}, entry<in_mode<mode, fadd>, f64, f64, f64>(Class::fp64, 1));
  t.add({"sub", round, ".f64"}, entry<in_mode<mode, fsub>, f64, f64, f64>(Class::fp64, 1));
  t.add({"mul", round, ".f64"}, entry<in_mode<mode, fmul>, f64, f64, f64>(Class::fp64, 1));
  if (round.empty()) return;  // the others name their rounding
  t.add({"fma", round, ".f32x2"}, entry<in_pair<fused>, f32x2, f32x2, f32x2, f32x2>(Class::fp32, 4));
  t.add({"fma", round, ".ftz.f32x2"}, entry<in_pair<ftz<fused>>, f32x2, f32x2, f32x2, f32x2>(Class::fp32, 4));
  for (const std::string_view base : {"fma", "mad"}) {
    with_modifiers.template operator()<fused>(base, three);
    t.add({base, round, ".f64"}, entry<in_mode<mode, ffma>, f64, f64, f64, f64>(Class::fp64, 2));
  }
  constexpr auto div = in_mode<mode, fdiv>;
  constexpr auto rcp = in_mode<mode, frcp>, sqrt = in_mode<mode, fsqrt>;
  t.add({"div", round, ".f32"}, entry<div, f32, f32, f32>(Class::fp32, 1));
  t.add({"div", round, ".ftz.f32"}, entry<ftz<div>, f32, f32, f32>(Class::fp32, 1));
  t.add({"div", round, ".f64"}, entry<div, f64, f64, f64>(Class::fp64, 1));
  t.add({"rcp", round, ".f32"}, entry<rcp, f32, f32>(Class::fp32, 1));
  t.add({"rcp", round, ".ftz.f32"}, entry<ftz<rcp>, f32, f32>(Class::fp32, 1));
  t.add({"rcp", round, ".f64"}, entry<rcp, f64, f64>(Class::fp64, 1));
  t.add({"sqrt", round, ".f32"}, entry<sqrt, f32, f32>(Class::fp32, 1));
  t.add({"sqrt", round, ".ftz.f32"}, entry<ftz<sqrt>, f32, f32>(Class::fp32, 1));
  t.add({"sqrt", round, ".f64"}, entry<sqrt, f64, f64>(Class::fp64, 1));
}

template <Round mode>
void add_directed(LaneTable& t, std::string_view round) {
  add_rounded<mode, add_to<mode>, sub_to<mode>, mul_to<mode>, fma_to<mode>>(t, round);
}

}  // namespace

void add_floating_point(LaneTable& t) {
  for (const char* round : {"", ".rn"}) add_rounded<Round::nearest, fadd, fsub, fmul, ffma>(t, round);
  add_directed<Round::zero>(t, ".rz");
  add_directed<Round::down>(t, ".rm");
  add_directed<Round::up>(t, ".rp");
  add_binary<div_approx, f32>(t, "div.approx", 1);
  add_binary<ftz<div_approx>, f32>(t, "div.approx.ftz", 1);
  add_binary<fdiv, f32>(t, "div.full", 1);
  add_binary<ftz<fdiv>, f32>(t, "div.full.ftz", 1);
  add_with_ftz<frcp>(t, "rcp.approx", 1);
  add_unary<rcp_upper, f64>(t, "rcp.approx.ftz", 1);
  add_with_ftz<fsqrt>(t, "sqrt.approx", 1);
  add_with_ftz<rsqrt>(t, "rsqrt.approx", 1);
  add_unary<rsqrt, f64>(t, "rsqrt.approx", 1);
  add_with_ftz<ex2>(t, "ex2.approx");
  add_with_ftz<lg2>(t, "lg2.approx");
  add_with_ftz<sin_>(t, "sin.approx");
  add_with_ftz<cos_>(t, "cos.approx");
  add_unary<tanh_, f32>(t, "tanh.approx");
  add_with_ftz<fabs_>(t, "abs");
  add_with_ftz<fneg>(t, "neg");
  add_unary<fabs_, f64>(t, "abs");
  add_unary<fneg, f64>(t, "neg");
  add_binary<fmin_<false>, f32, f64>(t, "min");
  add_binary<fmax_<false>, f32, f64>(t, "max");
  add_binary<ftz<fmin_<false>>, f32>(t, "min.ftz");
  add_binary<ftz<fmax_<false>>, f32>(t, "max.ftz");
  add_binary<fmin_<true>, f32>(t, "min.NaN");
  add_binary<fmax_<true>, f32>(t, "max.NaN");
  add_binary<ftz<fmin_<true>>, f32>(t, "min.ftz.NaN");
  add_binary<ftz<fmax_<true>>, f32>(t, "max.ftz.NaN");
  add_binary<copysign_, f32, f64>(t, "copysign");
}

}  // namespace sim
