// The functions of the runtime that nothing here defines.
#include "unsupported.h"

#include "shim/runtime.h"

#include "cudart_functions.inc"

ALIAS(__cudaLaunchKernel_ptsz, __cudaLaunchKernel)

extern "C" int sim_not_supported_call(const char* name) {
  return sim::call([&] { sim::not_supported(name); });
}
