// What atomic operations and reductions do to values (PTX ISA 9.7.13.5).
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/program.h"

namespace sim {

/// The new value that op.reduction gives.
uint32_t reduced(const Op& op, uint32_t a, uint32_t b);

/// What an atomic operation does to a place in memory that other CPU threads may change; the old value. `c`: of cas.
uint64_t update_atomically(const Op& op, std::byte* at, const std::byte* b, const std::byte* c = nullptr);

}  // namespace sim
