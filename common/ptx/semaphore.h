// Locks in global memory by which blocks wait for one another (CUTLASS: Semaphore): sm_70, PTX ISA 6.0, "Data Movement and Conversion
// Instructions: ld, st", "Parallel Synchronization and Communication Instructions: atom, red" and "Memory Consistency Model".
#pragma once

namespace ladder {

/// ld.acquire.gpu.global.u32: what the thread that released the value had written, or seen, is seen by later reads of this one.
__device__ __forceinline__ unsigned ld_acquire_gpu(const unsigned* lock) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(lock) : "memory");
  return value;
}

/// st.release.gpu.global.u32: whoever acquires this value sees all that this thread has written or seen before.
__device__ __forceinline__ void st_release_gpu(unsigned* lock, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(lock), "r"(value) : "memory");
}

/// red.release.gpu.global.add.u32: adds. Releases as st.release does.
__device__ __forceinline__ void red_add_release_gpu(unsigned* counter, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

/// atom.relaxed.gpu.global.add.u32: adds, and returns what was there before. Orders no other access.
__device__ __forceinline__ unsigned atom_add_relaxed_gpu(unsigned* counter, unsigned value) {
  unsigned before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

/// atom.add.acq_rel.gpu.global.u32: adds, and returns what was there before. Releases and acquires as the two above.
__device__ __forceinline__ unsigned atom_add_acq_rel_gpu(unsigned* counter, unsigned value) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(value) : "memory");
  return before;
}

}  // namespace ladder
