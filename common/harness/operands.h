// Device buffers of one problem shape, and what fills them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/cli/shapes.h"
#include "common/harness/group_rows.h"
#include "common/types.h"

namespace ladder {

enum class Init {
  normal,   ///< standard normal; of E4M3 times 64, and C times 64 * 64
  uniform,  ///< -1 to 1; likewise
  integer,  ///< whole numbers from -4 to 4: sums are exact in FP32 up to K = 2^20
  zeros,
};

/// Device memory that frees itself. Throws CudaError.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes = 0);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// A value of OperandSpec::ld_pad: each leading dimension is rounded up to a multiple of 16 bytes instead.
inline constexpr int ld_align = -1;

/// As visit() with `out`, but C is what lies in memory: E4M3 where an epilogue quantises.
template <class F>
auto visit_stored(Type type, Out out, const Epilogue& epilogue, F&& f) {
  return visit(AllTypes{}, type, out, [&]<Type row, class Result>() {
    return epilogue.quantise ? f.template operator()<row, __nv_fp8_e4m3>() : f.template operator()<row, Result>();
  });
}

/// What identifies the contents of the buffers.
struct OperandSpec {
  Shape shape;
  Type type;
  Out out;
  MatrixLayout layout_a, layout_b;
  int ld_pad;  ///< elements added to each leading dimension, or ld_align
  Init init;
  uint64_t seed;
  Scales scales = Scales::none;
  int groups = 0;
  GroupRows group_rows = GroupRows::equal;
  Epilogue epilogue = {};
  bool operator==(const OperandSpec&) const = default;
  /// How many rows A and B, of all groups, are stored in, of which length.
  int rows_a() const { return layout_a == MatrixLayout::row_major ? shape.m : shape.k; }
  int columns_a() const { return layout_a == MatrixLayout::row_major ? shape.k : shape.m; }
  int rows_b() const { return (groups > 0 ? groups : 1) * (layout_b == MatrixLayout::row_major ? shape.k : shape.n); }
  int columns_b() const { return layout_b == MatrixLayout::row_major ? shape.n : shape.k; }
  int lda() const { return padded(columns_a(), vector_of_operands(), facts(type).per_byte); }
  int ldb() const { return padded(columns_b(), vector_of_operands(), facts(type).per_byte); }
  int ldc() const { return padded(shape.n, 16 / c_bytes(), 1); }
  /// Of an element of C, which an epilogue may quantise.
  int c_bytes() const { return epilogue.quantise ? 1 : result_bytes(type, out); }
  /// Scales of C: for how many blocks of columns. Of rows each block has Problem::scale_c_ld().
  int scale_blocks() const { return epilogue.quantise ? (shape.n + 127) / 128 : 0; }

  /// How many floats the scales of B, of all groups, take.
  size_t scale_floats_b() const;

  /// Problem::first_row on the host; empty where there are no groups.
  std::vector<int> first_rows() const;

  /// The problem without its data: all but the pointers.
  Problem problem(float alpha, float beta) const;

 private:
  int vector_of_operands() const { return 16 / facts(type).bytes * facts(type).per_byte; }  // elements in 16 bytes
  /// A whole number of vectors, or of bytes.
  int padded(int columns, int vector, int per_byte) const {
    const int least = ld_pad == ld_align ? columns : columns + ld_pad, step = ld_pad == ld_align ? vector : per_byte;
    return (least + step - 1) / step * step;
  }
};

/// `sets` independent copies of A, B and C, each with data of its own, laid out one after another; a measurement that
/// walks through them finds none of its data in L2. Row padding of A and B holds NaN. Around and between the copies of
/// C, and of its scales, lie guard bands. Scales of A and B are positive and random, with blocks from 2^-6 to 2^-5, else from 2^-7 to 2^-4, of
/// 16 significant bits: in FP32 their product with an operand of up to 8 bits is exact. Their padding holds NaN. Those of mx and nv are from
/// 2^-7 to 2^-5, and their padding is 0, as tensor cores and cuBLASLt need it.
class Operands {
 public:
  Operands(const OperandSpec& spec, int sets);

  /// Bytes of device memory that Operands(spec, sets) allocates.
  static size_t bytes(const OperandSpec& spec, int sets);

  const OperandSpec& spec() const { return spec_; }
  int sets() const { return sets_; }
  Problem problem(int set, float alpha, float beta, cudaStream_t stream) const;

  /// Writes C of one set anew: random values, or NaN where `poison`; its padding and guard bands get a pattern that
  /// guard_violations() looks for.
  void fill_c(int set, bool poison, cudaStream_t stream);

  /// Elements of C's padding and guard bands that changed since fill_c.
  size_t guard_violations(int set, cudaStream_t stream) const;

 private:
  size_t stride_a() const;
  size_t stride_b() const;
  size_t stride_c() const;
  size_t stride_scale_c() const;
  OperandSpec spec_;
  int sets_;
  DeviceBuffer a_, b_, c_, scale_a_, scale_b_, first_row_;
  DeviceBuffer bias_, b_gate_, scale_c_;  // of an epilogue; one bias for all sets
};

}  // namespace ladder
