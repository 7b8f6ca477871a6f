// One cell: is it for this GPU, is it right, what does it take of an SM, how fast is it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/blas.h"
#include "common/harness/blas_grouped.h"
#include "common/harness/check/check.h"
#include "common/harness/cutlass/baseline.h"
#include "common/harness/operands.h"
#include "common/harness/result.h"
#include "common/harness/timing/ceilings.h"
#include "common/harness/timing/nvml.h"
#include "common/harness/tuned_plans.h"

namespace ladder {

class Runner {
 public:
  explicit Runner(const Conditions& conditions);
  ~Runner();

  /// Measures the ceilings or reads them from the file that was given, those of `cells`. Throws UsageError.
  void find_ceilings(const std::vector<Cell>& cells);

  /// Runs one cell. What goes wrong with it is in the result; throws Interrupted, and UsageError where nothing can be run so.
  Result run(const Cell& cell);

  /// How the rung of this cell goes about its problem, in lines.
  std::string explain(const Cell& cell) const;

  /// The GPU can run nothing more in this process.
  bool context_lost() const { return context_lost_; }

 private:
  struct Group;  // what consecutive cells of one shape, type and layout share

  OperandSpec operand_spec(const Cell& cell) const;
  std::string reason_to_waive(const Cell& cell) const;
  void require_memory(const Cell& cell) const;
  void prepare(const Cell& cell);
  void run(const Cell& cell, Result& result);
  void tune(const Cell& cell);
  void check(const Cell& cell, Result& result);
  Footprint footprint(const Cell& cell) const;
  Timing time(const Cell& cell);
  bool checks(const Cell& cell) const;

  const Options& options_;
  const Device& device_;
  Nvml nvml_;
  std::unique_ptr<Blas> blas_;  // null on the simulator, where there is no driver for it
  std::vector<Ceiling> ceilings_;
  std::unique_ptr<TunedPlans> tuned_;  // null without --plans
  // What was found to be the fastest is kept from sitting to sitting.
  std::vector<std::pair<OperandSpec, LtChoice>> lt_choices_;
  std::vector<std::pair<OperandSpec, CutlassChoice>> cutlass_choices_;
  std::vector<std::pair<OperandSpec, GroupedWay>> grouped_choices_;
  std::unique_ptr<Group> group_;
  bool context_lost_ = false;
};

}  // namespace ladder
