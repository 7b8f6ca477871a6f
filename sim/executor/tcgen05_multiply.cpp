// The arithmetic of tcgen05.mma.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "executor/rounding.h"
#include "executor/tcgen05_engine.h"

namespace sim {
namespace {

constexpr uint32_t block_rows = 16;  ///< rows of D that are neighbouring lanes in every data path

/// UE4M3 (PTX ISA 5.2.3) has seven bits, the eighth is 0; where it is not, NaN: no value is prescribed.
double scale_factor(uint32_t bits, bool ue4m3) {
  if (ue4m3) return bits > 127 ? NAN : e4m3{uint8_t(bits)}.value();
  return ue8m0{uint8_t(bits)}.value();
}

template <class F>
std::array<double, 256> table_of(const F& value) {
  std::array<double, 256> table;
  for (uint32_t i = 0; i < 256; ++i) table[i] = value(i);
  return table;
}

/// The elements of 16 bytes.
void unpack(OperandFormat format, const std::byte* unit, double* values) {
  static const auto of_e4m3 = table_of([](uint32_t i) { return e4m3{uint8_t(i)}.value(); });
  static const auto of_e5m2 = table_of([](uint32_t i) { return e5m2{uint8_t(i)}.value(); });
  static const auto of_e2m3 = table_of([](uint32_t i) { return e2m3{uint8_t(i & 63)}.value(); });
  static const auto of_e3m2 = table_of([](uint32_t i) { return e3m2{uint8_t(i & 63)}.value(); });
  static const auto of_e2m1 = table_of([](uint32_t i) { return e2m1{uint8_t(i & 15)}.value(); });
  static const auto of_u8 = table_of([](uint32_t i) { return double(i); });
  static const auto of_s8 = table_of([](uint32_t i) { return double(int8_t(i)); });
  const auto each = [&](const std::array<double, 256>& table, uint32_t bits) {
    for (uint32_t i = 0; i < elements_per_unit(format); ++i) {
      uint32_t word = 0;
      std::memcpy(&word, unit + i * bits / 8, i * bits / 8 < 15 ? 2 : 1);
      values[i] = table[word >> i * bits % 8 & ((1U << bits) - 1)];
    }
  };
  switch (format) {
    case OperandFormat::tf32:
      for (uint32_t i = 0; i < 4; ++i) {  // the low 13 bits of the fraction are not looked at
        uint32_t word;
        std::memcpy(&word, unit + 4 * i, 4);
        values[i] = double(std::bit_cast<float>(word & 0xffffe000));
      }
      return;
    case OperandFormat::f16:
    case OperandFormat::bf16: {
      const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(unit));
      const __m256 eight = format == OperandFormat::f16
                               ? _mm256_cvtph_ps(bits)
                               : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
      _mm256_storeu_pd(values, _mm256_cvtps_pd(_mm256_castps256_ps128(eight)));
      _mm256_storeu_pd(values + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1)));
      return;
    }
    case OperandFormat::e4m3:
      return each(of_e4m3, 8);
    case OperandFormat::e5m2:
      return each(of_e5m2, 8);
    case OperandFormat::u8:
      return each(of_u8, 8);
    case OperandFormat::s8:
      return each(of_s8, 8);
    case OperandFormat::e2m3:
      return each(of_e2m3, 6);
    case OperandFormat::e3m2:
      return each(of_e3m2, 6);
    default:
      return each(of_e2m1, 4);
  }
}

}  // namespace

/// As those of wgmma, products are exact in FP64 and so is nearly every sum of them, with scale factors, too; with D added, the result is rounded
/// once to D's type. Integers are exact.
/// How many bits the hardware keeps is not documented, so results differ in the last bits. Of D in FP16, a column's upper half is no number.
void Tcgen05Engine::multiply(TensorWork& work) {
  const MmaOptions options = MmaOptions::unpack(work.op->o.immediate);
  const InstructionDescriptor shape(work.descriptor, options.kind);
  const auto blocks = uint32_t(work.blocks.size());
  const DataPath path{shape.m / blocks, shape.n, blocks == 2, options.weight_stationary};
  const uint32_t m_size = path.m, n_size = shape.n, k_size = shape.k, each = elements_per_unit(shape.a);
  a_.resize(size_t{k_size} * m_size);
  b_.resize(size_t{k_size} * n_size);
  double values[32];
  // Calls put(row, k, value) for each element of an operand in shared memory.
  const auto read = [&](Block& block, const uint32_t* unit, OperandFormat format, bool transposed, bool negated,
                        uint32_t extent, const auto& put) {
    const double sign = negated ? -1 : 1;
    const uint32_t first_end = transposed ? k_size : extent, second_end = transposed ? extent : k_size;
    for (uint32_t i = 0; i < first_end; ++i)
      for (uint32_t j = 0; j < second_end; j += each) {
        unpack(format, block.shared.data() + *unit++, values);
        for (uint32_t e = 0; e < each; ++e)
          transposed ? put(j + e, i, sign * values[e]) : put(i, j + e, sign * values[e]);
      }
  };
  const auto put_a = [&](uint32_t m, uint32_t k, double value) { a_[size_t{k} * m_size + m] = value; };
  for (uint32_t i = 0; i < blocks; ++i)  // each has a part of B's columns
    read(*work.blocks[i], work.units.data() + work.units_of_a, shape.b, shape.transpose_b, shape.negate_b,
         n_size / blocks,
         [&](uint32_t n, uint32_t k, double value) { b_[size_t{i * (n_size / blocks) + n} * k_size + k] = value; });

  if (options.has_zero_columns) {
    const ZeroColumns columns(work.zero_columns, shape.m, n_size);
    for (uint32_t n = 0; n < n_size; ++n)
      if (columns.zero[n]) std::fill_n(&b_[size_t{n} * k_size], k_size, 0.0);
  }

  const bool scaled = has_scale_factors(options.kind);
  for (uint32_t index = 0; index < blocks; ++index) {
    Block& block = *work.blocks[index];
    if (options.a_in_tensor_memory) {
      const double sign = shape.negate_a ? -1 : 1;
      for (uint32_t row = 0; row < m_size; ++row) {
        const uint32_t lane = work.a_lane + path.lane(row);
        uint32_t words[operand_k_bytes / 4];
        for (uint32_t c = 0; c < work.a.columns; ++c) words[c] = block.tensor.column(work.a.column + c)[lane];
        for (uint32_t k = 0; k < k_size; k += each) {
          unpack(shape.a, reinterpret_cast<const std::byte*>(words) + k / each * 16, values);
          for (uint32_t e = 0; e < each; ++e) put_a(row, k + e, sign * values[e]);
        }
      }
    } else {
      read(block, work.units.data(), shape.a, shape.transpose_a, shape.negate_a, m_size, put_a);
    }
    const uint32_t rows = scaled ? 32 : m_size;
    for (uint32_t first_row = 0; first_row < m_size; first_row += rows) {
      if (scaled) apply_scale_factors(work, block, first_row, rows);
      multiply_rows(work, index, first_row, rows);
    }
  }
}

/// Rows of A times their scale factors, and B times those that these rows' quarter of the lanes holds.
void Tcgen05Engine::apply_scale_factors(const TensorWork& work, Block& block, uint32_t first_row, uint32_t rows) {
  const MmaOptions options = MmaOptions::unpack(work.op->o.immediate);
  const InstructionDescriptor shape(work.descriptor, options.kind);
  const uint32_t k_size = shape.k, m_size = shape.m / uint32_t(work.blocks.size());
  const uint32_t elements = k_size / options.scale_factors, quarter = work.d_lane + first_row;
  const auto factor = [&](const TensorRegion& scales, uint32_t i, uint32_t byte) {
    const uint32_t word = block.tensor.column(scales.column + i / 32)[quarter + i % 32];
    return scale_factor(word >> 8 * byte & 0xff, shape.ue4m3);
  };
  for (uint32_t group = 0; group < options.scale_factors; ++group)
    for (uint32_t row = first_row; row < first_row + rows; ++row) {
      const double scale = factor(work.a_scales, row, shape.a_scale_byte + group);
      for (uint32_t k = group * elements; k < (group + 1) * elements; ++k) a_[size_t{k} * m_size + row] *= scale;
    }
  scaled_b_.resize(b_.size());
  for (uint32_t n = 0; n < shape.n; ++n)
    for (uint32_t group = 0; group < options.scale_factors; ++group) {
      const double scale = factor(work.b_scales, n, shape.b_scale_byte + group);
      const size_t first = size_t{n} * k_size + group * elements;
      for (size_t i = first; i < first + elements; ++i) scaled_b_[i] = b_[i] * scale;
    }
}

/// Some rows of D in one of the blocks.
void Tcgen05Engine::multiply_rows(const TensorWork& work, uint32_t index, uint32_t first_row, uint32_t rows) {
  const MmaOptions options = MmaOptions::unpack(work.op->o.immediate);
  const InstructionDescriptor shape(work.descriptor, options.kind);
  const auto blocks = uint32_t(work.blocks.size());
  const DataPath path{shape.m / blocks, shape.n, blocks == 2, options.weight_stationary};
  const std::vector<double>& b = has_scale_factors(options.kind) ? scaled_b_ : b_;
  const double scale = std::ldexp(1.0, -int(options.scale));
  // Of two columns 16 rows at once: no sum waits for its last product.
  for (uint32_t n = 0; n < shape.n; n += 2)
    for (uint32_t row = first_row; row < first_row + rows; row += block_rows) {
      __m256d products[2][4] = {};
      const double* const factors = &b[size_t{n} * shape.k];
      for (uint32_t k = 0; k < shape.k; ++k) {
        const double* const a = &a_[size_t{k} * path.m + row];
        const __m256d even = _mm256_broadcast_sd(factors + k), odd = _mm256_broadcast_sd(factors + shape.k + k);
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; ++i) {
          const __m256d four = _mm256_loadu_pd(a + 4 * i);
          products[0][i] = _mm256_fmadd_pd(four, even, products[0][i]);
          products[1][i] = _mm256_fmadd_pd(four, odd, products[1][i]);
        }
      }
      alignas(32) double sums[2][block_rows];
      std::memcpy(sums, products, sizeof sums);
      const auto [lane, column] = path.place(row, n);
      const uint32_t first = work.d_lane + lane;
      const uint32_t disabled = work.disabled[4 * index + first / 32] >> first % 32 & 0xffff;
      for (uint32_t odd = 0; odd < 2; ++odd) {
        uint32_t* const d = work.blocks[index]->tensor.column(work.d[index].column + column + odd) + first;
        for (uint32_t i = 0; i < block_rows; ++i) {
          if (disabled >> i & 1) continue;
          double sum = sums[odd][i];
          if (options.kind == MmaKind::i8) {
            const int64_t whole = int64_t(sum) + (work.add ? int32_t(d[i]) : 0);
            d[i] = uint32_t(shape.saturate ? std::clamp<int64_t>(whole, INT32_MIN, INT32_MAX) : whole);
          } else if (shape.f16_result) {
            if (work.add) sum += f16{uint16_t(d[i])}.value() * scale;
            d[i] = f16::from(sum).bits | 0x7fff0000;
          } else {
            if (work.add) sum += double(std::bit_cast<float>(d[i])) * scale;
            d[i] = std::bit_cast<uint32_t>(float(sum));
          }
        }
      }
    }
}

}  // namespace sim
