#include "common/harness/timing/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "common/harness/error.h"
#include "common/harness/timing/ceilings.h"

namespace ladder {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({10, 20}, 0.1), 11);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(Ratios, AreOfTheSameRound) {
  // The clock halves in the second round: both take twice as long, and the ratio does not move.
  EXPECT_EQ(ratios({2, 4, 2}, {1, 2, 1}), (std::vector<double>{2, 2, 2}));
}

TEST(Rounds, FillTheTimeThatAllSittingsShare) {
  EXPECT_EQ(rounds_of({}, 1.0), 30);
  EXPECT_EQ(rounds_of({}, 100.0), 20);
  EXPECT_EQ(rounds_of({}, 10'000.0), 5);
  EXPECT_EQ(rounds_of({.sittings = 5}, 1.0), 6);
  EXPECT_EQ(rounds_of({.sittings = 5}, 100.0), 4);
  EXPECT_EQ(rounds_of({.sittings = 5}, 10'000.0), 1);
  EXPECT_EQ(rounds_of({.sittings = 3}, 10'000.0), 2);
  EXPECT_EQ(rounds_of({.sittings = 5}, 0.2), 20) << "4 ms of them";
  EXPECT_EQ(rounds_of({.sittings = 5}, 0.1), 30);
  EXPECT_EQ(rounds_of({.protocol = Protocol::steady}, 1.0), 5);
  EXPECT_EQ(rounds_of({.protocol = Protocol::steady, .sittings = 3}, 1.0), 2);
  EXPECT_EQ(rounds_of({.rounds = 7, .sittings = 5}, 1.0), 7) << "what is asked for is asked of each";
}

TEST(ColdSets, CoverTwiceTheL2WhereMemoryPermits) {
  const OperandSpec small{{256, 256, 256},         Type::f32, Out::f32,     MatrixLayout::row_major,
                          MatrixLayout::row_major, 0,         Init::normal, 1};
  const size_t one = Operands::bytes(small, 1), l2 = 50 << 20;
  EXPECT_GT(cold_sets(small, l2, size_t{1} << 40) * one, 2 * l2);
  EXPECT_EQ(cold_sets(small, l2, 3 * one), 3);
  EXPECT_EQ(cold_sets(small, l2, 0), 1);
  const OperandSpec large{{8192, 8192, 8192},      Type::f32, Out::f32,     MatrixLayout::row_major,
                          MatrixLayout::row_major, 0,         Init::normal, 1};
  EXPECT_EQ(cold_sets(large, l2, size_t{1} << 40), 2);
  const OperandSpec tiny{{1, 1, 1}, Type::f32,    Out::f32, MatrixLayout::row_major, MatrixLayout::row_major,
                         0,         Init::normal, 1};
  EXPECT_EQ(cold_sets(tiny, l2, size_t{1} << 40), 4096);
}

TEST(OperandSpec, PadsLeadingDimensions) {
  OperandSpec spec{{5, 6, 7}, Type::f32,    Out::f32, MatrixLayout::row_major, MatrixLayout::row_major,
                   3,         Init::normal, 1};
  EXPECT_EQ(spec.lda(), 10);
  EXPECT_EQ(spec.ldb(), 9);
  EXPECT_EQ(spec.ldc(), 9);
  spec.layout_b = MatrixLayout::col_major;
  EXPECT_EQ(spec.ldb(), 10);
  spec.ld_pad = ld_align;
  EXPECT_EQ(spec.lda(), 8);
  EXPECT_EQ(spec.ldc(), 8);
  spec.type = Type::bf16;
  spec.shape.k = 9;
  EXPECT_EQ(spec.lda(), 16);  // 16 bytes are eight BF16
}

TEST(TimeFloor, NamesTheCeilingThatBinds) {
  const std::vector<Ceiling> ceilings = {{"fp32_fma", 60'000, "GFLOP/s"}, {"dram", 4'000, "GB/s"}};
  Problem p;
  p.m = p.n = p.k = 4096;
  const auto floor = [&] { return time_floor(ceilings, MathInstruction::ffma, p).value(); };
  EXPECT_EQ(floor().ceiling, "fp32_fma");
  EXPECT_NEAR(floor().ms, 2.0 * 4096 * 4096 * 4096 / 60e12 * 1e3, 1e-9);
  p.k = 1;  // writes C and reads next to nothing
  EXPECT_EQ(floor().ceiling, "dram");
  EXPECT_NEAR(floor().ms, 4.0 * (4096 + 4096 + 4096.0 * 4096) / 4e12 * 1e3, 1e-9);
  p.beta = 1.0F;  // reads C too
  EXPECT_NEAR(floor().ms, 4.0 * (4096 + 4096 + 2 * 4096.0 * 4096) / 4e12 * 1e3, 1e-9);
}

TEST(TimeFloor, TakesTheCeilingOfUnitAndType) {
  const std::vector<Ceiling> ceilings = {{"fp32_fma", 60'000, "GFLOP/s"},
                                         {"mma_tf32", 300'000, "GFLOP/s"},
                                         {"mma_bf16", 600'000, "GFLOP/s"},
                                         {"mma_f16", 610'000, "GFLOP/s"},
                                         {"dram", 4'000, "GB/s"}};
  Problem p;
  p.m = p.n = p.k = 4096;
  for (const auto& [instruction, type, name, tflops] :
       {std::tuple(MathInstruction::ffma, Type::f32, "fp32_fma", 60),
        std::tuple(MathInstruction::ffma, Type::bf16, "fp32_fma", 60),
        std::tuple(MathInstruction::mma_sync, Type::tf32, "mma_tf32", 300),
        std::tuple(MathInstruction::mma_sync, Type::bf16, "mma_bf16", 600),
        std::tuple(MathInstruction::mma_sync, Type::f16, "mma_f16", 610)}) {
    p.type = type;
    const Floor floor = time_floor(ceilings, instruction, p).value();
    EXPECT_EQ(floor.ceiling, name);
    EXPECT_NEAR(floor.ms, 2 * std::pow(4096.0, 3) / tflops * 1e-9, 1e-9);
  }
  p.type = Type::bf16;
  EXPECT_FALSE(time_floor(ceilings, MathInstruction::wgmma, p))
      << "wgmma was not measured, and no other instruction stands in for it";
  p.k = 256;  // 8.6 GFLOP take 14 us now, the 71 MB 18 us
  EXPECT_EQ(time_floor(ceilings, MathInstruction::mma_sync, p)->ceiling, "dram");
}

/// What read_ceilings() says of a file with these lines below its header; empty where it takes them.
std::string refusal(const std::string& lines, const std::vector<std::string>& wanted) {
  const std::string path = testing::TempDir() + "ceilings.csv";
  std::ofstream(path) << "name,value,unit,gpu,utc,commit\n" << lines;
  Device device;
  device.name = "GPU";
  try {
    read_ceilings(path, device, wanted);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(ReadCeilings, NeedsThoseAskedForThatAreMeasured) {
  const std::string before = "fp32_fma,60000.0,GFLOP/s,GPU,,\ndram,4000.0,GB/s,GPU,,\n";  // there were mma_...
  const std::string bf16 = before + "mma_bf16,600000.0,GFLOP/s,GPU,,\nmma_bf16_per_clk,2700.0,FLOP/clk/SM,GPU,,\n";
  EXPECT_EQ(refusal(before, {"fp32_fma"}), "");
  EXPECT_EQ(refusal(bf16, {"fp32_fma", "mma_bf16", "wgmma_bf16"}), "");
  EXPECT_THAT(refusal(before, {"fp32_fma", "mma_bf16"}),
              testing::HasSubstr("lacks mma_bf16; measure them again with build/bin/ceilings --csv"));
  EXPECT_THAT(refusal("fp32_fma,60000.0,GFLOP/s,GPU,,\n", {}), testing::HasSubstr("lacks dram"));
  EXPECT_THAT(refusal("dram,4000.0,GB/s,Other,,\n", {}), testing::HasSubstr("is of Other, this is GPU"));
  EXPECT_THAT(refusal("dram,fast,GB/s,GPU,,\n", {}), testing::HasSubstr("has no positive number here: dram,fast"));
}

TEST(SmTime, IsClocksOverTime) {
  SmTime sum;
  EXPECT_EQ(sum.mhz(), 0.0);  // nothing counted
  sum += {1500, 1000};
  sum += {6000, 3000};
  EXPECT_DOUBLE_EQ(sum.mhz(), 1875.0);
}

TEST(ThrottleNames, LeaveOutIdleAndApplicationClocks) {
  EXPECT_EQ(throttle_names(0), "none");
  EXPECT_EQ(throttle_names(0x1 | 0x2), "none");
  EXPECT_EQ(throttle_names(0x4), "sw_power_cap");
  EXPECT_EQ(throttle_names(0x4 | 0x20), "sw_power_cap+sw_thermal");
}

}  // namespace
}  // namespace ladder
