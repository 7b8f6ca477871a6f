// Clusters: ranks and sizes, the cluster's barrier, other blocks' shared memory, mbarriers; and that misuse is reported.
#include "tests/kernel_run.h"

namespace {

using namespace sim;
using namespace sim::test;

/// The address of `tile` + 4 * thread in %r2, and in %r3 that of the neighbour, rank ^ 1.
const std::string neighbour =
    "mov.u32 %r2, tile; mad.lo.s32 %r2, %t, 4, %r2; xor.b32 %r4, %rank, 1; mapa.shared::cluster.u32 %r3, %r2, %r4;";
const std::string cluster_sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

TEST(Cluster, SpecialRegisters) {
  const KernelRun run({"mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, %clusterid.x; "
                       "mov.u32 %r5, %nclusterid.x; mov.u32 %r6, %cluster_ctaid.x;",
                       "mad.lo.s32 %r2, %r3, 10, %r2; mad.lo.s32 %r2, %r4, 100, %r2; mad.lo.s32 %r2, %r5, 1000, %r2; "
                       "mad.lo.s32 %r2, %r6, 10000, %r2; mov.pred %p1, %is_explicit_cluster; "
                       "@%p1 add.s32 %r2, %r2, 100000; st.global.u32 [%mine], %r2;"},
                      {.threads = 32, .blocks = 12, .cluster = 4});
  for (uint32_t b = 0; b < 12; ++b)
    EXPECT_EQ(run.out[b * 32], b % 4 + 10 * 4 + 100 * (b / 4) + 1000 * 3 + 10000 * (b % 4) + 100000) << b;
}

TEST(Cluster, BlocksExchangeThroughSharedMemory) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const KernelRun run({neighbour, "st.shared.u32 [%r2], %w;", cluster_sync, "ld.shared::cluster.u32 %r5, [%r3];",
                         cluster_sync, "st.global.u32 [%mine], %r5;"},
                        {.threads = 64, .blocks = 8, .cluster = 2, .seed = seed});
    for (uint32_t i = 0; i < 512; ++i) ASSERT_EQ(run.out[i], i ^ 64);
  }
}

/// Warps that have returned count as arrived at the cluster's barrier, too: what they did happened before it.
TEST(Cluster, TheBarrierWaitsForTheEndOfWarpsThatReturn) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const KernelRun run({neighbour, cluster_sync, "setp.ge.u32 %p1, %t, 32; @%p1 st.shared::cluster.u32 [%r3], %w;",
                         "@%p1 ret;", cluster_sync, "ld.shared.u32 %r5, [%r2+128]; st.global.u32 [%mine], %r5;"},
                        {.threads = 64, .blocks = 2, .cluster = 2, .seed = seed});
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(run.out[i], i % 64 < 32 ? (i ^ 64) + 32 : 0);
  }
}

TEST(Cluster, GenericAddressesAndAtomics) {
  const KernelRun run(
      {"mov.u64 %d0, tile; cvta.shared.u64 %d1, %d0; mapa.u64 %d2, %d1, 0; getctarank.u64 %r5, %d2; "
       "setp.eq.s32 %p1, %rank, 0; setp.eq.s32 %p2, %t, 0; and.pred %p1, %p1, %p2; @%p1 st.shared.u32 [%d0], 0;",
       cluster_sync,
       "atom.relaxed.cluster.add.u32 %r6, [%d2], 1; mapa.shared::cluster.u32 %r10, 0, 0; "
       "red.relaxed.cluster.shared::cluster.add.u32 [%r10], 1;",
       cluster_sync,
       "@%p1 ld.u32 %r7, [%d2]; @%p1 st.global.u32 [%out], %r7; isspacep.shared::cta %p3, %d2; "
       "isspacep.shared::cluster %p4, %d2; selp.b32 %r8, 1, 0, %p3; selp.b32 %r9, 2, %r5, %p4; add.s32 %r8, %r8, %r9; "
       "setp.gt.u32 %p5, %w, 0; @%p5 st.global.u32 [%mine], %r8;"},
      {.threads = 32, .blocks = 4, .cluster = 4});
  EXPECT_EQ(run.out[0], 256U);
  for (uint32_t i = 1; i < 128; ++i) EXPECT_EQ(run.out[i], i < 32 ? 3U : 2U);
}

TEST(ClusterChecks, NoBarrierBeforeARemoteAccess) {
  expect_report({neighbour, "st.shared::cluster.u32 [%r3], %w;", cluster_sync}, {.blocks = 2, .cluster = 2},
                {"which may not have started: no cluster barrier", "test.cu:102"});
}
TEST(ClusterChecks, ARemoteRace) {
  expect_report(
      {neighbour, cluster_sync, "st.shared.u32 [%r2], %w;", "st.shared::cluster.u32 [%r3], %w;", cluster_sync},
      {.blocks = 2, .cluster = 2}, {"a race in shared memory", "of block (", "test.cu:103", "test.cu:104"});
}
TEST(ClusterChecks, ABlockThatEndedTooEarly) {
  // Block 1 may end before block 0 has read. With some seeds it does.
  std::string report;
  for (uint64_t seed = 0; seed < 20 && report.empty(); ++seed) {
    try {
      KernelRun({neighbour, "st.shared.u32 [%r2], %w;", cluster_sync, "ld.shared::cluster.u32 %r5, [%r3];"},
                {.threads = 64, .blocks = 2, .cluster = 2, .seed = seed});
    } catch (const Error& error) {
      report = error.what();
    }
  }
  EXPECT_NE(report.find("which has ended"), std::string::npos) << report;
}
TEST(ClusterChecks, AnArrivalThatIsNotWaitedFor) {
  expect_report({"barrier.cluster.arrive.aligned;", "barrier.cluster.arrive.aligned;"}, {.blocks = 2, .cluster = 2},
                {"a second time", "test.cu:102"});
}
TEST(ClusterChecks, ARankThatIsNotThere) {
  expect_report({"mov.u32 %r2, tile; mapa.shared::cluster.u32 %r3, %r2, 2;"}, {.blocks = 2, .cluster = 2},
                {"there is no block 2 in a cluster of 2", "test.cu:101"});
}
TEST(ClusterChecks, Deadlock) {
  expect_report(
      {"setp.eq.s32 %p1, %rank, 1; @%p1 bra OTHER;", cluster_sync + " bra.uni END;", "OTHER: bar.sync 1, 64;", "END:"},
      {.blocks = 2, .cluster = 2},
      {"deadlock", "block (0, 0, 0), warp 0 waits at the cluster's barrier: test.cu:102",
       "block (1, 0, 0), warp 0 waits at barrier 1 (1 of 2"});
}

// --- mbarriers ---------------------------------------------------------------------------------------------------------------

/// Thread 0 of each block makes an mbarrier of `count` arrivals at tile + 4096 + 8 * i, i below 4; the block waits for it.
std::string mbarriers(int count) {
  std::string text = "mov.u32 %r10, tile; add.s32 %r10, %r10, 4096; setp.eq.s32 %p7, %t, 0;";
  for (int i = 0; i < 4; ++i)
    text += "@%p7 mbarrier.init.shared::cta.b64 [%r10+" + std::to_string(8 * i) + "], " + std::to_string(count) + ";";
  return text + "@%p7 fence.mbarrier_init.release.cluster; bar.sync 0;";
}
/// Spins until the phase of parity `register` of the mbarrier at [`address`] is complete.
std::string wait(const std::string& address, const std::string& parity, const std::string& label) {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p6, [" + address + "], " + parity + "; @!%p6 bra " +
         label + ";";
}

TEST(Mbarrier, StateAndPendingCount) {
  const KernelRun run({mbarriers(32), "mbarrier.arrive.shared.b64 %d1, [%r10]; mbarrier.pending_count.b64 %r2, %d1;",
                       "LOOP: mbarrier.test_wait.shared.b64 %p1, [%r10], %d1; @!%p1 bra LOOP;",
                       "st.global.u32 [%mine], %r2;"});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], 32 - t);
}

/// Two stages: warp 0 fills a buffer of 32 words and warp 1 takes it, 10 times, through `full` and `empty` mbarriers.
std::vector<std::string> pipeline() {
  return {mbarriers(32),
          "mov.u32 %r2, 0; mov.u32 %r11, tile; mad.lo.s32 %r11, %t, 4, %r11; mov.u32 %r20, 0;"
          "and.b32 %r12, %t, 31; setp.ge.u32 %p1, %t, 32; @%p1 bra CONSUMER;",
          "PRODUCER: and.b32 %r3, %r2, 1; shr.u32 %r4, %r2, 1; and.b32 %r4, %r4, 1; xor.b32 %r5, %r4, 1; "
          "mad.lo.s32 %r6, %r3, 8, %r10; mad.lo.s32 %r7, %r3, 128, %r11;",
          wait("%r6+16", "%r5", "EMPTY"),
          "mad.lo.s32 %r8, %r2, 100, %t; st.shared.u32 [%r7], %r8;",
          "mbarrier.arrive.shared::cta.b64 _, [%r6];",
          "add.s32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 10; @%p2 bra PRODUCER; ret;",
          "CONSUMER: xor.b32 %r9, %r12, 31; mov.u32 %r11, tile; mad.lo.s32 %r11, %r9, 4, %r11;",
          "LOOP: and.b32 %r3, %r2, 1; shr.u32 %r4, %r2, 1; and.b32 %r4, %r4, 1; mad.lo.s32 %r6, %r3, 8, %r10; "
          "mad.lo.s32 %r7, %r3, 128, %r11;",
          wait("%r6", "%r4", "FULL"),
          "ld.shared.u32 %r8, [%r7]; mad.lo.s32 %r20, %r20, 3, %r8;",
          "mbarrier.arrive.shared::cta.b64 _, [%r6+16];",
          "add.s32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 10; @%p2 bra LOOP; st.global.u32 [%mine], %r20;"};
}

TEST(Mbarrier, PipelineOfTwoStages) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const KernelRun run(pipeline(), {.threads = 64, .seed = seed});
    for (uint32_t t = 0; t < 32; ++t) {
      uint32_t expected = 0;
      for (uint32_t i = 0; i < 10; ++i) expected = expected * 3 + 100 * i + (t ^ 31);
      ASSERT_EQ(run.out[32 + t], expected);
    }
  }
}

TEST(Mbarrier, RemoteArrivals) {
  // Both blocks arrive at each other's mbarrier, and read what the other wrote into their memory before.
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const KernelRun run(
        {mbarriers(32), cluster_sync, neighbour, "st.shared::cluster.u32 [%r3], %w;",
         "mapa.shared::cluster.u32 %r11, %r10, %r4; "
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];",
         "LOOP: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, [%r10], 0; @!%p6 bra LOOP;",
         "ld.shared.u32 %r5, [%r2]; st.global.u32 [%mine], %r5;", cluster_sync},
        {.blocks = 2, .cluster = 2, .seed = seed});
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(run.out[i], i ^ 32);
  }
}

TEST(Mbarrier, DroppedArrivalsAndNoComplete) {
  const KernelRun run(
      {mbarriers(32), "setp.lt.u32 %p1, %t, 8; @%p1 bra DROP;", "mbarrier.arrive.shared.b64 _, [%r10]; bra.uni JOIN;",
       "DROP: mbarrier.arrive_drop.shared.b64 _, [%r10]; bra.uni JOIN;",
       "JOIN: bar.warp.sync -1; mbarrier.test_wait.parity.shared.b64 %p2, [%r10], 0;",
       "setp.eq.s32 %p3, %t, 0; @%p3 mbarrier.arrive.noComplete.shared.b64 %d1, [%r10], 23;",
       "@%p3 mbarrier.pending_count.b64 %r2, %d1; @%p3 mbarrier.arrive.shared.b64 _, [%r10]; bar.warp.sync -1;",
       "mbarrier.test_wait.parity.shared.b64 %p4, [%r10], 1; selp.b32 %r3, 100, 0, %p2; "
       "selp.b32 %r4, 1000, 0, %p4; add.s32 %r3, %r3, %r4; @%p3 add.s32 %r3, %r3, %r2; "
       "st.global.u32 [%mine], %r3;"});
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t ? 1100U : 1124U);
}

// --- st.async, red.async -----------------------------------------------------------------------------------------------------

/// An mbarrier at 8192 in each block, of one arrival that expects `bytes`; %r10: its address here, %r11: in the other block;
/// %r3: the neighbour's word of `tile`.
std::string exchange(uint32_t bytes) {
  return neighbour +
         "mov.u32 %r10, 8192; mapa.shared::cluster.u32 %r11, %r10, %r4; setp.eq.s32 %p7, %t, 0; "
         "@%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], " +
         std::to_string(bytes) + ";" + cluster_sync;
}
const std::string wait_here = "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r10], 0; @!%p6 bra WAIT;";

TEST(AsyncStore, ReachesTheOtherBlock) {
  const struct {
    const char *type, *value;
    uint32_t words;
  } cases[] = {{"b32", "%w", 1},
               {"v2.s32", "{%w, %r20}", 2},
               {"v4.f32", "{%w, %r20, %r21, %r22}", 4},
               {"u64", "%d4", 2},
               {"v2.b64", "{%d4, %d5}", 4}};
  for (const auto& c : cases)
    for (uint64_t seed = 0; seed < 5; ++seed) {
      std::string take;
      for (uint32_t i = 0; i < c.words; ++i)
        take += "ld.shared.u32 %r5, [%r13+" + std::to_string(4 * i) + "]; st.global.u32 [%mine+" +
                std::to_string(1024 * i) + "], %r5; ";
      const KernelRun run(
          {exchange(64 * 4 * c.words),
           "add.s32 %r20, %w, 1000; add.s32 %r21, %w, 2000; add.s32 %r22, %w, 3000; mov.b64 %d4, {%w, "
           "%r20}; mov.b64 %d5, {%r21, %r22}; mul.lo.s32 %r13, %t, " +
               std::to_string(4 * c.words) + "; mapa.shared::cluster.u32 %r12, 0, %r4; add.s32 %r12, %r12, %r13;",
           std::string("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.") + c.type + " [%r12], " + c.value +
               ", [%r11];",
           wait_here, take},
          {.threads = 64, .blocks = 2, .cluster = 2, .seed = seed});
      for (uint32_t w = 0; w < 128; ++w)
        for (uint32_t i = 0; i < c.words; ++i)
          ASSERT_EQ(run.out[w + 256 * i], (w ^ 64) + 1000 * i) << c.type << " " << seed;
    }
}
TEST(AsyncStore, Reduces) {
  // All threads of both blocks reduce into one word of block 0.
  const struct {
    const char *op, *value;
    uint64_t start, want;
  } cases[] = {{"add.u32", "%w", 5, 5 + 127 * 64},
               {"add.s32", "%w", 5, 5 + 127 * 64},
               {"add.u64", "%d4", 5, 5 + (127 * 64ULL << 32) + 128 * 7},
               {"min.u32", "%r20", 5000, 1000},
               {"max.s32", "%r21", 5000, uint32_t(-1)},
               {"max.u32", "%r20", 5, 1127},
               {"and.b32", "%r20", 0xffff, 1000 & 1127 & 1024},
               {"or.b32", "%w", 256, 256 + 127},
               {"xor.b32", "%w", 3, 3},
               {"inc.u32", "%r20", 0, 128},
               {"dec.u32", "%r20", 200, 72}};
  for (const auto& c : cases)
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const bool wide = std::string(c.op).find("64") != std::string::npos;
      const std::string start = std::to_string(c.start);
      const KernelRun run({"mov.u64 %d6, " + start + "; setp.eq.s32 %p1, %t, 0; @%p1 st.shared.u64 [0], %d6;" +
                               exchange(128 * (wide ? 8 : 4)),
                           "add.s32 %r20, %w, 1000; sub.s32 %r21, %w, 128; mov.u32 %r22, 7; mov.b64 %d4, {%r22, %w}; "
                           "mapa.shared::cluster.u32 %r12, 0, 0; mapa.shared::cluster.u32 %r11, %r10, 0;",
                           std::string("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.") +
                               c.op + " [%r12], " + (std::string(c.op) == "max.s32" ? "%r21" : c.value) + ", [%r11];",
                           "setp.eq.s32 %p1, %w, 0; @!%p1 bra END;", wait_here, "ld.shared.v2.u32 {%r5, %r6}, [0];",
                           "st.global.u32 [%out], %r5; st.global.u32 [%out+4], %r6;", "END:" + cluster_sync},
                          {.threads = 64, .blocks = 2, .cluster = 2, .seed = seed});
      uint32_t want = uint32_t(c.want);
      if (std::string(c.op) == "max.s32") want = 5000;
      if (std::string(c.op) == "and.b32") {
        want = 0xffff;
        for (uint32_t w = 0; w < 128; ++w) want &= w + 1000;
      }
      EXPECT_EQ(run.out[0], want) << c.op;
      if (wide) {
        EXPECT_EQ(run.out[1], c.want >> 32) << c.op;
      }
    }
}
const std::string store_remote = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3], %w, [%r11];";
TEST(AsyncStoreChecks, NobodyWaits) {
  expect_report({exchange(256), store_remote, cluster_sync, "ld.shared.u32 %r5, [%r2];"},
                {.threads = 64, .blocks = 2, .cluster = 2},
                {"a read of shared memory", "still under way", "test.cu:102", "test.cu:104"});
}
TEST(AsyncStoreChecks, TooManyBytesExpected) {
  expect_report({exchange(260), store_remote, wait_here}, {.threads = 64, .blocks = 2, .cluster = 2},
                {"deadlock", "4 bytes missing", "test.cu:103"});
}
TEST(AsyncStoreChecks, TheMbarrierOfAnotherBlock) {
  expect_report(
      {exchange(256), "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3], %w, [%r10];", wait_here},
      {.threads = 64, .blocks = 2, .cluster = 2},
      {"the mbarrier is not in the block whose shared memory is written", "test.cu:102"});
}
TEST(AsyncStoreChecks, TheBlockEndsBeforeTheyLand) {
  expect_report({exchange(256), store_remote, cluster_sync}, {.threads = 64, .blocks = 2, .cluster = 2},
                {"the block ends while this asynchronous store into its shared memory is under way", "test.cu:102"});
}

TEST(MbarrierChecks, WrongParity) {
  std::vector<std::string> body = pipeline();
  body[2].replace(body[2].find("xor.b32 %r5, %r4, 1"), 19,
                  "xor.b32 %r5, %r4, 0");  // the first wait for an empty buffer
  expect_report(body, {.threads = 64},
                {"deadlock",
                 "warp 0 waits for the end of phase 0 of the mbarrier at 0x1010 (in phase 0, 32 of 32 arrivals "
                 "pending): test.cu:104",
                 "warp 1 waits for the end of phase 0 of the mbarrier at 0x1000"});
}
TEST(MbarrierChecks, BufferReusedBeforeItWasReleased) {
  std::vector<std::string> body = pipeline();
  body[3] = "";
  // The report depends on the order: a buffer is written while it is read, or there is one arrival too many, or the
  // producer was done before the consumer began, and the consumer has missed phases.
  int races = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    try {
      KernelRun(body, {.threads = 64, .seed = seed});
      ADD_FAILURE() << "no report";
    } catch (const Error& error) {
      races += std::string(error.what()).find("a race in shared memory") != std::string::npos;
    }
  }
  EXPECT_GT(races, 0);
}
TEST(MbarrierChecks, NotInitialised) {
  expect_report({"mbarrier.arrive.shared.b64 _, [64];"}, {},
                {"no mbarrier has been initialised at 0x40", "test.cu:101"});
}
TEST(MbarrierChecks, NoBarrierAfterItsInitialisation) {
  expect_report({"setp.eq.s32 %p1, %t, 0;", "@%p1 mbarrier.init.shared.b64 [64], 64; bar.warp.sync -1;",
                 "setp.ge.u32 %p2, %t, 32; @%p2 mbarrier.arrive.shared.b64 _, [64];"},
                {.threads = 64}, {"64", "mbarrier", "test.cu:103"});
}
/// fence.mbarrier_init makes relaxed arrivals at the cluster's barrier enough, for the mbarrier and for nothing else.
TEST(Mbarrier, MadeKnownToTheClusterByItsFence) {
  const std::string init = "mov.u32 %r5, 8192; setp.eq.s32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [%r5], 128; ",
                    fence = "@%p1 fence.mbarrier_init.release.cluster; ",
                    relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;";
  const std::string arrive =
      "mapa.shared::cluster.u32 %r6, %r5, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6]; "
      "setp.ne.s32 %p2, %rank, 0; @%p2 bra END;";
  const std::string wait =
      "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra WAIT; "
      "st.global.u32 [%mine], 7; END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const KernelRun run({init + fence, relaxed, arrive, wait},
                        {.threads = 64, .blocks = 2, .cluster = 2, .seed = seed});
    for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(run.out[t], 7U);
  }
  const KernelLaunch two = {.threads = 64, .blocks = 2, .cluster = 2};
  expect_report({init, relaxed, arrive, wait}, two,
                {"initialisation by warp 0", "only a relaxed barrier", "no fence.mbarrier_init", "test.cu:103"});
  expect_report(
      {init, "barrier.cluster.arrive.relaxed.aligned; " + fence + "barrier.cluster.wait.aligned;", arrive, wait}, two,
      {"no barrier between its initialisation by warp 0", "test.cu:103"});
  expect_report({init + fence + "@%p1 st.shared.u32 [0], 1;", relaxed, "ld.shared.u32 %r7, [0];", arrive, wait}, two,
                {"shared memory at 0x0", "test.cu:103"});
}

TEST(MbarrierChecks, MoreArrivalsThanExpected) {
  expect_report({mbarriers(31), "mbarrier.arrive.shared.b64 _, [%r10], 2;"}, {},
                {"2 arrivals at an mbarrier that waits for 1 of 31", "test.cu:102"});
}
TEST(MbarrierChecks, InitialisedTwice) {
  expect_report({"mbarrier.init.shared.b64 [64], 1;"}, {}, {"a second time", "test.cu:101"});
}

}  // namespace
