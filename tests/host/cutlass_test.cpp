// CUTLASS as a baseline: which kernels there are, and which a GPU and a problem get. What they compute: tests/gpu/cutlass_test.cpp.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/harness/cutlass/baseline.h"

namespace ladder {
namespace {

TEST(CutlassLibrary, ThatWasNotBuiltHasNoKernels) {
  EXPECT_THAT(load_cutlass(testing::TempDir() + "libnot_there.so"), testing::IsEmpty());
}

TEST(CutlassLibrary, ThatCannotBeLoadedIsAnError) {
  const std::string path = testing::TempDir() + "libcut_off.so";
  std::ofstream(path) << "not a library";
  EXPECT_THAT([&] { load_cutlass(path); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("build it again")));
}

TEST(CutlassLibrary, OfOtherSourcesIsAnError) {
  Dl_info other{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &other), 0);
  EXPECT_THAT([&] { load_cutlass(other.dli_fname); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("undefined symbol")));
}

TEST(CutlassKernels, AreThoseThatGpuAndProblemAllow) {
  const auto takes = [](const Problem& p) { return p.k % 8 == 0; };
  const auto bytes = [](const Problem&) -> size_t { return 0; };
  const std::vector<CutlassKernel> kernels = {{"any", "sm_80", 1000, takes, bytes, nullptr},
                                              {"large", "sm_80", 200'000, takes, bytes, nullptr},
                                              {"hopper", "sm_90a", 1000, takes, bytes, nullptr}};
  const auto names = [&](int k, int sm, size_t smem) {
    Problem p;
    p.k = k;
    Device device;
    device.sm = sm;
    device.smem_block_bytes = smem;
    std::string found;
    for (const CutlassKernel* kernel : cutlass_kernels_for(p, device, kernels)) found += kernel->name + " ";
    return found;
  };
  EXPECT_EQ(names(64, 90, 232'448), "any large hopper ");
  EXPECT_EQ(names(64, 89, 101'376), "any ");
  EXPECT_EQ(names(64, 100, 232'448), "any large ");
  EXPECT_EQ(names(64, 75, 65'536), "");
  EXPECT_EQ(names(63, 90, 232'448), "");
}

}  // namespace
}  // namespace ladder
