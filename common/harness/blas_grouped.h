// cuBLAS on groups (problem.h): the baselines of a measurement of grouped products. The host knows how many rows each group has; a rung
// reads that on the device. Of E4M3 cuBLASLt alone multiplies, one group after another, and with block scales only where the rows of each
// group are a multiple of 4. It takes the scales of each A by themselves: they are copied before anything is timed.
#pragma once

#include <cublas_v2.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "common/harness/blas.h"
#include "common/harness/operands.h"
#include "common/problem.h"

namespace ladder {

/// One way in which cuBLAS computes groups that takes no kernel of its own for them.
enum class GroupedWay {
  loop,     ///< cublasGemmEx for one group after another; of E4M3 cublasLtMatmul
  streams,  ///< the same on four streams, in turns
  batch,    ///< cublasGemmStridedBatchedEx, where all groups have as many rows
};

class BlasGrouped {
 public:
  /// Has cuBLAS any way to compute these groups?
  static bool has(const OperandSpec& spec);

  /// Finds out whether cuBLAS has grouped products of this type, and times every GroupedWay on the operands' first set, unless the
  /// fastest is known from before. C of that set holds results afterwards. For operands that it has.
  BlasGrouped(const Operands& operands, float alpha, float beta, cudaStream_t stream,
              const GroupedWay* known = nullptr);
  ~BlasGrouped();
  BlasGrouped(const BlasGrouped&) = delete;
  BlasGrouped& operator=(const BlasGrouped&) = delete;

  /// cublasGemmGroupedBatchedEx, one product in each of its groups: the baseline `cublas`. For problems of the operands alone.
  void gemm_by_default(const Problem& p) const;
  bool has_default() const { return has_default_; }

  /// The fastest GroupedWay: the baseline `cublaslt`.
  void gemm(const Problem& p) const { run(p, fastest_); }
  GroupedWay fastest() const { return fastest_; }

 private:
  static constexpr int STREAMS = 4;
  void prepare_lt(float alpha, float beta, cudaStream_t stream);
  int set_of(const Problem& p) const;
  void multiply(const Problem& group, const Problem& all, int i) const;
  void run(const Problem& p, GroupedWay way) const;
  cublasStatus_t grouped(const Problem& p) const;

  const Operands& operands_;
  std::vector<int> first_row_;
  DeviceBuffer pointers_;  // of each set of operands: to each product's B, then to each A, then to each C
  DeviceBuffer scales_a_;  // of E4M3: of each set of operands, one group after another, [k / 128][row of the group]
  std::array<std::map<int, std::unique_ptr<BlasLt>>, STREAMS> lt_;  // likewise, by the rows of a group
  cublasHandle_t handle_[STREAMS] = {};
  cudaStream_t stream_[STREAMS] = {};
  cudaEvent_t fork_ = nullptr, join_[STREAMS] = {};
  bool has_default_ = false;
  GroupedWay fastest_ = GroupedWay::loop;
};

}  // namespace ladder
