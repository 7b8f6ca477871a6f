// The product in FP64 on the CPU: the reference where there is no cuBLAS, that is, on the simulator.
#pragma once

#include <vector>

#include "common/problem.h"

namespace ladder {

struct HostProduct {
  std::vector<float> value;  ///< D, rounded to FP32; row-major, ld = n
  std::vector<float> scale;  ///< S of bound.h, likewise
};

/// Computes D from the A, B and C that are on the device now, on all cores. C is not read where beta is 0.
HostProduct host_product(const Problem& p);

}  // namespace ladder
