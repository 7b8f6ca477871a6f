// The functions of the driver that nothing here defines.
#include "sim/unsupported.h"

#include <cuda.h>

#include "common/text.h"

#include "cuda_functions.inc"

extern "C" int sim_not_supported_call(const char* name) {
  ladder::print(stderr, "simulator: not supported: {}\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}
