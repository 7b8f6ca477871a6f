// wgmma and setmaxnreg.
#include "sim/executor/wgmma.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/text.h"
#include "sim/executor/cluster.h"
#include "sim/executor/rounding.h"
#include "sim/executor/tensor_map.h"
#include "sim/executor/vectors.h"

namespace sim {
namespace {

constexpr uint32_t rows = 64;             ///< of A and D
constexpr uint32_t operand_k_bytes = 32;  ///< of one row of A or column of B: K is 32 bytes, 16 halves or 8 words
constexpr uint32_t poison = 0x7fffdead;   ///< a NaN, in FP32 and as two halves

/// 16 bytes of an operand: eight halves or four words.
void to_doubles(NumberType type, const std::byte* at, double* values) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
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

constexpr uint32_t max_n = 256, max_k = 16;

/// The operands of one operation.
struct Matrices {
  alignas(32) double a[rows][max_k];
  alignas(32) double b[max_k][max_n];
};

/// Eight neighbours of row `row` of the warp's 16 rows of D, from column `column` on: products `low` (columns 0 to 3) and
/// `high`. D lies in `values` register by register (PTX ISA 9.7.15.5.1.1): lanes 4 (row % 8) to 4 (row % 8) + 3 hold two of
/// the columns each, in one register (FP16) or in two.
void add_to_d(uint32_t d_bytes, bool add, uint32_t* values, uint32_t row, uint32_t column, __m256d low, __m256d high) {
  const uint32_t lane = row % 8 * 4;
  if (d_bytes == 2) {
    auto* const at = reinterpret_cast<__m128i*>(values + (column / 4 + row / 8) * warp_size + lane);
    if (add) {
      const __m256 old = _mm256_cvtph_ps(_mm_loadu_si128(at));
      low = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(old)), low);
      high = _mm256_add_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(old, 1)), high);
    }
    _mm_storeu_si128(at, to_halves(low, high));
    return;
  }
  // Even columns in one register, odd ones in the next.
  const auto put = [&](uint32_t odd, __m256d sum) {
    auto* const at = reinterpret_cast<float*>(values + (column / 2 + row / 8 * 2 + odd) * warp_size + lane);
    if (add) sum = _mm256_add_pd(_mm256_cvtps_pd(_mm_loadu_ps(at)), sum);
    _mm_storeu_ps(at, _mm256_cvtpd_ps(sum));
  };
  put(0, _mm256_permute4x64_pd(_mm256_unpacklo_pd(low, high), _MM_SHUFFLE(3, 1, 2, 0)));
  put(1, _mm256_permute4x64_pd(_mm256_unpackhi_pd(low, high), _MM_SHUFFLE(3, 1, 2, 0)));
}

}  // namespace

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(uint32_t(bits & 0x3fff) << 4),
      leading(uint32_t(bits >> 16 & 0x3fff) << 4),
      stride(uint32_t(bits >> 32 & 0x3fff) << 4),
      base_offset(uint32_t(bits >> 49 & 7)) {
  constexpr uint32_t spans[] = {0, 128, 64, 32};
  swizzle = spans[bits >> 62];
}

/// PTX ISA 9.7.15.5.1, "Strides" and "Canonical layouts". Rows of the swizzle's span (of 16 bytes where there is none) lie
/// in groups of 8, one behind the other; the swizzle works on the address.
uint32_t MatrixDescriptor::address(bool k_contiguous, uint32_t i, uint32_t j) const {
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

Warpgroup& Block::warpgroup(const Warp& warp) { return warpgroups_[warp.index / warpgroup_warps]; }

namespace {

/// Calls f(row of M or N, column of K, address, elements) for each 16 bytes of an operand; elements lie along K where K is
/// contiguous, else along M or N.
template <class F>
void for_each_unit(const MatrixDescriptor& d, bool k_contiguous, uint32_t extent, uint32_t element_bytes, const F& f) {
  const uint32_t each = 16 / element_bytes, k = operand_k_bytes / element_bytes;
  if (k_contiguous)
    for (uint32_t i = 0; i < extent; ++i)
      for (uint32_t j = 0; j < operand_k_bytes / 16; ++j) f(i, j * each, d.address(true, i, j));
  else
    for (uint32_t j = 0; j < k; ++j)
      for (uint32_t i = 0; i < extent / each; ++i) f(i * each, j, d.address(false, i, j));
}

}  // namespace

/// One warp issues an operation. The first one of the warpgroup finds out what it will read.
void Block::issue_wgmma(Warp& warp, const Op& op, uint32_t pc) {
  Warpgroup& group = warpgroup(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  const int lane = std::countr_zero(warp.live);
  const WgmmaShape shape = WgmmaShape::unpack(op.o.immediate);
  const auto fail = [&](const std::string& what) { report(warp, lane, op, what, Fault::launch_failure); };
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
    SharedMemory::Passed passed;
    const auto begin_read = [&](uint64_t bits, bool k_contiguous, uint32_t extent) {
      const MatrixDescriptor d(bits);
      if (d.base_offset)
        report(warp, lane, op, "a matrix descriptor with a base offset is not supported", Fault::unsupported);
      for_each_unit(d, k_contiguous, extent, bytes_of(op.type), [&](uint32_t, uint32_t, uint32_t address) {
        if (address + 16 > shared_.size())
          report(warp, lane, op,
                 ladder::formatted(
                     "the matrix descriptor {:#018x} reaches {:#x}, outside of the block's {} bytes of shared memory",
                     bits, address, shared_.size()),
                 Fault::illegal_address);
        SharedMemory::Verdict verdict;
        for (int i = 0; (i += shared_.begin_async_reads(address / 4 + i, 4 - i, warp.actor, pc, passed, verdict)) < 4;
             ++i) {
          report_shared(warp, lane, op, address / 4 + uint32_t(i), "read", verdict);
          shared_.begin_async_read(address / 4 + uint32_t(i), warp.actor, pc, 0xf, true);
        }
        one.units.push_back(address);
      });
    };
    if (!shape.a_in_registers) begin_read(a, shape.a_k_contiguous, rows);
    begin_read(b, shape.b_k_contiguous, shape.n);
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
  // The operation needs all four warps, so when it is complete, each knows what the others did before it.
  clocks_.arrive(warp.actor, group.known);
  for (Warp& other : warps_)
    if (&warpgroup(other) == &group && other.state == Warp::waiting &&
        program_.ops[other.waits_at].kind == Kind::wgmma_wait)
      other.state = Warp::ready;
}

/// wait_group: whether the operations of all groups but the last op.o.immediate are complete.
bool Block::wait_wgmma(Warp& warp, const Op& op) {
  Warpgroup& group = warpgroup(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  const auto& committed = group.committed[w];
  if (committed.size() <= op.o.immediate) return true;
  const uint64_t end = committed[committed.size() - op.o.immediate - 1];
  if (end > *std::min_element(group.issued.begin(), group.issued.end())) return false;
  for (; group.executed < end; ++group.executed) execute_wgmma(warp, group, group.queue[group.executed - group.first]);
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
  clocks_.leave(warp.actor, group.known);
  return true;
}

/// Products are exact in FP64, and so is nearly every sum of 16 of them; with D added, the result is rounded once to D's
/// type. The hardware keeps fewer bits while it adds and truncates (its documentation does not say how), so results differ
/// in the last bits.
void Block::execute_wgmma(const Warp& warp, Warpgroup& group, const Wgmma& one) {
  const Op& op = *one.op;
  const WgmmaShape shape = WgmmaShape::unpack(op.o.immediate);
  if (bytes_of(op.type) == 1) return execute_wgmma_bytes(warp, group, one);
  const uint32_t element = bytes_of(op.type), k_size = operand_k_bytes / element, n_size = shape.n;
  Matrices operands;
  auto& [a, b] = operands;
  const auto read = [&](uint64_t bits, bool k_contiguous, uint32_t extent, bool negate, const auto& put) {
    for_each_unit(MatrixDescriptor(bits), k_contiguous, extent, element, [&](uint32_t i, uint32_t k, uint32_t address) {
      double values[8];
      to_doubles(op.type, shared_.data() + address, values);
      for (uint32_t e = 0; e < 16 / element; ++e)
        put(k_contiguous ? i : i + e, k_contiguous ? k + e : k, negate ? -values[e] : values[e]);
    });
  };
  read(one.b, shape.b_k_contiguous, n_size, shape.negate_b,
       [&](uint32_t n, uint32_t k, double value) { b[k][n] = value; });
  if (!shape.a_in_registers)
    read(one.a, shape.a_k_contiguous, rows, shape.negate_a,
         [&](uint32_t m, uint32_t k, double value) { a[m][k] = value; });
  for (const uint32_t unit : one.units) shared_.end_async_reads(unit / 4, 4, one.reader, one.pc, one.time);

  const uint32_t first_warp = warp.index / warpgroup_warps * warpgroup_warps;
  for (uint32_t w = 0; w < warpgroup_warps; ++w) {
    const Warp& owner = warps_[first_warp + w];
    const size_t d_registers = n_size * op.o.d_bytes / 8;
    // Of A, register r holds lane 4 g + t's one word or two halves of row g + 8 (r % 2), column t or 2 t of the r / 2-th 16
    // bytes of K.
    for (uint32_t r = 0; shape.a_in_registers && r < 4; ++r)
      for (uint32_t g = 0; g < 8; ++g) {
        double values[8];
        to_doubles(op.type, owner.registers + op.elements[d_registers + r].offset + g * 16, values);
        for (uint32_t e = 0; e < 16 / element; ++e)
          a[16 * w + g + 8 * (r % 2)][r / 2 * (16 / element) + e] = shape.negate_a ? -values[e] : values[e];
      }
    Accumulators& d = group.accumulators[w][op.elements[0].offset];
    // Four rows and eight columns at a time: the sums stay in registers.
    for (uint32_t row = 0; row < 16; row += 4)
      for (uint32_t n = 0; n < n_size; n += 8) {
        __m256d low[4], high[4];
        for (uint32_t i = 0; i < 4; ++i) low[i] = high[i] = _mm256_setzero_pd();
        for (uint32_t k = 0; k < k_size; ++k) {
          const __m256d b_low = _mm256_load_pd(&b[k][n]), b_high = _mm256_load_pd(&b[k][n + 4]);
#pragma GCC unroll 4
          for (uint32_t i = 0; i < 4; ++i) {
            const __m256d factor = _mm256_broadcast_sd(&a[16 * w + row + i][k]);
            low[i] = _mm256_fmadd_pd(factor, b_low, low[i]);
            high[i] = _mm256_fmadd_pd(factor, b_high, high[i]);
          }
        }
        for (uint32_t i = 0; i < 4; ++i)
          add_to_d(op.o.d_bytes, one.add[w], d.values.data(), row + i, n, low[i], high[i]);
      }
  }
}

/// PTX ISA 9.7.15.7.1, wgmma.mma_async: nothing but another wgmma of the same shape may use the accumulators before the wait.
void Block::check_accumulators(const Warp& warp, const Op& op, uint32_t pc, Mask mask) const {
  for (const uint32_t offset : program_.accumulators[pc]) {
    if (!warp.accumulates[offset / 32]) continue;
    const Warpgroup& group = warpgroups_[warp.index / warpgroup_warps];
    for (const auto& [first, d] : group.accumulators[warp.index % warpgroup_warps])
      for (size_t i = 0; d.users && i < d.values.size() / warp_size; ++i)
        if (d.op->elements[i].offset == offset)
          report(warp, std::countr_zero(mask), op,
                 ladder::formatted("{} uses an accumulator of {} at {}, which no wgmma.wait_group has waited for",
                                   op.text, d.op->text, where(*d.op)),
                 Fault::launch_failure);
  }
}

/// Executed by all lanes of a warp together. False: the warp waits.
bool Block::wgmma(Warp& warp, const Op& op, uint32_t pc) {
  if (warp.live != all_lanes || (warp.index / warpgroup_warps + 1) * warpgroup_warps > warps_.size())
    report(warp, std::countr_zero(warp.live), op, "wgmma needs four whole warps, from a multiple of four on",
           Fault::launch_failure);
  Warpgroup& group = warpgroup(warp);
  const uint32_t w = warp.index % warpgroup_warps;
  switch (op.kind) {
    case Kind::wgmma_fence:
      group.fenced[w] = true;
      return true;
    case Kind::wgmma_multiply:
      issue_wgmma(warp, op, pc);
      return true;
    case Kind::wgmma_commit:
      group.committed[w].push_back(group.issued[w]);
      return true;
    default:
      return wait_wgmma(warp, op);
  }
}

/// PTX ISA 9.7.18, setmaxnreg. Registers that a warp gives up go to its block's pool. A warp that finds too few
/// there waits.
bool Block::set_registers(Warp& warp, const Op& op) {
  const int lane = std::countr_zero(warp.live);
  const uint32_t wanted = op.o.immediate;
  if (!program_.registers)
    report(
        warp, lane, op,
        "setmaxnreg in a kernel whose number of registers is not known when it starts: it needs .maxnreg, or .maxntid "
        "(__launch_bounds__)",
        Fault::launch_failure);
  if (op.kind == Kind::give_registers ? wanted > warp.registers_held : wanted < warp.registers_held)
    report(warp, lane, op,
           ladder::formatted("setmaxnreg to {} registers, but the warp has {} per thread", wanted, warp.registers_held),
           Fault::launch_failure);
  if (op.kind == Kind::take_registers) {
    const uint32_t missing = wanted - warp.registers_held;
    if (missing > free_registers_) return false;
    free_registers_ -= missing;
  } else {
    free_registers_ += warp.registers_held - wanted;
    for (Warp& other : warps_)
      if (other.state == Warp::waiting && program_.ops[other.waits_at].kind == Kind::take_registers)
        other.state = Warp::ready;
  }
  warp.registers_held = wanted;
  return true;
}

}  // namespace sim
