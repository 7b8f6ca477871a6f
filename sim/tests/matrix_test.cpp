// The tensor cores' instructions against FP64 products, by the fragment tables of the PTX ISA (9.7.14), written out here
// shape by shape as they stand there.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "executor/rounding.h"
#include "tests/kernel_run.h"

namespace {

using namespace sim;
using sim::test::KernelLaunch;
using sim::test::KernelRun;

void expect_report(const std::vector<std::string>& body, const std::vector<std::string>& parts, uint32_t threads = 32,
                   Fault fault = Fault::launch_failure) {
  sim::test::expect_report(body, {.threads = threads}, parts, fault, 1);
}

std::string registers(int first, int count, const std::string& letter = "%r") {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + letter + std::to_string(first + i);
  return text + "}";
}

// --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------------------

/// Four matrices of 8 x 8: element (i, j) of matrix m is 1000 m + 10 i + j, its row i at row_address(m, i).
struct Rows {
  std::string name;
  std::function<uint32_t(uint32_t, uint32_t)> address;
  uint64_t wavefronts;  ///< of four matrices
};
const Rows layouts[] = {
    {"dense", [](uint32_t m, uint32_t i) { return 128 * m + 16 * i; }, 4},
    {"128 bytes apart: all in the same four banks", [](uint32_t m, uint32_t i) { return 1024 * m + 128 * i; }, 32},
    {"padded", [](uint32_t m, uint32_t i) { return 1152 * m + 144 * i; }, 4},
    {"swizzled", [](uint32_t m, uint32_t i) { return 128 * i + 16 * (m ^ i); }, 4},
    {"64 bytes apart", [](uint32_t m, uint32_t i) { return 512 * m + 64 * i; }, 16},
};
/// Every lane computes the address of its row into %r10 from a table in global memory, words 1024 and up.
const std::string row_address = "ld.global.u32 %r10, [%mine+4096]; mov.u32 %r11, tile; add.s32 %r10, %r10, %r11; ";

std::vector<uint32_t> memory_of(const Rows& layout) {
  std::vector<uint32_t> words(KernelRun::words);
  for (uint32_t l = 0; l < 32; ++l) words[1024 + l] = layout.address(l / 8, l % 8);
  return words;
}
uint16_t value(uint32_t m, uint32_t i, uint32_t j) { return uint16_t(1000 * m + 10 * i + j); }

TEST(Matrix, LdmatrixAndStmatrix) {
  for (const Rows& layout : layouts)
    for (const int count : {1, 2, 4})
      for (const bool trans : {false, true}) {
        std::vector<uint32_t> in = memory_of(layout);
        for (uint32_t m = 0; m < 4; ++m)
          for (uint32_t i = 0; i < 8; ++i)
            for (uint32_t j = 0; j < 4; ++j)
              in[2048 + (layout.address(m, i) / 4 + j)] = value(m, i, 2 * j) | uint32_t{value(m, i, 2 * j + 1)} << 16;
        // All of the shared memory used here is filled from words 2048 and up, the lanes' registers go to words 0 and up;
        // then stmatrix puts them 8192 bytes further on, from where they are read row by row.
        const std::string how = std::string(".sync.aligned.m8n8.x") + std::to_string(count) + (trans ? ".trans" : "");
        std::vector<std::string> body = {
            row_address +
                "mul.lo.s32 %r13, %t, 4; add.s32 %r14, %r11, %r13; mov.u32 %r15, 0; add.s64 %d1, %mine, 8192;"
                "FILL: ld.global.u32 %r16, [%d1]; st.shared.u32 [%r14], %r16; add.s64 %d1, %d1, 128; add.s32 %r14, "
                "%r14, 128;"
                "add.s32 %r15, %r15, 1; setp.lt.u32 %p1, %r15, 44; @%p1 bra FILL;",
            "ldmatrix" + how + ".shared.b16 " + registers(20, count) + ", [%r10];"};
        for (int i = 0; i < count; ++i)
          body.push_back("st.global.u32 [%mine+" + std::to_string(128 * i) + "], %r" + std::to_string(20 + i) + ";");
        body.push_back("stmatrix" + how + ".shared::cta.b16 [%r10+8192], " + registers(20, count) + ";");
        body.push_back("setp.lt.u32 %p2, %t, " + std::to_string(8 * count) + "; @!%p2 bra END; ld.shared.v4.u32 " +
                       registers(24, 4) +
                       ", [%r10+8192]; mul.wide.u32 %d2, %t, 16; "
                       "add.s64 %d2, %d2, %out; st.global.v4.u32 [%d2+2048], " +
                       registers(24, 4) + "; END:");
        const KernelRun run(body, {.in = in});
        for (uint32_t m = 0; m < uint32_t(count); ++m) {
          for (uint32_t l = 0; l < 32; ++l) {
            const uint32_t i = l / 4, j = 2 * (l % 4);
            const uint32_t expected = trans ? value(m, j, i) | uint32_t{value(m, j + 1, i)} << 16
                                            : value(m, i, j) | uint32_t{value(m, i, j + 1)} << 16;
            ASSERT_EQ(run.out[32 * m + l], expected) << layout.name << how << " lane " << l;
          }
          for (uint32_t i = 0; i < 8; ++i)
            for (uint32_t j = 0; j < 4; ++j)
              ASSERT_EQ(run.out[512 + 4 * (8 * m + i) + j], value(m, i, 2 * j) | uint32_t{value(m, i, 2 * j + 1)} << 16)
                  << layout.name << how << " stored row " << i;
        }
        const Counts& load = run.counters.lines.at({"test.cu", 102});
        EXPECT_EQ(load.shared_loads, 1U);
        EXPECT_EQ(load.shared_load_bytes, 128U * count);
        EXPECT_EQ(load.shared_load_ideal, uint64_t(count));
        EXPECT_EQ(load.shared_load_wavefronts, layout.wavefronts * count / 4) << layout.name;
        const Counts& store = run.counters.lines.at({"test.cu", 103 + uint32_t(count)});
        EXPECT_EQ(store.shared_store_wavefronts, layout.wavefronts * count / 4) << layout.name;
      }
}

TEST(Matrix, Movmatrix) {
  const KernelRun run({"mul.lo.s32 %r2, %t, 2; add.s32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3;",
                       "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2; st.global.u32 [%mine], %r4;"});
  for (uint32_t l = 0; l < 32; ++l) {  // element (i, j) held 8 i + j
    const uint32_t i = l / 4, j = 2 * (l % 4);
    EXPECT_EQ(run.out[l], (8 * j + i) | (8 * (j + 1) + i) << 16);
  }
}

const std::string fill =
    "mul.lo.s32 %r11, %t, 16; mov.u32 %r10, tile; add.s32 %r10, %r10, %r11; "
    "st.shared.v4.u32 [%r10], {%t, %t, %t, %t};";

TEST(MatrixChecks, Ldmatrix) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r10";
  expect_report({fill, load + "+8];"}, {"test.cu:102", "misaligned", "lane 0"}, 32, Fault::misaligned);
  expect_report({fill, load + "+65536];"}, {"test.cu:102", "65536 bytes of shared memory"}, 32, Fault::illegal_address);
  expect_report({fill, load + "+16];"}, {"test.cu:102", "nobody in this block has written", "lane 31"});
  expect_report({fill, "setp.lt.u32 %p1, %t, 5; @%p1 " + load + "];"}, {"test.cu:102", "divergent ldmatrix"});
  expect_report({fill, "setp.eq.u32 %p1, %t, 5; @%p1 ret;", load + "];"},
                {"test.cu:103", "divergent ldmatrix", "lane 5", "has ended"});
  expect_report({fill, load + "];"}, {"test.cu:102", "divergent ldmatrix", "does not exist"}, 48);
  expect_report({fill, "xor.b32 %r12, %r10, 512; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r12];"},
                {"test.cu:", "shared memory at"}, 64);
  expect_report({fill, "ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%mine];"},
                {"no address of the block's shared memory"}, 32, Fault::illegal_address);
}

// --- mma ----------------------------------------------------------------------------------------------------------------

/// An element type as bits.
struct Type {
  int bits;
  double (*value)(uint64_t);
  uint64_t (*of)(double);
};
const Type f16_type = {16, [](uint64_t x) { return f16{uint16_t(x)}.value(); },
                       [](double x) { return uint64_t{f16::from(x).bits}; }};
const Type bf16_type = {16, [](uint64_t x) { return bf16{uint16_t(x)}.value(); },
                        [](double x) { return uint64_t{bf16::from(x).bits}; }};
const Type f32_type = {32, [](uint64_t x) { return double{std::bit_cast<float>(uint32_t(x))}; },
                       [](double x) { return uint64_t{std::bit_cast<uint32_t>(float(x))}; }};
const Type s8_type = {8, [](uint64_t x) { return double(int8_t(x)); },
                      [](double x) { return uint64_t{uint8_t(int(x))}; }};
const Type u8_type = {8, [](uint64_t x) { return double(uint8_t(x)); },
                      [](double x) { return uint64_t{uint8_t(std::abs(x))}; }};
const Type s32_type = {32, [](uint64_t x) { return double(int32_t(x)); },
                       [](double x) { return uint64_t{uint32_t(int32_t(x))}; }};

const Type e4m3_type = {8, [](uint64_t x) { return e4m3{uint8_t(x)}.value(); },
                        [](double x) { return uint64_t{e4m3::from(x).bits}; }};
const Type e5m2_type = {8, [](uint64_t x) { return e5m2{uint8_t(x)}.value(); },
                        [](double x) { return uint64_t{e5m2::from(x).bits}; }};

const Type& type_of(const std::string& name) {
  return name == "f16"    ? f16_type
         : name == "e4m3" ? e4m3_type
         : name == "e5m2" ? e5m2_type
         : name == "bf16" ? bf16_type
         : name == "s8"   ? s8_type
         : name == "u8"   ? u8_type
         : name == "s32"  ? s32_type
                          : f32_type;
}

struct At {
  int row, column;
};
using Map = At (*)(int lane, int i);
struct Mma {
  std::string shape, d, a, b;
  int m, n, k;
  Map a_at, b_at;
};

// "Matrix Fragments for mma.m16n8k8", "... k16", "... k32", "... k4": groupID = lane >> 2, threadID_in_group = lane % 4.
At a_k16_16(int l, int i) {
  return {(i < 2 || (i >= 4 && i < 6)) ? l / 4 : l / 4 + 8, l % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
At b_k16_16(int l, int i) { return {l % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), l / 4}; }
At a_k8_16(int l, int i) { return {i < 2 ? l / 4 : l / 4 + 8, l % 4 * 2 + (i & 1)}; }
At b_k8_16(int l, int i) { return {l % 4 * 2 + i, l / 4}; }
At a_k8_32(int l, int i) { return {i == 0 || i == 2 ? l / 4 : l / 4 + 8, i < 2 ? l % 4 : l % 4 + 4}; }
At b_k8_32(int l, int i) { return {i == 0 ? l % 4 : l % 4 + 4, l / 4}; }
At a_k4_32(int l, int i) { return {i == 0 ? l / 4 : l / 4 + 8, l % 4}; }
At b_k4_32(int l, int) { return {l % 4, l / 4}; }
At a_k16_8(int l, int i) { return {i < 4 ? l / 4 : l / 4 + 8, l % 4 * 4 + (i & 3)}; }
At b_k16_8(int l, int i) { return {l % 4 * 4 + i, l / 4}; }
At a_k32_8(int l, int i) {
  return {(i < 4 || (i >= 8 && i < 12)) ? l / 4 : l / 4 + 8, l % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
At b_k32_8(int l, int i) { return {l % 4 * 4 + (i & 3) + (i < 4 ? 0 : 16), l / 4}; }
At c_at(int l, int i) { return {i < 2 ? l / 4 : l / 4 + 8, l % 4 * 2 + (i & 1)}; }

const Mma all_mma[] = {
    {"m16n8k16", "f32", "f16", "f16", 16, 8, 16, a_k16_16, b_k16_16},
    {"m16n8k16", "f16", "f16", "f16", 16, 8, 16, a_k16_16, b_k16_16},
    {"m16n8k16", "f32", "bf16", "bf16", 16, 8, 16, a_k16_16, b_k16_16},
    {"m16n8k8", "f32", "f16", "f16", 16, 8, 8, a_k8_16, b_k8_16},
    {"m16n8k8", "f16", "f16", "f16", 16, 8, 8, a_k8_16, b_k8_16},
    {"m16n8k8", "f32", "bf16", "bf16", 16, 8, 8, a_k8_16, b_k8_16},
    {"m16n8k8", "f32", "tf32", "tf32", 16, 8, 8, a_k8_32, b_k8_32},
    {"m16n8k4", "f32", "tf32", "tf32", 16, 8, 4, a_k4_32, b_k4_32},
    {"m16n8k16", "s32", "s8", "s8", 16, 8, 16, a_k16_8, b_k16_8},
    {"m16n8k16", "s32", "u8", "u8", 16, 8, 16, a_k16_8, b_k16_8},
    {"m16n8k32", "s32", "s8", "s8", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k32", "s32", "u8", "s8", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k16", "s32", "s8", "u8", 16, 8, 16, a_k16_8, b_k16_8},
    {"m16n8k32", "f32", "e4m3", "e4m3", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k32", "f32", "e4m3", "e5m2", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k32", "f32", "e5m2", "e4m3", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k32", "f32", "e5m2", "e5m2", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k32", "f16", "e4m3", "e5m2", 16, 8, 32, a_k32_8, b_k32_8},
    {"m16n8k16", "f32", "e4m3", "e5m2", 16, 8, 16, a_k16_8, b_k16_8},
    {"m16n8k16", "f16", "e5m2", "e4m3", 16, 8, 16, a_k16_8, b_k16_8},
};

/// Runs one mma: a fragment's elements lie packed in 32-bit words, word r of lane l at 32 r + l.
struct MmaRun {
  std::vector<double> a, b, c, d;
  Counters counters;

  template <class Value>
  MmaRun(const Mma& mma, Value draw, const std::vector<std::string>& prelude = {}) {
    a.resize(mma.m * mma.k), b.resize(mma.k * mma.n), c.resize(mma.m * mma.n), d.resize(mma.m * mma.n);
    const Type &ta = type_of(mma.a), &tb = type_of(mma.b), &tc = type_of(mma.d);
    std::vector<uint32_t> in(KernelRun::words);
    int word = 1024;
    const auto put = [&](std::vector<double>& matrix, int columns, const Type& type, auto at) {
      const int each = 32 / type.bits, elements = int(matrix.size()) / 32;
      for (double& x : matrix) x = type.value(type.of(draw()));
      for (int l = 0; l < 32; ++l)
        for (int i = 0; i < elements; ++i) {
          const At p = at(l, i);
          in[word + 32 * (i / each) + l] |= uint32_t(type.of(matrix[p.row * columns + p.column]))
                                            << i % each * type.bits;
        }
      word += 32 * elements / each;
      return elements / each;
    };
    const int na = put(a, mma.k, ta, mma.a_at), nb = put(b, mma.n, tb, mma.b_at), nc = put(c, mma.n, tc, c_at);
    std::vector<std::string> body = prelude;
    std::string load, store;
    for (int r = 0; r < na + nb + nc; ++r)
      load += "ld.global.u32 %r" + std::to_string(10 + r) + ", [%mine+" + std::to_string(4096 + 128 * r) + "]; ";
    for (int r = 0; r < nc; ++r)
      store += "st.global.u32 [%mine+" + std::to_string(128 * r) + "], %r" + std::to_string(30 + r) + "; ";
    body.insert(body.end(), {load,
                             "mma.sync.aligned." + mma.shape + ".row.col." + mma.d + "." + mma.a + "." + mma.b + "." +
                                 mma.d + " " + registers(30, nc) + ", " + registers(10, na) + ", " +
                                 registers(10 + na, nb) + ", " + registers(10 + na + nb, nc) + ";",
                             store});
    const KernelRun run(body, {.in = in});
    const int each = 32 / tc.bits;
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < nc * each; ++i) {
        const At p = c_at(l, i);
        d[p.row * mma.n + p.column] =
            tc.value(run.out[32 * (i / each) + l] >> i % each * tc.bits & (~0ULL >> (64 - tc.bits)));
      }
    counters = run.counters;
  }
};

TEST(Matrix, MmaOnIntegersIsExact) {
  std::mt19937 random(1);
  for (const Mma& mma : all_mma)
    for (int round = 0; round < 4; ++round) {
      const MmaRun run(mma, [&] { return double(int(random() % 17) - 8); });
      for (int i = 0; i < mma.m; ++i)
        for (int j = 0; j < mma.n; ++j) {
          double sum = run.c[i * mma.n + j];
          for (int k = 0; k < mma.k; ++k) sum += run.a[i * mma.k + k] * run.b[k * mma.n + j];
          ASSERT_EQ(run.d[i * mma.n + j], sum) << mma.shape << " " << mma.d << " " << mma.a << " " << i << " " << j;
        }
      const Counts& counts = run.counters.total;
      EXPECT_EQ(counts.flops[3], uint64_t(2 * mma.m * mma.n * mma.k));
      EXPECT_EQ(counts.instructions[size_t(Class::tensor)], 1U);
    }
}

/// Real numbers: within one unit of the result's last place of the exact sum; FP32 results never larger than it.
TEST(Matrix, MmaRounds) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  int below = 0;
  for (const Mma& mma : all_mma) {
    if (mma.d[0] == 's') continue;
    const MmaRun run(mma, [&] { return normal(random); });
    const double unit = mma.d == "f16" ? 0x1p-11 : 0x1p-23;  // to nearest; toward zero
    if (mma.a[0] == 'e') continue;                           // below
    for (int i = 0; i < mma.m; ++i)
      for (int j = 0; j < mma.n; ++j) {
        double sum = run.c[i * mma.n + j];
        for (int k = 0; k < mma.k; ++k) {
          const auto seen = [&](double x) {  // TF32's 10 explicit bits: the rest is cut off
            return mma.a != "tf32" ? x : double{std::bit_cast<float>(std::bit_cast<uint32_t>(float(x)) & 0xffffe000)};
          };
          sum += seen(run.a[i * mma.k + k]) * seen(run.b[k * mma.n + j]);
        }
        const double got = run.d[i * mma.n + j];
        ASSERT_LE(std::fabs(got - sum), unit * std::fabs(sum) + 1e-14) << mma.shape << mma.a << " " << mma.d;
        if (mma.d == "f32") {
          ASSERT_LE(std::fabs(got), std::fabs(sum) + 1e-14);
          below += std::fabs(got) < std::fabs(sum) - 1e-14;
        }
      }
  }
  EXPECT_GT(below, 100) << "toward zero, not to nearest by chance";
}

/// FP8 on Hopper: the lower two of each four elements of k by one mma of FP16, the upper two by another one, from zero, each cut off to
/// FP32; their sum is added to C and rounded to nearest.
TEST(Matrix, MmaOfFp8AddsASumOfTwoHalves) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  int otherwise = 0;
  for (const Mma& mma : all_mma) {
    if (mma.a[0] != 'e' || mma.d != "f32") continue;
    const MmaRun run(mma, [&] { return normal(random); });
    for (int i = 0; i < mma.m; ++i)
      for (int j = 0; j < mma.n; ++j) {
        double products = 0, all = run.c[i * mma.n + j];
        for (const int half : {0, 2}) {
          for (int k = half; k < mma.k; k += 4)
            for (const int l : {k, k + 1}) products += run.a[i * mma.k + l] * run.b[l * mma.n + j];
          products = to_float(products, Round::zero);
        }
        for (int k = 0; k < mma.k; ++k) all += run.a[i * mma.k + k] * run.b[k * mma.n + j];
        const float expected = static_cast<float>(run.c[i * mma.n + j] + products);
        ASSERT_EQ(run.d[i * mma.n + j], expected) << mma.shape << mma.a << " " << mma.b;
        otherwise += expected != to_float(all, Round::zero);
      }
  }
  EXPECT_GT(otherwise, 50) << "not cut off once";
}

TEST(MatrixChecks, Fp8IsRefusedBelowSm89) {
  const std::string mma =
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, "
      "{%f1, %f2, %f3, %f4};";
  const std::string to = "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", back = "cvt.rn.f16x2.e5m2x2 %r1, %h1;";
  for (const std::string& body : {mma, to, back}) {
    for (const std::string target : {"sm_75", "sm_80", "sm_86"})
      sim::test::expect_report({body}, {.target = target},
                               {body == mma ? "'mma with FP8 floating point type' requires .target sm_89 or higher"
                                            : "'cvt with .e4m3x2/.e5m2x2' requires .target sm_89 or higher",
                                target},
                               Fault::unsupported, 1);
    for (const std::string target : {"sm_89", "sm_90", "sm_100a", "sm_120"})
      EXPECT_NO_THROW(KernelRun({body}, {.target = target})) << target;
  }
}

TEST(Matrix, MmaOfInfinityAndNaN) {
  const Mma& mma = all_mma[2];
  int drawn = 0;
  const MmaRun run(mma, [&] { return drawn++ == 0 ? INFINITY : 1.0; });
  for (int j = 0; j < 8; ++j) EXPECT_EQ(run.d[j], INFINITY);
  EXPECT_EQ(run.d[8], 17.0);
  drawn = 0;
  const MmaRun zero(mma, [&] { return drawn++ == 0 ? INFINITY : 0.0; });
  for (int j = 0; j < 8; ++j) EXPECT_TRUE(std::isnan(zero.d[j]));
}

TEST(MatrixChecks, Mma) {
  const std::string mma =
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, "
      "{%r6, %r7}, {%f1, %f2, %f3, %f4};";
  expect_report({"setp.lt.u32 %p1, %t, 9; @%p1 " + mma}, {"test.cu:101", "divergent mma"});
  expect_report({mma}, {"test.cu:101", "divergent mma", "does not exist"}, 8);
  expect_report({"mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, "
                 "{%r6, %r7}, {%f1, %f2, %f3, %f4};"},
                {"unknown instruction mma.sync.aligned.m16n8k16.row.row"}, 32, Fault::unsupported);
}

// --- wmma ----------------------------------------------------------------------------------------------------------------

struct Wmma {
  int m, n, k;
  std::string ab, c, d;
  int a_registers, b_registers, c_registers, d_registers;
};
const Wmma all_wmma[] = {
    {16, 16, 16, "f16", "f32", "f32", 8, 8, 8, 8}, {32, 8, 16, "f16", "f32", "f32", 8, 8, 8, 8},
    {8, 32, 16, "f16", "f32", "f32", 8, 8, 8, 8},  {16, 16, 16, "f16", "f16", "f16", 8, 8, 4, 4},
    {32, 8, 16, "f16", "f16", "f16", 8, 8, 4, 4},  {8, 32, 16, "f16", "f16", "f16", 8, 8, 4, 4},
    {16, 16, 16, "f16", "f16", "f32", 8, 8, 4, 8}, {16, 16, 16, "bf16", "f32", "f32", 4, 4, 8, 8},
    {32, 8, 16, "bf16", "f32", "f32", 8, 2, 8, 8}, {8, 32, 16, "bf16", "f32", "f32", 2, 8, 8, 8},
    {16, 16, 8, "tf32", "f32", "f32", 4, 4, 8, 8}, {16, 16, 16, "s8", "s32", "s32", 2, 2, 8, 8},
    {32, 8, 16, "u8", "s32", "s32", 4, 1, 8, 8},   {8, 32, 16, "s8", "s32", "s32", 1, 4, 8, 8},
};

/// d = a * b + c with every layout, from global and shared memory, by generic addresses too; strides with padding.
TEST(Matrix, Wmma) {
  std::mt19937 random(3);
  for (const Wmma& w : all_wmma)
    for (int layout = 0; layout < 8; ++layout)
      for (const std::string space : {".global", ".shared", ""}) {
        const bool rows[] = {(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0,
                             (layout & 4) == 0};  // of a, b, c, d
        const int heights[] = {w.m, w.k, w.m, w.m}, widths[] = {w.k, w.n, w.n, w.n};
        const std::string names[] = {w.ab, w.ab, w.c, w.d};
        std::vector<uint32_t> in(KernelRun::words);
        std::vector<double> matrix[4];
        int stride[4];
        const auto offset = [&](int x) { return 4096 + 2560 * x; };  // in bytes: 10 rows of 256
        const auto at = [&](int x, int i, int j) {
          return offset(x) + (rows[x] ? i * stride[x] + j : j * stride[x] + i) * type_of(names[x]).bits / 8;
        };
        for (int x = 0; x < 4; ++x) {
          const Type& type = type_of(names[x]);
          stride[x] = (rows[x] ? widths[x] : heights[x]) + 16 * 8 / type.bits;
          matrix[x].resize(heights[x] * widths[x]);
          if (x == 3) break;
          for (int i = 0; i < heights[x]; ++i)
            for (int j = 0; j < widths[x]; ++j) {
              const uint64_t bits = type.of(int(random() % 9) - 4);
              matrix[x][i * widths[x] + j] = type.value(bits);
              std::memcpy(reinterpret_cast<char*>(in.data()) + at(x, i, j), &bits, type.bits / 8);
            }
        }
        const std::string shape = "m" + std::to_string(w.m) + "n" + std::to_string(w.n) + "k" + std::to_string(w.k);
        const auto row = [&](int x) { return std::string(rows[x] ? "row." : "col."); };
        const auto load = [&](int x, const char* name, int first, int count) {
          return std::string("wmma.load.") + name + ".sync.aligned." + row(x) + shape + space + "." + names[x] + " " +
                 registers(first, count) + ", [%d9+" + std::to_string(offset(x)) + "], " + std::to_string(stride[x]) +
                 ";";
        };
        const std::string types =
            w.ab == "f16" ? "." + w.d + "." + w.c : "." + w.d + "." + w.ab + "." + w.ab + "." + w.c;
        const std::string product = "wmma.mma.sync.aligned." + row(0) + row(1) + shape + types + " " +
                                    registers(30, w.d_registers) + ", " + registers(10, w.a_registers) + ", " +
                                    registers(18, w.b_registers) + ", " + registers(2, w.c_registers) + ";";
        const std::string store = "wmma.store.d.sync.aligned." + row(3) + shape + space + "." + w.d + " [%d9+" +
                                  std::to_string(offset(3)) + "], " + registers(30, w.d_registers) + ", " +
                                  std::to_string(stride[3]) + ";";
        // Shared memory is a copy of the global words, and is copied back.
        const std::string address = space == ".global"   ? "mov.u64 %d9, %out;"
                                    : space == ".shared" ? "mov.u64 %d9, tile;"
                                                         : "mov.u64 %d9, tile; cvta.shared.u64 %d9, %d9;";
        const auto copy = [&](const char* label, bool in) {
          return "mov.u64 %d1, tile; mul.wide.u32 %d2, %t, 4; add.s64 %d1, %d1, %d2; add.s64 %d2, %d2, %out; mov.u32 "
                 "%r1, 0; " +
                 std::string(label) + ": " +
                 (in ? "ld.global.u32 %r0, [%d2]; st.shared.u32 [%d1], %r0;"
                     : "ld.shared.u32 %r0, [%d1]; st.global.u32 [%d2], %r0;") +
                 "add.s64 %d1, %d1, 128; add.s64 %d2, %d2, 128; add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 128; @%p1 "
                 "bra " +
                 label + ";";
        };
        const KernelRun run({space == ".global" ? "" : copy("IN", true), address, load(2, "c", 2, w.c_registers),
                             load(0, "a", 10, w.a_registers), load(1, "b", 18, w.b_registers), product, store,
                             space == ".global" ? "" : copy("OUT", false)},
                            {.in = in});
        const Type& type = type_of(w.d);
        for (int i = 0; i < w.m; ++i)
          for (int j = 0; j < w.n; ++j) {
            double sum = matrix[2][i * w.n + j];
            for (int k = 0; k < w.k; ++k) sum += matrix[0][i * w.k + k] * matrix[1][k * w.n + j];
            uint64_t got = 0;
            std::memcpy(&got, reinterpret_cast<const char*>(run.out.data()) + at(3, i, j), type.bits / 8);
            ASSERT_EQ(type.value(got), sum) << product << space << " layout " << layout << " at " << i << ", " << j;
          }
        EXPECT_EQ(run.counters.total.flops[3], uint64_t(2 * w.m * w.n * w.k));
        const Counts& a = run.counters.lines.at({"test.cu", 104});
        const uint64_t a_bytes = uint64_t(w.m * w.k * type_of(w.ab).bits / 8);
        EXPECT_EQ(space == ".global" ? a.global_load_bytes : a.shared_load_bytes, a_bytes);
        EXPECT_EQ(a.shared_load_ideal, space == ".global" ? 0 : a_bytes / 128);
      }
}

/// FP64: 8 x 8 x 4, by wmma.load of a in rows and b in columns, mma with the fragments of "mma.m8n8k4" for .f64, wmma.store.
TEST(Matrix, Fp64) {
  const auto a = [](int i, int k) { return 3.0 * i - 5 * k + 0.125; };
  const auto b = [](int k, int j) { return 1.0 * k * j - 7; };
  const auto c = [](int i, int j) { return 100.0 * i + j; };
  std::vector<uint32_t> in(KernelRun::words);
  const auto put = [&](int word, double x) { std::memcpy(&in[word], &x, 8); };
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 4; ++k) put(1024 + 2 * (4 * i + k), a(i, k)), put(1280 + 2 * (4 * i + k), b(k, i));
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 2; ++e) put(1536 + 4 * l + 2 * e, c(l / 4, l % 4 * 2 + e));
  const std::string load_c =
      "mul.wide.u32 %d9, %t, 16; add.s64 %d9, %d9, %out; ld.global.v2.b64 {%d3, %d4}, [%d9+6144];";
  const std::string load_ab =
      "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%out+4096], 4;"
      "wmma.load.b.sync.aligned.col.m8n8k4.global.f64 {%d2}, [%out+5120], 4;";
  const std::string operands = " {%d5, %d6}, {%d1}, {%d2}, {%d3, %d4};";
  const std::string store = "wmma.store.d.sync.aligned.col.m8n8k4.global.f64 [%out], {%d5, %d6}, 8;";
  for (const std::string product :
       {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64",
        "wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64"}) {
    const KernelRun run({load_c, load_ab, product + operands, store}, {.in = in});
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = c(i, j), got;
        for (int k = 0; k < 4; ++k) sum += a(i, k) * b(k, j);
        std::memcpy(&got, &run.out[2 * (8 * j + i)], 8);
        EXPECT_EQ(got, sum) << product << " " << i << " " << j;
      }
  }
}

/// FP64 of sm_90: 16 rows, K of 4, 8 and 16. "Matrix Fragments for mma.m16n8k4", "... k8", "... k16" for .f64.
TEST(Matrix, Fp64OfSixteenRows) {
  const auto a = [](int i, int k) { return 3.0 * i - 5 * k + 0.125; };
  const auto b = [](int k, int j) { return 1.0 * k * j - 7; };
  const auto c = [](int i, int j) { return 100.0 * i + j + 0x1p-40; };
  for (const int k_size : {4, 8, 16})
    for (const std::string round : {"", ".rn"}) {
      const int na = k_size / 2, nb = k_size / 4;
      std::vector<uint32_t> in(KernelRun::words);
      const auto put = [&](int r, int l, double x) { std::memcpy(&in[1024 + 64 * r + 2 * l], &x, 8); };
      for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < na; ++i) put(i, l, a(l / 4 + i % 2 * 8, l % 4 + i / 2 * 4));
        for (int i = 0; i < nb; ++i) put(na + i, l, b(l % 4 + 4 * i, l / 4));
        for (int i = 0; i < 4; ++i) put(na + nb + i, l, c(l / 4 + i / 2 * 8, l % 4 * 2 + i % 2));
      }
      std::string load = "mul.wide.u32 %d19, %t, 8; add.s64 %d19, %d19, %out;", store;
      for (int r = 0; r < na + nb + 4; ++r)
        load += "ld.global.b64 %d" + std::to_string(r) + ", [%d19+" + std::to_string(4096 + 256 * r) + "];";
      for (int r = 0; r < 4; ++r)
        store += "st.global.b64 [%d19+" + std::to_string(256 * r) + "], %d" + std::to_string(na + nb + r) + ";";
      const std::string d = registers(na + nb, 4, "%d");
      const KernelRun run(
          {load,
           "mma.sync.aligned.m16n8k" + std::to_string(k_size) + ".row.col" + round + ".f64.f64.f64.f64 " + d + ", " +
               registers(0, na, "%d") + ", " + registers(na, nb, "%d") + ", " + d + ";",
           store},
          {.in = in});
      for (int l = 0; l < 32; ++l)
        for (int i = 0; i < 4; ++i) {
          const int row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
          double want = c(row, column), got;
          for (int k = 0; k < k_size; ++k) want += a(row, k) * b(k, column);
          std::memcpy(&got, &run.out[64 * i + 2 * l], 8);
          EXPECT_EQ(got, want) << k_size << " " << row << " " << column;
        }
    }
}

TEST(MatrixChecks, Wmma) {
  const auto load = [](const std::string& address, int stride) {
    return "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + registers(10, 8) + ", [" + address + "], " +
           std::to_string(stride) + ";";
  };
  expect_report({load("%out+16", 16)}, {"test.cu:101", "misaligned"}, 32, Fault::misaligned);
  expect_report({load("%out", 20)}, {"test.cu:101", "stride of 40 bytes"}, 32, Fault::misaligned);
  expect_report({load("%out+16128", 16)}, {"test.cu:101", "a load of 4 bytes outside of every allocation"}, 32,
                Fault::illegal_address);
  expect_report({"mul.wide.u32 %d1, %t, 32; add.s64 %d1, %d1, %out;", load("%d1", 16)},
                {"test.cu:102", "not the same in all lanes"});
}

TEST(Matrix, WmmaBankConflicts) {
  // 16 rows of 16 halves: 128 bytes apart all rows hit the same banks; with 8 halves of padding none do.
  const auto wavefronts = [](int stride) {
    const KernelRun run(
        {"mov.u64 %d1, tile; mul.wide.u32 %d2, %t, 4; add.s64 %d1, %d1, %d2; mov.u32 %r1, 0; "
         "IN: st.shared.u32 [%d1], %t; add.s64 %d1, %d1, 128; add.s32 %r1, %r1, 1; "
         "setp.lt.u32 %p1, %r1, 32; @%p1 bra IN; mov.u64 %d9, tile;",
         "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + registers(10, 8) + ", [%d9], " +
             std::to_string(stride) + ";"});
    return run.counters.lines.at({"test.cu", 102}).shared_load_wavefronts;
  };
  EXPECT_EQ(wavefronts(64), 32U);
  EXPECT_EQ(wavefronts(72), 4U);
}

// --- speed -----------------------------------------------------------------------------------------------------------------

TEST(Matrix, MmaIsFast) {
  const int times = 20000;
  const std::clock_t start = std::clock();  // processor time: other programs may keep the machine busy
  const KernelRun run({"mov.u32 %r20, 0;",
                       "LOOP: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, "
                       "{%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f1, %f2, %f3, %f4};",
                       "add.s32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, " + std::to_string(times) + "; @%p1 bra LOOP;"});
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("nanoseconds_an_mma", int(1e9 * seconds / times));
  EXPECT_EQ(run.counters.total.flops[3], uint64_t{4096} * times);
  EXPECT_LT(seconds, 5e-6 * times) << "ten times what it should take";
}

}  // namespace
