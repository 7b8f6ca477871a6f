// What tcgen05.mma makes of the types of operands, beside the table in common/types.h: the kernels of sm_100a alone include it.
#pragma once

#include <cstdint>

#include "common/ptx/tcgen05.h"
#include "common/types.h"

namespace ladder {

/// A row of the table, for tcgen05.
///   FORMAT  what the instruction descriptor calls the type
///   mma()   D (128 x N) = A (128 x 32 bytes) * B (32 bytes x N), or +=; A and B by descriptors of tiles in shared memory, D in tensor
///           memory; one thread
///   mma_pair()  D (256 x N), of a pair of blocks
template <Type type>
struct Tcgen05;

template <>
struct Tcgen05<Type::tf32> {
  static constexpr uint32_t FORMAT = 2;
  static __device__ void mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate) {
    tcgen05_mma_tf32(d, a, b, instruction, accumulate);
  }
  static __device__ void mma_pair(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate) {
    tcgen05_mma_tf32_cta_group_2(d, a, b, instruction, accumulate);
  }
};

template <>
struct Tcgen05<Type::bf16> {
  static constexpr uint32_t FORMAT = 1;
  static __device__ void mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate) {
    tcgen05_mma_f16(d, a, b, instruction, accumulate);
  }
  static __device__ void mma_pair(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate) {
    tcgen05_mma_f16_cta_group_2(d, a, b, instruction, accumulate);
  }
};

template <>
struct Tcgen05<Type::f16> : Tcgen05<Type::bf16> {
  static constexpr uint32_t FORMAT = 0;
};

}  // namespace ladder
