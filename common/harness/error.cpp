#include "common/harness/error.h"

#include <csignal>
#include <cstring>

#include "common/rung.h"
#include "common/text.h"

namespace ladder {
namespace {

volatile std::sig_atomic_t interrupted = 0;

std::string place(const std::source_location& where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  return formatted("{}:{}", slash ? slash + 1 : where.file_name(), where.line());
}

}  // namespace

void cuda_check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  std::string message = formatted("CUDA error {} ({}) at {}: {}", static_cast<int>(status), cudaGetErrorName(status),
                                  place(where), cudaGetErrorString(status));
  if (status == cudaErrorNoKernelImageForDevice)
    message += "; this build holds no code for this GPU: configure with -DCMAKE_CUDA_ARCHITECTURES=native";
  throw CudaError(message, status);
}

void cublas_check(cublasStatus_t status, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CudaError(formatted("cuBLAS error {} at {}", cublasGetStatusString(status), place(where)),
                  status == CUBLAS_STATUS_ALLOC_FAILED ? cudaErrorMemoryAllocation : cudaErrorUnknown);
}

void catch_interrupts() {
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

void stop_if_interrupted() {
  if (interrupted) throw Interrupted();
}

}  // namespace ladder
