#include "common/harness/cutlass/sm90.h"

namespace ladder {

std::vector<CutlassKernel> cutlass_wgmma_bf16() { return cutlass_wgmma<Type::bf16, Cooperative, Pingpong>(); }

}  // namespace ladder
