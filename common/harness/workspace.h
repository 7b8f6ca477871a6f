// Scratch memory that a rung asks for beside its operands: Resources::workspace_bytes and Resources::locks.
#pragma once

#include <string>

#include "common/harness/operands.h"
#include "common/rung.h"

namespace ladder {

/// The workspace of one rung on one problem, between guard bands. Frees itself.
class Workspace {
 public:
  /// Allocates what `resources` asks for; without it, nothing. Throws CudaError.
  explicit Workspace(const Resources& resources = {});

  /// Bytes of device memory that Workspace(resources) allocates.
  static size_t bytes(const Resources& resources);

  /// The problem with this workspace.
  Problem lend(Problem p) const;

  /// NaN in the workspace, a pattern in its guard bands, zero in the locks.
  void fill(cudaStream_t stream) const;

  /// What a launch since fill() did that it must not: guard bands that changed, locks that are not zero. Empty where nothing.
  std::string violation(cudaStream_t stream) const;

 private:
  size_t workspace_bytes_;
  int locks_;
  DeviceBuffer buffer_;  // guard, workspace, guard, locks
};

}  // namespace ladder
