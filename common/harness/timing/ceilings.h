// What the GPU at hand can do at most, measured by kernels that do nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/harness/device.h"
#include "common/rung.h"

namespace ladder {

/// fp32_fma; mma_ and a type of the tensor cores from sm_80 on, mma_e4m3 and mma_e5m2 from sm_89 on; wgmma_ and each of these types on sm_90;
/// each of these followed by the same with `_per_clk`, which the clock, and so power, does not move; dram, l2, smem.
struct Ceiling {
  std::string name;
  double value;
  std::string unit;  ///< GFLOP/s, FLOP/clk/SM or GB/s (1e9)
};

/// The name of the ceiling of products of this type by this instruction: fp32_fma, mma_bf16, wgmma_bf16, ... One that measure_ceilings()
/// does not measure here has a name all the same, so that no instruction is compared with the ceiling of another.
std::string ceiling_name(MathInstruction instruction, Type type);

/// Runs all ceiling kernels, about a second. Throws CudaError, and Waived on the simulator.
std::vector<Ceiling> measure_ceilings(const Device& device);

/// Reads the CSV that bin/ceilings writes. Throws UsageError where it is not one, is of another GPU, or lacks dram or one of
/// `wanted` that measure_ceilings() measures, as one from before there were mma_... does.
std::vector<Ceiling> read_ceilings(const std::string& path, const Device& device,
                                   const std::vector<std::string>& wanted);

/// The columns of that CSV.
std::vector<std::string> ceiling_columns();

/// The least time a problem can take under the ceilings, and which one binds.
struct Floor {
  double ms;
  std::string ceiling;
};

/// `matrices_b`: how many B are read, one for each group that has rows.
/// Compares 2 M N K operations with the least bytes: A and B read once, C written once, and read once where beta != 0.
/// Nothing where the ceiling of the instruction is not among `ceilings`.
std::optional<Floor> time_floor(const std::vector<Ceiling>& ceilings, MathInstruction instruction, const Problem& p,
                                double matrices_b = 1);

}  // namespace ladder
