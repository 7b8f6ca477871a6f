// Shared memory by its 32-bit address: sm_20, PTX ISA 2.0, "Data Movement and Conversion Instructions: ld, st".
#pragma once

#include <cstdint>

namespace ladder {

/// st.shared.f32 [smem], x;
__device__ __forceinline__ void store_shared(uint32_t smem, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(smem), "f"(x) : "memory");
}

/// st.shared.v2.f32 [smem], {x[0], x[1]}; `smem` is a multiple of 8.
__device__ __forceinline__ void store2_shared(uint32_t smem, const float (&x)[2]) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(x[0]), "f"(x[1]) : "memory");
}

/// st.shared.v4.f32 [smem], {x[0], x[1], x[2], x[3]}; `smem` is a multiple of 16.
__device__ __forceinline__ void store4_shared(uint32_t smem, const float (&x)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}

/// st.shared.v4.b32 [smem], {x.x, x.y, x.z, x.w}; `smem` is a multiple of 16.
__device__ __forceinline__ void store16_shared(uint32_t smem, const uint4& x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}

/// ld.shared.f32 x, [smem];
__device__ __forceinline__ float load_shared(uint32_t smem) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(smem) : "memory");
  return x;
}

/// ld.shared.u32 x, [smem];
__device__ __forceinline__ uint32_t load_shared_u32(uint32_t smem) {
  uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(smem) : "memory");
  return x;
}

/// ld.shared.v2.f32 {x[0], x[1]}, [smem]; `smem` is a multiple of 8.
__device__ __forceinline__ void load2_shared(float (&x)[2], uint32_t smem) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(smem) : "memory");
}

/// ld.shared.v4.f32 {x[0], x[1], x[2], x[3]}, [smem]; `smem` is a multiple of 16.
__device__ __forceinline__ void load4_shared(float* x, uint32_t smem) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(smem)
               : "memory");
}

}  // namespace ladder
