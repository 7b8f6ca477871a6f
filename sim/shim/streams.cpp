// Streams and events. Work is done when the call that asks for it returns. So the order is always right, nothing has to wait, and
// the time between two events is 0: the simulator never estimates time.
#include <set>

#include "sim/shim/runtime.h"

struct CUstream_st {};
struct CUevent_st {
  bool recorded = false;
};

namespace sim {
namespace {

std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;

/// The default streams have handles of their own: 0, cudaStreamLegacy and cudaStreamPerThread.
void require_stream(cudaStream_t stream) {
  require(!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread || streams.contains(stream),
          cudaErrorInvalidResourceHandle);
}

void require_event(cudaEvent_t event) { require(events.contains(event), cudaErrorInvalidResourceHandle); }

}  // namespace
}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return call([&] {
    require(stream && flags <= cudaStreamNonBlocking);
    *stream = *streams.insert(new CUstream_st).first;
  });
}

CUDA_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

CUDA_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

CUDA_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    require(streams.erase(stream), cudaErrorInvalidResourceHandle);
    delete stream;
  });
}

CUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] { require_stream(stream); });
}

CUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

CUDA_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    require_stream(stream);
    require_event(event);
  });
}

CUDA_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    require_stream(stream);
    require(status);
    *status = cudaStreamCaptureStatusNone;
  });
}

CUDA_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
  });
}

CUDA_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const cudaError_t status = call([&] {
    require_stream(stream);
    require(function);
  });
  if (status == cudaSuccess) function(data);
  return status;
}

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
    event->recorded = true;
  });
}

CUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

CUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] { require_event(event); });
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
