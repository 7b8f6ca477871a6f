// What the library build/bin/libcutlass_baseline.so hands out: the kernels that it was compiled with.
#include "common/harness/cutlass/kernels.h"

namespace ladder {
namespace {

std::vector<CutlassKernel> compiled() {
  std::vector<CutlassKernel> all;
  for (const auto& some : {
#ifdef LADDER_CUTLASS_SM90
           cutlass_wgmma_tf32(),
           cutlass_wgmma_bf16(),
           cutlass_wgmma_f16(),
           cutlass_wgmma_e4m3(),
#endif
           cutlass_simt(),
           cutlass_mma_sync(),
       })
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace
}  // namespace ladder

extern "C" const std::vector<ladder::CutlassKernel>* ladder_cutlass_kernels_1() {
  static const std::vector<ladder::CutlassKernel> all = ladder::compiled();
  return &all;
}
