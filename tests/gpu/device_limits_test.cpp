// What a launch may choose by, on the GPU and on the simulator: the driver's figures, asked for once per device.
#include "common/per_device.h"
#include "tests/gpu/gpu_test.h"

namespace ladder {
namespace {

using DeviceLimitsTest = GpuTest;

int attribute(cudaDeviceAttr which) {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

TEST_F(DeviceLimitsTest, AreWhatTheDriverStates) {
  const DeviceLimits limits = device_limits();
  EXPECT_EQ(limits.sm, device_->sm);
  EXPECT_EQ(limits.sms, device_->sm_count);
  EXPECT_EQ(limits.smem_block_bytes, static_cast<int>(device_->smem_block_bytes));
  EXPECT_GT(limits.clock_mhz, 100);
  EXPECT_DOUBLE_EQ(limits.clock_mhz, attribute(cudaDevAttrClockRate) / 1e3);
  const double kilohertz = attribute(cudaDevAttrMemoryClockRate), bits = attribute(cudaDevAttrGlobalMemoryBusWidth);
  EXPECT_DOUBLE_EQ(limits.memory_bytes_per_us(), 2 * kilohertz / 1e3 * bits / 8);
}

TEST_F(DeviceLimitsTest, AValuePerDeviceIsFoundOnce) {
  PerDevice<int> value;
  int times = 0;
  const auto find = [&](int device) { return device + 10 * ++times; };
  EXPECT_EQ(value.get(find), 10);
  EXPECT_EQ(value.get(find), 10);
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace ladder
