// What the program's kernels did, gathered over its launches and written as CSV when it ends.
//
//   GEMM_LADDER_SIM_COUNTS=counts.csv   one row per kernel (line 0: its total) and per source line
#pragma once

#include <string>

#include "executor/counters.h"

namespace sim {

/// Adds one launch, unless the program has stopped counting (sim/launch_counts.h).
void add_counts(const std::string& kernel, const Counters& counters);

}  // namespace sim
