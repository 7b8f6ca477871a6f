// Streams and events. Work is done when the call that asks for it returns. So the order is always right, nothing has to wait, and
// the time between two events is 0: the simulator never estimates time. While a stream captures, its work becomes a graph.
#include "shim/streams.h"

#include <algorithm>
#include <map>
#include <set>

#include "shim/graphs.h"
#include "shim/runtime.h"

namespace sim {
namespace {

/// What several streams capture together: one graph.
struct Capture {
  cudaGraph_t graph;
  cudaStream_t origin;
  unsigned long long id;
  bool invalid = false;  ///< it ends with an error
  bool ended = false;
};

}  // namespace
}  // namespace sim

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<sim::Capture> capture = {};  ///< null: its work is done at once
  std::vector<cudaGraphNode_t> last = {};      ///< of the capture: what the next node comes after
};
struct CUevent_st {
  bool recorded = false;
  std::shared_ptr<sim::Capture> capture = {};  ///< recorded in a stream that captured
  std::vector<cudaGraphNode_t> after = {};     ///< there: what came before it
};

namespace sim {
namespace {

std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;
unsigned long long captures = 0;  ///< so far

void require_event(cudaEvent_t event) { require(events.contains(event), cudaErrorInvalidResourceHandle); }

/// Null for a default stream, which cannot capture.
CUstream_st* capturing(cudaStream_t stream) { return streams.contains(stream) && stream->capture ? stream : nullptr; }

bool is_legacy(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

/// All that capture are invalid from here on.
void invalidate_captures() {
  for (const cudaStream_t stream : streams)
    if (stream->capture) stream->capture->invalid = true;
}

bool any_capture() {
  return std::any_of(streams.begin(), streams.end(), [](cudaStream_t s) { return bool(s->capture); });
}

void add(std::vector<cudaGraphNode_t>& to, const std::vector<cudaGraphNode_t>& nodes) {
  for (const cudaGraphNode_t node : nodes)
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
}

void leave_capture(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (const cudaStream_t stream : streams)
    if (stream->capture == capture) {
      stream->capture.reset();
      stream->last.clear();
    }
}

/// Streams that joined the capture, by waiting for an event of it, must have been joined again: the origin comes after all
/// that they did.
bool has_unjoined_work(const Capture& capture) {
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

void destroy_capture(cudaStream_t stream) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return;  // what another one did is joined, or is found missing at the end
  leave_capture(capture);
  destroy_graph(capture->graph);
}

}  // namespace

void require_stream(cudaStream_t stream) {
  require(!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread || streams.contains(stream),
          cudaErrorInvalidResourceHandle);
}

void require_no_capture(cudaStream_t stream) {
  if (capturing(stream)) {
    stream->capture->invalid = true;
    throw CallFailed{cudaErrorStreamCaptureUnsupported};
  }
  if (!is_legacy(stream) || !any_capture()) return;
  for (const cudaStream_t other : streams)
    if (other->capture && !(other->flags & cudaStreamNonBlocking)) {
      invalidate_captures();
      throw CallFailed{cudaErrorStreamCaptureImplicit};
    }
}

void on_stream(cudaStream_t stream, cudaGraphNodeType type, std::function<void()> work) {
  require_stream(stream);
  CUstream_st* const captures = capturing(stream);
  if (!captures) {
    require_no_capture(stream);
    return work();
  }
  require(!captures->capture->invalid, cudaErrorStreamCaptureInvalidated);
  captures->last = {captures->capture->graph->add(type, std::move(work), captures->last)};
}

}  // namespace sim

using namespace sim;

// --- streams -----------------------------------------------------------------------------------------------------------------

CUDA_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&] {
    require(stream && flags <= cudaStreamNonBlocking);
    *stream = *streams.insert(new CUstream_st{flags, std::clamp(priority, -5, 0)}).first;
  });
}

CUDA_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

CUDA_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

CUDA_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    require(streams.contains(stream), cudaErrorInvalidResourceHandle);
    destroy_capture(stream);
    streams.erase(stream);
    delete stream;
  });
}

CUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] {
    require_stream(stream);
    require_no_capture(stream);
  });
}

CUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

CUDA_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    require_stream(stream);
    require_event(event);
    CUstream_st* const waits = streams.contains(stream) ? stream : nullptr;
    if (!event->capture) {  // no work of a capture comes after what is outside of it
      require(!capturing(stream), cudaErrorStreamCaptureIsolation);
      return;
    }
    require(!event->capture->ended, cudaErrorCapturedEvent);
    require(waits, cudaErrorStreamCaptureImplicit);
    if (waits->capture && waits->capture != event->capture) {
      waits->capture->invalid = event->capture->invalid = true;
      throw CallFailed{cudaErrorStreamCaptureMerge};
    }
    waits->capture = event->capture;
    add(waits->last, event->after);
  });
}

CUDA_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call([&] {
    require_stream(stream);
    require(priority);
    *priority = streams.contains(stream) ? stream->priority : 0;
  });
}

CUDA_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call([&] {
    require_stream(stream);
    require(flags);
    *flags = streams.contains(stream) ? stream->flags : 0;
  });
}

CUDA_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call([&] {
    require_stream(stream);
    require(id);
    *id = reinterpret_cast<unsigned long long>(stream);
  });
}

CUDA_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call([&] {
    require_stream(stream);
    require(device);
    *device = 0;
  });
}

/// What can be set is a hint on speed: the window of L2, how the host waits.
CUDA_API cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue* value) {
  return call([&] {
    require_stream(stream);
    require(value);
  });
}

CUDA_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t, unsigned) {
  return call([&] {
    require_stream(stream);
    require(runtime().memory.find(reinterpret_cast<uint64_t>(pointer)));
  });
}

CUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}

/// The host's function may take long, or wait for other threads that make calls: no lock is held meanwhile.
CUDA_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  bool now = false;
  const cudaError_t status = call([&] {
    require(function);
    require_stream(stream);
    now = !capturing(stream);
    if (!now) on_stream(stream, cudaGraphNodeTypeHost, [=] { function(data); });
  });
  if (now) function(data);
  return status;
}

CUDA_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                           unsigned flags) {
  const cudaError_t status = call([&] {
    require(function && !flags);
    require_stream(stream);
    require_no_capture(stream);
  });
  if (status == cudaSuccess) function(stream, cudaSuccess, data);
  return status;
}

// --- capture (CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture") ------------------------------------------

CUDA_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] {
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed);
    require(stream != cudaStreamPerThread && !is_legacy(stream), cudaErrorStreamCaptureUnsupported);
    require_stream(stream);
    require(!stream->capture, cudaErrorIllegalState);
    stream->capture = std::make_shared<Capture>(Capture{new_graph(), stream, ++captures});
    stream->last.clear();
  });
}

CUDA_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    require(graph);
    *graph = nullptr;
    require_stream(stream);
    require(capturing(stream), cudaErrorIllegalState);
    const std::shared_ptr<Capture> capture = stream->capture;
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
    if (graph) *graph = stream->capture->graph;
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

// --- events ------------------------------------------------------------------------------------------------------------------

CUDA_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call([&] {
    require(event);
    *event = *events.insert(new CUevent_st).first;
  });
}

CUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

CUDA_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    require(events.erase(event), cudaErrorInvalidResourceHandle);
    delete event;
  });
}

CUDA_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return call([&] {
    require_event(event);
    require_stream(stream);
    const CUstream_st* const captures = capturing(stream);
    if (!captures) require_no_capture(stream);
    event->recorded = !captures;
    event->capture = captures ? captures->capture : nullptr;
    event->after = captures ? captures->last : std::vector<cudaGraphNode_t>{};
  });
}

CUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

CUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] {
    require_event(event);
    require(!event->capture, cudaErrorCapturedEvent);
  });
}

CUDA_API cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

CUDA_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call([&] {
    require_event(start);
    require_event(end);
    require(milliseconds && start->recorded && end->recorded, cudaErrorInvalidResourceHandle);
    *milliseconds = 0;
  });
}
