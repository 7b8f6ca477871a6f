// Results as CSV: one row per cell, and, where they are asked for, every single time.
#pragma once

#include <string>

#include "common/harness/csv.h"
#include "common/harness/result.h"

namespace ladder {

class ResultsCsv {
 public:
  /// Opens or makes the file. Throws UsageError.
  explicit ResultsCsv(const std::string& path);

  /// Throws UsageError where the file holds results of another GPU: it belongs to one, or to the simulator.
  void refuse_other_gpu(const Device& device) const;

  /// Did the file hold this cell's result when it was opened, measured under the same conditions from the same commit? One that
  /// is wrong or failed does not count. One that was waived counts for every sitting.
  bool holds(const Conditions& conditions, const Cell& cell) const;

  void append(const Conditions& conditions, const Result& result);

 private:
  std::string path_;
  CsvFile file_;
};

class SamplesCsv {
 public:
  explicit SamplesCsv(const std::string& path);

  /// A row per contender and round; none where the result has no timing.
  void append(const Conditions& conditions, const Result& result);

 private:
  CsvFile file_;
};

}  // namespace ladder
