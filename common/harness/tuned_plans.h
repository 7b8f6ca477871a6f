// What --tune found: how long a problem takes with each of a rung's plans. Later runs read it with --plans.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/harness/csv.h"
#include "common/harness/device.h"
#include "common/rung.h"

namespace ladder {

class TunedPlans {
 public:
  /// Opens the file, and prefers the fastest plan of each problem that was timed on this GPU. Throws UsageError where the file cannot be
  /// written or is another kind of file.
  TunedPlans(const std::string& path, const Device& device);

  /// Keeps the time of each plan in microseconds, in place of earlier ones of this problem, and prefers the fastest from now on.
  void add(const Rung& rung, const Problem& p, const std::vector<Plan>& plans, const std::vector<double>& microseconds);

 private:
  std::string gpu_;
  CsvFile file_;
};

}  // namespace ladder
