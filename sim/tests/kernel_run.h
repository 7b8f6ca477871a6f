// What the tests of instructions share: a kernel from lines of PTX, launched, perhaps in clusters.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "ptx/parser.h"

namespace sim::test {

struct KernelLaunch {
  uint32_t threads = 32, blocks = 1, cluster = 1;
  uint64_t seed = 0;
  uint32_t dynamic_smem = 0;
  std::string before = {};  ///< the kernel: functions
  std::string target = "sm_90a";
  std::string directives = {};  ///< of the kernel: ".maxntid 384, 1, 1"
  std::string setup = {};       ///< in line 100, before the body
  std::string checks = "uninitialised=error,proxy=error,ended=error";
  uint32_t tile_bytes = 65536, words = 4096;
  uint64_t limit = LaunchParams().limit;
  Warnings* warnings = nullptr;
  std::vector<uint32_t> in = {};    ///< what the output words hold before
  std::vector<std::byte> map = {};  ///< of the parameter `map`, a tensor map
  int into_map_base = -1;           ///< where in the map the address of the output words goes
};

/// Runs a kernel `body` with the address of 32-bit words, all 0, in %out, the thread in %t, the block's rank in its cluster in
/// %rank, the address of the thread's own word in %mine, and shared memory at address 0. Each line of the body is line 101,
/// 102, ... of the source "test.cu".
struct KernelRun {
  static constexpr size_t words = 4096;
  std::vector<uint32_t> out;
  Counters counters;

  explicit KernelRun(const std::vector<std::string>& body, const KernelLaunch& how = {}) {
    std::string text = ".version 9.0\n.target " + how.target + "\n.address_size 64\n" + how.before +
                       "\n.visible .entry k(.param .u64 p0, .param .align 64 .b8 map[128]) " + how.directives +
                       " {\n.reg .b16 %h<8>; .reg .b32 %r<40>; .reg .f32 %f<300>; .reg .b32 %t, %w, %rank; "
                       ".reg .b64 %out, %mine, %d<20>; .reg .pred %p<8>;\n"
                       ".shared .align 1024 .b8 tile[" +
                       std::to_string(how.tile_bytes) +
                       "];\n.loc 1 100 0\nld.param.u64 %out, [p0]; mov.u32 %t, %tid.x; "
                       "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %rank, %cluster_ctarank; "
                       "mad.lo.s32 %w, %r0, %r1, %t; mul.wide.u32 %mine, %w, 4; add.s64 %mine, %mine, %out;" +
                       how.setup + "\n";
    for (size_t i = 0; i < body.size(); ++i) text += ".loc 1 " + std::to_string(101 + i) + " 0\n" + body[i] + "\n";
    text += "ret;\n}\n.file 1 \"test.cu\"\n";
    DeviceMemory memory;
    const uint64_t address = memory.allocate(how.words * 4);
    std::memset(reinterpret_cast<void*>(address), 0, how.words * 4);
    std::memcpy(reinterpret_cast<void*>(address), how.in.data(), how.in.size() * 4);
    memory.wrote(address, how.words * 4);
    LaunchParams launch;
    launch.grid = {how.blocks, 1, 1};
    launch.block = {how.threads, 1, 1};
    launch.cluster = {how.cluster, 1, 1};
    launch.explicit_cluster = how.cluster > 1;
    launch.dynamic_smem = how.dynamic_smem;
    launch.seed = how.seed;
    launch.threads = 4;  // blocks run at the same time on any machine
    launch.limit = how.limit;
    launch.warnings = how.warnings;
    if (!how.checks.empty()) {
      EXPECT_EQ(launch.checks.change(how.checks), "");
    }
    launch.params.resize(192);
    std::memcpy(launch.params.data(), &address, 8);
    std::memcpy(launch.params.data() + 64, how.map.data(), how.map.size());
    if (how.into_map_base >= 0) std::memcpy(launch.params.data() + 64 + how.into_map_base, &address, 8);
    const ptx::Module module = ptx::parse(text);
    run_kernel(module, *module.find_function("k"), launch, memory, counters);
    out.resize(how.words);
    std::memcpy(out.data(), reinterpret_cast<void*>(address), how.words * 4);
  }
};

/// With each of several seeds, the kernel must be stopped by a report that holds all of `parts`.
inline void expect_report(const std::vector<std::string>& body, KernelLaunch how, const std::vector<std::string>& parts,
                          std::optional<Fault> fault = {}, uint64_t seeds = 5) {
  for (how.seed = 0; how.seed < seeds; ++how.seed) {
    try {
      KernelRun run(body, how);
      FAIL() << "no report: " << parts.front() << ", seed " << how.seed;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, fault.value_or(error.fault)) << error.what();
      for (const std::string& part : parts)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in\n" << error.what();
    }
  }
}

}  // namespace sim::test
