#include "executor/wgmma_engine.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "executor/matrix_operands.h"
#include "executor/rounding.h"
#include "executor/vectors.h"
#include "text.h"

namespace sim {
namespace {

constexpr uint32_t rows = 64;            ///< of A and D
constexpr uint32_t poison = 0x7fffdead;  ///< a NaN, in FP32 and as two halves

/// 16 bytes of an operand: eight halves or four words.
void to_doubles(NumberType type, __m128i bits, double* values) {
  if (type == NumberType::f32) {  // TF32: the low 13 bits of the fraction are not looked at
    const __m128i cut = _mm_and_si128(bits, _mm_set1_epi32(int(0xffffe000)));
    _mm256_storeu_pd(values, _mm256_cvtps_pd(_mm_castsi128_ps(cut)));
    return;
  }
  const __m256 eight = type == NumberType::f16
                           ? _mm256_cvtph_ps(bits)
                           : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  _mm256_storeu_pd(values, _mm256_cvtps_pd(_mm256_castps256_ps128(eight)));
  _mm256_storeu_pd(values + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1)));
}

uint32_t bytes_of(NumberType type) {
  return type == NumberType::f32 ? 4 : type == NumberType::f16 || type == NumberType::bf16 ? 2 : 1;
}

/// The products' width: columns of B and D that are multiplied at once.
constexpr uint32_t panel = 8;
constexpr uint32_t max_panels = 256 / panel, max_k = 16, rows_at_once = 4;
/// A column's place in its panel: even ones, then odd ones, as D's registers hold them.
constexpr uint32_t place_in_panel(uint32_t column) { return column / 2 + column % 2 * 4; }

/// The operands of one operation.
struct Matrices {
  alignas(64) double a[rows][max_k];
  alignas(64) double b[max_panels][max_k][panel];
};

/// Eight rows of 16 bytes, of eight halves or four words each, become columns: all elements of column 0, of column 1, ...
void transpose(NumberType type, __m128i (&row)[8]) {
  __m128i next[8];
  for (int round = 0; round < 3; ++round) {  // each moves the first bit of an element's place to the end
    for (int i = 0; i < 4; ++i) {
      const __m128i low = row[i], high = row[i + 4];
      next[2 * i] = type == NumberType::f32 ? _mm_unpacklo_epi32(low, high) : _mm_unpacklo_epi16(low, high);
      next[2 * i + 1] = type == NumberType::f32 ? _mm_unpackhi_epi32(low, high) : _mm_unpackhi_epi16(low, high);
    }
    std::copy_n(next, 8, row);
  }
}

/// Rows of a panel of D, from `row` of the warp's 16 and from `column` on: `sum` of products is added, or put there. D lies in
/// `values` register by register (PTX ISA 9.7.15.5.1.1): lanes 4 (row % 8) to 4 (row % 8) + 3 hold two of the columns each, in
/// one register (FP16) or in two.
inline void add_to_d(uint32_t d_bytes, bool add, uint32_t* values, uint32_t row, uint32_t column,
                     const __m256d (&sum)[rows_at_once][2]) {
  const uint32_t lane = row % 8 * 4;
  if (d_bytes == 2) {
    auto* at = reinterpret_cast<__m128i*>(values + (column / 4 + row / 8) * warp_size + lane);
    for (const auto& [even, odd] : sum) {
      const __m256d first = _mm256_unpacklo_pd(even, odd), second = _mm256_unpackhi_pd(even, odd);
      __m256d low = _mm256_permute2f128_pd(first, second, 0x20), high = _mm256_permute2f128_pd(first, second, 0x31);
      if (add) {
        const __m256 old = _mm256_cvtph_ps(_mm_loadu_si128(at));
        low = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(old)), low);
        high = _mm256_add_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(old, 1)), high);
      }
      _mm_storeu_si128(at++, to_halves(low, high));
    }
    return;
  }
  auto* const at = reinterpret_cast<float*>(values + (column / 2 + row / 8 * 2) * warp_size + lane);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < rows_at_once; ++i)
    for (uint32_t odd = 0; odd < 2; ++odd) {
      float* const four = at + odd * warp_size + 4 * i;
      const __m256d old = add ? _mm256_cvtps_pd(_mm_loadu_ps(four)) : _mm256_set1_pd(-0.0);  // x - 0 = x
      _mm_storeu_ps(four, _mm256_cvtpd_ps(_mm256_add_pd(old, sum[i][odd])));
    }
}

}  // namespace

/// One warp issues an operation. The first one of the warpgroup finds out what it will read.
void WgmmaEngine::issue(Warp& warp, const Op& op, uint32_t pc) {
  Warpgroup& group = group_of(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  const int lane = std::countr_zero(warp.live);
  const WgmmaShape shape = WgmmaShape::unpack(op.o.immediate);
  const auto fail = [&](const std::string& what) { reports_.report(warp, lane, op, what, Fault::launch_failure); };
  if (!group.fenced[w])
    fail("a wgmma without wgmma.fence before it: the registers that it reads may not have been written yet");
  const uint64_t a = shape.a_in_registers ? 0 : reinterpret_cast<const uint64_t*>(warp.registers + op.o.a)[lane];
  const uint64_t b = reinterpret_cast<const uint64_t*>(warp.registers + op.o.b)[lane];
  const uint64_t index = group.issued[w]++ - group.first;
  if (index == group.queue.size()) {
    Wgmma one;
    one.op = &op;
    one.pc = pc;
    one.a = a;
    one.b = b;
    one.reader = warp.actor;
    one.time = clocks_.now(warp.actor);
    one.units.reserve((rows + shape.n) * operand_k_bytes / 16);
    const auto begin_read = [&](uint64_t bits, bool k_contiguous, uint32_t extent) {
      const MatrixDescriptor d(bits);
      if (d.base_offset)
        reports_.report(warp, lane, op, "a matrix descriptor with a base offset is not supported", Fault::unsupported);
      for_each_unit(d, k_contiguous, extent, bytes_of(op.type), [&](uint32_t, uint32_t, uint32_t address) {
        if (address + 16 > warp.block->shared.size())
          reports_.report(
              warp, lane, op,
              formatted(
                  "the matrix descriptor {:#018x} reaches {:#x}, outside of the block's {} bytes of shared memory",
                  bits, address, warp.block->shared.size()),
              Fault::illegal_address);
        one.units.push_back(address);
      });
    };
    if (!shape.a_in_registers) begin_read(a, shape.a_k_contiguous, rows);
    begin_read(b, shape.b_k_contiguous, shape.n);
    std::vector<uint32_t> unwritten;  // words
    const auto report = [&](uint32_t word, const SharedMemory::Verdict& verdict) {
      if (verdict.found == SharedMemory::Found::uninitialised)
        unwritten.push_back(word);
      else
        checker_.report_shared(warp, lane, op, word, "read", verdict);
    };
    warp.block->shared.begin_async_reads(one.units, warp.actor, pc, report);
    const size_t of_a = shape.a_in_registers ? 0 : rows * units_per_row;
    if (const auto word = poison_rows(one.units, of_a, shape.a_k_contiguous, shape.b_k_contiguous, bytes_of(op.type),
                                      unwritten, warp.block->shared.data()))
      checker_.report_shared(warp, lane, op, *word, "read", {SharedMemory::Found::uninitialised});
    group.queue.push_back(std::move(one));
  }
  Wgmma& one = group.queue[index];
  if (one.pc != pc || one.a != a || one.b != b)
    fail("the warps of a warpgroup execute different wgmma, or one with different descriptors");
  const Mask add = *reinterpret_cast<const Mask*>(warp.registers + op.o.c) ^ (op.o.flags & flag_not_c ? all_lanes : 0);
  one.add[w] = add >> lane & 1;

  // From now on the registers of D belong to wgmma.
  const size_t registers = shape.n * op.o.d_bytes / 8;
  Accumulators& d = group.accumulators[w][op.elements[0].offset];
  d.op = &op;
  if (d.users++ == 0) {
    ++warp.wgmma_under_way;
    for (size_t i = 0; i < registers; ++i) warp.accumulates[op.elements[i].offset / 32] = true;
    d.values.resize(registers * warp_size);
    for (size_t i = 0; i < registers; ++i) {
      uint32_t* const r = reinterpret_cast<uint32_t*>(warp.registers + op.elements[i].offset);
      std::copy_n(r, warp_size, &d.values[i * warp_size]);
      std::fill_n(r, warp_size, poison);
    }
  } else if (d.values.size() != registers * warp_size) {
    fail("wgmma of different shapes on the same accumulators, without a wait between");
  }
  // The operation needs all four warps, so what each of them did before it happens before its end.
  clocks_.arrive(warp.actor, group.clock);
  for (Warp& other : warp.block->warps)
    if (&group_of(other) == &group && other.state == Warp::waiting &&
        program_.ops[other.waits_at].kind == Kind::wgmma_wait)
      other.state = Warp::ready;
}

/// wait_group: whether the operations of all groups but the last op.o.immediate are complete.
bool WgmmaEngine::wait(Warp& warp, const Op& op) {
  Warpgroup& group = group_of(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  const auto& committed = group.committed[w];
  if (committed.size() <= op.o.immediate) return true;
  const uint64_t end = committed[committed.size() - op.o.immediate - 1];
  if (end > *std::min_element(group.issued.begin(), group.issued.end())) return false;
  for (; group.executed < end; ++group.executed) multiply(warp, group, group.queue[group.executed - group.first]);
  for (; group.waited[w] < end; ++group.waited[w]) {
    const Op& done = *group.queue[group.waited[w] - group.first].op;
    Accumulators& d = group.accumulators[w][done.elements[0].offset];
    if (--d.users) continue;  // a later operation has them
    --warp.wgmma_under_way;
    for (size_t i = 0; i < d.values.size() / warp_size; ++i) {
      const uint32_t offset = done.elements[i].offset;
      std::copy_n(&d.values[i * warp_size], warp_size, reinterpret_cast<uint32_t*>(warp.registers + offset));
      warp.accumulates[offset / 32] = false;
    }
  }
  for (; group.first < *std::min_element(group.waited.begin(), group.waited.end()); ++group.first)
    group.queue.pop_front();
  clocks_.leave(warp.actor, group.clock);
  return true;
}

/// Products are exact in FP64, and so is nearly every sum of 16 of them; with D added, the result is rounded once to D's
/// type. The hardware keeps fewer bits while it adds and truncates (its documentation does not say how), so results differ
/// in the last bits.
void WgmmaEngine::multiply(const Warp& warp, Warpgroup& group, const Wgmma& one) {
  const Op& op = *one.op;
  const WgmmaShape shape = WgmmaShape::unpack(op.o.immediate);
  if (bytes_of(op.type) == 1) return multiply_bytes(warp, group, one);
  const uint32_t element = bytes_of(op.type), k_size = operand_k_bytes / element, n_size = shape.n;
  const uint32_t each = 16 / element;
  Matrices operands;
  auto& [a, b] = operands;
  const uint32_t* unit = one.units.data();
  const auto load = [&] {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(warp.block->shared.data() + *unit++));
  };
  const auto unpack = [&](bool k_contiguous, uint32_t extent, const auto& whole_rows, const auto& put) {
    if (k_contiguous) return whole_rows();
    for (uint32_t k = 0; k < k_size; ++k)
      for (uint32_t i = 0; i < extent; i += each) {
        double values[8];
        to_doubles(op.type, load(), values);
        for (uint32_t e = 0; e < each; ++e) put(i + e, k, values[e]);
      }
  };
  if (!shape.a_in_registers)
    unpack(
        shape.a_k_contiguous, rows,
        [&] {
          for (uint32_t m = 0; m < rows; ++m)
            for (uint32_t k = 0; k < k_size; k += each) to_doubles(op.type, load(), &a[m][k]);
        },
        [&](uint32_t m, uint32_t k, double value) { a[m][k] = value; });
  unpack(
      shape.b_k_contiguous, n_size,
      [&] {
        for (uint32_t p = 0; p < n_size / panel; ++p) {
          __m128i columns[operand_k_bytes / 16][panel];
          for (uint32_t n = 0; n < panel; ++n)
            for (auto& part : columns) part[place_in_panel(n)] = load();
          double* values = b[p][0];
          for (auto& part : columns) {
            transpose(op.type, part);
            for (const __m128i bits : part) to_doubles(op.type, bits, std::exchange(values, values + each));
          }
        }
      },
      [&](uint32_t n, uint32_t k, double value) { b[n / panel][k][place_in_panel(n % panel)] = value; });
  warp.block->shared.end_async_reads(one.units, one.reader, one.pc, one.time);

  const uint32_t first_warp = warp.index / warpgroup_warps * warpgroup_warps;
  // Of A, register r holds lane 4 g + t's one word or two halves of row g + 8 (r % 2), column t or 2 t of the r / 2-th 16
  // bytes of K.
  for (uint32_t w = 0; shape.a_in_registers && w < warpgroup_warps; ++w)
    for (uint32_t r = 0; r < 4; ++r) {
      const Element& from = op.elements[n_size * op.o.d_bytes / 8 + r];
      const auto* const bits =
          reinterpret_cast<const __m128i*>(warp.block->warps[first_warp + w].registers + from.offset);
      for (uint32_t g = 0; g < 8; ++g)
        to_doubles(op.type, _mm_loadu_si128(bits + g), &a[16 * w + g + 8 * (r % 2)][r / 2 * each]);
    }
  if (shape.negate_a != shape.negate_b)
    for (auto& row : a)
      for (double& value : row) value = -value;

  std::array<uint32_t*, warpgroup_warps> d;
  for (uint32_t w = 0; w < warpgroup_warps; ++w) d[w] = group.accumulators[w][op.elements[0].offset].values.data();
  // Of one panel all rows, so that it stays in the cache; so many at once that no sum waits for its last product.
  for (uint32_t column = 0; column < n_size; column += panel)
    for (uint32_t row = 0; row < rows; row += rows_at_once) {
      const uint32_t w = row / 16;
      __m256d products[rows_at_once][2] = {};
      for (uint32_t k = 0; k < k_size; ++k) {
        const double* const factors = b[column / panel][k];
        const __m256d even = _mm256_load_pd(factors), odd = _mm256_load_pd(factors + panel / 2);
#pragma GCC unroll 4
        for (uint32_t i = 0; i < rows_at_once; ++i) {
          const __m256d factor = _mm256_broadcast_sd(&a[row + i][k]);
          products[i][0] = _mm256_fmadd_pd(factor, even, products[i][0]);
          products[i][1] = _mm256_fmadd_pd(factor, odd, products[i][1]);
        }
      }
      __m256d sum[rows_at_once][2];  // of its own: GCC then keeps `products` in registers
      std::memcpy(sum, products, sizeof sum);
      add_to_d(op.o.d_bytes, one.add[w], d[w], row % 16, column, sum);
    }
}

/// PTX ISA 9.7.15.7.1, wgmma.mma_async: nothing but another wgmma of the same shape may use the accumulators before the wait.
void WgmmaEngine::check_accumulators(const Warp& warp, const Op& op, uint32_t pc, Mask mask) {
  for (const uint32_t offset : program_.accumulators[pc]) {
    if (!warp.accumulates[offset / 32]) continue;
    const Warpgroup& group = warp.block->warpgroups[warp.index / warpgroup_warps];
    for (const auto& [first, d] : group.accumulators[warp.index % warpgroup_warps])
      for (size_t i = 0; d.users && i < d.values.size() / warp_size; ++i)
        if (d.op->elements[i].offset == offset)
          reports_.report(warp, std::countr_zero(mask), op,
                          formatted("{} uses an accumulator of {} at {}, which no wgmma.wait_group has waited for",
                                    op.text, d.op->text, reports_.where(*d.op)),
                          Fault::launch_failure);
  }
}

/// Executed by all lanes of a warp together. False: the warp waits.
bool WgmmaEngine::execute(Warp& warp, const Op& op, uint32_t pc) {
  if (warp.live != all_lanes || (warp.index / warpgroup_warps + 1) * warpgroup_warps > warp.block->warps.size())
    reports_.report(warp, std::countr_zero(warp.live), op, "wgmma needs four whole warps, from a multiple of four on",
                    Fault::launch_failure);
  Warpgroup& group = group_of(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  switch (op.kind) {
    case Kind::wgmma_fence:
      group.fenced[w] = true;
      return true;
    case Kind::wgmma_multiply:
      issue(warp, op, pc);
      return true;
    case Kind::wgmma_commit:
      group.committed[w].push_back(group.issued[w]);
      return true;
    default:
      return wait(warp, op);
  }
}

}  // namespace sim
