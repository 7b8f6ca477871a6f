// Bulk tensor copies by the Tensor Memory Accelerator (TMA): sm_90, PTX ISA 8.0, "Data Movement and Conversion Instructions: Bulk and
// Tensor Asynchronous Copy Instructions". One thread issues the copy of a whole box of a matrix; TMA computes the addresses.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace ladder {

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [smem], [map, {x, y}], [barrier];
/// One thread: copies the box of `map` that begins at element x of row y, to `smem`, a multiple of 128, or of 1024 with the 128-byte
/// swizzle. What lies outside of the matrix becomes zeros, and counts: the barrier counts all bytes of the box.
__device__ __forceinline__ void cp_async_bulk_tensor_2d(uint32_t smem, const CUtensorMap& map, int x, int y,
                                                        uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(smem),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [smem], [map, {x, y}], [barrier],
/// blocks;
/// The same into several blocks of the cluster, those whose bits are set in `blocks`. In each of them the data goes to the offset of
/// `smem`, and the bytes are counted on the mbarrier at the offset of `barrier`.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(uint32_t smem, const CUtensorMap& map, int x, int y,
                                                                  uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(smem),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [smem], [map, {x, y}], [barrier];
/// As cp_async_bulk_tensor_2d(), sm_100a, PTX ISA 8.6: to this block, while `barrier` may be one of the other block of its pair (tcgen05.h).
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cta_group_2(uint32_t smem, const CUtensorMap& map, int x, int y,
                                                                    uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(smem),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/// cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [map, {x, y}], [smem];
/// One thread: copies `smem` to the box of `map` that begins at element x of row y; what lies outside of the matrix is not written.
/// Before that, every thread that has written `smem` executes fence_proxy_async_shared(), and a barrier orders these before this thread.
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const CUtensorMap& map, int x, int y, uint32_t smem) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
               "r"(y), "r"(smem)
               : "memory");
}

/// cp.async.bulk.commit_group;
/// All stores that this thread has issued since the last commit become a group.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// cp.async.bulk.wait_group.read PENDING;
/// Waits until shared memory has been read by all but this thread's PENDING youngest groups.
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/// fence.proxy.async.shared::cta;
/// Makes this thread's accesses of shared memory visible to TMA and to wgmma (the async proxy).
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// prefetch.tensormap [map];
/// One thread: brings the map to where TMA reads it. For a map that is a kernel's __grid_constant__ parameter.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace ladder
