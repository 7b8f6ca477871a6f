// cudaGetDeviceProperties, cudaDeviceGetAttribute and the rest of device management, from one table.
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "shim/runtime.h"
#include "shim/streams.h"
#include "text.h"

namespace sim {
namespace {

using Properties = cudaDeviceProp;

constexpr const char* pci_bus_id = "0000:00:00.0";

/// One figure of the device: the attribute, its value, and the member of cudaDeviceProp that says the same, if any.
struct Figure {
  cudaDeviceAttr attribute;
  int value;
  int Properties::*member = nullptr;
};

std::vector<Figure> figures_of(const Gpu& gpu) {
  return {
      {cudaDevAttrMaxThreadsPerBlock, Gpu::max_threads_per_block, &Properties::maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, Gpu::max_block[0]},
      {cudaDevAttrMaxBlockDimY, Gpu::max_block[1]},
      {cudaDevAttrMaxBlockDimZ, Gpu::max_block[2]},
      {cudaDevAttrMaxGridDimX, Gpu::max_grid[0]},
      {cudaDevAttrMaxGridDimY, Gpu::max_grid[1]},
      {cudaDevAttrMaxGridDimZ, Gpu::max_grid[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, Gpu::smem_per_block},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu.smem_per_block_optin},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, gpu.smem_per_sm},
      {cudaDevAttrReservedSharedMemoryPerBlock, gpu.smem_reserved_per_block},
      {cudaDevAttrTotalConstantMemory, Gpu::constant_bytes},
      {cudaDevAttrWarpSize, Gpu::warp_size, &Properties::warpSize},
      {cudaDevAttrMaxPitch, 2147483647},
      {cudaDevAttrMaxRegistersPerBlock, Gpu::registers_per_sm, &Properties::regsPerBlock},
      {cudaDevAttrMaxRegistersPerMultiprocessor, Gpu::registers_per_sm, &Properties::regsPerMultiprocessor},
      {cudaDevAttrMultiProcessorCount, gpu.sms, &Properties::multiProcessorCount},
      {cudaDevAttrMaxThreadsPerMultiProcessor, gpu.threads_per_sm, &Properties::maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, gpu.blocks_per_sm, &Properties::maxBlocksPerMultiProcessor},
      {cudaDevAttrComputeCapabilityMajor, gpu.sm / 10, &Properties::major},
      {cudaDevAttrComputeCapabilityMinor, gpu.sm % 10, &Properties::minor},
      {cudaDevAttrL2CacheSize, gpu.l2_bytes, &Properties::l2CacheSize},
      {cudaDevAttrGlobalMemoryBusWidth, gpu.memory_bus_bits, &Properties::memoryBusWidth},
      {cudaDevAttrClockRate, gpu.clock_khz},
      {cudaDevAttrMemoryClockRate, gpu.memory_clock_khz},
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
      {cudaDevAttrEccEnabled, gpu.ecc, &Properties::ECCEnabled},
      {cudaDevAttrStreamPrioritiesSupported, 1, &Properties::streamPrioritiesSupported},
      {cudaDevAttrClusterLaunch, gpu.has_clusters(), &Properties::clusterLaunch},
      // One kernel runs at a time, copies are done when the call returns, and there is one device.
      {cudaDevAttrConcurrentKernels, 0, &Properties::concurrentKernels},
      {cudaDevAttrAsyncEngineCount, 0, &Properties::asyncEngineCount},
      {cudaDevAttrGpuOverlap, 0},
      {cudaDevAttrCooperativeLaunch, 1, &Properties::cooperativeLaunch},
      {cudaDevAttrMemoryPoolsSupported, 1, &Properties::memoryPoolsSupported},
      {cudaDevAttrComputeMode, 0},
      {cudaDevAttrHostRegisterSupported, 1, &Properties::hostRegisterSupported},
      {cudaDevAttrMaxAccessPolicyWindowSize, 0, &Properties::accessPolicyMaxWindowSize},
      {cudaDevAttrMaxPersistingL2CacheSize, 0, &Properties::persistingL2CacheMaxSize},
      {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0, &Properties::pageableMemoryAccessUsesHostPageTables},
      {cudaDevAttrDirectManagedMemAccessFromHost, 1, &Properties::directManagedMemAccessFromHost},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrIntegrated, 0, &Properties::integrated},
      {cudaDevAttrTccDriver, 0, &Properties::tccDriver},
      {cudaDevAttrIsMultiGpuBoard, 0, &Properties::isMultiGpuBoard},
      {cudaDevAttrHostNativeAtomicSupported, 0, &Properties::hostNativeAtomicSupported},
      {cudaDevAttrComputePreemptionSupported, 0, &Properties::computePreemptionSupported},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, gpu.fp32_to_fp64},
      {cudaDevAttrPciBusId, 0, &Properties::pciBusID},
      {cudaDevAttrPciDeviceId, 0, &Properties::pciDeviceID},
      {cudaDevAttrPciDomainId, 0, &Properties::pciDomainID},
  };
}

Properties properties() {
  const Gpu& gpu = described_gpu();
  Properties properties = {};
  std::strncpy(properties.name, gpu.name, sizeof properties.name - 1);
  for (const Figure& figure : figures_of(gpu))
    if (figure.member) properties.*figure.member = figure.value;
  properties.totalGlobalMem = gpu.memory_bytes;
  properties.totalConstMem = Gpu::constant_bytes;
  properties.sharedMemPerBlock = Gpu::smem_per_block;
  properties.sharedMemPerBlockOptin = gpu.smem_per_block_optin;
  properties.sharedMemPerMultiprocessor = gpu.smem_per_sm;
  properties.reservedSharedMemPerBlock = gpu.smem_reserved_per_block;
  properties.memPitch = 2147483647;
  properties.textureAlignment = 512;
  properties.texturePitchAlignment = 32;
  properties.surfaceAlignment = 512;
  std::memcpy(properties.maxThreadsDim, Gpu::max_block, sizeof Gpu::max_block);
  std::memcpy(properties.maxGridSize, Gpu::max_grid, sizeof Gpu::max_grid);
  return properties;
}

/// The device's memory lies in the host's.
size_t host_available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * 1024;
  return described_gpu().memory_bytes;
}

size_t limits[] = {1024, size_t{1} << 20, size_t{8} << 20, 2, 2048, 64, 0};  ///< by cudaLimit, as an H200 has them

void require_device(int device) { require(device == 0, cudaErrorInvalidDevice); }

}  // namespace

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
    for (const sim::Figure& figure : sim::figures_of(sim::described_gpu()))
      if (figure.attribute == attribute) {
        *value = figure.value;
        return;
      }
    require(attribute > 0 && attribute < cudaDevAttrMax);
    sim::not_supported(sim::formatted("cudaDeviceGetAttribute of attribute {}", static_cast<int>(attribute)).c_str());
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

/// Nothing to do: the host never waits, and there is no profiler.
CUDA_API cudaError_t cudaSetDeviceFlags(unsigned) {
  return call([] {});
}
CUDA_API cudaError_t cudaProfilerStart() {
  return call([] {});
}
CUDA_API cudaError_t cudaProfilerStop() {
  return call([] {});
}

CUDA_API cudaError_t cudaProfilerInitialize(const char*, const char*, int) {
  return call([] {});
}

CUDA_API cudaError_t cudaDeviceSynchronize() {
  return call([] { sim::require_no_capture(nullptr); });
}

CUDA_API cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call([&] {
    require(flags);
    *flags = cudaDeviceScheduleAuto;
  });
}

CUDA_API cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return call([&] { require_device(device); });
}

CUDA_API cudaError_t cudaSetValidDevices(int* devices, int count) {
  return call([&] {
    require(devices || !count);
    for (int i = 0; i < count; ++i) require_device(devices[i]);
  });
}

CUDA_API cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties) {
  return call([&] {
    require(device && properties);
    *device = 0;
  });
}

CUDA_API cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call([&] {
    require(device && text);
    require(std::strcmp(text, sim::pci_bus_id) == 0, cudaErrorInvalidDevice);
    *device = 0;
  });
}

/// What a program sets, it reads again. The stack is as large as a kernel needs, and what it prints is kept whole.
CUDA_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call([&] {
    require(limit >= 0 && size_t(limit) < std::size(sim::limits), cudaErrorUnsupportedLimit);
    sim::limits[limit] = value;
  });
}

CUDA_API cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call([&] {
    require(value);
    require(limit >= 0 && size_t(limit) < std::size(sim::limits), cudaErrorUnsupportedLimit);
    *value = sim::limits[limit];
  });
}

/// Hints on speed: there is no cache.
CUDA_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return call([] {});
}
CUDA_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call([&] {
    require(config);
    *config = cudaFuncCachePreferNone;
  });
}
CUDA_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return call([] {});
}
CUDA_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call([&] {
    require(config);
    *config = cudaSharedMemBankSizeFourByte;
  });
}
CUDA_API cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([] {});
}

CUDA_API cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call([&] {
    require_device(device);
    require(text && length > static_cast<int>(std::strlen(sim::pci_bus_id)));
    std::strcpy(text, sim::pci_bus_id);
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
    *total = sim::described_gpu().memory_bytes;
    *free = std::min(sim::host_available_bytes(), *total - sim::runtime().memory.used());
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

/// There is no other device that could be a peer.
CUDA_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return call([&] {
    require_device(peer);
    require(false, cudaErrorInvalidDevice);
  });
}

CUDA_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call([&] {
    require_device(peer);
    require(false, cudaErrorPeerAccessNotEnabled);
  });
}

CUDA_API cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int from, int to) {
  return call([&] {
    require_device(from);
    require_device(to);
    require(value && from != to, cudaErrorInvalidDevice);
  });
}
