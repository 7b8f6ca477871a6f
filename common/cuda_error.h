// What cuda_check() of common/rung.h throws.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace ladder {

/// A CUDA, cuBLAS or launch error. Out of memory is cudaErrorMemoryAllocation, whichever library ran out.
struct CudaError : std::runtime_error {
  CudaError(const std::string& what, cudaError_t status) : std::runtime_error(what), status(status) {}
  cudaError_t status;
};

/// "file.cpp:12", for messages.
std::string place(const std::source_location& where);

}  // namespace ladder
