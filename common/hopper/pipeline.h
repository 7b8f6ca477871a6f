// Where a thread is in a pipeline of stages. 21 writes it out; the rungs after it take it from here. CUTLASS has it under the same name
// (cutlass/pipeline/sm90_pipeline.hpp), and from it come consumer_wait, producer_acquire, producer_commit and consumer_release.
#pragma once

#include <cstdint>

namespace ladder {

/// The stage that comes next, and the phase of its mbarrier, as the parity that mbarrier_wait_parity() takes. Producer and consumer each
/// have one. A consumer waits for `phase` of the full barrier. A producer waits for `phase ^ 1` of the empty barrier: the phase before,
/// which counts as complete at first, when there is none.
template <int STAGES>
struct PipelineState {
  uint32_t phase = 0;
  int index = 0;

  __device__ __forceinline__ void operator++() {
    if (++index == STAGES) index = 0, phase ^= 1;
  }

  /// The same as `count` times ++.
  __device__ __forceinline__ void advance(int count) {
    index += count;
    phase ^= index / STAGES & 1;
    index %= STAGES;
  }
};

}  // namespace ladder
