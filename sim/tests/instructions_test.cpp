// Every arithmetic instruction that the executor knows, against an independent computation: the reference takes the
// mnemonic apart and computes what the PTX ISA says of its parts, floating point in exact arithmetic (exact.h). The walk
// goes over the executor's own table, so an instruction that is added without a reference fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "error.h"
#include "executor/executor.h"
#include "executor/lanes.h"
#include "ptx/parser.h"
#include "tests/exact.h"

namespace {

using namespace sim;
using test::Format;
using test::Mode;
using i128 = __int128;
using u128 = unsigned __int128;

constexpr int threads = 256;

// --- formats -----------------------------------------------------------------------------------------------------------------

const std::map<std::string, Format> formats = {
    {"f16", {11, 15}}, {"bf16", {8, 127}}, {"tf32", {11, 127}}, {"f32", {24, 127}}, {"f64", {53, 1023}}};

bool is_float(const std::string& type) { return formats.count(type) != 0; }
bool is_pair(const std::string& type) { return type.ends_with("x2"); }
std::string half_of(const std::string& pair) { return pair.substr(0, pair.size() - 2); }
bool is_signed(const std::string& type) { return type[0] == 's'; }
int bits_of(const std::string& type) {
  if (type == "f32x2") return 64;
  if (type == "pred" || type == "small" || is_pair(type)) return 32;
  return type == "tf32" ? 32 : std::stoi(type.substr(type.find_first_of("0123456789")));
}
/// The size of the register that holds the type: 8-bit types are held in 16-bit registers.
int bytes_of(const std::string& type) { return std::max(2, bits_of(type) / 8); }

uint64_t low(uint64_t value, int bits) { return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1); }
i128 integer(const std::string& type, uint64_t bits) {
  const int unused = 64 - bits_of(type);
  return is_signed(type) ? i128(int64_t(bits << unused) >> unused) : i128(low(bits, bits_of(type)));
}

double value(const std::string& type, uint64_t bits) {
  if (type == "f64") return std::bit_cast<double>(bits);
  if (type == "f16") return double(std::bit_cast<_Float16>(uint16_t(bits)));
  if (type == "bf16") bits = (bits & 0xffff) << 16;
  return double(std::bit_cast<float>(uint32_t(bits)));
}
/// The bits of a number that the format can represent.
uint64_t encode(const std::string& type, double x) {
  if (type == "f64") return std::bit_cast<uint64_t>(x);
  if (type == "f16") return std::bit_cast<uint16_t>(_Float16(x));
  const uint32_t single = std::bit_cast<uint32_t>(float(x));
  return type == "bf16" ? single >> 16 : single;
}
bool is_nan(const std::string& type, uint64_t bits) { return is_float(type) && std::isnan(value(type, bits)); }

// --- operands ----------------------------------------------------------------------------------------------------------------

/// Special values that break arithmetic, numbers of moderate size and of few digits, and random bits.
uint64_t operand(const std::string& type, std::mt19937_64& random) {
  const auto one_of = [&](const std::vector<uint64_t>& list) { return list[random() % list.size()]; };
  if (type == "small") return random() % 80;  // amounts of shifts: some beyond the width
  if (is_pair(type)) return operand(half_of(type), random) | operand(half_of(type), random) << bits_of(type) / 2;
  const uint64_t any = low(random(), 8 * bytes_of(type));
  if (!is_float(type)) {
    const uint64_t edges[] = {0,          1,    2,      31,     32,         33,         63,         64,
                              0x7f,       0x80, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff,
                              1ULL << 63, ~0ULL};
    return random() % 2 ? any : edges[random() % std::size(edges)];
  }
  const Format format = formats.at(type);
  const uint64_t infinity = encode(type, INFINITY), sign = uint64_t{random() % 2} << (bits_of(type) - 1);
  switch (random() % 4) {
    case 0:
      return sign | one_of({0, encode(type, 1), infinity, infinity | (infinity >> 1), 1, infinity - 1, encode(type, 2),
                            encode(type, format.smallest_normal()), encode(type, format.smallest_normal()) - 1,
                            encode(type, 0.5)});
    case 1: {
      const double x = (double(random() >> 11) * 0x1p-53 - 0.5) * 16;
      return encode(type, test::sum(x, 0, format, Mode::nearest));
    }
    case 2:
      return encode(type, double(int64_t(random() % 201) - 100) / 4);
    default:
      return any;
  }
}

std::vector<uint64_t> operands(const std::string& type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values(threads);
  for (uint64_t& v : values) v = operand(type, random);
  return values;
}

// --- the executor ------------------------------------------------------------------------------------------------------------

const char* const names[] = {"a", "b", "c", "e"};

/// Runs a statement on registers a, b, c, e of these types in 256 threads. What d then holds, in 64 bits.
std::vector<uint64_t> execute(const std::string& statement, const std::string& d_type,
                              const std::vector<std::string>& types, const std::vector<std::vector<uint64_t>>& in,
                              const std::string& declarations = "") {
  const auto reg = [](const std::string& type) { return ".b" + std::to_string(8 * bytes_of(type)); };
  std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1) {\n"
      ".reg .b64 %in, %out, %t; .reg .b32 %r; .reg .pred p, q;\n.reg " +
      reg(d_type) + " d;\n" + declarations + "\n";
  for (size_t i = 0; i < types.size(); ++i) text += ".reg " + reg(types[i]) + " " + names[i] + ";\n";
  text +=
      "ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1]; mov.u32 %r, %tid.x; mul.wide.u32 %t, %r, 32; add.s64 %in, %in, "
      "%t; mul.wide.u32 %t, %r, 8; add.s64 %out, %out, %t;\n";
  for (size_t i = 0; i < types.size(); ++i)
    text += "ld.global" + reg(types[i]) + " " + names[i] + ", [%in+" + std::to_string(8 * i) + "];\n";
  text += statement + "\nst.global" + reg(d_type) + " [%out], d;\nret;\n}\n";
  DeviceMemory memory;
  const uint64_t source = memory.allocate(threads * 32), target = memory.allocate(threads * 8);
  std::memset(reinterpret_cast<void*>(target), 0, threads * 8);
  for (int t = 0; t < threads; ++t)
    for (size_t i = 0; i < in.size(); ++i) std::memcpy(reinterpret_cast<char*>(source) + t * 32 + i * 8, &in[i][t], 8);
  LaunchParams launch;
  launch.block = {threads, 1, 1};
  launch.threads = 1;
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

// --- the reference -----------------------------------------------------------------------------------------------------------

using Args = std::array<uint64_t, 4>;

/// The types of an instruction's operands, and the result that it must return.
struct Reference {
  std::string d;                   ///< type of the result
  std::vector<std::string> types;  ///< of the operands
  std::function<uint64_t(const Args&)> exact;
  std::function<bool(uint64_t got, const Args&)> near = {};  ///< in place of `exact`: an approximation
  std::string statement = {};                                ///< where it is not "mnemonic d, a, b, c;"
};

/// A mnemonic in its parts: "cvt.rn.relu.f16x2.f32" is cvt, {rn, relu}, {f16x2, f32}.
struct Parts {
  std::string base;
  std::vector<std::string> modifiers, types;

  explicit Parts(const std::string& mnemonic) {
    static const std::vector<std::string> known = {
        "s8",  "u8",     "s16",    "u16",   "b16",   "s32",    "u32",    "b32",    "s64",    "u64",    "b64",
        "f16", "bf16",   "f32",    "f64",   "f16x2", "bf16x2", "tf32",   "pred",   "s4",     "u4",     "s2",
        "u2",  "e4m3x2", "e5m2x2", "s16x2", "u16x2", "f32x2",  "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"};
    size_t at = 0;
    while (at <= mnemonic.size()) {
      const size_t end = std::min(mnemonic.find('.', at), mnemonic.size());
      const std::string part = mnemonic.substr(at, end - at);
      if (at == 0)
        base = part;
      else if (std::find(known.begin(), known.end(), part) != known.end())
        types.push_back(part);
      else
        modifiers.push_back(part);
      at = end + 1;
    }
  }
  bool has(const std::string& modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
  }
  /// Takes it out; what is left at the end is unknown.
  bool take(const std::string& modifier) {
    const auto found = std::find(modifiers.begin(), modifiers.end(), modifier);
    if (found == modifiers.end()) return false;
    modifiers.erase(found);
    return true;
  }
  Mode rounding() {
    if (take("rz")) return Mode::zero;
    if (take("rm")) return Mode::down;
    if (take("rp")) return Mode::up;
    take("rn");
    return Mode::nearest;
  }
};

double flush(const std::string& type, double x) {
  return std::fabs(x) < formats.at(type).smallest_normal() ? std::copysign(0.0, x) : x;
}

using Operation = std::function<double(double, double, double, Format, Mode)>;

/// add, sub, mul, fma, div, rcp, sqrt and their modifiers, of one number.
std::optional<Reference> arithmetic(Parts parts) {
  static const std::map<std::string, std::pair<int, Operation>> known = {
      {"add", {2, [](double a, double b, double, Format f, Mode m) { return test::sum(a, b, f, m); }}},
      {"sub", {2, [](double a, double b, double, Format f, Mode m) { return test::sum(a, -b, f, m); }}},
      {"mul", {2, [](double a, double b, double, Format f, Mode m) { return test::product(a, b, f, m); }}},
      {"fma", {3, test::fused}},
      {"mad", {3, test::fused}},
      {"div", {2, [](double a, double b, double, Format f, Mode m) { return test::quotient(a, b, f, m); }}},
      {"rcp", {1, [](double a, double, double, Format f, Mode m) { return test::quotient(1, a, f, m); }}},
      {"sqrt", {1, [](double a, double, double, Format f, Mode m) { return test::root(a, f, m); }}},
  };
  const auto found = known.find(parts.base);
  const std::string type = parts.types.at(0);
  if (found == known.end() || !is_float(type)) return std::nullopt;
  const Mode mode = parts.rounding();
  const bool ftz = parts.take("ftz"), sat = parts.take("sat"), relu = parts.take("relu");
  if (!parts.modifiers.empty()) return std::nullopt;
  const auto [count, operation] = found->second;
  return Reference{type, std::vector<std::string>(count, type), [=, operation = operation](const Args& args) {
                     double x[3];
                     for (int i = 0; i < 3; ++i) {
                       x[i] = value(type, args[i]);
                       if (ftz) x[i] = flush(type, x[i]);
                     }
                     double d = operation(x[0], x[1], x[2], formats.at(type), mode);
                     if (ftz) d = flush(type, d);
                     if (sat) d = d > 0 ? std::fmin(d, 1) : 0.0;
                     if (relu && (d < 0 || d == 0)) d = 0;
                     return encode(type, d);
                   }};
}

/// min, max, abs, neg, copysign.
std::optional<Reference> ordering(Parts parts) {
  const std::string type = parts.types.at(0), base = parts.base;
  if (!is_float(type)) return std::nullopt;
  const bool ftz = parts.take("ftz"), nan = parts.take("NaN");
  if (!parts.modifiers.empty()) return std::nullopt;
  const uint64_t sign = uint64_t{1} << (bits_of(type) - 1);
  const auto read = [=](uint64_t bits) { return ftz ? encode(type, flush(type, value(type, bits))) : bits; };
  if (base == "abs" || base == "neg")
    return Reference{
        type, {type}, [=](const Args& x) { return base == "abs" ? read(x[0]) & ~sign : read(x[0]) ^ sign; }};
  if (base == "copysign")
    return Reference{type, {type, type}, [=](const Args& x) { return (x[0] & sign) | (x[1] & ~sign); }};
  if (base != "min" && base != "max") return std::nullopt;
  return Reference{type, {type, type}, [=](const Args& x) {
                     const uint64_t a = read(x[0]), b = read(x[1]);
                     const double u = value(type, a), v = value(type, b);
                     if (std::isnan(u) || std::isnan(v))
                       return nan || std::isnan(u) == std::isnan(v) ? encode(type, NAN) : std::isnan(u) ? b : a;
                     // -0 is less than +0
                     const bool less = u < v || (u == v && std::signbit(u) > std::signbit(v));
                     return (base == "min") == less ? a : b;
                   }};
}

/// The approximations, within the error that the ISA states (9.7.3).
std::optional<Reference> approximate(Parts parts) {
  const bool full = parts.take("full");
  if (!parts.take("approx") && !full) return std::nullopt;
  const bool ftz = parts.take("ftz");
  const std::string type = parts.types.at(0), base = parts.base;
  if (!parts.modifiers.empty() || !is_float(type)) return std::nullopt;
  struct Known {
    double (*f)(double, double);
    double relative, absolute;
    int operands = 1;
  };
  static const std::map<std::string, Known> known = {
      {"ex2", {[](double x, double) { return std::exp2(x); }, 0x1p-22, 0}},
      {"lg2", {[](double x, double) { return std::log2(x); }, 0x1p-22, 0x1p-22}},
      {"sin", {[](double x, double) { return std::sin(x); }, 0, 0x1p-20}},
      {"cos", {[](double x, double) { return std::cos(x); }, 0, 0x1p-20}},
      {"tanh", {[](double x, double) { return std::tanh(x); }, 0x1p-11, 0}},
      {"rcp", {[](double x, double) { return 1 / x; }, 0x1p-23, 0}},
      {"sqrt", {[](double x, double) { return std::sqrt(x); }, 0x1p-23, 0}},
      {"rsqrt", {[](double x, double) { return 1 / std::sqrt(x); }, 0x1p-22, 0}},
      {"div", {[](double x, double y) { return x / y; }, 0x1p-22, 0, 2}},
  };
  const auto found = known.find(base);
  if (found == known.end()) return std::nullopt;
  Known k = found->second;
  const Format format = formats.at(type);
  if (type == "f64") k.relative = 0x1p-20;  // rcp.approx.ftz.f64 has 20 digits
  if (type == "f16" || type == "bf16") k.relative = std::ldexp(1, 1 - format.digits);
  const auto near = [=](uint64_t bits, const Args& args) {
    double x = value(type, args[0]), y = value(type, args[1]);
    if (ftz) x = flush(type, x), y = flush(type, y);
    double want = k.f(x, y);
    if (base == "div" && !full && std::fabs(y) > 0x1p126 && std::isfinite(y)) want = std::isinf(x) ? NAN : x * 0 * y;
    if (ftz) want = flush(type, want);
    const double got = value(type, bits);
    if (std::isnan(want)) return std::isnan(got);
    if (std::fabs(want) > format.largest()) return std::isinf(got) && std::signbit(got) == std::signbit(want);
    if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want);
    const double least = std::ldexp(1, format.min_exponent() - (format.digits - 1));  // between subnormals
    return std::fabs(got - want) <= std::max({k.relative * std::fabs(want), k.absolute, least});
  };
  return Reference{type, std::vector<std::string>(k.operands, type), {}, near};
}

/// Comparisons: eq, ne, lt, le, gt, ge; lo, ls, hi, hs of unsigned; equ, neu, ltu, leu, gtu, geu; num, nan.
std::optional<std::function<bool(uint64_t, uint64_t)>> comparison(std::string op, const std::string& type, bool ftz) {
  const auto order = [=](auto a, auto b) -> bool {
    if (op == "eq" || op == "equ") return a == b;
    if (op == "ne" || op == "neu") return !(a == b);
    if (op == "lt" || op == "lo" || op == "ltu") return a < b;
    if (op == "le" || op == "ls" || op == "leu") return a < b || a == b;
    if (op == "gt" || op == "hi" || op == "gtu") return b < a;
    return b < a || a == b;
  };
  if (!is_float(type)) return [=](uint64_t a, uint64_t b) { return order(integer(type, a), integer(type, b)); };
  return [=](uint64_t a, uint64_t b) {
    double x = value(type, a), y = value(type, b);
    if (ftz) x = flush(type, x), y = flush(type, y);
    const bool nan = std::isnan(x) || std::isnan(y);
    if (op == "num" || op == "nan") return nan == (op == "nan");
    return nan ? op.size() == 3 : order(x, y);  // equ and the like are true of NaN
  };
}

std::optional<Reference> compare(Parts parts) {
  const bool ftz = parts.take("ftz");
  if (parts.modifiers.size() != 1) return std::nullopt;
  const std::string op = parts.modifiers[0];
  if (parts.base == "setp") {
    const std::string type = parts.types.at(0);
    const auto is = *comparison(op, type, ftz);
    return Reference{"b32",
                     {type, type},
                     [=](const Args& x) { return uint64_t{is(x[0], x[1])}; },
                     {},
                     "{} p, a, b; selp.b32 d, 1, 0, p;"};
  }
  const std::string d = parts.types.at(0), a = parts.types.at(1);
  const std::string element = is_pair(a) ? half_of(a) : a;
  const auto is = *comparison(op, element, ftz);
  return Reference{
      d, {a, a}, [=](const Args& x) -> uint64_t {
        const std::string to = is_pair(d) ? half_of(d) : d;
        const auto result = [&](bool on) -> uint64_t { return is_float(to) ? encode(to, on) : on ? ~0ULL : 0; };
        if (!is_pair(a)) return result(is(x[0], x[1]));
        return (result(is(x[0] & 0xffff, x[1] & 0xffff)) & 0xffff) | result(is(x[0] >> 16, x[1] >> 16)) << 16;
      }};
}

double to_integral(double x, char mode) {
  switch (mode) {
    case 'z':
      return std::trunc(x);
    case 'm':
      return std::floor(x);
    case 'p':
      return std::ceil(x);
  }
  const double down = std::floor(x), rest = x - down;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(down, 2) != 0);
  return std::copysign(up ? down + 1 : down, x);
}

// --- the 8-bit formats (5.2.3) -----------------------------------------------------------------------------------------------

/// What a code of E4M3 (S.EEEE.MMM, bias 7, no infinities) or E5M2 (S.EEEEE.MM, bias 15) stands for.
double fp8_value(const std::string& format, int code) {
  const bool e4m3 = format == "e4m3";
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = code & 0x80 ? -1 : 1;
  if (e4m3 && (code & 0x7f) == 0x7f) return NAN;
  if (!e4m3 && exponent == 31) return mantissa ? NAN : sign * INFINITY;
  const double fraction = double(mantissa) / (1 << mantissa_bits);
  return sign * (exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias));
}
/// The nearest finite code, of two the even one, by looking at all. Of NaN: 0x7f.
int fp8_code(const std::string& format, double x) {
  if (std::isnan(x)) return 0x7f;
  const double magnitude = std::fmin(std::fabs(x), format == "e4m3" ? 448 : 57344);
  int best = 0;
  for (int code = 0; code < 128; ++code) {
    const double v = fp8_value(format, code), far = std::fabs(magnitude - fp8_value(format, best));
    if (!std::isfinite(v)) break;
    const double here = std::fabs(magnitude - v);
    if (here < far || (here == far && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

/// cvt.rn.satfinite.e4m3x2.f32 and the like.
std::optional<Reference> eight_bits(Parts parts) {
  const std::string d = parts.types.at(0), a = parts.types.at(1);
  const bool relu = parts.take("relu"), to = d[0] == 'e';
  const std::string format = half_of(to ? d : a);
  if (parts.rounding() != Mode::nearest || parts.take("satfinite") != to || !parts.modifiers.empty())
    return std::nullopt;
  const auto kept = [=](double x) { return relu && std::signbit(x) && !std::isnan(x) ? 0.0 : x; };
  const auto one = [=](double x) { return uint64_t(fp8_code(format, kept(x))); };
  if (a == "f32")
    return Reference{"b16", {a, a}, [=](const Args& x) { return one(value(a, x[1])) | one(value(a, x[0])) << 8; }};
  if (to)
    return Reference{"b16", {a}, [=](const Args& x) {
                       return one(value("f16", x[0] & 0xffff)) | one(value("f16", x[0] >> 16 & 0xffff)) << 8;
                     }};
  const auto wide = [=](uint64_t code) { return encode("f16", kept(fp8_value(format, int(code & 0xff)))); };
  return Reference{d, {"b16"}, [=](const Args& x) { return wide(x[0]) | wide(x[0] >> 8) << 16; }};
}

/// What a code of E2M1, E2M3 or E3M2 stands for, as PTX ISA 5.2.3 lists the fields.
double small_value(const std::string& format, int code) {
  const int exponent_bits = format[1] - '0', mantissa_bits = format[3] - '0', bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = code & ((1 << mantissa_bits) - 1);
  const double fraction = double(mantissa) / (1 << mantissa_bits);
  const double magnitude = exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias);
  return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}
/// The nearest code, of two the even one, by looking at all. Of NaN: the largest.
int small_code(const std::string& format, double x) {
  const int codes = 1 << (format[1] - '0' + format[3] - '0');
  if (std::isnan(x)) return codes - 1;
  const double magnitude = std::fmin(std::fabs(x), small_value(format, codes - 1));
  int best = 0;
  for (int code = 0; code < codes; ++code) {
    const double far = std::fabs(magnitude - small_value(format, best)),
                 here = std::fabs(magnitude - small_value(format, code));
    if (here < far || (here == far && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? codes : 0);
}

/// cvt.rn.satfinite.e2m1x2.f32 and the like. A pair of E2M1 is a register of 8 bits.
std::optional<Reference> small_floats(Parts parts) {
  const std::string d = parts.types.at(0), a = parts.types.at(1);
  const bool relu = parts.take("relu"), to = d[0] == 'e';
  const std::string format = half_of(to ? d : a);
  const int step = format == "e2m1" ? 4 : 8, mask = format == "e2m1" ? 15 : 63;
  if (parts.rounding() != Mode::nearest || parts.take("satfinite") != to || !parts.modifiers.empty())
    return std::nullopt;
  const auto kept = [=](double x) { return relu && std::signbit(x) && !std::isnan(x) ? 0.0 : x; };
  if (to)
    return Reference{
        "b16",
        {a, a},
        [=](const Args& x) {
          return uint64_t(small_code(format, kept(value(a, x[1]))) | small_code(format, kept(value(a, x[0]))) << step);
        },
        {},
        step == 4 ? "{ .reg .b8 h; {} h, a, b; mov.b16 d, {h, 0}; }" : ""};
  const auto wide = [=](uint64_t code) { return encode("f16", kept(small_value(format, int(code) & mask))); };
  return Reference{d,
                   {"b16"},
                   [=](const Args& x) { return wide(x[0]) | wide(x[0] >> step) << 16; },
                   {},
                   step == 4 ? "{ .reg .b8 h, z; mov.b16 {h, z}, a; {} d, h; }" : ""};
}

/// cvt.rp.satfinite.ue8m0x2.f32 and the like: the power of two that is nearest from above or from below, by looking at all.
std::optional<Reference> scales(Parts parts) {
  const std::string d = parts.types.at(0), a = parts.types.at(1);
  const bool satfinite = parts.take("satfinite");
  const Mode mode = parts.rounding();
  if (!parts.modifiers.empty()) return std::nullopt;
  if (d == "bf16x2") {
    if (mode != Mode::nearest || satfinite) return std::nullopt;
    const auto wide = [](uint64_t code) {
      return (code & 255) == 255 ? uint64_t{0x7fff} : encode("bf16", std::pow(2.0, int(code & 255) - 127));
    };
    return Reference{d, {"b16"}, [=](const Args& x) { return wide(x[0]) | wide(x[0] >> 8) << 16; }};
  }
  if (mode != Mode::zero && mode != Mode::up) return std::nullopt;
  const auto one = [=](double x) -> uint64_t {
    if (std::isnan(x)) return 255;
    int code = 0;
    if (mode == Mode::up)
      while (code < 255 && std::pow(2.0, code - 127) < std::fabs(x)) ++code;
    else
      while (code < 255 && std::pow(2.0, code + 1 - 127) <= std::fabs(x)) ++code;
    return uint64_t(satfinite ? std::min(code, 254) : code);
  };
  if (a == "f32")
    return Reference{"b16", {a, a}, [=](const Args& x) { return one(value(a, x[1])) | one(value(a, x[0])) << 8; }};
  return Reference{"b16", {a}, [=](const Args& x) {
                     return one(value("bf16", x[0] & 0xffff)) | one(value("bf16", x[0] >> 16 & 0xffff)) << 8;
                   }};
}

/// cvt.pack.sat: two clamped integers below the low bits of c.
std::optional<Reference> packing(const Parts& parts) {
  const std::string d = parts.types.at(0);
  const int bits = bits_of(d);
  const i128 end = i128(1) << (bits - is_signed(d));
  const auto clamped = [=](uint64_t x) {
    return low(uint64_t(std::clamp(integer("s32", x), is_signed(d) ? -end : i128(0), end - 1)), bits);
  };
  return Reference{"b32", std::vector<std::string>(bits == 16 ? 2 : 3, "b32"), [=](const Args& x) {
                     const uint64_t pair = clamped(x[0]) << bits | clamped(x[1]);
                     return bits == 16 ? pair : pair | x[2] << (2 * bits);
                   }};
}

/// 9.7.9.22, cvt.
std::optional<Reference> conversion(Parts parts) {
  const std::string d = parts.types.at(0), a = parts.types.at(1);
  if (parts.has("pack")) return packing(parts);
  if (d == "ue8m0x2" || a == "ue8m0x2") return scales(parts);
  for (const std::string& type : {d, a})
    if (type == "e2m1x2" || type == "e2m3x2" || type == "e3m2x2") return small_floats(parts);
  if (d[0] == 'e' || a[0] == 'e') return eight_bits(parts);
  const bool ftz = parts.take("ftz"), sat = parts.take("sat"), relu = parts.take("relu"),
             satfinite = parts.take("satfinite"), away = parts.take("rna");
  char integral = 0;
  for (const char mode : {'n', 'z', 'm', 'p'})
    if (parts.take(std::string("r") + mode + "i")) integral = mode == 'n' ? 'n' : mode;
  const Mode mode = parts.rounding();
  if (!parts.modifiers.empty()) return std::nullopt;
  if (!is_float(a) && !is_float(d) && !is_pair(d))
    return Reference{d, {a}, [=](const Args& x) {
                       i128 v = integer(a, x[0]);
                       if (sat) {
                         const i128 end = i128(1) << (bits_of(d) - is_signed(d));
                         v = std::clamp(v, is_signed(d) ? -end : i128(0), end - 1);
                       }
                       return uint64_t(integer(d, uint64_t(v)));  // extended to the width of the register
                     }};
  if (!is_float(a))
    return Reference{d, {a}, [=](const Args& x) {
                       double v = test::Exact::of(integer(a, x[0])).rounded(formats.at(d), mode);
                       if (sat) v = v > 0 ? std::fmin(v, 1) : 0.0;
                       return encode(d, v);
                     }};
  if (!is_float(d) && !is_pair(d))
    return Reference{d, {a}, [=](const Args& x) -> uint64_t {
                       double v = value(a, x[0]);
                       if (ftz) v = flush(a, v);
                       if (std::isnan(v))
                         return a == "f64" || bits_of(d) == 64 ? uint64_t(integer(d, uint64_t{1} << (bits_of(d) - 1)))
                                                               : 0;
                       v = to_integral(v, integral);
                       const int digits = bits_of(d) - is_signed(d);
                       if (v >= std::ldexp(1, digits)) return uint64_t((i128(1) << digits) - 1);
                       if (!is_signed(d) && v <= 0) return 0;
                       return uint64_t(i128(std::fmax(v, -std::ldexp(1, digits))));
                     }};
  const std::string to = is_pair(d) ? half_of(d) : d;
  const auto one = [=](uint64_t bits) {
    double v = value(a, bits);
    if (ftz && a == "f32") v = flush(a, v);
    if (integral) v = to_integral(v, integral);
    const Format format = formats.at(to);
    if (away && std::isfinite(v) && v != 0) {  // ties away from zero: nearest to even, but for the ties
      const double down = test::Exact::of(v).rounded(format, Mode::zero);
      const double next =
          down + std::copysign(std::ldexp(1, std::max(std::ilogb(down), format.min_exponent()) - 10), v);
      v = std::fabs(v - down) >= std::fabs(next - v) ? (std::fabs(next) > format.largest() ? next * INFINITY : next)
                                                     : down;
    } else if (std::isfinite(v) && v != 0) {
      v = test::Exact::of(v).rounded(format, mode);
    }
    if (satfinite && std::isinf(v)) v = std::copysign(format.largest(), v);
    if (relu && v <= 0) v = 0;
    if (sat) v = v > 0 ? std::fmin(v, 1) : 0.0;
    if (ftz && d == "f32") v = flush(d, v);
    return encode(to, v);
  };
  if (!is_pair(d)) return Reference{d, {a}, [=](const Args& x) { return one(x[0]); }};
  return Reference{d, {a, a}, [=](const Args& x) { return one(x[1]) | one(x[0]) << 16; }};
}

/// Integer arithmetic, logic and shifts.
std::optional<Reference> integers(const Parts& parts) {
  const std::string base = parts.base, type = parts.types.at(0);
  const int bits = bits_of(type);
  const auto has = [&](const char* modifier) { return parts.has(modifier); };
  using F = std::function<i128(i128, i128, i128)>;
  const auto of = [&](int count, F f) {
    return Reference{type, std::vector<std::string>(count, type), [=](const Args& x) {
                       return uint64_t(f(integer(type, x[0]), integer(type, x[1]), integer(type, x[2])));
                     }};
  };
  const auto multiplied = [&](F f, int count) {  // .lo, .hi, .wide
    if (has("lo")) return of(count, f);
    if (has("hi"))
      return of(count, [=](i128 a, i128 b, i128 c) {
        // The upper half of the whole product, which fits in 128 bits of either sign.
        const i128 product = is_signed(type) ? a * b >> bits : i128(u128(a) * u128(b) >> bits);
        return product + c * (count == 3);
      });
    const std::string wide = type.substr(0, 1) + std::to_string(2 * bits);
    Reference r{wide, {type, type}, {}};
    if (count == 3) r.types.push_back(wide);
    r.exact = [=](const Args& x) {
      return uint64_t(integer(type, x[0]) * integer(type, x[1]) + (count == 3 ? integer(wide, x[2]) : 0));
    };
    return r;
  };
  const size_t extra = parts.modifiers.size();
  if (base == "mul" && extra == 1) return multiplied([](i128 a, i128 b, i128) { return i128(u128(a) * u128(b)); }, 2);
  if (base == "mad" && extra == 1)
    return multiplied([](i128 a, i128 b, i128 c) { return i128(u128(a) * u128(b) + u128(c)); }, 3);
  if (base == "prmt") {
    const std::string mode = extra ? parts.modifiers[0] : "";
    return Reference{"b32", {"b32", "b32", mode.empty() ? "b32" : "small"}, [=](const Args& x) {
                       // ISA 9.7.9.7, the tables of byte numbers for each mode and each value of c's two low bits.
                       static const std::map<std::string, std::array<int, 4>> tables = {
                           {"f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
                           {"rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
                           {"ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {"rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
                       const uint64_t picks = mode.empty() ? x[2] : tables.at(mode)[x[2] & 3];
                       uint64_t d = 0;
                       for (int i = 3; i >= 0; --i) {
                         const int pick = picks >> (4 * i) & 15;
                         const uint8_t byte = uint8_t((pick & 4 ? x[1] : x[0]) >> (8 * (pick & 3)));
                         d = d << 8 | (pick & 8 ? (byte >= 128 ? 255 : 0) : byte);
                       }
                       return d;
                     }};
  }
  if (base == "shf") {
    const bool left = has("l"), wrap = has("wrap");
    return Reference{"b32", {"b32", "b32", "small"}, [=](const Args& x) {
                       const u128 both = x[1] << 32 | x[0];
                       const uint64_t n = wrap ? x[2] % 32 : std::min<uint64_t>(x[2], 32);
                       return uint64_t(left ? both << n >> 32 : both >> n);
                     }};
  }
  if (base == "dp4a" || base == "dp2a") {
    const std::string a = parts.types.at(0), b = parts.types.at(1);
    const int count = base == "dp4a" ? 4 : 2, from = has("hi") ? 2 : 0;
    return Reference{"b32", {"b32", "b32", "b32"}, [=](const Args& x) {
                       const int wide = 32 / count;
                       i128 d = i128(x[2]);
                       for (int i = 0; i < count; ++i)
                         d += integer(a.substr(0, 1) + std::to_string(wide), x[0] >> (wide * i)) *
                              integer(b.substr(0, 1) + "8", x[1] >> (8 * (i + from)));
                       return uint64_t(d);
                     }};
  }
  if (base == "vabsdiff4") {
    const bool add = has("add");
    const std::string byte = parts.types.at(1).substr(0, 1) + "8";
    return Reference{"b32", {"b32", "b32", "b32"}, [=](const Args& x) {
                       uint64_t d = 0, sum = x[2];
                       for (int i = 0; i < 4; ++i) {
                         const i128 a = integer(byte, x[0] >> (8 * i)), b = integer(byte, x[1] >> (8 * i));
                         const auto apart = uint64_t(a > b ? a - b : b - a);
                         d |= apart << (8 * i);
                         sum += apart;
                       }
                       return add ? sum : d;
                     }};
  }
  if ((base == "min" || base == "max") && extra == 1 && has("relu"))
    return of(2,
              [=](i128 a, i128 b, i128) { return std::max(base == "min" ? std::min(a, b) : std::max(a, b), i128(0)); });
  if (base == "bfind") {
    const bool amount = has("shiftamt");
    return Reference{"u32", {type}, [=](const Args& x) {
                       i128 v = integer(type, x[0]);
                       if (v < 0) v = ~v;
                       for (int i = bits - 1; i >= 0; --i)
                         if (v >> i & 1) return uint64_t(amount ? bits - 1 - i : i);
                       return uint64_t{0xffffffff};
                     }};
  }
  if (base == "bmsk") {
    const bool clamp = has("clamp");
    return Reference{"u32", {"small", "small"}, [=](const Args& x) {
                       const uint64_t from = clamp ? x[0] : x[0] % 32, length = clamp ? x[1] : x[1] % 32;
                       uint64_t d = 0;
                       for (uint64_t bit = from; bit < from + length && bit < 32; ++bit) d |= uint64_t{1} << bit;
                       return d;
                     }};
  }
  if (extra) return std::nullopt;
  if (base == "add") return of(2, [](i128 a, i128 b, i128) { return a + b; });
  if (base == "sub") return of(2, [](i128 a, i128 b, i128) { return a - b; });
  if (base == "div") return of(2, [](i128 a, i128 b, i128) { return b ? a / b : i128(-1); });
  if (base == "rem") return of(2, [](i128 a, i128 b, i128) { return b ? a % b : a; });
  if (base == "min") return of(2, [](i128 a, i128 b, i128) { return std::min(a, b); });
  if (base == "max") return of(2, [](i128 a, i128 b, i128) { return std::max(a, b); });
  if (base == "abs") return of(1, [](i128 a, i128, i128) { return a < 0 ? -a : a; });
  if (base == "neg") return of(1, [](i128 a, i128, i128) { return -a; });
  if (base == "sad") return of(3, [](i128 a, i128 b, i128 c) { return (a > b ? a - b : b - a) + c; });
  if (base == "and" || base == "or" || base == "xor" || base == "not" || base == "mov") {
    const auto f = [=](uint64_t a, uint64_t b) {
      return base == "and" ? a & b : base == "or" ? a | b : base == "xor" ? a ^ b : base == "not" ? ~a : a;
    };
    const bool unary = base == "not" || base == "mov";
    Reference r{type, std::vector<std::string>(unary ? 1 : 2, type), [=](const Args& x) { return f(x[0], x[1]); }};
    if (type != "pred") return r;
    r.d = "b32";
    r.exact = [=](const Args& x) { return f(x[0], x[1]) & 1; };
    const std::string operands = unary ? "p" : "p, q";
    r.statement = "and.b32 %r, a, 1; setp.ne.u32 p, %r, 0;";
    if (!unary) r.statement += "and.b32 %r, b, 1; setp.ne.u32 q, %r, 0;";
    r.statement += "{} p, " + operands + "; selp.b32 d, 1, 0, p;";
    return r;
  }
  if (base == "cnot") return of(1, [](i128 a, i128, i128) { return i128(a == 0); });
  if (base == "popc" || base == "clz")
    return Reference{"u32", {type}, [=](const Args& x) {
                       uint64_t ones = 0, zeros = 0;
                       for (int i = 0; i < bits; ++i) {
                         const bool one = x[0] >> i & 1;
                         ones += one;
                         zeros = one ? 0 : zeros + 1;
                       }
                       return base == "popc" ? ones : zeros;
                     }};
  if (base == "brev")
    return of(1, [=](i128 a, i128, i128) {
      i128 d = 0;
      for (int i = 0; i < bits; ++i) d = d << 1 | (a >> i & 1);
      return d;
    });
  if (base == "shl" || base == "shr")
    return Reference{type, {type, "small"}, [=](const Args& x) {
                       const i128 v = integer(type, x[0]);
                       const int n = int(std::min<uint64_t>(x[1], 64));
                       return uint64_t(base == "shl" ? i128(u128(v) << n) : v >> n);
                     }};
  if (base == "bfe")
    return Reference{
        type, {type, "small", "small"}, [=](const Args& x) -> uint64_t {
          if (x[2] == 0) return 0;
          const i128 v = integer(type, x[0]) >> x[1];  // beyond the top: zeros, or the sign
          const int unused = 128 - int(std::min<uint64_t>(x[2], 127));
          return uint64_t(is_signed(type) ? i128(u128(v) << unused) >> unused : i128(u128(v) << unused >> unused));
        }};
  if (base == "bfi")
    return Reference{type, {type, type, "small", "small"}, [=](const Args& x) {
                       uint64_t d = x[1];
                       for (uint64_t i = 0; i < x[3] && x[2] + i < uint64_t(bits); ++i) {
                         const uint64_t one = uint64_t{1} << (x[2] + i);
                         d = (d & ~one) | (x[0] >> i & 1 ? one : 0);
                       }
                       return d;
                     }};
  if (base == "lop3")  // 0xE8 is the majority; every table in a test of its own
    return Reference{type,
                     {type, type, type},
                     [](const Args& x) { return (x[0] & x[1]) | (x[0] & x[2]) | (x[1] & x[2]); },
                     {},
                     "{} d, a, b, c, 0xE8;"};
  if (base == "fns")
    return Reference{type,
                     {"b32", "small", "small"},
                     [](const Args& x) -> uint64_t {
                       if (x[1] > 31) return 0xffffffff;
                       const int n = int(x[2]) % 13 - 6;
                       std::vector<int> set;  // positions of set bits on the way
                       for (int i = int(x[1]); i >= 0 && i < 32; i += n < 0 ? -1 : 1)
                         if (x[0] >> i & 1) set.push_back(i);
                       if (n == 0) return !set.empty() && set[0] == int(x[1]) ? x[1] : 0xffffffff;
                       return size_t(std::abs(n)) <= set.size() ? set[std::abs(n) - 1] : 0xffffffff;
                     },
                     {},
                     "rem.s32 %r, c, 13; sub.s32 %r, %r, 6; {} d, a, b, %r;"};
  return std::nullopt;
}

/// add.cc, addc, mad.lo.cc, ...: with a carry that comes from c's, or e's, lowest bit, d and the carry after it. A subtraction
/// adds b's complement, so its carry is 1 where nothing is borrowed.
std::optional<Reference> carried(Parts parts) {
  const bool out = parts.take("cc"), in = parts.base.ends_with('c') && parts.base != "dec";
  if (!in && !out) return std::nullopt;
  const std::string base = in ? parts.base.substr(0, 3) : parts.base, type = parts.types.at(0);
  if (base != "add" && base != "sub" && base != "mad") return std::nullopt;
  const int bits = bits_of(type);
  const std::string u = "u" + std::to_string(bits), carry = base == "mad" ? "e" : "c";
  const bool high = parts.has("hi"), is_mad = base == "mad";
  Reference r{u, std::vector<std::string>(is_mad ? 4 : 3, u), {}};
  // The sum goes to d's lower bits; of the carry, bit 7 is turned over.
  r.statement = "and." + std::string("b") + std::to_string(bits) + " " + carry + ", " + carry + ", 1; add.cc." + u +
                " " + carry + ", " + carry + ", -1; {} d, a, b" + (is_mad ? ", c" : "") + "; addc." + u + " " + carry +
                ", 0, 0; shl.b" + std::to_string(bits) + " " + carry + ", " + carry + ", 7; xor.b" +
                std::to_string(bits) + " d, d, " + carry + ";";
  r.exact = [=](const Args& x) -> uint64_t {
    const u128 a = low(x[0], bits), b = low(x[1], bits), c = low(x[2], bits);
    const u128 before = (is_mad ? x[3] : x[2]) & 1, used = in ? before : 0;
    const u128 not_b = low(~x[1], bits), one = in ? used : 1;
    const u128 product = is_signed(type) ? u128(integer(type, x[0]) * integer(type, x[1])) : a * b;
    const u128 term = low(uint64_t(high ? product >> bits : product), bits);
    const u128 result = base == "add" ? a + b + used : base == "sub" ? a + not_b + one : term + c + used;
    const uint64_t after = out ? uint64_t(result >> bits) & 1 : uint64_t(before);
    return uint64_t(result) ^ after << 7;
  };
  return r;
}

std::optional<Reference> selection(Parts parts) {
  const std::string type = parts.types.at(0);
  if (parts.base == "selp")
    return Reference{type,
                     {type, type, "b32"},
                     [](const Args& x) { return x[2] & 1 ? x[0] : x[1]; },
                     {},
                     "and.b32 %r, c, 1; setp.ne.u32 p, %r, 0; {} d, a, b, p;"};
  if (parts.base == "slct") {
    const std::string c = parts.types.at(1);
    const bool ftz = parts.take("ftz");
    return Reference{type, {type, type, c}, [=](const Args& x) {
                       if (c == "s32") return integer(c, x[2]) >= 0 ? x[0] : x[1];
                       const double v = ftz ? flush(c, value(c, x[2])) : value(c, x[2]);
                       return v >= 0 ? x[0] : x[1];
                     }};
  }
  const std::string kind = parts.modifiers.at(0);  // testp
  return Reference{"b32",
                   {type},
                   [=](const Args& x) -> uint64_t {
                     const double v = std::fabs(value(type, x[0]));
                     const Format f = formats.at(type);
                     if (kind == "finite") return v <= f.largest();
                     if (kind == "infinite") return v > f.largest();
                     if (kind == "number") return v == v;
                     if (kind == "notanumber") return v != v;
                     if (kind == "normal") return v >= f.smallest_normal() && v <= f.largest();
                     return v > 0 && v < f.smallest_normal();
                   },
                   {},
                   "{} p, a; selp.b32 d, 1, 0, p;"};
}

std::optional<Reference> reference(const std::string& mnemonic) {
  const Parts parts(mnemonic);
  if (parts.types.empty()) return std::nullopt;
  const std::string type = parts.types[0], base = parts.base;
  if (base == "setp" || base == "set") return compare(parts);
  if (base == "cvt") return conversion(parts);
  if (base == "selp" || base == "slct" || base == "testp") return selection(parts);
  if (base == "mov") return integers(Parts(type == "pred" ? mnemonic : "mov.b" + std::to_string(bits_of(type))));
  if (is_pair(type)) {           // each half as one number
    std::string one = mnemonic;  // "max.s16x2.relu": the type need not come last
    one.erase(one.rfind("x2"), 2);
    const auto half = reference(one);
    if (!half) return std::nullopt;
    const int bits = bits_of(type) / 2;
    const auto part = [=](const Args& x, int by) {
      Args h;
      for (size_t i = 0; i < h.size(); ++i) h[i] = low(x[i] >> by, bits);
      return h;
    };
    Reference pair{type, std::vector<std::string>(half->types.size(), type), {}};
    if (half->exact)
      pair.exact = [=](const Args& x) {
        return low(half->exact(part(x, 0)), bits) | low(half->exact(part(x, bits)), bits) << bits;
      };
    else
      pair.near = [=](uint64_t d, const Args& x) {
        return half->near(low(d, bits), part(x, 0)) && half->near(d >> bits, part(x, bits));
      };
    return pair;
  }
  if (is_float(type)) {
    for (const auto& family : {approximate, arithmetic, ordering})
      if (const auto found = family(parts)) return found;
    return std::nullopt;
  }
  if (const auto found = carried(parts)) return found;
  return integers(parts);
}

bool equal(const std::string& type, uint64_t got, uint64_t want) {
  if (const int bits = bits_of(type) / 2; is_pair(type))
    return equal(half_of(type), low(got, bits), low(want, bits)) && equal(half_of(type), got >> bits, want >> bits);
  return got == want || (is_nan(type, got) && is_nan(type, want));
}

/// Whether the executor does what the reference says, for every thread.
testing::AssertionResult agrees(const std::string& mnemonic, const Reference& r, uint64_t seed) {
  std::vector<std::vector<uint64_t>> in;
  std::string list = " d";
  for (size_t i = 0; i < r.types.size(); ++i) {
    in.push_back(operands(r.types[i], seed + 17 * i + mnemonic.size()));
    list += std::string(", ") + names[i];
  }
  std::string statement = r.statement.empty() ? "{}" + list + ";" : r.statement;
  statement.replace(statement.find("{}"), 2, mnemonic);
  const auto got = execute(statement, r.d, r.types, in);
  for (int t = 0; t < threads; ++t) {
    Args x{};
    for (size_t i = 0; i < in.size(); ++i) x[i] = low(in[i][t], 8 * bytes_of(r.types[i]));
    const uint64_t want = r.exact ? low(r.exact(x), 8 * bytes_of(r.d)) : 0;
    if (r.exact ? equal(r.d, got[t], want) : r.near(got[t], x)) continue;
    return testing::AssertionFailure() << std::hex << mnemonic << " of " << x[0] << " " << x[1] << " " << x[2] << " "
                                       << x[3] << " is " << got[t] << ", expected " << want;
  }
  return testing::AssertionSuccess();
}

TEST(Instructions, EveryOneThatIsKnownDoesWhatTheIsaSays) {
  const std::vector<std::string> all = lane_instructions();
  EXPECT_GT(all.size(), 1000U);
  for (const std::string& mnemonic : all) {
    const auto r = reference(mnemonic);
    if (!r) {
      ADD_FAILURE() << mnemonic << " has no reference";
      continue;
    }
    try {
      EXPECT_TRUE(agrees(mnemonic, *r, 0));
    } catch (const std::exception& error) {
      ADD_FAILURE() << mnemonic << ": " << error.what();
    }
  }
}

/// The reference is itself compared with the CPU, where the CPU has the operation.
TEST(Instructions, TheReferenceAgreesWithTheCpu) {
  std::mt19937_64 random(1);
  const auto same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (x != x && y != y);
  };
  for (int i = 0; i < 20000; ++i) {
    const double x = value("f64", operand("f64", random)), y = value("f64", operand("f64", random)),
                 z = value("f64", operand("f64", random));
    const Format f64 = formats.at("f64"), f32 = formats.at("f32");
    ASSERT_TRUE(same(test::sum(x, y, f64, Mode::nearest), x + y)) << x << " + " << y;
    ASSERT_TRUE(same(test::fused(x, y, z, f64, Mode::nearest), std::fma(x, y, z))) << x << " * " << y << " + " << z;
    ASSERT_TRUE(same(test::quotient(x, y, f64, Mode::nearest), x / y)) << x << " / " << y;
    ASSERT_TRUE(same(test::root(x, f64, Mode::nearest), std::sqrt(x))) << x;
    const bool single = !std::isfinite(x) || same(test::product(x, 1, f32, Mode::nearest), float(x));
    ASSERT_TRUE(single) << x;
    const float u = float(value("f32", operand("f32", random))), v = float(value("f32", operand("f32", random)));
    ASSERT_TRUE(same(test::product(u, v, f32, Mode::nearest), u * v)) << u << " * " << v;
  }
}

/// Every code to FP16 and back, and the numbers halfway between two codes, just below and just above.
TEST(Instructions, EveryCodeOfFp8) {
  std::vector<uint64_t> codes(threads);
  for (int t = 0; t < threads; ++t) codes[t] = t | (255 - t) << 8;
  for (const std::string format : {"e4m3", "e5m2"}) {
    const auto back = execute("cvt.rn.f16x2." + format + "x2 %r, a; cvt.rn.satfinite." + format + "x2.f16x2 d, %r;",
                              "b16", {"b16"}, {codes});
    const auto same = [&](uint64_t code) {
      const double v = fp8_value(format, int(code));
      return uint64_t(std::isnan(v) ? 0x7f : std::isinf(v) ? code - 1 : code);
    };
    for (int t = 0; t < threads; ++t) EXPECT_EQ(back[t], same(t) | same(255 - t) << 8) << format;
    for (const double beside : {-1, 0, 1}) {
      std::vector<uint64_t> between(threads), negative(threads);
      for (int t = 0; t < threads; ++t) {
        const double a = fp8_value(format, t % 128), b = fp8_value(format, (t + 1) % 128);
        const float middle = std::isfinite(a) && std::isfinite(b) ? float((a + b) / 2) : 1e6F;
        const float x = beside == 0 ? middle : std::nextafterf(middle, float(beside) * INFINITY);
        between[t] = encode("f32", x);
        negative[t] = encode("f32", -x);
      }
      const auto got =
          execute("cvt.rn.satfinite." + format + "x2.f32 d, a, b;", "b16", {"f32", "f32"}, {negative, between});
      for (int t = 0; t < threads; ++t) {
        const uint64_t up = uint64_t(t % 128 + 1), down = up - 1;  // halfway: to the even code
        const double a = fp8_value(format, int(down)), b = fp8_value(format, int(up));
        const uint64_t most = format == "e4m3" ? 0x7e : 0x7b;
        uint64_t want = beside < 0 ? down : beside > 0 ? up : up % 2 ? down : up;
        if (!std::isfinite(a) || !std::isfinite(b)) want = most;
        EXPECT_EQ(got[t], want | (want | 0x80) << 8) << format << " " << value("f32", between[t]);
      }
    }
  }
}

TEST(Instructions, EveryTableOfLop3) {
  const auto a = operands("b32", 1), b = operands("b32", 2), c = operands("b32", 3);
  for (unsigned table = 0; table < 256; ++table) {
    const auto got =
        execute("lop3.b32 d, a, b, c, " + std::to_string(table) + ";", "b32", {"b32", "b32", "b32"}, {a, b, c});
    for (int t = 0; t < threads; t += 7)
      for (int bit = 0; bit < 32; ++bit) {
        const unsigned row = (a[t] >> bit & 1) << 2 | (b[t] >> bit & 1) << 1 | (c[t] >> bit & 1);
        ASSERT_EQ(got[t] >> bit & 1, table >> row & 1) << table;
      }
  }
}

/// Statements that chain by the carry flag, against arithmetic in 128 bits. The operands are a, b, c and e, of 64 bits. As words
/// of 32 bits they are a0, a1, b0, ...; x = a + 2^64 b, y = c + 2^64 e.
TEST(Instructions, CarryGoesFromOneToTheNext) {
  const std::vector<std::vector<uint64_t>> in = {operands("u64", 1), operands("u64", 2), operands("u64", 3),
                                                 operands("u64", 4)};
  const std::string declarations = ".reg .b32 a0, a1, b0, b1, c0, c1, e0, e1, f0, f1, f2, f3; .reg .b64 f, g;";
  const std::string split = "mov.b64 {a0, a1}, a; mov.b64 {b0, b1}, b; mov.b64 {c0, c1}, c; mov.b64 {e0, e1}, e; ";
  struct Chain {
    std::string statements;  ///< to f0 to f3, or to g and f where it has words of 64 bits
    std::function<u128(u128 x, u128 y)> exact;
  };
  const auto low64 = [](u128 x) { return x & ~uint64_t{0}; };
  const std::vector<Chain> chains = {
      {"add.cc.u32 f0, a0, c0; addc.cc.u32 f1, a1, c1; addc.cc.u32 f2, b0, e0; addc.u32 f3, b1, e1;",
       [](u128 x, u128 y) { return x + y; }},
      {"add.cc.s32 f0, a0, c0; addc.cc.s32 f1, a1, c1; addc.cc.s32 f2, b0, e0; addc.s32 f3, b1, e1;",
       [](u128 x, u128 y) { return x + y; }},
      {"add.cc.u64 f, a, c; addc.u64 g, b, e;", [](u128 x, u128 y) { return x + y; }},
      {"sub.cc.u32 f0, a0, c0; subc.cc.u32 f1, a1, c1; subc.cc.u32 f2, b0, e0; subc.u32 f3, b1, e1;",
       [](u128 x, u128 y) { return x - y; }},
      {"sub.cc.s64 f, a, c; subc.s64 g, b, e;", [](u128 x, u128 y) { return x - y; }},
      // the carry out of the last word
      {"add.cc.u64 f, a, c; addc.cc.u64 f, b, e; addc.u64 f, 0, 0; mov.u64 g, 0;",
       [](u128 x, u128 y) { return u128(x + y < x); }},
      {"sub.cc.u64 f, a, c; subc.cc.u64 f, b, e; subc.u64 f, 0, 0; mov.u64 g, 0;",
       [=](u128 x, u128 y) { return x < y ? low64(~u128{0}) : u128{0}; }},
      // Mixed: a subtraction adds the complement, so the flag is 1 where it borrows nothing, and subc borrows where it is 0.
      {"sub.cc.u32 f0, a0, c0; addc.u32 f0, 0, 0; sub.cc.u64 f, a, c; addc.u32 f1, 0, 0;"
       "sub.cc.u64 f, a, c; subc.cc.u64 f, b, e; addc.u32 f2, 0, 0; mov.u32 f3, 0;",
       [=](u128 x, u128 y) {
         return u128(uint32_t(x) >= uint32_t(y)) | u128(low64(x) >= low64(y)) << 32 | u128(x >= y) << 64;
       }},
      {"add.cc.u32 f0, a0, c0; subc.u32 f0, 5, 2; add.cc.u64 f, a, c; subc.u32 f1, 5, 2;"
       "mad.lo.cc.u32 f2, a0, b0, c0; subc.u32 f2, 5, 2; mad.hi.cc.u64 f, a, b, c; subc.u32 f3, 5, 2;",
       [=](u128 x, u128 y) {
         const auto three = [](bool carry) { return u128(carry ? 3 : 2); };
         const uint64_t a = uint64_t(x), b = uint64_t(x >> 64), c = uint64_t(y);
         return three((low64(uint32_t(x)) + uint32_t(y)) >> 32) | three((low64(x) + c) >> 64) << 32 |
                three((uint64_t{uint32_t(a * b)} + uint32_t(c)) >> 32) << 64 |
                three(((u128(a) * b >> 64) + c) >> 64) << 96;
       }},
      // products: c + a * b, of 32-bit words and of 64-bit ones; and the product of x and c, cut off
      {"mad.lo.cc.u32 f0, a0, b0, c0; madc.hi.u32 f1, a0, b0, c1;"
       "mul.lo.u32 f2, a1, b1; mul.hi.u32 f3, a1, b1; mad.lo.cc.u32 f1, a0, b1, f1; madc.hi.cc.u32 f2, a0, b1, f2;"
       "addc.u32 f3, f3, 0; mad.lo.cc.u32 f1, a1, b0, f1; madc.hi.cc.u32 f2, a1, b0, f2; addc.u32 f3, f3, 0;",
       [=](u128 x, u128 y) {
         const uint64_t a = uint64_t(x), b = uint64_t(x >> 64), c = uint64_t(y);
         // the carry out of madc.hi.u32 f1 is dropped
         const u128 first = u128{uint32_t(a)} * uint32_t(b) + c;
         return u128(a) * b - u128{uint32_t(a)} * uint32_t(b) + low64(first);
       }},
      {"mad.lo.cc.u64 f, a, b, c; madc.hi.u64 g, a, b, e;", [=](u128 x, u128 y) { return low64(x) * (x >> 64) + y; }},
      {"mul.lo.u64 f, a, c; mul.hi.u64 g, a, c; mad.lo.cc.u64 g, b, c, g; madc.lo.u64 g, 0, 0, g;",
       [=](u128 x, u128 y) {
         const u128 middle = (low64(x) * low64(y) >> 64) + low64((x >> 64) * low64(y));
         return low64(low64(x) * low64(y)) | low64(middle + (middle >> 64)) << 64;
       }},
      {"mad.lo.cc.s64 f, a, b, c; madc.hi.s64 g, a, b, e;",
       [=](u128 x, u128 y) { return u128(i128(int64_t(x)) * i128(int64_t(x >> 64))) + y; }},
      {"mad.lo.cc.s32 f0, a0, c0, e0; madc.hi.cc.s32 f1, a0, c0, e1; madc.lo.s32 f2, a1, c1, b0; mov.u32 f3, 0;",
       [=](u128 x, u128 y) {
         const u128 sum = u128(uint64_t(int64_t{int32_t(x)} * int32_t(y))) + uint64_t(y >> 64);
         const uint32_t rest = uint32_t(x >> 32) * uint32_t(y >> 32) + uint32_t(x >> 64) + uint32_t(sum >> 64);
         return low64(sum) | u128{rest} << 64;
       }},
  };
  for (const Chain& chain : chains) {
    const bool wide = chain.statements.find("g,") != std::string::npos;
    const auto part = [&](const std::string& to_d) {
      return execute(split + chain.statements + to_d, "b64", {"b64", "b64", "b64", "b64"}, in, declarations);
    };
    const auto lower = part(wide ? "mov.b64 d, f;" : "mov.b64 d, {f0, f1};");
    const auto upper = part(wide ? "mov.b64 d, g;" : "mov.b64 d, {f2, f3};");
    for (int t = 0; t < threads; ++t) {
      const u128 want = chain.exact(u128(in[1][t]) << 64 | in[0][t], u128(in[3][t]) << 64 | in[2][t]);
      EXPECT_EQ(lower[t], uint64_t(want)) << chain.statements << " thread " << t;
      EXPECT_EQ(upper[t], uint64_t(want >> 64)) << chain.statements << " thread " << t;
    }
  }
}

TEST(Instructions, ComparisonsCombineWithPredicates) {
  const auto x = operands("f32", 5), y = operands("f32", 6);
  const auto number = [](uint64_t bits) { return value("f32", bits); };
  for (const std::string combine : {"and", "or", "xor"})
    for (const std::string sign : {"", "!"}) {
      const auto got = execute("setp.gt.f32 q, a, 0f3F800000; setp.ltu." + combine + ".f32 p|q, a, b, " + sign +
                                   "q; selp.b32 d, 1, 0, p; @q add.s32 d, d, 2;",
                               "b32", {"f32", "f32"}, {x, y});
      for (int t = 0; t < threads; ++t) {
        const bool is = !(number(x[t]) >= number(y[t])), c = (number(x[t]) > 1) != (sign == "!");
        const auto with = [&](bool v) { return combine == "and" ? v && c : combine == "or" ? v || c : v != c; };
        ASSERT_EQ(got[t], unsigned(with(is)) + 2 * unsigned(with(!is))) << combine << sign;
      }
    }
}

// --- a warp's lanes together (9.7.13) ------------------------------------------------------------------------------------------

/// f(lanes of the warp that take part, their operands, own lane).
using Together = std::function<uint64_t(uint32_t mask, const uint64_t* a, int lane)>;

void together(const std::string& statement, const std::string& type, const Together& expected) {
  // Half of the operands come from few values, so some are equal. One warp is whole; of the others some lanes take part.
  auto a = operands(type, 3);
  for (int t = 0; t < threads; t += 2) a[t] = t / 2 % 3;
  for (int t = 32; t < 64; ++t) a[t] = 9;
  const auto got = execute(
      "mov.u32 %r, %tid.x; shr.u32 w, %r, 5; shr.u32 m, 0xffffffff, w; and.b32 %r, %r, 31; shr.u32 "
      "%r, m, %r; and.b32 %r, %r, 1; mov.b32 d, -1; setp.eq.u32 p, %r, 0; @p bra END; " +
          statement + " END:",
      "b32", {type}, {a}, ".reg .b32 w, m, f;");
  for (int t = 0; t < threads; ++t) {
    const uint32_t mask = 0xffffffffU >> (t / 32);
    const bool takes_part = mask >> (t % 32) & 1;
    const uint64_t want = takes_part ? low(expected(mask, &a[t / 32 * 32], t % 32), 32) : 0xffffffff;
    ASSERT_EQ(got[t], want) << statement << " in thread " << t;
  }
}

uint32_t equals(uint32_t mask, const uint64_t* a, int lane, int bits) {
  uint32_t same = 0;
  for (int l = 0; l < 32; ++l) same |= uint32_t((mask >> l & 1) && low(a[l], bits) == low(a[lane], bits)) << l;
  return same;
}

TEST(Warps, Match) {
  for (const int bits : {32, 64}) {
    const std::string type = "b" + std::to_string(bits);
    together("match.any.sync." + type + " d, a, m;", type,
             [=](uint32_t mask, const uint64_t* a, int lane) { return equals(mask, a, lane, bits); });
    together("match.all.sync." + type + " d|p, a, m; @p xor.b32 d, d, 0x55;", type,
             [=](uint32_t mask, const uint64_t* a, int lane) {
               return equals(mask, a, lane, bits) == mask ? mask ^ 0x55 : 0;
             });
  }
}

TEST(Warps, Redux) {
  const auto over = [](const std::string& op, const std::string& type, i128 (*f)(i128, i128)) {
    together("redux.sync." + op + "." + type + " d, a, m;", type, [=](uint32_t mask, const uint64_t* a, int) {
      std::optional<i128> d;
      for (int l = 0; l < 32; ++l)
        if (mask >> l & 1) d = d ? f(*d, integer(type, a[l])) : integer(type, a[l]);
      return uint64_t(*d);
    });
  };
  for (const std::string type : {"u32", "s32"}) {
    over("add", type, [](i128 a, i128 b) { return a + b; });
    over("min", type, [](i128 a, i128 b) { return std::min(a, b); });
    over("max", type, [](i128 a, i128 b) { return std::max(a, b); });
  }
  over("and", "b32", [](i128 a, i128 b) { return a & b; });
  over("or", "b32", [](i128 a, i128 b) { return a | b; });
  over("xor", "b32", [](i128 a, i128 b) { return a ^ b; });
}

TEST(Warps, VotesAndElection) {
  const auto ballot = [](uint32_t mask, const uint64_t* a) {
    uint32_t votes = 0;
    for (int l = 0; l < 32; ++l) votes |= uint32_t((mask >> l & 1) && low(a[l], 32) != 0) << l;
    return votes;
  };
  const std::string test = "setp.ne.u32 p, a, 0; ", select = " selp.b32 d, 1, 0, q;";
  together(test + "vote.sync.ballot.b32 d, p, m;", "b32",
           [=](uint32_t m, const uint64_t* a, int) { return ballot(m, a); });
  together(test + "vote.sync.all.pred q, p, m;" + select, "b32",
           [=](uint32_t m, const uint64_t* a, int) { return ballot(m, a) == m; });
  together(test + "vote.sync.any.pred q, !p, m;" + select, "b32",
           [=](uint32_t m, const uint64_t* a, int) { return ballot(m, a) != m; });
  together(test + "vote.sync.uni.pred q, p, m;" + select, "b32",
           [=](uint32_t m, const uint64_t* a, int) { return ballot(m, a) == m || ballot(m, a) == 0; });
  // Which lane is elected is not specified. It must be exactly one of those that take part.
  together(
      "elect.sync f|p, m; vote.sync.ballot.b32 d, p, m; popc.b32 d, d; shl.b32 %r, 1, f; and.b32 %r, %r, m; "
      "popc.b32 %r, %r; shl.b32 %r, %r, 4; or.b32 d, d, %r;",
      "b32", [](uint32_t, const uint64_t*, int) { return 0x11; });
}

// --- memory (9.7.9, 9.7.13.5) --------------------------------------------------------------------------------------------------

TEST(Memory, GenericAddressesReachEveryStateSpace) {
  const auto a = operands("b32", 1);
  const std::string declare =
      ".shared .align 8 .b8 s[1024]; .local .align 8 .b8 l[16]; .reg .b64 x, y, z; .reg .b32 v, w; .reg .pred u;";
  const auto got = execute(
      "mov.u32 %r, %tid.x; mul.wide.u32 %t, %r, 4; mov.u64 x, s; cvta.shared.u64 x, x; add.s64 x, x, %t;"
      "mov.u64 y, l; cvta.local.u64 y, y; cvta.global.u64 z, %out;"
      "st.b32 [x], a; st.b32 [y+8], 5; st.b32 [z], 7;"  // generic stores
      "mov.u32 %r, s; cvt.u32.u64 v, %t; add.s32 %r, %r, v; ld.shared.b32 v, [%r]; ld.local.b32 w, [l+8]; add.s32 v, "
      "v, w;"
      "ld.b32 w, [z]; add.s32 v, v, w; cvta.to.shared.u64 x, x; ld.shared.b32 w, [x]; xor.b32 v, v, w;"
      "cvta.shared.u64 x, x; isspacep.shared u, x; @!u trap; isspacep.global u, x; @u trap; isspacep.local u, y; @!u "
      "trap;"
      "isspacep.global u, z; @!u trap; mov.b32 d, v;",
      "b32", {"b32"}, {a}, declare);
  for (int t = 0; t < threads; ++t) EXPECT_EQ(got[t], low((a[t] + 12) ^ low(a[t], 32), 32));
}

TEST(Memory, NarrowAndWideElements) {
  const auto a = operands("b64", 1);
  const std::string declare = ".local .align 16 .b8 l[32]; .reg .b16 h, i, j, k; .reg .b32 v, w; .reg .b64 x;";
  const auto got = execute(
      "st.local.b64 [l], a; ld.local.s8 v, [l+1]; ld.local.u8 h, [l+7]; ld.local.v2.s16 {i, j}, [l+4]; "
      "cvt.u32.u16 w, h; add.s32 v, v, w; cvt.s32.s16 w, i; add.s32 v, v, w; cvt.s32.s16 w, j; add.s32 v, v, w;"
      "st.local.b8 [l+16], v; st.local.b8 [l+17], w; ld.local.u16 k, [l+16]; cvt.u32.u16 w, k; shl.b32 w, w, 16;"
      "and.b32 v, v, 0xffff; or.b32 d, v, w;",
      "b32", {"b64"}, {a}, declare);
  for (int t = 0; t < threads; ++t) {
    const auto s = [&](int bit, int bits) { return int32_t(integer("s" + std::to_string(bits), a[t] >> bit)); };
    const int32_t v = s(8, 8) + int32_t(a[t] >> 56) + s(32, 16) + s(48, 16), w = s(48, 16);
    EXPECT_EQ(got[t], (uint32_t(v) & 0xffff) | uint32_t(v & 0xff) << 16 | uint32_t(w & 0xff) << 24);
  }
}

/// Every thread of the block updates one place. The value at the end does not depend on their order.
TEST(Memory, Atomics) {
  struct Case {
    std::string op, type;
    std::function<uint64_t(uint64_t old, uint64_t a)> f;
    uint64_t start;
  };
  std::vector<Case> cases;
  for (const std::string type : {"u32", "s32", "u64", "s64"}) {
    cases.push_back(
        {"min", type, [=](uint64_t o, uint64_t a) { return integer(type, o) < integer(type, a) ? o : a; }, 77});
    cases.push_back(
        {"max", type, [=](uint64_t o, uint64_t a) { return integer(type, o) > integer(type, a) ? o : a; }, 77});
  }
  for (const std::string type : {"u32", "s32", "u64"})
    cases.push_back({"add", type, [](uint64_t o, uint64_t a) { return o + a; }, 5});
  for (const std::string type : {"b32", "b64"}) {
    cases.push_back({"and", type, [](uint64_t o, uint64_t a) { return o & a; }, ~0ULL});
    cases.push_back({"or", type, [](uint64_t o, uint64_t a) { return o | a; }, 0});
    cases.push_back({"xor", type, [](uint64_t o, uint64_t a) { return o ^ a; }, 1});
  }
  cases.push_back({"inc", "u32", [](uint64_t o, uint64_t) { return o >= 100 ? 0 : o + 1; }, 3});
  cases.push_back({"dec", "u32", [](uint64_t o, uint64_t) { return o == 0 || o > 100 ? 100 : o - 1; }, 3});
  const auto small = [](const std::string& type) {  // so that a sum is exact, in any order
    return [=](uint64_t o, uint64_t a) { return encode(type, value(type, o) + value(type, a)); };
  };
  for (const std::string type : {"f32", "f64"}) cases.push_back({"add", type, small(type), encode(type, 3)});
  for (const std::string type : {"f16", "bf16"}) cases.push_back({"add.noftz", type, small(type), encode(type, 3)});
  for (const std::string type : {"f16", "bf16"})
    cases.push_back({"add.noftz", type + "x2",
                     [=](uint64_t o, uint64_t a) {
                       return small(type)(o & 0xffff, a & 0xffff) | small(type)(o >> 16, a >> 16) << 16;
                     },
                     encode(type, 3) | encode(type, 1) << 16});
  for (const Case& c : cases)
    for (const std::string space : {"shared", "global", ""}) {
      const std::string type = is_pair(c.type) ? half_of(c.type) : c.type;
      auto a = operands(c.type, 4);
      if (is_float(type))
        for (size_t t = 0; t < a.size(); ++t) {
          a[t] = encode(type, double(int(t % 3)) - 1);
          if (is_pair(c.type)) a[t] |= encode(type, double(int(t % 2))) << 16;
          if (type == "bf16" && t % 4 == 3) a[t] = 0;
        }
      if (c.op == "inc" || c.op == "dec") a.assign(threads, 100);
      const std::string w = ".b" + std::to_string(8 * bytes_of(c.type));
      const std::string dot = space.empty() ? "" : "." + space;
      // The place: in shared memory, or the first result.
      const std::string place = space == "global"
                                    ? "ld.param.u64 x, [p1]; cvta.to.global.u64 x, x;"
                                    : "mov.u64 x, s;" + std::string(space.empty() ? "cvta.shared.u64 x, x;" : "");
      const std::string first = "mov.u32 %r, %tid.x; setp.eq.u32 p, %r, 0; ";
      const auto got = execute(place + first + "mov" + w + " d, " + std::to_string(c.start) + "; @p st" + dot + w +
                                   " [x], d; bar.sync 0; red" + dot + "." + c.op + "." + c.type +
                                   " [x], a; bar.sync 0; ld" + dot + w + " d, [x]; bar.sync 0;",
                               c.type, {c.type}, {a}, ".shared .align 8 .b8 s[8]; .reg .b64 x;");
      uint64_t want = low(c.start, 8 * bytes_of(c.type));
      for (const uint64_t v : a) want = low(c.f(want, low(v, 8 * bytes_of(c.type))), 8 * bytes_of(c.type));
      for (int t = 0; t < threads; ++t) ASSERT_EQ(got[t], want) << space << " " << c.op << "." << c.type;
    }
}

/// atom returns the value before: 256 tickets, each once; exch and cas of 16, 32 and 64 bits.
TEST(Memory, AtomicsGiveTheOldValue) {
  const std::string declare = ".shared .align 8 .b8 s[8]; .reg .b16 h, i; .reg .b64 x, y;",
                    zero = "mov.u32 %r, %tid.x; setp.eq.u32 p, %r, 0; @p st.shared.b64 [s], 0; bar.sync 0;";
  std::vector<uint64_t> seen(threads);
  for (const uint64_t ticket : execute(zero + "atom.shared.add.u32 d, [s], 1;", "b32", {}, {}, declare))
    ++seen.at(ticket);
  EXPECT_EQ(seen, std::vector<uint64_t>(threads, 1));
  for (const std::string type : {"b16", "b32", "b64"}) {
    const std::string set = type == "b16"   ? "cvt.u16.u32 h, %r; mov.b16 i, h;"
                            : type == "b32" ? "mov.b32 e, %r;"
                                            : "cvt.u64.u32 x, %r;";
    const std::string v = type == "b16" ? "h" : type == "b32" ? "e" : "x";
    // Every thread tries to replace 0 by its own number + 1. One gets 0 back, the others get what that one has written.
    const auto got = execute(zero + "add.s32 %r, %r, 1;" + set + "atom.shared.cas." + type + " d, [s], 0, " + v + ";",
                             type, {}, {}, declare + ".reg .b32 e;");
    const auto winner = std::find(got.begin(), got.end(), 0U) - got.begin();
    ASSERT_LT(winner, threads);
    for (int t = 0; t < threads; ++t) EXPECT_EQ(got[t], t == winner ? 0U : uint64_t(winner + 1)) << type;
    if (type == "b16") continue;
    // A chain of exchanges: each value is returned once, except the last one, which stays in memory.
    const auto chain = execute(zero + "add.s32 %r, %r, 1;" + set + "atom.shared.exch." + type + " d, [s], " + v + ";",
                               type, {}, {}, declare + ".reg .b32 e;");
    std::vector<uint64_t> sorted = chain;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end()) << type;
    EXPECT_EQ(sorted.front(), 0U);
  }
}

/// Vectors in global memory (sm_90): each element by itself. Every thread adds {1, 2, 3, 4} to the first words of the results.
TEST(Memory, AtomicsOfVectors) {
  const auto got = execute(
      "mov.f32 e, 0f3F800000; mov.f32 f, 0f40000000; mov.f32 g, 0f40400000; mov.f32 h, 0f40800000; ld.param.u64 %in, "
      "[p1]; red.global.add.v2.f32 [%in], {e, f}; atom.global.add.v4.f32 {e, _, f, _}, [%in+16], {e, f, g, h}; "
      "bar.sync 0; ld.global.v2.f32 {e, f}, [%in]; fma.rn.f32 e, f, 0f447A0000, e; ld.global.v2.f32 {g, h}, [%in+24]; "
      "sub.f32 g, h, g; add.f32 e, e, g; bar.sync 0; mov.b32 d, e;",
      "b32", {}, {}, ".reg .f32 e, f, g, h;");
  for (int t = 0; t < threads; ++t) EXPECT_EQ(value("f32", got[t]), 256 + 1000 * 512 + 256);
  // Halves: the larger of the numbers 0 to 255 and -1, in pairs.
  const auto extreme = execute(
      "mov.u32 %r, %tid.x; cvt.rn.f16.u32 h, %r; mov.b16 i, 0xbc00; ld.param.u64 %in, [p1]; "
      "red.global.max.noftz.v2.f16 [%in], {h, i}; red.global.min.noftz.v2.f16 [%in+4], {h, i}; bar.sync 0; "
      "ld.global.b32 d, [%in]; ld.global.b32 %r, [%in+4]; xor.b32 d, d, %r; bar.sync 0;",
      "b32", {}, {}, ".reg .b16 h, i;");
  for (int t = 0; t < threads; ++t) EXPECT_EQ(low(extreme[t], 32), encode("f16", 255) ^ uint64_t{0xbc00} << 16);
}

/// Hints: nothing happens, in any order.
TEST(Memory, HintsAndPolicies) {
  const auto a = operands("b32", 1);
  const auto got = execute(
      "createpolicy.fractional.L2::evict_first.b64 x, 1.0; createpolicy.range.global.L2::evict_last.b64 y, [%in], 64, "
      "128; prefetch.global.L2 [%in]; prefetch.global.L2::evict_last [%in]; prefetchu.L1 [%in]; "
      "applypriority.global.L2::evict_normal [%in], 128; fence.proxy.alias; "
      "fence.proxy.tensormap::generic.acquire.gpu [%in], 128; ld.global.L2::cache_hint.b32 d, [%in], x; "
      "st.global.L2::cache_hint.b32 [%out], d, y; red.global.add.L2::cache_hint.u32 [%out+4], 1, x;",
      "b32", {"b32"}, {a}, ".reg .b64 x, y;");
  for (int t = 0; t < threads; ++t) EXPECT_EQ(got[t], low(a[t], 32) | uint64_t{1} << 32);
}

TEST(Instructions, WhatIsUnknownIsNamed) {
  const auto none = std::vector<std::vector<uint64_t>>{operands("b32", 1)};
  for (const std::string statement : {"frobnicate.b32 d, a;", "add.s32.funny d, a, a;", "cvt.rn.relu.f64.f32 d, a;"}) {
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
