// The tensor cores' instructions: which element of a matrix lies where in the registers of a warp, and how products are
// summed.
//
// A fragment is a matrix spread over the warp. For mma, the tables of PTX ISA 9.7.14.5 ("Matrix Fragments for mma.m16n8k16"
// and the like) follow one scheme: lane 4 g + t holds, in one 32-bit register, neighbouring elements of row g of a block of
// 8 rows and 16 bytes (A), or of column g (B); further registers are further blocks. The layout of wmma's fragments is
// not specified (9.7.14.4, "Matrix Fragments for WMMA"); here it is the same scheme, as in the hardware.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/program.h"

namespace sim {

struct Position {
  int row = 0, column = 0;
};

/// Element i of lane `lane` of A (m x k), of which a register holds `each`. Blocks run down 16 rows, then along k.
constexpr Position a_position(int m, int k, int each, int lane, int i) {
  const int g = lane / 4, t = lane % 4, r = i / each, j = i % each;
  const int down = m < 16 ? 1 : 2, registers = down * k / (4 * each);  // of 16 rows
  return {16 * (r / registers) + 8 * (r % registers % down) + g, 4 * each * (r % registers / down) + each * t + j};
}

/// Of B (k x n). Blocks run along k.
constexpr Position b_position(int k, int each, int lane, int i) {
  const int g = lane / 4, t = lane % 4, r = i / each, j = i % each;
  const int registers = k / (4 * each);  // of 8 columns
  return {4 * each * (r % registers) + each * t + j, 8 * (r / registers) + g};
}

/// Of C and D (m x n): pairs of neighbours, however wide. Pairs run down 16 rows, then along n.
constexpr Position c_position(int m, int n, int lane, int i) {
  const int g = lane / 4, t = lane % 4;
  const int down = m < 16 ? 1 : 2, block = i / 2 / down, across = n / 8;
  return {16 * (block / across) + 8 * (i / 2 % down) + g, 8 * (block % across) + 2 * t + i % 2};
}

/// mma and wmma.mma, by their text; wmma's without the layouts, which its fragments do not have.
struct MatrixMultiply {
  void (*function)(std::byte* registers, const Op& op) = nullptr;  ///< op.elements: d, a, b, c, register after register
  uint8_t d_registers = 0, a_registers = 0, b_registers = 0, c_registers = 0;
  uint8_t d_bytes = 4, a_bytes = 4, b_bytes = 4, c_bytes = 4;  ///< widths of the registers
  uint16_t flops = 0;                                          ///< per lane
};
const MatrixMultiply* find_matrix_multiply(const std::string& mnemonic);

/// What wmma.load and wmma.store move: the fragment, and the matrix in memory as lines (rows or columns) of bytes.
struct Fragment {
  int lines = 0, line_bytes = 0;
  int element_bytes = 0, each = 1;                        ///< of an element; elements in a register
  bool by_rows = true;                                    ///< a line is a row
  std::array<std::vector<Position>, warp_size> position;  ///< of each lane's elements

  /// One access of the warp: lane l moves `bytes` at `byte[l]` of line `line[l]`.
  struct Access {
    uint8_t bytes = 0;
    std::array<uint8_t, warp_size> line{}, byte{};
  };
  std::vector<Access> accesses;
};

}  // namespace sim
