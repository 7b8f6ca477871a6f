// Launches: the configuration of <<<>>>, the checks that the driver makes before a kernel runs, and the run itself. A
// launch returns when its kernel has ended, as with CUDA_LAUNCH_BLOCKING=1, so a fault shows at the launch.
#include "shim/launch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "executor/executor.h"
#include "executor/print.h"
#include "shim/counts.h"
#include "shim/functions.h"
#include "shim/streams.h"
#include "shim/warnings.h"
#include "text.h"

namespace sim {
namespace {

struct Configuration {
  dim3 grid, block;
  size_t dynamic_smem;
  cudaStream_t stream;
};

/// The configurations that `<<<>>>` has pushed and the kernel's stub has not popped yet.
thread_local std::vector<Configuration> pushed;

/// The device's limits, then the kernel's own. An H200 with CUDA 13.0 returns the same code for all of them
/// (tests/programs/launches.cu passes there, too).
void check_configuration(const Kernel& kernel, const Configuration& launch) {
  const auto within = [](dim3 size, const int(&limits)[3]) {
    return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= unsigned(limits[0]) &&
           size.y <= unsigned(limits[1]) && size.z <= unsigned(limits[2]);
  };
  require(within(launch.grid, Gpu::max_grid), cudaErrorInvalidValue);
  require(within(launch.block, Gpu::max_block), cudaErrorInvalidValue);
  const size_t threads = size_t{launch.block.x} * launch.block.y * launch.block.z;
  require(threads <= size_t{Gpu::max_threads_per_block}, cudaErrorInvalidValue);
  require(threads <= size_t(kernel.max_threads), cudaErrorInvalidValue);
  require(launch.dynamic_smem <= size_t(kernel.max_dynamic_smem), cudaErrorInvalidValue);
}

/// The buffer that the kernel reads its parameters from (PTX ISA, "Kernel Function Parameters").
std::vector<std::byte> pack(const ptx::Function& function, void** arguments) {
  std::vector<std::byte> packed(function.parameter_bytes);
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const ptx::Variable& parameter = function.parameters[i];
    require(arguments && arguments[i]);
    std::memcpy(packed.data() + parameter.offset, arguments[i], parameter.size);
  }
  return packed;
}

/// What the kernel prints, written when it has ended, also when a fault has ended it.
struct Printed {
  PrintBuffer buffer;
  ~Printed() {
    const std::string text = buffer.take();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
};

/// Likewise its warnings.
struct Warned {
  std::string kernel;
  Warnings warnings;
  ~Warned() { add_warnings(kernel, warnings); }
};

/// All blocks of a cooperative launch run at the same time, so that they may wait for one another.
void check_residency(const Kernel& kernel, const Configuration& launch, const Extent& cluster) {
  const uint64_t clusters = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z / cluster.count();
  const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  require(clusters <= uint64_t(resident_clusters(kernel, cluster, threads, launch.dynamic_smem)),
          cudaErrorCooperativeLaunchTooLarge);
}

/// A kernel that uses something unknown is refused. Nothing has run, so the error does not stick: other kernels can still run.
std::unique_ptr<const Program> decoded(const ptx::Module& module, const ptx::Function& function) {
  try {
    return std::make_unique<Program>(decode(module, function));
  } catch (const Error& error) {
    print(stderr, "simulator: {}\n", error.what());
    throw CallFailed{status_of(error.fault)};
  }
}

/// A launch that is ready to run: its configuration is checked, its arguments are copied.
struct Launch {
  Kernel* kernel;
  LaunchParams params;

  void run();
};

Launch prepared(Kernel& kernel, const cudaLaunchConfig_t& launched, void** arguments, bool cooperative) {
  const Configuration configuration{launched.gridDim, launched.blockDim, launched.dynamicSmemBytes, launched.stream};
  check_configuration(kernel, configuration);
  LaunchParams params;
  params.cluster = cluster_of(kernel, launched);
  if (cooperative) check_residency(kernel, configuration, params.cluster);
  params.explicit_cluster = kernel.function->reqnctapercluster[0] || params.cluster.count() > 1;
  params.cooperative = cooperative;
  params.grid = {configuration.grid.x, configuration.grid.y, configuration.grid.z};
  params.block = {configuration.block.x, configuration.block.y, configuration.block.z};
  params.dynamic_smem = static_cast<uint32_t>(configuration.dynamic_smem);
  params.sms = static_cast<uint32_t>(described_gpu().sms);
  params.params = pack(*kernel.function, arguments);
  return {&kernel, std::move(params)};
}

/// What the blocks of a cooperative launch meet at: grid.sync() of cooperative groups finds its words through %envreg1 and 2.
class GridWorkspace {
 public:
  explicit GridWorkspace(LaunchParams& params) {
    if (!params.cooperative) return;
    address_ = runtime().memory.allocate(bytes, MemoryKind::device, "the grid's barrier");
    require(address_, cudaErrorMemoryAllocation);
    std::memset(reinterpret_cast<void*>(address_), 0, bytes);
    params.grid_workspace = address_;
  }
  ~GridWorkspace() {
    if (address_) runtime().memory.free(address_);
  }
  GridWorkspace(const GridWorkspace&) = delete;

 private:
  static constexpr size_t bytes = 4096;
  uint64_t address_ = 0;
};

void Launch::run() {
  require(kernel->function, cudaErrorInvalidResourceHandle);  // a graph's, after cudaDeviceReset
  params.seed = next_seed();
  const GridWorkspace workspace(params);
  const ptx::Module& module = *kernel->binary->module;
  if (!kernel->program) kernel->program = decoded(module, *kernel->function);
  Counters counters;
  Warned warned{kernel->name, {}};
  Printed printed;
  params.print = &printed.buffer;
  params.checks = checks();
  params.warnings = &warned.warnings;
  params.limit = instruction_limit();
  sim::run(*kernel->program, module, params, runtime().memory, counters);
  add_counts(kernel->name, counters);
}

/// On its stream, which may be capturing.
void launch(Kernel& kernel, const cudaLaunchConfig_t& launched, void** arguments, bool cooperative = false) {
  on_stream(launched.stream, cudaGraphNodeTypeKernel,
            [ready = prepared(kernel, launched, arguments, cooperative)]() mutable { ready.run(); });
}

cudaLaunchConfig_t plain(dim3 grid, dim3 block, size_t dynamic_smem, cudaStream_t stream) {
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = dynamic_smem;
  configuration.stream = stream;
  return configuration;
}

/// Looks at the attributes that change what a kernel computes; those that only change its speed or its order among others
/// need nothing where one kernel runs at a time. True for a cooperative launch.
bool is_cooperative(const cudaLaunchConfig_t& configuration) {
  bool cooperative = false;
  for (unsigned i = 0; i < configuration.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = configuration.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributeProgrammaticStreamSerialization:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomainMap:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributePreferredClusterDimension:
      case cudaLaunchAttributePreferredSharedMemoryCarveout:
        break;
      case cudaLaunchAttributeCooperative:
        cooperative = attribute.val.cooperative != 0;
        break;
      case cudaLaunchAttributeClusterDimension:  // cluster_of reads it
        break;
      default:
        not_supported(formatted("launch attribute {}", static_cast<int>(attribute.id)).c_str());
    }
  }
  return cooperative;
}

}  // namespace

uint64_t next_seed() {
  static const char* const text = std::getenv("GEMM_LADDER_SIM_SEED");
  static uint64_t seed = text ? std::strtoull(text, nullptr, 0) : 0;
  return seed++;
}

std::function<void()> prepared_launch(const void* function, const cudaLaunchConfig_t& configuration, void** arguments) {
  return [ready = prepared(find_kernel(function), configuration, arguments, is_cooperative(configuration))]() mutable {
    ready.run();
  };
}

}  // namespace sim

using namespace sim;

CUDA_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t dynamic_smem, CUstream_st* stream) {
  pushed.push_back({grid, block, dynamic_smem, stream});
  return 0;  // anything else skips the launch
}

/// Also after a fault: what was pushed must not wait for the next launch.
CUDA_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* dynamic_smem, void* stream) {
  if (pushed.empty()) return record(cudaErrorMissingConfiguration);
  const Configuration top = pushed.back();
  pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *dynamic_smem = top.dynamic_smem;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

CUDA_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                      size_t dynamic_smem, cudaStream_t stream) {
  return call([&] { launch(find_kernel(function), plain(grid, block, dynamic_smem, stream), arguments); });
}

CUDA_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                        size_t dynamic_smem, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, dynamic_smem, stream);
}

CUDA_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* function,
                                         void** arguments) {
  return call([&] {
    require(configuration);
    launch(find_kernel(function), *configuration, arguments, is_cooperative(*configuration));
  });
}

CUDA_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                 size_t dynamic_smem, cudaStream_t stream) {
  return call([&] { launch(find_kernel(function), plain(grid, block, dynamic_smem, stream), arguments, true); });
}
