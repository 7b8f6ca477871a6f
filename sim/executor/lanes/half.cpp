// The 16-bit formats, alone and in pairs (PTX ISA 9.7.3 and 9.7.4). Their sums and products are taken in FP64, to odd, and
// rounded once (rounding.h).
#include "executor/lanes/table.h"

namespace sim {
namespace {

constexpr auto hadd = []<class T>(T a, T b) { return T::from(add_odd(a.value(), b.value())); };
constexpr auto hsub = []<class T>(T a, T b) { return T::from(add_odd(a.value(), -b.value())); };
constexpr auto hmul = []<class T>(T a, T b) { return T::from(a.value() * b.value()); };
constexpr auto hfma = []<class T>(T a, T b, T c) { return T::from(fma_odd(a.value(), b.value(), c.value())); };

/// min and max as in 9.7.3: of a NaN and a number, the number; -0 is less than +0. With .NaN: the NaN.
template <bool nan, bool is_min>
constexpr auto extreme = []<class T>(T a, T b) -> T {
  const double x = a.value(), y = b.value();
  if (std::isnan(x) || std::isnan(y))
    return nan || (std::isnan(x) && std::isnan(y)) ? T{0x7fff} : std::isnan(x) ? b : a;
  if (x == y) return std::signbit(x) == is_min ? a : b;
  return (x < y) == is_min ? a : b;
};
constexpr auto habs = []<class T>(T a) { return T{static_cast<uint16_t>(a.bits & 0x7fff)}; };
constexpr auto hneg = []<class T>(T a) { return T{static_cast<uint16_t>(a.bits ^ 0x8000)}; };

/// .sat: the result is clamped to [0, 1], NaN to 0.
template <auto f>
constexpr auto saturate = []<class T>(T a, auto... rest) -> T {
  const T v = f(a, rest...);
  return v.value() > 0 ? (v.value() < 1 ? v : T::from(1)) : T{0};
};
/// .relu: negative results are 0, NaN stays.
template <auto f>
constexpr auto relu = []<class T>(T a, auto... rest) -> T {
  const T v = f(a, rest...);
  return v.value() < 0 || v.bits == 0x8000 ? T{0} : v;
};

/// .approx: as exact as the format, so closer than the hardware's.
constexpr auto htanh = []<class T>(T a) { return T::from(f32(std::tanh(a.value()))); };
constexpr auto hex2 = []<class T>(T a) { return T::from(f32(std::exp2(a.value()))); };

// name.f16 and name.f16x2, or those of BF16.
template <auto f, class... Ts>
void add_one(LaneTable& t, std::string_view name) {
  add_unary<f, Ts...>(t, name);
  add_unary<in_pair<f>, Pair<Ts>...>(t, name);
}
template <auto f, class... Ts>
void add_two(LaneTable& t, std::string_view name, uint8_t flops = 0) {
  add_binary<f, Ts...>(t, name, flops);
  add_binary<in_pair<f>, Pair<Ts>...>(t, name, flops);
}
template <auto f, class... Ts>
void add_three(LaneTable& t, std::string_view name) {
  add_ternary<f, Ts...>(t, name, 2);
  add_ternary<in_pair<f>, Pair<Ts>...>(t, name, 2);
}

/// add, sub and mul, whose rounding is to nearest whether they say so or not.
template <auto f>
void add_basic(LaneTable& t, const std::string& base) {
  for (const std::string& name : {base, base + ".rn"}) {
    add_two<f, f16, bf16>(t, name, 1);
    add_two<ftz<f>, f16>(t, name + ".ftz", 1);
    add_two<saturate<f>, f16>(t, name + ".sat", 1);
    add_two<saturate<ftz<f>>, f16>(t, name + ".ftz.sat", 1);
  }
}

}  // namespace

void add_half(LaneTable& t) {
  add_basic<hadd>(t, "add");
  add_basic<hsub>(t, "sub");
  add_basic<hmul>(t, "mul");
  add_three<hfma, f16, bf16>(t, "fma.rn");
  add_three<relu<hfma>, f16, bf16>(t, "fma.rn.relu");
  add_three<ftz<hfma>, f16>(t, "fma.rn.ftz");
  add_three<saturate<hfma>, f16>(t, "fma.rn.sat");
  add_one<habs, f16, bf16>(t, "abs");
  add_one<hneg, f16, bf16>(t, "neg");
  add_two<extreme<false, true>, f16, bf16>(t, "min");
  add_two<extreme<false, false>, f16, bf16>(t, "max");
  add_two<extreme<true, true>, f16, bf16>(t, "min.NaN");
  add_two<extreme<true, false>, f16, bf16>(t, "max.NaN");
  add_one<htanh, f16, bf16>(t, "tanh.approx");
  add_one<hex2, f16>(t, "ex2.approx");
  add_one<ftz<hex2>, bf16>(t, "ex2.approx.ftz");
}

}  // namespace sim
