// The functions of the driver that nothing here defines.
#include "unsupported.h"

#include <cuda.h>

#include "text.h"

#include "cuda_functions.inc"

extern "C" int sim_not_supported_call(const char* name) {
  sim::print(stderr, "simulator: not supported: {}\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}
