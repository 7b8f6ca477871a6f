// cuBLAS and cuBLASLt: the reference of the check and two baselines of the measurement.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <optional>

#include "common/harness/operands.h"
#include "common/problem.h"
#include "common/types.h"

namespace ladder {

// What cuBLAS calls the type of operands and of results, the arithmetic, and how a matrix is stored, as rows are columns to it.
cudaDataType_t blas_type(Type type);
cudaDataType_t blas_result_type(Type type, Out out);
cublasComputeType_t blas_compute_type(Type type);
cublasOperation_t blas_operation(MatrixLayout layout);

/// cuBLAS on row-major matrices: it computes the transpose, D' = B' A', of column-major ones.
class Blas {
 public:
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// Does cublasGemmEx take operands of this type? Of FP8 BlasLt is the only one.
  static bool has(Type type) { return facts(type).bytes > 1; }

  /// cublasGemmEx with its default algorithm, in the arithmetic of the problem's type: the baseline `cublas`.
  void gemm(const Problem& p) const;

  /// The same product into an FP32 C without tensor cores or any reduced precision (CUBLAS_COMPUTE_32F_PEDANTIC).
  void reference(const Problem& p) const;

 private:
  void run(const Problem& p, cublasComputeType_t compute) const;
  cublasHandle_t handle_ = nullptr;
};

/// Of the algorithms that cuBLASLt's heuristics offer.
struct LtAlgorithms {
  cublasLtMatmulAlgo_t first;  ///< what a program takes that does not time them
  cublasLtMatmulAlgo_t fastest;
};
/// Nothing where cuBLASLt offers none for a shape.
using LtChoice = std::optional<LtAlgorithms>;

/// The fastest algorithm that cuBLASLt's heuristics offer for one shape: the baseline `cublaslt`. All of them are timed. Products of FP8
/// are summed fast (CUBLASLT_MATMUL_DESC_FAST_ACCUM), that is in FP22 (bound.h) on Hopper: the faster of the two ways. With block scales
/// there is the other way alone, and M must be a multiple of 4, as it lays out A's scales. They exist in the layout nt and for multiples of
/// 16 alone, and no other type has scales; E5M2 has one per tensor.
class BlasLt {
 public:
  /// Does it apply the whole epilogue of this problem? It has bias, and GELU by tanh, which it applies to the sum with beta * C.
  static bool fuses(const Problem& p);

  /// Tries every algorithm on this problem, of operands that `spec` describes, unless the choice is known from before. C holds results
  /// afterwards.
  BlasLt(const Problem& p, const OperandSpec& spec, const LtChoice* known = nullptr);
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  bool available() const { return choice_.has_value(); }
  const LtChoice& choice() const { return choice_; }

  /// Runs the fastest algorithm. Shape, type, layout and leading dimensions must be those of the constructor.
  void gemm(const Problem& p) const { run(p, choice_->fastest); }
  /// The first one: the baseline `cublas` of a type that Blas does not have.
  void gemm_by_default(const Problem& p) const { run(p, choice_->first); }

 private:
  void run(const Problem& p, const cublasLtMatmulAlgo_t& algorithm) const;
  LtChoice fastest(const Problem& p) const;
  void set_scales(const Problem& p) const;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t matmul_ = nullptr;  // run() sets its scales
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  DeviceBuffer workspace_;
  LtChoice choice_;
};

}  // namespace ladder
