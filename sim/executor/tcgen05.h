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

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };
constexpr bool has_scale_factors(MmaKind kind) { return kind >= MmaKind::mxf8f6f4; }
constexpr bool has_packed_fp4(MmaKind kind) { return kind >= MmaKind::mxf4; }

/// Those of 6 and 4 bits take 8 each (PTX ISA 9.7.16, "Packing formats"), but for E2M1 of mxf4 and mxf4nvf4, which is packed.
enum class OperandFormat : uint8_t { f16, bf16, tf32, e4m3, e5m2, u8, s8, packed_e2m1, e2m3, e3m2, e2m1, none };
const char* name(OperandFormat format);
/// In 16 bytes of shared memory.
constexpr uint32_t elements_per_unit(OperandFormat format) {
  switch (format) {
    case OperandFormat::tf32:
      return 4;
    case OperandFormat::f16:
    case OperandFormat::bf16:
      return 8;
    case OperandFormat::packed_e2m1:
      return 32;
    default:
      return 16;
  }
}

/// .collector::a::use and the like: what stays in the tensor core from one product to the next.
enum class CollectorUse : uint8_t { discard, fill, use, lastuse };

/// What the immediates and modifiers of a tcgen05.mma say, in Op::o.immediate.
struct MmaOptions {
  MmaKind kind = MmaKind::f16;
  bool a_in_tensor_memory = false, has_scale = false;
  bool weight_stationary = false;  ///< .ws
  bool has_zero_columns = false;
  uint32_t scale = 0;          ///< D is multiplied by 2^-scale before products are added
  uint32_t scale_factors = 1;  ///< .scale_vec::1X, 2X or 4X: of a row of A along K, and of a column of B
  CollectorUse collector = CollectorUse::discard;
  uint32_t buffer = 0;  ///< the collector's: of A, or one of the four of B (from 1 on)

  uint32_t pack() const {
    return uint32_t(kind) | a_in_tensor_memory << 4 | has_scale << 5 | weight_stationary << 6 | has_zero_columns << 7 |
           scale << 8 | scale_factors << 12 | uint32_t(collector) << 16 | buffer << 18;
  }
  static MmaOptions unpack(uint32_t bits) {
    return {MmaKind(bits & 15),  bool(bits >> 4 & 1),          bool(bits >> 5 & 1),
            bool(bits >> 6 & 1), bool(bits >> 7 & 1),          bits >> 8 & 15,
            bits >> 12 & 7,      CollectorUse(bits >> 16 & 3), bits >> 18 & 7};
  }
};

/// The 32 bits that say what tcgen05.mma multiplies (PTX ISA 9.7.16.4.2, "Instruction Descriptor", Table 42).
struct InstructionDescriptor {
  explicit InstructionDescriptor(uint32_t bits, MmaKind kind);

  uint32_t bits;
  uint32_t m, n, k;
  OperandFormat a, b;
  bool f16_result;
  bool negate_a, negate_b, transpose_a, transpose_b;
  bool saturate;  ///< of integers
  bool ue4m3;     ///< scale factors; else UE8M0
  uint32_t a_scale_byte,
      b_scale_byte;  ///< the first of a column's four bytes that is a scale factor ("Scale Factor A ID")

  /// What the ISA forbids, or the simulator cannot do: an explanation; "" where it is fine.
  std::string check(const MmaOptions& options, uint32_t cta_group) const;

 private:
  std::string check_scale_factors(const MmaOptions& options, uint32_t cta_group) const;
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

/// Columns of B that a tcgen05.mma.ws takes as 0 (PTX ISA 9.7.16.4.3, "Zero-Column Mask Descriptor"): a bit each. The ISA's table and
/// its examples differ in which of the spans is of zeros; this follows the examples, and the fields' names.
struct ZeroColumns {
  ZeroColumns(uint64_t bits, uint32_t m, uint32_t n);

  std::array<bool, 256> zero{};
  uint32_t shift;
};

/// The shapes of tcgen05.cp (PTX ISA 9.7.16, tcgen05.cp), in Op::o.immediate.
enum class TensorCopyShape : uint8_t { s128x256b, s4x256b, s128x128b, s64x128b_02_13, s64x128b_01_23, s32x128b };

/// Which lane and column of tensor memory hold an element of D, and which lane a row of A, in one block's part of `m` rows
/// (PTX ISA 9.7.16, "Data Path Layout Organization"). Of one block's product of 128 rows, D; of 64, F, where every second 16 lanes hold rows. Of
/// a pair's 256 rows, A; of its 128, B: each block's 64 rows fill 128 lanes, for the first and the second half of the columns. Of .ws, E (64
/// rows, likewise) and G (32 rows, for each quarter of the columns); CUTLASS describes the same maps (tmem_frg_ws).
struct DataPath {
  uint32_t m, n;  ///< of one block's rows of D, and all columns
  bool pair, weight_stationary;

  struct Place {
    uint32_t lane = 0, column = 0;
  };
  /// Of the columns, side by side in the lanes.
  uint32_t parts() const { return pair || weight_stationary ? TensorMemory::lanes / m : 1; }
  uint32_t columns() const { return n / parts(); }
  Place place(uint32_t row, uint32_t column) const { return {lane(row) + column / columns() * m, column % columns()}; }
  bool interleaved() const { return m == 64 && parts() == 1; }
  uint32_t lane(uint32_t row) const { return interleaved() ? row / 16 * 32 + row % 16 : row; }
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
  TensorRegion a_scales, b_scales;  ///< and these, of the kinds that have them
  uint32_t d_lane = 0, a_lane = 0;
  std::vector<uint32_t>
      units;  ///< of 16 bytes in each one's shared memory that it reads: their addresses; of A, then of B
  uint32_t units_of_a = 0;
  uint32_t descriptor = 0;             ///< an InstructionDescriptor
  bool add = false;                    ///< D = A * B + D, not A * B
  std::array<uint32_t, 8> disabled{};  ///< lanes of D that are not written, one bit each
  uint64_t zero_columns = 0;           ///< a ZeroColumns
  // Of a commit.
  struct Target {
    Block* block = nullptr;
    uint32_t address = 0;
  };
  std::vector<Target> mbarriers;
  VectorClock clock;  ///< what happens before the commit
};

}  // namespace sim
