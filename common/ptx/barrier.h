// Barriers for some of a block's warps: sm_70, PTX ISA 6.0, "Parallel Synchronization and Communication Instructions: bar".
#pragma once

namespace ladder {

/// bar.sync id, threads;
/// Waits until `threads` threads, whole warps, have come to barrier `id`, 1 to 15; 0 is that of __syncthreads().
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// bar.arrive id, threads;
/// Arrives at barrier `id` without waiting.
__device__ __forceinline__ void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ladder
