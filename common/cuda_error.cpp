#include "common/cuda_error.h"

#include <cstring>

#include "common/rung.h"
#include "common/text.h"

namespace ladder {

std::string place(const std::source_location& where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  return formatted("{}:{}", slash ? slash + 1 : where.file_name(), where.line());
}

void cuda_check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  std::string message = formatted("CUDA error {} ({}) at {}: {}", static_cast<int>(status), cudaGetErrorName(status),
                                  place(where), cudaGetErrorString(status));
  if (status == cudaErrorNoKernelImageForDevice)
    message += "; this build holds no code for this GPU: configure with -DCMAKE_CUDA_ARCHITECTURES=native";
  throw CudaError(message, status);
}

}  // namespace ladder
