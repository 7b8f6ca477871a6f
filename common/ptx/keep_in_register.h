// Prevents rematerialisation; emits no instruction.
#pragma once

#include <cstdint>

namespace ladder {

/// Keeps `x` in its own register: the compiler must assume that it changes here. Recomputed at each use, an address would
/// overwrite a register that a copy or an ldmatrix in flight still reads, and the warp would wait for that.
__device__ __forceinline__ void keep_in_register(uint32_t& x) { asm volatile("" : "+r"(x)); }

}  // namespace ladder
