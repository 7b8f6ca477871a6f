// CUTLASS as a baseline of the measurement, in builds that hold its kernels.
#pragma once

#include <optional>
#include <vector>

#include "common/harness/cutlass/kernels.h"
#include "common/harness/device.h"
#include "common/harness/operands.h"

namespace ladder {

/// Those kernels that this GPU can run and that take this problem.
std::vector<const CutlassKernel*> cutlass_kernels_for(const Problem& p, const Device& device,
                                                      const std::vector<CutlassKernel>& kernels = cutlass_kernels());

/// The kernel that was found to be the fastest; null where none takes the problem.
using CutlassChoice = const CutlassKernel*;

/// The fastest of CUTLASS's kernels in this build for one shape: the baseline `cutlass`. All that take it are timed.
class Cutlass {
 public:
  /// Tries every kernel on the operands' first set, unless the choice is known from before. C of that set holds results of it
  /// afterwards. Throws CudaError, std::runtime_error.
  Cutlass(const Operands& operands, float alpha, float beta, const Device& device, cudaStream_t stream,
          const CutlassChoice* known = nullptr);

  /// Null: not available.
  CutlassChoice choice() const { return choice_; }

  /// Runs the fastest kernel. Shape, type, layout and leading dimensions must be those of the constructor.
  void gemm(const Problem& p) const { choice_->run(p, workspace_ ? workspace_->as<void>() : nullptr); }

 private:
  CutlassChoice choice_ = nullptr;
  std::optional<DeviceBuffer> workspace_;
};

}  // namespace ladder
