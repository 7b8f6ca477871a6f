// Registers moved from one warpgroup to another: sm_90a, PTX ISA 8.0, "Miscellaneous Instructions: setmaxnreg". All warps of a
// warpgroup execute these, converged; COUNT is a multiple of 8 from 24 to 256.
#pragma once

namespace ladder {

/// setmaxnreg.dec.sync.aligned.u32 COUNT;
/// Releases registers: COUNT per thread are left.
template <int COUNT>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
}

/// setmaxnreg.inc.sync.aligned.u32 COUNT;
/// Waits until there are COUNT registers per thread.
template <int COUNT>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
}

}  // namespace ladder
