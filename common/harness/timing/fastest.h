// Of several ways to run the same thing, the fastest.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <optional>

namespace ladder {

/// Which of run(0), ..., run(count - 1) takes the least time on `stream`; nothing where count is 0. One timed run of each finds the
/// few worth measuring: noise from run to run is far below the spread of what a library offers. Throws CudaError.
std::optional<size_t> fastest(size_t count, const std::function<void(size_t)>& run, cudaStream_t stream);

}  // namespace ladder
