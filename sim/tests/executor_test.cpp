// How warps and blocks run: divergence, barriers, exchange within a warp, calls, atomics. Every planted fault is reported
// at its line, and correct kernels are not reported. What is counted.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/shared_memory.h"
#include "ptx/parser.h"
#include "tests/kernel_run.h"
#include "tests/nvcc.h"

namespace {

using namespace sim;

/// With 4 KiB of shared memory.
struct Launched : test::KernelRun {
  explicit Launched(const std::vector<std::string>& body, uint32_t threads = 32, uint32_t blocks = 1, uint64_t seed = 0,
                    const std::string& before = "")
      : KernelRun(body, launch(threads, blocks, seed, before)) {}
  static test::KernelLaunch launch(uint32_t threads, uint32_t blocks = 1, uint64_t seed = 0,
                                   const std::string& before = "") {
    return {.threads = threads,
            .blocks = blocks,
            .seed = seed,
            .before = before,
            .checks = "uninitialised=error",
            .tile_bytes = 4096};
  }
};

void expect_report(const std::vector<std::string>& body, Fault fault, const std::vector<std::string>& parts,
                   uint32_t threads = 32) {
  test::expect_report(body, Launched::launch(threads), parts, fault, 1);
}

// --- divergence ------------------------------------------------------------------------------------------------------------

TEST(Divergence, IfAndElseMeetAgain) {
  const Launched run({"and.b32 %r2, %t, 1; setp.eq.s32 %p1, %r2, 0; @%p1 bra EVEN;",
                      "mul.lo.s32 %r3, %t, 3; bra.uni JOIN;", "EVEN: add.s32 %r3, %t, 1000;",
                      "JOIN: activemask.b32 %r4; setp.eq.s32 %p2, %r4, -1; @%p2 add.s32 %r3, %r3, 100000;",
                      "st.global.u32 [%mine], %r3;"});
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(run.out[t], (t % 2 ? 3 * t : t + 1000) + 100000) << "all lanes are active after the join";
}

TEST(Divergence, LoopsOfDifferentLengthInsideOneAnother) {
  const Launched run(
      {"mov.u32 %r2, 0; mov.u32 %r3, 0;", "OUTER: setp.ge.u32 %p1, %r2, %t; @%p1 bra DONE; mov.u32 %r4, 0;",
       "INNER: setp.gt.u32 %p2, %r4, %r2; @%p2 bra NEXT; add.s32 %r3, %r3, 1; add.s32 %r4, %r4, 1; bra INNER;",
       "NEXT: add.s32 %r2, %r2, 1; bra OUTER;",
       "DONE: shfl.sync.idx.b32 %r5, %r3, 31, 31, -1; add.s32 %r3, %r3, %r5; st.global.u32 [%mine], %r3;"});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t * (t + 1) / 2 + 31 * 32 / 2);
}

TEST(Divergence, EarlyReturnAndBarrier) {
  const Launched run({"setp.ge.u32 %p1, %t, 40; @%p1 ret;", "bar.sync 0;", "st.global.u32 [%mine], 7;"}, 96);
  for (uint32_t t = 0; t < 96; ++t) EXPECT_EQ(run.out[t], t < 40 ? 7U : 0U);
}

TEST(Divergence, CallsInABranch) {
  const Launched run(
      {"mov.u32 %r3, %t; setp.lt.u32 %p1, %t, 9; @%p1 bra SKIP;",
       "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %t; call.uni (r), square, (a); ld.param.b32 %r3, [r]; }",
       "SKIP: st.global.u32 [%mine], %r3;"},
      64, 1, 0,
      ".func (.param .b32 result) square(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; mul.lo.s32 %a, %a, %a; "
      "st.param.b32 [result], %a; ret; }");
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], t < 9 ? t : t * t);
}

// --- warps -----------------------------------------------------------------------------------------------------------------

TEST(Warp, ShufflesVotesAndMatches) {
  const Launched run(
      {"shfl.sync.down.b32 %r2|%p1, %t, 1, 31, -1; selp.b32 %r3, 1000, 0, %p1; add.s32 %r2, %r2, %r3; st.global.u32 "
       "[%mine], %r2;",
       "shfl.sync.bfly.b32 %r2, %t, 5, 0x181f, -1; st.global.u32 [%mine+128], %r2;",
       "shfl.sync.up.b32 %r2, %t, 3, 0, -1; st.global.u32 [%mine+256], %r2;",
       "setp.lt.u32 %p2, %t, 5; vote.sync.ballot.b32 %r2, %p2, -1; st.global.u32 [%mine+384], %r2;",
       "and.b32 %r4, %t, 3; match.any.sync.b32 %r2, %r4, -1; st.global.u32 [%mine+512], %r2;",
       "redux.sync.add.s32 %r2, %t, -1; st.global.u32 [%mine+640], %r2;"});
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(run.out[t], t < 31 ? t + 1 + 1000 : 31);
    EXPECT_EQ(run.out[32 + t], t ^ 5);
    EXPECT_EQ(run.out[64 + t], t >= 3 ? t - 3 : t);
    EXPECT_EQ(run.out[96 + t], 31U);
    EXPECT_EQ(run.out[128 + t], 0x11111111U << t % 4);
    EXPECT_EQ(run.out[160 + t], 496U);
  }
}

/// The modifiers of an instruction of the warp may stand in any order.
TEST(Warp, ModifiersInAnyOrder) {
  const Launched run({"setp.lt.u32 %p2, %t, 5; vote.ballot.sync.b32 %r2, %p2, -1; st.global.u32 [%mine], %r2;",
                      "vote.any.sync.pred %p3, %p2, -1; selp.b32 %r2, 1, 0, %p3; st.global.u32 [%mine+128], %r2;",
                      "vote.sync.all.pred %p3, !%p2, -1; selp.b32 %r2, 1, 0, %p3; st.global.u32 [%mine+256], %r2;",
                      "shfl.idx.sync.b32 %r2, %t, 7, 31, -1; st.global.u32 [%mine+384], %r2;",
                      "and.b32 %r4, %t, 1; match.sync.any.b32 %r2, %r4, -1; st.global.u32 [%mine+512], %r2;",
                      "redux.max.sync.u32 %r2, %t, -1; st.global.u32 [%mine+640], %r2;"});
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(run.out[t], 31U);
    EXPECT_EQ(run.out[32 + t], 1U);
    EXPECT_EQ(run.out[64 + t], 0U);
    EXPECT_EQ(run.out[96 + t], 7U);
    EXPECT_EQ(run.out[128 + t], 0x55555555U << t % 2);
    EXPECT_EQ(run.out[160 + t], 31U);
  }
}

/// Variables of every space lie where they ask to.
TEST(Memory, VariablesAreAlignedAsTheyAsk) {
  const Launched run(
      {".shared .align 4 .b8 small[4]; .shared .align 16384 .b8 wide[64]; .shared .align 65536 .b8 wider[64]; "
       ".local .align 4 .b8 odd[4]; .local .align 2048 .b8 own[64];",
       "mov.u64 %d0, wide; cvta.shared.u64 %d0, %d0; cvt.u32.u64 %r2, %d0; and.b32 %r2, %r2, 16383; "
       "st.global.u32 [%mine], %r2; mov.u64 %d0, wider; cvt.u32.u64 %r2, %d0; and.b32 %r2, %r2, 65535; "
       "st.global.u32 [%mine+128], %r2;",
       "mov.u64 %d0, own; cvta.local.u64 %d0, %d0; st.u32 [%d0], 1; cvt.u32.u64 %r2, %d0; and.b32 %r2, %r2, 2047; "
       "st.global.u32 [%mine+256], %r2; mov.u64 %d0, odd; st.local.u32 [%d0], 5; mov.u64 %d0, own; "
       "ld.local.u32 %r2, [%d0]; st.global.u32 [%mine+384], %r2;"});
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(run.out[t], 0U);
    EXPECT_EQ(run.out[32 + t], 0U);
    EXPECT_EQ(run.out[64 + t], 0U);
    EXPECT_EQ(run.out[96 + t], 1U);
  }
}

/// The system's shared memory is zero when a block starts, and the block's own ends before it.
TEST(Memory, ReservedSharedMemory) {
  const std::vector<std::string> body = {
      "mov.u32 %r2, %reserved_smem_offset_begin; mov.u32 %r3, %reserved_smem_offset_end; "
      "mov.u32 %r4, %reserved_smem_offset_cap; sub.s32 %r3, %r3, %r2; sub.s32 %r3, %r3, %r4;",
      "mov.u32 %r5, %reserved_smem_offset_1; atom.shared.add.u32 %r6, [%r5], 1; bar.sync 0;",
      "ld.shared.u32 %r6, [%r5]; add.s32 %r6, %r6, %r3; mov.u32 %r7, %total_smem_size; "
      "mad.lo.s32 %r6, %r7, 1000, %r6; st.global.u32 [%mine], %r6;"};
  const Launched run(body, 64, 5);
  for (uint32_t t = 0; t < 320; ++t) EXPECT_EQ(run.out[t], 4096064U);
  std::vector<std::string> past = body;
  past.push_back("st.shared.u32 [tile+4096], %t;");
  expect_report(past, Fault::illegal_address, {"test.cu:104", "outside of the block's 4096 bytes"});
  past.back() = "st.shared.u32 [%r5+512], %t;";
  expect_report(past, Fault::illegal_address, {"test.cu:104", "outside of the block's 4096 bytes"});
}

// --- blocks ----------------------------------------------------------------------------------------------------------------

TEST(Barriers, TheBlockReversesItself) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Launched run(
        {"mov.u64 %d0, tile; mul.wide.u32 %d1, %t, 4; add.s64 %d1, %d1, %d0; st.shared.u32 [%d1], %w;", "bar.sync 0;",
         "sub.s32 %r2, 255, %t; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0; ld.shared.u32 %r3, [%d2]; "
         "st.global.u32 [%mine], %r3;"},
        256, 8, seed);
    for (uint32_t i = 0; i < 2048; ++i) ASSERT_EQ(run.out[i], i / 256 * 256 + 255 - i % 256);
  }
}

/// Warps that returned before a barrier: what they did happened before it, because it has waited for their end.
TEST(Barriers, WaitForTheEndOfWarpsThatReturn) {
  const auto body = [](const std::string& barrier) {
    return std::vector<std::string>{
        "mov.u64 %d0, tile; mul.wide.u32 %d1, %t, 4; add.s64 %d1, %d1, %d0; st.shared.u32 [%d1], %t;",
        "setp.lt.u32 %p1, %t, 72; @%p1 ret;", barrier,
        "xor.b32 %r2, %t, 64; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0; ld.shared.u32 %r3, [%d2]; "
        "st.global.u32 [%mine], %r3;"};
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Launched run(body("bar.sync 0;"), 128, 2, seed);
    for (uint32_t i = 0; i < 256; ++i) ASSERT_EQ(run.out[i], i % 128 < 72 ? 0 : i % 128 ^ 64);
    EXPECT_EQ(Launched(body("bar.red.popc.u32 %r4, 0, %p1;"), 128, 1, seed).out[100], 36U);
    // A barrier of a number of threads waits for nobody's end.
    expect_report(body("bar.sync 1, 64;"), Fault::launch_failure,
                  {"a race in shared memory", "test.cu:101", "test.cu:104"}, 128);
  }
}

TEST(Barriers, ProducersArriveConsumersWait) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Launched run({"mov.u64 %d0, tile; and.b32 %r2, %t, 31; mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d1, %d0; "
                        "setp.ge.u32 %p1, %t, 32; @%p1 bra CONSUMER;",
                        "st.shared.u32 [%d1], %t; bar.arrive 1, 64; ret;",
                        "CONSUMER: bar.sync 1, 64; ld.shared.u32 %r3, [%d1]; st.global.u32 [%mine], %r3;"},
                       64, 1, seed);
    for (uint32_t t = 0; t < 32; ++t) ASSERT_EQ(run.out[32 + t], t);
  }
}

TEST(Barriers, Reduction) {
  const Launched run({"setp.lt.u32 %p1, %t, 70; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; "
                      "bar.red.or.pred %p3, 0, %p1;",
                      "selp.b32 %r3, 1000, 0, %p2; selp.b32 %r4, 2000, 0, %p3; add.s32 %r2, %r2, %r3; add.s32 %r2, "
                      "%r2, %r4; st.global.u32 [%mine], %r2;"},
                     128);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(run.out[t], 2070U);
}

TEST(Atomics, FromEveryBlock) {
  const Launched run({"atom.global.add.u32 %r2, [%out], 1; red.global.max.u32 [%out+4], %w; atom.global.cas.b32 %r3, "
                      "[%out+8], 0, 5; mov.f32 %f1, 0f3F800000; red.global.add.f32 [%out+12], %f1;"},
                     128, 64);
  EXPECT_EQ(run.out[0], 8192U);
  EXPECT_EQ(run.out[1], 8191U);
  EXPECT_EQ(run.out[2], 5U);
  EXPECT_EQ(run.out[3], 0x46000000U) << "8192.0";
}

/// Which of several lanes wins is not specified. The seed decides, and over many seeds every lane wins at least once.
TEST(Warp, LanesThatWriteToOnePlaceWinInTurn) {
  uint32_t winners = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Launched run(
        {"st.shared.u32 [tile], %t;", "bar.warp.sync -1; ld.shared.u32 %r2, [tile];", "st.global.u32 [%mine], %r2;"},
        32, 1, seed);
    for (uint32_t t = 1; t < 32; ++t) ASSERT_EQ(run.out[t], run.out[0]);
    winners |= 1U << run.out[0];
  }
  EXPECT_EQ(winners, 0xffffffffU);
}

// --- planted faults: each is reported, at its line --------------------------------------------------------------------------

const std::string own_word = "mov.u64 %d0, tile; mul.wide.u32 %d1, %t, 4; add.s64 %d1, %d1, %d0; ";

TEST(Checks, GlobalOutOfBounds) {
  expect_report({"add.s64 %d1, %mine, 16384;", "st.global.u32 [%d1], %t;"}, Fault::illegal_address,
                {"test.cu:102", "outside of every allocation", "lane 0", "block (0, 0, 0)", "kernel k"});
  expect_report({"ld.global.u32 %r2, [%mine+-4];"}, Fault::illegal_address,
                {"test.cu:101", "4 bytes before", "lane 0"});
}
TEST(Checks, SharedOutOfBounds) {
  expect_report({own_word, "st.shared.u32 [%d1+3972], %t;"}, Fault::illegal_address,
                {"test.cu:102", "lane 31", "4096 bytes of shared memory"});
}
TEST(Checks, Misaligned) {
  expect_report({"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%mine];"}, Fault::misaligned,
                {"test.cu:101", "misaligned", "lane 1"});
  expect_report({own_word, "st.shared.u32 [%d1+2], %t;"}, Fault::misaligned, {"test.cu:102", "misaligned"});
}

/// A loop of loads in one pattern: each is checked, though it is as the one before it. `load` reads at %d1 into %r3; a round later
/// %d1 is `step` bytes further. Their sum is stored.
std::vector<std::string> loads(const std::string& load, int step, int rounds, const std::string& between = "") {
  return {"mov.u32 %r2, 0; mov.u32 %r4, 0;", "LOOP: " + load,
          between + "add.s32 %r4, %r4, %r3; add.s64 %d1, %d1, " + std::to_string(step) + "; add.s32 %r2, %r2, 1;",
          "setp.lt.s32 %p1, %r2, " + std::to_string(rounds) + "; @%p1 bra LOOP;", "st.global.u32 [%mine], %r4;"};
}
TEST(Checks, TheLastLoadOfALoopIsOutOfBounds) {
  const std::string side_by_side = "ld.global.u32 %r3, [%d1];",
                    of_four = "ld.global.v4.u32 {%r3, %r5, %r6, %r7}, [%d1];";
  const auto from = [](std::string start, std::vector<std::string> body) {
    body[0] += start;
    return body;
  };
  const std::string mine = "mov.u64 %d1, %mine;", same = "mov.u64 %d1, %out;";
  const std::string apart = "mul.wide.u32 %d1, %t, 48; add.s64 %d1, %d1, %out;";
  Launched(from(mine, loads(side_by_side, 4, 4065)));
  expect_report(from(mine, loads(side_by_side, 4, 4066)), Fault::illegal_address,
                {"test.cu:102", "0 bytes past", "lane 31"});
  Launched(from(same, loads(side_by_side, 4, 4096)));
  expect_report(from(same, loads(side_by_side, 4, 4097)), Fault::illegal_address,
                {"test.cu:102", "0 bytes past", "lane 0"});
  Launched(from(apart, loads(of_four, 16, 931)));
  expect_report(from(apart, loads(of_four, 16, 932)), Fault::illegal_address, {"test.cu:102", "lane 31"});
  const std::string down = "add.s64 %d1, %mine, 64;";
  Launched(from(down, loads(side_by_side, -4, 17)));
  expect_report(from(down, loads(side_by_side, -4, 18)), Fault::illegal_address,
                {"test.cu:102", "4 bytes before", "lane 0"});
}
TEST(Checks, ALoadOfALoopIsMisaligned) {
  auto body = loads("ld.global.u32 %r3, [%d1];", 4, 9, "setp.eq.s32 %p2, %r2, 6; @%p2 add.s64 %d1, %d1, 2;");
  body[0] += "mov.u64 %d1, %mine;";
  expect_report(body, Fault::misaligned, {"test.cu:102", "misaligned", "lane 0"});
}
TEST(Checks, ALoadOfALoopFindsWhatTheLaunchHasStored) {
  auto body =
      loads("ld.global.nc.u32 %r3, [%d1];", 128, 9, "setp.eq.s32 %p2, %r2, 6; @%p2 st.global.u32 [%d1+128], 1;");
  body[0] += "mov.u64 %d1, %mine;";
  test::expect_report(body, {.checks = "read-only=error"},
                      {"test.cu:102", "ld.global.nc", "memory that this launch has written"});
}
/// In the pattern of the loads before, the same lanes; in another; and again in the first.
TEST(Checks, LoadsOfALoopInPatternsThatChange) {
  auto body =
      loads("ld.global.u32 %r3, [%d1];", 0, 12,
            "and.b32 %r5, %r2, 3; setp.eq.s32 %p2, %r5, 1; selp.b32 %r6, 4, 8, %p2; mul.lo.u32 %r6, %r6, %t; "
            "setp.eq.s32 %p2, %r5, 2; selp.b32 %r6, 40, %r6, %p2; cvt.u64.u32 %d1, %r6; add.s64 %d1, %d1, %out;");
  body[0] +=
      "mul.lo.u32 %r5, %t, 100; st.global.u32 [%mine], %r5; st.global.u32 [%mine+128], %r5; bar.warp.sync -1; "
      "mov.u64 %d1, %mine;";
  const Launched run(body);
  for (uint32_t t = 0; t < 32; ++t) {
    const auto word = [](uint32_t i) { return i % 32 * 100; };
    uint32_t sum = word(t), at = t;  // of the first load; then where the next one looks
    for (uint32_t round = 1; round < 12; ++round) {
      const uint32_t last = (round - 1) % 4;
      at = last == 1 ? t : last == 2 ? 10 : 2 * t;
      sum += word(at);
    }
    EXPECT_EQ(run.out[t], sum) << t;
  }
}
TEST(Checks, UninitialisedShared) {
  expect_report(
      {own_word, "setp.ne.s32 %p1, %t, 17; @%p1 st.shared.u32 [%d1], %t;", "bar.sync 0;", "ld.shared.u32 %r2, [%d1];"},
      Fault::launch_failure, {"test.cu:104", "nobody in this block has written", "lane 17"});
}
TEST(Checks, RaceOfAMissingBarrier) {
  expect_report({own_word + "st.shared.u32 [%d1], %t;",
                 "xor.b32 %r2, %t, 32; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0; ", "st.shared.u32 [%d2], %t;"},
                Fault::launch_failure, {"test.cu:10", "a race in shared memory"}, 64);
  // read, then overwritten by the other warp without a barrier between
  expect_report({own_word + "st.shared.u32 [%d1], %t;", "bar.sync 0;",
                 "xor.b32 %r2, %t, 32; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d2, %d0; ld.shared.u32 %r3, [%d2];",
                 "st.shared.u32 [%d1], %r3;"},
                Fault::launch_failure, {"a race in shared memory", "test.cu:103", "test.cu:104"}, 64);
}
TEST(Checks, DivergentBarrier) {
  expect_report({"setp.lt.u32 %p1, %t, 7; @%p1 bra OTHER;", "bar.sync 0; bra.uni END;", "OTHER: bar.sync 0;",
                 "END: st.global.u32 [%mine], 1;"},
                Fault::launch_failure, {"divergent bar.sync", "test.cu:102", "test.cu:103", "lanes 0-6"});
}
TEST(Checks, ShuffleFromALaneThatIsElsewhere) {
  expect_report({"setp.lt.u32 %p1, %t, 7; @!%p1 bra END;", "shfl.sync.idx.b32 %r2, %t, 9, 31, 127;",
                 "END: st.global.u32 [%mine], 1;"},
                Fault::launch_failure, {"test.cu:102", "lane 9, which does not take part"});
}
TEST(Checks, Deadlock) {
  expect_report({"setp.lt.u32 %p1, %t, 32; @%p1 bra OTHER;", "bar.sync 1, 96; bra.uni END;", "OTHER: bar.sync 2, 96;",
                 "END: st.global.u32 [%mine], 1;"},
                Fault::launch_failure,
                {"deadlock", "warp 0 waits at barrier 2 (1 of 3", "warp 1 waits at barrier 1 (2 of 3", "test.cu:102",
                 "test.cu:103"},
                96);
}
/// A loop waits for a word that no thread can write any more; with nanosleep, too.
TEST(Checks, Livelock) {
  for (const std::string pause : {"", "nanosleep.u32 20; "})
    for (const uint32_t threads : {32U, 96U})
      expect_report({"setp.ge.u32 %p1, %t, 32; @%p1 bra END;",
                     "SPIN: ld.volatile.global.u32 %r2, [%out]; setp.eq.s32 %p2, %r2, 0; " + pause + "@%p2 bra SPIN;",
                     "END: bar.sync 0; st.global.u32 [%mine], 1;"},
                    Fault::launch_failure, {"livelock", "test.cu:102", "warp 0 spins"}, threads);
  // A lock that nobody gives back; and two locks that the lanes of a warp take in different orders.
  const std::string take = "atom.global.cas.b32 %r2, [%d1], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 bra ",
                    take_other = "atom.global.cas.b32 %r2, [%d2], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 bra ";
  expect_report({"mov.u64 %d1, %out;", "SPIN: " + take + "SPIN;"}, Fault::launch_failure,
                {"livelock", "test.cu:102", "warp 0 spins"});
  expect_report(
      {"and.b32 %r3, %t, 1; mul.wide.u32 %d1, %r3, 4; add.s64 %d1, %out, %d1; xor.b32 %r3, %r3, 1; "
       "mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %out, %d2;",
       "FIRST: " + take + "FIRST;", "SECOND: " + take_other + "SECOND;", "atom.global.exch.b32 %r2, [%d1], 0;"},
      Fault::launch_failure, {"livelock", "test.cu:10", "warp 0 spins"});
}

/// Each lane of a warp takes the same lock. The lane that has it comes to its turn, though 31 others spin: in the loop before the
/// critical section, or at its end, where the compiler may put the section behind the loop.
TEST(Barriers, LanesOfOneWarpTakeALockInTurn) {
  const std::string critical =
      "ld.volatile.global.u32 %r4, [%out+4]; add.s32 %r4, %r4, 1; "
      "st.volatile.global.u32 [%out+4], %r4; membar.gl; atom.global.exch.b32 %r5, [%out], 0;";
  const std::vector<std::vector<std::string>> variants = {
      {"SPIN: atom.global.cas.b32 %r2, [%out], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 bra SPIN;", critical},
      {"SPIN: atom.global.cas.b32 %r2, [%out], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 nanosleep.u32 20; @%p1 bra SPIN;",
       critical},
      // done = false; while (!done) if (lock is taken) { ...; done = true; }
      {"mov.u32 %r3, 0;", "LOOP: atom.global.cas.b32 %r2, [%out], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 bra NEXT;",
       critical + " mov.u32 %r3, 1;", "NEXT: setp.eq.s32 %p2, %r3, 0; @%p2 bra LOOP;"},
      {"mov.u32 %r3, 0;", "LOOP: atom.global.cas.b32 %r2, [%out], 0, 1; setp.eq.s32 %p1, %r2, 0; @%p1 bra TAKEN;",
       "NEXT: setp.eq.s32 %p2, %r3, 0; @%p2 bra LOOP; bra.uni END;", "TAKEN:" + critical + " mov.u32 %r3, 1; bra NEXT;",
       "END: bar.warp.sync -1;"},
  };
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (const auto& variant : variants) {
      EXPECT_EQ(Launched(variant, 32, 1, seed).out[1], 32U);
      EXPECT_EQ(Launched(variant, 64, 2, seed).out[1], 128U) << "and between warps and blocks";
    }
}

/// Blocks on several CPU threads wait for one another's words. They wait long, but each word is written in the end.
TEST(Barriers, SpinningOnAnotherBlockIsNoLivelock) {
  const Launched run(
      {"mov.u32 %r2, 0;",
       // the two blocks take turns: each counts for a long time, then the other one does
       "ROUND: setp.eq.s32 %p1, %r0, 0; and.b32 %r3, %r2, 1; setp.eq.s32 %p2, %r3, %r0; @%p2 bra WORK;",
       "WAIT: ld.volatile.global.u32 %r4, [%out]; setp.le.u32 %p3, %r4, %r2; @%p3 bra WAIT; bra.uni NEXT;",
       "WORK: mov.u32 %r5, 0;", "COUNT: add.s32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 8000000; @%p4 bra COUNT;",
       "add.s32 %r6, %r2, 1; st.volatile.global.u32 [%out], %r6;",
       "NEXT: add.s32 %r2, %r2, 1; setp.lt.u32 %p5, %r2, 4; @%p5 bra ROUND;"},
      1, 2);
  EXPECT_EQ(run.out[0], 4U);
}

TEST(Checks, Breakpoint) {
  expect_report({"setp.eq.s32 %p1, %t, 3;", "@%p1 brkpt;"}, Fault::trap,
                {"a breakpoint, and no debugger is there", "test.cu:102", "lane 3"});
}
TEST(Checks, Trap) { expect_report({"setp.eq.s32 %p1, %t, 3;", "@%p1 trap;"}, Fault::trap, {"test.cu:102", "lane 3"}); }

// --- counts ------------------------------------------------------------------------------------------------------------------

/// Some lanes come to the shuffle first and wait there. It still counts as one instruction.
TEST(Counts, AnInstructionAtWhichLanesMeetCountsOnce) {
  const Launched run({"setp.lt.u32 %p1, %t, 8; @%p1 bra LATER;",
                      "BACK: shfl.sync.idx.b32 %r2, %t, 3, 31, -1; st.global.u32 [%mine], %r2; bra.uni END;",
                      "LATER: bra.uni BACK;", "END: mov.u32 %r2, 0;"});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], 3U);
  EXPECT_EQ(run.counters.total.instructions[size_t(Class::warp)], 1U);
  EXPECT_EQ(run.counters.total.lanes[size_t(Class::warp)], 32U);
}

/// In a loop, with operations that all lanes execute, some or none.
TEST(Counts, PredicatedInstructionsOfALoop) {
  const Launched run({"setp.lt.u32 %p1, %t, 5; setp.gt.u32 %p2, %t, 99; mov.u32 %r2, 0;",
                      "LOOP: @%p1 add.s32 %r3, %t, 1;", "@%p2 add.s32 %r3, %t, 1;", "@!%p2 add.s32 %r3, %t, 1;",
                      "add.s32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 7; @%p3 bra LOOP;", "@%p1 bra END;",
                      "add.s32 %r3, %t, 2;", "END: add.s32 %r3, %t, 3;"});
  const auto executed = [&](uint32_t line) {
    constexpr auto integer = size_t(Class::integer);
    const auto found = run.counters.lines.find({"test.cu", line});
    if (found == run.counters.lines.end()) return std::pair<uint64_t, uint64_t>();
    return std::pair(found->second.instructions[integer], found->second.lanes[integer]);
  };
  EXPECT_EQ(executed(102), std::pair(uint64_t{7}, uint64_t{7 * 5}));
  EXPECT_EQ(executed(103), std::pair(uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(executed(104), std::pair(uint64_t{7}, uint64_t{7 * 32}));
  EXPECT_EQ(executed(105), std::pair(uint64_t{7}, uint64_t{7 * 32}));
  EXPECT_EQ(executed(107), std::pair(uint64_t{1}, uint64_t{27}));
  EXPECT_EQ(executed(108), std::pair(uint64_t{1}, uint64_t{32}));
}

TEST(Counts, SectorsAndLines) {
  const Launched run(
      {"st.global.u32 [%mine], %t;", "mul.wide.u32 %d1, %t, 128; add.s64 %d1, %d1, %out; ld.global.u32 %r2, [%d1];",
       "cvt.rn.f32.u32 %f1, %r2; fma.rn.f32 %f2, %f1, %f1, %f1;"},
      32, 1);
  EXPECT_EQ(run.counters.total.global_store_sectors, 4U) << "32 neighbouring words";
  EXPECT_EQ(run.counters.total.global_load_sectors, 32U) << "128 bytes apart";
  EXPECT_EQ(run.counters.total.global_load_bytes, 128U);
  EXPECT_EQ(run.counters.total.flops[0], 64U);
  EXPECT_EQ(run.counters.lines.at({"test.cu", 102}).global_loads, 1U);
}

/// The same distances between the lanes' addresses cost 8 sectors in global memory and 2 wavefronts in shared memory.
TEST(Counts, OneLoadFromGlobalAndThenFromSharedMemory) {
  const Launched run(
      {"mul.wide.u32 %d1, %t, 8; add.s64 %d2, %out, %d1; mov.u64 %d3, tile; add.s64 %d3, %d3, %d1; st.shared.u64 "
       "[%d3], "
       "%d1; cvta.shared.u64 %d3, %d3; mov.u32 %r2, 0;",
       "LOOP: ld.u32 %r3, [%d2];", "mov.u64 %d2, %d3; add.s32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2; @%p1 bra LOOP;"});
  const Counts& load = run.counters.lines.at({"test.cu", 102});
  EXPECT_EQ(load.global_load_sectors, 8U);
  EXPECT_EQ(load.shared_load_wavefronts, 2U);
}

// --- a whole kernel ----------------------------------------------------------------------------------------------------------

/// The product of two matrices of 64 x 64, tile by tile through shared memory.
constexpr const char* tiled_product = R"(
extern "C" __global__ void product(int n, const float* a, const float* b, float* c) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x];
    tile_b[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
})";

/// Its result against FP64, and its counts.
Counters run_product(const std::string& ptx_text) {
  constexpr int n = 64;
  const ptx::Module module = ptx::parse(ptx_text);
  DeviceMemory memory;
  float* matrix[3];
  for (float*& m : matrix) m = reinterpret_cast<float*>(memory.allocate(n * n * 4));
  for (int i = 0; i < n * n; ++i)
    for (int m = 0; m < 2; ++m) matrix[m][i] = float((i * (7919 + m) + m) % 17 - 8);
  for (int m = 0; m < 2; ++m) memory.wrote(reinterpret_cast<uint64_t>(matrix[m]), n * n * 4);
  LaunchParams launch;
  launch.grid = {n / 16, n / 16, 1};
  launch.block = {16, 16, 1};
  launch.checks.change("all=error");
  const auto put = [&](auto value) {
    const size_t offset = (launch.params.size() + sizeof value - 1) / sizeof value * sizeof value;
    launch.params.resize(offset + sizeof value);
    std::memcpy(launch.params.data() + offset, &value, sizeof value);
  };
  put(n), put(matrix[0]), put(matrix[1]), put(matrix[2]);
  Counters counters;
  run_kernel(module, *module.find_function("product"), launch, memory, counters);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += double(matrix[0][i * n + k]) * matrix[1][k * n + j];
      EXPECT_EQ(matrix[2][i * n + j], float(sum));
    }
  return counters;
}

/// A warp is two rows of 16 threads. Global loads of A and B: two runs of 64 bytes each.
TEST(Product, IsRightAndCounted) {
  const Counts total = run_product(sim::test::compiled_text(tiled_product, "-arch=sm_90 -ptx")).total;
  constexpr uint64_t warps = 16 * 8, tiles = 4;
  EXPECT_EQ(total.global_loads, warps * tiles * 2);
  EXPECT_EQ(total.global_load_sectors, warps * tiles * 2 * 4);
  EXPECT_EQ(total.global_store_sectors, warps * 4);
  EXPECT_EQ(total.barriers, warps * tiles * 2);
  EXPECT_EQ(total.flops[0], uint64_t{2} * 64 * 64 * 64);
}

/// Each of its barriers is needed: if any one of them is removed, it is reported.
TEST(Product, ARemovedBarrierIsReported) {
  const std::string text = sim::test::compiled_text(tiled_product, "-arch=sm_90 -ptx -lineinfo");
  int barriers = 0;
  for (size_t at = text.find("bar.sync"); at != std::string::npos; at = text.find("bar.sync", at + 1)) {
    ++barriers;
    std::string broken = text;
    broken.replace(at, 2, "//");
    try {
      run_product(broken);
      ADD_FAILURE() << "barrier " << barriers << " is not missed";
    } catch (const Error& error) {
      const std::string report = error.what();
      EXPECT_TRUE(report.find("a race ") != std::string::npos ||
                  report.find("nobody in this block has written") != std::string::npos)
          << report;
      EXPECT_NE(report.find("source.cu:"), std::string::npos) << report;
    }
  }
  EXPECT_GE(barriers, 2);
}

}  // namespace
