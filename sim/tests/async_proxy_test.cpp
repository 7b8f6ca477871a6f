// Bulk copies, wgmma and setmaxnreg: when their effects become visible, and that misuse is reported. The programs tma.cu
// and wgmma.cu in tests/programs show that they compute what the hardware computes.
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "executor/rounding.h"
#include "executor/tensor_map.h"
#include "tests/kernel_run.h"

namespace {

using namespace sim;
using namespace sim::test;

/// 4096 words, each its own index.
std::vector<uint32_t> numbered() {
  std::vector<uint32_t> words(KernelRun::words);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i;
  return words;
}

/// Thread 0 makes an mbarrier of one arrival at 8192, in %r10, and one at 8200.
const std::string make_mbarriers =
    "mov.u32 %r10, 8192; setp.eq.s32 %p7, %t, 0; @%p7 mbarrier.init.shared.b64 [%r10], 1; "
    "@%p7 mbarrier.init.shared.b64 [%r10+8], 1; @%p7 fence.mbarrier_init.release.cluster; bar.sync 0;";
const std::string expect_256 = "@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 256;";
const std::string copy_256 =
    "@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1024], [%out], 256, [%r10];";
const std::string wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r10], 0; @!%p6 bra WAIT;";
const std::string take = "mad.lo.s32 %r2, %t, 4, 1024; ld.shared.u32 %r3, [%r2]; st.global.u32 [%mine+4096], %r3;";

TEST(BulkCopy, LandsWithItsMbarrier) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const KernelRun run({make_mbarriers, expect_256, copy_256, wait, take},
                        {.threads = 64, .seed = seed, .in = numbered()});
    for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(run.out[1024 + t], t);
    EXPECT_EQ(run.counters.total.global_load_bytes, 256U);
    EXPECT_EQ(run.counters.total.global_load_sectors, 8U);
  }
}

TEST(BulkCopy, ReadsItsSourceOnlyWhenItMust) {
  // The source changes after the copy was issued, and before anybody waits: the copy brings the new value.
  const KernelRun run({make_mbarriers, expect_256, copy_256, "@%p7 st.global.u32 [%out], 77;", wait, take},
                      {.threads = 32, .in = numbered()});
  EXPECT_EQ(run.out[1024], 77U);
}

TEST(BulkCopy, StoresAndAdds) {
  const KernelRun run(
      {"mad.lo.s32 %r2, %t, 4, 1024; st.shared.u32 [%r2], %t; fence.proxy.async.shared::cta; bar.sync 0;",
       "setp.eq.s32 %p1, %t, 0; @!%p1 bra END;",
       "cp.async.bulk.global.shared::cta.bulk_group [%out], [1024], 256; cp.async.bulk.commit_group; "
       "cp.async.bulk.wait_group 0;",
       "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [1024], 256; "
       "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
       "END:"},
      {.threads = 64});
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], 2 * t);
}

/// A box of 4 rows of 8 words, of which the tensor takes `width` elements of `bytes` bytes of 3 rows. The kernel writes the
/// elements of the tensor alone.
std::vector<std::string> store_of_a_clipped_box(uint32_t width, uint32_t bytes, const std::string& before = "") {
  const std::string type = bytes == 4 ? "u32" : "u16";
  return {
      "setp.eq.s32 %p7, %t, 0; rem.u32 %r2, %t, 16; div.u32 %r3, %t, 16; mul.lo.s32 %r4, %r2, " +
          std::to_string(bytes) + "; mad.lo.s32 %r4, %r3, 32, %r4; add.s32 %r4, %r4, 1024; cvt.u16.u32 %h1, %t; " +
          "setp.lt.u32 %p1, %r2, " + std::to_string(width) + "; setp.lt.and.u32 %p1, %r3, 3, %p1;",
      before + "@%p1 st.shared." + type + " [%r4], " + (bytes == 4 ? "%t" : "%h1") + ";",
      "fence.proxy.async.shared::cta; bar.sync 0;",
      "mov.b64 %d1, map; @%p7 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {0, 0}], [1024];",
      // meanwhile, the rest of the rows may be written
      "setp.eq.s32 %p2, %r2, 0; @%p2 st.shared.u32 [%r4+28], 0;",
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; bar.sync 0;"};  // after the wait the rest of the rows may be written
}

/// With a map of 3 rows of `width` elements, 64 bytes apart; boxes are 4 rows of 32 bytes.
KernelLaunch of_three_rows(uint32_t width, uint32_t bytes) {
  TensorMap map;
  map.magic = TensorMap::valid;
  map.rank = 2;
  map.element_bytes = uint8_t(bytes);
  map.size = {width, 3};
  map.stride = {64};
  map.box = {uint16_t(32 / bytes), 4};
  map.step = {1, 1};
  KernelLaunch how = {.threads = 64};
  how.map.resize(128);
  how.into_map_base = offsetof(TensorMap, base);
  std::memcpy(how.map.data(), &map, sizeof map);
  return how;
}

TEST(BulkCopy, AStoreReadsOnlyWhatLiesInTheTensor) {
  for (const auto& [width, bytes] : {std::pair<uint32_t, uint32_t>{5, 4}, {5, 2}, {1, 2}}) {
    const KernelLaunch how = of_three_rows(width, bytes);
    const KernelRun run(store_of_a_clipped_box(width, bytes), how);
    for (uint32_t y = 0; y < 4; ++y)
      for (uint32_t x = 0; x < 64 / bytes; ++x) {
        uint32_t got = 0;
        std::memcpy(&got, reinterpret_cast<const char*>(run.out.data()) + 64 * y + x * bytes, bytes);
        if (x >= width && x * bytes < (width * bytes + 15) / 16 * 16 && y < 3) continue;  // AStoreEndsAfter16Bytes
        ASSERT_EQ(got, x < width && y < 3 ? 16 * y + x : 0) << x << ", " << y;
      }
    // What lies in the tensor must have been written.
    expect_report(store_of_a_clipped_box(width, bytes, "setp.ne.and.s32 %p1, %t, 16, %p1; "), how,
                  {"which nobody in this block has written", "test.cu:104"});
  }
}

/// As an H200 does: 5 columns of 4 bytes are stored as 8, 5 of 2 bytes as 8, 9 of 2 bytes as 16; rows end exactly.
TEST(BulkCopy, AStoreEndsAfter16Bytes) {
  for (const auto& [width, bytes, stored] :
       {std::array<uint32_t, 3>{5, 4, 8}, {7, 4, 8}, {4, 4, 4}, {5, 2, 8}, {9, 2, 16}}) {
    const KernelLaunch how = of_three_rows(width, bytes);
    const KernelRun run(store_of_a_clipped_box(32 / bytes, bytes), how);
    for (uint32_t y = 0; y < 4; ++y)
      for (uint32_t x = 0; x < 32 / bytes - 1; ++x) {  // the last of each row is written meanwhile
        uint32_t got = 0;
        std::memcpy(&got, reinterpret_cast<const char*>(run.out.data()) + 64 * y + x * bytes, bytes);
        if (x == 28 / bytes) continue;
        ASSERT_EQ(got, x < stored && y < 3 ? 16 * y + x : 0) << width << ": " << x << ", " << y;
      }
  }
}

TEST(BulkCopy, Reduces) {
  const struct {
    const char* op;
    uint32_t (*f)(uint32_t old, uint32_t x);
  } cases[] = {{"min.s32", [](uint32_t a, uint32_t b) { return int32_t(a) < int32_t(b) ? a : b; }},
               {"max.s32", [](uint32_t a, uint32_t b) { return int32_t(a) > int32_t(b) ? a : b; }},
               {"max.u32", [](uint32_t a, uint32_t b) { return a > b ? a : b; }},
               {"inc.u32", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }},
               {"dec.u32", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }},
               {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
               {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
               {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const auto& c : cases) {
    const KernelRun run(
        {"mad.lo.s32 %r2, %t, 4, 1024; sub.s32 %r3, 40, %t; st.shared.u32 [%r2], %r3; fence.proxy.async.shared::cta; "
         "bar.sync 0;",
         "setp.eq.s32 %p1, %t, 0; @!%p1 bra END;",
         std::string("cp.reduce.async.bulk.global.shared::cta.bulk_group.") + c.op + " [%out], [1024], 256; " +
             "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
         "END:"},
        {.threads = 64, .in = numbered()});
    for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], c.f(t, 40 - t)) << c.op << t;
  }
}
TEST(BulkCopyChecks, MissingExpectTx) {
  expect_report({make_mbarriers, "@%p7 mbarrier.arrive.shared.b64 _, [%r10];", copy_256, wait, take}, {.threads = 32},
                {"a read of shared memory at 0x400 while the asynchronous copy into it", "test.cu:103", "test.cu:105"});
}
TEST(BulkCopyChecks, NobodyWaits) {
  expect_report({make_mbarriers, expect_256, copy_256, take}, {.threads = 32},
                {"while the asynchronous copy into it", "test.cu:103", "test.cu:104"});
  expect_report({make_mbarriers, expect_256, copy_256}, {.threads = 32},
                {"the block ends while this bulk copy into its shared memory is under way", "test.cu:103"});
}
TEST(BulkCopyChecks, TooFewBytes) {
  expect_report({make_mbarriers, "@%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 512;", copy_256, wait, take},
                {.threads = 32}, {"deadlock", "256 bytes missing", "test.cu:104"});
}
TEST(BulkCopyChecks, BufferReusedBeforeItWasReleased) {
  // The other warp still reads what the first copy brought when the second one is issued.
  expect_report(
      {make_mbarriers, expect_256, copy_256, wait,
       "setp.lt.u32 %p1, %t, 32; @!%p1 bra READ; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10+8], 256;",
       "@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1024], [%out], 256, [%r10+8]; "
       "AGAIN: mbarrier.try_wait.parity.shared.b64 %p6, [%r10+8], 0; @!%p6 bra AGAIN; bra.uni END;",
       "READ: ld.shared.u32 %r3, [1024];", "END:"},
      {.threads = 64}, {"shared memory at 0x400", "test.cu:106", "test.cu:107"});
}
TEST(BulkCopyChecks, MisalignedAndOutOfBounds) {
  expect_report({make_mbarriers,
                 "@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1032], [%out], "
                 "256, [%r10];"},
                {}, {"misaligned address 0x408", "test.cu:102"});
  expect_report({make_mbarriers,
                 "@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1024], "
                 "[%out+16368], 256, [%r10];"},
                {}, {"outside of every allocation", "test.cu:102"});
}
TEST(BulkCopyChecks, MisalignedStores) {
  const std::string write =
      "mad.lo.s32 %r2, %t, 4, 1024; st.shared.u32 [%r2], %t; fence.proxy.async.shared::cta; bar.sync 0;";
  const std::string store = "setp.eq.s32 %p7, %t, 0; @%p7 cp.async.bulk.global.shared::cta.bulk_group ";
  expect_report({write, store + "[%out], [1032], 128; cp.async.bulk.commit_group;"}, {.threads = 64},
                {"misaligned address 0x408", "test.cu:102"});
  expect_report({write, store + "[%out+8], [1024], 128; cp.async.bulk.commit_group;"}, {.threads = 64},
                {"misaligned address", "test.cu:102"});
}
TEST(BulkCopyChecks, NoProxyFence) {
  expect_report({"mad.lo.s32 %r2, %t, 4, 1024; st.shared.u32 [%r2], %t; bar.sync 0; setp.eq.s32 %p1, %t, 0;",
                 "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [1024], 256;"},
                {.threads = 64}, {"no fence.proxy.async between", "test.cu:102"});
  expect_report(
      {"setp.eq.s32 %p7, %t, 0; mov.u32 %r10, 8192; @%p7 mbarrier.init.shared.b64 [%r10], 1;", expect_256, copy_256},
      {}, {"neither fence.mbarrier_init nor fence.proxy.async", "test.cu:103"});
}
TEST(BulkCopyChecks, SourceReusedTooEarly) {
  expect_report({"mad.lo.s32 %r2, %t, 4, 1024; st.shared.u32 [%r2], %t; fence.proxy.async; bar.sync 0; "
                 "setp.eq.s32 %p1, %t, 0;",
                 "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [1024], 256;",
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1; bar.sync 0;", "st.shared.u32 [%r2], 1;"},
                {.threads = 64}, {"an asynchronous operation still reads it", "test.cu:102", "test.cu:104"});
}
TEST(BulkCopyChecks, NoTensorMap) {
  expect_report({make_mbarriers,
                 "@%p7 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[1024], [%out, {0}], [%r10];"},
                {}, {"no tensor map at", "test.cu:102"});
}

// --- wgmma -------------------------------------------------------------------------------------------------------------------

/// A of 64 x 16 ones at 1024, B of 8 x 16 ones right after it, in bf16 without a swizzle: every element of D becomes 16. The
/// accumulators are %f0 to %f3.
const std::string ones =
    "mov.u32 %r2, 1024; mad.lo.s32 %r2, %t, 16, %r2; mov.u32 %r3, 0x3f803f80; st.shared.v4.b32 [%r2], {%r3, %r3, %r3, "
    "%r3}; "
    "setp.lt.u32 %p1, %t, 16; @%p1 st.shared.v4.b32 [%r2+2048], {%r3, %r3, %r3, %r3}; fence.proxy.async; bar.sync 0; "
    "mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; "
    // start 64 (1024 bytes), leading 64 (A) or 8 (B), stride 8, in units of 16 bytes
    "mov.b64 %d1, 0x0000000800400040; mov.b64 %d2, 0x00000008000800c0; setp.eq.s32 %p2, 0, 0; mov.u32 %r3, 1;";
const std::string fence = "wgmma.fence.sync.aligned;";
const std::string multiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d1, %d2, %p2, 1, 1, 0, 0;";
const std::string commit = "wgmma.commit_group.sync.aligned;", wait_all = "wgmma.wait_group.sync.aligned 0;";

TEST(Wgmma, AccumulatorsGetTheirValueAtTheWait) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const KernelRun run(
        {ones, fence, multiply, multiply, commit, wait_all, "add.f32 %f3, %f3, %f3; st.global.f32 [%mine], %f3;"},
        {.threads = 128, .seed = seed});
    for (uint32_t t = 0; t < 128; ++t) ASSERT_EQ(std::bit_cast<float>(run.out[t]), 66.0F);
    EXPECT_EQ(run.counters.total.flops[3], 2ULL * 2 * 64 * 8 * 16);
  }
}
/// `ones` by those threads for which %p3, set by `who`, is true.
std::string ones_of(const std::string& who) {
  std::string some = ones;
  some.replace(some.find("st.shared.v4.b32 [%r2],"), 0, who + " @%p3 ");
  return some;
}
TEST(Wgmma, RowsThatNobodyHasWrittenMakeNaNs) {  // threads r and r + 64 write row r
  const KernelRun run({ones_of("and.b32 %r4, %t, 63; setp.ne.u32 %p3, %r4, 5;"), fence, multiply, commit, wait_all,
                       "st.global.f32 [%mine], %f0;"},
                      {.threads = 128});
  for (uint32_t t = 0; t < 128; ++t) {
    const float d = std::bit_cast<float>(run.out[t]);
    if (t / 4 == 5)
      ASSERT_TRUE(std::isnan(d)) << t;
    else
      ASSERT_EQ(d, 17.0F) << t;
  }
  for (const std::string who :
       {"setp.ne.u32 %p3, %t, 5;", "setp.ne.u32 %p3, 0, 0;"})  // half a row is missing; all rows are
    expect_report({ones_of(who), fence, multiply}, {.threads = 128},
                  {"which nobody in this block has written", "test.cu:103"});
}
TEST(
    Wgmma,
    RowsAcrossKThatNobodyHasWrittenMakeNaNs) {  // with A along M, threads 8 g to 8 g + 7 and 64 more write rows 8 g to 8 g + 7
  std::string transposed = multiply;
  transposed.replace(transposed.find("1, 1, 0, 0"), 10, "1, 1, 1, 0");
  const KernelRun run({ones_of("bfe.u32 %r4, %t, 3, 3; setp.ne.u32 %p3, %r4, 4;"), fence, transposed, commit, wait_all,
                       "st.global.f32 [%mine], %f0;"},
                      {.threads = 128});
  for (uint32_t t = 0; t < 128; ++t) {
    const float d = std::bit_cast<float>(run.out[t]);
    if (t / 32 == 2)
      ASSERT_TRUE(std::isnan(d)) << t;
    else
      ASSERT_EQ(d, 17.0F) << t;
  }
  for (const std::string who :
       {"setp.ne.u32 %p3, %t, 5;", "setp.ne.u32 %p3, 0, 0;"})  // one k of 8 rows is missing; all are
    expect_report({ones_of(who), fence, transposed}, {.threads = 128},
                  {"which nobody in this block has written", "test.cu:103"});
}
TEST(Wgmma, AWaitLeavesTheLastGroupsAlone) {
  const KernelRun run(
      {ones, fence, multiply, commit,
       "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f4, %f5, %f6, %f7}, %d1, %d2, 0, 1, -1, 0, 0;", commit,
       "wgmma.wait_group.sync.aligned 1;", "st.global.f32 [%mine], %f0;", wait_all, "st.global.f32 [%mine+8192], %f4;"},
      {.threads = 128});
  for (uint32_t t = 0; t < 128; ++t) {
    ASSERT_EQ(std::bit_cast<float>(run.out[t]), 17.0F);
    ASSERT_EQ(std::bit_cast<float>(run.out[2048 + t]), -16.0F);
  }
}
/// The 8-bit types, K of 32: D = A B + D of 64 x 8, A from shared memory or from registers. Thread t < 64 has row t of A in
/// words 1024 + 8 t, thread t < 8 column t of B in words 2048 + 8 t; without a swizzle 8 rows of 16 bytes lie together.
struct EightBits {
  std::vector<uint32_t> out;  ///< words of D: row by row, 8 columns (32-bit types)

  EightBits(const std::string& types, const std::array<std::array<uint8_t, 32>, 64>& a,
            const std::array<std::array<uint8_t, 32>, 8>& b, uint32_t d, bool a_in_registers,
            const std::string& scales = ", 1, 1") {
    std::vector<uint32_t> in(KernelRun::words);
    for (int i = 0; i < 64; ++i) std::memcpy(&in[1024 + 8 * i], a[i].data(), 32);
    for (int i = 0; i < 8; ++i) std::memcpy(&in[2048 + 8 * i], b[i].data(), 32);
    const auto move = [](const std::string& lanes, int from, int to) {
      return "setp.lt.u32 %p1, %t, " + lanes + "; mul.wide.u32 %d3, %t, 32; add.s64 %d3, %d3, %out; " +
             "@%p1 ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%d3+" + std::to_string(4 * from) +
             "]; @%p1 ld.global.v4.u32 {%r24, %r25, %r26, %r27}, [%d3+" + std::to_string(4 * from + 16) +
             "]; mad.lo.s32 %r2, %t, 16, " + std::to_string(to) + "; @%p1 st.shared.v4.b32 [%r2], {%r20, %r21, %r22, " +
             "%r23}; @%p1 st.shared.v4.b32 [%r2+" + (lanes == "64" ? "1024" : "128") + "], {%r24, %r25, %r26, %r27};";
    };
    // Of A in registers: row warp * 16 + lane / 4 (+ 8), bytes 4 (lane % 4) and up (+ 16).
    const std::string fragment =
        "and.b32 %r3, %t, 31; shr.u32 %r4, %t, 5; shr.u32 %r5, %r3, 2; mad.lo.s32 %r5, %r4, 16, %r5; and.b32 %r6, %r3, "
        "3; mul.lo.s32 %r5, %r5, 32; mad.lo.s32 %r5, %r6, 4, %r5; cvt.u64.u32 %d4, %r5; add.s64 %d4, %d4, %out; "
        "ld.global.u32 %r10, [%d4+4096]; ld.global.u32 %r11, [%d4+4352]; ld.global.u32 %r12, [%d4+4112]; "
        "ld.global.u32 %r13, [%d4+4368];";
    const std::string value = std::to_string(d);
    const KernelRun run(
        {move("64", 1024, 1024), move("8", 2048, 4096), fragment, "fence.proxy.async; bar.sync 0;",
         // start 1024 and 4096, leading (from 16 bytes of K to the next) 1024 and 128, stride 128
         "mov.b64 %d1, 0x0000000800400040; mov.b64 %d2, 0x0000000800080100; setp.eq.s32 %p2, 0, 0; mov.b32 %r30, " +
             value + "; mov.b32 %r31, " + value + "; mov.b32 %r32, " + value + "; mov.b32 %r33, " + value + ";",
         fence,
         "wgmma.mma_async.sync.aligned.m64n8k32." + types + " {%r30, %r31, %r32, %r33}, " +
             (a_in_registers ? "{%r10, %r11, %r12, %r13}" : "%d1") + ", %d2, %p2" + scales + ";",
         commit, wait_all,
         "mul.lo.s32 %r5, %r4, 16; shr.u32 %r6, %r3, 2; add.s32 %r5, %r5, %r6; and.b32 %r6, %r3, 3; mul.lo.s32 %r5, "
         "%r5, 32; mad.lo.s32 %r5, %r6, 8, %r5; cvt.u64.u32 %d4, %r5; add.s64 %d4, %d4, %out; "
         "st.global.v2.u32 [%d4], {%r30, %r31}; st.global.v2.u32 [%d4+256], {%r32, %r33};"},
        {.threads = 128, .in = in});
    out = run.out;
  }
};

TEST(Wgmma, EightBitTypesAreExactOnSmallNumbers) {
  const std::string float_types[] = {"e4m3", "e5m2"}, integer_types[] = {"s8", "u8"};
  std::mt19937 random(1);
  std::array<std::array<uint8_t, 32>, 64> a{};
  std::array<std::array<uint8_t, 32>, 8> b{};
  const auto code = [](const std::string& type, double x) {
    return type == "e4m3" ? e4m3::from(x).bits : type == "e5m2" ? e5m2::from(x).bits : uint8_t(int(x));
  };
  for (const bool integers : {false, true})
    for (const std::string& ta : integers ? integer_types : float_types)
      for (const std::string& tb : integers ? integer_types : float_types)
        for (const bool in_registers : {false, true}) {
          double va[64][32], vb[8][32];
          const auto draw = [&](const std::string& type) {
            return type == "u8"   ? double(random() % 256)
                   : type == "s8" ? double(int(random() % 256) - 128)
                                  : double(int(random() % 17) - 8);
          };
          for (int i = 0; i < 64; ++i)
            for (int k = 0; k < 32; ++k) a[i][k] = code(ta, va[i][k] = draw(ta));
          for (int j = 0; j < 8; ++j)
            for (int k = 0; k < 32; ++k) b[j][k] = code(tb, vb[j][k] = draw(tb));
          const EightBits run((integers ? "s32." : "f32.") + ta + "." + tb, a, b,
                              integers ? 12345 : std::bit_cast<uint32_t>(77.0F), in_registers,
                              integers ? "" : ", -1, 1");
          for (int i = 0; i < 64; ++i)
            for (int j = 0; j < 8; ++j) {
              double want = 0;
              for (int k = 0; k < 32; ++k) want += va[i][k] * vb[j][k];
              const double got =
                  integers ? double(int32_t(run.out[8 * i + j])) : double(std::bit_cast<float>(run.out[8 * i + j]));
              ASSERT_EQ(got, integers ? 12345 + want : 77 - want) << ta << tb << in_registers << " " << i << " " << j;
            }
        }
}
TEST(Wgmma, IntegersWrapOrSaturate) {
  std::array<std::array<uint8_t, 32>, 64> a{};
  std::array<std::array<uint8_t, 32>, 8> b{};
  a[3].fill(127);
  b[5].fill(127);
  const uint32_t d = 0x7fffff00;
  EXPECT_EQ(EightBits("s32.s8.s8", a, b, d, false, "").out[8 * 3 + 5], d + 32 * 127 * 127);
  EXPECT_EQ(EightBits("s32.s8.s8.satfinite", a, b, d, false, "").out[8 * 3 + 5], 0x7fffffffU);
  EXPECT_EQ(EightBits("s32.s8.s8.satfinite", a, b, d, false, "").out[8 * 3 + 4], d);
}
/// What an H200 keeps of a sum in FP8: 13 bits below the largest term, of each term by itself.
TEST(Wgmma, Fp8KeepsThirteenBits) {
  const auto one_with = [](int small, double sign, int from, int count, float d) {
    std::array<std::array<uint8_t, 32>, 64> a{};
    std::array<std::array<uint8_t, 32>, 8> b{};
    a[9][0] = b[2][0] = e4m3::from(d == 0 ? 1 : 0).bits;
    for (int k = from; k < from + count; ++k) {
      a[9][k] = e4m3::from(sign * std::ldexp(1, -(small / 2))).bits;
      b[2][k] = e4m3::from(std::ldexp(1, -(small - small / 2))).bits;
    }
    return std::bit_cast<float>(EightBits("f32.e4m3.e4m3", a, b, std::bit_cast<uint32_t>(d), false).out[8 * 9 + 2]);
  };
  EXPECT_EQ(one_with(13, 1, 1, 1, 0), 1 + 0x1p-13F);
  EXPECT_EQ(one_with(14, 1, 1, 1, 0), 1);
  EXPECT_EQ(one_with(14, -1, 1, 1, 0), 1);
  EXPECT_EQ(one_with(13, -1, 1, 1, 0), 1 - 0x1p-13F);
  EXPECT_EQ(one_with(14, 1, 1, 31, 0), 1) << "each is cut off by itself";
  EXPECT_EQ(one_with(13, 1, 1, 31, 0), 1 + 31 * 0x1p-13F);
  EXPECT_EQ(one_with(14, 1, 0, 32, 1), 1) << "the old D is one of the terms";
  EXPECT_EQ(one_with(13, 1, 0, 32, 1), 1 + 32 * 0x1p-13F);
}
TEST(Wgmma, Fp8OfInfinityAndNaN) {
  std::array<std::array<uint8_t, 32>, 64> a{};
  std::array<std::array<uint8_t, 32>, 8> b{};
  a[0][0] = 0x7c;  // infinity in E5M2
  a[1][0] = 0x7f;  // NaN
  b[0][0] = e4m3::from(2).bits;
  const EightBits run("f32.e5m2.e4m3", a, b, 0, false);
  EXPECT_EQ(std::bit_cast<float>(run.out[0]), INFINITY);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(run.out[1]))) << "infinity times 0";
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(run.out[8])));
  EXPECT_EQ(std::bit_cast<float>(run.out[16]), 0);
}
/// Whatever reads or writes an accumulator before the wait is reported there; a maximum of it with 0, too, which would hide a NaN.
TEST(WgmmaChecks, AnAccumulatorUsedBeforeTheWait) {
  const auto expect = [](const std::vector<std::string>& body, const std::string& instruction, int line) {
    expect_report(
        body, {.threads = 128},
        {instruction + " uses an accumulator of wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 at test.cu:",
         "which no wgmma.wait_group has waited for", "test.cu:" + std::to_string(line)});
  };
  const std::string other =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f4, %f5, %f6, %f7}, %d1, %d2, 0, 1, -1, 0, 0;";
  expect({ones, fence, multiply, commit, "max.f32 %f9, %f3, 0f00000000;", wait_all}, "max.f32", 105);
  expect({ones, fence, multiply, "mov.f32 %f8, %f0;", commit, wait_all}, "mov.f32", 104);
  expect({ones, fence, multiply, commit, "mov.f32 %f2, 0f00000000;", wait_all}, "mov.f32", 105);
  expect({ones, fence, multiply, commit, "st.global.v2.f32 [%out], {%f8, %f1};", wait_all}, "st.global.v2.f32", 105);
  expect({ones, fence, multiply, commit, "ld.global.f32 %f1, [%out];", wait_all}, "ld.global.f32", 105);
  expect({ones, fence, multiply, commit, "setp.gt.f32 %p3, %f8, %f0;", wait_all}, "setp.gt.f32", 105);
  expect({ones, fence, multiply, commit, "mov.b64 %d5, {%f0, %f1};", wait_all}, "mov.b64", 105);
  expect({ones, fence, multiply, commit, "shfl.sync.down.b32 %r5, %f0, 1, 31, -1;", wait_all}, "shfl.sync.down.b32",
         105);
  expect({ones, fence, multiply, commit, other, commit, "wgmma.wait_group.sync.aligned 1; add.f32 %f8, %f0, %f5;"},
         "add.f32", 107);
  // As an operand of another wgmma it is read, too.
  expect({ones, fence, multiply, commit,
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f4, %f5, %f6, %f7}, {%r5, %r6, %r7, %f0}, %d2, 0, 1, "
          "1, 0;"},
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", 105);
  // Only some lanes.
  expect({ones, fence, multiply, commit, "setp.eq.s32 %p3, %t, 77; @%p3 mov.f32 %f8, %f0;", wait_all}, "mov.f32", 105);
}
TEST(WgmmaChecks, OperandsOverwrittenTooEarly) {
  expect_report({ones, fence, multiply, commit, "st.shared.u32 [%r2], 0;", wait_all}, {.threads = 128},
                {"an asynchronous operation still reads it", "test.cu:103", "test.cu:105"});
}
TEST(WgmmaChecks, NoFence) {
  expect_report({ones, multiply}, {.threads = 128}, {"without wgmma.fence", "test.cu:102"});
}
TEST(WgmmaChecks, NoProxyFence) {
  std::string without = ones;
  without.replace(without.find("fence.proxy.async;"), 18, "");
  expect_report({without, fence, multiply}, {.threads = 128}, {"no fence.proxy.async between", "test.cu:103"});
}
TEST(WgmmaChecks, OutOfBounds) {
  expect_report({ones, fence, "mov.b64 %d1, 0x0000000800401000;", multiply}, {.threads = 128},
                {"the matrix descriptor 0x0000000800401000 reaches 0x10000", "test.cu:104"});
}
TEST(WgmmaChecks, HalfAWarpgroup) { expect_report({fence}, {.threads = 64}, {"four whole warps", "test.cu:101"}); }
TEST(WgmmaChecks, OtherTargets) {
  for (const std::string target : {"sm_80", "sm_90", "sm_100a", "sm_120", "sm_120a"})
    for (const std::string& body : {fence, multiply, commit})
      expect_report({body}, {.threads = 128, .target = target},
                    {"feature 'wgmma' is not supported on .target " + target + "; sm_90a has it", "test.cu:101"},
                    Fault::unsupported, 1);
}
TEST(WgmmaChecks, OneWarpDoesNotTakePart) {
  expect_report({ones, "setp.ge.u32 %p3, %t, 96; @%p3 bra END;", fence, multiply, commit, wait_all, "END:"},
                {.threads = 128},
                {"deadlock", "warp 0 waits for wgmma that other warps", "warp 3 has ended", "test.cu:106"});
}

// --- setmaxnreg --------------------------------------------------------------------------------------------------------------

/// Warps 0 to 3 give up registers, warps 4 to 11 take `more`.
std::vector<std::string> redistribute(const std::string& less, const std::string& more) {
  return {"setp.lt.u32 %p1, %t, 128; @%p1 bra LESS;", "setmaxnreg.inc.sync.aligned.u32 " + more + "; bra.uni END;",
          "LESS: setmaxnreg.dec.sync.aligned.u32 " + less + ";", "END: st.global.u32 [%mine], 1;"};
}

TEST(RegisterPool, MovesBetweenWarps) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const KernelRun run(redistribute("40", "232"), {.threads = 384, .seed = seed, .directives = ".maxntid 384, 1, 1"});
    for (uint32_t t = 0; t < 384; ++t) ASSERT_EQ(run.out[t], 1U);
  }
}
TEST(RegisterPool, MoreThanThereAre) {
  expect_report(redistribute("40", "240"), {.threads = 384, .directives = ".maxntid 384, 1, 1"},
                {"deadlock", "waits for 240 registers per thread, of which it has 168", "test.cu:102"});
}
TEST(RegisterPool, Targets) {
  const auto on = [](const char* target) {
    return KernelLaunch{.threads = 384, .target = target, .directives = ".maxntid 384, 1, 1"};
  };
  for (const char* const target : {"sm_90a", "sm_100a", "sm_100f", "sm_120a", "sm_120f"})
    EXPECT_NO_THROW(KernelRun(redistribute("40", "232"), on(target))) << target;
  for (const char* const target : {"sm_90", "sm_100", "sm_120"})
    expect_report(redistribute("40", "232"), on(target),
                  {std::string("feature 'setmaxnreg' is not supported on .target ") + target, "test.cu:102"},
                  Fault::unsupported, 1);
}
TEST(RegisterPool, TheWrongWay) {
  expect_report(redistribute("176", "232"), {.threads = 384, .directives = ".maxntid 384, 1, 1"},
                {"setmaxnreg to 176 registers, but the warp has 168", "test.cu:103"});
}
TEST(RegisterPool, NumberAtTheStartNotKnown) {
  expect_report(redistribute("40", "232"), {.threads = 384}, {"it needs .maxnreg, or .maxntid"});
}

}  // namespace
