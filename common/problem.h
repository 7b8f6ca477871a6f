// The problem every rung solves:   D = alpha * A * B + beta * C,   D written over C, as BLAS has it.
//
//        k ->                n ->                       n ->
//      +--------+          +-----------+             +-----------+
//    m |   A    |  lda   k |     B     |  ldb      m |     C     |  ldc
//      | M x K  |          |  row_major|             |   M x N   |
//      +--------+          +-----------+             +-----------+
//      row-major           K x N, CUDA-core rungs    row-major
//                          k ->
//                          +--------+
//                        n |   B    |  ldb           col_major ("TN"): each column of B is contiguous,
//                          | N x K  |                which is how tensor-core rungs take it
//                          +--------+
//
// A leading dimension is the distance, in elements, from one stored row to the next. A buffer holds whole rows:
// rows * ld elements, the padding of the last row included, so a 16-byte load that starts inside a row whose ld is
// a multiple of 16 bytes stays inside the buffer. The padding never holds a defined number (the harness puts NaN
// there), and a rung must leave it as it is. Some rungs take A, too, by columns (layout_a): it is stored as K rows of M.
#pragma once

#include <cuda_runtime.h>

namespace ladder {

/// How operands lie in memory and how they are rounded.
enum class Type {
  f32,   ///< FP32 on the CUDA cores
  tf32,  ///< FP32 in memory, rounded to TF32 (10-bit mantissa) for the tensor cores
  bf16,  ///< BF16 on the tensor cores
  f16,   ///< FP16 on the tensor cores
  e4m3,  ///< FP8 of 4 exponent and 3 mantissa bits on the tensor cores
  e5m2,  ///< the same for B; A is FP8 of 5 exponent and 2 mantissa bits, as gradients are in training
  e2m1,  ///< FP4 of 2 exponent and 1 mantissa bit, two in a byte, on the tensor cores
};

/// Type of C and D.
enum class Out {
  f32,   ///< FP32
  same,  ///< the operand's type (FP32 for f32 and tf32, BF16 for FP8 and FP4, whose bits are too few for a sum)
};

/// In what products are added: FP32, where a rung does not say otherwise. fp22 is FP32 of which an instruction keeps 13 bits below its
/// largest term; promoted is FP22 over 128 products at most, and FP32 over these sums (bound.h).
enum class Sum { fp32, fp16, fp22, promoted };

/// How a matrix is stored: its rows, or its columns, one after another; see the picture above.
enum class MatrixLayout { row_major, col_major };

/// What the numbers of A and B are multiplied by, in FP32 but for mx: a type of few bits holds a number divided by its scale (scales.h).
enum class Scales {
  none,
  tensor,  ///< one for A, one for B
  rows,    ///< one for each row of A, one for each column of B
  blocks,  ///< of A one for 128 neighbours along k; of B one for 128 along k and 128 columns
  mx,      ///< of both one for 32 neighbours along k, a power of 2 in 8 bits (UE8M0), as MXFP8 has them
  nv,      ///< of both one for 16 neighbours along k, in E4M3 without its sign, as NVFP4 has them
};

/// What is applied to a result x = alpha * (A * B) + bias before beta * C is added.
enum class Activation { none, gelu, silu };

/// What a rung does to results before it stores them: D = activation(alpha * A * B + bias) * gate + beta * C.
struct Epilogue {
  bool bias = false;  ///< one for each column of C
  Activation activation = Activation::none;
  bool gate = false;      ///< times alpha * A * (another B)
  bool quantise = false;  ///< stored in E4M3, with a scale for 128 neighbours in a row, which it finds
  bool operator==(const Epilogue&) const = default;
};

/// One GEMM. Sizes and leading dimensions in elements; pointers are device pointers, aligned to 256 bytes.
struct Problem {
  int m = 0, n = 0, k = 0;
  Type type = Type::f32;
  Out out = Out::f32;
  MatrixLayout layout_a = MatrixLayout::row_major, layout_b = MatrixLayout::row_major;
  float alpha = 1.0F, beta = 0.0F;
  const void* a = nullptr;
  int lda = 0;
  const void* b = nullptr;
  int ldb = 0;
  void* c = nullptr;  ///< C on entry, D on return; not read where beta is 0
  int ldc = 0;
  void* workspace = nullptr;  ///< Resources::workspace_bytes, of no defined content
  unsigned* locks = nullptr;  ///< Resources::locks of them, zero before the launch; it leaves them zero
  cudaStream_t stream = nullptr;

  Scales scales = Scales::none;
  const float *scale_a = nullptr, *scale_b = nullptr;  ///< with mx and nv, bytes

  /// Of groups, each has its rows of A and C and a B of its own: group g has rows first_row[g] to first_row[g + 1], which may be none,
  /// and B begins after g * n (or k) whole rows. 0: one product.
  int groups = 0;
  const int* first_row = nullptr;  ///< groups + 1 of them on the device: first 0, then ascending, last m

  Epilogue epilogue = {};
  const void* bias = nullptr;    ///< n, of the type that C has if nothing is quantised
  const void* b_gate = nullptr;  ///< as b
  float* scale_c = nullptr;  ///< where it quantises, of row m and columns n to n + 127: [n / 128 * scale_c_ld() + m]
  int scale_c_ld() const { return (m + 3) / 4 * 4; }

  template <class T>
  const T* A() const {
    return static_cast<const T*>(a);
  }
  template <class T>
  const T* B() const {
    return static_cast<const T*>(b);
  }
  template <class T>
  T* C() const {
    return static_cast<T*>(c);
  }
};

}  // namespace ladder
