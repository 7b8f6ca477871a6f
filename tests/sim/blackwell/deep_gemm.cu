// DeepGEMM's BF16 kernel for sm_100 in tiles of 128 x TILE_N; PAIR: by two blocks each. Any M; N and K in multiples of 8.
#include <cuda.h>
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>

#include "operands.h"

constexpr int bm = 128, bn = TILE_N, bk = 64, stages = 4, sms = 148, blocks = PAIR ? 2 : 1;

CUtensorMap map_of(bf16* matrix, int rows, int columns, int box_rows) {
  CUtensorMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[] = {bk, cuuint32_t(box_rows)}, step[] = {1, 1};
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, size, stride, box, step,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    std::exit(2);
  return map;
}

void multiply(Sizes size, bf16* a, bf16* b, bf16* d) {
  constexpr auto k_major = cute::UMMA::Major::K;
  const auto kernel = deep_gemm::sm100_bf16_gemm_impl<k_major, k_major, 0, 0, 0, bm, bn, bk, 1, 128, 128, 128, stages,
                                                      128, 128, blocks, false, sms, 128, false, false,
                                                      deep_gemm::GemmType::Normal, false, cutlass::bfloat16_t, 100>;
  constexpr int bytes = 2 * bm * 64 * 2 + stages * (bm + bn / blocks) * bk * 2 + 1024;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = sms;
  launch.blockDim = 256;
  launch.dynamicSmemBytes = bytes;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  cudaLaunchKernelEx(&launch, kernel, static_cast<int*>(nullptr), uint32_t(size.m), uint32_t(size.n), uint32_t(size.k),
                     map_of(a, size.m, size.k, bm), map_of(b, size.n, size.k, bn / blocks),
                     map_of(d, size.m, size.n, bm));
}

int main(int argc, char** argv) { return check_product(argc, argv, multiply); }
