// An epilogue by a kernel of its own, after the product: what a library's baseline needs that has no such epilogue.
#pragma once

#include <functional>

#include "common/harness/operands.h"
#include "common/problem.h"

namespace ladder {

class UnfusedEpilogue {
 public:
  explicit UnfusedEpilogue(const OperandSpec& spec);

  /// Bytes of device memory that it allocates.
  static size_t bytes(const OperandSpec& spec);

  /// A product of the problem, without epilogue, into memory of its own; the gate's has another B.
  Problem product(const Problem& p, bool gate = false) const;

  /// `multiply` for each product of the problem, then one pass over them that writes D.
  void run(const std::function<void(const Problem&)>& multiply, const Problem& p) const;

 private:
  DeviceBuffer product_, gate_;
};

}  // namespace ladder
