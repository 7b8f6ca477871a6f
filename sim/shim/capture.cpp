// Streams whose work becomes a graph (CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture").
#include <set>

#include "shim/graphs.h"
#include "shim/runtime.h"
#include "shim/streams.h"

namespace sim {
namespace {

struct GraphCapture : Capture {
  using Capture::Capture;

  cudaGraphNode_t add(cudaGraphNodeType type, std::function<void()> work,
                      const std::vector<cudaGraphNode_t>& after) override {
    return graph->add(type, std::move(work), after);
  }
  void abandon() override { destroy_graph(graph); }

  const cudaGraph_t graph = new_graph();
};

unsigned long long captures = 0;  ///< so far

std::shared_ptr<GraphCapture> graph_capture(cudaStream_t stream) {
  return std::static_pointer_cast<GraphCapture>(stream->capture);  // there is no other kind
}

/// Streams that joined the capture, by waiting for an event of it, must have been joined again: the origin comes after all
/// that they did.
bool has_unjoined_work(const GraphCapture& capture) {
  std::set<cudaGraphNode_t> reached;
  std::vector<cudaGraphNode_t> next = capture.origin->last;
  while (!next.empty()) {
    const cudaGraphNode_t node = next.back();
    next.pop_back();
    if (!reached.insert(node).second) continue;
    next.insert(next.end(), node->after.begin(), node->after.end());
  }
  return reached.size() != capture.graph->nodes.size();
}

}  // namespace
}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
    require(stream != cudaStreamPerThread && !is_legacy(stream), cudaErrorStreamCaptureUnsupported);
    require_stream(stream);
    require(!stream->capture, cudaErrorIllegalState);
    stream->capture = std::make_shared<GraphCapture>(stream, ++captures);
    stream->last.clear();
  });
}

CUDA_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    require(graph);
    *graph = nullptr;
    require_stream(stream);
    require(capturing(stream), cudaErrorIllegalState);
    const std::shared_ptr<GraphCapture> capture = graph_capture(stream);
    require(capture->origin == stream, cudaErrorStreamCaptureUnmatched);
    const bool unjoined = has_unjoined_work(*capture);
    leave_capture(capture);
    if (unjoined || capture->invalid) {
      destroy_graph(capture->graph);
      throw CallFailed{unjoined ? cudaErrorStreamCaptureUnjoined : cudaErrorStreamCaptureInvalidated};
    }
    *graph = capture->graph;
  });
}

CUDA_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    require_stream(stream);
    require(status);
    const CUstream_st* const captures = capturing(stream);
    *status = !captures                    ? cudaStreamCaptureStatusNone
              : captures->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
  });
}

CUDA_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id, cudaGraph_t* graph,
                                              const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                              size_t* count) {
  const cudaError_t asked = cudaStreamIsCapturing(stream, status);
  if (asked != cudaSuccess || *status != cudaStreamCaptureStatusActive) return asked;
  return call([&] {
    if (id) *id = stream->capture->id;
    if (graph) *graph = graph_capture(stream)->graph;
    if (dependencies) *dependencies = stream->last.data();
    if (edges) *edges = nullptr;
    if (count) *count = stream->last.size();
  });
}

/// Every mode permits the same here.
CUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&] {
    thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    require(mode);
    std::swap(current, *mode);
  });
}
