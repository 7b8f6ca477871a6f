// Results as a table on stdout, and progress on stderr.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/harness/result.h"

namespace ladder {

class Console {
 public:
  /// The table's first column is as wide as the longest name among `cells` needs.
  Console(const Conditions& conditions, const std::vector<Cell>& cells);

  void header() const;
  void row(const Result& result) const;

  /// How much is done and what is left, where the table on the same terminal does not show it.
  void progress(size_t done, size_t total, const Result& result) const;

 private:
  std::string line(const std::vector<std::string>& fields, const std::string& status) const;

  const Conditions& conditions_;
  size_t name_width_ = 24;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ladder
