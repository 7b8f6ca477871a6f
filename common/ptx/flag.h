// Flags in global memory by which blocks wait for one another: sm_70, PTX ISA 6.0, "Data Movement and Conversion Instructions:
// ld, st", "Parallel Synchronization and Communication Instructions: atom, red" and "Memory Consistency Model".
#pragma once

namespace ladder {

/// ld.acquire.gpu.global.u32: what the thread that released the value had written, or seen, is seen by later reads of this one.
__device__ __forceinline__ unsigned ld_acquire_gpu(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// st.release.gpu.global.u32: whoever acquires this value sees all that this thread has written or seen before.
__device__ __forceinline__ void st_release_gpu(unsigned* flag, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

}  // namespace ladder
