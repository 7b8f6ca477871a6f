// wgmma under way (PTX ISA 9.7.15, "Asynchronous Warpgroup Level Matrix Instructions"). The four warps of a warpgroup issue
// an operation separately. It is carried out when all four have issued it and the first of them waits for it, so operands in
// shared memory are read as late as they may be. Until then nothing may use the accumulators' registers; their values are kept
// here.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "executor/clocks.h"
#include "executor/program.h"
#include "executor/tensor_map.h"

namespace sim {

constexpr uint32_t warpgroup_warps = 4;

/// What a matrix descriptor says of an operand in shared memory (PTX ISA 9.7.15.5.1.2, "Matrix Descriptor Format").
struct MatrixDescriptor {
  uint32_t start, leading, stride;  ///< bytes
  uint32_t base_offset;
  uint32_t swizzle;  ///< span in bytes

  explicit MatrixDescriptor(uint64_t bits);

  /// The address of 16 bytes. Where K is contiguous: of row `i`, the `j`-th 16 bytes along K. Where M or N is contiguous: the
  /// `i`-th 16 bytes along M or N, of row `j` of K.
  uint32_t address(bool k_contiguous, uint32_t i, uint32_t j) const;
};

/// PTX ISA 9.7.15.5.1, "Strides" and "Canonical layouts". Rows of the swizzle's span (of 16 bytes where there is none) lie
/// in groups of 8, one behind the other; the swizzle works on the address.
inline uint32_t MatrixDescriptor::address(bool k_contiguous, uint32_t i, uint32_t j) const {
  const uint32_t span = swizzle ? swizzle : 16, units = span / 16;
  uint32_t offset;
  if (k_contiguous)
    offset = i % 8 * span + i / 8 * stride + (swizzle ? j * 16 : j * leading);
  else if (swizzle)
    offset = i % units * 16 + i / units * leading + j % 8 * span + j / 8 * stride;
  else
    offset = i * stride + j % 8 * 16 + j / 8 * leading;
  return Swizzle{swizzle}(start + offset);
}

/// Shape and layout of one instruction, in Op::o.immediate.
struct WgmmaShape {
  uint32_t n;
  bool a_in_registers, negate_a, negate_b, a_k_contiguous, b_k_contiguous;
  bool saturate;  ///< .satfinite: a sum of integers is clamped

  uint32_t pack() const {
    return n << 8 | a_in_registers | negate_a << 1 | negate_b << 2 | a_k_contiguous << 3 | b_k_contiguous << 4 |
           saturate << 5;
  }
  static WgmmaShape unpack(uint32_t bits) {
    return {bits >> 8,      bool(bits & 1),  bool(bits & 2), bool(bits & 4),
            bool(bits & 8), bool(bits & 16), bool(bits & 32)};
  }
};

/// One operation that not all warps have waited for.
struct Wgmma {
  const Op* op = nullptr;
  uint32_t pc = 0;
  uint64_t a = 0, b = 0;                    ///< descriptors
  uint32_t reader = 0, time = 0;            ///< the actor that issued it first, and when
  std::array<bool, warpgroup_warps> add{};  ///< D = A * B + D, not A * B
  std::vector<uint32_t> units;              ///< of 16 bytes in shared memory that it reads: their addresses
};

/// The accumulators of one warp, from an operation's issue to the end of the last one on the same registers.
struct Accumulators {
  const Op* op = nullptr;        ///< the last operation that was issued on them
  std::vector<uint32_t> values;  ///< register by register, 32 lanes each
  uint32_t users = 0;
};

struct Warpgroup {
  std::deque<Wgmma> queue;                         ///< operations that not all warps have waited for
  uint64_t first = 0;                              ///< the number of the queue's first
  uint64_t executed = 0;                           ///< operations before this one have been
  std::array<uint64_t, warpgroup_warps> waited{};  ///< by each warp: for the operations before this one
  std::array<uint64_t, warpgroup_warps> issued{};
  std::array<std::vector<uint64_t>, warpgroup_warps> committed;  ///< of each group: `issued` at its commit
  std::array<bool, warpgroup_warps> fenced{};
  std::array<std::map<uint32_t, Accumulators>, warpgroup_warps> accumulators;  ///< by the first one's register
  VectorClock clock;                                                           ///< of the warps that have issued
};

}  // namespace sim
