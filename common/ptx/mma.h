// Products of small matrices by a whole warp on the tensor cores: sm_80 and PTX ISA 7.0 where a function does not say
// sm_75, "Warp-level matrix instructions: mma". D = A * B + C, and D replaces C. D is 16 x 8, in FP32 where a function does
// not say FP16. A has 16 rows and B has 8 columns, each 32 bytes long along k: 32 elements of 8 bits, 16 of 16 or 8 of 32.
// common/layout.h says which lane holds which element. Some rungs are compiled for sm_75, too, where only their FP16 runs:
// there, the functions for BF16 and TF32 compile to a trap, as those for FP8 do below sm_89.
#pragma once

#include <cstdint>

namespace ladder {

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: two BF16 per word, the smaller k in the lower half.
__device__ __forceinline__ void mma_m16n8k16_f32_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: the same for FP16.
__device__ __forceinline__ void mma_m16n8k16_f32_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32: FP16 from sm_75 on, PTX ISA 6.5. A and B are 16 bytes long along k, so
/// a lane holds words 0 and 1 of mma_a and word 0 of mma_b.
__device__ __forceinline__ void mma_m16n8k8_f32_f16(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a0), "r"(a1), "r"(b0));
}

/// mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16: the same with the sums in FP16, in two registers: d[r] holds columns
/// 2 t (lower half) and 2 t + 1 of row g + 8 r.
__device__ __forceinline__ void mma_m16n8k16_f16_f16(uint32_t (&d)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: one TF32 per word; its lowest 13 bits are ignored.
__device__ __forceinline__ void mma_m16n8k8_f32_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();
#else
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32: sm_89 and PTX ISA 8.4. Four E4M3 per word, the smallest k in the lowest byte.
__device__ __forceinline__ void mma_m16n8k32_f32_e4m3(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  __trap();
#else
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32: the same with A in E5M2.
__device__ __forceinline__ void mma_m16n8k32_f32_e5m2_e4m3(float (&d)[4], const uint32_t (&a)[4],
                                                           const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  __trap();
#else
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// cvt.rna.tf32.f32 d, a; Each thread for itself. Rounds FP32 (as its bits) to the nearest TF32, ties away from zero; the
/// lowest 13 bits of the result are 0.
__device__ __forceinline__ uint32_t cvt_rna_tf32_f32(uint32_t a) {
  uint32_t d = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(__builtin_bit_cast(float, a)));
#endif
  return d;
}

}  // namespace ladder
