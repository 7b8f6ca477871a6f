// Compiled anew whenever the commit changes, so it holds nothing else.
#if __has_include("build_info.h")
#include "build_info.h"  // written by CMake: GEMM_LADDER_COMMIT
#endif
#ifndef GEMM_LADDER_COMMIT
#define GEMM_LADDER_COMMIT "unknown"
#endif

#include "common/harness/device.h"

namespace ladder {

const char* build_commit() { return GEMM_LADDER_COMMIT; }

}  // namespace ladder
