#include "common/harness/cutlass/sm80.h"

namespace ladder {

std::vector<CutlassKernel> cutlass_simt() {
  using cutlass::gemm::GemmShape;
  using Simt = cutlass::arch::OpClassSimt;
  using Fma = GemmShape<1, 1, 1>;
  std::vector<CutlassKernel> kernels;
  const auto add = [&]<Out out>() {
    using Square = Sm80Form<Type::f32, out, Simt, GemmShape<128, 128, 8>, GemmShape<32, 64, 8>, Fma, 5, 8>;
    using Wide = Sm80Form<Type::f32, out, Simt, GemmShape<256, 128, 8>, GemmShape<64, 64, 8>, Fma, 5, 8>;
    kernels.push_back(cutlass_kernel<Square>("sm80 simt 128x128x8, 5 stages"));
    kernels.push_back(cutlass_kernel<Wide>("sm80 simt 256x128x8, 5 stages"));
  };
  add.operator()<Out::f32>();
  add.operator()<Out::same>();
  return kernels;
}

}  // namespace ladder
