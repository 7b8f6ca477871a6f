// What the GPU tests share. Those that are about correctness run on the simulator, too (ctest's sim_gpu_tests).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "common/harness/blas.h"
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

/// A fixture whose tests are skipped, with the reason, where there is neither a GPU nor the simulator.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = gpu(why);
    if (!device_) GTEST_SKIP() << why;
    if (!device_->simulated) blas_ = std::make_unique<ladder::Blas>();
  }
  std::optional<ladder::Device> device_;
  std::unique_ptr<ladder::Blas> blas_;  // null on the simulator
};
