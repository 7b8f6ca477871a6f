// What a program can ask and set about a kernel: its attributes, and how many of its blocks fit on one multiprocessor.
#include "shim/functions.h"

#include <algorithm>

namespace sim {
namespace {

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// CUDA C++ Best Practices Guide, "Calculating Occupancy". It is limited by threads, shared memory, the number of
/// blocks, and registers where the program holds machine code for the described GPU: only that says how many there are.
int blocks_per_sm(const Kernel& kernel, int threads, size_t dynamic_smem) {
  require(threads > 0);
  if (threads > kernel.max_threads) return 0;
  if (dynamic_smem > static_cast<size_t>(std::max(kernel.max_dynamic_smem, 0))) return 0;
  const Gpu& gpu = described_gpu();
  const int smem =
      round_up(kernel.smem_bytes + static_cast<int>(dynamic_smem) + gpu.smem_reserved_per_block, gpu.smem_granularity);
  const int by_smem = smem ? gpu.smem_per_sm / smem : gpu.blocks_per_sm;
  const int warps = round_up(threads, Gpu::warp_size) / Gpu::warp_size;
  int by_registers = gpu.blocks_per_sm;
  if (kernel.usage.registers) {  // allocated per warp in units of 256, in each of the four partitions
    const int of_a_warp = round_up(kernel.usage.registers * Gpu::warp_size, 256);
    by_registers = Gpu::registers_per_sm / 4 / of_a_warp * 4 / warps;
  }
  return std::min({gpu.blocks_per_sm, gpu.threads_per_sm / (warps * Gpu::warp_size), by_smem, by_registers});
}

}  // namespace

int max_cluster_blocks(const Kernel& kernel) {
  return kernel.nonportable_clusters ? described_gpu().cluster_blocks_nonportable : described_gpu().cluster_blocks;
}

Extent cluster_of(const Kernel& kernel, const cudaLaunchConfig_t& configuration) {
  const auto& required = kernel.function->reqnctapercluster;
  const bool compiled = required[0] != 0;
  Extent cluster;
  if (compiled) cluster = {required[0], std::max(required[1], 1U), std::max(required[2], 1U)};
  for (unsigned i = 0; i < configuration.numAttrs; ++i) {
    if (configuration.attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    const auto& asked = configuration.attrs[i].val.clusterDim;
    require(asked.x && asked.y && asked.z, cudaErrorInvalidClusterSize);
    require(!compiled || (asked.x == cluster.x && asked.y == cluster.y && asked.z == cluster.z),
            cudaErrorInvalidClusterSize);
    cluster = {asked.x, asked.y, asked.z};
  }
  const dim3 grid = configuration.gridDim;
  require(cluster.count() <= uint64_t(max_cluster_blocks(kernel)), cudaErrorInvalidClusterSize);
  require(grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0, cudaErrorInvalidClusterSize);
  return cluster;
}

/// Each cluster lies within one GPC.
int resident_clusters(const Kernel& kernel, const Extent& cluster, int threads, size_t dynamic_smem) {
  const int blocks = blocks_per_sm(kernel, threads, dynamic_smem), size = static_cast<int>(cluster.count());
  const Gpu& gpu = described_gpu();
  if (size == 1) return blocks * gpu.sms;
  int clusters = 0;
  for (const int sms : gpu.gpcs) clusters += sms * blocks / size;
  return clusters;
}

}  // namespace sim

using namespace sim;

CUDA_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return call([&] {
    require(attributes);
    const Kernel& kernel = find_kernel(function);
    *attributes = {};
    attributes->sharedSizeBytes = kernel.smem_bytes;
    attributes->maxThreadsPerBlock = kernel.max_threads;
    attributes->maxDynamicSharedSizeBytes = kernel.max_dynamic_smem;
    attributes->numRegs = kernel.usage.registers;  // 0 without machine code: ptxas decides, and does not run here
    attributes->localSizeBytes = kernel.usage.local_bytes;
    attributes->ptxVersion = kernel.binary->ptx_arch;
    attributes->binaryVersion = described_gpu().sm;
    attributes->preferredShmemCarveout = -1;
    const auto& cluster = kernel.function->reqnctapercluster;
    attributes->requiredClusterWidth = static_cast<int>(cluster[0]);
    attributes->requiredClusterHeight = static_cast<int>(cluster[1]);
    attributes->requiredClusterDepth = static_cast<int>(cluster[2]);
    attributes->nonPortableClusterSizeAllowed = kernel.nonportable_clusters;
  });
}

CUDA_API cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call([&] {
    Kernel& kernel = find_kernel(function);
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        require(value >= 0 && value <= described_gpu().smem_per_block_optin - kernel.smem_bytes);
        kernel.max_dynamic_smem = value;
        return;
      case cudaFuncAttributePreferredSharedMemoryCarveout:  // a hint on speed
        require(value >= -1 && value <= 100);
        return;
      case cudaFuncAttributeNonPortableClusterSizeAllowed:
        require(value == 0 || value == 1);
        kernel.nonportable_clusters = value;
        return;
      case cudaFuncAttributeClusterSchedulingPolicyPreference:  // a hint on speed
        return;
      default:
        not_supported("cudaFuncSetAttribute of the dimensions of clusters");
    }
  });
}

CUDA_API cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return call([&] { find_kernel(function); });  // a hint on speed
}

CUDA_API cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return call([&] { find_kernel(function); });  // a hint on speed
}

CUDA_API cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return call([&] {
    require(name);
    *name = find_kernel(function).name.c_str();
  });
}

CUDA_API cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  return call([&] {
    const auto& parameters = find_kernel(function).function->parameters;
    require(offset && index < parameters.size());
    *offset = parameters[index].offset;
    if (bytes) *bytes = parameters[index].size;
  });
}

/// The driver's handle of a kernel, for cuLaunchKernel and cuFuncSetAttribute.
CUDA_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return call([&] {
    require(function);
    *function = reinterpret_cast<cudaFunction_t>(&find_kernel(symbol));
  });
}

CUDA_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                            int threads, size_t dynamic_smem,
                                                                            unsigned) {
  return call([&] {
    require(blocks);
    *blocks = blocks_per_sm(find_kernel(function), threads, dynamic_smem);
  });
}

CUDA_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                   size_t dynamic_smem) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic_smem, 0);
}

CUDA_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                               int threads) {
  return call([&] {
    const Kernel& kernel = find_kernel(function);
    require(bytes && blocks > 0 && threads > 0);
    const Gpu& gpu = described_gpu();
    const int share = gpu.smem_per_sm / blocks / gpu.smem_granularity * gpu.smem_granularity;
    *bytes = std::clamp(share - gpu.smem_reserved_per_block - kernel.smem_bytes, 0, kernel.max_dynamic_smem);
  });
}

/// Clusters that fit on the device at the same time. What a real device answers depends on which of its multiprocessors are switched
/// off.
CUDA_API cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                    const cudaLaunchConfig_t* configuration) {
  return call([&] {
    require(clusters && configuration);
    Kernel& kernel = find_kernel(function);
    const Extent cluster = cluster_of(kernel, *configuration);
    const dim3 block = configuration->blockDim;
    require(described_gpu().has_clusters(), cudaErrorNotSupported);
    const int threads = static_cast<int>(block.x * block.y * block.z);
    *clusters = resident_clusters(kernel, cluster, threads, configuration->dynamicSmemBytes);
  });
}

CUDA_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                          const cudaLaunchConfig_t* configuration) {
  return call([&] {
    require(size && configuration);
    const Kernel& kernel = find_kernel(function);
    *size = max_cluster_blocks(kernel);
  });
}
