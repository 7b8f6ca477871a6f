// What the rungs on tensor cores need to know about an operand type, so that one kernel text serves all: TF32, BF16 and FP16
// differ in the bytes of an element and in the instruction that multiplies, and in nothing else. Everything else counts
// bytes: 16 per copy, 32 along k per mma.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>
#include <string>

#include "common/problem.h"
#include "common/ptx/mma.h"
#include "common/rung.h"

namespace ladder {

/// Element: how an operand lies in memory, in BYTES. SM: the first compute capability whose tensor cores multiply it.
/// mma(): D (16 x 8) += A (16 x 32 bytes) * B (32 bytes x 8), FP32.
template <Type type>
struct Operand;

template <>
struct Operand<Type::tf32> {
  using Element = float;
  static constexpr int BYTES = sizeof(Element), SM = 80;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k8_f32_tf32(d, a, b);
  }
};

template <>
struct Operand<Type::bf16> {
  using Element = __nv_bfloat16;
  static constexpr int BYTES = sizeof(Element), SM = 80;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k16_f32_bf16(d, a, b);
  }
};

template <>
struct Operand<Type::f16> {
  using Element = __half;
  static constexpr int BYTES = sizeof(Element), SM = 75;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    mma_m16n8k16_f32_f16(d, a, b);
#else  // the two halves along k
    mma_m16n8k8_f32_f16(d, a[0], a[1], b[0]);
    mma_m16n8k8_f32_f16(d, a[2], a[3], b[1]);
#endif
  }
};

/// Calls `f.operator()<type, C>()` with the problem's operand type and the element type of its result, and returns what
/// it returns. Throws std::invalid_argument where the problem's type is none of TF32, BF16 and FP16.
template <class F>
auto for_types(const Problem& p, F&& f) {
  const bool same = p.out == Out::same;
  switch (p.type) {
    case Type::bf16:
      return same ? f.template operator()<Type::bf16, __nv_bfloat16>() : f.template operator()<Type::bf16, float>();
    case Type::f16:
      return same ? f.template operator()<Type::f16, __half>() : f.template operator()<Type::f16, float>();
    case Type::tf32:
      return f.template operator()<Type::tf32, float>();
    case Type::f32:
      break;
  }
  throw std::invalid_argument("the tensor cores do not multiply f32");
}

/// Rung::refuses of rungs whose arch is older than the tensor cores that multiply some of their types.
inline std::string refuses_before_mma(const Problem& p) {
  return for_types(p, [&]<Type type, class TC>() -> std::string {
    const int sm = device_limits().sm;
    if (sm >= Operand<type>::SM) return "";
    return "operands of this type need sm_" + std::to_string(Operand<type>::SM) + ", this is sm_" + std::to_string(sm);
  });
}

/// An element of C as FP32, and FP32 rounded to the nearest element of C.
inline __device__ float to_float(float x) { return x; }
inline __device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
inline __device__ float to_float(__half x) { return __half2float(x); }
template <class TC>
__device__ TC from_float(float x) {
  return TC(x);  // rounds to nearest, ties to even
}

/// 16 bytes of neighbouring elements of C: one load or store.
template <class TC>
union Vector {
  static constexpr int SIZE = 16 / sizeof(TC);
  uint4 bits;
  TC element[SIZE];
};

/// Two neighbouring elements of C with one instruction; `p` is a multiple of their size.
inline __device__ void store2(float* p, const float (&x)[2]) { *reinterpret_cast<float2*>(p) = {x[0], x[1]}; }
inline __device__ void store2(__nv_bfloat16* p, const float (&x)[2]) {
  *reinterpret_cast<__nv_bfloat162*>(p) = __floats2bfloat162_rn(x[0], x[1]);
}
inline __device__ void store2(__half* p, const float (&x)[2]) {
  *reinterpret_cast<__half2*>(p) = __floats2half2_rn(x[0], x[1]);
}

}  // namespace ladder
