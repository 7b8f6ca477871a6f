#include "common/harness/cutlass/sm90.h"

namespace ladder {

std::vector<CutlassKernel> cutlass_wgmma_tf32() { return cutlass_wgmma<Type::tf32, Cooperative, Pingpong>(); }

}  // namespace ladder
