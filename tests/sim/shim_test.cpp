// Programs that nvcc built, run on the simulated runtime as a user runs them: LD_LIBRARY_PATH and nothing else.
// Each compares its results with the CPU's and prints "passed".
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Result {
  int status;
  std::string output;  ///< standard output and error
};

Result run(const std::string& program, const std::string& arguments = "") {
  const std::string command =
      "LD_LIBRARY_PATH=" SIM_LIBRARY_DIR " " SIM_PROGRAMS_DIR "/" + program + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Result result;
  std::array<char, 4096> part;
  while (const size_t bytes = fread(part.data(), 1, part.size(), pipe)) result.output.append(part.data(), bytes);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

class Program : public testing::TestWithParam<const char*> {};

TEST_P(Program, ComputesWhatTheCpuComputes) {
  const Result result = run(GetParam());
  EXPECT_THAT(result.output, testing::EndsWith("passed\n"));
  EXPECT_EQ(result.status, 0);
}

INSTANTIATE_TEST_SUITE_P(Shim, Program,
                         testing::Values("vector_add", "reduction", "variables", "dynamic_shared", "grid_2d",
                                         "histogram", "thrust_reduce", "memory", "launches"),
                         [](const auto& program) { return std::string(program.param); });

struct Planted {
  const char* kind;
  const char* error;
  const char* report;  ///< a part of it
};

class ShimFault : public testing::TestWithParam<Planted> {};

/// The error of the first call after the launch, of a later one, and of one after cudaDeviceReset.
TEST_P(ShimFault, SticksUntilTheDeviceIsReset) {
  const Result result = run("faults", GetParam().kind);
  EXPECT_EQ(result.status, 0);
  const std::string error = GetParam().error;
  const size_t answers = result.output.find(error + "\n" + error + "\ncudaSuccess\n");
  EXPECT_NE(answers, std::string::npos) << result.output;
  EXPECT_NE(result.output.find("simulator: "), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("simulator: "), result.output.rfind("simulator: ")) << result.output;
  EXPECT_NE(result.output.find(GetParam().report), std::string::npos) << result.output;
}

INSTANTIATE_TEST_SUITE_P(Shim, ShimFault,
                         testing::Values(Planted{"beyond", "cudaErrorIllegalAddress", "past the end of"},
                                         Planted{"null", "cudaErrorIllegalAddress", "null pointer"},
                                         Planted{"misaligned", "cudaErrorMisalignedAddress", "write_bytes"},
                                         Planted{"trap", "cudaErrorLaunchFailure", "stop"}),
                         [](const auto& fault) { return std::string(fault.param.kind); });

TEST(ShimAlone, WithoutPtxIsAClearError) {
  const Result result = run("without_ptx");
  EXPECT_NE(result.output.find("holds no PTX"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("cudaErrorNoKernelImageForDevice"), std::string::npos) << result.output;
  EXPECT_EQ(result.status, 1);
}

}  // namespace
