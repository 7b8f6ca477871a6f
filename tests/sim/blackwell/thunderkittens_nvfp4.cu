// ThunderKittens' quantisation to NVFP4 (SOURCE), of M x N numbers in BF16 whose blocks of 16 have an exact scale factor: every code is known.
#define main main_of_the_benchmark
#include SOURCE
#undef main

#include <cmath>

#include "operands.h"

using Globals = nvfp4_quantize::globals;

__global__ void quantise(const __grid_constant__ Globals globals) { nvfp4_quantize::quantize_kernel<false>(globals); }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t m_size = std::atoi(argv[1]), n_size = std::atoi(argv[2]);
  constexpr float magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  // Codes at random, the largest one in each block; a power of two as the scale factor of a block, and one block with the largest of all.
  const std::vector<int> random = integers(m_size * n_size * 2, 1);
  std::vector<bf16> values(m_size * n_size);
  std::vector<uint8_t> codes(values.size() / 2), scales(values.size() / 16);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / n_size, column = i % n_size, block = i / 16;
    const int code = i % 16 == 5 ? 7 : (random[2 * i] + 2 + 5 * (random[2 * i + 1] + 2)) % 16;
    const uint8_t scale = block == 3 ? 0x7e : uint8_t(0x38 + 8 * random[block]);  // 448, or 1/4 to 4
    const float factor = block == 3 ? 448 : std::ldexp(1.f, random[block]);
    values[i] = __float2bfloat16(magnitudes[code & 7] * (code & 8 ? -factor : factor));
    codes[i / 2] |= uint8_t(code << i % 2 * 4);
    const size_t tile = row / 128 * (n_size / 64) + column / 64;
    scales[tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + column / 16 % 4] = scale;
  }
  auto* const device_codes = copied(std::vector<uint8_t>(codes.size(), 0xee));
  auto* const device_scales = copied(std::vector<uint8_t>(scales.size(), 0xee));
  float* const global_scale = copied(std::vector<float>{-1.f});
  const Globals globals{
      Globals::A_bf16_gl{copied(values), nullptr, nullptr, m_size, n_size},
      Globals::A_fp4x2_gl{reinterpret_cast<__nv_fp4x2_e2m1*>(device_codes), nullptr, nullptr, m_size, n_size / 2},
      Globals::A_sc_gl{reinterpret_cast<half*>(device_scales), nullptr, m_size / 128, n_size / 64, nullptr},
      Globals::A_sc_global_gl{global_scale, nullptr, nullptr, nullptr, nullptr}};
  using Absmax = nvfp4_quantize::absmax_config;
  nvfp4_quantize::zero_kernel<<<1, 1>>>(globals);
  nvfp4_quantize::absmax_kernel<<<Absmax::NUM_BLOCKS, Absmax::NUM_THREADS>>>(globals);
  nvfp4_quantize::divide_kernel<<<1, 1>>>(globals);
  const int bytes = globals.dynamic_shared_memory();
  cudaFuncSetAttribute(quantise, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  quantise<<<globals.grid(), nvfp4_quantize::quantize_config::NUM_THREADS, bytes>>>(globals);
  float global = 0;
  std::vector<uint8_t> got_codes(codes.size()), got_scales(scales.size());
  cudaMemcpy(got_codes.data(), device_codes, codes.size(), cudaMemcpyDeviceToHost);
  cudaMemcpy(got_scales.data(), device_scales, scales.size(), cudaMemcpyDeviceToHost);
  if (cudaMemcpy(&global, global_scale, sizeof global, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  long wrong = global != 1;
  for (size_t i = 0; i < codes.size(); ++i) wrong += codes[i] != got_codes[i];
  for (size_t i = 0; i < scales.size(); ++i) wrong += scales[i] != got_scales[i];
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
