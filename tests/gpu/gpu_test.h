// What the GPU tests share.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "common/harness/device.h"
#include "common/harness/error.h"

/// The GPU, or nothing where there is none; then the reason is in `why`.
inline std::optional<ladder::Device> gpu(std::string& why) {
  try {
    return ladder::open_device(0);
  } catch (const ladder::Waived& waived) {
    why = waived.what();
    return std::nullopt;
  }
}

/// A fixture whose tests are skipped, with the reason, where there is no GPU.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = gpu(why);
    if (!device_) GTEST_SKIP() << why;
  }
  std::optional<ladder::Device> device_;
};
