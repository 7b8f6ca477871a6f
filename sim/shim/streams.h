// What a stream does with the work that a call gives it: it is done at once, or goes to the capture that the stream takes part in.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

namespace sim {

/// What several streams capture together. What becomes of it is not theirs to know: it is a graph (capture.cpp).
class Capture {
 public:
  Capture(cudaStream_t origin, unsigned long long id) : origin(origin), id(id) {}
  virtual ~Capture() = default;

  /// A piece of work, which comes after these; its handle.
  virtual cudaGraphNode_t add(cudaGraphNodeType type, std::function<void()> work,
                              const std::vector<cudaGraphNode_t>& after) = 0;

  /// Its origin is gone before its end.
  virtual void abandon() = 0;

  const cudaStream_t origin;
  const unsigned long long id;
  bool invalid = false;  ///< it ends with an error
  bool ended = false;
};

}  // namespace sim

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<sim::Capture> capture = {};  ///< null: its work is done at once
  std::vector<cudaGraphNode_t> last = {};      ///< of the capture: what the next node comes after
};

namespace sim {

/// The default streams have handles of their own: 0, cudaStreamLegacy and cudaStreamPerThread.
void require_stream(cudaStream_t stream);
bool is_legacy(cudaStream_t stream);

/// The stream, if it captures. Null for a default stream, which cannot.
CUstream_st* capturing(cudaStream_t stream);

/// A call that waits for work, or works on the legacy stream, is an error while a stream captures, and ends the capture
/// (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
void require_no_capture(cudaStream_t stream);

/// The capture has ended: none of its streams captures any more.
void leave_capture(const std::shared_ptr<Capture>& capture);

/// Within a call of the runtime. `work` throws what a call throws. It must hold copies of what it needs.
void on_stream(cudaStream_t stream, cudaGraphNodeType type, std::function<void()> work);

}  // namespace sim
