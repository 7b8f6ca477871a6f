// wgmma and setmaxnreg.
#include "sim/executor/wgmma.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/text.h"
#include "sim/executor/cluster.h"
#include "sim/executor/rounding.h"
#include "sim/executor/tensor_map.h"

namespace sim {
namespace {

constexpr uint32_t rows = 64;             ///< of A and D
constexpr uint32_t operand_k_bytes = 32;  ///< of one row of A or column of B: K is 16 halves or 8 words
constexpr uint32_t poison = 0x7fffdead;   ///< a NaN, in FP32 and as two halves

using Matrix = std::vector<double>;

double to_double(NumberType type, const std::byte* at) {
  uint16_t half;
  uint32_t word;
  std::memcpy(&half, at, 2);
  switch (type) {
    case NumberType::f16:
      return double(std::bit_cast<_Float16>(half));
    case NumberType::bf16:
      return double(std::bit_cast<float>(uint32_t{half} << 16));
    default:  // TF32: the low 13 bits of the fraction are not looked at
      std::memcpy(&word, at, 4);
      return double(std::bit_cast<float>(word & 0xffffe000));
  }
}

uint32_t bytes_of(NumberType type) { return type == NumberType::f32 ? 4 : 2; }

/// Of D, and of A in registers: the row in the warp's 16 and the column of element `i` of a lane (PTX ISA 9.7.15.5.1.1).
constexpr uint32_t fragment_row(uint32_t lane, uint32_t i) { return lane / 4 + 8 * (i / 2 % 2); }
constexpr uint32_t fragment_column(uint32_t lane, uint32_t i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

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
        for (uint32_t word = address / 4; word < address / 4 + 4; ++word) {
          const auto verdict = shared_.begin_async_read(word, warp.actor, pc);
          if (verdict.found != SharedMemory::Found::nothing) report_shared(warp, lane, op, word, "read", verdict);
          if (!shared_.visible_to_async(word, warp.actor)) report_unfenced(warp, lane, op, word);
          one.words.push_back(word);
        }
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
  if (d.users++ == 0) {
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
    for (size_t i = 0; i < d.values.size() / warp_size; ++i)
      std::copy_n(&d.values[i * warp_size], warp_size,
                  reinterpret_cast<uint32_t*>(warp.registers + done.elements[i].offset));
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
  const uint32_t element = bytes_of(op.type), k_size = operand_k_bytes / element, n_size = shape.n;
  Matrix a(rows * k_size), b(k_size * n_size);  // a[m][k], b[k][n]
  const auto read = [&](uint64_t bits, bool k_contiguous, uint32_t extent, bool negate, const auto& put) {
    for_each_unit(MatrixDescriptor(bits), k_contiguous, extent, element, [&](uint32_t i, uint32_t k, uint32_t address) {
      for (uint32_t e = 0; e < 16 / element; ++e) {
        const double value = to_double(op.type, shared_.data() + address + e * element);
        put(k_contiguous ? i : i + e, k_contiguous ? k + e : k, negate ? -value : value);
      }
    });
  };
  read(one.b, shape.b_k_contiguous, n_size, shape.negate_b,
       [&](uint32_t n, uint32_t k, double value) { b[k * n_size + n] = value; });
  if (!shape.a_in_registers)
    read(one.a, shape.a_k_contiguous, rows, shape.negate_a,
         [&](uint32_t m, uint32_t k, double value) { a[m * k_size + k] = value; });
  for (const uint32_t word : one.words) shared_.end_async_read(word, one.reader, one.pc, one.time);

  const uint32_t first_warp = warp.index / warpgroup_warps * warpgroup_warps;
  Matrix sum(n_size);
  for (uint32_t w = 0; w < warpgroup_warps; ++w) {
    Warp& owner = warps_[first_warp + w];
    const size_t d_registers = n_size * op.o.d_bytes / 8;
    if (shape.a_in_registers)
      for (uint32_t l = 0; l < warp_size; ++l)
        for (uint32_t i = 0; i < 4 * 4 / element; ++i) {
          // Four registers: of one word each, or of two halves.
          const uint32_t r = i * element / 4;
          const std::byte* const at = owner.registers + op.elements[d_registers + r].offset + l * 4 + i * element % 4;
          const uint32_t m = 16 * w + l / 4 + 8 * (r % 2);
          const uint32_t k = element == 2 ? l % 4 * 2 + i % 2 + 8 * (r / 2) : l % 4 + 4 * (r / 2);
          a[m * k_size + k] = (shape.negate_a ? -1 : 1) * to_double(op.type, at);
        }
    Accumulators& d = group.accumulators[w][op.elements[0].offset];
    for (uint32_t row = 0; row < 16; ++row) {
      std::fill(sum.begin(), sum.end(), 0);
      for (uint32_t k = 0; k < k_size; ++k) {
        const double factor = a[(16 * w + row) * k_size + k];
        const double* const b_row = &b[k * n_size];
        for (uint32_t n = 0; n < n_size; ++n) sum[n] += factor * b_row[n];
      }
      for (uint32_t l = row % 8 * 4; l < row % 8 * 4 + 4; ++l)
        for (uint32_t i = row / 8 * 2; i < n_size / 2; i += i % 2 ? 3 : 1) {
          const double product = sum[fragment_column(l, i)];
          if (op.o.d_bytes == 4) {
            float& value = reinterpret_cast<float&>(d.values[i * warp_size + l]);
            value = float(one.add[w] ? double(value) + product : product);
          } else {
            uint16_t* const half = reinterpret_cast<uint16_t*>(&d.values[i / 2 * warp_size + l]) + i % 2;
            *half = f16::from(one.add[w] ? f16{*half}.value() + product : product).bits;
          }
        }
    }
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
