// Prefetches: sm_20, PTX ISA 2.0, "Data Movement and Conversion Instructions: prefetch".
#pragma once

namespace ladder {

/// prefetch.global.L2 [p]; Loads the line of `p`, an address in global memory, into L2. Each thread for itself; it waits for
/// nothing and orders nothing.
__device__ __forceinline__ void prefetch_global_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

}  // namespace ladder
