// What a number becomes in E4M3 with a scale: the one definition, for kernels and for what checks them.
//
//   scale    the largest magnitude of a block over 448, E4M3's largest number, so that this one becomes 448; at least 2^-126
//   element  x * (1 / scale), rounded to the nearest number of E4M3, ties to even; what is too large becomes 448
//
// Both divisions are FP32's, and done once per block. A block of zeros has the least scale. NaN stays NaN, and no scale looks at it. An
// infinity makes its scale infinite and itself NaN, so that no product of it is finite: E4M3 has no infinity.
#pragma once

#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>

namespace ladder {

constexpr float LEAST_SCALE = 0x1p-126F;  // 1 / scale is finite

inline __host__ __device__ float scale_of(float largest) { return fmaxf(largest / 448.0F, LEAST_SCALE); }

/// x * inverse, where inverse is 1 / scale, as it lies in memory.
inline __host__ __device__ uint8_t quantised(float x, float inverse) {
  return __nv_cvt_float_to_fp8(x * inverse, __NV_SATFINITE, __NV_E4M3);
}

/// Two of them with one instruction; x0 comes first in memory.
inline __host__ __device__ uint16_t quantised2(float x0, float x1, float inverse) {
  return __nv_cvt_float2_to_fp8x2({x0 * inverse, x1 * inverse}, __NV_SATFINITE, __NV_E4M3);
}

}  // namespace ladder
