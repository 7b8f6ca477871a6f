// The bound lets correct arithmetic pass, whatever the order of the sum, and nothing else.
#include "common/harness/check/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "common/harness/check/check_device.h"

namespace ladder {
namespace {

struct Dot {
  std::vector<float> a, b;
  double exact = 0.0, scale = 0.0;
  Dot(int k, unsigned seed, bool positive) : a(k), b(k) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int i = 0; i < k; ++i) {
      a[i] = positive ? std::fabs(normal(random)) : normal(random);
      b[i] = positive ? std::fabs(normal(random)) : normal(random);
      exact += static_cast<double>(a[i]) * b[i];
      scale += std::fabs(static_cast<double>(a[i]) * b[i]);
    }
  }
  float forwards(int terms) const {
    float sum = 0.0F;
    for (int i = 0; i < terms; ++i) sum = std::fma(a[i], b[i], sum);
    return sum;
  }
  float backwards() const {
    float sum = 0.0F;
    for (int i = static_cast<int>(a.size()) - 1; i >= 0; --i) sum = std::fma(a[i], b[i], sum);
    return sum;
  }
};

TEST(Bound, LetsAnyOrderOfTheSumPass) {
  for (const int k : {1, 2, 3, 31, 64, 65, 1000, 4097, 65536})
    for (const bool positive : {false, true})
      for (unsigned seed = 0; seed < 40; ++seed) {
        const Dot dot(k, seed, positive);
        const Bound bound = error_bound(Type::f32, Out::f32, k);
        EXPECT_FALSE(judge(dot.forwards(k), dot.exact, dot.scale, bound).wrong) << k << " " << positive;
        EXPECT_FALSE(judge(dot.backwards(), dot.forwards(k), dot.scale, bound).wrong) << k << " " << positive;
      }
}

TEST(Bound, FindsOneForgottenProduct) {
  for (const int k : {2, 31, 256, 1000, 4096, 8192})
    for (unsigned seed = 0; seed < 20; ++seed) {
      Dot dot(k, seed, false);
      dot.a[k - 1] = dot.b[k - 1] = 1.0F;  // a product of average size
      const float forgotten = dot.forwards(k - 1), whole = dot.forwards(k);
      EXPECT_TRUE(judge(forgotten, whole, dot.scale, error_bound(Type::f32, Out::f32, k)).wrong) << k;
    }
}

TEST(Bound, IsTheSmallerOfWorstCaseAndProbable) {
  EXPECT_DOUBLE_EQ(error_bound(Type::f32, Out::f32, 1).gamma, 2 * (1 + 4) * 0x1p-24);
  EXPECT_DOUBLE_EQ(error_bound(Type::f32, Out::f32, 64).gamma, 2 * (64 + 4) * 0x1p-24);
  EXPECT_DOUBLE_EQ(error_bound(Type::f32, Out::f32, 4096).gamma, 2 * (512 + 4) * 0x1p-24);
}

TEST(Bound, AReferenceInFp64CountsItsOneRounding) {
  for (const int k : {1, 2, 31, 64, 1000, 4097})
    for (unsigned seed = 0; seed < 40; ++seed) {
      const Dot dot(k, seed, seed % 2 == 0);
      const Bound bound = error_bound(Type::f32, Out::f32, k, ReferenceSum::fp64);
      EXPECT_FALSE(judge(dot.forwards(k), static_cast<float>(dot.exact), dot.scale, bound).wrong) << k;
    }
  EXPECT_DOUBLE_EQ(error_bound(Type::f32, Out::f32, 64, ReferenceSum::fp64).gamma, (64 + 4 + 1) * 0x1p-24);
}

/// Sums of 8 products at a time, each rounded to FP16 as the tensor cores do.
TEST(Bound, Fp16SumsCountARoundingForEvery8Products) {
  const auto gamma = [](int k, Sum sums) {
    return error_bound(Type::f16, Out::f32, k, ReferenceSum::fp64, sums).gamma;
  };
  EXPECT_DOUBLE_EQ(gamma(64, Sum::fp16) - gamma(64, Sum::fp32), 8 * 0x1p-11);
  EXPECT_DOUBLE_EQ(gamma(4097, Sum::fp16) - gamma(4097, Sum::fp32), 8 * std::sqrt(513.0) * 0x1p-11);
  for (const int k : {1, 8, 9, 64, 1000, 4097}) {
    int beyond_fp32 = 0;  // the bound of FP32 sums
    for (unsigned seed = 0; seed < 40; ++seed) {
      Dot dot(k, seed, seed % 2 == 0);
      double exact = 0.0, scale = 0.0;
      float sum = 0.0F, forgotten = 0.0F;
      for (int i = 0; i < k; i += 8) {
        double products = 0.0;
        for (int j = i; j < std::min(i + 8, k); ++j) {
          const double product =
              static_cast<double>(__half2float(__float2half(dot.a[j]))) * __half2float(__float2half(dot.b[j]));
          products += product, exact += product, scale += std::fabs(product);
        }
        forgotten = sum;
        sum = __half2float(__float2half(static_cast<float>(sum + products)));
      }
      const Bound bound = error_bound(Type::f16, Out::f32, k, ReferenceSum::fp64, Sum::fp16);
      EXPECT_FALSE(judge(sum, exact, scale, bound).wrong) << k;
      if (k == 1) {
        EXPECT_TRUE(judge(forgotten, exact, scale, bound).wrong);
      }
      beyond_fp32 += judge(sum, exact, scale, error_bound(Type::f16, Out::f32, k, ReferenceSum::fp64)).wrong;
    }
    if (k >= 64) {
      EXPECT_GT(beyond_fp32, 20) << k;
    }
  }
}

/// Sums of FP8 products as instructions add them that keep 13 bits: 32 products and the sum so far, each cut off below 2^-13 of the largest
/// one's power of two, and their sum likewise.
struct Fp22Sum {
  double exact = 0.0, scale = 0.0, sum = 0.0;
  /// Promoted: after each `promoted` products the sum is multiplied by scales as the harness has them, and added to the others in FP32.
  Fp22Sum(int k, unsigned seed, bool whole_numbers, int promoted = 0, Type type = Type::e4m3) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> octave(-12.0F, -10.0F);
    float total = 0.0F, block_scale = promoted ? std::exp2(octave(random)) : 1.0F;
    std::normal_distribution<float> normal;
    const auto draw = [&](Type operand) {
      const float x = whole_numbers ? static_cast<float>(static_cast<int>(random() % 9)) - 4.0F
                                    : normal(random) * facts(operand).scale;
      return visit(Fp8Types{}, operand, [&]<Type row>() {
        return static_cast<double>(to_float(from_float<typename Operand<row>::Element>(x)));
      });
    };
    for (int i = 0; i < k; i += 32) {
      std::vector<double> terms = {sum};
      for (int j = i; j < std::min(i + 32, k); ++j) {
        const double a = draw(type), product = a * draw(of_b(type));
        terms.push_back(product);
        exact += block_scale * product, scale += block_scale * std::fabs(product);
      }
      double largest = 0.0;
      for (const double term : terms) largest = std::fmax(largest, std::fabs(term));
      const auto cut_off = [](double x, double below) {
        const double unit = below != 0.0 ? std::ldexp(1.0, std::ilogb(below) - 13) : 1.0;
        return std::trunc(x / unit) * unit;
      };
      sum = 0.0;
      for (const double term : terms) sum += cut_off(term, largest);
      sum = cut_off(sum, sum);
      if (promoted && ((i + 32) % promoted == 0 || i + 32 >= k)) {
        total = std::fma(block_scale, static_cast<float>(sum), total);
        block_scale = std::exp2(octave(random)), sum = 0.0;
      }
    }
    if (promoted) sum = total;
  }
};

TEST(Bound, Fp22SumsMayLoseWhatTheirInstructionsCutOff) {
  for (const Type type : Fp8Types::list) {
    const auto bound = [&](int k, Sum sums) { return error_bound(type, Out::f32, k, ReferenceSum::fp64, sums); };
    double largest = 0.0;
    int beyond_fp32 = 0;
    for (const int k : {1, 16, 32, 33, 128, 1000, 4096, 16384})
      for (unsigned seed = 0; seed < 200; ++seed) {
        const Fp22Sum normal(k, seed, false, 0, type);
        EXPECT_FALSE(judge(normal.sum, normal.exact, normal.scale, bound(k, Sum::fp22)).wrong) << k << " " << seed;
        largest = std::fmax(largest, judge(normal.sum, normal.exact, normal.scale, bound(k, Sum::fp22)).error);
        beyond_fp32 += judge(normal.sum, normal.exact, normal.scale, bound(k, Sum::fp32)).wrong;
        const Fp22Sum whole(k, seed, true, 0, type);
        EXPECT_EQ(whole.sum, whole.exact) << "whole numbers lose nothing";
      }
    EXPECT_GT(beyond_fp32, 300) << name(type) << ": of 1600, 600 of which are too short to lose anything";
    EXPECT_GT(largest, bound(4096, Sum::fp22).gamma / 16) << name(type) << ": the bound is no larger than it has to be";
  }
}

TEST(Bound, Fp22SumsWithoutAKTileAreFound) {
  for (const auto& [k, forgotten] :
       {std::pair(256, 16), std::pair(512, 32), std::pair(4096, 128), std::pair(8192, 256)}) {
    int found = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
      const Fp22Sum all(k, seed, false), without(k - forgotten, seed, false);
      found +=
          judge(without.sum, all.exact, all.scale, error_bound(Type::e4m3, Out::f32, k, ReferenceSum::fp64, Sum::fp22))
              .wrong;
    }
    EXPECT_GT(found, 25) << k << ": of 100 elements, and a matrix has thousands";
  }
}

TEST(Bound, PromotedSumsLoseLessThanOneSum) {
  const auto bound = [](int k, Sum sums) {
    return error_bound(Type::e4m3, Out::f32, k, ReferenceSum::fp64, sums, 1.0, Scales::blocks);
  };
  double largest = 0.0;
  for (const int k : {1, 32, 128, 129, 256, 1000, 4096, 16384})
    for (unsigned seed = 0; seed < 200; ++seed) {
      const Fp22Sum normal(k, seed, false, 128);
      const Judgement j = judge(normal.sum, normal.exact, normal.scale, bound(k, Sum::promoted));
      EXPECT_FALSE(j.wrong) << k << " " << seed;
      if (k == 16384) largest = std::fmax(largest, j.error);
      const Fp22Sum whole(k, seed, true, 128);
      EXPECT_FALSE(judge(whole.sum, whole.exact, whole.scale, bound(k, Sum::fp32)).wrong) << "scaling alone rounds";
    }
  EXPECT_GT(largest, bound(16384, Sum::promoted).gamma / 40) << "of 200 elements";
  EXPECT_LT(bound(16384, Sum::promoted).gamma, bound(16384, Sum::fp22).gamma / 10);
  for (const int k : {1, 128, 129, 200, 4096, 16384})
    EXPECT_LE(bound(k, Sum::promoted).gamma, bound(k, Sum::fp22).gamma) << k;
  const double one_sum = 32 * 0.65 * 0x1p-13;
  EXPECT_DOUBLE_EQ(bound(128, Sum::promoted).gamma, 8 * std::sqrt(128.0) * 0x1p-24 + 7 * 0x1p-24 + one_sum);
  EXPECT_LT(bound(4096, Sum::promoted).gamma, one_sum / 5);
}

TEST(Bound, AWrongScaleOfOneBlockIsFound) {
  for (const int k : {1024, 4096}) {
    int found = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
      const Fp22Sum all(k, seed, false, 128), without(k - 128, seed, false, 128);
      // The last block's scale, were it half of what it should be.
      const double wrong = (all.sum + without.sum) / 2;
      const Bound bound = error_bound(Type::e4m3, Out::f32, k, ReferenceSum::fp64, Sum::promoted, 1.0, Scales::blocks);
      found += judge(wrong, all.exact, all.scale, bound).wrong;
    }
    EXPECT_GT(found, 25) << k << ": of 100 elements, and a matrix has thousands";
  }
}

TEST(Bound, SumsOfFp8AreFp22WhereAnInstructionForFp8AddsThem) {
  Rung rung{};
  for (const auto& [instruction, sm, type, sums] : {std::tuple(MathInstruction::mma_sync, 89, Type::e4m3, Sum::fp22),
                                                    std::tuple(MathInstruction::mma_sync, 90, Type::e4m3, Sum::fp32),
                                                    std::tuple(MathInstruction::mma_sync, 100, Type::e4m3, Sum::fp32),
                                                    std::tuple(MathInstruction::mma_sync, 120, Type::e4m3, Sum::fp22),
                                                    std::tuple(MathInstruction::wgmma, 90, Type::e4m3, Sum::fp22),
                                                    std::tuple(MathInstruction::wgmma, 90, Type::e5m2, Sum::fp22),
                                                    std::tuple(MathInstruction::wgmma, 90, Type::bf16, Sum::fp32)}) {
    rung.instruction = instruction;
    EXPECT_EQ(sum_on(rung, type, sm), sums) << sm << " " << name(type);
  }
  rung.instruction = MathInstruction::wgmma;
  EXPECT_EQ(sum_on(rung, Type::e4m3, 90, Scales::rows), Sum::fp22);
  EXPECT_EQ(sum_on(rung, Type::e4m3, 90, Scales::blocks), Sum::promoted);
  rung.instruction = MathInstruction::mma_sync;
  rung.fp16_sums = {Type::e4m3};
  EXPECT_EQ(sum_on(rung, Type::e4m3, 89), Sum::fp16);
}

TEST(Bound, GrowsWithCoarserTypes) {
  const auto gamma = [](Type type) { return error_bound(type, Out::f32, 1024).gamma; };
  EXPECT_LT(gamma(Type::f32), gamma(Type::bf16));
  EXPECT_LT(gamma(Type::bf16), gamma(Type::tf32));
  EXPECT_EQ(error_bound(Type::bf16, Out::same, 1024).u_out, 0x1p-8);
  EXPECT_EQ(error_bound(Type::f16, Out::same, 1024).u_out, 0x1p-11);
  EXPECT_EQ(error_bound(Type::e4m3, Out::same, 1024).u_out, 0x1p-8) << "BF16";
  EXPECT_EQ(gamma(Type::e5m2), gamma(Type::e4m3)) << "products of both are exact";
  EXPECT_EQ(error_bound(Type::bf16, Out::f32, 1024).u_out, 0.0);
}

TEST(Judge, NeverLetsNanOrInfinityPass) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Bound wide{1e30, 1.0, 1e30};
  for (const double got : {nan, inf, -inf}) {
    EXPECT_TRUE(judge(got, 0.0, 1.0, wide).wrong);
    EXPECT_EQ(judge(got, 0.0, 1.0, wide).error, inf);
  }
  EXPECT_TRUE(judge(0.0, nan, 1.0, wide).wrong);  // nor does a broken reference
  EXPECT_TRUE(judge(inf, inf, 1.0, wide).wrong);
  EXPECT_TRUE(judge(0.0, 0.0, nan, wide).wrong);
}

TEST(Judge, MeasuresDistanceAgainstScale) {
  const Bound bound{0.25, 0.0, 0.0};
  EXPECT_FALSE(judge(1.25, 1.0, 1.0, bound).wrong);
  EXPECT_TRUE(judge(1.2500001, 1.0, 1.0, bound).wrong);
  EXPECT_TRUE(judge(0.7499999, 1.0, 1.0, bound).wrong);
  EXPECT_DOUBLE_EQ(judge(3.0, 1.0, 4.0, bound).error, 0.5);
  EXPECT_FALSE(judge(0.0, 0.0, 0.0, bound).wrong);  // zeros are exact
  EXPECT_TRUE(judge(1e-30, 0.0, 0.0, bound).wrong);
  EXPECT_FALSE(judge(1.125, 1.0, 0.0, Bound{0.0, 0.125, 0.0}).wrong);  // the rounding of the result
}

}  // namespace
}  // namespace ladder
