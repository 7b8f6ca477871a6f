// Is a result right? DESIGN: poisoned output, guard bands, a bound for every element.
#pragma once

#include <functional>
#include <string>

#include "common/harness/blas.h"
#include "common/harness/check/bound.h"
#include "common/harness/check/check_device.h"
#include "common/harness/operands.h"
#include "common/harness/workspace.h"

namespace ladder {

enum class CheckMode {
  full,    ///< every element against cuBLAS, which itself is compared with FP64 at sampled elements; on the simulator
           ///< against FP64
  sample,  ///< 4096 elements against FP64, all elements for being finite; needs no further matrix in memory
  off,
};

struct CheckResult {
  bool passed = true;
  double max_error = 0.0;  ///< largest Judgement::error
  double bound = 0.0;      ///< gamma
  std::string message;     ///< what is wrong, one line; empty where passed
};

/// Checks kernels on one set of operands. The reference is computed once, in the constructor.
class Checker {
 public:
  /// Uses set 0 of `operands`. `blas` computes the reference; null on the simulator, where the CPU does. Throws
  /// std::runtime_error where the reference disagrees with FP64.
  Checker(Operands& operands, float alpha, float beta, CheckMode mode, const Blas* blas, cudaStream_t stream);

  /// Bytes of device memory that a Checker holds at its peak, beyond the operands.
  static size_t bytes(const OperandSpec& spec, CheckMode mode);

  /// Prepares C and the workspace, runs the kernel, judges what it left, as right for `sums`. Throws CudaError where the launch or
  /// the kernel fails.
  CheckResult check(const std::function<void(const Problem&)>& launch, const Workspace& workspace = Workspace(),
                    Sum sums = Sum::fp32);

 private:
  /// A product and its S of bound.h: m x n, FP32, ld = n.
  struct Product {
    DeviceBuffer value, scale;
  };
  Problem product_of(const void* b) const;
  Samples take_samples(int count, const Problem& p) const;
  Samples finished_samples(int count) const;
  Product product(const Problem& p) const;
  Product product(const Problem& p, const Blas& blas) const;
  void make_reference(const Blas* blas);
  Bound bound(Sum sums) const;
  CheckResult judge_quantised(const Bound& bound) const;
  CheckResult judge_all(const Problem& p, const Bound& bound) const;
  CheckResult judge_samples(const Bound& bound) const;

  Operands& operands_;
  Problem problem_;
  CheckMode mode_;
  ReferenceSum reference_sum_;
  Product reference_;  // full only
  ScalesOfC scales_;   // where an epilogue quantises; then the reference are multiples of them
  Samples samples_;    // sample only
};

}  // namespace ladder
