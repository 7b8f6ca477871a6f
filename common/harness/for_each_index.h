// Work on every element of something on the GPU, for CUDA sources of the harness. One loop in place of Thrust, whose headers
// cost each file half a minute.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/rung.h"

namespace ladder {

template <class F>
__global__ void call_with_each_index(size_t count, F f) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) f(i);
}

/// Enqueues f(0) to f(count - 1), in any order.
template <class F>
void for_each_index(size_t count, cudaStream_t stream, const F& f) {
  constexpr int threads = 256;
  constexpr size_t most_blocks = 4096;  // fill every GPU several times over
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min(most_blocks, (count + threads - 1) / threads));
  call_with_each_index<<<blocks, threads, 0, stream>>>(count, f);
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
