// DeepGEMM's FP8 kernel for sm_100 in tiles of 128 x 128: E4M3 with a power of two per row and 128 of K. Any M; N in multiples of 8, K of 16.
// With FP4 B is E2M1, with a power of two per 32 of K, and K is a multiple of 128.
#include <cuda.h>
#include <cuda_fp8.h>
#include <deep_gemm/impls/sm100_fp8_fp4_gemm_1d1d.cuh>

#include <cmath>

#include "operands.h"

constexpr int tile = 128, stages = 4, sms = 148;

CUtensorMap map_of(CUtensorMapDataType type, double bytes, void* matrix, int rows, int columns, uint32_t box_rows,
                   uint32_t box_columns, bool swizzled = true) {
  CUtensorMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns * bytes)};
  const cuuint32_t box[] = {box_columns, box_rows}, step[] = {1, 1};
  const auto swizzle = swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
  const CUresult status =
      cuTensorMapEncodeTiled(&map, type, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) std::exit(2);
  return map;
}

template <class T>
T* copied(const std::vector<T>& host) {
  T* device = nullptr;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

/// E4M3 or packed E2M1 by rows, and the scale factors' exponents: of `granularity` of K each, four to a word, words of neighbouring rows side
/// by side.
struct Operand {
  int rows, k, granularity, aligned, groups;
  bool fp4;
  std::vector<int> values;
  std::vector<uint32_t> words;

  Operand(int rows, int k, bool fp4, uint32_t seed)
      : rows(rows),
        k(k),
        granularity(fp4 ? 32 : 128),
        aligned((rows + 3) / 4 * 4),
        groups((k + granularity - 1) / granularity),
        fp4(fp4),
        values(integers(size_t(rows) * k, seed)),
        words(size_t((groups + 3) / 4) * aligned) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = 0x7f7f7f7f + uint32_t(i % 3) + (uint32_t(i % 2) << 16);
  }
  double value(int row, int column) const {
    const uint32_t word = words[size_t(column / (4 * granularity)) * aligned + row];
    return std::ldexp(values[size_t(row) * k + column], int(word >> column / granularity % 4 * 8 & 255) - 127);
  }
  CUtensorMap map() const {
    std::vector<uint8_t> bytes(fp4 ? values.size() / 2 : values.size());
    for (size_t i = 0; i < values.size(); ++i)
      if (fp4)
        bytes[i / 2] |= uint8_t((std::abs(values[i]) * 2 | (values[i] < 0 ? 8 : 0)) << i % 2 * 4);
      else
        bytes[i] = uint8_t(__nv_cvt_float_to_fp8(float(values[i]), __NV_SATFINITE, __NV_E4M3));
    return map_of(fp4 ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B : CU_TENSOR_MAP_DATA_TYPE_UINT8, fp4 ? 0.5 : 1,
                  copied(bytes), rows, k, tile, 128);
  }
  CUtensorMap scales() const {
    return map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, copied(words), (groups + 3) / 4, aligned, 1, tile, false);
  }
};

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int m_size = std::atoi(argv[1]), n_size = std::atoi(argv[2]), k_size = std::atoi(argv[3]);
  const Operand a(m_size, k_size, false, 1), b(n_size, k_size, FP4, 2);
  std::vector<bf16> d(size_t(m_size) * n_size, __float2bfloat16(-1.f));
  bf16* const device_d = copied(d);
  using fp8 = cutlass::float_e4m3_t;
  using B = std::conditional_t<FP4, cutlass::detail::float_e2m1_unpacksmem_t, fp8>;
  constexpr auto k_major = cute::UMMA::Major::K;
  constexpr int granularity_b = FP4 ? 32 : 128;
  const auto kernel =
      deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<k_major, k_major, 128, granularity_b, 128, 0, 0, 0, tile, tile, 128, 1,
                                              128, 128, 128, stages, 128, 128, 1, false, sms, false, false,
                                              deep_gemm::GemmType::Normal, false, fp8, B, cutlass::bfloat16_t,
                                              deep_gemm::epilogue::transform::EpilogueIdentity>;
  constexpr int bytes = 2 * tile * 128 + stages * (2 * tile * 128 + 2 * tile * 4) + 1024;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<sms, 256, bytes>>>(nullptr, m_size, n_size, k_size, a.map(), b.map(), a.scales(), b.scales(),
                              map_of(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, device_d, m_size, n_size, tile, 64));
  if (cudaMemcpy(d.data(), device_d, d.size() * sizeof(bf16), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  long wrong = 0;
  for (int m = 0; m < m_size; ++m)
    for (int n = 0; n < n_size; ++n) {
      double sum = 0;
      for (int k = 0; k < k_size; ++k) sum += a.value(m, k) * b.value(n, k);
      wrong += !(__bfloat162float(d[size_t(m) * n_size + n]) == __bfloat162float(__float2bfloat16(float(sum))));
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
