// The clock that the SMs count. On the simulator they count, too, but nanoseconds of a CPU.
#include "common/harness/timing/sm_clock.h"

#include <cmath>

#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

using SmClockTest = GpuTest;

TEST_F(SmClockTest, CountsFromEachMarkToTheNext) {
  SmClock clock(4);
  EXPECT_TRUE(clock.finish().empty());
  for (const int marks : {2, 4}) {
    for (int i = 0; i < marks; ++i) clock.mark(nullptr);
    const std::vector<SmTime> spans = clock.finish();
    ASSERT_EQ(spans.size(), marks - 1U);
    SmTime all;
    for (const SmTime& span : spans) all += span;
    EXPECT_GT(all.mhz(), device_->simulated ? 0.0 : 100.0);
    EXPECT_LT(all.mhz(), device_->simulated ? INFINITY : 5000.0);
  }
}

}  // namespace
}  // namespace ladder
