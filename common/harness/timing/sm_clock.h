// The clock at which the SMs ran, counted by themselves: at the power limit it may differ from kernel to kernel, and NVML
// says only what it was at some moment.
#pragma once

#include <vector>

#include "common/harness/operands.h"

namespace ladder {

/// Clocks and the time in which they passed, each summed over SMs, and where spans are added up, over those.
struct SmTime {
  double clocks = 0.0, ns = 0.0;
  double mhz() const { return ns > 0.0 ? clocks / ns * 1e3 : 0.0; }  ///< 0 where nothing was counted
  SmTime& operator+=(const SmTime& other) {
    clocks += other.clocks;
    ns += other.ns;
    return *this;
  }
};

/// Marks in a stream, and what passed between each and the next. A mark is a kernel of some microseconds.
class SmClock {
 public:
  /// At most `marks` of them until finish().
  explicit SmClock(int marks);

  void mark(cudaStream_t stream);

  /// One element fewer than there were marks since the last finish(). The stream's work must be done.
  std::vector<SmTime> finish();

 private:
  int sms_, used_ = 0;
  DeviceBuffer marks_;  // [mark][SM]; zero where no block of the mark ran there
};

/// Holds `stream` for `ns` nanoseconds, in which the host queues what is to be timed.
void hold(cudaStream_t stream, unsigned long long ns);

}  // namespace ladder
