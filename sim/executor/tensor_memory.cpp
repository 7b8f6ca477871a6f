#include "executor/tensor_memory.h"

#include <cstring>

namespace sim {

void TensorMemory::reset() {
  std::fill(cells_.begin(), cells_.end(), Cell{});
  allocations_.clear();
}

std::optional<uint32_t> TensorMemory::allocate(const Allocation& allocation) {
  uint32_t column = 0;
  for (const auto& [first, other] : allocations_) {
    if (first - column >= allocation.columns) break;
    column = first + other.columns;
  }
  if (column + allocation.columns > columns) return {};
  allocations_[column] = allocation;
  return column;
}

void TensorMemory::free(uint32_t column) {
  const auto found = allocations_.find(column);
  std::fill_n(&cell(column, 0), size_t{found->second.columns} * TensorRegion::groups, Cell{});
  allocations_.erase(found);
}

bool TensorMemory::is_allocated(uint32_t column) const {
  const auto after = allocations_.upper_bound(column);
  return after != allocations_.begin() && column < std::prev(after)->first + std::prev(after)->second.columns;
}

uint32_t TensorMemory::free_columns() const {
  uint32_t left = columns;
  for (const auto& [first, allocation] : allocations_) left -= allocation.columns;
  return left;
}

void TensorMemory::begin_write(const TensorRegion& region, uint32_t op, uint32_t thread) {
  for_each_cell(region, [&](Cell& cell, uint32_t, uint32_t group) {
    ++cell.writes_under_way;
    cell.write_op = op;
    cell.write_thread = thread;
    cell.written |= region.lanes[group];
  });
}

void TensorMemory::end_write(const TensorRegion& region, const TensorAccess& access) {
  for_each_cell(region, [&](Cell& cell, uint32_t, uint32_t) {
    --cell.writes_under_way;
    cell.write = access;
    cell.was_written = true;
    cell.reads = 0;
  });
}

void TensorMemory::begin_read(const TensorRegion& region, uint32_t op, uint32_t thread) {
  for_each_cell(region, [&](Cell& cell, uint32_t, uint32_t) {
    ++cell.reads_under_way;
    cell.read_op = op;
    cell.read_thread = thread;
  });
}

/// Of each actor the last read counts; of more actors than fit, the oldest read is forgotten.
void TensorMemory::end_read(const TensorRegion& region, const TensorAccess& access) {
  for_each_cell(region, [&](Cell& cell, uint32_t, uint32_t) {
    --cell.reads_under_way;
    for (uint8_t i = 0; i < cell.reads; ++i)
      if (cell.read[i].actor == access.actor) {
        cell.read[i] = access;
        return;
      }
    if (cell.reads == Cell::most_reads) {
      std::move(cell.read.begin() + 1, cell.read.end(), cell.read.begin());
      --cell.reads;
    }
    cell.read[cell.reads++] = access;
  });
}

/// PTX ISA 9.7.16.2.3.1, "Memory Layout": its figures. CUTLASS describes the same maps (Copy_Traits of SM100_TMEM_LOAD_*).
TensorMove::Place TensorMove::place(uint32_t t, uint32_t r) const {
  Place at;
  switch (shape) {
    case TensorShape::s32x32b:
      at = {t, r};
      break;
    case TensorShape::s16x32bx2:
      at = {t % 16, r};
      break;
    case TensorShape::s16x64b:
      at = {t / 4 + t % 2 * 8, 2 * r + t / 2 % 2};
      break;
    case TensorShape::s16x128b:
      at = {t / 4 + r % 2 * 8, r / 2 * 4 + t % 4};
      break;
    case TensorShape::s16x256b:
      at = {t / 4 + r / 2 % 2 * 8, r / 4 * 8 + t % 4 * 2 + r % 2};
      break;
  }
  if (packed) at.column *= 2;
  if (shape == TensorShape::s16x32bx2) at.column += t / 16 * split;
  return at;
}

uint32_t TensorMove::columns(uint32_t registers) const {
  const uint32_t per_lane = registers * (warp_size / lanes()) / (shape == TensorShape::s16x32bx2 ? 2 : 1);
  return per_lane * (packed ? 2 : 1) + (shape == TensorShape::s16x32bx2 ? split : 0);
}

}  // namespace sim
