// Programs that nvcc built, run on the simulated runtime as a user runs them: LD_LIBRARY_PATH and nothing else.
// Each compares its results with the CPU's and prints "passed".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "gpu.h"
#include "tests/run_program.h"
#include "text.h"

namespace {

class Program : public testing::TestWithParam<const char*> {};

TEST_P(Program, ComputesWhatTheCpuComputes) {
  const Result result = run(GetParam());
  EXPECT_THAT(result.output, testing::EndsWith("passed\n"));
  EXPECT_EQ(result.status, 0);
}

INSTANTIATE_TEST_SUITE_P(Shim, Program,
                         testing::Values("vector_add", "reduction", "variables", "grid_2d", "division_128",
                                         "reserved_shared", "spin_lock", "unsupported", "thrust_reduce", "memory",
                                         "launches", "mma_gemm", "tma", "wgmma", "clusters", "tensor_maps",
                                         "cooperative"),
                         [](const auto& program) { return std::string(program.param); });

const std::string on_b200 = "GEMM_LADDER_SIM_GPU=b200 GEMM_LADDER_SIM_CHECKS=all=error GEMM_LADDER_SIM_SEED=";
/// A kernel for sm_100a, and the same with one thing wrong: reported at the line, or, where it is a wrong index, seen in the result.
TEST(Blackwell, ComputesWhatTheCpuComputes) {
  for (int seed = 0; seed < 10; ++seed)
    EXPECT_EQ(run("tcgen05", "", on_b200 + std::to_string(seed)).output, "passed\n") << seed;
}
TEST(Blackwell, PlantedFaults) {
  const auto expect = [](const std::string& fault, const std::vector<std::string>& parts) {
    for (int seed = 0; seed < 10; ++seed) {
      const Result result = run("tcgen05", fault, on_b200 + std::to_string(seed));
      EXPECT_EQ(result.status, 1) << fault;
      for (const std::string& part : parts)
        EXPECT_THAT(result.output, testing::HasSubstr(part)) << fault << ", seed " << seed;
    }
  };
  expect("no_wait_for_products", {"of tensor memory", "tcgen05.ld", "tcgen05.cu:"});
  expect("no_fence_after_wait", {"there is no tcgen05.fence::after_thread_sync", "tcgen05.ld", "tcgen05.cu:"});
  expect("lanes_of_another_warp", {"of tensor memory: warp ", "reaches lanes", "tcgen05.ld"});
  expect("no_wait_for_load", {"uses a register that tcgen05.ld", "without tcgen05.wait::ld"});
  expect("not_given_back", {"64 columns of tensor memory were not given back", "tcgen05.alloc"});
  expect("given_back_twice", {"there is no allocation of 64 columns", "tcgen05.dealloc"});
  expect("swizzle_of_64_bytes",
         {"says 64-byte swizzling, but cp.async.bulk.tensor.2d", "with 128-byte swizzling", "tcgen05.mma"});
  expect("no_wait_for_empty", {"simulator: ", "tcgen05.cu:", "warp 4, lane 0"});  // an arrival or a copy too early
  expect("no_last_commit", {"deadlock", "waits for the end of phase 0 of the mbarrier"});
  expect("adds_to_nothing", {"a read of column 0, lane 0, of tensor memory, which nobody", "tcgen05.mma"});
  expect("k_offset", {"at 0: got"});
  expect("too_wide", {"of tensor memory is not allocated", "tcgen05.mma"});
  expect("descriptor_of_wgmma", {"bits 46 to 48 are 0b0", "of A", "tcgen05.mma"});
  expect("all_lanes_multiply", {"still writes", "tcgen05.mma"});
  expect("odd_columns", {"48 columns: only powers of two", "tcgen05.alloc"});
  expect("column_outside", {"column 64 of tensor memory is not allocated", "tcgen05.ld"});
  expect("no_wait_for_full", {"of shared memory at", "tcgen05.mma"});
  expect("stage_overwritten", {"while an asynchronous operation still reads it", "tcgen05.cu:"});
  expect("unfenced_store", {"no fence.proxy.async between", "tcgen05.mma"});
  expect("address_of_tile_outside", {"of A reaches 0x", "outside of the block's", "tcgen05.mma"});
  expect("more_bytes_expected", {"deadlock", "16 bytes missing"});
  expect("types_that_differ", {"A is BF16 and B is F16", "tcgen05.mma"});
}

TEST(Blackwell, BlockScaledProducts) {
  for (int seed = 0; seed < 5; ++seed)
    for (const char* const format : {"", "mxfp4"})
      EXPECT_EQ(run("block_scaled", format, on_b200 + std::to_string(seed)).output, "passed\n") << format << seed;
}
TEST(Blackwell, PlantedFaultsOfScaleFactors) {
  const auto expect = [](const std::string& fault, const std::string& of_nvfp4, const std::string& of_mxfp4 = "") {
    for (int seed = 0; seed < 4; ++seed) {
      const bool mxfp4 = seed % 2;
      const Result result = run("block_scaled", fault + (mxfp4 ? " mxfp4" : ""), on_b200 + std::to_string(seed));
      const std::string& part = mxfp4 && !of_mxfp4.empty() ? of_mxfp4 : of_nvfp4;
      const bool wrong = part == "at 0: got";  // nothing that the ISA forbids
      EXPECT_THAT(result.output, testing::HasSubstr(part)) << fault << ", seed " << seed;
      if (wrong) {
        EXPECT_EQ(result.status, 1) << fault;
      } else {
        EXPECT_THAT(result.output, testing::HasSubstr("block_scaled.cu:")) << fault;
      }
    }
  };
  const std::string wrong = "at 0: got";
  expect("scale_factor_id", "the scale factor ID 2 of A: with .scale_vec::4X it is 0",
         "the scale factor ID 1 of A: with .scale_vec::2X it is 0 or 2");
  expect("other_half", "the scale factor ID 2 of A", wrong);
  expect("scales_outside", "column 400 of tensor memory is not allocated",
         "column 392 of tensor memory is not allocated");
  expect("scales_at_lane_16", "scale factors of A at lane 16 of tensor memory");
  expect("scales_not_copied", "a read of column 128, lane 0, of tensor memory, which nobody in this block has written");
  expect("scales_of_a_for_b", wrong);
  expect("other_scale_type", wrong, "scale factors of mxf4 are UE8M0");
  expect("k_96", "K 96 is not supported: sm_103a has it");
  expect("type_of_f8f6f4", "the type 5 of A is none of this kind");
  expect("transposed", "E2M1 with M or N contiguous");
  expect("one_factor", wrong);
  expect("copy_without_multicast", "a read of column 128, lane 1, of tensor memory, which nobody");
  expect("scales_stored_unfenced", "no fence.proxy.async between");
  expect("scales_overwritten", "while an asynchronous operation still reads it");
  expect("copied_after_the_products", "a read of column 128, lane 0, of tensor memory, which nobody");
  expect("k_offset_of_fp8", wrong);
}

TEST(ShimAlone, WhatIsNotSupportedIsNamed) {
  const Result result = run("driver");
  EXPECT_THAT(result.output, testing::EndsWith("passed\n"));
  EXPECT_THAT(result.output, testing::HasSubstr("simulator: not supported: cuModuleLoadData\n"));
  EXPECT_THAT(result.output, testing::HasSubstr("simulator: not supported: cudaMallocMipmappedArray\n"));
  EXPECT_THAT(result.output, testing::HasSubstr("simulator: the driver's cuNoSuchFunction is not there\n"));
}
/// cuda::barrier and cuda::pipeline with memcpy_async, whatever the order of the warps.
TEST(Pipelines, ComputeWhatTheCpuComputes) {
  for (int seed = 0; seed < 10; ++seed) {
    const Result result = run("pipelines", "", "GEMM_LADDER_SIM_SEED=" + std::to_string(seed));
    EXPECT_THAT(result.output, testing::EndsWith("passed\n")) << seed;
  }
}
TEST(Pipelines, AMissingWait) {
  for (int seed = 0; seed < 10; ++seed) {
    const Result result = run("pipelines", "without_wait", "GEMM_LADDER_SIM_SEED=" + std::to_string(seed));
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.output, testing::HasSubstr("a read of shared memory"));
    EXPECT_THAT(result.output, testing::HasSubstr("is still under way: nobody has waited for it"));
    EXPECT_THAT(result.output, testing::HasSubstr("pipelines.cu:"));
  }
}

/// The multi-stage kernel with one thing wrong: reported at the line, or, where it is a wrong index, seen in the result.
TEST(MmaGemm, PlantedFaults) {
  const auto expect = [](const std::string& fault, const std::vector<std::string>& parts) {
    const Result result = run("mma_gemm", fault);
    EXPECT_EQ(result.status, 1) << fault;
    for (const std::string& part : parts) EXPECT_THAT(result.output, testing::HasSubstr(part)) << fault;
  };
  expect("wait_too_few", {"still under way: nobody has waited for it", "ldmatrix.sync.aligned.m8n8.x4"});
  expect("no_barrier", {"shared memory at", "mma_gemm.cu"});
  expect("no_swizzle_on_load", {"got", "expected"});
}

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

TEST(Tma, ABoxThatBeginsInTheMiddleOf16Bytes) {  // an H200 answers the same
  const Result result = run("tma", "unaligned");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, testing::HasSubstr("cudaErrorIllegalInstruction"));
  EXPECT_THAT(result.output, testing::HasSubstr("a box that begins at element 1 of its row, byte 4"));
}

/// One line names what a refused kernel uses; and nothing is said of the kernels that run.
TEST(ShimAlone, WhatIsUnknownIsNamedAtTheLaunch) {
  const Result result = run("unsupported");
  for (const char* const line :
       {"simulator: kernel _Z19unknown_instructionPi: unknown instruction vmin.s32.s32.s32",
        "\"%pm0\" is neither a declared nor a special register\n", "simulator: kernel _Z14unknown_syntaxPi: PTX line",
        "simulator: kernel _Z21unknown_in_a_functionPi: in _Z7countedi, PTX line",
        "simulator: kernel _Z5fetchyPi: unknown instruction tex.1d.v4.s32.s32"})
    EXPECT_THAT(result.output, testing::HasSubstr(line));
  EXPECT_THAT(result.output, testing::Not(testing::HasSubstr("right")));
}

TEST(ShimAlone, TheEndOfSharedMemoryIsCheckedBeforeTheReservedPart) {
  const Result result = run("reserved_shared", "past_the_end");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, testing::HasSubstr("outside of the block's 128 bytes of shared memory"));
}

/// The same lines from a kernel and from the host.
TEST(ShimAlone, PrintfInAKernelPrintsWhatTheHostPrints) {
  const Result result = run("printf");
  EXPECT_EQ(result.status, 0) << result.output;
  const size_t middle = result.output.find("---\n");
  ASSERT_NE(middle, std::string::npos) << result.output;
  EXPECT_GT(middle, 100U);
  EXPECT_EQ(result.output.substr(0, middle), result.output.substr(middle + 4));
}

TEST(ShimAlone, WhatWasPrintedBeforeAFaultIsSeen) {
  const Result result = run("printf", "fault");
  EXPECT_THAT(result.output, testing::HasSubstr("before the fault: 7\n"));
  EXPECT_THAT(result.output, testing::HasSubstr("printf.cu:"));
}

/// Registers and local memory as ptxas noted them, by another reader of the same machine code.
TEST(ShimAlone, AttributesOfKernelsAreThoseOfTheMachineCode) {
  const Result asked = run("attributes");
  EXPECT_THAT(asked.output, testing::EndsWith("passed\n"));
  const Result dump =
      shell("PATH=\"$PATH:" SIM_TOOLS_DIRS "\" cuobjdump --dump-resource-usage '" SIM_PROGRAMS_DIR "/attributes'");
  if (dump.status != 0) GTEST_SKIP() << "no cuobjdump here";
  std::string expected;
  for (const std::string name : {"light", "heavy", "local"}) {
    const size_t kernel = dump.output.find(name);
    ASSERT_NE(kernel, std::string::npos) << dump.output;
    const auto number = [&](const std::string& key) {
      return std::stoi(dump.output.substr(dump.output.find(key, kernel) + key.size()));
    };
    EXPECT_THAT(asked.output, testing::HasSubstr(name + " " + std::to_string(number("REG:")) + " " +
                                                 std::to_string(number("STACK:")) + "\n"));
    if (name == "heavy") {  // 256 threads of that many registers
      const int warps = 16384 / (number("REG:") * 32 / 256 * 256) * 4;
      EXPECT_THAT(asked.output, testing::HasSubstr("blocks " + std::to_string(warps / 8) + "\n"));
    }
  }
}

TEST(ShimAlone, CountsAreWrittenAsCsvAndRepeat) {
  std::vector<std::string> files;
  for (const char* seed : {"7", "7", "8"}) {
    const std::string path = testing::TempDir() + "sim_counts.csv";
    run("reduction", "", std::string("GEMM_LADDER_SIM_SEED=") + seed + " GEMM_LADDER_SIM_COUNTS=" + path);
    std::ifstream file(path);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::remove(path.c_str());
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(files[0], files[2]) << "no count of this kernel depends on the order of its warps";

  std::istringstream text(files[0]);
  std::string header, total, line;
  std::getline(text, header);
  std::getline(text, total);
  const auto columns = [](const std::string& row) { return std::count(row.begin(), row.end(), ',') + 1; };
  EXPECT_THAT(header, testing::StartsWith("kernel,launches,file,line,warp_instructions,"));
  EXPECT_THAT(header, testing::EndsWith(",barriers"));
  EXPECT_THAT(total, testing::StartsWith("_Z3sumPKiPii,1,,0,"));
  EXPECT_EQ(columns(total), columns(header));
  EXPECT_THAT(total, testing::EndsWith("," + std::to_string(7 * 4 * 8))) << "7 blocks of 4 warps meet 8 times";
  EXPECT_NE(files[0].find("reduction.cu,16,"), std::string::npos) << files[0];
}

TEST(ShimAlone, CountsThatCannotBeWrittenAreReported) {
  const Result result = run("vector_add", "", "GEMM_LADDER_SIM_COUNTS=/nowhere/counts.csv");
  EXPECT_NE(result.output.find("cannot write '/nowhere/counts.csv'"), std::string::npos) << result.output;
}

// --- described GPUs --------------------------------------------------------------------------------------------------------

class DescribedGpu : public testing::TestWithParam<sim::Gpu> {
 protected:
  static Result run_on(const std::string& gpu, const std::string& program) {
    return run(program, "", "GEMM_LADDER_SIM_GPU=" + gpu);
  }
  static Result run_here(const std::string& program) { return run_on(std::string(GetParam().key), program); }
};

/// The program holds PTX for sm_75, sm_80, sm_90a and sm_100a.
TEST_P(DescribedGpu, IsWhatAProgramIsTold) {
  const sim::Gpu& gpu = GetParam();
  const int ptx = gpu.sm == 90 ? 900 : gpu.sm == 100 ? 1000 : gpu.sm >= 80 ? 800 : 750;
  const std::string expected = sim::formatted(
      "name {}\nsm {}\nsms {} at {} kHz\nl2 {}\nmemory {} at {} kHz on {} bits\nclusters {:d}\nPTX {}\n"
      "nsmid {}\nshared memory {} of {}\nblocks of 32 threads {}, of 512 threads {}, of all shared memory 1\npassed\n",
      gpu.name, gpu.sm, gpu.sms, gpu.clock_khz, gpu.l2_bytes, gpu.memory_bytes, gpu.memory_clock_khz,
      gpu.memory_bus_bits, gpu.has_clusters(), ptx, gpu.sms, gpu.smem_per_block_optin, gpu.smem_per_sm,
      gpu.blocks_per_sm, gpu.threads_per_sm / 512);
  EXPECT_EQ(run_here("device").output, expected);
}

/// PTX for sm_90a is for Hopper alone, neither for an earlier GPU nor for a later one.
TEST_P(DescribedGpu, RefusesPtxThatItCannotRun) {
  const sim::Gpu& gpu = GetParam();
  const Result result = run_here("vector_add");
  if (gpu.sm == 90) {
    EXPECT_THAT(result.output, testing::EndsWith("passed\n"));
    return;
  }
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output,
              testing::StartsWith(sim::formatted("simulator: this program holds no PTX that an sm_{} GPU can "
                                                 "run; it holds that for sm_90a; build it with",
                                                 gpu.sm)));
  EXPECT_THAT(result.output, testing::HasSubstr("cudaErrorNoKernelImageForDevice"));
}

INSTANTIATE_TEST_SUITE_P(Shim, DescribedGpu, testing::ValuesIn(sim::gpus().begin(), sim::gpus().end()),
                         [](const auto& gpu) { return std::string(gpu.param.key); });

TEST_F(DescribedGpu, OfAnUnknownNameIsAClearError) {
  const Result result = run_on("v100", "vector_add");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output,
              testing::StartsWith("simulator: GEMM_LADDER_SIM_GPU=v100: there is no such GPU, only h200, "));
  EXPECT_THAT(result.output, testing::HasSubstr("cudaErrorInvalidDevice"));
}

TEST(ShimAlone, WithoutPtxIsAClearError) {
  const Result result = run("without_ptx");
  EXPECT_NE(result.output.find("holds no PTX"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("cudaErrorNoKernelImageForDevice"), std::string::npos) << result.output;
  EXPECT_EQ(result.status, 1);
}

}  // namespace
