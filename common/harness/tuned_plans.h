// The plans that --tune found to be the fastest, in a file that later runs read with --plans.
#pragma once

#include <string>

#include "common/harness/csv.h"
#include "common/harness/device.h"
#include "common/problem.h"

namespace ladder {

class TunedPlans {
 public:
  /// Opens the file, and prefers what it holds for this GPU. Throws UsageError where it cannot be written or is another kind of file.
  TunedPlans(const std::string& path, const Device& device);

  /// Prefers this plan from now on, and appends it; of several rows for a problem the last counts.
  void add(const std::string& rung, const Problem& p, const std::string& plan, double microseconds, double predicted);

 private:
  std::string gpu_;
  CsvFile file_;
};

}  // namespace ladder
