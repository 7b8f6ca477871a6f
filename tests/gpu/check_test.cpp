// The check is able to fail: each planted fault is found, and the same kernel without one passes.
#include "common/harness/check/check.h"

#include <gmock/gmock.h>

#include <tuple>

#include "common/harness/simulator.h"
#include "common/scales.h"
#include "tests/gpu/broken/broken.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

using broken::Fault;

class Check : public GpuTest {
 protected:
  CheckResult check(Fault fault, float beta, CheckMode mode = CheckMode::full) {
    const OperandSpec spec{{203, 211, 1031},        Type::f32, Out::f32,     MatrixLayout::row_major,
                           MatrixLayout::row_major, 4,         Init::normal, 7};
    Operands operands(spec, 1);
    Checker checker(operands, 1.25F, beta, mode, blas_.get(), nullptr);
    Resources resources{};
    resources.workspace_bytes = 1024;
    resources.locks = 3;
    return checker.check([fault](const Problem& p) { broken::launch(fault, p); }, Workspace(resources));
  }
  void expect_found(Fault fault, const char* words, float beta = 0.0F) {
    const CheckResult result = check(fault, beta);
    EXPECT_FALSE(result.passed);
    EXPECT_NE(result.message.find(words), std::string::npos) << result.message;
  }
};

TEST_F(Check, PassesWithoutFault) {
  for (const float beta : {0.0F, 1.0F, -0.5F}) {
    const CheckResult result = check(Fault::none, beta);
    EXPECT_TRUE(result.passed) << result.message;
    EXPECT_GT(result.max_error, 0.0);
    EXPECT_LT(result.max_error, result.bound);
  }
}
TEST_F(Check, FindsMissingBarrier) {
  if (!device_->simulated) return expect_found(Fault::missing_barrier, "elements wrong");
  EXPECT_THROW(check(Fault::missing_barrier, 0.0F), CudaError);  // the simulator lets no such read pass
  EXPECT_THAT(fault_report(), testing::HasSubstr("shared memory"));
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  cudaGetLastError();
}
TEST_F(Check, FindsUnwrittenEdge) {
  expect_found(Fault::edge_unwritten, "203 of 42833 elements wrong; first at row 0, column 210: got nan");
}
TEST_F(Check, FindsUnwrittenEdgeWithBeta) { expect_found(Fault::edge_unwritten, "column 210", 1.0F); }
TEST_F(Check, FindsOneNan) {
  expect_found(Fault::one_nan, "1 of 42833 elements wrong; first at row 101, column 70: got nan");
}
TEST_F(Check, FindsOneInfinity) {
  expect_found(Fault::one_infinite, "1 of 42833 elements wrong; first at row 101, column 70: got inf");
}
TEST_F(Check, FindsForgottenProduct) { expect_found(Fault::last_k_forgotten, "elements wrong"); }
TEST_F(Check, FindsReadOfPadding) { expect_found(Fault::reads_padding, "got nan"); }
TEST_F(Check, FindsReadOfCWithoutBeta) { expect_found(Fault::reads_c, "got nan"); }
TEST_F(Check, FindsWriteIntoPadding) { expect_found(Fault::writes_padding, "wrote outside C: 203 elements"); }
TEST_F(Check, FindsWriteBeforeC) { expect_found(Fault::writes_before, "wrote outside C: 1 elements"); }
TEST_F(Check, FindsSwappedElements) {
  expect_found(Fault::swapped_result, "2 of 42833 elements wrong; first at row 0, column 0");
}

/// Sums in FP16 pass as what they are, not as FP32 ones; and not where 16 of the products are missing.
TEST_F(Check, AllowsForFp16SumsAndFindsTheirForgottenKStep) {
  for (const Init init : {Init::normal, Init::uniform})
    for (const int k : {16, 264}) {
      const OperandSpec spec{{67, 71, k}, Type::f16, Out::f32, MatrixLayout::row_major, MatrixLayout::col_major,
                             ld_align,    init,      7};
      Operands operands(spec, 1);
      Checker checker(operands, 1.25F, -0.5F, CheckMode::full, blas_.get(), nullptr);
      const auto check = [&](bool forgets_k_step, Sum sums) {
        const auto launch = [=](const Problem& p) { broken::launch_fp16_sums(forgets_k_step, p); };
        return checker.check(launch, Workspace(), sums);
      };
      const CheckResult right = check(false, Sum::fp16), wrong = check(true, Sum::fp16);
      EXPECT_TRUE(right.passed) << k << ": " << right.message;
      EXPECT_FALSE(wrong.passed) << k;
      EXPECT_NE(wrong.message.find("elements wrong"), std::string::npos) << wrong.message;
      EXPECT_FALSE(check(false, Sum::fp32).passed) << k;
    }
}

/// What the check of an epilogue says; empty where it passes.
std::string said_of(broken::EpilogueFault fault, const Epilogue& epilogue, int k, CheckMode mode, const Blas* blas) {
  OperandSpec spec{{67, 331, k}, Type::bf16,   Out::same, MatrixLayout::row_major, MatrixLayout::col_major,
                   ld_align,     Init::normal, 7};
  spec.epilogue = epilogue;
  Operands operands(spec, 1);
  Checker checker(operands, 1.25F, 0.0F, mode, blas, nullptr);
  const CheckResult result = checker.check([fault](const Problem& p) { broken::launch_epilogue(fault, p); });
  return result.passed ? "" : result.message;
}

TEST_F(Check, FindsFaultsOfEpilogues) {
  using broken::EpilogueFault;
  constexpr Epilogue bias{.bias = true}, bias_gelu{.bias = true, .activation = Activation::gelu},
      gated{.activation = Activation::silu, .gate = true}, quantised{.bias = true, .quantise = true},
      all{.bias = true, .activation = Activation::silu, .gate = true, .quantise = true};
  const std::tuple<EpilogueFault, Epilogue, const char*> faults[] = {
      {EpilogueFault::bias_forgotten, bias, "elements wrong"},
      {EpilogueFault::bias_forgotten, bias_gelu, "elements wrong"},
      {EpilogueFault::bias_of_next_column, bias_gelu, "elements wrong"},
      {EpilogueFault::gelu_for_silu, gated, "elements wrong"},
      {EpilogueFault::gate_forgotten, gated, "elements wrong"},
      {EpilogueFault::bias_forgotten, quantised, "the scale of row 0, columns 0 to 127 is"},
      {EpilogueFault::gate_forgotten, all, "the scale of row 0, columns 0 to 127 is"},
      {EpilogueFault::scale_doubled, quantised, "the scale of row 0, columns 0 to 127 is"},
      {EpilogueFault::scale_of_other_row, all, "the scale of row 0, columns 0 to 127 is"},
      {EpilogueFault::scale_unwritten, all, "the scale of row 66, columns 0 to 127 is nan"},
      {EpilogueFault::scale_padding, all, "wrote outside C: 3 elements"},
  };
  for (const int k : {1, 40, 1031}) {
    if (device_->simulated && k > 40) continue;
    for (const Epilogue& epilogue : {bias, bias_gelu, gated, quantised, all})
      EXPECT_EQ(said_of(EpilogueFault::none, epilogue, k, CheckMode::full, blas_.get()), "") << k;
    for (const auto& [fault, epilogue, words] : faults)
      EXPECT_THAT(said_of(fault, epilogue, k, CheckMode::full, blas_.get()), testing::HasSubstr(words))
          << k << ", fault " << static_cast<int>(fault);
  }
  for (const Epilogue& epilogue : {bias_gelu, gated}) {
    EXPECT_EQ(said_of(EpilogueFault::none, epilogue, 40, CheckMode::sample, blas_.get()), "");
    EXPECT_THAT(said_of(epilogue.gate ? EpilogueFault::gate_forgotten : EpilogueFault::bias_forgotten, epilogue, 40,
                        CheckMode::sample, blas_.get()),
                testing::HasSubstr("sampled elements wrong"));
  }
}

/// A forgotten scale, and one from the wrong place, in every mode that has one; by every element and by samples, with every kind of data.
TEST_F(Check, FindsWrongScales) {
  using broken::ScaleFault;
  for (const Scales scales : {Scales::tensor, Scales::rows, Scales::blocks, Scales::mx, Scales::nv})
    for (const Init init : {Init::normal, Init::integer})
      for (const CheckMode mode : {CheckMode::full, CheckMode::sample}) {
        OperandSpec spec{{67, 300, 264},          Type::e4m3, Out::f32, MatrixLayout::row_major,
                         MatrixLayout::col_major, ld_align,   init,     7};
        spec.scales = scales;
        Operands operands(spec, 1);
        Checker checker(operands, 1.25F, -0.5F, mode, blas_.get(), nullptr);
        const Sum sums = scale_vector(scales) > 0 ? Sum::fp32 : scales == Scales::blocks ? Sum::promoted : Sum::fp22;
        const auto check = [&](ScaleFault fault) {
          return checker.check([=](const Problem& p) { broken::launch_scaled(fault, p); }, Workspace(), sums);
        };
        const CheckResult right = check(ScaleFault::none);
        EXPECT_TRUE(right.passed) << name(scales) << ": " << right.message;
        EXPECT_FALSE(check(ScaleFault::forgets_a).passed) << name(scales);
        EXPECT_FALSE(check(ScaleFault::forgets_b).passed) << name(scales);
        if (scales == Scales::tensor) continue;  // whose place is the same for all
        EXPECT_FALSE(check(ScaleFault::first_of_a).passed) << name(scales);
        EXPECT_FALSE(check(ScaleFault::neighbour_of_b).passed) << name(scales);
      }
}

/// In groups, scales of the right form that belong to another group: of B, and of A, whose rows are counted through all.
TEST_F(Check, FindsScalesOfAnotherGroup) {
  using broken::ScaleFault;
  for (const Scales scales : {Scales::tensor, Scales::rows, Scales::blocks})
    for (const CheckMode mode : {CheckMode::full, CheckMode::sample}) {
      OperandSpec spec{{67, 300, 264},          Type::e4m3, Out::f32,     MatrixLayout::row_major,
                       MatrixLayout::col_major, ld_align,   Init::normal, 7};
      spec.scales = scales, spec.groups = 5, spec.group_rows = GroupRows::random;
      Operands operands(spec, 1);
      Checker checker(operands, 1.25F, -0.5F, mode, blas_.get(), nullptr);
      const Sum sums = scales == Scales::blocks ? Sum::promoted : Sum::fp22;
      const auto check = [&](ScaleFault fault) {
        return checker.check([=](const Problem& p) { broken::launch_scaled(fault, p); }, Workspace(), sums);
      };
      const CheckResult right = check(ScaleFault::none);
      EXPECT_TRUE(right.passed) << name(scales) << ": " << right.message;
      EXPECT_FALSE(check(ScaleFault::forgets_b).passed) << name(scales);
      if (scales == Scales::tensor) continue;  // one for all groups
      EXPECT_FALSE(check(ScaleFault::group_of_b).passed) << name(scales);
      EXPECT_FALSE(check(ScaleFault::group_of_a).passed) << name(scales);
    }
}

/// A product of E4M3 and E4M3 in place of E5M2 and E4M3.
TEST_F(Check, FindsAnotherFormatOfA) {
  for (const Type type : {Type::e4m3, Type::e5m2})
    for (const CheckMode mode : {CheckMode::full, CheckMode::sample}) {
      OperandSpec spec{{67, 300, 264},          type,     Out::f32,     MatrixLayout::row_major,
                       MatrixLayout::col_major, ld_align, Init::normal, 7};
      spec.scales = Scales::tensor;
      Operands operands(spec, 1);
      Checker checker(operands, 1.25F, -0.5F, mode, blas_.get(), nullptr);
      const auto launch = [](const Problem& p) { broken::launch_scaled(broken::ScaleFault::none, p); };
      EXPECT_EQ(checker.check(launch, Workspace(), Sum::fp22).passed, type == Type::e4m3);
    }
}

TEST_F(Check, FindsFlagThatIsLeft) {
  expect_found(Fault::leaves_lock, "left 1 of 3 locks set: the next launch would not wait");
}
TEST_F(Check, FindsWritePastTheWorkspace) {
  expect_found(Fault::writes_workspace, "wrote outside its workspace: 4 bytes of the guard bands changed");
}

TEST_F(Check, SampleModeFindsNanAnywhere) {
  const CheckResult result = check(Fault::one_nan, 0.0F, CheckMode::sample);
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.message.find("row 101, column 70"), std::string::npos) << result.message;
  EXPECT_TRUE(check(Fault::none, 0.0F, CheckMode::sample).passed);
}

TEST_F(Check, DataDiffersBetweenSeedsAndSets) {
  const OperandSpec spec{{8, 8, 8}, Type::f32,    Out::f32, MatrixLayout::row_major, MatrixLayout::row_major,
                         0,         Init::normal, 1};
  OperandSpec other = spec;
  other.seed = 2;
  const Operands two(spec, 2), different(other, 1);
  const auto first = [](const Problem& p) {
    float value = 0.0F;
    cudaMemcpy(&value, p.a, sizeof value, cudaMemcpyDeviceToHost);
    return value;
  };
  EXPECT_NE(first(two.problem(0, 1, 0, nullptr)), first(two.problem(1, 1, 0, nullptr)));
  EXPECT_NE(first(two.problem(0, 1, 0, nullptr)), first(different.problem(0, 1, 0, nullptr)));
}

}  // namespace
}  // namespace ladder
