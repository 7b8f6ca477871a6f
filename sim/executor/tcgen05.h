// Instructions of the tensor cores' fifth generation (PTX ISA 9.7.16, "TensorCore 5th Generation Family Instructions"): what their
// descriptors say, and which lanes of tensor memory hold which rows. tcgen05.mma, cp, shift and commit are issued by single
// threads. Those of one thread are carried out in their order, when somebody waits for an mbarrier at which a commit arrives: so operands in
// shared memory are read, and results written, as late as they may be.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "executor/clocks.h"
#include "executor/program.h"
#include "executor/tensor_memory.h"
#include "executor/wgmma.h"

namespace sim {

struct Block;
struct Warp;

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, mxf8f6f4 };
enum class OperandFormat : uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, none };
const char* name(OperandFormat format);
/// In 16 bytes of shared memory: formats of 8 bits and fewer take 16 bytes for 16 elements (PTX ISA 9.7.16, "Packing formats").
constexpr uint32_t elements_per_unit(OperandFormat format) {
  return format == OperandFormat::tf32 ? 4 : format == OperandFormat::f16 || format == OperandFormat::bf16 ? 8 : 16;
}

/// The 32 bits that say what tcgen05.mma multiplies (PTX ISA 9.7.16.4.2, "Instruction Descriptor", Table 42).
struct InstructionDescriptor {
  explicit InstructionDescriptor(uint32_t bits, MmaKind kind);

  uint32_t bits;
  uint32_t m, n, k;
  OperandFormat a, b;
  bool f16_result;
  bool negate_a, negate_b, transpose_a, transpose_b;
  uint32_t a_scale_byte, b_scale_byte;  ///< of mxf8f6f4: which of the four bytes of a column is the scale factor

  /// What the ISA forbids, or the simulator cannot do: an explanation; "" where it is fine.
  std::string check(MmaKind kind, uint32_t cta_group) const;
};

/// A shared-memory descriptor of sm_100 (PTX ISA 9.7.16.4.1, "Shared memory descriptor"). Its strides mean what they mean to wgmma.
struct SharedDescriptor {
  explicit SharedDescriptor(uint64_t bits);

  MatrixDescriptor layout;
  /// As above.
  std::string check() const;

 private:
  uint64_t bits_;
};

/// What the immediates and modifiers of a tcgen05.mma say, in Op::o.immediate.
struct MmaOptions {
  MmaKind kind = MmaKind::f16;
  bool a_in_tensor_memory = false, has_scale = false;
  uint32_t scale = 0;  ///< D is multiplied by 2^-scale before products are added

  uint32_t pack() const { return uint32_t(kind) | a_in_tensor_memory << 4 | has_scale << 5 | scale << 8; }
  static MmaOptions unpack(uint32_t bits) {
    return {MmaKind(bits & 15), bool(bits >> 4 & 1), bool(bits >> 5 & 1), bits >> 8};
  }
};

/// The shapes of tcgen05.cp (PTX ISA 9.7.16, tcgen05.cp), in Op::o.immediate.
enum class TensorCopyShape : uint8_t { s128x256b, s4x256b, s128x128b, s64x128b_02_13, s64x128b_01_23, s32x128b };

/// Which lane and column of tensor memory hold an element of D, and which lane a row of A, in one block's part of `m` rows
/// (PTX ISA 9.7.16, "Data Path Layout Organization"). Of one block's product of 128 rows, D; of 64, F, where every second 16 lanes hold rows. Of
/// a pair's 256 rows, A; of its 128, B: each block's 64 rows fill 128 lanes, for the first and the second half of the columns.
struct DataPath {
  uint32_t m, n;  ///< of one block's rows of D, and all columns
  bool pair;

  struct Place {
    uint32_t lane = 0, column = 0;
  };
  bool halves() const { return pair && m == 64; }
  uint32_t columns() const { return halves() ? n / 2 : n; }
  Place place(uint32_t row, uint32_t column) const {
    if (halves()) return {row + column / (n / 2) * 64, column % (n / 2)};
    return {lane(row), column};
  }
  uint32_t lane(uint32_t row) const { return m == 64 && !pair ? row / 16 * 32 + row % 16 : row; }
};

/// One operation that nobody has waited for, or a commit.
struct TensorWork {
  const Op* op = nullptr;
  uint32_t pc = 0;
  Warp* warp = nullptr;
  int lane = 0;
  std::vector<Block*> blocks;       ///< in whose memory it works: one, or a pair, the even one first
  std::array<TensorRegion, 2> d{};  ///< of each one's tensor memory: what it writes; no columns: nothing
  TensorRegion a;                   ///< and reads
  TensorRegion a_scales, b_scales;  ///< and these, of mxf8f6f4
  uint32_t d_lane = 0, a_lane = 0;
  std::vector<uint32_t>
      units;  ///< of 16 bytes in each one's shared memory that it reads: their addresses; of A, then of B
  uint32_t units_of_a = 0;
  uint32_t descriptor = 0;             ///< an InstructionDescriptor
  bool add = false;                    ///< D = A * B + D, not A * B
  std::array<uint32_t, 8> disabled{};  ///< lanes of D that are not written, one bit each
  // Of a commit.
  struct Target {
    Block* block = nullptr;
    uint32_t address = 0;
  };
  std::vector<Target> mbarriers;
  VectorClock clock;  ///< what happens before the commit
};

}  // namespace sim
