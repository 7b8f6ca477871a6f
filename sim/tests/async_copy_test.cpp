// cp.async: what lands, when it lands, and that every early or unordered use of it is reported.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernel_run.h"

namespace {

using namespace sim;
using sim::test::KernelLaunch;
using sim::test::KernelRun;

/// 4096 words: word i holds 1000 + i.
std::vector<uint32_t> numbered() {
  std::vector<uint32_t> words(KernelRun::words);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = 1000 + i;
  return words;
}

void expect_report(const std::vector<std::string>& body, const std::vector<std::string>& parts, uint32_t threads = 32,
                   Fault fault = Fault::launch_failure) {
  sim::test::expect_report(body, {.threads = threads, .in = numbered()}, parts, fault, 1);
}

/// %r10 and %d10: this thread's 16 bytes of shared memory, and of global memory from word 1024 on.
const std::string places =
    "mul.lo.s32 %r11, %t, 16; mov.u32 %r10, tile; add.s32 %r10, %r10, %r11; "
    "mul.wide.u32 %d10, %t, 16; add.s64 %d10, %d10, %out; add.s64 %d10, %d10, 4096; ";
const std::string copy = "cp.async.cg.shared.global [%r10], [%d10], 16;";
const std::string to_out = "ld.shared.u32 %r12, [%r10]; st.global.u32 [%mine], %r12;";

TEST(AsyncCopy, SizesAndZeroFill) {
  // Lane t copies src-size = t % 17, t % 9, t % 5 bytes of 16, 8, 4.
  const struct {
    const char *level, *bytes;
    uint32_t size;
  } cases[] = {{"cg", "16", 16}, {"ca", "16", 16}, {"ca", "8", 8}, {"ca", "4", 4}};
  for (const auto& c : cases) {
    std::string out;
    for (uint32_t i = 0; i < c.size / 4; ++i) {
      const std::string byte = std::to_string(4 * i);
      out +=
          "ld.shared.u32 %r12, [%r10+" + byte + "]; add.s64 %d11, %d10, 4096; st.global.u32 [%d11+" + byte + "], %r12;";
    }
    const KernelRun run(
        {places, "rem.u32 %r13, %t, " + std::to_string(c.size + 1) + ";",
         std::string("cp.async.") + c.level + ".shared.global.L2::128B [%r10], [%d10], " + c.bytes + ", %r13;",
         "cp.async.wait_all;", out},
        {.in = numbered()});
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t byte = 0; byte < c.size; ++byte) {
        const uint32_t word = 4 * t + byte / 4;
        const auto byte_of = [&](uint32_t value) { return value >> 8 * (byte % 4) & 0xff; };
        ASSERT_EQ(byte_of(run.out[2048 + word]), byte < t % (c.size + 1) ? byte_of(1000 + 1024 + word) : 0)
            << c.level << " " << c.bytes << " lane " << t << " byte " << byte;
      }
  }
}

TEST(AsyncCopy, IgnoredSourceAndCachePolicy) {
  const KernelRun run({places, "and.b32 %r13, %t, 1; setp.eq.s32 %p1, %r13, 0; mov.u64 %d12, 0;",
                       "cp.async.ca.shared::cta.global.L2::cache_hint [%r10], [%d10], 16, %p1, %d12;",
                       "cp.async.commit_group; cp.async.wait_group 0;", to_out},
                      {.in = numbered()});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t % 2 == 0 ? 0 : 1000 + 1024 + 4 * t);
}

/// The source is read when the wait demands it, group by group, not when the copy is issued.
TEST(AsyncCopy, LandsAtTheWait) {
  const KernelRun run({places + "mov.u32 %r20, 7; mov.u32 %r21, 8;", copy + "cp.async.commit_group;",
                       "cp.async.cg.shared.global [%r10+1024], [%d10+1024], 16; cp.async.commit_group;",
                       "st.global.u32 [%d10], %r20; cp.async.wait_group 1;",
                       "st.global.u32 [%d10], %r21; st.global.u32 [%d10+1024], %r21; cp.async.wait_group 0;", to_out,
                       "ld.shared.u32 %r12, [%r10+1024]; st.global.u32 [%mine+128], %r12;"},
                      {.in = numbered()});
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(run.out[t], 7U) << "the first group landed at wait_group 1";
    EXPECT_EQ(run.out[32 + t], 8U) << "the second at wait_group 0";
  }
}

/// A copy that is not committed belongs to the group that the next commit closes. wait_group does not wait for it.
TEST(AsyncCopy, UncommittedCopiesAreNotWaitedFor) {
  expect_report({places, copy, "cp.async.wait_group 0;", to_out},
                {"test.cu:104", "a read of shared memory", "still under way", "test.cu:102"});
}

TEST(AsyncCopy, GroupsBelongToLanes) {
  // The lower half of the lanes commits one more group, an empty one. So wait_group 1 completes the copy for these lanes.
  const std::vector<std::string> body = {places + "setp.lt.u32 %p1, %t, 16;", copy + "cp.async.commit_group;",
                                         "@%p1 cp.async.commit_group;", "cp.async.wait_group 1;"};
  std::vector<std::string> lower = body, upper = body;
  lower.push_back("@%p1 ld.shared.u32 %r12, [%r10]; @%p1 st.global.u32 [%mine], %r12;");
  const KernelRun run(lower, {.in = numbered()});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t < 16 ? 1000 + 1024 + 4 * t : 1000 + t);
  upper.push_back("@!%p1 ld.shared.u32 %r12, [%r10];");
  expect_report(upper, {"test.cu:105", "lane 16", "still under way", "test.cu:102"});
}

// --- planted faults ----------------------------------------------------------------------------------------------------------

TEST(AsyncCopyChecks, AWaitGroupTooFew) {
  expect_report({places, copy + "cp.async.commit_group;", "cp.async.wait_group 1;", "bar.sync 0;", to_out},
                {"test.cu:105", "while the asynchronous copy into it, of warp 0 at test.cu:102", "still under way"});
}
TEST(AsyncCopyChecks, TheBufferIsWrittenWhileItsCopyIsUnderWay) {
  expect_report({places, copy + "cp.async.commit_group;", "st.shared.u32 [%r10], %t;", "cp.async.wait_group 0;"},
                {"test.cu:103", "a write of shared memory", "still under way"});
  expect_report({places, copy, copy, "cp.async.wait_all;"}, {"test.cu:103", "still under way", "test.cu:102"});
}
TEST(AsyncCopyChecks, NoBarrierAfterTheWait) {
  const std::string others = "xor.b32 %r14, %r10, 512; ld.shared.u32 %r12, [%r14]; st.global.u32 [%mine], %r12;";
  // In some orders of the warps the other warp's copy has not landed; in others it has, but no barrier guarantees it.
  const std::string second = "setp.ge.u32 %p1, %t, 32; xor.b32 %r14, %r10, 512; @%p1 ld.shared.u32 %r12, [%r14];";
  int races = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    try {
      KernelRun run({places, copy, "bar.sync 0;", "cp.async.wait_all;", second},
                    {.threads = 64, .seed = seed, .in = numbered()});
      ADD_FAILURE() << "no report with seed " << seed;
    } catch (const Error& error) {
      const std::string report = error.what();
      EXPECT_NE(report.find("test.cu:105"), std::string::npos) << report;
      EXPECT_NE(report.find("test.cu:102"), std::string::npos) << report;
      races += report.find("no barrier between this read and the write of warp") != std::string::npos;
    }
  }
  EXPECT_GT(races, 0);
  expect_report({places, copy, "bar.sync 0;", others}, {"test.cu:104", "still under way", "test.cu:102"}, 64);
  const KernelRun run({places, copy, "cp.async.wait_all;", "bar.sync 0;", others}, {.threads = 64, .in = numbered()});
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], 1000 + 1024 + 4 * (t ^ 32));
}
TEST(AsyncCopyChecks, TheBufferIsStillBeingReadByOthers) {
  const std::string others = "xor.b32 %r14, %r10, 512; ld.shared.u32 %r12, [%r14];";
  expect_report(
      {places + "st.shared.v4.u32 [%r10], {%t, %t, %t, %t};", "bar.sync 0;", others, copy, "cp.async.wait_all;"},
      {"a race in shared memory", "test.cu:103", "test.cu:104"}, 64);
}
TEST(AsyncCopyChecks, Addresses) {
  expect_report({places, "cp.async.ca.shared.global [%r10+4], [%d10], 8;"}, {"test.cu:102", "misaligned"}, 32,
                Fault::misaligned);
  expect_report({places, "cp.async.ca.shared.global [%r10], [%d10+4], 8;"}, {"test.cu:102", "misaligned"}, 32,
                Fault::misaligned);
  expect_report({places, "cp.async.ca.shared.global [%r10+65536], [%d10], 16;"},
                {"test.cu:102", "65536 bytes of shared"}, 32, Fault::illegal_address);
  expect_report({places, "cp.async.ca.shared.global [%r10], [%d10+11792], 16;"},
                {"test.cu:102", "a copy of 16 bytes outside of every allocation", "lane 31"}, 32,
                Fault::illegal_address);
  // With no byte to read, the source may point anywhere.
  const KernelRun run({places, "cp.async.ca.shared.global [%r10], [%d10+1179200], 16, 0; cp.async.wait_all;", to_out},
                      {.in = numbered()});
  EXPECT_EQ(run.out[31], 0U);
}

// --- cp.async.mbarrier.arrive -------------------------------------------------------------------------------------------------

/// An mbarrier at 32768, in %r20, of so many arrivals; warp 1 waits for it and then takes what warp 0 has copied.
std::string make_mbarrier(int arrivals) {
  return places + "mov.u32 %r20, 32768; setp.eq.s32 %p7, %t, 0; @%p7 mbarrier.init.shared.b64 [%r20], " +
         std::to_string(arrivals) + "; bar.sync 0; setp.lt.u32 %p1, %t, 32;";
}
const std::string wait_for_it = "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r20], 0; @!%p6 bra WAIT;";
const std::string take_the_others = "xor.b32 %r13, %r11, 512; ld.shared.u32 %r12, [%r13]; st.global.u32 [%mine], %r12;";

TEST(AsyncCopy, ArrivesAtAnMbarrier) {
  // .noinc: each copying lane is one of the expected arrivals. Without: it is one more, next to its plain arrival.
  const struct {
    std::string arrive;
    int arrivals;
  } cases[] = {{"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20];", 64},
               {"cp.async.mbarrier.arrive.shared.b64 [%r20]; mbarrier.arrive.shared.b64 _, [%r20];", 64},
               {"cvt.u64.u32 %d3, %r20; cvta.shared.u64 %d3, %d3; cp.async.mbarrier.arrive.noinc.b64 [%d3];", 64}};
  for (const auto& c : cases)
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const KernelRun run({make_mbarrier(c.arrivals), copy, c.arrive, wait_for_it, take_the_others},
                          {.threads = 64, .seed = seed, .in = numbered()});
      for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(run.out[t], 1000 + 1024 + 4 * (t ^ 32)) << c.arrive << seed;
    }
}
TEST(AsyncCopy, AnArrivalCoversTheCopiesBeforeItAlone) {
  // The source of the second copy changes after the phase is complete. That copy lands later, with the new value.
  const KernelRun run({make_mbarrier(32), copy, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];",
                       "cp.async.cg.shared.global [%r10+4096], [%d10], 16;", wait_for_it,
                       "ld.shared.u32 %r12, [%r10]; st.global.u32 [%d10], 7; cp.async.wait_all; "
                       "ld.shared.u32 %r13, [%r10+4096]; mad.lo.s32 %r12, %r12, 10, %r13; st.global.u32 [%mine], "
                       "%r12;"},
                      {.in = numbered()});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], (1000 + 1024 + 4 * t) * 10 + 7);
}
TEST(AsyncCopy, AWaitAfterTheArrivalKnowsOfTheCopies) {
  // Warp 0 copies and waits by wait_all, warp 1 by the mbarrier: whichever comes first, both may read.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const KernelRun run({make_mbarrier(32), "@!%p1 bra OTHER;", copy,
                         "cp.async.mbarrier.arrive.noinc.shared.b64 [%r20]; nanosleep.u32 1;", "cp.async.wait_all;",
                         "ld.shared.u32 %r12, [%r10]; bra.uni END;", "OTHER:", wait_for_it,
                         "xor.b32 %r13, %r11, 512; ld.shared.u32 %r12, [%r13];", "END: st.global.u32 [%mine], %r12;"},
                        {.threads = 64, .seed = seed, .in = numbered()});
    for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(run.out[t], 1000 + 1024 + 4 * (t % 32)) << seed;
  }
}
TEST(AsyncCopyChecks, NobodyWaitsAtTheMbarrier) {
  expect_report(
      {make_mbarrier(64), copy, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];", "bar.sync 0;", take_the_others},
      {"a read of shared memory", "still under way", "test.cu:102", "test.cu:105"}, 64);
}
TEST(AsyncCopyChecks, ThePlainArrivalDoesNotWaitForTheCopies) {
  expect_report({make_mbarrier(64), copy, "mbarrier.arrive.shared.b64 _, [%r20];", wait_for_it, take_the_others},
                {"a read of shared memory", "still under way", "test.cu:102", "test.cu:105"}, 64);
}
TEST(AsyncCopyChecks, MoreCopiesArriveThanAreExpected) {
  expect_report({make_mbarrier(16), copy, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r20];", wait_for_it},
                {"32 arrivals at an mbarrier that waits for 16 of 16", "test.cu:103"});
}
TEST(AsyncCopyChecks, ArrivalAtNoMbarrier) {
  expect_report({places, copy, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r10];"},
                {"no mbarrier has been initialised", "test.cu:103"});
}

TEST(AsyncCopy, Counts) {
  const KernelRun run({places, copy, "setp.lt.u32 %p1, %t, 8; selp.u32 %r13, 16, 0, %p1;",
                       "cp.async.cg.shared.global [%r10+1024], [%d10], 16, %r13;", "cp.async.wait_all;"},
                      {.in = numbered()});
  const Counts& whole = run.counters.lines.at({"test.cu", 102});
  EXPECT_EQ(whole.global_loads, 1U);
  EXPECT_EQ(whole.global_load_sectors, 16U);
  EXPECT_EQ(whole.global_load_bytes, 512U);
  EXPECT_EQ(whole.shared_stores, 1U);
  EXPECT_EQ(whole.shared_store_bytes, 512U);
  EXPECT_EQ(whole.shared_store_wavefronts, 4U);
  EXPECT_EQ(whole.shared_store_ideal, 4U);
  const Counts& quarter = run.counters.lines.at({"test.cu", 104});
  EXPECT_EQ(quarter.global_load_sectors, 4U) << "zeros are not read";
  EXPECT_EQ(quarter.global_load_bytes, 128U);
  EXPECT_EQ(quarter.shared_store_bytes, 512U) << "but written";
}

}  // namespace
