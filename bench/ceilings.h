// What the GPU at hand can do at most, measured by kernels that do nothing else.
#pragma once

#include <string>
#include <vector>

#include "common/harness/device.h"
#include "common/problem.h"

namespace ladder {

struct Ceiling {
  std::string name;  ///< fp32_fma, dram, l2, smem
  double value;
  std::string unit;  ///< GFLOP/s or GB/s (1e9)
};

/// Runs all ceiling kernels, about half a second. Throws CudaError.
std::vector<Ceiling> measure_ceilings(const Device& device);

/// Reads the CSV that bin/ceilings writes. Throws UsageError where it is not one, or is of another GPU.
std::vector<Ceiling> read_ceilings(const std::string& path, const Device& device);

/// The columns of that CSV.
std::vector<std::string> ceiling_columns();

/// The least time a problem can take under the ceilings, and which one binds.
struct Floor {
  double ms;
  std::string ceiling;
};

/// Compares 2 M N K operations with the least bytes: A and B read once, C written once, and read once where beta != 0.
Floor time_floor(const std::vector<Ceiling>& ceilings, const Problem& p);

}  // namespace ladder
