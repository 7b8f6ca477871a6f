// Special functions, of which an SM computes 16 per clock: MUFU in SASS.
// https://docs.nvidia.com/cuda/parallel-thread-execution/#floating-point-instructions-ex2
#pragma once

namespace ladder {

/// 2^x, off by 2^-22 of it at most. One thread; from sm_75 on; .ftz: what is below 2^-126 is 0, which saves three instructions around it.
__device__ __forceinline__ float ex2_approx_ftz(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / x, off by one unit in the last place; of more than 2^126 it is 0. One thread; from sm_75 on.
__device__ __forceinline__ float rcp_approx_ftz(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace ladder
