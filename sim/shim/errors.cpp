// Error codes, their names and strings, and which of them stick.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "shim/runtime.h"
#include "shim/warnings.h"
#include "sim/launch_counts.h"
#include "text.h"

namespace sim {
namespace {

std::string last_report;

thread_local cudaError_t last_error = cudaSuccess;

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorText error_texts[] = {
#define ERROR(code, text) {code, #code, text},
#include "shim/errors.inc"
#undef ERROR
};

const ErrorText& text_of(cudaError_t code) {
  for (const ErrorText& error : error_texts)
    if (error.code == code) return error;
  static const ErrorText unknown = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};
  return unknown;
}

}  // namespace

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

CUDA_API const char* cudaGetErrorName(cudaError_t error) { return sim::text_of(error).name; }
CUDA_API const char* cudaGetErrorString(cudaError_t error) { return sim::text_of(error).text; }
CUDA_API cudaError_t cudaPeekAtLastError() { return sim::last_error; }
CUDA_API cudaError_t cudaGetLastError() { return std::exchange(sim::last_error, cudaSuccess); }

CUDA_API const char* cudaSimFaultReport() {
  const std::lock_guard lock(sim::runtime().mutex);
  return sim::last_report.c_str();
}
