// Small programs of the kinds that courses and samples show, several to a file. Each compares its result with the host's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/run_program.h"

namespace {

struct SamplesOf {
  const char* program;
  std::vector<std::string> names;
};

const std::vector<SamplesOf> all = {
    {"samples_basic",
     {"templates", "matrix_vector", "black_scholes", "clocks", "threadfence", "scan_of_blocks_in_turn", "compaction"}},
    {"samples_functions",
     {"function_table", "function_pointer_by_the_host", "virtual_functions", "recursion_with_arrays",
      "recursion_by_pointer", "stack_memory", "switches"}},
    {"samples_host",
     {"streams", "callbacks", "registered_memory", "managed_memory", "memory_pools", "copies_2d_and_3d",
      "captured_graph", "graph_of_nodes", "graph_with_memory", "graph_without_order", "properties", "occupancy"}},
    {"samples_grid", {"grid_sync", "tiles", "partitions", "barriers", "locks"}},
    {"samples_sorts", {"radix_keys", "thrust_sorts", "thrust_by_key", "thrust_scan_and_unique"}},
};

struct Sample {
  std::string program, name;
};
std::vector<Sample> samples() {
  std::vector<Sample> list;
  for (const SamplesOf& one : all)
    for (const std::string& name : one.names) list.push_back({one.program, name});
  return list;
}

class SampleProgram : public testing::TestWithParam<Sample> {};

TEST_P(SampleProgram, ComputesWhatTheHostComputes) {
  const auto& [program, name] = GetParam();
  for (const char* seed : {"1", "2"}) {
    const Result result = run(program, name, std::string("GEMM_LADDER_SIM_SEED=") + seed);
    if (name == "thrust_sorts") {  // CUB's merge sort reads past its last elements, and uses nothing of it
      EXPECT_THAT(result.output, testing::ContainsRegex("\npassed\nsimulator: [0-9]+ warnings, 0 errors\n"))
          << "seed " << seed;
      EXPECT_THAT(result.output, testing::HasSubstr("\n  uninitialised at ")) << "seed " << seed;
    } else {
      EXPECT_EQ(result.output, "passed\n") << "seed " << seed;
    }
    EXPECT_EQ(result.status, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, SampleProgram, testing::ValuesIn(samples()), [](const auto& sample) {
  return sample.param.program.substr(std::string("samples_").size()) + "_" + sample.param.name;
});

/// What a program lists is run above, or is one of the faults below.
TEST(SamplePrograms, AreAllRun) {
  for (const SamplesOf& one : all) {
    std::istringstream listed(run(one.program).output);
    std::vector<std::string> found;
    for (std::string name; listed >> name;)
      if (name.rfind("fault_", 0) != 0) found.push_back(name);
    EXPECT_EQ(found, one.names) << one.program;
  }
}

TEST(SamplePrograms, WrongCallsAreReported) {
  const auto expect = [](const std::string& name, const std::vector<std::string>& parts) {
    const Result result = run("samples_functions", "fault_" + name);
    EXPECT_EQ(result.status, 1) << name;
    for (const std::string& part : parts) EXPECT_THAT(result.output, testing::HasSubstr(part)) << name;
  };
  expect("null_pointer", {"simulator: a call through a null pointer", "samples_functions.cu:"});
  expect("wrong_type", {"simulator: a call through 0x", ", which is no function with these parameters"});
  expect("endless_recursion", {"simulator: 65536 calls inside one another: a recursion without an end"});
  expect("full_stack", {"simulator: the thread's stack of 16384 bytes is full", "alloca"});
}

}  // namespace
