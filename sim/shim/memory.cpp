// Memory management: allocations, copies, fills and symbols. A copy is done when its call returns, the asynchronous ones
// too, unless their stream captures: streams run in order and nothing overlaps. Stream-ordered allocation is in pools.cpp.
#include "shim/memory.h"

#include <cstring>

#include "shim/modules.h"
#include "shim/pools.h"
#include "shim/runtime.h"
#include "shim/streams.h"
#include "text.h"

namespace sim {
namespace {

DeviceMemory& memory() { return runtime().memory; }

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

template <class Pointer>
void allocate(Pointer** pointer, size_t bytes, MemoryKind kind) {
  require(pointer);
  *pointer = nullptr;
  if (bytes == 0) return;
  const uint64_t address = memory().allocate(bytes, kind);
  require(address, cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<Pointer*>(address);
}

/// Bytes that begin in the GPU's memory must all lie in one allocation.
void require_inside(const void* pointer, size_t bytes, const char* call) {
  if (memory().contains(address_of(pointer), bytes)) return;
  print(stderr, "simulator: {} of {} bytes: {}\n", call, bytes, memory().describe(address_of(pointer)));
  throw CallFailed{cudaErrorInvalidValue};
}

bool on_device(const void* pointer) { return memory().find(address_of(pointer)) != nullptr; }

/// `kind` says which of the two pointers the GPU can reach; a host pointer may be pinned, which is reachable too.
void check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* call) {
  require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device || on_device(to)) require_inside(to, bytes, call);
  if (from_device || on_device(from)) require_inside(from, bytes, call);
}

void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* call) {
  if (bytes == 0) return;
  require(to && from);
  check_copy(to, from, bytes, kind, call);
  std::memmove(to, from, bytes);
  memory().copied(address_of(to), address_of(from), bytes);
}

void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind) {
  require(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row)
    copy(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch, width,
         kind, "cudaMemcpy2D");
}

void fill(void* to, int value, size_t bytes) {
  if (bytes == 0) return;
  require_inside(to, bytes, "cudaMemset");
  std::memset(to, value, bytes);
  memory().wrote(address_of(to), bytes);
}

std::byte* in_symbol(const void* symbol, size_t offset, size_t bytes) {
  const Variable& variable = find_variable(symbol);
  require(offset <= variable.bytes && bytes <= variable.bytes - offset);
  return reinterpret_cast<std::byte*>(variable.address) + offset;
}

void free_memory(void* pointer, MemoryKind kind) {
  if (pointer) require(memory().free(address_of(pointer), kind));
}

}  // namespace

std::function<void()> prepared_copy(const cudaMemcpy3DParms& given) {
  if (given.srcArray || given.dstArray) not_supported("cudaMemcpy3D of a cudaArray");
  return [p = given] {
    const cudaExtent size = p.extent;
    if (!size.width || !size.height || !size.depth) return;
    const auto at = [](const cudaPitchedPtr& memory, const cudaPos& begin, size_t row, size_t slice) {
      return static_cast<std::byte*>(memory.ptr) + ((begin.z + slice) * memory.ysize + begin.y + row) * memory.pitch +
             begin.x;
    };
    require(p.srcPtr.ptr && p.dstPtr.ptr);
    require(size.height == 1 || (size.width <= p.srcPtr.pitch && size.width <= p.dstPtr.pitch),
            cudaErrorInvalidPitchValue);
    for (size_t slice = 0; slice < size.depth; ++slice)
      for (size_t row = 0; row < size.height; ++row)
        copy(at(p.dstPtr, p.dstPos, row, slice), at(p.srcPtr, p.srcPos, row, slice), size.width, p.kind,
             "cudaMemcpy3D");
  };
}

}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return call([&] { allocate(pointer, bytes, MemoryKind::device); });
}

CUDA_API cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return call([&] {
    require(bytes > 0);
    allocate(pointer, bytes, MemoryKind::managed);
  });
}

CUDA_API cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&] {
    require(pitch);
    *pitch = (width + 511) / 512 * 512;
    allocate(pointer, *pitch * height, MemoryKind::device);
  });
}

CUDA_API cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent size) {
  return call([&] {
    require(pointer);
    const size_t pitch = (size.width + 511) / 512 * 512;
    *pointer = {nullptr, pitch, size.width, size.height};
    allocate(&pointer->ptr, pitch * size.height * size.depth, MemoryKind::device);
  });
}

/// The device's pointer to the host's memory is the host's pointer.
CUDA_API cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return call([&] {
    require(pointer && bytes);
    require(memory().adopt(address_of(pointer), bytes), cudaErrorHostMemoryAlreadyRegistered);
  });
}

CUDA_API cudaError_t cudaHostUnregister(void* pointer) {
  return call([&] {
    require(memory().free(address_of(pointer), MemoryKind::registered_host), cudaErrorHostMemoryNotRegistered);
  });
}

CUDA_API cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return call([&] { allocate(pointer, bytes, MemoryKind::pinned_host); });
}

CUDA_API cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

CUDA_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call([&] {
    require(device && on_device(host));
    *device = host;
  });
}

CUDA_API cudaError_t cudaFree(void* pointer) {
  return call([&] {
    const Allocation* allocation = memory().find(address_of(pointer));
    const bool managed = allocation && allocation->kind == MemoryKind::managed;
    free_memory(pointer, managed ? MemoryKind::managed : MemoryKind::device);
    left_pool(pointer);
  });
}

CUDA_API cudaError_t cudaFreeHost(void* pointer) {
  return call([&] { free_memory(pointer, MemoryKind::pinned_host); });
}

CUDA_API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call([&] {
    require_no_capture(nullptr);
    copy(to, from, bytes, kind, "cudaMemcpy");
  });
}

CUDA_API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return call(
      [&] { on_stream(stream, cudaGraphNodeTypeMemcpy, [=] { copy(to, from, bytes, kind, "cudaMemcpyAsync"); }); });
}

/// There is one device.
CUDA_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                         cudaStream_t stream) {
  if (to_device || from_device) return call([] { throw CallFailed{cudaErrorInvalidDevice}; });
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

CUDA_API cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}

CUDA_API cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
  return call([&] { copy_rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

CUDA_API cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                       size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    on_stream(stream, cudaGraphNodeTypeMemcpy, [=] { copy_rows(to, to_pitch, from, from_pitch, width, height, kind); });
  });
}

CUDA_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return call([&] {
    require(parameters);
    on_stream(stream, cudaGraphNodeTypeMemcpy, prepared_copy(*parameters));
  });
}

CUDA_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return cudaMemcpy3DAsync(parameters, nullptr);
}

CUDA_API cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call([&] { on_stream(stream, cudaGraphNodeTypeMemset, [=] { fill(to, value, bytes); }); });
}

CUDA_API cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

CUDA_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent size, cudaStream_t stream) {
  return call([&] {
    require(size.width <= to.pitch, cudaErrorInvalidPitchValue);
    on_stream(stream, cudaGraphNodeTypeMemset, [=] {
      for (size_t slice = 0; slice < size.depth; ++slice)
        for (size_t row = 0; row < size.height; ++row)
          fill(static_cast<std::byte*>(to.ptr) + (slice * to.ysize + row) * to.pitch, value, size.width);
    });
  });
}

CUDA_API cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent size) {
  return cudaMemset3DAsync(to, value, size, nullptr);
}

CUDA_API cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                       cudaStream_t stream) {
  return cudaMemset3DAsync({to, pitch, width, height}, value, {width, height, 1}, stream);
}

CUDA_API cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}

CUDA_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    require(kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyHostToHost, cudaErrorInvalidMemcpyDirection);
    std::byte* const to = in_symbol(symbol, offset, bytes);
    on_stream(stream, cudaGraphNodeTypeMemcpy, [=] { copy(to, from, bytes, kind, "cudaMemcpyToSymbol"); });
  });
}

CUDA_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}

CUDA_API cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                               cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    require(kind != cudaMemcpyHostToDevice && kind != cudaMemcpyHostToHost, cudaErrorInvalidMemcpyDirection);
    const std::byte* const from = in_symbol(symbol, offset, bytes);
    on_stream(stream, cudaGraphNodeTypeMemcpy, [=] { copy(to, from, bytes, kind, "cudaMemcpyFromSymbol"); });
  });
}

CUDA_API cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                          cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}

CUDA_API cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return call([&] {
    require(pointer);
    *pointer = in_symbol(symbol, 0, 0);
  });
}

CUDA_API cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return call([&] {
    require(bytes);
    *bytes = find_variable(symbol).bytes;
  });
}

CUDA_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&] {
    require(attributes);
    *attributes = {};
    void* const address = const_cast<void*>(pointer);
    attributes->hostPointer = address;
    const Allocation* allocation = memory().find(address_of(pointer));
    if (!allocation) return;  // type stays cudaMemoryTypeUnregistered
    attributes->devicePointer = address;
    switch (allocation->kind) {
      case MemoryKind::pinned_host:
      case MemoryKind::registered_host:
        attributes->type = cudaMemoryTypeHost;
        break;
      case MemoryKind::managed:
        attributes->type = cudaMemoryTypeManaged;
        break;
      default:
        attributes->type = cudaMemoryTypeDevice;
        attributes->hostPointer = nullptr;
    }
  });
}

/// Managed memory is where host and device both reach it: where it should lie is a hint on speed.
CUDA_API cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned,
                                          cudaStream_t stream) {
  return call([&] {
    require_stream(stream);
    require_inside(pointer, bytes, "cudaMemPrefetchAsync");
  });
}

CUDA_API cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return call([&] { require_inside(pointer, bytes, "cudaMemAdvise"); });
}

CUDA_API cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call([&] {
    require(flags);
    const Allocation* const allocation = memory().find(address_of(pointer));
    require(allocation &&
            (allocation->kind == MemoryKind::pinned_host || allocation->kind == MemoryKind::registered_host));
    *flags = cudaHostAllocMapped;
  });
}

/// Of the arrays that textures read, which are not supported; but the call itself has no error to return.
CUDA_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
