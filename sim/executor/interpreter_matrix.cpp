// Matrices between memory and registers: wmma.load and wmma.store (PTX ISA 9.7.14.4), ldmatrix, stmatrix and movmatrix
// (9.7.14.5).
#include <bit>
#include <cstring>

#include "executor/interpreter.h"
#include "executor/matrix.h"
#include "text.h"

namespace sim {
namespace {

/// Eight rows of eight 16-bit elements. In a register, lane l has elements 2 (l % 4) and the next of row l / 4: the 32
/// lanes' words, one behind the other, are the matrix row by row.
using Matrix = std::array<std::array<uint16_t, 8>, 8>;
static_assert(sizeof(Matrix) == 4 * warp_size);

Matrix transposed(const Matrix& m) {
  Matrix result;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) result[i][j] = m[j][i];
  return result;
}

}  // namespace

void Interpreter::matrix_operation(Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  if (mask != all_lanes)
    reports_.report(warp, std::countr_zero(~mask), op,
                    formatted("divergent {}: all 32 lanes of the warp must execute it, and this one {}", op.text,
                              warp.exist >> std::countr_zero(~mask) & 1 ? "has ended" : "does not exist"),
                    Fault::launch_failure);
  switch (op.kind) {
    case Kind::tensor_load:
    case Kind::tensor_store:
    case Kind::tensor_wait:
      tcgen05_.move(warp, op, pc);
      break;
    case Kind::matrix_multiply:
      op.multiply(warp.registers, op);
      break;
    case Kind::matrix_transpose: {
      Matrix m;
      std::memcpy(&m, warp.registers + op.elements[1].offset, sizeof m);
      m = transposed(m);
      std::memcpy(warp.registers + op.elements[0].offset, &m, sizeof m);
      break;
    }
    case Kind::matrix_load:
    case Kind::matrix_store:
      move_matrices(warp, op, pc);
      break;
    default:
      move_fragment(warp, op, pc);
  }
}

/// The addresses of `op`, which are to be of this block's shared memory, as offsets in it.
Addresses Interpreter::shared_addresses(const Warp& warp, const Op& op, Mask mask) {
  Addresses address = addresses(warp, op);
  if (op.space == Space::shared) return address;
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    if (!in_shared_window(address[l]) || &checker_.owner_of(warp, l, op, address[l]) != warp.block)
      reports_.report(warp, l, op, formatted("{:#x} is no address of the block's shared memory", address[l]),
                      Fault::illegal_address);
    address[l] = shared_offset(address[l] - shared_window);
  }
  return address;
}

/// Lanes 8 i to 8 i + 7 hold the addresses of the rows of matrix i.
void Interpreter::move_matrices(Warp& warp, const Op& op, uint32_t pc) {
  const size_t count = op.elements.size();
  const Mask rows = all_lanes >> (warp_size - 8 * count);
  const Addresses address = shared_addresses(warp, op, rows);
  Pattern& pattern = checker_.pattern(pc, 0, Space::shared, rows, address, op.bytes);
  checker_.check_aligned(warp, op, address, op.bytes, pattern);
  checker_.check_shared(warp, op, pc, rows, *warp.block, address, op.bytes, pattern);
  for (size_t i = 0; i < count; ++i) {
    Matrix m;
    std::byte* const registers = warp.registers + op.elements[i].offset;
    if (op.kind == Kind::matrix_load) {
      for (int row = 0; row < 8; ++row)
        std::memcpy(&m[row], warp.block->shared.data() + address[8 * i + row], sizeof m[row]);
      if (op.transposed) m = transposed(m);
      std::memcpy(registers, &m, sizeof m);
    } else {
      std::memcpy(&m, registers, sizeof m);
      if (op.transposed) m = transposed(m);
      for (int row = 0; row < 8; ++row)
        std::memcpy(warp.block->shared.data() + address[8 * i + row], &m[row], sizeof m[row]);
    }
  }
}

void Interpreter::move_fragment(Warp& warp, const Op& op, uint32_t pc) {
  const Fragment& f = *op.fragment;
  Addresses base = addresses(warp, op);
  Space space = op.space;
  if (space == Space::generic) {
    space = in_shared_window(base[0]) ? Space::shared : Space::global;
    if (space == Space::shared) base = shared_addresses(warp, op, all_lanes);
  }
  const uint32_t* stride = reinterpret_cast<const uint32_t*>(warp.registers + op.o.b);
  const int elements = int(f.position[0].size()), registers = elements / f.each;
  const uint32_t alignment = std::min(32U, uint32_t(op.elements.size()) * op.elements[0].bytes);
  for (int l = 1; l < warp_size; ++l)
    if (base[l] != base[0] || stride[l] != stride[0])
      reports_.report(warp, l, op, "an address or a stride that is not the same in all lanes", Fault::launch_failure);
  const uint64_t step = uint64_t{stride[0]} * f.element_bytes;
  if (base[0] % alignment)
    reports_.report(
        warp, 0, op,
        formatted("misaligned address {:#x}: {} bytes at once need a multiple of {}", base[0], alignment, alignment),
        Fault::misaligned);
  if (const uint64_t unit = std::min(16, f.line_bytes); step % unit)
    reports_.report(warp, 0, op, formatted("a stride of {} bytes: it must be a multiple of {}", step, unit),
                    Fault::misaligned);

  const bool is_load = op.kind == Kind::fragment_load;
  std::byte tile[32][128];
  const auto each_element = [&](auto move) {
    for (size_t r = 0; r < op.elements.size(); ++r)
      for (int l = 0; l < warp_size; ++l)
        for (int j = 0; j < f.each; ++j) {
          const Position p = f.position[l][int(r) % registers * f.each + j];
          const int line = f.by_rows ? p.row : p.column, index = f.by_rows ? p.column : p.row;
          move(&tile[line][index * f.element_bytes],
               warp.registers + op.elements[r].offset + l * op.elements[r].bytes + j * f.element_bytes);
        }
  };
  if (!is_load) each_element([&](std::byte* element, std::byte* lane) { std::memcpy(element, lane, f.element_bytes); });
  for (uint32_t part = 0; part < f.accesses.size(); ++part) {
    const Fragment::Access& access = f.accesses[part];
    Addresses address;
    for (int l = 0; l < warp_size; ++l) address[l] = base[0] + access.line[l] * step + access.byte[l];
    Pattern& pattern = checker_.pattern(pc, part, space, all_lanes, address, access.bytes);
    if (space == Space::shared)
      checker_.check_shared(warp, op, pc, all_lanes, *warp.block, address, access.bytes, pattern);
    else
      checker_.check_global(warp, op, pc, all_lanes, address, access.bytes, pattern);
    for (int l = 0; l < warp_size; ++l) {
      std::byte* const memory =
          space == Space::shared ? warp.block->shared.data() + address[l] : reinterpret_cast<std::byte*>(address[l]);
      std::byte* const element = &tile[access.line[l]][access.byte[l]];
      std::memcpy(is_load ? element : memory, is_load ? memory : element, access.bytes);
    }
  }
  if (is_load) each_element([&](std::byte* element, std::byte* lane) { std::memcpy(lane, element, f.element_bytes); });
}

}  // namespace sim
