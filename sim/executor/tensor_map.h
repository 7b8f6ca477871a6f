// Tensor maps: what cuTensorMapEncodeTiled makes, opaque to programs, and what a tensor copy does with one (CUDA Driver API,
// "Tensor Map Object Management"; PTX ISA 5.5, "Tensors").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "executor/program.h"

namespace sim {

/// How 16-byte units are permuted in shared memory (PTX ISA 5.5.6, "Swizzling Modes"). The permutation stays within a span of
/// 0, 32, 64 or 128 bytes.
struct Swizzle {
  uint32_t span = 0;
  bool pairs = false;  ///< of 128 bytes: neighbouring units stay together (128-byte swizzling with 32-byte atoms)

  /// Of a byte's address in shared memory: from bit 4 on, log2(span / 16) bits are XORed with those from bit 7 on; of pairs, bits 5 and 6.
  constexpr uint32_t operator()(uint32_t address) const {
    if (pairs) return address ^ ((address >> 2) & 0x60);
    return span ? address ^ ((address >> 3) & (span - 16)) : address;
  }
};

/// Our own layout of the 128 bytes of a CUtensorMap. CUTLASS clears bit 21 of the second 64-bit word of the maps of small tensors,
/// against an error of drivers. So nothing lies in that word.
struct TensorMap {
  static constexpr uint32_t valid = 0x70616d54;

  uint32_t magic = 0;
  uint8_t rank = 0;
  uint8_t element_bytes = 0;
  uint8_t swizzle = 0;  ///< span
  NumberType type = NumberType::unsigned_;
  uint64_t cleared_by_cutlass = 0;
  uint64_t base = 0;
  std::array<uint64_t, 5> size{};    ///< elements; the innermost dimension first
  std::array<uint64_t, 4> stride{};  ///< bytes, of the dimensions from 1 on
  std::array<uint16_t, 5> box{};     ///< elements
  std::array<uint8_t, 5> step{};     ///< element strides
  bool swizzles_pairs = false;       ///< Swizzle::pairs
  /// Elements of 4 or 6 bits: 16 of them take 16 bytes in shared memory, of which the first are theirs (16U4_ALIGN16B, 16U6_ALIGN16B);
  /// `element_bytes` is 1. 0: all others.
  uint8_t padded_bits = 0;
  /// Elements of 4 bits without gaps (16U4_ALIGN8B). What counts elements here counts pairs of them, but for coordinates.
  bool in_pairs = false;

  uint32_t row_bytes() const { return box[0] * element_bytes; }
  /// Of the box. Dimension 0 has no element stride.
  uint32_t rows_in(int d) const { return (box[d] + step[d] - 1U) / step[d]; }
  uint32_t rows() const;
  uint32_t box_bytes() const { return rows() * row_bytes(); }
  /// Bytes in the tensor of so many in shared memory. An mbarrier counts them: DeepGEMM expects as many of its FP4 operands on a B200.
  uint32_t tensor_bytes(uint32_t shared_bytes) const {
    return padded_bits ? shared_bytes / 8 * padded_bits : shared_bytes;
  }

  /// What the driver would not accept: an explanation; "" where it is fine.
  std::string check() const;
};
static_assert(sizeof(TensorMap) <= 128, "a CUtensorMap");
static_assert(offsetof(TensorMap, cleared_by_cutlass) == 8, "the second word");

/// The part of one row of the box that lies in the tensor.
struct TensorRow {
  uint64_t address = 0;  ///< of its first byte in the tensor
  uint32_t skipped = 0,
           bytes =
               0;  ///< of shared memory, outside before it; of the tensor, inside; the rest of the row is outside again
};

/// Row `row` of the box at `corner`. In `units` the tensor ends only after the 16 bytes in which it ends: so an H200 clips what it
/// stores (tests/programs/tma.cu), and not what it loads.
TensorRow row_of(const TensorMap& map, const std::array<int32_t, 5>& corner, uint32_t row, bool units = false);

}  // namespace sim
