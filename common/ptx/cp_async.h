// Asynchronous copies from global to shared memory, past the registers: sm_80, PTX ISA 7.0, "Data Movement and Conversion
// Instructions: Asynchronous copy", cp.async. Each thread executes these for itself and waits for its own copies. Before
// another thread reads the bytes, a barrier must follow the wait.
#pragma once

#include <cstdint>

namespace ladder {

/// cp.async.cg.shared.global [smem], [global], 16;
/// Copies 16 bytes through L2 alone (.cg: L1 is bypassed). Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async_cg_16(uint32_t smem, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem), "l"(global) : "memory");
}

/// cp.async.cg.shared.global [smem], [global], 16, bytes;
/// Reads `bytes` bytes, 0 to 16, and fills the rest of the 16 with zeros. With 0 it reads nothing, whatever the address.
__device__ __forceinline__ void cp_async_cg_16(uint32_t smem, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem), "l"(global), "r"(bytes) : "memory");
}

/// cp.async.ca.shared.global [smem], [global], 4, bytes;
/// Copies 4 bytes, if `bytes` is 4, through L1 and L2 (.ca). With 0 it reads nothing, whatever the address, and fills them with zeros.
/// Both addresses are multiples of 4.
__device__ __forceinline__ void cp_async_ca_4(uint32_t smem, const void* global, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(smem), "l"(global), "r"(bytes) : "memory");
}

/// cp.async.commit_group;
/// The thread's copies since the last commit become one group; a group may be empty.
__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// cp.async.wait_group N;
/// Waits until at most the N youngest of the thread's groups are still in flight.
template <int N>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace ladder
