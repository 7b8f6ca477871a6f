// Stream-ordered allocation (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator"). What a stream does is done when its
// call returns, so memory is there, or gone, at once: a use after cudaFreeAsync is outside of every allocation.
#include "shim/pools.h"

#include <cstring>
#include <map>
#include <set>

#include "shim/runtime.h"
#include "shim/streams.h"

struct CUmemPoolHandle_st {
  uint64_t used = 0, used_high = 0, threshold = 0;
  std::map<cudaMemPoolAttr, int> switches = {};  ///< what may be reused, and when: a hint on speed
  bool destroyed = false;                        ///< it lives on until its memory is freed
};

namespace sim {
namespace {

CUmemPoolHandle_st default_pool;
cudaMemPool_t current = &default_pool;
std::set<cudaMemPool_t> pools;
std::map<void*, std::pair<cudaMemPool_t, size_t>> allocations;  ///< of all pools

CUmemPoolHandle_st& find_pool(cudaMemPool_t pool) {
  require(pool == &default_pool || (pools.contains(pool) && !pool->destroyed));
  return *pool;
}

void forget(cudaMemPool_t pool) {
  if (!pool->destroyed || pool->used) return;
  pools.erase(pool);
  delete pool;
}

void allocate(void** pointer, size_t bytes, cudaMemPool_t from, cudaStream_t stream) {
  require(pointer);
  CUmemPoolHandle_st& pool = find_pool(from);
  *pointer = nullptr;
  require_stream(stream);
  if (!bytes) return;
  if (capturing(stream)) {
    *pointer = graph_memory(bytes);
    return on_stream(stream, cudaGraphNodeTypeMemAlloc, take_graph_memory(*pointer));
  }
  const uint64_t address = runtime().memory.allocate(bytes);
  require(address, cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(address);
  allocations[*pointer] = {from, bytes};
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
}

}  // namespace

void* graph_memory(size_t bytes) {
  const uint64_t address = runtime().memory.allocate_parked(bytes);
  require(address, cudaErrorMemoryAllocation);
  return reinterpret_cast<void*>(address);
}

std::function<void()> take_graph_memory(void* memory) {
  return [memory] { require(runtime().memory.unpark(reinterpret_cast<uint64_t>(memory))); };
}

std::function<void()> free_graph_memory(void* memory) {
  return [memory] { require(runtime().memory.free(reinterpret_cast<uint64_t>(memory))); };
}

void left_pool(void* pointer) {
  const auto found = allocations.find(pointer);
  if (found == allocations.end()) return;
  const auto [pool, bytes] = found->second;
  allocations.erase(found);
  pool->used -= bytes;
  forget(pool);
}

}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return call([&] { allocate(pointer, bytes, current, stream); });
}

CUDA_API cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return call([&] { allocate(pointer, bytes, pool, stream); });
}

/// Also of memory that cudaMalloc gave out.
CUDA_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call([&] {
    require_stream(stream);
    if (!pointer) return;
    if (capturing(stream)) return on_stream(stream, cudaGraphNodeTypeMemFree, free_graph_memory(pointer));
    require(runtime().memory.free(reinterpret_cast<uint64_t>(pointer)));
    left_pool(pointer);
  });
}

CUDA_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call([&] {
    require(pool && properties && properties->allocType == cudaMemAllocationTypePinned);
    require(properties->location.type == cudaMemLocationTypeDevice && properties->location.id == 0);
    if (properties->handleTypes != cudaMemHandleTypeNone) not_supported("a memory pool for several processes");
    *pool = *pools.insert(new CUmemPoolHandle_st).first;
  });
}

CUDA_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call([&] {
    require(pool != &default_pool);
    find_pool(pool).destroyed = true;
    if (current == pool) current = &default_pool;
    forget(pool);
  });
}

CUDA_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call([&] {
    require(device == 0, cudaErrorInvalidDevice);
    require(pool);
    *pool = &default_pool;
  });
}

CUDA_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return call([&] {
    require(device == 0, cudaErrorInvalidDevice);
    require(pool);
    *pool = current;
  });
}

CUDA_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return call([&] {
    require(device == 0, cudaErrorInvalidDevice);
    current = &find_pool(pool);
  });
}

/// Memory that is free goes back at once.
CUDA_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return call([&] { find_pool(pool); });
}

CUDA_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&] {
    CUmemPoolHandle_st& of = find_pool(pool);
    require(value);
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        of.switches[attribute] = *static_cast<int*>(value);
        return;
      case cudaMemPoolAttrReleaseThreshold:
        of.threshold = *static_cast<uint64_t*>(value);
        return;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:  // can only be reset
        require(*static_cast<uint64_t*>(value) == 0);
        of.used_high = of.used;
        return;
      default:
        throw CallFailed{cudaErrorInvalidValue};
    }
  });
}

CUDA_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call([&] {
    CUmemPoolHandle_st& of = find_pool(pool);
    require(value);
    const auto give = [&](uint64_t bytes) { std::memcpy(value, &bytes, sizeof bytes); };
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        *static_cast<int*>(value) = of.switches.try_emplace(attribute, 1).first->second;
        return;
      case cudaMemPoolAttrReleaseThreshold:
        return give(of.threshold);
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent:
        return give(of.used);
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        return give(of.used_high);
      default:
        throw CallFailed{cudaErrorInvalidValue};
    }
  });
}

/// The one device can always reach it.
CUDA_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t count) {
  return call([&] {
    find_pool(pool);
    require(access || !count);
    for (size_t i = 0; i < count; ++i)
      require(access[i].location.id == 0 && access[i].flags == cudaMemAccessFlagsProtReadWrite);
  });
}

CUDA_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return call([&] {
    find_pool(pool);
    require(flags && location && location->id == 0);
    *flags = cudaMemAccessFlagsProtReadWrite;
  });
}
