// Random FP8 operands that are the same everywhere, and the narrowest wgmma that multiplies them: for fp8_tiles and fp8_sums.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

namespace ladder {

enum class Format { e4m3, e5m2 };

/// wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 d, a, b, accumulate, 1, 1; with .e5m2 likewise.
/// D (64 x 8, FP32) = A (64 x 32) * B (32 x 8), added to D where `accumulate` is not 0: A and B by descriptors of tiles in shared memory
/// whose rows lie along k. d: mma_c().
template <Format a_format, Format b_format>
__device__ void wgmma_m64n8k32(float (&d)[4], uint64_t a, uint64_t b, int accumulate) {
#define LADDER_WGMMA(types)                                                                       \
  asm volatile(                                                                                   \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"                                                 \
      "wgmma.mma_async.sync.aligned.m64n8k32.f32." types " {%0, %1, %2, %3}, %4, %5, p, 1, 1;\n}" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
      : "l"(a), "l"(b), "r"(accumulate))
  if constexpr (a_format == Format::e4m3 && b_format == Format::e4m3)
    LADDER_WGMMA("e4m3.e4m3");
  else if constexpr (a_format == Format::e5m2 && b_format == Format::e4m3)
    LADDER_WGMMA("e5m2.e4m3");
  else if constexpr (a_format == Format::e4m3)
    LADDER_WGMMA("e4m3.e5m2");
  else
    LADDER_WGMMA("e5m2.e5m2");
#undef LADDER_WGMMA
}

/// Marsaglia's xorshift: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  uint32_t bits() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 32);
  }
  /// Twelve uniform numbers: nearly normal, and exact.
  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<float>(bits() >> 16) * 0x1p-16F;
    return sum;
  }

 private:
  uint64_t state_;
};

/// The nearest number of the format; what is too large becomes the largest.
inline uint8_t rounded(float x, Format format) {
  return static_cast<uint8_t>(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, format == Format::e4m3 ? __NV_E4M3 : __NV_E5M2));
}

}  // namespace ladder
