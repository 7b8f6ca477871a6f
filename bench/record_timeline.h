// Instruments a rung for bench/timeline.cpp, without a change to its text: nvcc -include bench/record_timeline.h. What is defined here
// calls the function of common/ptx with the same name and writes down when; the macros at the end let the rung's text mean these.
#pragma once

#include "bench/timeline.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cluster.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/mbarrier.h"
#include "common/ptx/wgmma.h"

namespace ladder {

static __constant__ TimelineBuffer timeline_buffer;
static cudaError_t timeline_set(const TimelineBuffer& buffer) {
  return cudaMemcpyToSymbol(timeline_buffer, &buffer, sizeof buffer);
}
static const TimelineHook timeline_hook(timeline_set);

/// How many records each warp has, or would have if there were no end to them.
__device__ __forceinline__ uint32_t* timeline_counts() {
  __shared__ uint32_t counts[TIMELINE_WARPS];
  return counts;
}

__device__ __forceinline__ uint64_t timeline_clock() {
  uint64_t clocks;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clocks)::"memory");
  return clocks;
}

/// One thread, before a barrier of the block and before any record.
__device__ __forceinline__ void timeline_start() {
  for (int warp = 0; warp < TIMELINE_WARPS; ++warp) timeline_counts()[warp] = 0;
  if (blockIdx.x >= timeline_buffer.blocks) return;
  TimelineBlock block{.clocks = timeline_clock(), .ns = 0, .sm = 0, .recorded = 1};
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(block.ns)::"memory");
  asm volatile("mov.u32 %0, %%smid;" : "=r"(block.sm));
  timeline_buffer.block[blockIdx.x] = block;
}

/// Writes down what this warp did since `begin`, a timeline_clock(). Its first lane writes, wherever that lane calls this.
__device__ __forceinline__ void timeline_record(TimelineKind kind, uint64_t begin, uint32_t detail = 0) {
  const uint64_t end = timeline_clock();
  if (threadIdx.x % TIMELINE_THREADS != 0 || blockIdx.x >= timeline_buffer.blocks) return;
  const uint32_t warp = threadIdx.x / TIMELINE_THREADS, count = timeline_counts()[warp]++;
  if (count >= timeline_buffer.capacity) return;
  const size_t place = (size_t{blockIdx.x} * TIMELINE_WARPS + warp) * timeline_buffer.capacity + count;
  timeline_buffer.records[place] = {begin, static_cast<uint32_t>(end - begin), static_cast<uint32_t>(kind),
                                    detail & 0xFFFFFF};
}

namespace recorded {

/// Calls `f`, and writes down when it began and how long it took.
template <class F>
__device__ __forceinline__ void record(TimelineKind kind, uint32_t detail, F&& f) {
  const uint64_t begin = timeline_clock();
  f();
  timeline_record(kind, begin, detail);
}

__device__ __forceinline__ void fence_mbarrier_init() {
  ladder::fence_mbarrier_init();
  timeline_start();
}
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  record(TimelineKind::mbarrier_arrive_expect_tx, barrier, [&] { ladder::mbarrier_arrive_expect_tx(barrier, bytes); });
}
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  record(TimelineKind::mbarrier_arrive, barrier, [&] { ladder::mbarrier_arrive(barrier); });
}
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  record(TimelineKind::mbarrier_arrive, barrier, [&] { ladder::mbarrier_arrive_cluster(barrier); });
}
__device__ __forceinline__ void mbarrier_wait_parity(uint32_t barrier, uint32_t parity) {
  record(TimelineKind::mbarrier_wait, barrier, [&] { ladder::mbarrier_wait_parity(barrier, parity); });
}
__device__ __forceinline__ void mbarrier_sleep_parity(uint32_t barrier, uint32_t parity) {
  record(TimelineKind::mbarrier_wait, barrier, [&] { ladder::mbarrier_sleep_parity(barrier, parity); });
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d(uint32_t smem, const CUtensorMap& map, int x, int y,
                                                        uint32_t barrier) {
  record(TimelineKind::bulk_tensor_load, barrier, [&] { ladder::cp_async_bulk_tensor_2d(smem, map, x, y, barrier); });
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(uint32_t smem, const CUtensorMap& map, int x, int y,
                                                                  uint32_t barrier, uint16_t blocks) {
  record(TimelineKind::bulk_tensor_load, barrier,
         [&] { ladder::cp_async_bulk_tensor_2d_multicast(smem, map, x, y, barrier, blocks); });
}
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const CUtensorMap& map, int x, int y, uint32_t smem) {
  record(TimelineKind::bulk_tensor_store, smem, [&] { ladder::cp_async_bulk_tensor_2d_store(map, x, y, smem); });
}
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  record(TimelineKind::bulk_wait_group, PENDING, [] { ladder::cp_async_bulk_wait_group_read<PENDING>(); });
}
__device__ __forceinline__ void wgmma_commit_group() {
  record(TimelineKind::wgmma_commit_group, 0, [] { ladder::wgmma_commit_group(); });
}
template <int PENDING>
__device__ __forceinline__ void wgmma_wait_group() {
  record(TimelineKind::wgmma_wait_group, PENDING, [] { ladder::wgmma_wait_group<PENDING>(); });
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  record(TimelineKind::bar_sync, id, [&] { ladder::bar_sync(id, threads); });
}
__device__ __forceinline__ void syncthreads() {
  record(TimelineKind::bar_sync, 0, [] { __syncthreads(); });
}
__device__ __forceinline__ void cluster_wait() {
  record(TimelineKind::cluster_wait, 0, [] { ladder::cluster_wait(); });
}

}  // namespace recorded
}  // namespace ladder

#define fence_mbarrier_init ladder::recorded::fence_mbarrier_init
#define mbarrier_arrive_expect_tx ladder::recorded::mbarrier_arrive_expect_tx
#define mbarrier_arrive ladder::recorded::mbarrier_arrive
#define mbarrier_arrive_cluster ladder::recorded::mbarrier_arrive_cluster
#define mbarrier_wait_parity ladder::recorded::mbarrier_wait_parity
#define mbarrier_sleep_parity ladder::recorded::mbarrier_sleep_parity
#define cp_async_bulk_tensor_2d ladder::recorded::cp_async_bulk_tensor_2d
#define cp_async_bulk_tensor_2d_multicast ladder::recorded::cp_async_bulk_tensor_2d_multicast
#define cp_async_bulk_tensor_2d_store ladder::recorded::cp_async_bulk_tensor_2d_store
#define cp_async_bulk_wait_group_read ladder::recorded::cp_async_bulk_wait_group_read
#define wgmma_commit_group ladder::recorded::wgmma_commit_group
#define wgmma_wait_group ladder::recorded::wgmma_wait_group
#define bar_sync ladder::recorded::bar_sync
#define __syncthreads ladder::recorded::syncthreads
#define cluster_wait ladder::recorded::cluster_wait
