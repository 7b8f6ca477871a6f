// The checks as a user meets them: which are off, warnings or errors, that a kernel goes on after a warning, that every
// mistake planted in tests/programs/planted.cu is found in each of 30 orders of the warps, and its mended kernel is not
// reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "ptx/parser.h"
#include "sim/checks.h"
#include "tests/kernel_run.h"
#include "tests/run_program.h"

namespace {

using namespace sim;
using testing::HasSubstr;
using testing::Not;

// --- the list ----------------------------------------------------------------------------------------------------------------

TEST(ChecksList, TheLastWordCounts) {
  Checks checks;
  EXPECT_EQ(checks[Check::race], Severity::error);
  EXPECT_EQ(checks[Check::global_race], Severity::off);
  EXPECT_EQ(checks.change("all=warn,uninitialised=off,race=error,global-race=warn"), "");
  EXPECT_EQ(checks[Check::bounds], Severity::warning);
  EXPECT_EQ(checks[Check::uninitialised], Severity::off);
  EXPECT_EQ(checks[Check::race], Severity::error);
  EXPECT_EQ(checks[Check::global_race], Severity::warning);
}

/// It makes programs slow, so that it wants to be named.
TEST(ChecksList, AllLeavesGlobalRacesOff) {
  Checks checks;
  EXPECT_EQ(checks.change("all=error"), "");
  EXPECT_EQ(checks[Check::global_race], Severity::off);
}

TEST(ChecksList, OfWhatIsNotThere) {
  EXPECT_THAT(Checks().change("rcae=warn"), testing::StartsWith("there is no check 'rcae'; there are all, bounds, "));
  EXPECT_EQ(Checks().change("race"), "'race' is not CHECK=off, CHECK=warn or CHECK=error");
  EXPECT_EQ(Checks().change("race=warn,"), "'' is not CHECK=off, CHECK=warn or CHECK=error");
}

TEST(ChecksList, NamesStandInTheOrderOfTheChecks) {
  for (size_t i = 0; i < check_names.size(); ++i) EXPECT_EQ(static_cast<size_t>(check_names[i].check), i);
}

// --- going on ----------------------------------------------------------------------------------------------------------------

/// Runs a kernel with `checks`, 1024 words, 4 KiB of shared memory in %d0, and in %d1 the thread's own word of it.
struct Ran {
  Warnings warnings;
  std::vector<uint32_t> out;

  Ran(const std::vector<std::string>& body, const std::string& checks, uint32_t threads = 32, uint64_t limit = 1000000)
      : out(test::KernelRun(body, {.threads = threads,
                                   .setup = "mov.u64 %d0, tile; mul.wide.u32 %d1, %t, 4; add.s64 %d1, %d1, %d0;",
                                   .checks = checks,
                                   .tile_bytes = 4096,
                                   .words = 1024,
                                   .limit = limit,
                                   .warnings = &warnings})
                .out) {}

  /// "check times" of each warning, in the order of the operations.
  std::vector<std::string> found() const {
    std::vector<std::string> all;
    for (const auto& [key, warning] : warnings.found())
      all.push_back(std::string(name(key.second)) + " " + std::to_string(warning.times));
    return all;
  }
  std::string text(size_t index = 0) const { return std::next(warnings.found().begin(), long(index))->second.text; }
};

using Found = std::vector<std::string>;

TEST(Warnings, AnAccessOutOfBoundsIsLeftOut) {
  const std::vector<std::string> body = {"add.s64 %d2, %mine, 4032;", "ld.global.u32 %r2, [%d2];",
                                         "st.global.u32 [%d2], %t;",
                                         "add.s32 %r2, %r2, 7; st.global.u32 [%mine], %r2;"};
  const Ran run(body, "bounds=warn");
  EXPECT_EQ(run.found(), (Found{"bounds 16", "bounds 16"})) << "lanes 16 to 31, of the load and of the store";
  EXPECT_THAT(run.text(), HasSubstr("a load of 4 bytes outside of every allocation: "));
  EXPECT_THAT(run.text(), HasSubstr("test.cu:102"));
  EXPECT_THAT(run.text(), HasSubstr("lane 16"));
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], 7U) << "the others load 0";
  for (uint32_t t = 0; t < 16; ++t) EXPECT_EQ(run.out[1008 + t], t) << "the other lanes store";
  EXPECT_EQ(Ran(body, "bounds=off").found(), Found{});
  EXPECT_THROW(Ran(body, "bounds=error"), Error);
}

TEST(Warnings, AMisalignedAccessIsLeftOut) {
  const Ran run({"mul.wide.u32 %d2, %t, 6; add.s64 %d2, %d2, %out;", "st.global.u32 [%d2], 9;"}, "misaligned=warn");
  EXPECT_EQ(run.found(), Found{"misaligned 16"});
  EXPECT_EQ(run.out[0], 9U);
  EXPECT_EQ(run.out[1], 0U);
  EXPECT_EQ(run.out[3], 9U);
}

/// Both mistakes of one kernel in one run, each once with its count.
TEST(Warnings, SeveralInOneRun) {
  const std::vector<std::string> body = {"xor.b32 %r2, %t, 32; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0;",
                                         "ld.shared.u32 %r3, [%d1+1024];",
                                         "st.shared.u32 [%d1], %t;",
                                         "st.shared.u32 [%d2], 99;",
                                         "bar.sync 0; ld.shared.u32 %r4, [%d1];",
                                         "st.global.u32 [%mine], %r4;"};
  const Ran run(body, "all=warn", 64);
  const Found found = run.found();
  ASSERT_EQ(found.size(), 3U) << "the two stores race with one another";
  EXPECT_EQ(found[0], "uninitialised 64");
  EXPECT_THROW(Ran(body, "", 64), Error);
  EXPECT_EQ(Ran(body, "uninitialised=off,race=off", 64).found(), Found{});
}

TEST(Warnings, LanesAtDifferentBarriersMeet) {
  const std::vector<std::string> body = {"setp.lt.u32 %p1, %t, 16; @%p1 bra OTHER;",
                                         "bar.sync 0; st.global.u32 [%mine], 2; bra.uni END;",
                                         "OTHER: bar.sync 0; st.global.u32 [%mine], 1;", "END: mov.u32 %r2, 0;"};
  const Ran run(body, "divergent=warn", 64);
  EXPECT_EQ(run.found(), Found{"divergent 1"});
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], t < 16 ? 1U : 2U);
  EXPECT_THROW(Ran(body, "", 64), Error);
}

TEST(Warnings, AShuffleFromALaneThatIsElsewhere) {
  const Ran run({"setp.lt.u32 %p1, %t, 8; @!%p1 bra END;", "shfl.sync.idx.b32 %r2, %t, 9, 31, 255;",
                 "END: st.global.u32 [%mine], 1;"},
                "shuffle=warn");
  EXPECT_EQ(run.found(), Found{"shuffle 8"});
  EXPECT_EQ(run.out[31], 1U);
}

/// The flag is 1 whichever warp writes it last. Another value is a race.
TEST(Warnings, TwoWarpsThatWriteTheSameValue) {
  const std::vector<std::string> body = {"mov.u32 %r2, 1;", "st.shared.u32 [tile], %r2;",
                                         "bar.sync 0; ld.shared.u32 %r3, [tile]; st.global.u32 [%mine], %r3;"};
  const Ran run(body, "", 96);
  EXPECT_EQ(run.found(), Found{"same-value 2"});
  EXPECT_THAT(run.text(), HasSubstr("which writes the same value"));
  for (uint32_t t = 0; t < 96; ++t) EXPECT_EQ(run.out[t], 1U);
  std::vector<std::string> other = body;
  other[0] = "shr.u32 %r2, %t, 5;";
  EXPECT_THROW(Ran(other, "", 96), Error);
  other[0] = "mov.u32 %r2, 1; setp.ge.u32 %p1, %t, 32; @%p1 bra WAIT;";
  other[2] = "WAIT: " + body[2];
  EXPECT_EQ(Ran(other, "", 96).found(), Found{}) << "one warp alone";
}

// --- lanes of one warp -------------------------------------------------------------------------------------------------------

TEST(LanesOfAWarp, RaceWithoutSyncwarp) {
  const auto run = [](const std::string& between, const std::string& last) {
    return Ran({"xor.b32 %r2, %t, 1; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0; st.shared.u32 [%d1], %t;",
                between, last},
               "")
        .found();
  };
  const std::string read = "ld.shared.u32 %r3, [%d2]; st.global.u32 [%mine], %r3;", write = "st.shared.u32 [%d2], 99;";
  EXPECT_EQ(run("", read), Found{"warp-race 32"});
  EXPECT_EQ(run("", write), Found{"warp-race 32"});
  EXPECT_EQ(run("ld.shared.u32 %r4, [tile];", "mov.u32 %r5, 0;"), Found{"warp-race 1"})
      << "lane 0's word, by all lanes at once";
  for (const std::string sync : {"bar.warp.sync -1;", "bar.sync 0;", "shfl.sync.idx.b32 %r6, %t, 0, 31, -1;"}) {
    EXPECT_EQ(run(sync, read), Found{}) << sync;
    EXPECT_EQ(run(sync, write), Found{}) << sync;
  }
  EXPECT_EQ(run("", "ld.shared.u32 %r3, [%d1];"), Found{}) << "each lane its own word";
}

TEST(LanesOfAWarp, AReadAndThenAnothersWrite) {
  const Found found = Ran({"st.shared.u32 [%d1], %t; st.shared.u32 [%d1+128], %t; bar.warp.sync -1;",
                           "ld.shared.u32 %r3, [%d1+4];", "st.shared.u32 [%d1], %r3;"},
                          "")
                          .found();
  EXPECT_EQ(found, Found{"warp-race 31"})
      << "lane 31 reads a word that nobody writes, lane 0 writes one that nobody reads";
}

/// Two lanes that write the halves of a word touch different bytes.
TEST(LanesOfAWarp, HalvesOfAWordAreNoRace) {
  EXPECT_EQ(Ran({"mul.wide.u32 %d2, %t, 2; add.s64 %d2, %d2, %d0; cvt.u16.u32 %h1, %t; st.shared.u16 [%d2], %h1;",
                 "ld.shared.u16 %h2, [%d2];"},
                "")
                .found(),
            Found{});
}

// --- no end ------------------------------------------------------------------------------------------------------------------

TEST(InstructionLimit, OfALoopThatCountsHowOftenItHasLooked) {
  try {
    Ran({"mov.u32 %r2, 0;", "LOOP: add.s32 %r2, %r2, 1; ld.volatile.global.u32 %r3, [%out]; setp.eq.u32 %p1, %r3, 0;",
         "@%p1 bra LOOP;"},
        "", 64, 100'000);
    FAIL() << "no report";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::launch_failure);
    EXPECT_THAT(error.what(),
                HasSubstr("a block has executed more than 100000 warp instructions: a loop without an end?"));
    EXPECT_THAT(error.what(), HasSubstr("test.cu:10"));
  }
}

TEST(InstructionLimit, OfALoopWithABarrier) {
  EXPECT_THROW(Ran({"mov.u32 %r2, 0;", "LOOP: add.s32 %r2, %r2, 1; bar.sync 0; bra.uni LOOP;"}, "", 64, 100'000),
               Error);
}

// --- planted mistakes ---------------------------------------------------------------------------------------------------------

struct PlantedMistake {
  const char* name;
  const char* check;   ///< of the warning; "" for an error
  const char* report;  ///< a part of it
};

class Planted : public testing::TestWithParam<PlantedMistake> {};

TEST_P(Planted, IsFoundInEachOrderAndItsMendedKernelIsNotReported) {
  const auto& [name, check, report] = GetParam();
  for (int seed = 0; seed < 30; ++seed) {
    const std::string environment =
        "GEMM_LADDER_SIM_CHECKS=global-race=warn,exited=warn GEMM_LADDER_SIM_SEED=" + std::to_string(seed);
    const Result wrong = run("planted", name, environment);
    ASSERT_THAT(wrong.output, HasSubstr(report)) << "seed " << seed;
    ASSERT_THAT(wrong.output, HasSubstr("planted.cu:")) << "seed " << seed;
    ASSERT_EQ(wrong.status, *check ? 0 : 1) << wrong.output;
    if (*check) {
      ASSERT_THAT(wrong.output, HasSubstr("simulator: warning: "));
      ASSERT_THAT(wrong.output, HasSubstr(std::string(" [") + check + "]\n"));
      ASSERT_THAT(wrong.output, HasSubstr("0 errors\n  "));
    }
    const Result right = run("planted", std::string(name) + " right", environment);
    ASSERT_EQ(right.output, "cudaSuccess\n") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sim, Planted,
    testing::Values(PlantedMistake{"same_value", "same-value", "which writes the same value"},
                    PlantedMistake{"warp_race", "warp-race", "no __syncwarp() between this read and the write at "},
                    PlantedMistake{"third_reader", "", "a race in shared memory"},
                    PlantedMistake{"global_write", "global-race", "a race in global memory at"},
                    PlantedMistake{"global_read", "global-race", "a race in global memory at"},
                    PlantedMistake{"never_written", "global-uninitialised", "a read of global memory that nobody has"},
                    PlantedMistake{"freed", "", "of an allocation of 2048 bytes at 0x"},
                    PlantedMistake{"read_only", "read-only", "of memory that this launch has written"},
                    PlantedMistake{"exited", "exited",
                                   "bar.sync without all lanes of the warp: lanes 16-31 have exited"},
                    PlantedMistake{"member_mask", "member-mask", "the lane is not in its own member mask 0xff"}),
    [](const auto& planted) { return std::string(planted.param.name); });

// --- as a user sets them ------------------------------------------------------------------------------------------------------

TEST(SimChecks, WarningsAreSummedUpAtTheEnd) {
  const Result result = run("mistakes", "race", "GEMM_LADDER_SIM_CHECKS=race=warn");
  EXPECT_THAT(result.output, HasSubstr("simulator: warning: a race in shared memory at "));
  EXPECT_THAT(result.output, HasSubstr("cudaSuccess\nsimulator: 2 warnings, 0 errors\n  race at "));
  EXPECT_THAT(result.output, testing::ContainsRegex("  race at [^\n]*mistakes.cu:3[24], PTX line [0-9]+: [a-z0-9.]*: "
                                                    "[0-9]+ times?\n"));
}

TEST(SimChecks, AnErrorAndAWarning) {
  const Result result = run("planted", "same_value", "GEMM_LADDER_SIM_CHECKS=same-value=error");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("cudaErrorLaunchFailure"));
  EXPECT_THAT(result.output, Not(HasSubstr("warning")));
}

TEST(SimChecks, WhatCannotBeReadEndsTheProgram) {
  const Result checks = run("vector_add", "", "GEMM_LADDER_SIM_CHECKS=races=warn");
  EXPECT_EQ(checks.status, 2);
  EXPECT_EQ(checks.output,
            "simulator: GEMM_LADDER_SIM_CHECKS: there is no check 'races'; there are all, " + Checks::names() + "\n");
  const Result limit = run("vector_add", "", "GEMM_LADDER_SIM_LIMIT=many");
  EXPECT_EQ(limit.status, 2);
  EXPECT_EQ(limit.output, "simulator: GEMM_LADDER_SIM_LIMIT: 'many' is no whole number\n");
}

TEST(SimChecks, TheLimitOfInstructions) {
  const Result result = run("vector_add", "", "GEMM_LADDER_SIM_LIMIT=3");
  EXPECT_THAT(result.output, Not(HasSubstr("a loop without an end"))) << "short kernels are not looked at";
  EXPECT_EQ(run("vector_add", "", "GEMM_LADDER_SIM_LIMIT=0").status, 0);
}

}  // namespace
