// When a warp waits, and when it asks for something: the functions of common/ptx write it down while a kernel runs, where it is
// compiled with -DLADDER_TIMELINE. bench/timeline.cpp reads it. Otherwise no instruction comes of what is here.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ladder {

/// What a record is of, named after the instruction; in brackets its detail.
enum class TimelineKind : uint32_t {
  none,
  mbarrier_wait,              ///< until the phase is complete [address of the mbarrier]
  mbarrier_arrive,            ///< [address of the mbarrier]
  mbarrier_arrive_expect_tx,  ///< [address of the mbarrier]
  bulk_tensor_load,    ///< from the call to the next instruction, not to the data's arrival [address of the mbarrier]
  bulk_tensor_store,   ///< likewise [address of what is stored]
  bulk_wait_group,     ///< [PENDING]
  wgmma_commit_group,  ///< wgmma have been asked for
  wgmma_wait_group,    ///< [PENDING]
  bar_sync,            ///< [number of the barrier]; 0 is __syncthreads()
  cluster_wait,
};

/// Something that a warp did, from `begin` on, in clocks of its SM (%clock64). Addresses are the last 24 bits of those in shared memory.
struct alignas(16) TimelineRecord {
  uint64_t begin;
  uint32_t clocks;  ///< that it took
  uint32_t kind : 8, detail : 24;
};

/// Where a block ran, and since when: in clocks of its SM, and in nanoseconds on the clock that all SMs share (%globaltimer).
struct TimelineBlock {
  uint64_t clocks, ns;
  uint32_t sm, recorded;  ///< recorded: 1, where the block has written this
};

/// One warp in so many threads is recorded: the first of a warpgroup, since its four warps do the same.
constexpr int TIMELINE_THREADS = 128;
constexpr int TIMELINE_WARPS = 8;  ///< so recorded, at most, per block

/// Where a kernel writes. Blocks with a higher number are not recorded, nor what a warp does after its last record.
struct TimelineBuffer {
  TimelineBlock* block;     ///< [blocks]
  TimelineRecord* records;  ///< [blocks][TIMELINE_WARPS][capacity]; filled from the front, the rest left as it was
  uint32_t blocks, capacity;
};

/// Gives bench/timeline.cpp a function that sets the buffer of one file's kernels.
struct TimelineHook {
  explicit TimelineHook(cudaError_t (*set)(const TimelineBuffer&));
};

#ifdef LADDER_TIMELINE

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

/// __syncthreads(), recorded; kernels call it by the usual name.
__device__ __forceinline__ void timeline_syncthreads() {
  const uint64_t begin = timeline_clock();
  __syncthreads();
  timeline_record(TimelineKind::bar_sync, begin);
}
#define __syncthreads() ladder::timeline_syncthreads()

#else

__device__ __forceinline__ uint64_t timeline_clock() { return 0; }
__device__ __forceinline__ void timeline_start() {}
__device__ __forceinline__ void timeline_record(TimelineKind, uint64_t, uint32_t = 0) {}

#endif

}  // namespace ladder
