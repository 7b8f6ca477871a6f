#include "common/harness/cutlass/sm80.h"

namespace ladder {
namespace {

template <Type type, Out out>
void add(std::vector<CutlassKernel>& kernels) {
  using cutlass::gemm::GemmShape;
  using TensorOp = cutlass::arch::OpClassTensorOp;
  constexpr int K = 128 / Operand<type>::BYTES, MMA_K = 32 / Operand<type>::BYTES;  // 128 bytes per row of a tile
  using Mma = GemmShape<16, 8, MMA_K>;
  using Square = Sm80Form<type, out, TensorOp, GemmShape<128, 128, K / 2>, GemmShape<64, 64, K / 2>, Mma, 5, 8>;
  using Wide = Sm80Form<type, out, TensorOp, GemmShape<128, 256, K>, GemmShape<64, 64, K>, Mma, 3, 8>;
  kernels.push_back(cutlass_kernel<Square>("sm80 mma.sync 128x128x" + std::to_string(K / 2) + ", 5 stages"));
  kernels.push_back(cutlass_kernel<Wide>("sm80 mma.sync 128x256x" + std::to_string(K) + ", 3 stages"));
}

}  // namespace

std::vector<CutlassKernel> cutlass_mma_sync() {
  std::vector<CutlassKernel> kernels;
  const auto add_type = [&]<Type... types>(Types<types...>) {
    (add<types, Out::f32>(kernels), ...);
    (add<types, Out::same>(kernels), ...);
  };
  add_type(MmaSyncTypes{});
  return kernels;
}

}  // namespace ladder
