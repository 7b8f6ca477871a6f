// cudaGetDeviceProperties, cudaDeviceGetAttribute and the rest of device management, from one table.
#include "sim/shim/device.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <string>

#include "sim/shim/runtime.h"

namespace sim {
namespace {

using Properties = cudaDeviceProp;

/// One figure of the device: the attribute, its value, and the member of cudaDeviceProp that says the same, if any.
struct Figure {
  cudaDeviceAttr attribute;
  int value;
  int Properties::*member = nullptr;
};

constexpr Figure figures[] = {
    {cudaDevAttrMaxThreadsPerBlock, h200::max_threads_per_block, &Properties::maxThreadsPerBlock},
    {cudaDevAttrMaxBlockDimX, h200::max_block[0]},
    {cudaDevAttrMaxBlockDimY, h200::max_block[1]},
    {cudaDevAttrMaxBlockDimZ, h200::max_block[2]},
    {cudaDevAttrMaxGridDimX, h200::max_grid[0]},
    {cudaDevAttrMaxGridDimY, h200::max_grid[1]},
    {cudaDevAttrMaxGridDimZ, h200::max_grid[2]},
    {cudaDevAttrMaxSharedMemoryPerBlock, h200::smem_per_block},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, h200::smem_per_block_optin},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, h200::smem_per_sm},
    {cudaDevAttrReservedSharedMemoryPerBlock, h200::smem_reserved_per_block},
    {cudaDevAttrTotalConstantMemory, h200::constant_bytes},
    {cudaDevAttrWarpSize, h200::warp_size, &Properties::warpSize},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, h200::registers_per_sm, &Properties::regsPerBlock},
    {cudaDevAttrMaxRegistersPerMultiprocessor, h200::registers_per_sm, &Properties::regsPerMultiprocessor},
    {cudaDevAttrMultiProcessorCount, h200::sm_count, &Properties::multiProcessorCount},
    {cudaDevAttrMaxThreadsPerMultiProcessor, h200::max_threads_per_sm, &Properties::maxThreadsPerMultiProcessor},
    {cudaDevAttrMaxBlocksPerMultiprocessor, h200::max_blocks_per_sm, &Properties::maxBlocksPerMultiProcessor},
    {cudaDevAttrComputeCapabilityMajor, h200::sm / 10, &Properties::major},
    {cudaDevAttrComputeCapabilityMinor, h200::sm % 10, &Properties::minor},
    {cudaDevAttrL2CacheSize, 60 << 20, &Properties::l2CacheSize},
    {cudaDevAttrGlobalMemoryBusWidth, 6144, &Properties::memoryBusWidth},
    {cudaDevAttrClockRate, 1980000},        // kHz; for what is reported, since nothing is timed
    {cudaDevAttrMemoryClockRate, 3201000},  // kHz
    {cudaDevAttrGlobalL1CacheSupported, 1, &Properties::globalL1CacheSupported},
    {cudaDevAttrLocalL1CacheSupported, 1, &Properties::localL1CacheSupported},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrUnifiedAddressing, 1, &Properties::unifiedAddressing},
    {cudaDevAttrManagedMemory, 1, &Properties::managedMemory},
    {cudaDevAttrCanMapHostMemory, 1, &Properties::canMapHostMemory},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1, &Properties::canUseHostPointerForRegisteredMem},
    {cudaDevAttrPageableMemoryAccess, 0, &Properties::pageableMemoryAccess},
    {cudaDevAttrConcurrentManagedAccess, 0, &Properties::concurrentManagedAccess},
    {cudaDevAttrEccEnabled, 1, &Properties::ECCEnabled},
    {cudaDevAttrStreamPrioritiesSupported, 1, &Properties::streamPrioritiesSupported},
    {cudaDevAttrClusterLaunch, 1, &Properties::clusterLaunch},
    // One kernel runs at a time, copies are done when the call returns, and there is one device.
    {cudaDevAttrConcurrentKernels, 0, &Properties::concurrentKernels},
    {cudaDevAttrAsyncEngineCount, 0, &Properties::asyncEngineCount},
    {cudaDevAttrGpuOverlap, 0},
    {cudaDevAttrCooperativeLaunch, 0, &Properties::cooperativeLaunch},
    {cudaDevAttrMemoryPoolsSupported, 0, &Properties::memoryPoolsSupported},
    {cudaDevAttrComputeMode, 0},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0, &Properties::integrated},
    {cudaDevAttrTccDriver, 0, &Properties::tccDriver},
    {cudaDevAttrIsMultiGpuBoard, 0, &Properties::isMultiGpuBoard},
    {cudaDevAttrHostNativeAtomicSupported, 0, &Properties::hostNativeAtomicSupported},
    {cudaDevAttrComputePreemptionSupported, 0, &Properties::computePreemptionSupported},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPciBusId, 0, &Properties::pciBusID},
    {cudaDevAttrPciDeviceId, 0, &Properties::pciDeviceID},
    {cudaDevAttrPciDomainId, 0, &Properties::pciDomainID},
};

Properties properties() {
  Properties properties = {};
  std::strncpy(properties.name, h200::name, sizeof properties.name - 1);
  for (const Figure& figure : figures)
    if (figure.member) properties.*figure.member = figure.value;
  properties.totalGlobalMem = h200::memory_bytes;
  properties.totalConstMem = h200::constant_bytes;
  properties.sharedMemPerBlock = h200::smem_per_block;
  properties.sharedMemPerBlockOptin = h200::smem_per_block_optin;
  properties.sharedMemPerMultiprocessor = h200::smem_per_sm;
  properties.reservedSharedMemPerBlock = h200::smem_reserved_per_block;
  properties.memPitch = 2147483647;
  properties.textureAlignment = 512;
  properties.texturePitchAlignment = 32;
  properties.surfaceAlignment = 512;
  std::memcpy(properties.maxThreadsDim, h200::max_block, sizeof h200::max_block);
  std::memcpy(properties.maxGridSize, h200::max_grid, sizeof h200::max_grid);
  return properties;
}

/// The host's memory holds the device's.
size_t host_available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * 1024;
  return h200::memory_bytes;
}

void require_device(int device) { require(device == 0, cudaErrorInvalidDevice); }

}  // namespace

bool h200::attribute(cudaDeviceAttr attribute, int* value) {
  for (const Figure& figure : figures) {
    if (figure.attribute != attribute) continue;
    *value = figure.value;
    return true;
  }
  return false;
}

Runtime::Runtime() : memory(h200::memory_bytes) {}

Runtime& runtime() {
  static Runtime* const instance = new Runtime;
  return *instance;
}

}  // namespace sim

using sim::call, sim::require, sim::require_device;

CUDA_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&] {
    require_device(device);
    require(properties);
    *properties = sim::properties();
  });
}

CUDA_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&] {
    require_device(device);
    require(value);
    if (sim::h200::attribute(attribute, value)) return;
    require(attribute > 0 && attribute < cudaDevAttrMax);
    sim::not_supported(fmt::format("cudaDeviceGetAttribute of attribute {}", static_cast<int>(attribute)).c_str());
  });
}

CUDA_API cudaError_t cudaGetDeviceCount(int* count) {
  return call([&] {
    require(count);
    *count = 1;
  });
}

CUDA_API cudaError_t cudaGetDevice(int* device) {
  return call([&] {
    require(device);
    *device = 0;
  });
}

CUDA_API cudaError_t cudaSetDevice(int device) {
  return call([&] { require_device(device); });
}

/// How the host waits, and what a profiler sees: nothing here.
CUDA_API cudaError_t cudaSetDeviceFlags(unsigned) {
  return call([] {});
}
CUDA_API cudaError_t cudaProfilerStart() {
  return call([] {});
}
CUDA_API cudaError_t cudaProfilerStop() {
  return call([] {});
}

CUDA_API cudaError_t cudaDeviceSynchronize() {
  return call([] {});
}

CUDA_API cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call([&] {
    require_device(device);
    require(text && length > static_cast<int>(std::strlen(sim::h200::pci_bus_id)));
    std::strcpy(text, sim::h200::pci_bus_id);
  });
}

CUDA_API cudaError_t cudaDriverGetVersion(int* version) {
  return call([&] {
    require(version);
    *version = CUDART_VERSION;
  });
}

CUDA_API cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

CUDA_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&] {
    require(free && total);
    *total = sim::h200::memory_bytes;
    *free = std::min(sim::host_available_bytes(), sim::h200::memory_bytes - sim::runtime().memory.used());
  });
}

CUDA_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&] {
    require_device(device);
    require_device(peer);
    require(can);
    *can = 0;
  });
}
