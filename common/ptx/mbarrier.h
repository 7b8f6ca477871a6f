// mbarriers, objects of 8 bytes in shared memory that count arrivals and bytes: sm_80, and for what is used here sm_90, PTX ISA 8.0,
// "Parallel Synchronization and Communication Instructions: mbarrier". A phase is complete when as many threads have arrived as the
// barrier was initialised for and as many bytes have landed as they announced; then the next phase begins. Waiting names a phase
// by its parity: 0 for the first, 1 for the second, 0 for the third.
#pragma once

#include <cstdint>

namespace ladder {

/// mbarrier.init.shared::cta.b64 [barrier], arrivals;
/// One thread, before all others use it: a fence_mbarrier_init() and a barrier of the block must follow.
__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// fence.mbarrier_init.release.cluster;
/// Makes this thread's mbarrier_init visible to TMA and, after a barrier of the cluster, to its other blocks.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], bytes;
/// One arrival, and `bytes` more have to land before the phase is complete. Before the copies that bring them.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// mbarrier.arrive.shared::cta.b64 _, [barrier];
/// One arrival. Whoever waits for the phase then sees what this thread has written, and is ordered after what it has read.
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// mbarrier.arrive.shared::cluster.b64 _, [barrier];
/// One arrival at an mbarrier of any block of the cluster, by its mapa() address.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// mbarrier.try_wait.parity.shared::cta.b64 done, [barrier], parity;
/// Whether the phase with that parity is complete; may sleep for a while before it says no. After a yes, this thread sees what those
/// who arrived had written, and the bytes that have landed.
__device__ __forceinline__ bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// Waits until the phase with that parity is complete.
__device__ __forceinline__ void mbarrier_wait_parity(uint32_t barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

/// mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [barrier], parity;
/// Waits as mbarrier_wait_parity(), and then sees what other blocks of the cluster have stored: st_async4().
__device__ __forceinline__ void mbarrier_wait_parity_cluster(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

/// mbarrier.try_wait.parity.shared::cta.b64 done, [barrier], parity, 10000000;
/// As mbarrier_wait_parity(), for warps that must not take issue slots from others: each try sleeps up to 10 ms.
__device__ __forceinline__ void mbarrier_sleep_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2, %3;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity), "r"(10'000'000)  // nanoseconds
        : "memory");
  } while (done == 0);
}

}  // namespace ladder
