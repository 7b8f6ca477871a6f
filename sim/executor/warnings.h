// What the checks found that does not end a launch.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "sim/checks.h"

namespace sim {

struct Warning {
  uint64_t times = 0;
  uint64_t unit = 0;  ///< the cluster of the grid in which the report was made
  std::string place;  ///< "kernels/x.cu:12, PTX line 34: st.shared.u32"
  std::string text;   ///< the first one's report, as that of an error
};
/// By operation of the program.
using WarningsByOp = std::map<std::pair<uint32_t, Check>, Warning>;

/// Of one launch: its CPU threads add what they have found.
class Warnings {
 public:
  void add(const WarningsByOp& found) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, warning] : found) {
      Warning& known = found_[key];
      const uint64_t times = known.times + warning.times;
      if (!known.times || warning.unit < known.unit) known = warning;  // the same text from run to run
      known.times = times;
    }
  }
  const WarningsByOp& found() const { return found_; }

 private:
  std::mutex mutex_;
  WarningsByOp found_;
};

}  // namespace sim
