// The harness itself in every type, result and layout of B: cuBLAS and cuBLASLt stand in for kernels, so that a tensor-core
// rung finds a check and baselines that work; and the two FP64 products, on the CPU and on the GPU, agree.
#include "common/harness/blas.h"
#include "common/harness/check/check.h"
#include "common/harness/check/host_product.h"
#include "common/harness/cli/options.h"
#include "common/scales.h"
#include "common/text.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

struct Combination {
  Type type;
  Out out;
  MatrixLayout layout_b;
};

class EveryType : public GpuTest, public testing::WithParamInterface<Combination> {
 protected:
  OperandSpec spec(Shape shape, int ld_pad) const {
    return {shape, GetParam().type, GetParam().out, MatrixLayout::row_major, GetParam().layout_b, ld_pad, Init::normal,
            11};
  }
};

TEST_P(EveryType, BaselinesPassTheCheck) {
  if (device_->simulated) GTEST_SKIP() << "cuBLAS does not run on the simulator";
  if (!Blas::has(GetParam().type) && device_->sm < 89) GTEST_SKIP() << "needs sm_89, this is sm_" << device_->sm;
  if (GetParam().type == Type::e2m1) GTEST_SKIP() << "no library multiplies e2m1 without scales";
  const Sum sums = facts(GetParam().type).fp22 ? Sum::fp22 : Sum::fp32;
  int lt_products = 0;
  for (const Shape& shape : {Shape{128, 256, 512}, Shape{72, 264, 1032}, Shape{1000, 8, 4096}})
    for (const int ld_pad : {0, 8})
      for (const float beta : {0.0F, -1.5F})
        for (const CheckMode mode : {CheckMode::full, CheckMode::sample}) {
          Operands operands(spec(shape, ld_pad), 1);
          const BlasLt blas_lt(operands.problem(0, 0.75F, beta, nullptr), operands.spec());
          Checker checker(operands, 0.75F, beta, mode, blas_.get(), nullptr);
          if (Blas::has(GetParam().type)) {
            const CheckResult result = checker.check([&](const Problem& p) { blas_->gemm(p); });
            EXPECT_TRUE(result.passed) << shape.str() << " " << result.message;
          }
          if (!blas_lt.available()) continue;
          ++lt_products;
          const CheckResult lt_result = checker.check([&](const Problem& p) { blas_lt.gemm(p); }, Workspace(), sums);
          EXPECT_TRUE(lt_result.passed) << shape.str() << " cuBLASLt: " << lt_result.message;
        }
  if (GetParam().layout_b == MatrixLayout::col_major) {
    EXPECT_GT(lt_products, 0) << "every type has a library that multiplies it";
  }
}

TEST_P(EveryType, AForgottenSliceOfKIsFound) {
  if (device_->simulated) GTEST_SKIP() << "cuBLAS does not run on the simulator";
  if (!Blas::has(GetParam().type)) GTEST_SKIP() << "cublasGemmEx has no such type; host_tests show it of the bound";
  Operands operands(spec({128, 256, 512}, 0), 1);
  Checker checker(operands, 1.0F, 0.0F, CheckMode::full, blas_.get(), nullptr);
  const CheckResult result = checker.check([&](const Problem& p) {
    Problem shorter = p;
    shorter.k -= 8;
    blas_->gemm(shorter);
  });
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.message.find("elements wrong"), std::string::npos) << result.message;
}

TEST_P(EveryType, ProductsOfCpuAndGpuInFp64Agree) {
  for (const float beta : {0.0F, -1.5F}) {
    const Operands operands(spec({35, 264, 65}, 8), 1);
    const Problem p = operands.problem(0, 0.75F, beta, nullptr);
    Samples gpu;
    for (size_t i = 0; i < size_t{35} * 264; i += 37) gpu.index.push_back(i);  // in every row, all over the columns
    fp64_elements(p, gpu);
    const HostProduct cpu = host_product(p);
    for (size_t i = 0; i < gpu.index.size(); ++i) {
      const size_t at = gpu.index[i];
      ASSERT_NEAR(cpu.value[at], gpu.value[i], 0x1p-24 * gpu.scale[i]) << "element " << at << ", beta " << beta;
      ASSERT_NEAR(cpu.scale[at], gpu.scale[i], 0x1p-23 * gpu.scale[i]) << "element " << at << ", beta " << beta;
    }
  }
}

/// What a library that has these scales computes; in fast sums where it has them.
TEST_F(GpuTest, ScaledBaselinesPassTheCheck) {
  if (device_->simulated) GTEST_SKIP() << "cuBLAS does not run on the simulator";
  if (device_->sm != 90) GTEST_SKIP() << "the pairs of scales are those of sm_90, this is sm_" << device_->sm;
  for (const Scales scales : {Scales::tensor, Scales::rows, Scales::blocks})
    for (const Out out : {Out::f32, Out::same})
      for (const float beta : {0.0F, -1.5F})
        for (const Shape& shape : {Shape{128, 256, 512}, Shape{72, 384, 1040}, Shape{136, 128, 4096}}) {
          const Type type = scales == Scales::tensor && shape.m == 72 ? Type::e5m2 : Type::e4m3;
          OperandSpec spec{shape, type, out, MatrixLayout::row_major, MatrixLayout::col_major, 0, Init::normal, 11};
          spec.scales = scales;
          Operands operands(spec, 1);
          const BlasLt blas_lt(operands.problem(0, 0.75F, beta, nullptr), spec);
          ASSERT_TRUE(blas_lt.available()) << name(scales) << " " << name(out) << " " << shape.str();
          const Sum sums = scales == Scales::blocks ? Sum::promoted : Sum::fp22;
          for (const CheckMode mode : {CheckMode::full, CheckMode::sample}) {
            Checker checker(operands, 0.75F, beta, mode, blas_.get(), nullptr);
            const CheckResult result = checker.check([&](const Problem& p) { blas_lt.gemm(p); }, Workspace(), sums);
            EXPECT_TRUE(result.passed) << name(scales) << " " << name(out) << " " << shape.str() << " "
                                       << result.message;
          }
        }
}

TEST_F(GpuTest, ScaledProductsOfCpuAndGpuInFp64Agree) {
  for (const Scales scales : {Scales::tensor, Scales::rows, Scales::blocks, Scales::mx, Scales::nv})
    for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::col_major}) {
      const Type type = scales == Scales::nv ? Type::e2m1 : layout == MatrixLayout::row_major ? Type::e4m3 : Type::e5m2;
      OperandSpec spec{{35, 264, 300}, type, Out::f32, layout, layout, 8, Init::normal, 11};
      spec.scales = scales;
      const Operands operands(spec, 1);
      const Problem p = operands.problem(0, 0.75F, -1.5F, nullptr);
      Samples gpu;
      for (size_t i = 0; i < size_t{35} * 264; i += 37) gpu.index.push_back(i);
      fp64_elements(p, gpu);
      const HostProduct cpu = host_product(p);
      for (size_t i = 0; i < gpu.index.size(); ++i) {
        const size_t at = gpu.index[i];
        ASSERT_NEAR(cpu.value[at], gpu.value[i], 0x1p-24 * gpu.scale[i]) << name(scales) << " element " << at;
        ASSERT_NEAR(cpu.scale[at], gpu.scale[i], 0x1p-23 * gpu.scale[i]) << name(scales) << " element " << at;
      }
    }
}

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const Type type : AllTypes::list)
    for (const Out out : {Out::f32, Out::same})
      for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::col_major})
        all.push_back({type, out, layout});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Harness, EveryType, testing::ValuesIn(combinations()), [](const auto& info) {
  const Combination& c = info.param;
  return formatted("{}_{}_{}", name(c.type), name(c.out), c.layout_b == MatrixLayout::row_major ? "row" : "col");
});

}  // namespace
}  // namespace ladder
