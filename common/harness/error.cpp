#include "common/harness/error.h"

#include <csignal>

#include "common/text.h"

namespace ladder {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

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
