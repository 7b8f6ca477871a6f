// DeepGEMM's BF16 kernel for sm_100, tiles of 128 x TILE_N, with PAIR two blocks for a product: small integers, every element of D = A B^T
// compared. Any M; N and K in multiples of 8.
#include <cuda.h>
#include <cuda_runtime.h>
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using bf16 = __nv_bfloat16;
constexpr int bm = 128, bn = TILE_N, bk = 64, stages = 4, sms = 148, blocks = PAIR ? 2 : 1;

CUtensorMap map_of(const bf16* matrix, int rows, int columns, int box_rows) {
  CUtensorMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[] = {bk, cuuint32_t(box_rows)}, step[] = {1, 1};
  if (cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(matrix), size, stride, box,
                             step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    std::exit(2);
  return map;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int m_size = std::atoi(argv[1]), n_size = std::atoi(argv[2]), k_size = std::atoi(argv[3]);
  uint32_t state = 1;
  const auto matrix = [&](int rows) {
    std::vector<int> values(size_t(rows) * k_size);
    for (int& value : values) {
      state = state * 1664525u + 1013904223u;
      value = int(state >> 24) % 5 - 2;
    }
    return values;
  };
  const auto on_device = [](const std::vector<int>& values) {
    std::vector<bf16> host(values.size());
    for (size_t i = 0; i < values.size(); ++i) host[i] = __float2bfloat16(float(values[i]));
    bf16* device = nullptr;
    cudaMalloc(&device, host.size() * sizeof(bf16));
    cudaMemcpy(device, host.data(), host.size() * sizeof(bf16), cudaMemcpyHostToDevice);
    return device;
  };
  const std::vector<int> a = matrix(m_size), b = matrix(n_size);
  std::vector<bf16> d(size_t(m_size) * n_size);
  bf16* device_d = nullptr;
  cudaMalloc(&device_d, d.size() * sizeof(bf16));
  cudaMemset(device_d, 0xff, d.size() * sizeof(bf16));
  const CUtensorMap map_a = map_of(on_device(a), m_size, k_size, bm);
  const CUtensorMap map_b = map_of(on_device(b), n_size, k_size, bn / blocks);
  const CUtensorMap map_d = map_of(device_d, m_size, n_size, bm);

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
  cudaLaunchKernelEx(&launch, kernel, static_cast<int*>(nullptr), uint32_t(m_size), uint32_t(n_size), uint32_t(k_size),
                     map_a, map_b, map_d);
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(status));
    return 1;
  }
  cudaMemcpy(d.data(), device_d, d.size() * sizeof(bf16), cudaMemcpyDeviceToHost);
  long wrong = 0;
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      int sum = 0;
      for (int k = 0; k < k_size; ++k) sum += a[size_t(m) * k_size + k] * b[size_t(n) * k_size + k];
      wrong += !(__bfloat162float(d[size_t(m) * n_size + n]) == __bfloat162float(__float2bfloat16(float(sum))));
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
