// What the checks do with what they find, and what they have found.
//
//   GEMM_LADDER_SIM_CHECKS=race=warn,exited=off    sim/checks.h has the names
//   GEMM_LADDER_SIM_LIMIT=N                        warp instructions of a block; 0: no limit
#pragma once

#include <cstdint>
#include <string>

#include "executor/warnings.h"

namespace sim {

/// As the environment has it when the first kernel is launched. Where it cannot be read, one line says why, and the program
/// ends with status 2.
const Checks& checks();
uint64_t instruction_limit();

/// Prints each warning of a launch that is new, and counts all. The program's end prints the sums, if there are any.
void add_warnings(const std::string& kernel, const Warnings& warnings);

/// An error has been reported.
void count_error();

}  // namespace sim
