// Streams and events. Work is done when the call that asks for it returns. So the order is always right, nothing has to wait, and
// the time between two events is 0: the simulator never estimates time. While a stream captures, its work goes to its capture.
#include "shim/streams.h"

#include <algorithm>
#include <set>

#include "shim/runtime.h"

struct CUevent_st {
  bool recorded = false;
  std::shared_ptr<sim::Capture> capture = {};  ///< recorded in a stream that captured
  std::vector<cudaGraphNode_t> after = {};     ///< there: what came before it
};

namespace sim {
namespace {

std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;

void require_event(cudaEvent_t event) { require(events.contains(event), cudaErrorInvalidResourceHandle); }

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

void destroy_capture(cudaStream_t stream) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return;  // what another one did is joined, or is found missing at the end
  leave_capture(capture);
  capture->abandon();
}

}  // namespace

bool is_legacy(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

CUstream_st* capturing(cudaStream_t stream) { return streams.contains(stream) && stream->capture ? stream : nullptr; }

void leave_capture(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (const cudaStream_t stream : streams)
    if (stream->capture == capture) {
      stream->capture.reset();
      stream->last.clear();
    }
}

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
  captures->last = {captures->capture->add(type, std::move(work), captures->last)};
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
