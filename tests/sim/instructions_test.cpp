// Every family of arithmetic instructions against an independent computation on random and on awkward operands: a kernel
// of one instruction, run by the executor.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sim/executor/executor.h"
#include "sim/ptx/parser.h"

namespace {

using namespace sim;
using u128 = unsigned __int128;

constexpr int threads = 256;

/// Operands of one kind: what breaks arithmetic, and random bits.
std::vector<uint64_t> operands(const std::string& type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values;
  const std::vector<uint64_t> special =
      type == "f32"   ? std::vector<uint64_t>{0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                              0xff800000, 0x7fc00000, 1,          0x7f7fffff, 0x4f000000}
      : type == "f64" ? std::vector<uint64_t>{0,
                                              1ULL << 63,
                                              0x3ff0000000000000,
                                              0x7ff0000000000000,
                                              0xfff0000000000000,
                                              0x7ff8000000000000,
                                              1}
      : type == "f16" ? std::vector<uint64_t>{0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7e00, 1, 0x7bff, 0x3ff}
                      : std::vector<uint64_t>{0,
                                              1,
                                              2,
                                              31,
                                              32,
                                              33,
                                              63,
                                              64,
                                              0x7f,
                                              0x80,
                                              0x7fff,
                                              0x8000,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              0x7fffffffffffffff,
                                              0x8000000000000000,
                                              ~0ULL};
  for (int i = 0; i < threads; ++i) {
    const uint64_t bits = random();
    if (type == "small")
      values.push_back(bits % 80);  // amounts of shifts: some beyond the width
    else if (random() % 4 == 0)
      values.push_back(special[random() % special.size()]);
    else if (type == "f32" && random() % 2)
      values.push_back(std::bit_cast<uint32_t>(float(int64_t(bits)) * 0x1p-60F));
    else if (type == "f64" && random() % 2)
      values.push_back(std::bit_cast<uint64_t>(double(int64_t(bits)) * 0x1p-60));
    else
      values.push_back(bits);
  }
  return values;
}

int bytes_of(const std::string& type) {
  if (type == "small") return 4;
  const int bits = std::stoi(type.substr(type.find_first_of("0123456789")));
  return type.find("x2") != std::string::npos ? 4 : std::max(2, bits / 8);
}

/// Runs `instruction d, a, b, c` in 256 threads; types of d and of the operands. Each result, in 64 bits.
std::vector<uint64_t> execute(const std::string& statement, const std::string& d_type,
                              const std::vector<std::string>& types, const std::vector<std::vector<uint64_t>>& in,
                              const std::string& declarations = "") {
  const auto reg = [](int bytes) { return ".b" + std::to_string(8 * bytes); };
  std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1) {\n"
      ".reg .b64 %in, %out, %t; .reg .b32 %r; .reg .pred p, q;\n.reg " +
      reg(bytes_of(d_type)) + " d;\n" + declarations + "\n";
  for (size_t i = 0; i < types.size(); ++i)
    text += ".reg " + reg(bytes_of(types[i])) + " " + (i == 3 ? "e" : std::string(1, char('a' + i))) + ";\n";
  text +=
      "ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1]; mov.u32 %r, %tid.x; mul.wide.u32 %t, %r, 32; add.s64 %in, %in, "
      "%t; "
      "mul.wide.u32 %t, %r, 8; add.s64 %out, %out, %t;\n";
  for (size_t i = 0; i < types.size(); ++i)
    text += "ld.global" + reg(bytes_of(types[i])) + " " + (i == 3 ? "e" : std::string(1, char('a' + i))) + ", [%in+" +
            std::to_string(8 * i) + "];\n";
  text += statement + "\nst.global" + reg(bytes_of(d_type)) + " [%out], d;\nret;\n}\n";
  DeviceMemory memory;
  const uint64_t source = memory.allocate(threads * 32), target = memory.allocate(threads * 8);
  std::memset(reinterpret_cast<void*>(target), 0, threads * 8);
  for (int t = 0; t < threads; ++t)
    for (size_t i = 0; i < in.size(); ++i) std::memcpy(reinterpret_cast<char*>(source) + t * 32 + i * 8, &in[i][t], 8);
  LaunchParams launch;
  launch.block = {threads, 1, 1};
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &source, 8);
  std::memcpy(launch.params.data() + 8, &target, 8);
  const ptx::Module module = ptx::parse(text);
  Counters counters;
  run_kernel(module, *module.find_function("k"), launch, memory, counters);
  std::vector<uint64_t> result(threads);
  std::memcpy(result.data(), reinterpret_cast<void*>(target), threads * 8);
  return result;
}

using Reference = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;

uint64_t low(uint64_t value, int bytes) { return bytes == 8 ? value : value & ((uint64_t{1} << (8 * bytes)) - 1); }

bool is_nan(const std::string& type, uint64_t bits) {
  if (type == "f32") return std::isnan(std::bit_cast<float>(uint32_t(bits)));
  if (type == "f64") return std::isnan(std::bit_cast<double>(bits));
  if (type == "f16") return (bits & 0x7fff) > 0x7c00;
  return false;
}

/// `name d, a[, b[, c]]`.
void check(const std::string& name, const std::string& d_type, const std::vector<std::string>& types,
           const Reference& expected) {
  std::vector<std::vector<uint64_t>> in;
  std::string statement = name + " d";
  for (size_t i = 0; i < types.size(); ++i) {
    in.push_back(operands(types[i], 17 * i + name.size()));
    statement += std::string(", ") + char('a' + i);
  }
  const auto result = execute(statement + ";", d_type, types, in);
  while (in.size() < 3) in.push_back(std::vector<uint64_t>(threads));
  for (int t = 0; t < threads; ++t) {
    uint64_t v[3];
    for (size_t i = 0; i < 3; ++i) v[i] = i < types.size() ? low(in[i][t], bytes_of(types[i])) : 0;
    const uint64_t want = low(expected(v[0], v[1], v[2]), bytes_of(d_type));
    if (is_nan(d_type, want) && is_nan(d_type, result[t])) continue;
    ASSERT_EQ(result[t], want) << std::hex << name << " of " << v[0] << " " << v[1] << " " << v[2];
  }
}

float f(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t b(float x) { return std::bit_cast<uint32_t>(x); }
double g(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t b(double x) { return std::bit_cast<uint64_t>(x); }
int64_t extend(uint64_t value, int bytes) { return int64_t(value << (64 - 8 * bytes)) >> (64 - 8 * bytes); }

TEST(Instructions, IntegersOfEveryWidth) {
  for (const std::string type : {"s16", "u16", "s32", "u32", "s64", "u64"}) {
    const int bytes = bytes_of(type);
    const bool is_signed = type[0] == 's';
    const auto value = [=](uint64_t x) -> __int128 { return is_signed ? __int128(extend(x, bytes)) : __int128(x); };
    check("add." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x + y; });
    check("sub." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x - y; });
    check("mul.lo." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x * y; });
    check("mad.lo." + type, type, {type, type, type}, [](uint64_t x, uint64_t y, uint64_t z) { return x * y + z; });
    check("mul.hi." + type, type, {type, type}, [=](uint64_t x, uint64_t y, uint64_t) {
      return is_signed ? uint64_t((value(x) * value(y)) >> (8 * bytes)) : uint64_t((u128(x) * y) >> (8 * bytes));
    });
    check("min." + type, type, {type, type},
          [=](uint64_t x, uint64_t y, uint64_t) { return value(x) < value(y) ? x : y; });
    check("max." + type, type, {type, type},
          [=](uint64_t x, uint64_t y, uint64_t) { return value(x) > value(y) ? x : y; });
    check("div." + type, type, {type, type},
          [=](uint64_t x, uint64_t y, uint64_t) { return y ? uint64_t(value(x) / value(y)) : ~0ULL; });
    check("rem." + type, type, {type, type},
          [=](uint64_t x, uint64_t y, uint64_t) { return y ? uint64_t(value(x) % value(y)) : x; });
    check("shr." + type, type, {type, "small"},
          [=](uint64_t x, uint64_t y, uint64_t) { return uint64_t(value(x) >> std::min<uint64_t>(y, 100)); });
  }
  check("mul.wide.s32", "s64", {"s32", "s32"},
        [](uint64_t x, uint64_t y, uint64_t) { return uint64_t(extend(x, 4) * extend(y, 4)); });
  check("mul.wide.u32", "u64", {"u32", "u32"}, [](uint64_t x, uint64_t y, uint64_t) { return x * y; });
  check("mad.wide.u32", "u64", {"u32", "u32", "u64"}, [](uint64_t x, uint64_t y, uint64_t z) { return x * y + z; });
  check("neg.s32", "s32", {"s32"}, [](uint64_t x, uint64_t, uint64_t) { return 0 - x; });
  check("abs.s32", "s32", {"s32"}, [](uint64_t x, uint64_t, uint64_t) { return extend(x, 4) < 0 ? 0 - x : x; });
  check("sad.u32", "u32", {"u32", "u32", "u32"},
        [](uint64_t x, uint64_t y, uint64_t z) { return (x > y ? x - y : y - x) + z; });
}

TEST(Instructions, Bits) {
  for (const std::string type : {"b16", "b32", "b64"}) {
    check("and." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x & y; });
    check("or." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x | y; });
    check("xor." + type, type, {type, type}, [](uint64_t x, uint64_t y, uint64_t) { return x ^ y; });
    check("not." + type, type, {type}, [](uint64_t x, uint64_t, uint64_t) { return ~x; });
    check("shl." + type, type, {type, "small"}, [](uint64_t x, uint64_t y, uint64_t) { return y < 64 ? x << y : 0; });
  }
  check("popc.b64", "u32", {"b64"}, [](uint64_t x, uint64_t, uint64_t) { return uint64_t(__builtin_popcountll(x)); });
  check("clz.b32", "u32", {"b32"},
        [](uint64_t x, uint64_t, uint64_t) { return x ? uint64_t(__builtin_clz(uint32_t(x))) : 32; });
  check("bfind.u32", "u32", {"u32"},
        [](uint64_t x, uint64_t, uint64_t) { return x ? 31 - uint64_t(__builtin_clz(uint32_t(x))) : ~0ULL; });
  check("bfind.shiftamt.u32", "u32", {"u32"},
        [](uint64_t x, uint64_t, uint64_t) { return x ? uint64_t(__builtin_clz(uint32_t(x))) : ~0ULL; });
  check("brev.b32", "b32", {"b32"}, [](uint64_t x, uint64_t, uint64_t) {
    uint64_t d = 0;
    for (int i = 0; i < 32; ++i) d = d << 1 | (x >> i & 1);
    return d;
  });
  check("bfe.u32", "u32", {"u32", "small", "small"}, [](uint64_t x, uint64_t p, uint64_t n) {
    const uint64_t shifted = p < 64 ? x >> p : 0;
    return n < 64 ? shifted & ((1ULL << n) - 1) : shifted;
  });
  check("bfe.s64", "s64", {"s64", "small", "small"}, [](uint64_t x, uint64_t p, uint64_t n) -> uint64_t {
    if (n == 0) return 0;
    const __int128 wide = __int128(int64_t(x)) >> p;
    return uint64_t(__int128(u128(wide) << (128 - n)) >> (128 - n));
  });
  check("shf.l.wrap.b32", "b32", {"b32", "b32", "small"},
        [](uint64_t x, uint64_t y, uint64_t n) { return (y << 32 | x) << (n % 32) >> 32; });
  check("shf.r.clamp.b32", "b32", {"b32", "b32", "small"},
        [](uint64_t x, uint64_t y, uint64_t n) { return (y << 32 | x) >> std::min<uint64_t>(n, 32); });
  check("prmt.b32", "b32", {"b32", "b32", "b32"}, [](uint64_t x, uint64_t y, uint64_t s) {
    uint64_t d = 0;
    for (int i = 3; i >= 0; --i) {
      const int pick = s >> (4 * i) & 15;
      const uint8_t byte = uint8_t((pick & 4 ? y : x) >> (8 * (pick & 3)));
      d = d << 8 | (pick & 8 ? (byte >= 128 ? 255 : 0) : byte);
    }
    return d;
  });
}

TEST(Instructions, BitFieldInsertAndLop3) {
  const auto a = operands("b32", 1), base = operands("b32", 2), p = operands("small", 3), n = operands("small", 4);
  const auto bfi = execute("bfi.b32 d, a, b, c, e;", "b32", {"b32", "b32", "b32", "b32"}, {a, base, p, n});
  const auto lop = execute("lop3.b32 d, a, b, c, 0xE8;", "b32", {"b32", "b32", "b32"}, {a, base, n});
  for (int t = 0; t < threads; ++t) {
    uint32_t want = uint32_t(base[t]);
    for (uint64_t i = 0; i < n[t] && p[t] + i < 32; ++i)
      want = (want & ~(1U << (p[t] + i))) | (i < 32 ? uint32_t(a[t] >> i & 1) << (p[t] + i) : 0);
    EXPECT_EQ(bfi[t], want);
    EXPECT_EQ(lop[t], uint32_t((a[t] & base[t]) | (a[t] & n[t]) | (base[t] & n[t]))) << "0xE8 is the majority";
  }
}

TEST(Instructions, CarryGoesFromOneToTheNext) {
  const auto a = operands("u64", 1), c = operands("u64", 2);
  const std::string split = "mov.b64 {l, h}, a; mov.b64 {m, i}, b;", join = "mov.b64 d, {l, h};";
  const auto sum = execute(split + "add.cc.u32 l, l, m; addc.u32 h, h, i;" + join, "b64", {"b64", "b64"}, {a, c},
                           ".reg .b32 l, h, m, i;");
  const auto difference = execute(split + "sub.cc.u32 l, l, m; subc.u32 h, h, i;" + join, "b64", {"b64", "b64"}, {a, c},
                                  ".reg .b32 l, h, m, i;");
  const auto product = execute(
      split +
          "mul.hi.u32 t, l, m; mul.lo.u32 s, l, m; mad.lo.cc.u32 t, h, m, t; mad.lo.u32 t, l, i, t; mov.b64 d, {s, t};",
      "b64", {"b64", "b64"}, {a, c}, ".reg .b32 l, h, m, i, s, t;");
  for (int t = 0; t < threads; ++t) {
    EXPECT_EQ(sum[t], a[t] + c[t]);
    EXPECT_EQ(difference[t], a[t] - c[t]);
    EXPECT_EQ(product[t], a[t] * c[t]);
  }
}

TEST(Instructions, Fp32AndFp64) {
  check("add.f32", "f32", {"f32", "f32"}, [](uint64_t x, uint64_t y, uint64_t) { return b(f(x) + f(y)); });
  check("sub.f32", "f32", {"f32", "f32"}, [](uint64_t x, uint64_t y, uint64_t) { return b(f(x) - f(y)); });
  check("mul.f32", "f32", {"f32", "f32"}, [](uint64_t x, uint64_t y, uint64_t) { return b(f(x) * f(y)); });
  check("fma.rn.f32", "f32", {"f32", "f32", "f32"},
        [](uint64_t x, uint64_t y, uint64_t z) { return b(std::fma(f(x), f(y), f(z))); });
  check("div.rn.f32", "f32", {"f32", "f32"}, [](uint64_t x, uint64_t y, uint64_t) { return b(f(x) / f(y)); });
  check("sqrt.rn.f32", "f32", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return b(std::sqrt(f(x))); });
  check("rcp.rn.f32", "f32", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return b(1 / f(x)); });
  check("abs.f32", "f32", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return x & 0x7fffffff; });
  check("neg.f32", "f32", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return x ^ 0x80000000; });
  check("min.f32", "f32", {"f32", "f32"},
        [](uint64_t x, uint64_t y, uint64_t) { return f(x) == f(y) ? (x >> 31 ? x : y) : b(std::fmin(f(x), f(y))); });
  check("max.f32", "f32", {"f32", "f32"},
        [](uint64_t x, uint64_t y, uint64_t) { return f(x) == f(y) ? (x >> 31 ? y : x) : b(std::fmax(f(x), f(y))); });
  check("add.f64", "f64", {"f64", "f64"}, [](uint64_t x, uint64_t y, uint64_t) { return b(g(x) + g(y)); });
  check("mul.f64", "f64", {"f64", "f64"}, [](uint64_t x, uint64_t y, uint64_t) { return b(g(x) * g(y)); });
  check("fma.rn.f64", "f64", {"f64", "f64", "f64"},
        [](uint64_t x, uint64_t y, uint64_t z) { return b(std::fma(g(x), g(y), g(z))); });
  check("div.rn.f64", "f64", {"f64", "f64"}, [](uint64_t x, uint64_t y, uint64_t) { return b(g(x) / g(y)); });
  check("ex2.approx.f32", "f32", {"f32"},
        [](uint64_t x, uint64_t, uint64_t) { return b(float(std::exp2(double(f(x))))); });
  check("copysign.f32", "f32", {"f32", "f32"},
        [](uint64_t x, uint64_t y, uint64_t) { return (x & 0x80000000) | (y & 0x7fffffff); });
}

/// long double has 64 significand bits: a product of two floats is exact there, and so is most of a sum.
float toward_zero(long double x) {
  const float nearest = float(x);
  return std::fabs((long double)nearest) > std::fabs(x) ? std::nextafterf(nearest, 0.0F) : nearest;
}

TEST(Instructions, DirectedRounding) {
  check("mul.rz.f32", "f32", {"f32", "f32"}, [](uint64_t x, uint64_t y, uint64_t) {
    const long double exact = (long double)f(x) * f(y);
    return std::isfinite(exact) ? b(toward_zero(exact)) : b(f(x) * f(y));
  });
  check("cvt.rz.f32.f64", "f32", {"f64"},
        [](uint64_t x, uint64_t, uint64_t) { return std::isfinite(g(x)) ? b(toward_zero(g(x))) : b(float(g(x))); });
}

TEST(Instructions, HalfPrecision) {
  const auto value = [](uint64_t x) { return double(std::bit_cast<_Float16>(uint16_t(x))); };
  const auto half = [](long double x) { return uint64_t(std::bit_cast<uint16_t>(_Float16(x))); };
  check("add.f16", "f16", {"f16", "f16"}, [=](uint64_t x, uint64_t y, uint64_t) { return half(value(x) + value(y)); });
  check("mul.f16", "f16", {"f16", "f16"}, [=](uint64_t x, uint64_t y, uint64_t) { return half(value(x) * value(y)); });
  check("cvt.rn.f16.f32", "f16", {"f32"},
        [=](uint64_t x, uint64_t, uint64_t) { return uint64_t(std::bit_cast<uint16_t>(_Float16(f(x)))); });
  check("cvt.f32.f16", "f32", {"f16"}, [=](uint64_t x, uint64_t, uint64_t) { return b(float(value(x))); });
  check("cvt.rn.bf16.f32", "b16", {"f32"}, [](uint64_t x, uint64_t, uint64_t) {
    if (std::isnan(f(x))) return uint64_t{0x7fff};
    return (x + 0x7fff + (x >> 16 & 1)) >> 16;
  });
}

TEST(Instructions, Conversions) {
  check("cvt.s64.s32", "s64", {"s32"}, [](uint64_t x, uint64_t, uint64_t) { return uint64_t(extend(x, 4)); });
  check("cvt.u64.u32", "u64", {"u32"}, [](uint64_t x, uint64_t, uint64_t) { return x; });
  check("cvt.u32.u64", "u32", {"u64"}, [](uint64_t x, uint64_t, uint64_t) { return x; });
  check("cvt.s32.s8", "s32", {"s32"}, [](uint64_t x, uint64_t, uint64_t) { return uint64_t(extend(x & 0xff, 1)); });
  check("cvt.u32.u8", "u32", {"u32"}, [](uint64_t x, uint64_t, uint64_t) { return x & 0xff; });
  check("cvt.rn.f32.u64", "f32", {"u64"}, [](uint64_t x, uint64_t, uint64_t) { return b(float(x)); });
  check("cvt.rn.f32.s64", "f32", {"s64"}, [](uint64_t x, uint64_t, uint64_t) { return b(float(int64_t(x))); });
  check("cvt.rn.f32.s32", "f32", {"s32"}, [](uint64_t x, uint64_t, uint64_t) { return b(float(int32_t(x))); });
  check("cvt.rn.f64.s64", "f64", {"s64"}, [](uint64_t x, uint64_t, uint64_t) { return b(double(int64_t(x))); });
  check("cvt.rn.f32.f64", "f32", {"f64"}, [](uint64_t x, uint64_t, uint64_t) { return b(float(g(x))); });
  check("cvt.f64.f32", "f64", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return b(double(f(x))); });
  const auto clamp = [](double x, double lo, double hi) {
    return std::isnan(x) ? 0.0 : std::fmin(std::fmax(x, lo), hi);
  };
  check("cvt.rzi.s32.f32", "s32", {"f32"}, [=](uint64_t x, uint64_t, uint64_t) {
    return uint64_t(int64_t(clamp(std::trunc(f(x)), -0x1p31, 0x1p31 - 1)));
  });
  check("cvt.rni.s32.f32", "s32", {"f32"}, [=](uint64_t x, uint64_t, uint64_t) {
    return uint64_t(int64_t(clamp(std::nearbyint(f(x)), -0x1p31, 0x1p31 - 1)));
  });
  check("cvt.rzi.u32.f32", "u32", {"f32"},
        [=](uint64_t x, uint64_t, uint64_t) { return uint64_t(clamp(std::trunc(f(x)), 0, 0x1p32 - 1)); });
  check("cvt.rmi.f32.f32", "f32", {"f32"}, [](uint64_t x, uint64_t, uint64_t) { return b(std::floor(f(x))); });
  check("cvt.sat.f32.f32", "f32", {"f32"},
        [](uint64_t x, uint64_t, uint64_t) { return f(x) > 0 ? b(std::fmin(f(x), 1.0F)) : b(0.0F); });
}

TEST(Instructions, ComparisonsCombineWithPredicates) {
  struct Case {
    std::string op;
    bool (*f)(float, float);
  };
  const Case cases[] = {{"eq", [](float x, float y) { return x == y; }},
                        {"ne", [](float x, float y) { return x < y || x > y; }},
                        {"lt", [](float x, float y) { return x < y; }},
                        {"ge", [](float x, float y) { return x >= y; }},
                        {"neu", [](float x, float y) { return x != y; }},
                        {"ltu", [](float x, float y) { return !(x >= y); }},
                        {"geu", [](float x, float y) { return !(x < y); }},
                        {"num", [](float x, float y) { return x == x && y == y; }},
                        {"nan", [](float x, float y) { return x != x || y != y; }}};
  const auto x = operands("f32", 5), y = operands("f32", 6);
  for (const Case& c : cases) {
    const auto plain = execute("setp." + c.op + ".f32 p, a, b; selp.b32 d, 5, 7, p;", "b32", {"f32", "f32"}, {x, y});
    const auto both = execute("setp.gt.f32 q, a, 0f3F800000; setp." + c.op +
                                  ".and.f32 p|q, a, b, !q; selp.b32 d, 1, 0, p; @q add.s32 d, d, 2;",
                              "b32", {"f32", "f32"}, {x, y});
    for (int t = 0; t < threads; ++t) {
      const bool is = c.f(f(x[t]), f(y[t])), other = !(f(x[t]) > 1);
      ASSERT_EQ(plain[t], is ? 5U : 7U) << c.op;
      ASSERT_EQ(both[t], unsigned(is && other) + 2 * unsigned(!is && other)) << c.op;
    }
  }
}

TEST(Instructions, WhatIsUnknownIsNamed) {
  const auto none = std::vector<std::vector<uint64_t>>{operands("b32", 1)};
  for (const std::string statement : {"frobnicate.b32 d, a;", "add.s32.funny d, a, a;", "cvt.rn.relu.f16.f32 d, a;"}) {
    try {
      execute(statement, "b32", {"b32"}, none);
      FAIL() << statement;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(statement.substr(0, statement.find(' '))), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("PTX line"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
