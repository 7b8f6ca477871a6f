// What CUTLASS's kernels compute is right: a wrong baseline would be a wrong claim.
#include <set>

#include "common/harness/check/check.h"
#include "common/harness/cutlass/baseline.h"
#include "common/scales.h"
#include "common/types.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

using CutlassBaseline = GpuTest;

TEST_F(CutlassBaseline, EveryKernelIsRight) {
  if (cutlass_kernels().empty())
    GTEST_SKIP() << "CUTLASS as a baseline is not built (cmake --build build --target baselines)";
  std::set<const CutlassKernel*> checked;
  for (const Type type : AllTypes::list)
    for (const Scales scales : {Scales::none, Scales::tensor, Scales::blocks})
      for (const Out out : {Out::f32, Out::same})
        for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::col_major})
          for (const float beta : {0.0F, -0.5F}) {
            OperandSpec spec{{203, 328, 272}, type, out, MatrixLayout::row_major, layout, 16, Init::normal, 7};
            spec.scales = scales;
            if (cutlass_kernels_for(spec.problem(1.25F, beta), *device_).empty()) continue;
            Operands operands(spec, 1);
            Checker checker(operands, 1.25F, beta, CheckMode::full, blas_.get(), nullptr);
            for (const CutlassKernel* kernel : cutlass_kernels_for(spec.problem(1.25F, beta), *device_)) {
              DeviceBuffer workspace(kernel->workspace_bytes(spec.problem(1.25F, beta)) + 1);
              const auto run = [&](const Problem& p) { kernel->run(p, workspace.as<void>()); };
              const Sum sums = scales == Scales::blocks ? Sum::promoted : facts(type).fp22 ? Sum::fp22 : Sum::fp32;
              const CheckResult result = checker.check(run, Workspace(Resources{}), sums);
              EXPECT_TRUE(result.passed) << kernel->name << " in " << name(type) << ", scales " << name(scales)
                                         << ", beta " << beta << ": " << result.message;
              checked.insert(kernel);
            }
          }
  EXPECT_EQ(checked.size(), cutlass_kernels().size()) << "some take none of these problems";
}

}  // namespace
}  // namespace ladder
