// Clusters: blocks that run at the same time and reach one another's shared memory: sm_90, PTX ISA 7.8, "Special Registers",
// "barrier.cluster" and "mapa".
#pragma once

#include <cstdint>

namespace ladder {

/// %cluster_ctarank: which block of its cluster this is, from 0 on.
__device__ __forceinline__ uint32_t cluster_ctarank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// %clusterid.x and %nclusterid.x: which cluster of the grid this is, and how many there are. Without clusters each block is one.
__device__ __forceinline__ uint32_t cluster_id() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  return id;
}
__device__ __forceinline__ uint32_t cluster_count() {
  uint32_t count;
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return count;
}

/// barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
/// All threads of all blocks of the cluster, warps converged. What any has written before, all see after.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/// barrier.cluster.arrive.relaxed.aligned; orders no memory: mbarriers that a thread has initialised are seen behind cluster_wait() where
/// fence_mbarrier_init() stands before the arrival.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// mapa.shared::cluster.u32 address, smem, rank;
/// The address, for all blocks of the cluster, of what lies in block `rank` where `smem` lies in this one.
__device__ __forceinline__ uint32_t mapa(uint32_t smem, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(smem), "r"(rank));
  return address;
}

}  // namespace ladder
