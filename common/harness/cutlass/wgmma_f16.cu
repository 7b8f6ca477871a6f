#include "common/harness/cutlass/sm90.h"

namespace ladder {

std::vector<CutlassKernel> cutlass_wgmma_f16() { return cutlass_wgmma<Type::f16, Cooperative, Pingpong>(); }

}  // namespace ladder
