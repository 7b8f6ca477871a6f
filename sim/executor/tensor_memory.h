// Tensor memory of one block (PTX ISA 9.7.16.1, "Tensor Memory"): 128 lanes of 512 columns of 32 bits. Columns are allocated, always
// with all of their lanes. An address holds a lane in its upper half and a column in its lower one.
//
// Accesses are checked as in shared memory (shared_memory.h). What is known is known of 16 lanes of a column together: no instruction
// takes fewer, but for masks, and which lanes have been written is kept apart.
//
// tcgen05.mma, cp and shift write from their issue until somebody has waited for a commit after them, tcgen05.st until the
// warp's tcgen05.wait::st; tcgen05.ld reads until its tcgen05.wait::ld (PTX ISA 9.7.16, "Memory Consistency Model"). In between,
// nothing else may touch those columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "executor/program.h"

namespace sim {

/// What one instruction touches: some columns, and in each the same lanes.
struct TensorRegion {
  static constexpr uint32_t groups = 8, group_lanes = 16;
  uint32_t column = 0, columns = 0;
  std::array<uint16_t, groups> lanes{};  ///< of each 16, one bit each
};

/// An access that is over.
struct TensorAccess {
  uint32_t time = 0, op = 0;
  uint16_t actor = 0;   ///< of the clocks, to whom it belongs when it is over
  uint16_t issuer = 0;  ///< the warp that issued it
};

class TensorMemory {
 public:
  static constexpr uint32_t lanes = 128, columns = 512, least_columns = 32;

  struct Allocation {
    uint32_t columns = 0, op = 0, warp = 0;
  };
  /// 16 lanes of a column.
  struct Cell {
    static constexpr size_t most_reads = 4;
    uint16_t written = 0;  ///< lanes that hold a value, or will when what is under way has landed
    uint16_t writes_under_way = 0, reads_under_way = 0;
    uint8_t reads = 0;  ///< since the last write
    bool was_written = false;
    uint32_t write_op = 0, write_thread = 0;  ///< of the last write under way
    uint32_t read_op = 0, read_thread = 0;    ///< of the last read under way
    TensorAccess write;
    std::array<TensorAccess, most_reads> read;
  };

  /// Where the program uses none, nothing is kept.
  explicit TensorMemory(bool used)
      : values_(used ? lanes * columns : 0), cells_(used ? columns * TensorRegion::groups : 0) {}

  /// A new block: nothing is allocated or written.
  void reset();

  /// The first column of a free range, or nothing.
  std::optional<uint32_t> allocate(const Allocation& allocation);
  void free(uint32_t column);
  const std::map<uint32_t, Allocation>& allocations() const { return allocations_; }
  bool is_allocated(uint32_t column) const;
  uint32_t free_columns() const;

  uint32_t* column(uint32_t c) { return &values_[size_t{c} * lanes]; }
  Cell& cell(uint32_t c, uint32_t group) { return cells_[size_t{c} * TensorRegion::groups + group]; }

  /// Calls f(cell, column, group) for each cell of a region.
  template <class F>
  void for_each_cell(const TensorRegion& region, const F& f) {
    for (uint32_t c = region.column; c < region.column + region.columns; ++c)
      for (uint32_t g = 0; g < TensorRegion::groups; ++g)
        if (region.lanes[g]) f(cell(c, g), c, g);
  }

  void begin_write(const TensorRegion& region, uint32_t op, uint32_t thread);
  void end_write(const TensorRegion& region, const TensorAccess& access);
  void begin_read(const TensorRegion& region, uint32_t op, uint32_t thread);
  void end_read(const TensorRegion& region, const TensorAccess& access);

 private:
  std::vector<uint32_t> values_;  ///< column after column
  std::vector<Cell> cells_;
  std::map<uint32_t, Allocation> allocations_;  ///< by the first column
};

// --- instructions of a warp under way ----------------------------------------------------------------------------------------

/// tcgen05.ld and tcgen05.st (PTX ISA 9.7.16.2.3, "Data Movement Shape").
enum class TensorShape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

struct TensorMove {
  TensorShape shape = TensorShape::s32x32b;
  bool packed = false;  ///< .pack::16b, .unpack::16b: a register holds the lower halves of two neighbouring columns
  uint32_t split = 0;   ///< of .16x32bx2: the second half's columns lie this far behind

  uint32_t pack() const { return uint32_t(shape) | packed << 3 | split << 4; }
  static TensorMove unpack(uint32_t bits) { return {TensorShape(bits & 7), bool(bits >> 3 & 1), bits >> 4}; }

  /// Lane and column of register `r` of thread `t`, from the address on; a packed register's first column.
  struct Place {
    uint32_t lane = 0, column = 0;
  };
  Place place(uint32_t t, uint32_t r) const;
  uint32_t lanes() const { return shape == TensorShape::s32x32b ? 32 : 16; }
  /// Columns that `registers` of them span.
  uint32_t columns(uint32_t registers) const;
};

/// A tcgen05.ld or tcgen05.st that its warp has not waited for.
struct TensorMoveUnderWay {
  const Op* op = nullptr;
  uint32_t pc = 0, lane = 0;
  TensorRegion region;
  std::vector<uint32_t> values;  ///< of a store: register by register
};

/// A mov of a register that a tcgen05.ld under way will fill: the compiler puts it before the wait. It is carried out again there.
struct TensorMovedRegister {
  const Op* op = nullptr;
  Mask mask = 0;
};

}  // namespace sim
