// How tcgen05.mma is told what to multiply, and where it lies in shared memory. 47 writes both functions out; the rungs after it take them
// from here.
#pragma once

#include <cstdint>

#include "common/layout.h"

namespace ladder::blackwell {

/// A tile in shared memory, for tcgen05.mma: rows of 128 bytes along k, swizzled, at a multiple of 1024. PTX ISA, "Shared memory
/// descriptor" of tcgen05.
///   bits  0-13  address / 16
///        16-29  leading dimension byte offset / 16: unused where a row is as long as the swizzle
///        32-45  stride dimension byte offset / 16: from 8 rows to the next 8
///        46-48  1
///        61-63  swizzle mode: 2 is that of 128 bytes
constexpr LADDER_HOST_DEVICE uint64_t descriptor(uint32_t tile) {
  return uint64_t{tile & 0x3FFFF} >> 4 | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 |
         uint64_t{2} << 61;
}

/// What is multiplied, both operands with k contiguous, into FP32. PTX ISA, "Instruction descriptor" of tcgen05.
///   bits  4- 5  type of D: 1 is FP32
///         7- 9  type of A, whose numbers depend on the kind: Tcgen05<type>::FORMAT
///        10-12  type of B
///        17-22  columns of D / 8
///        24-28  rows of D / 16
constexpr LADDER_HOST_DEVICE uint32_t instruction_descriptor(uint32_t a_type, uint32_t b_type, uint32_t rows,
                                                             uint32_t columns) {
  return uint32_t{1} << 4 | a_type << 7 | b_type << 10 | columns / 8 << 17 | rows / 16 << 24;
}

}  // namespace ladder::blackwell
