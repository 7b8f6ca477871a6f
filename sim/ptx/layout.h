// Where variables and parameters lie within their state space.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ir.h"

namespace sim::ptx {

/// `alignment` is a power of two.
constexpr uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

/// One after another, each at its alignment, as a launch lays out an entry's parameters. Returns the bytes of all.
uint64_t lay_out(std::vector<Variable>& variables);

/// .global, .const and .shared of the whole module, and each entry's static shared memory.
void lay_out(Module& module);

}  // namespace sim::ptx
