// What CUTLASS's kernels compute is right: a wrong baseline would be a wrong claim.
#include "common/harness/check/check.h"
#include "common/harness/cutlass/baseline.h"
#include "common/types.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

using CutlassBaseline = GpuTest;

TEST_F(CutlassBaseline, EveryKernelIsRight) {
  if (cutlass_kernels().empty())
    GTEST_SKIP() << "CUTLASS as a baseline is not built (cmake --build build --target baselines)";
  size_t checked = 0;
  for (const Type type : AllTypes::list)
    for (const Out out : {Out::f32, Out::same})
      for (const MatrixLayout layout : {MatrixLayout::row_major, MatrixLayout::col_major})
        for (const float beta : {0.0F, -0.5F}) {
          const OperandSpec spec{{200, 328, 264}, type, out, MatrixLayout::row_major, layout, 8, Init::normal, 7};
          Operands operands(spec, 1);
          Checker checker(operands, 1.25F, beta, CheckMode::full, blas_.get(), nullptr);
          for (const CutlassKernel* kernel : cutlass_kernels_for(spec.problem(1.25F, beta), *device_)) {
            DeviceBuffer workspace(kernel->workspace_bytes(spec.problem(1.25F, beta)) + 1);
            const auto run = [&](const Problem& p) { kernel->run(p, workspace.as<void>()); };
            const CheckResult result = checker.check(run, Workspace(Resources{}));
            EXPECT_TRUE(result.passed) << kernel->name << " in " << name(type) << ", beta " << beta << ": "
                                       << result.message;
            ++checked;
          }
        }
  EXPECT_GE(checked, cutlass_kernels().size());
}

}  // namespace
}  // namespace ladder
