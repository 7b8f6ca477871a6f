// What kernels that bench/record_timeline.h instruments write, and bench/timeline.cpp reads: when a warp waits, and when it asks for
// something.
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

}  // namespace ladder
