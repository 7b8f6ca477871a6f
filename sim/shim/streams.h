// What a stream does with the work that a call gives it: it is done at once, or becomes a node of the graph that is being captured.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace sim {

/// The default streams have handles of their own: 0, cudaStreamLegacy and cudaStreamPerThread.
void require_stream(cudaStream_t stream);

/// A call that waits for work, or works on the legacy stream, is an error while a stream captures, and ends the capture
/// (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
void require_no_capture(cudaStream_t stream);

/// Within a call of the runtime. `work` throws what a call throws. It must hold copies of what it needs.
void on_stream(cudaStream_t stream, cudaGraphNodeType type, std::function<void()> work);

}  // namespace sim
