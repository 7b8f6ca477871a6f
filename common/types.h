// The one table of types. A type of operands is a row here, and everything else asks the table: the command line, data, check,
// bound, cuBLAS, ceilings and kernels. A type without a row, or whose row lacks what somebody asks for, does not compile; a rung
// or a library that does not serve a type says so by its name.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/problem.h"
#include "common/ptx/mma.h"
#include "common/ptx/wgmma.h"

namespace ladder {

/// How cuBLAS multiplies operands of a type: its cublasComputeType_t, named here so that kernels need not know cuBLAS.
enum class Arithmetic {
  fp32,       ///< CUBLAS_COMPUTE_32F: products and sums of operands as they are; 16-bit ones on the tensor cores
  fp32_only,  ///< CUBLAS_COMPUTE_32F_PEDANTIC: on the CUDA cores
  tf32,       ///< CUBLAS_COMPUTE_32F_FAST_TF32: FP32 operands, rounded to TF32
};

/// A row of the table.
///   NAME        on the command line and in CSV
///   Element     how an operand lies in memory; of B that of of_b(type). Where there is PER_BYTE, so many share a byte: Elements
///   Result      how a result does, with Out::same
///   ROUNDOFF    most that rounding FP32 to a Result changes, relative to the value
///   TINY        most that it changes besides, where the exponent runs out
///   TRUNCATION  most that the tensor cores cut off an operand, relative to it
///   TENSOR      is multiplied by the tensor cores, which truncate sums of 8 products and more (bound.h)
///   FP22        where it is multiplied by an instruction for this type alone, sums are FP22 (bound.h)
///   SCALE       of random operands that are no whole numbers: the largest of E4M3's 448
///   CUDA        what CUDA's libraries call an Element
///   CUDA_RESULT what they call a Result
///   ARITHMETIC  how cuBLAS multiplies
/// and, of types that mma.sync multiplies:
///   SM          first compute capability with that instruction
///   mma()       D (16 x 8) += A (16 x 32 bytes) * B (32 bytes x 8), sums in FP32
///   wgmma()     but for FP8: D (64 x 256) += A (64 x 32 bytes) * B (32 bytes x 256), likewise, by descriptors of tiles in shared memory
template <Type type>
struct Operand;

template <>
struct Operand<Type::f32> {
  using Element = float;
  using Result = Element;
  static constexpr const char* NAME = "f32";
  static constexpr int BYTES = sizeof(Element);
  static constexpr double ROUNDOFF = 0.0, TINY = 0x1p-126, TRUNCATION = 0.0;
  static constexpr bool TENSOR = false;
  static constexpr bool FP22 = false;
  static constexpr float SCALE = 1.0F;
  static constexpr cudaDataType_t CUDA = CUDA_R_32F, CUDA_RESULT = CUDA;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32_only;
};

template <>
struct Operand<Type::tf32> {
  using Element = float;
  using Result = Element;
  static constexpr const char* NAME = "tf32";
  static constexpr int BYTES = sizeof(Element);
  static constexpr double ROUNDOFF = 0.0, TINY = 0x1p-126, TRUNCATION = 0x1p-10;
  static constexpr bool TENSOR = true;
  static constexpr bool FP22 = false;
  static constexpr float SCALE = 1.0F;
  static constexpr cudaDataType_t CUDA = CUDA_R_32F, CUDA_RESULT = CUDA;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::tf32;
  static constexpr int SM = 80;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k8_f32_tf32(d, a, b);
  }
  static __device__ void wgmma(float (&d)[32][4], uint64_t a, uint64_t b) { wgmma_m64n256k8_f32_tf32(d, a, b); }
};

template <>
struct Operand<Type::bf16> {
  using Element = __nv_bfloat16;
  using Result = Element;
  static constexpr const char* NAME = "bf16";
  static constexpr int BYTES = sizeof(Element);
  static constexpr double ROUNDOFF = 0x1p-8, TINY = 0x1p-126, TRUNCATION = 0.0;
  static constexpr bool TENSOR = true;
  static constexpr bool FP22 = false;
  static constexpr float SCALE = 1.0F;
  static constexpr cudaDataType_t CUDA = CUDA_R_16BF, CUDA_RESULT = CUDA;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32;
  static constexpr int SM = 80;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k16_f32_bf16(d, a, b);
  }
  static __device__ void wgmma(float (&d)[32][4], uint64_t a, uint64_t b) { wgmma_m64n256k16_f32_bf16(d, a, b); }
};

template <>
struct Operand<Type::f16> {
  using Element = __half;
  using Result = Element;
  static constexpr const char* NAME = "f16";
  static constexpr int BYTES = sizeof(Element);
  static constexpr double ROUNDOFF = 0x1p-11, TINY = 0x1p-24, TRUNCATION = 0.0;
  static constexpr bool TENSOR = true;
  static constexpr bool FP22 = false;
  static constexpr float SCALE = 1.0F;
  static constexpr cudaDataType_t CUDA = CUDA_R_16F, CUDA_RESULT = CUDA;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32;
  static constexpr int SM = 75;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800  // the two halves along k
    mma_m16n8k8_f32_f16(d, a[0], a[1], b[0]);
    mma_m16n8k8_f32_f16(d, a[2], a[3], b[1]);
#else
    mma_m16n8k16_f32_f16(d, a, b);
#endif
  }
  static __device__ void wgmma(float (&d)[32][4], uint64_t a, uint64_t b) { wgmma_m64n256k16_f32_f16(d, a, b); }
};

template <>
struct Operand<Type::e4m3> {
  using Element = __nv_fp8_e4m3;
  using Result = __nv_bfloat16;
  static constexpr const char* NAME = "e4m3";
  static constexpr int BYTES = sizeof(Element);
  static constexpr double ROUNDOFF = 0x1p-8, TINY = 0x1p-126, TRUNCATION = 0.0;
  static constexpr bool TENSOR = true;
  static constexpr bool FP22 = true;
  static constexpr float SCALE = 64.0F;  // no normal number of the harness is above 5.9
  static constexpr cudaDataType_t CUDA = CUDA_R_8F_E4M3, CUDA_RESULT = CUDA_R_16BF;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32;
  static constexpr int SM = 89;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k32_f32_e4m3(d, a, b);
  }
};

template <>
struct Operand<Type::e5m2> : Operand<Type::e4m3> {
  using Element = __nv_fp8_e5m2;
  static constexpr const char* NAME = "e5m2";
  static constexpr cudaDataType_t CUDA = CUDA_R_8F_E5M2;
  static __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    mma_m16n8k32_f32_e5m2_e4m3(d, a, b);
  }
};

template <>
struct Operand<Type::e2m1> {
  using Element = __nv_fp4_e2m1;
  using Result = __nv_bfloat16;
  static constexpr const char* NAME = "e2m1";
  static constexpr int BYTES = sizeof(Element), PER_BYTE = 2;
  static constexpr double ROUNDOFF = 0x1p-8, TINY = 0x1p-126, TRUNCATION = 0.0;
  static constexpr bool TENSOR = true;
  static constexpr bool FP22 = false;
  static constexpr float SCALE = 2.0F;  // the largest is 6
  static constexpr cudaDataType_t CUDA = CUDA_R_4F_E2M1, CUDA_RESULT = CUDA_R_16BF;
  static constexpr Arithmetic ARITHMETIC = Arithmetic::fp32;
  static constexpr int SM = 100;
};

/// The type of B's elements.
constexpr __host__ __device__ Type of_b(Type type) { return type == Type::e5m2 ? Type::e4m3 : type; }

/// A set of types, to choose one of at run time.
template <Type... types>
struct Types {
  static constexpr Type list[sizeof...(types)] = {types...};
};
using WholeByteTypes = Types<Type::f32, Type::tf32, Type::bf16, Type::f16, Type::e4m3, Type::e5m2>;
using AllTypes = Types<Type::f32, Type::tf32, Type::bf16, Type::f16, Type::e4m3, Type::e5m2, Type::e2m1>;
using MmaSyncTypes = Types<Type::tf32, Type::bf16, Type::f16>;  ///< those of the rungs on mma.sync, but for 40
using Fp8Types = Types<Type::e4m3, Type::e5m2>;                 ///< those of 40 and 41
using E4m3Types = Types<Type::e4m3>;                            ///< those of the rungs whose scales are of blocks
using E2m1Types = Types<Type::e2m1>;                            ///< those of 54

/// Its NAME; of a type without a row, its number.
inline std::string name(Type type) {
  std::string text = "type " + std::to_string(static_cast<int>(type));
  const auto look = [&]<Type... rows>(Types<rows...>) {
    ((type == rows ? void(text = Operand<rows>::NAME) : void()), ...);
  };
  look(AllTypes{});
  return text;
}

/// Calls `f.operator()<type>()` and returns what it returns. Throws std::invalid_argument where `type` is not in the set.
template <Type first, Type... rest, class F>
auto visit(Types<first, rest...>, Type type, F&& f) {
  if (type == first) return f.template operator()<first>();
  if constexpr (sizeof...(rest) > 0)
    return visit(Types<rest...>{}, type, f);
  else
    throw std::invalid_argument(name(type) + " is not served here");
}

/// Calls `f.operator()<type, C>()`, where C is the element of the result.
template <class Set, class F>
auto visit(Set set, Type type, Out out, F&& f) {
  return visit(set, type, [&]<Type row>() {
    using Result = typename Operand<row>::Result;
    if constexpr (!std::is_same_v<Result, float>)
      if (out == Out::same) return f.template operator()<row, Result>();
    return f.template operator()<row, float>();
  });
}

/// The row of a type, for code that knows it only at run time.
struct TypeFacts {
  const char* name;
  int bytes, result_bytes;  ///< of an Element, of a Result
  int per_byte;             ///< elements; 1 where they have one or more each
  double roundoff, tiny, truncation;
  bool tensor, fp22;
  float scale;
  cudaDataType_t cuda, cuda_result;
  Arithmetic arithmetic;
};
template <Type type>
constexpr int per_byte() {
  if constexpr (requires { Operand<type>::PER_BYTE; })
    return Operand<type>::PER_BYTE;
  else
    return 1;
}
template <Type type>
constexpr TypeFacts facts() {
  using O = Operand<type>;
  static_assert(O::BYTES == sizeof(typename O::Element));
  return {O::NAME,          O::BYTES,    sizeof(typename O::Result),
          per_byte<type>(), O::ROUNDOFF, O::TINY,
          O::TRUNCATION,    O::TENSOR,   O::FP22,
          O::SCALE,         O::CUDA,     O::CUDA_RESULT,
          O::ARITHMETIC};
}
inline TypeFacts facts(Type type) {
  return visit(AllTypes{}, type, [&]<Type row>() { return facts<row>(); });
}

/// Of so many elements of A or B, one after another.
inline size_t operand_bytes(Type type, size_t elements = 1) {
  const TypeFacts row = facts(type);
  return elements * row.bytes / row.per_byte;
}
inline int result_bytes(Type type, Out out) {  ///< of an element of C
  return out == Out::f32 ? sizeof(float) : facts(type).result_bytes;
}

/// An element as FP32, and FP32 rounded to the nearest element, ties to even.
inline __host__ __device__ float to_float(float x) { return x; }
inline __host__ __device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
inline __host__ __device__ float to_float(__half x) { return __half2float(x); }
inline __host__ __device__ float to_float(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
inline __host__ __device__ float to_float(__nv_fp8_e5m2 x) { return static_cast<float>(x); }
inline __host__ __device__ float to_float(__nv_fp4_e2m1 x) { return static_cast<float>(x); }
template <class Element>
__host__ __device__ Element from_float(float x) {
  return Element(x);
}

/// Elements of an operand, by their number.
template <class Element>
struct Elements {
  const void* data;
  __host__ __device__ Element operator[](size_t index) const { return static_cast<const Element*>(data)[index]; }
};
template <>
struct Elements<__nv_fp4_e2m1> {  // two in a byte, the first in the low bits
  const void* data;
  __host__ __device__ __nv_fp4_e2m1 operator[](size_t index) const {
    __nv_fp4_e2m1 x;
    x.__x = static_cast<const unsigned char*>(data)[index / 2] >> index % 2 * 4 & 0xF;
    return x;
  }
};

}  // namespace ladder
