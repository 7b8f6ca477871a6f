#include "shim/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "shim/warnings.h"
#include "sim/launch_counts.h"
#include "text.h"

namespace sim {
namespace {

std::string last_report;

thread_local cudaError_t last_error = cudaSuccess;

/// The GPU that GEMM_LADDER_SIM_GPU names. Where there is none of that name: null, and a line that lists the names.
const Gpu* gpu_from_environment() {
  const char* const key = std::getenv("GEMM_LADDER_SIM_GPU");
  if (!key || !*key) return &gpus().front();
  const Gpu* const gpu = find_gpu(key);
  if (!gpu) print(stderr, "simulator: GEMM_LADDER_SIM_GPU={}: there is no such GPU, only {}\n", key, gpu_names());
  return gpu;
}

}  // namespace

const Gpu& described_gpu() { return *runtime().gpu; }

Runtime::Runtime() : gpu(gpu_from_environment()), memory(gpu ? gpu->memory_bytes : 0) {}

Runtime& runtime() {
  static Runtime* const instance = new Runtime;
  return *instance;
}

cudaError_t record(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t status_of(Fault fault) {
  switch (fault) {
    case Fault::unsupported:
      return cudaErrorNotSupported;
    case Fault::invalid_ptx:
      return cudaErrorInvalidPtx;
    case Fault::illegal_address:
      return cudaErrorIllegalAddress;
    case Fault::misaligned:
      return cudaErrorMisalignedAddress;
    case Fault::launch_failure:
      return cudaErrorLaunchFailure;
    case Fault::illegal_instruction:
      return cudaErrorIllegalInstruction;
    case Fault::trap:
      return cudaErrorLaunchFailure;
    case Fault::assertion:
      return cudaErrorAssert;
  }
  return cudaErrorUnknown;
}

cudaError_t kernel_fault(const Error& error) {
  std::fflush(stdout);
  last_report = error.what();
  count_error();
  print(stderr, "simulator: {}\n", last_report);
  return runtime().sticky = status_of(error.fault);
}

void not_supported(const char* what) {
  print(stderr, "simulator: not supported: {}\n", what);
  throw CallFailed{cudaErrorNotSupported};
}

}  // namespace sim

CUDA_API cudaError_t cudaPeekAtLastError() { return sim::last_error; }
CUDA_API cudaError_t cudaGetLastError() { return std::exchange(sim::last_error, cudaSuccess); }

CUDA_API const char* cudaSimFaultReport() {
  const std::lock_guard lock(sim::runtime().mutex);
  return sim::last_report.c_str();
}
