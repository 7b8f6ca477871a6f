// tcgen05: what it computes, when its effects become visible, and that misuse is reported. Expected values follow PTX ISA 9.7.16.
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "executor/rounding.h"
#include "executor/tcgen05.h"
#include "executor/tensor_map.h"
#include "tests/kernel_run.h"

namespace {

using namespace sim;
using namespace sim::test;

KernelLaunch blackwell(uint32_t threads = 128) {
  KernelLaunch how;
  how.threads = threads;
  how.target = "sm_100a";
  how.checks = "uninitialised=error,proxy=error,ended=error,tcgen05=error";
  how.words = 1 << 17;
  return how;
}

/// Of `rows` rows of 32 elements without gaps; boxes are of `box_rows` whole rows.
TensorMap map_of(uint32_t rows, uint8_t element_bytes, uint16_t box_rows) {
  TensorMap map;
  map.magic = TensorMap::valid;
  map.rank = 2;
  map.element_bytes = element_bytes;
  map.size = {32, rows};
  map.stride = {32U * element_bytes};
  map.box = {32, box_rows};
  map.step = {1, 1};
  return map;
}

/// With this map of the output words as its parameter.
KernelLaunch with_map(KernelLaunch how, const TensorMap& map) {
  how.map.resize(128);
  how.into_map_base = offsetof(TensorMap, base);
  std::memcpy(how.map.data(), &map, sizeof map);
  return how;
}

/// Thread 0 (%p7) makes an mbarrier of one arrival at 64000 (%r10); warp 0 (%p1) allocates, and all have the address in %r5, that of
/// their warp's lanes in %r7.
std::vector<std::string> prologue(uint32_t columns = 512) {
  return {"setp.eq.s32 %p7, %t, 0; setp.lt.u32 %p1, %t, 32; mov.u32 %r10, 64000;",
          "@%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 fence.mbarrier_init.release.cluster;",
          "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [64008], " + std::to_string(columns) + ";",
          "bar.sync 0; ld.shared.u32 %r5, [64008]; shr.u32 %r6, %t, 5; and.b32 %r6, %r6, 3; shl.b32 %r6, %r6, 21; "
          "add.u32 %r7, %r5, %r6;"};
}
std::string dealloc(uint32_t columns = 512) {
  return "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, " + std::to_string(columns) + ";";
}
const std::string before = "tcgen05.fence::before_thread_sync;", after = "tcgen05.fence::after_thread_sync;";
const std::string wait_load = "tcgen05.wait::ld.sync.aligned;", wait_store = "tcgen05.wait::st.sync.aligned;";
const std::string commit = "@%p7 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];";
std::string wait_for(int parity, const std::string& label = "WAIT") {
  return label + ": mbarrier.try_wait.parity.shared.b64 %p6, [%r10], " + std::to_string(parity) + "; @!%p6 bra " +
         label + ";";
}

/// `count` registers of 32 bits from %r20 on, in braces; more than 16 do not fit.
std::string registers(uint32_t count) {
  std::string list = "{";
  for (uint32_t i = 0; i < count; ++i) list += (i ? ", %r" : "%r") + std::to_string(20 + i);
  return list + "}";
}
/// %f0 and so on, for long lists.
std::string floats(uint32_t count) {
  std::string list = "{";
  for (uint32_t i = 0; i < count; ++i) list += (i ? ", %f" : "%f") + std::to_string(i);
  return list + "}";
}

std::vector<std::string> body(std::vector<std::string> lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

/// Lines that load `columns` columns, eight at a time, and store them at out[base + column * 128 + lane].
std::vector<std::string> dump(uint32_t columns, uint32_t base) {
  std::vector<std::string> lines;
  for (uint32_t c = 0; c < columns; c += 8) {
    std::string line =
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + registers(8) + ", [%r7+" + std::to_string(c) + "]; " + wait_load;
    for (uint32_t i = 0; i < 8; ++i)
      line += " st.global.u32 [%mine+" + std::to_string(4 * (base + (c + i) * 128)) + "], %r" + std::to_string(20 + i) +
              ";";
    lines.push_back(line);
  }
  return lines;
}

// --- allocation --------------------------------------------------------------------------------------------------------------

TEST(TensorMemory, IsAllocatedInColumns) {
  const KernelRun run(
      body(prologue(128),
           {"@%p1 tcgen05.alloc.cta_group::1.sync.aligned.b32 [64012], 32;",
            "@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
            "bar.sync 0; ld.shared.u32 %r8, [64012];", "st.global.u32 [%mine], %r5; st.global.u32 [%mine+4096], %r8;",
            "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;", dealloc(128)}),
      blackwell());
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(run.out[t], 0U);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(run.out[1024 + t], 128U);
}

TEST(TensorMemory, AnAllocationWaitsForColumns) {
  // Warp 1 gets them when warp 0 has given them back; neither waits for the other at a barrier.
  const std::vector<std::string> lines =
      body(prologue(512),
           {"setp.ge.u32 %p2, %t, 32; @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [64016], 256;",
            "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 512;",
            "@%p2 ld.shared.u32 %r8, [64016]; @%p2 st.global.u32 [%mine], %r8;",
            "@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 256;"});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    KernelLaunch how = blackwell(64);
    how.seed = seed;
    how.in.assign(64, 77);
    const KernelRun run(lines, how);
    for (uint32_t t = 32; t < 64; ++t) ASSERT_EQ(run.out[t], 0U) << seed;
  }
}

TEST(TensorMemory, MisuseOfAllocationsIsReported) {
  const auto expect = [](uint32_t columns, const std::vector<std::string>& more,
                         const std::vector<std::string>& parts) {
    expect_report(body(prologue(columns), more), blackwell(), parts);
  };
  expect(512, {},
         {"the block ends, and 512 columns of tensor memory were not given back", "test.cu:103", "tcgen05.alloc"});
  expect(48, {}, {"48 columns: only powers of two from 32 to 512 can be", "test.cu:103"});
  expect(16, {}, {"16 columns: only powers of two"});
  expect(64, {dealloc(32)}, {"there is no allocation of 32 columns at 0x0", "test.cu:105"});
  expect(64, {"add.u32 %r5, %r5, 32; " + dealloc(32)}, {"there is no allocation of 32 columns at 0x20"});
  expect(64, {dealloc(64), dealloc(64)}, {"there is no allocation of 64 columns", "test.cu:106"});
  expect(64,
         {"@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
          "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [64012], 32;"},
         {"tcgen05.alloc after tcgen05.relinquish_alloc_permit", "test.cu:106"});
  expect(512, {"@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [64012], 32;", dealloc(512)},
         {"deadlock", "warp 0 waits for 32 columns of tensor memory (0 are free)", "test.cu:105"});
  expect(64, {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7+64];"},
         {"column 64 of tensor memory is not allocated", "test.cu:105"});
  expect(64, {"tcgen05.st.sync.aligned.32x32b.x4.b32 [%r7+62], {%r20, %r21, %r22, %r23};"},
         {"column 64 of tensor memory is not allocated"});
  expect(512, {"tcgen05.st.sync.aligned.32x32b.x2.b32 [%r7+511], {%r20, %r21};"},
         {"column 512 of tensor memory: there are 512"});
}

// --- ld and st ---------------------------------------------------------------------------------------------------------------

struct Shape {
  const char* name;
  uint32_t each, most;  ///< registers of .x1; the largest .num
  uint32_t lanes;
  std::function<std::pair<uint32_t, uint32_t>(uint32_t thread, uint32_t r)> place;  ///< lane and column
};
constexpr uint32_t split = 40;
/// The figures of PTX ISA 9.7.16.2.3.1.
const std::vector<Shape> shapes = {
    {"32x32b", 1, 128, 32, [](uint32_t t, uint32_t r) { return std::pair(t, r); }},
    {"16x64b", 1, 128, 16,
     [](uint32_t t, uint32_t r) { return std::pair((t >> 2) + (t & 1 ? 8 : 0), 2 * r + (t & 2 ? 1 : 0)); }},
    {"16x128b", 2, 64, 16,
     [](uint32_t t, uint32_t r) { return std::pair((t >> 2) + (r & 1 ? 8 : 0), 4 * (r >> 1) + (t & 3)); }},
    {"16x256b", 4, 32, 16,
     [](uint32_t t, uint32_t r) {
       return std::pair((t >> 2) + (r & 2 ? 8 : 0), 8 * (r >> 2) + 2 * (t & 3) + (r & 1));
     }},
    {"16x32bx2", 1, 128, 16, [](uint32_t t, uint32_t r) { return std::pair(t & 15, r + (t < 16 ? 0 : split)); }}};

/// A store in the shape, then what lies where; and a store of all lanes, then a load in the shape. Packed: a register is two
/// neighbouring columns' lower halves.
TEST(TensorMemory, EachShapeMovesItsLanesAndColumns) {
  for (const Shape& shape : shapes)
    for (uint32_t num : {1U, 4U, 16U, shape.most})
      for (const bool packed : {false, true}) {
        const bool two = shape.lanes == 16 && shape.each == 1 && std::string(shape.name) == "16x32bx2";
        const uint32_t count = num * shape.each, scale = packed ? 2 : 1;
        if (two && num * scale > split) continue;
        uint32_t columns = 0;
        for (uint32_t t = 0; t < 32; ++t)
          for (uint32_t r = 0; r < count; ++r) {
            const uint32_t c = shape.place(t, r).second;
            columns = std::max(columns, (two && t >= 16 ? (c - split) * scale + split : c * scale) + scale);
          }
        columns = (columns + 7) / 8 * 8;
        if (columns > 256) continue;
        const uint32_t lane = shape.lanes == 16 ? 16 : 0;  // of the warp's quarter
        const std::string tail = two ? ", " + std::to_string(split) : "";
        std::vector<std::string> lines = prologue();
        lines.push_back("add.u32 %r8, %r7, " + std::to_string(lane << 16) + ";");
        // Every word of all the columns: lane + 256 * column.
        lines.push_back("shl.b32 %r9, %r6, 0; shr.u32 %r9, %r9, 16; and.b32 %r11, %t, 31; add.u32 %r9, %r9, %r11;");
        for (uint32_t c = 0; c < columns; ++c)
          lines.push_back("add.u32 %r12, %r9, " + std::to_string(256 * c) +
                          "; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7+" + std::to_string(c) + "], {%r12};");
        lines.push_back(wait_store);
        lines.push_back(std::string("tcgen05.ld.sync.aligned.") + shape.name + ".x" + std::to_string(num) +
                        (packed ? ".pack::16b" : "") + ".b32 " + floats(count) + ", [%r8]" + tail + "; " + wait_load);
        for (uint32_t r = 0; r < count; ++r)
          lines.push_back("st.global.f32 [%mine+" + std::to_string(4 * 128 * r) + "], %f" + std::to_string(r) + ";");
        // The same registers, with another bit 14 in each half, go back.
        for (uint32_t r = 0; r < count; ++r)
          lines.push_back("mov.b32 %r12, %f" + std::to_string(r) + "; xor.b32 %r12, %r12, " +
                          std::to_string(packed ? 0x40004000U : 0x4000U) + "; mov.b32 %f" + std::to_string(r) +
                          ", %r12;");
        lines.push_back(std::string("tcgen05.st.sync.aligned.") + shape.name + ".x" + std::to_string(num) +
                        (packed ? ".unpack::16b" : "") + ".b32 [%r8]" + tail + ", " + floats(count) + "; " +
                        wait_store);
        lines = body(lines, dump(columns, 1 << 15));
        lines.push_back(dealloc());
        const KernelRun run(lines, blackwell());
        const std::string what = std::string(shape.name) + ".x" + std::to_string(num) + (packed ? " packed" : "");
        std::vector<uint32_t> expected(columns * 128);
        for (uint32_t c = 0; c < columns; ++c)
          for (uint32_t l = 0; l < 128; ++l) expected[c * 128 + l] = l + 256 * c;
        for (uint32_t t = 0; t < 128; ++t)
          for (uint32_t r = 0; r < count; ++r) {
            auto [l, c] = shape.place(t % 32, r);
            c = two && t % 32 >= 16 ? (c - split) * scale + split : c * scale;
            l += t / 32 * 32 + lane;
            const uint32_t first = l + 256 * c, second = l + 256 * (c + 1);
            ASSERT_EQ(run.out[128 * r + t], packed ? (first & 0xffff) | second << 16 : first)
                << what << " thread " << t << " register " << r;
            expected[c * 128 + l] = packed ? (first ^ 0x4000) & 0xffff : first ^ 0x4000;
            if (packed) expected[(c + 1) * 128 + l] = (second ^ 0x4000) & 0xffff;
          }
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_EQ(run.out[(1 << 15) + i], expected[i]) << what << " column " << i / 128 << " lane " << i % 128;
      }
}

TEST(TensorMemory, MovesThatAreWrongAreReported) {
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%t};",
                    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7];";
  const auto expect = [&](const std::vector<std::string>& more, const std::vector<std::string>& parts) {
    expect_report(body(prologue(), body(more, {dealloc()})), blackwell(), parts);
  };
  // What nobody has written.
  expect({load, wait_load}, {"a read of column 0, lane ", "which nobody in this block has written", "test.cu:105"});
  expect({"tcgen05.st.sync.aligned.16x64b.x1.b32 [%r7], {%t};", wait_store, load},
         {"a read of column 0, lane ", "which nobody in this block has written", "test.cu:107"});
  // Before the waits.
  expect({store, load}, {"which tcgen05.st.sync.aligned.32x32b.x1.b32 at test.cu:105", "still writes",
                         "tcgen05.wait::st", "test.cu:106"});
  expect({store, store}, {"still writes", "tcgen05.wait::st", "test.cu:106"});
  expect({store, wait_store, load, "add.u32 %r21, %r20, 1;"},
         {"add.u32 uses a register that tcgen05.ld.sync.aligned.32x32b.x1.b32 at test.cu:107",
          "without tcgen05.wait::ld", "test.cu:108"});
  expect({store, wait_store, load, store}, {"still reads", "tcgen05.wait::ld", "test.cu:108"});
  expect({store, wait_store, load, "mov.b32 %r21, %r20;", "add.u32 %r21, %r21, 1;"},
         {"add.u32 uses a register", "test.cu:107", "test.cu:109"});
  expect({store, dealloc()}, {"still writes", "test.cu:105", "test.cu:106"});
  // Another warp's lanes.
  expect({"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%t};"}, {"lane 0 of tensor memory: warp ", "test.cu:105"});
  expect({"add.u32 %r7, %r7, 1048576; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%t};"},
         {"of tensor memory: warp ", "from lane "});
  expect({"add.u32 %r7, %r7, %t; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%t};"},
         {"an address in tensor memory that is not the same in all lanes"});
}

/// The compiler may move what a load fills before the wait.
TEST(TensorMemory, AMovBeforeTheWaitIsNoUse) {
  const KernelRun run(
      body(prologue(),
           {"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%t};", wait_store,
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7]; mov.b32 %f1, %r20; mov.b32 %r22, %f1; " + wait_load,
            "st.global.u32 [%mine], %r22;", dealloc()}),
      blackwell());
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(run.out[t], t);
}

/// Warps 0 and 4 share lanes: synchronisation, and both fences.
TEST(TensorMemory, WarpsThatShareLanesAreOrdered) {
  const auto lines = [](const std::string& first, const std::string& second) {
    return body(prologue(), {"setp.lt.u32 %p2, %t, 128; setp.ge.u32 %p3, %t, 128; and.b32 %r8, %t, 31;",
                             "@%p2 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], {%r8}; @%p2 " + wait_store, first,
                             second, "@%p3 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7]; @%p3 " + wait_load,
                             "@%p3 st.global.u32 [%mine], %r20;", dealloc()});
  };
  const KernelRun run(lines(before, "bar.sync 0; " + after), blackwell(256));
  for (uint32_t t = 128; t < 256; ++t) EXPECT_EQ(run.out[t], t % 32);
  expect_report(lines(before, "bar.sync 0;"), blackwell(256),
                {"no tcgen05.fence::before_thread_sync there, or no tcgen05.fence::after_thread_sync", "test.cu:106",
                 "test.cu:109"});
  expect_report(lines("", "bar.sync 0; " + after), blackwell(256),
                {"tcgen05.fence::before_thread_sync there", "test.cu:106", "test.cu:109"});
  KernelLaunch how = blackwell(256);
  how.checks += ",uninitialised=off";
  expect_report(lines(before, after), how, {"of tensor memory", "test.cu:1"}, {}, 1);
}

// --- mma ---------------------------------------------------------------------------------------------------------------------

struct Format {
  const char* kind;
  uint32_t code, bits, container, k;  ///< bits of an element; 16 bytes over elements in them
  std::function<double(uint32_t)> value;
};
double small(uint32_t bits, int e, int m, int bias) {
  const int exponent = int(bits >> m & ((1U << e) - 1)), fraction = int(bits & ((1U << m) - 1));
  const double magnitude =
      (exponent ? fraction + (1 << m) : fraction) * std::pow(2.0, (exponent ? exponent : 1) - bias - m);
  return bits >> (e + m) & 1 ? -magnitude : magnitude;
}
const Format f16_format = {"f16", 0, 16, 16, 16, [](uint32_t b) { return f16{uint16_t(b)}.value(); }};
const Format bf16_format = {"f16", 1, 16, 16, 16, [](uint32_t b) { return bf16{uint16_t(b)}.value(); }};
const Format tf32_format = {"tf32", 2, 32,
                            32,     8, [](uint32_t b) { return double(std::bit_cast<float>(b & 0xffffe000)); }};
const Format e4m3_format = {"f8f6f4", 0, 8, 8, 32, [](uint32_t b) { return small(b, 4, 3, 7); }};
const Format e5m2_format = {"f8f6f4", 1, 8, 8, 32, [](uint32_t b) { return small(b, 5, 2, 15); }};
const Format e2m3_format = {"f8f6f4", 3, 6, 8, 32, [](uint32_t b) { return small(b, 2, 3, 1); }};
const Format e3m2_format = {"f8f6f4", 4, 6, 8, 32, [](uint32_t b) { return small(b, 3, 2, 3); }};
const Format e2m1_format = {"f8f6f4", 5, 4, 8, 32, [](uint32_t b) { return small(b, 2, 1, 1); }};
const Format u8_format = {"i8", 0, 8, 8, 32, [](uint32_t b) { return double(b); }};
const Format s8_format = {"i8", 1, 8, 8, 32, [](uint32_t b) { return double(int8_t(b)); }};

struct Multiply {
  Format a = bf16_format, b = bf16_format;
  uint32_t m = 128, n = 64;
  uint32_t swizzle = 128;  ///< of both
  bool transpose_a = false, transpose_b = false, negate_a = false, negate_b = false;
  bool f16_result = false, a_in_tensor_memory = false;
  int scale = -1;  ///< D * 2^-scale is added
  std::array<uint32_t, 4> disabled{};
  uint32_t d_lane = 0;
  bool weight_stationary = false;
  uint64_t zero_columns = 0;                   ///< a descriptor, of .ws
  std::function<bool(uint32_t)> is_zero = {};  ///< what it says of a column of B
  std::string collector = "";
  uint64_t seed = 1;
};

constexpr uint32_t a_base = 0, b_base = 32768;

/// How a matrix of `extent` rows or columns lies in shared memory (PTX ISA 9.7.16, "Canonical Layouts").
struct Layout {
  uint32_t swizzle, extent, bytes;  ///< bytes of 16 / elements in 16 bytes
  bool transposed;
  uint32_t span() const { return swizzle ? swizzle : 16; }
  /// Of the 16 bytes that begin with element (i, k).
  uint32_t unit(uint32_t i, uint32_t k) const {
    const uint32_t per = 16 / bytes;
    uint32_t address = 0;
    if (!transposed) {
      address = i % 8 * span() + i / 8 * stride() + (swizzle ? k / per * 16 : k / per * leading());
    } else if (swizzle) {
      const uint32_t row = swizzle / bytes;  // elements of M or N side by side
      address = i % row / per * 16 + i / row * leading() + k % 8 * span() + k / 8 * stride();
    } else {
      address = i / per * stride() + k % 8 * 16 + k / 8 * leading();
    }
    return swizzle ? address ^ (address >> 3 & (swizzle - 16)) : address;
  }
  uint32_t leading() const {
    if (!transposed) return swizzle ? 0 : extent * 16;
    return swizzle ? 32 / bytes / 8 * 8 * span() : 128;
  }
  uint32_t stride() const {
    if (!transposed) return 8 * span();
    return swizzle ? 8 * span() : 32 / bytes / 8 * 128;
  }
  uint64_t descriptor(uint32_t base) const {
    const uint64_t mode = swizzle == 128 ? 2 : swizzle == 64 ? 4 : swizzle == 32 ? 6 : 0;
    return base >> 4 | uint64_t{leading() >> 4} << 16 | uint64_t{stride() >> 4} << 32 | uint64_t{1} << 46 | mode << 61;
  }
};

std::string immediate(uint64_t value) { return std::to_string(int64_t(value)); }

bool is_integer(const Format& format) { return std::string(format.kind) == "i8"; }

uint32_t instruction_descriptor(const Multiply& what) {
  return (is_integer(what.a) ? 2U : uint32_t(!what.f16_result)) << 4 | what.a.code << 7 | what.b.code << 10 |
         what.negate_a << 13 | what.negate_b << 14 | what.transpose_a << 15 | what.transpose_b << 16 |
         what.n / 8 << 17 | what.m / 16 << 24;
}

/// The 60 KiB of shared memory that out[] brings; an mma, twice with a scale; then D at out[1 << 15].
std::vector<std::string> copy_in() {
  return {"mov.u32 %r2, %t;",
          "COPY: shl.b32 %r3, %r2, 2; cvt.u64.u32 %d5, %r3; add.u64 %d5, %d5, %out; ld.global.u32 %r4, [%d5]; "
          "st.shared.u32 [%r3], %r4; add.u32 %r2, %r2, 128; setp.lt.u32 %p5, %r2, 15360; @%p5 bra COPY;",
          "fence.proxy.async.shared::cta; bar.sync 0;"};
}

/// Those of this kind alone.
uint64_t products_of(const Counts& counts, const std::string& kind) {
  uint64_t found = 0, all = 0;
  for (size_t i = 0; i < mma_kinds; ++i) {
    all += counts.mma[i];
    if (kind == mma_kind_names[i]) found = counts.mma[i];
  }
  return all == found ? found : 0;
}

void expect_product(const Multiply& what) {
  std::mt19937_64 random(what.seed);
  const uint32_t k_size = what.a.k;
  const auto fill = [&](const Format& format, uint32_t extent) {
    std::vector<uint32_t> bits(extent * k_size);
    for (uint32_t& b : bits) {
      const int small_whole = int(random() % 7) - 3;
      b = format.bits == 32 ? std::bit_cast<uint32_t>(float(small_whole) + float(random() % 4) / 4)
          : format.bits == 16 && format.code == 0 ? f16::from(small_whole).bits
          : format.bits == 16                     ? bf16::from(small_whole).bits
                                                  : uint32_t(random() & ((1U << format.bits) - 1));
      if (format.bits == 8 && !is_integer(format)) b &= 0xbf;  // neither large nor NaN
    }
    return bits;
  };
  const std::vector<uint32_t> a = fill(what.a, what.m), b = fill(what.b, what.n);
  std::vector<uint32_t> words(1 << 15);
  auto* const bytes = reinterpret_cast<uint8_t*>(words.data());
  const auto put = [](uint8_t* unit, uint32_t index, uint32_t width, uint32_t bits) {
    for (uint32_t i = 0; i < width; ++i)
      if (bits >> i & 1) unit[(index * width + i) / 8] |= uint8_t(1U << (index * width + i) % 8);
  };
  const Layout a_layout{what.swizzle, what.m, what.a.container / 8, what.transpose_a};
  const Layout b_layout{what.swizzle, what.n, what.b.container / 8, what.transpose_b};
  const auto put_matrix = [&](const Layout& layout, const Format& format, uint32_t base,
                              const std::vector<uint32_t>& bits, uint32_t extent) {
    const uint32_t per = 128 / format.container;
    for (uint32_t i = 0; i < extent; ++i)
      for (uint32_t k = 0; k < k_size; ++k) {
        const uint32_t unit = layout.transposed ? layout.unit(i / per * per, k) : layout.unit(i, k / per * per);
        put(bytes + base + unit, layout.transposed ? i % per : k % per, format.bits, bits[i * k_size + k]);
      }
  };
  if (!what.a_in_tensor_memory) put_matrix(a_layout, what.a, a_base, a, what.m);
  put_matrix(b_layout, what.b, b_base, b, what.n);

  KernelLaunch how = blackwell();
  how.seed = what.seed;
  how.in = words;
  std::vector<std::string> lines = body(prologue(), copy_in());
  if (what.a_in_tensor_memory) {  // lane r of 32 bytes: row r, at columns 480 on
    how.in.resize(1 << 15);
    for (uint32_t row = 0; row < what.m; ++row) {
      uint8_t unit[32] = {};
      for (uint32_t k = 0; k < k_size; ++k) put(unit, k, what.a.bits, a[row * k_size + k]);
      for (uint32_t w = 0; w < 8; ++w)
        std::memcpy(&how.in[20480 + w * 128 + (what.m == 64 ? row / 16 * 32 + row % 16 : row)], unit + 4 * w, 4);
    }
    for (uint32_t w = 0; w < 8; ++w)
      lines.push_back("ld.global.u32 %r" + std::to_string(20 + w) + ", [%mine+" +
                      std::to_string(4 * (20480 + w * 128)) + "];");
    lines.push_back("tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7+480], " + registers(8) + "; " + wait_store + " " +
                    before + " bar.sync 0; " + after);
  }
  lines.push_back("mov.b64 %d1, " + immediate(a_layout.descriptor(a_base)) + "; mov.b64 %d2, " +
                  immediate(b_layout.descriptor(b_base)) + "; mov.u32 %r8, " + immediate(instruction_descriptor(what)) +
                  "; add.u32 %r9, %r5, " + std::to_string(what.d_lane << 16) + ";");
  std::string mask;
  if (what.disabled != std::array<uint32_t, 4>{}) {
    mask = "{%r20, %r21, %r22, %r23}, ";
    for (int i = 0; i < 4; ++i)
      lines.push_back("mov.u32 %r" + std::to_string(20 + i) + ", " + std::to_string(what.disabled[size_t(i)]) + ";");
  }
  const std::string multiply = std::string("@%p7 tcgen05.mma.") + (what.weight_stationary ? "ws." : "") +
                               "cta_group::1.kind::" + what.a.kind + what.collector + " [%r9], " +
                               (what.a_in_tensor_memory ? "[%r5+480]" : "%d1") + ", %d2, %r8, ";
  const std::string zero_columns = what.zero_columns ? ", " + immediate(what.zero_columns) : "";
  lines.push_back(multiply + "0" + zero_columns + ";");
  const bool twice = what.scale >= 0 || !mask.empty() || is_integer(what.a) || what.zero_columns;
  if (twice)
    lines.push_back(multiply + mask + "1" + (what.scale >= 0 ? ", " + std::to_string(what.scale) : "") + zero_columns +
                    ";");
  lines.push_back(commit);
  lines.push_back(wait_for(0) + " " + after);
  const uint32_t columns = what.weight_stationary ? what.n * what.m / 128 : what.n;
  if (what.m == 64 && !what.weight_stationary)
    how.checks = "proxy=error,tcgen05=error";  // half of the lanes hold nothing
  lines = body(lines, dump(columns, 1 << 15));
  lines.push_back(dealloc());
  const KernelRun run(lines, how);

  for (uint32_t m = 0; m < what.m; ++m)
    for (uint32_t n = 0; n < what.n; ++n) {
      double sum = 0;
      for (uint32_t k = 0; k < k_size; ++k) sum += what.a.value(a[m * k_size + k]) * what.b.value(b[n * k_size + k]);
      if (what.negate_a != what.negate_b) sum = -sum;
      if (what.is_zero && what.is_zero(n)) sum = 0;
      const uint32_t lane =
          what.weight_stationary ? m + n / columns * what.m : what.d_lane + (what.m == 64 ? m / 16 * 32 + m % 16 : m);
      const auto rounded = [&](double x) { return what.f16_result ? f16::from(x).value() : double(float(x)); };
      double expected = rounded(sum);
      if (twice && !(what.disabled[lane / 32] >> lane % 32 & 1))
        expected = rounded(sum + expected * std::pow(2.0, -std::max(0, what.scale)));
      const uint32_t bits = run.out[(1 << 15) + n % columns * 128 + lane];
      const double got = is_integer(what.a) ? double(int32_t(bits))
                         : what.f16_result  ? f16{uint16_t(bits)}.value()
                                            : double(std::bit_cast<float>(bits));
      ASSERT_EQ(got, expected) << "D[" << m << "][" << n << "] of " << what.a.kind << " " << what.a.code << " "
                               << what.m << "x" << what.n << " swizzle " << what.swizzle;
    }
  const Counts& total = run.counters.total;
  const uint64_t products = twice ? 2 : 1;
  EXPECT_EQ(total.flops[3], 2 * what.m * what.n * k_size * products);
  EXPECT_EQ(products_of(total, what.a.kind), products);
  EXPECT_EQ(total.mma_shared_bytes, 32 * (what.n + (what.a_in_tensor_memory ? 0 : what.m)) * products);
  EXPECT_EQ(total.tensor_load_bytes, columns * 128 * 4);
  EXPECT_EQ(total.tensor_store_bytes, what.a_in_tensor_memory ? 8 * 128 * 4 : 0);
}

TEST(Tcgen05, MultipliesEveryFormat) {
  for (const Format& format :
       {f16_format, bf16_format, tf32_format, e4m3_format, e5m2_format, e2m3_format, e3m2_format, e2m1_format})
    expect_product({.a = format, .b = format});
  expect_product({.a = e4m3_format, .b = e5m2_format});
  expect_product({.a = e2m1_format, .b = e4m3_format});
  expect_product({.a = e3m2_format, .b = e2m3_format});
}

TEST(Tcgen05, MultipliesEveryShape) {
  for (const uint32_t n : {16U, 48U, 96U, 256U}) expect_product({.m = 128, .n = n, .swizzle = 64});
  for (const uint32_t n : {8U, 24U, 64U, 256U}) expect_product({.m = 64, .n = n, .swizzle = 64});
  expect_product({.m = 64, .n = 32, .d_lane = 16});
}

TEST(Tcgen05, ReadsEveryLayout) {
  for (const uint32_t swizzle : {0U, 32U, 64U, 128U}) {
    expect_product({.swizzle = swizzle});
    expect_product({.a = tf32_format, .b = tf32_format, .m = 64, .n = 32, .swizzle = swizzle});
    expect_product({.swizzle = swizzle, .transpose_a = true});
    expect_product({.swizzle = swizzle, .transpose_b = true});
    expect_product({.m = 64, .n = 128, .swizzle = swizzle, .transpose_a = true, .transpose_b = true});
    expect_product(
        {.a = e4m3_format, .b = e4m3_format, .n = 128, .swizzle = swizzle, .transpose_a = true, .transpose_b = true});
  }
}

TEST(Tcgen05, FollowsTheInstructionDescriptor) {
  expect_product({.negate_a = true});
  expect_product({.negate_b = true});
  expect_product({.negate_a = true, .negate_b = true});
  expect_product({.a = f16_format, .b = f16_format, .f16_result = true});
  expect_product({.a = f16_format, .b = f16_format, .f16_result = true, .scale = 0});
  expect_product({.a = e5m2_format, .b = e4m3_format, .f16_result = true});
}

TEST(Tcgen05, ScalesAndMasksItsInput) {
  for (const int scale : {0, 1, 7}) expect_product({.scale = scale});
  expect_product({.a = tf32_format, .b = tf32_format, .scale = 15});
  expect_product({.disabled = {0xff, 0, 0x80000001, 0xffffffff}});
  expect_product({.m = 64, .disabled = {0xff, 0, 0x80000001, 0xffffffff}});
}

TEST(Tcgen05, MultipliesIntegers) {
  for (const Format& a : {u8_format, s8_format})
    for (const Format& b : {u8_format, s8_format}) expect_product({.a = a, .b = b, .n = 48});
  for (const uint32_t n : {8U, 24U, 32U, 256U})
    expect_product({.a = s8_format, .b = u8_format, .m = n == 24 ? 64U : 128U, .n = n, .swizzle = 64});
  expect_product({.a = s8_format, .b = s8_format, .transpose_a = true, .transpose_b = true});
  expect_product({.a = s8_format, .b = s8_format, .a_in_tensor_memory = true});
  expect_product({.a = s8_format, .b = s8_format, .disabled = {0xff, 0, 0x80000001, 0xffffffff}});
}

/// D begins near the end of the 32-bit integers, as each lane's number says.
TEST(Tcgen05, IntegersSaturateOrWrap) {
  const Layout a{0, 128, 1, false}, b{0, 8, 1, false};
  for (const bool saturate : {false, true})
    for (const int sign : {1, -1}) {
      const uint32_t first = sign > 0 ? 0x7ffffff0U : 0x80000010U;
      std::vector<std::string> lines = body(
          prologue(), {"mov.u32 %r2, %t; ONES: shl.b32 %r3, %r2, 2; mov.u32 %r4, 0x01010101; st.shared.u32 [%r3], %r4; "
                       "add.u32 %r2, %r2, 128; setp.lt.u32 %p5, %r2, 15360; @%p5 bra ONES;",
                       "fence.proxy.async.shared::cta; mov.u32 %r20, " + std::to_string(int32_t(first)) + ";"});
      lines.push_back("bar.sync 0; shl.b32 %r3, %t, 4; mov.u32 %r4, -1;");
      for (uint32_t word = 0; sign < 0 && word < 8; ++word)  // all of A is -1
        lines.push_back("st.shared.u32 [%r3+" + std::to_string(word / 4 * 2048 + word % 4 * 4) + "], %r4;");
      lines.push_back("fence.proxy.async.shared::cta;");
      std::string store;
      for (uint32_t c = 0; c < 8; ++c)
        store += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7+" + std::to_string(c) + "], {%r20};";
      lines = body(
          lines,
          {store + wait_store + before + " bar.sync 0; " + after,
           "mov.b64 %d1, " + immediate(a.descriptor(0)) + "; mov.b64 %d2, " + immediate(b.descriptor(b_base)) +
               "; mov.u32 %r8, " +
               immediate(instruction_descriptor({.a = s8_format, .b = s8_format, .n = 8}) | uint32_t(saturate) << 3) +
               ";",
           "@%p7 tcgen05.mma.cta_group::1.kind::i8 [%r5], %d1, %d2, %r8, 1;", commit, wait_for(0) + " " + after});
      lines = body(lines, dump(8, 1 << 15));
      lines.push_back(dealloc());
      const KernelRun run(lines, blackwell());
      const uint32_t expected = saturate ? (sign > 0 ? 0x7fffffffU : 0x80000000U) : first + uint32_t(32 * sign);
      for (uint32_t i = 0; i < 8 * 128; ++i) ASSERT_EQ(run.out[(1 << 15) + i], expected) << saturate << sign << i;
    }
}

TEST(Tcgen05, KeepsWeights) {
  for (const uint32_t m : {32U, 64U, 128U})
    for (const uint32_t n : {64U, 128U, 256U})
      expect_product({.m = m, .n = n, .swizzle = n == 256 ? 64U : 128U, .weight_stationary = true});
  for (const Format& format : {tf32_format, e4m3_format, s8_format})
    expect_product({.a = format, .b = format, .m = 32, .weight_stationary = true});
  expect_product({.a_in_tensor_memory = true, .weight_stationary = true});
  // Columns that are taken as 0: skipped in threes, used in fours, as in the ISA's second and third example.
  const uint64_t mask = uint64_t{1} << 39 | uint64_t{2} << 40 | uint64_t{3} << 48;
  expect_product({.weight_stationary = true, .zero_columns = mask, .is_zero = [](uint32_t n) { return n % 7 >= 4; }});
  expect_product({.m = 64,
                  .n = 128,
                  .weight_stationary = true,
                  .zero_columns = mask | uint64_t{1} << 32,
                  .is_zero = [](uint32_t n) { return n < 64 ? n % 7 < 3 : n % 64 % 7 >= 4; }});
}

/// PTX ISA 9.7.16.4.3: its four examples, from the first column on.
TEST(Tcgen05, ZeroColumnMasksAreThoseOfTheIsa) {
  const auto mask = [](uint64_t bits, uint32_t m, uint32_t first, uint32_t count) {
    const ZeroColumns columns(bits, m, 128);
    std::string text;
    for (uint32_t c = first; c < first + count; ++c) text += columns.zero[c] ? '1' : '0';
    return text;
  };
  const uint64_t spans = uint64_t{2} << 40 | uint64_t{3} << 48, generated = uint64_t{1} << 39;
  EXPECT_EQ(mask(uint64_t{4} << 40 | uint64_t{3} << 48, 128, 0, 128), std::string(128, '0'));
  EXPECT_EQ(mask(spans | generated, 128, 0, 14), "00001110000111");
  const uint64_t third = spans | generated | uint64_t{1} << 32;
  EXPECT_EQ(mask(third, 64, 0, 17), "11100001110000111");
  EXPECT_EQ(mask(third, 64, 64, 17), "00001110000111000");
  const uint64_t fourth = spans | generated | uint64_t{3} << 32 | uint64_t{1} << 8 | uint64_t{2} << 16 |
                          uint64_t{1} << 24 | uint64_t{2} << 56;
  EXPECT_EQ(mask(fourth, 32, 0, 14), "11100001110000");
  EXPECT_EQ(mask(fourth, 32, 32, 13), "1100001110000");
  EXPECT_EQ(mask(fourth, 32, 64, 12), "001110000111");
  EXPECT_EQ(mask(fourth, 32, 96, 13), "0001110000111");
  EXPECT_EQ(ZeroColumns(fourth, 32, 128).shift, 2U);
}

TEST(Tcgen05, TakesAFromTensorMemory) {
  for (const Format& format : {f16_format, bf16_format, tf32_format, e4m3_format})
    expect_product({.a = format, .b = format, .a_in_tensor_memory = true});
  expect_product({.m = 64, .a_in_tensor_memory = true});
  expect_product({.negate_a = true, .a_in_tensor_memory = true});
}

// --- time --------------------------------------------------------------------------------------------------------------------

const Layout plain_a{128, 128, 2, false}, plain_b{128, 64, 2, false};
const std::string descriptors = "mov.b64 %d1, " + immediate(plain_a.descriptor(a_base)) + "; mov.b64 %d2, " +
                                immediate(plain_b.descriptor(b_base)) + "; mov.u32 %r8, " +
                                immediate(instruction_descriptor({})) + ";";
const std::string fill_ones =
    "mov.u32 %r2, %t; ONES: shl.b32 %r3, %r2, 2; mov.u32 %r4, 0x3f803f80; st.shared.u32 [%r3], %r4; "
    "add.u32 %r2, %r2, %r1; setp.lt.u32 %p5, %r2, 15360; @%p5 bra ONES;";
const std::string ones = fill_ones + " fence.proxy.async.shared::cta; bar.sync 0;" + descriptors;
const std::string multiply = "@%p7 tcgen05.mma.cta_group::1.kind::f16 [%r5], %d1, %d2, %r8, 0;";
const std::string multiply_add = "@%p7 tcgen05.mma.cta_group::1.kind::f16 [%r5], %d1, %d2, %r8, 1;";
const std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7]; " + wait_load;

/// Lines 105 on.
void expect_multiply_report(const std::vector<std::string>& more, const std::vector<std::string>& parts,
                            uint32_t threads = 128) {
  expect_report(body(prologue(), body(more, {dealloc()})), blackwell(threads), parts, {}, 10);
}

TEST(Tcgen05, AccumulatesInOrder) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    KernelLaunch how = blackwell();
    how.seed = seed;
    const KernelRun run(body(prologue(), body({ones, multiply, multiply_add, multiply_add, commit, wait_for(0) + after,
                                               load, "st.global.u32 [%mine], %r20;"},
                                              {dealloc()})),
                        how);
    for (uint32_t t = 0; t < 128; ++t) ASSERT_EQ(std::bit_cast<float>(run.out[t]), 48.f);
  }
}

TEST(Tcgen05, LandsWithItsCommitAndNoEarlier) {
  // Nobody waits: reported where D is read, where A is overwritten, and where the block ends.
  expect_multiply_report({ones, multiply, commit, load},
                         {"column 0, lanes ", "which tcgen05.mma.cta_group::1.kind::f16 at test.cu:106", "still writes",
                          "the mbarrier of a tcgen05.commit", "test.cu:108"},
                         32);
  expect_multiply_report({ones, multiply, commit, "@%p7 st.shared.u32 [0], %t;", wait_for(0)},
                         {"while an asynchronous operation still reads it", "test.cu:106", "test.cu:108"});
  expect_report(body(prologue(), {ones, multiply, commit, "bar.sync 0;"}), blackwell(),
                {"the block ends while this is under way", "test.cu:106"});
  expect_multiply_report({ones, multiply, commit}, {"still writes", "test.cu:108"});
  // A commit is of the thread that issued the products.
  expect_multiply_report(
      {ones, multiply,
       "setp.eq.s32 %p4, %t, 1; @%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10];",
       wait_for(0) + after, load},
      {"still writes", "test.cu:106", "test.cu:109"});
  // Without a commit nobody arrives.
  expect_multiply_report({ones, multiply, wait_for(0)}, {"deadlock", "waits for the end of phase 0", "test.cu:107"});
}

TEST(Tcgen05, OrderAndFencesAreReported) {
  expect_multiply_report({ones, multiply, commit, wait_for(0), load},
                         {"column 0 of tensor memory: synchronisation orders this after the write by tcgen05.mma",
                          "tcgen05.fence::after_thread_sync", "test.cu:106", "test.cu:109"});
  // Warp 1 does not wait.
  expect_report(body(prologue(), {ones, multiply, commit + "bar.sync 0;", "@!%p1 bra OTHERS; " + wait_for(0) + after,
                                  "OTHERS: " + load, dealloc()}),
                blackwell(),
                {"column 0", "of tensor memory", "tcgen05.mma.cta_group::1.kind::f16", "test.cu:106", "test.cu:109"},
                {}, 10);
  // The next product overwrites what a warp still reads, or has read without telling.
  const std::string again = "bar.sync 0; " + after + multiply;
  expect_multiply_report(
      {ones, multiply, commit, wait_for(0) + after, "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7];", again},
      {"still reads", "tcgen05.wait::ld", "test.cu:109", "test.cu:110"});
  expect_multiply_report(
      {ones, multiply, commit, wait_for(0) + after, load, again},
      {"tcgen05.fence::before_thread_sync there", "the read by tcgen05.ld", "test.cu:109", "test.cu:110"}, 64);
  const KernelRun run(
      body(prologue(), {ones, multiply, commit, wait_for(0) + after, load + before, again + commit,
                        wait_for(1, "SECOND") + after, load, "st.global.u32 [%mine], %r20;", dealloc()}),
      blackwell());
  EXPECT_EQ(std::bit_cast<float>(run.out[100]), 16.f);
  // Two threads' products on the same columns.
  expect_multiply_report({ones, "setp.eq.s32 %p7, %t, 0; setp.eq.or.s32 %p7, %t, 32, %p7; " + multiply},
                         {"a write of column 0", "still writes", "test.cu:106"});
  // All lanes of a warp multiply: that is 32 products, with 32 arrivals.
  expect_multiply_report({ones, "setp.lt.u32 %p7, %t, 32;", multiply}, {"still writes", "test.cu:107"});
}

TEST(Tcgen05, OperandsInSharedMemoryAreChecked) {
  expect_multiply_report({fill_ones + " bar.sync 0; " + descriptors, multiply}, {"fence.proxy.async", "test.cu:106"});
  expect_multiply_report({descriptors, multiply}, {"which nobody in this block has written", "test.cu:106"});
  const auto with = [&](const std::string& change, const std::vector<std::string>& parts) {
    expect_multiply_report({ones, change, multiply}, parts);
  };
  with("and.b64 %d1, %d1, " + immediate(~(uint64_t{7} << 46)) + ";",
       {"bits 46 to 48 are 0b0, but those of sm_100 are 0b001", "of A", "test.cu:107"});
  with("or.b64 %d2, %d2, " + immediate(uint64_t{7} << 61) + ";", {"there is no swizzling mode 7", "of B"});
  with("mov.b64 %d1, " + immediate(plain_a.descriptor(65536 - 8192)) + ";",
       {"reaches 0x10000, outside of the block's 65536 bytes", "test.cu:107"});
  with("mov.u32 %r8, " + immediate(instruction_descriptor({.m = 128, .n = 24})) + ";",
       {"there is no shape M 128, N 24", "test.cu:107"});
  with("mov.u32 %r8, " + immediate(instruction_descriptor({.m = 192})) + ";", {"there is no shape M 192"});
  with("mov.u32 %r8, " + immediate(instruction_descriptor({.a = f16_format})) + ";", {"A is F16 and B is BF16"});
  with("or.b32 %r8, %r8, 4;", {"sparse A is not supported"});
  with("or.b32 %r8, %r8, 128; or.b32 %r8, %r8, 256;", {"the type 3 of A is none of this kind"});
  with("mov.u32 %r8, " + immediate(instruction_descriptor({.f16_result = true})) + ";",
       {"the type 0 of D does not go with BF16"});
  with("add.u32 %r5, %r5, 65536;", {"D of 128 rows at lane 1 of tensor memory"});
  with("add.u32 %r5, %r5, 480;", {"column 512 of tensor memory"});
  expect_multiply_report({ones, multiply_add},
                         {"a read of column 0, lane 0, of tensor memory, which nobody", "test.cu:106"});
}

/// Warp 1 waits for each of four phases, and nothing keeps warp 0 from completing two before it looks.
TEST(Mbarrier, AWarpThatComesTwoPhasesLate) {
  const std::vector<std::string> lines = {
      "setp.eq.s32 %p7, %t, 0; setp.ge.u32 %p1, %t, 32; mov.u32 %r10, 64000; @%p7 mbarrier.init.shared.b64 [%r10], 1; "
      "bar.sync 0;",
      "@%p7 mbarrier.arrive.shared.b64 _, [%r10];",
      "@%p7 mbarrier.arrive.shared.b64 _, [%r10];",
      "@%p7 mbarrier.arrive.shared.b64 _, [%r10];",
      "@%p7 mbarrier.arrive.shared.b64 _, [%r10];",
      "@!%p1 bra DONE;",
      wait_for(0, "W0"),
      wait_for(1, "W1"),
      wait_for(0, "W2"),
      wait_for(1, "W3"),
      "DONE: bar.sync 0; st.global.u32 [%mine], 7;"};
  KernelLaunch how = blackwell(64);
  int late = 0;
  for (how.seed = 0; how.seed < 20; ++how.seed) {
    how.checks = "phase=warn";
    const KernelRun run(lines, how);
    ASSERT_EQ(run.out[40], 7U);
    how.checks = "phase=error";
    try {
      KernelRun{lines, how};
    } catch (const Error& error) {
      ++late;
      EXPECT_NE(std::string(error.what()).find("a deadlock, unless the warp goes on: by its waits it is at phase "),
                std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("test.cu:10"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(late, 0);
  // A phase that never ends is a deadlock as ever.
  how.checks = "phase=warn";
  expect_report({lines[0], "@%p1 bra WAIT; bra DONE;", wait_for(0), "DONE: bar.sync 0;"}, how,
                {"deadlock: every warp waits", "phase 0 of the mbarrier"});
}

/// A box of 64 rows of 128 bytes, copied with one swizzling mode and read with another.
TEST(Tcgen05, ADescriptorThatDisagreesWithTheCopyIsReported) {
  TensorMap map = map_of(128, 2, 128);
  map.swizzle = 64;
  KernelLaunch how = with_map(blackwell(), map);
  how.in.assign(1 << 15, 0x3f803f80);
  const auto lines = [](uint32_t swizzle) {
    const Layout a{swizzle, 128, 2, false}, b{swizzle, 64, 2, false};
    return body(
        prologue(),
        {"mov.b64 %d3, map; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 8192;",
         "@%p7 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [0], [%d3, {0, 0}], "
         "[%r10];",
         wait_for(0) + "bar.sync 0; mov.u32 %r8, " + immediate(instruction_descriptor({})) + ";",
         "mov.b64 %d1, " + immediate(a.descriptor(0)) + "; mov.b64 %d2, " + immediate(b.descriptor(0)) + ";", multiply,
         commit, wait_for(1, "SECOND") + after, load, "st.global.u32 [%mine+131072], %r20;", dealloc()});
  };
  const KernelRun run(lines(64), how);
  EXPECT_EQ(std::bit_cast<float>(run.out[32768]), 16.f);
  expect_report(lines(32), how,
                {"of A says 32-byte swizzling, but cp.async.bulk.tensor.2d", "at test.cu:106", "with 64-byte swizzling",
                 "test.cu:109"});
  expect_report(lines(0), how, {"says no swizzling", "with 64-byte swizzling"});
}

// --- cp, shift, commit -------------------------------------------------------------------------------------------------------

struct Copy {
  const char* name;
  uint32_t rows, units;                                  ///< units of 16 bytes of a row
  std::function<std::vector<uint32_t>(uint32_t)> lanes;  ///< to which a row goes
};

TEST(Tcgen05, CopiesEveryShape) {
  const std::vector<Copy> copies = {{"128x256b", 128, 2, [](uint32_t r) { return std::vector<uint32_t>{r}; }},
                                    {"128x128b", 128, 1, [](uint32_t r) { return std::vector<uint32_t>{r}; }},
                                    {"4x256b", 4, 2, [](uint32_t r) { return std::vector<uint32_t>{32 * r}; }},
                                    {"64x128b.warpx2::02_13", 64, 1,
                                     [](uint32_t r) {
                                       return std::vector<uint32_t>{r, r + 64};
                                     }},
                                    {"64x128b.warpx2::01_23", 64, 1,
                                     [](uint32_t r) {
                                       return std::vector<uint32_t>{r / 32 * 64 + r % 32, r / 32 * 64 + 32 + r % 32};
                                     }},
                                    {"32x128b.warpx4", 32, 1, [](uint32_t r) {
                                       return std::vector<uint32_t>{r, r + 32, r + 64, r + 96};
                                     }}};
  const Layout layout{0, 128, 1, false};
  for (const Copy& copy : copies) {
    KernelLaunch how = blackwell();
    how.checks = "proxy=error,tcgen05=error,uninitialised=off";
    how.in.resize(1 << 14);
    for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
    std::vector<std::string> lines = body(prologue(), copy_in());
    lines = body(lines, {"mov.b64 %d1, " + immediate(layout.descriptor(0)) + ";",
                         std::string("@%p7 tcgen05.cp.cta_group::1.") + copy.name + " [%r5+8], %d1;", commit,
                         wait_for(0) + after});
    lines = body(lines, dump(16, 1 << 15));
    lines.push_back(dealloc());
    const KernelRun run(lines, how);
    EXPECT_EQ(run.counters.total.tensor_copy_bytes, copy.rows * copy.units * 16);
    std::vector<uint32_t> expected(16 * 128, 0x7fffdead);
    for (uint32_t r = 0; r < copy.rows; ++r)
      for (uint32_t w = 0; w < 4 * copy.units; ++w)
        for (const uint32_t lane : copy.lanes(r))
          expected[(8 + w) * 128 + lane] = layout.unit(r, w / 4 * 16) / 4 + w % 4;
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(run.out[(1 << 15) + i], expected[i]) << copy.name << " column " << i / 128 << " lane " << i % 128;
  }
}

/// Rows of 16 bytes are all that a narrow shape reads: here the last ones of shared memory.
TEST(Tcgen05, CopiesTheEndOfSharedMemory) {
  const Layout layout{0, 128, 1, false};
  std::vector<std::string> lines =
      body(prologue(), {"shl.b32 %r2, %t, 2; st.shared.u32 [%r2+65024], %t; fence.proxy.async.shared::cta; bar.sync 0;",
                        "mov.b64 %d1, " + immediate(layout.descriptor(65024)) + ";",
                        "@%p7 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r5], %d1;", commit, wait_for(0) + after});
  for (uint32_t c = 0; c < 4; ++c)
    lines.push_back("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r7+" + std::to_string(c) + "]; " + wait_load +
                    " st.global.u32 [%mine+" + std::to_string(4 * 128 * c) + "], %r20;");
  lines.push_back(dealloc());
  const KernelRun run(lines, blackwell());
  for (uint32_t c = 0; c < 4; ++c)
    for (uint32_t lane = 0; lane < 128; ++lane) ASSERT_EQ(run.out[128 * c + lane], lane % 32 * 4 + c);
}

TEST(Tcgen05, ShiftsLanesDown) {
  std::vector<std::string> lines = body(prologue(), copy_in());
  lines = body(lines, {"mov.b64 %d1, " + immediate(Layout{0, 128, 1, false}.descriptor(0)) + ";",
                       "@%p7 tcgen05.cp.cta_group::1.128x256b [%r5], %d1; @%p7 tcgen05.shift.cta_group::1.down [%r5];",
                       commit, wait_for(0) + after});
  lines = body(lines, dump(8, 1 << 15));
  lines.push_back(dealloc());
  KernelLaunch how = blackwell();
  how.in.resize(1 << 14);
  for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
  const KernelRun run(lines, how);
  for (uint32_t c = 0; c < 8; ++c)
    for (uint32_t lane = 0; lane < 128; ++lane) {
      const uint32_t from = lane % 32 == 31 ? lane : lane + 1;
      ASSERT_EQ(run.out[(1 << 15) + c * 128 + lane], c / 4 * 512 + from * 4 + c % 4);
    }
}

/// A commit that arrives in both blocks of a cluster.
TEST(Tcgen05, CommitsToSeveralBlocks) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    KernelLaunch how = blackwell();
    how.blocks = how.cluster = 2;
    how.seed = seed;
    const KernelRun run(
        body(prologue(),
             {ones, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
              "setp.eq.and.s32 %p4, %rank, 0, %p7; mov.u16 %h1, 3; @%p4 tcgen05.mma.cta_group::1.kind::f16 [%r5], %d1, "
              "%d2, %r8, 0;",
              "@%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r10], "
              "%h1;",
              wait_for(0) + after, "st.global.u32 [%mine], 7;",
              "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", dealloc()}),
        how);
    for (uint32_t t = 0; t < 256; ++t) ASSERT_EQ(run.out[t], 7U);
  }
}

// --- pairs of blocks ---------------------------------------------------------------------------------------------------------

const std::string cluster_barrier = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
std::string of_pair(std::string line) {
  for (size_t at; (at = line.find("cta_group::1")) != std::string::npos;) line.replace(at, 12, "cta_group::2");
  return line;
}
KernelLaunch pair() {
  KernelLaunch how = blackwell();
  how.blocks = how.cluster = 2;
  return how;
}
/// The prologue in both blocks. Thread 0 of the even one (%p4) multiplies, and its commit arrives in both.
std::vector<std::string> pair_prologue() {
  std::vector<std::string> lines = prologue();
  for (std::string& line : lines) line = of_pair(line);
  lines.push_back("setp.eq.and.s32 %p4, %rank, 0, %p7; mov.u16 %h1, 3; " + cluster_barrier);
  return lines;
}
const std::string pair_commit =
    "@%p4 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r10], %h1;";
const std::string pair_dealloc = cluster_barrier + of_pair(dealloc());

/// Each block has half of A's rows and half of B's columns.
void expect_pair_product(const Multiply& what) {
  std::mt19937_64 random(what.seed);
  const uint32_t k_size = what.a.k, rows = what.m / 2, columns = what.n / 2;
  std::vector<int> a(what.m * k_size), b(what.n * k_size);
  for (auto* matrix : {&a, &b})
    for (int& x : *matrix) x = int(random() % 7) - 3;
  constexpr uint32_t block_words = 15360;
  KernelLaunch how = pair();
  how.seed = what.seed;
  how.in.resize(2 * block_words);
  const Layout a_layout{what.swizzle, rows, 2, what.transpose_a}, b_layout{what.swizzle, columns, 2, what.transpose_b};
  const auto put = [&](uint32_t block, uint32_t base, const Layout& layout, uint32_t i, uint32_t k, int value) {
    const uint32_t unit = layout.transposed ? layout.unit(i / 8 * 8, k) : layout.unit(i, k / 8 * 8);
    auto* const bytes = reinterpret_cast<uint8_t*>(&how.in[block * block_words]) + base + unit;
    const uint16_t bits = bf16::from(value).bits;
    std::memcpy(bytes + 2 * ((layout.transposed ? i : k) % 8), &bits, 2);
  };
  for (uint32_t k = 0; k < k_size; ++k) {
    for (uint32_t m = 0; m < what.m; ++m) put(m / rows, a_base, a_layout, m % rows, k, a[m * k_size + k]);
    for (uint32_t n = 0; n < what.n; ++n) put(n / columns, b_base, b_layout, n % columns, k, b[n * k_size + k]);
  }
  std::vector<std::string> lines =
      body(pair_prologue(),
           {"mov.u32 %r9, %rank; mul.lo.s32 %r9, %r9, 61440; cvt.u64.u32 %d6, %r9; add.u64 %out, %out, %d6;"});
  lines = body(lines, copy_in());
  lines.push_back(cluster_barrier + "mov.b64 %d1, " + immediate(a_layout.descriptor(a_base)) + "; mov.b64 %d2, " +
                  immediate(b_layout.descriptor(b_base)) + "; mov.u32 %r8, " + immediate(instruction_descriptor(what)) +
                  ";");
  std::string mask;
  if (what.disabled[0]) {
    mask = "{%r20, %r20, %r21, %r21, %r21, %r21, %r21, %r20}, ";
    lines.push_back("mov.u32 %r20, " + std::to_string(what.disabled[0]) + "; mov.u32 %r21, 0;");
  }
  const std::string multiply = "@%p4 tcgen05.mma.cta_group::2.kind::f16 [%r5], %d1, %d2, %r8, ";
  lines.push_back(multiply + "0; " + multiply + mask + "1; " + pair_commit);
  lines.push_back(wait_for(0) + after);
  const uint32_t d_columns = what.m == 128 ? columns : what.n;
  for (uint32_t c = 0; c < d_columns; c += 8) {
    std::string line =
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + registers(8) + ", [%r7+" + std::to_string(c) + "]; " + wait_load;
    for (uint32_t i = 0; i < 8; ++i)
      line += " st.global.u32 [%mine+" + std::to_string(4 * ((1 << 15) + (c + i) * 256)) + "], %r" +
              std::to_string(20 + i) + ";";
    lines.push_back(line);
  }
  lines.push_back(pair_dealloc);
  const KernelRun run(lines, how);
  for (uint32_t block = 0; block < 2; ++block)
    for (uint32_t lane = 0; lane < 128; ++lane)
      for (uint32_t c = 0; c < d_columns; ++c) {
        const uint32_t m = block * rows + lane % rows, n = c + lane / rows * columns;
        int sum = 0;
        for (uint32_t k = 0; k < k_size; ++k) sum += a[m * k_size + k] * b[n * k_size + k];
        const uint32_t word = 4 * block + lane / 32;  // of the mask
        const bool disabled = (word < 2 || word == 7) && (what.disabled[0] >> lane % 32 & 1);
        ASSERT_EQ(std::bit_cast<float>(run.out[(1 << 15) + c * 256 + block * 128 + lane]),
                  float(disabled ? sum : 2 * sum))
            << "D[" << m << "][" << n << "] of " << what.m << "x" << what.n;
      }
  EXPECT_EQ(run.counters.total.flops[3], uint64_t{4} * what.m * what.n * k_size);
  EXPECT_EQ(run.counters.total.mma_shared_bytes, 2 * 32 * (what.m + what.n)) << "of both blocks, twice";
}

TEST(Tcgen05, MultipliesInPairsOfBlocks) {
  for (const uint32_t m : {128U, 256U}) {
    for (const uint32_t n : {16U, 96U, 256U}) expect_pair_product({.m = m, .n = n, .swizzle = n == 256 ? 64U : 128U});
    expect_pair_product({.m = m, .n = 128, .swizzle = 0});
    expect_pair_product({.m = m, .n = 128, .transpose_a = true, .transpose_b = true});
    expect_pair_product({.m = m, .n = 64, .disabled = {0xf00f0001}});
  }
}

TEST(Tcgen05, MisuseInPairsIsReported) {
  const std::string operands = "mov.b64 %d1, " + immediate(plain_a.descriptor(a_base)) + "; mov.b64 %d2, " +
                               immediate(plain_b.descriptor(b_base)) + "; mov.u32 %r8, " +
                               immediate(instruction_descriptor({.m = 256})) + ";";
  const std::string data = fill_ones + " fence.proxy.async.shared::cta; bar.sync 0;" + operands;
  const std::string product = "@%p4 tcgen05.mma.cta_group::2.kind::f16 [%r5], %d1, %d2, %r8, 0;";
  const auto lines = [&](const std::vector<std::string>& more) {
    return body(pair_prologue(), body(more, {pair_dealloc}));
  };
  const KernelRun run(
      lines({data + cluster_barrier, product, pair_commit, wait_for(0) + after, load, "st.global.u32 [%mine], %r20;"}),
      pair());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(std::bit_cast<float>(run.out[t]), 16.f);
  // The other block's operands are read, too, and its tensor memory is written.
  expect_report(lines({data, product, pair_commit, wait_for(0)}), pair(), {"test.cu:107"});
  expect_report(lines({data + cluster_barrier, product, pair_commit,
                       "setp.eq.and.s32 %p3, %rank, 1, %p7; @%p3 st.shared.u32 [0], %t;", wait_for(0)}),
                pair(), {"shared memory at 0x0", "test.cu:107", "test.cu:109"});
  expect_report(lines({data + cluster_barrier, product, pair_commit, wait_for(0), load}), pair(),
                {"tcgen05.fence::after_thread_sync", "test.cu:107", "test.cu:110"});
  // Both blocks allocate.
  KernelLaunch alone = pair();
  expect_report({"setp.lt.u32 %p1, %t, 32; setp.eq.and.s32 %p1, %rank, 0, %p1; @%p1 "
                 "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [64008], 32;"},
                alone, {"deadlock", "waits for tcgen05.alloc in the other block of its pair", "test.cu:101"});
  alone.blocks = alone.cluster = 1;
  expect_report({"tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [64008], 32;"}, alone,
                {"a cluster of 1 blocks has none in pairs", "test.cu:101"});
  expect_report(body(pair_prologue(), {dealloc()}), pair(),
                {".cta_group::1 and with .cta_group::2 in one kernel", "test.cu:106"}, Fault::unsupported, 1);
}

/// Both blocks' tensor copies complete on the even one's mbarrier, whose address is their own without bit 24.
TEST(Tcgen05, CopiesCompleteInTheOtherBlockOfAPair) {
  KernelLaunch how = with_map(pair(), map_of(16, 4, 8));
  how.in.resize(1 << 15);
  for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
  const auto lines = [](const std::string& group) {
    return std::vector<std::string>{
        "setp.eq.s32 %p7, %t, 0; mov.u32 %r11, tile; add.u32 %r10, %r11, 64000; @%p7 mbarrier.init.shared.b64 [%r10], "
        "2; "
        "@%p7 fence.mbarrier_init.release.cluster; tcgen05.fence::before_thread_sync;",
        cluster_barrier + "and.b32 %r12, %r10, 0xfeffffff; mov.b64 %d3, map; shl.b32 %r13, %rank, 3;",
        "@%p7 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r12], 1024;",
        "@%p7 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" + group +
            " [%r11], [%d3, {0, %r13}], [%r12];",
        "setp.eq.s32 %p3, %rank, 1; @%p3 bra DONE; " + wait_for(0) + " DONE: " + cluster_barrier,
        "mad.lo.s32 %r14, %t, 8, %r11; ld.shared.v2.u32 {%r15, %r16}, [%r14]; st.global.u32 [%mine+65536], %r15; "
        "st.global.u32 [%mine+131072], %r16;",
        "setp.lt.u32 %p1, %t, 32; @%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [64008], 32; bar.sync "
        "0; ld.shared.u32 %r5, [64008]; " +
            of_pair(dealloc(32))};
  };
  for (how.seed = 0; how.seed < 10; ++how.seed) {
    const KernelRun run(lines(".cta_group::2"), how);
    for (uint32_t t = 0; t < 256; ++t) {
      ASSERT_EQ(run.out[16384 + t], 2 * t) << how.seed;
      ASSERT_EQ(run.out[32768 + t], 2 * t + 1);
    }
  }
  expect_report(lines(""), how,
                {"the mbarrier is in another block than the destination, which needs .cta_group::2", "test.cu:104"});
}

/// 128-byte swizzling of 32-byte atoms (PTX ISA 5.5.6): within a row's 128 bytes the 32-byte atoms change place, by the row modulo 4.
TEST(BulkCopy, SwizzlesAtomsOf32Bytes) {
  TensorMap map = map_of(8, 4, 8);
  map.swizzle = 128;
  map.swizzles_pairs = true;
  KernelLaunch how = with_map(blackwell(), map);
  how.in.resize(1 << 15);
  for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
  const KernelRun run({"setp.eq.s32 %p7, %t, 0; mov.u32 %r10, 64000; @%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 "
                       "fence.mbarrier_init.release.cluster; bar.sync 0;",
                       "mov.b64 %d3, map; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 1024;",
                       "@%p7 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::1 "
                       "[0], [%d3, {0, 0}], [%r10];",
                       wait_for(0) + "shl.b32 %r2, %t, 2; ld.shared.u32 %r3, [%r2]; ld.shared.u32 %r4, [%r2+512]; "
                                     "st.global.u32 [%mine+65536], %r3; "
                                     "st.global.u32 [%mine+66048], %r4;"},
                      how);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t atom = 0; atom < 4; ++atom)
      for (uint32_t word = 0; word < 8; ++word)
        ASSERT_EQ(run.out[16384 + 32 * row + 8 * (atom ^ row % 4) + word], 32 * row + 8 * atom + word) << row;
}

/// Elements of 4 and 6 bits (the driver's 16U4_ALIGN16B and 16U6_ALIGN16B): each 16 of them begin 16 bytes. The mbarrier counts the tensor's bytes.
TEST(BulkCopy, PadsSmallElements) {
  for (const uint32_t bits : {4U, 6U}) {
    TensorMap map = map_of(8, 1, 8);
    map.padded_bits = uint8_t(bits);
    map.size = {256, 8};
    map.stride = {256 / 8 * bits};
    map.box = {128, 8};
    map.swizzle = 128;
    KernelLaunch how = with_map(blackwell(), map);
    how.in.resize(1 << 15);
    for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
    const auto lines = [&](uint32_t bytes) {
      return std::vector<std::string>{
          "setp.eq.s32 %p7, %t, 0; mov.u32 %r10, 64000; @%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 "
          "fence.mbarrier_init.release.cluster; bar.sync 0;",
          "mov.b64 %d3, map; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], " + std::to_string(bytes) + ";",
          "@%p7 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [0], [%d3, {128, 0}], "
          "[%r10];",
          wait_for(0) +
              "shl.b32 %r2, %t, 2; ld.shared.u32 %r3, [%r2]; ld.shared.u32 %r4, [%r2+512]; "
              "st.global.u32 [%mine+65536], %r3; st.global.u32 [%mine+66048], %r4;"};
    };
    const KernelRun run(lines(1024 / 8 * bits), how);
    const uint32_t words = bits / 2;  // of each 16 bytes
    for (uint32_t row = 0; row < 8; ++row)
      for (uint32_t unit = 0; unit < 8; ++unit)
        for (uint32_t word = 0; word < words; ++word)
          ASSERT_EQ(run.out[16384 + 32 * row + 4 * (unit ^ row) + word],
                    row * 8 * bits + 4 * bits + unit * words + word)
              << bits << " bits, row " << row;
    expect_report(lines(1024), how, {"deadlock", "bytes missing"});
  }
}

/// Pairs of 4 bits without gaps (16U4_ALIGN8B): coordinates count elements.
TEST(BulkCopy, CopiesPackedPairs) {
  TensorMap map = map_of(8, 1, 8);
  map.in_pairs = true;
  map.size = {128, 8};
  map.stride = {128};
  map.box = {64, 8};
  KernelLaunch how = with_map(blackwell(), map);
  how.in.resize(1 << 15);
  for (uint32_t i = 0; i < how.in.size(); ++i) how.in[i] = i;
  const auto lines = [](const std::string& x) {
    return std::vector<std::string>{
        "setp.eq.s32 %p7, %t, 0; mov.u32 %r10, 64000; @%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 "
        "fence.mbarrier_init.release.cluster; bar.sync 0;",
        "mov.b64 %d3, map; @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 512;",
        "@%p7 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [0], [%d3, {" + x +
            ", 0}], [%r10];",
        wait_for(0) + "shl.b32 %r2, %t, 2; ld.shared.u32 %r3, [%r2]; st.global.u32 [%mine+65536], %r3;"};
  };
  const KernelRun run(lines("32"), how);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t word = 0; word < 16; ++word) ASSERT_EQ(run.out[16384 + 16 * row + word], 32 * row + 4 + word);
  expect_report(lines("33"), how, {"a box that begins at element 33 of its row: of 4 bits, between two bytes"});
  expect_report(lines("16"), how, {"only multiples of 16 bytes can be"});
}

// --- clusterlaunchcontrol ----------------------------------------------------------------------------------------------------

/// Each block does its own tile, and those of the clusters whose launch it cancels. The blocks of a cluster take the same result.
std::vector<std::string> cancelling(const std::string& multicast, const std::string& query) {
  const std::string one = "setp.eq.and.s32 %p4, %rank, 0, %p7;";
  return {
      "setp.eq.s32 %p7, %t, 0; mov.u32 %r10, 64000; @%p7 mbarrier.init.shared.b64 [%r10], 1; @%p7 "
      "fence.mbarrier_init.release.cluster;" +
          one,
      cluster_barrier + "mov.u32 %r20, %ctaid.x; mov.u32 %r22, 0; @%p7 atom.global.add.u32 %r21, [%out+400], 1;",
      "LOOP: @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16; " + cluster_barrier,
      "@%p4 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes" + multicast +
          ".b128 [64016], [%r10];",
      "mul.wide.u32 %d5, %r20, 4; add.u64 %d5, %d5, %out; @%p7 atom.global.add.u32 %r21, [%d5], 1;",
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r10], %r22; @!%p6 bra WAIT; xor.b32 %r22, %r22, 1;",
      "ld.shared.b128 %q, [64016]; mov.b128 {%d6, %d7}, %q; mov.b128 %q, {%d6, %d7};",
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %q; fence.proxy.async.shared::cta; " +
          cluster_barrier + " @!%p5 bra DONE;",
      "clusterlaunchcontrol.query_cancel." + query + ".b128 " +
          (query == "get_first_ctaid.v4.b32" ? "{%r20, _, _, _}" : "%r20") + ", %q;",
      "add.u32 %r20, %r20, %rank; bra LOOP;",
      "DONE:"};
}

TEST(LaunchControl, EachTileIsDoneOnce) {
  for (const uint32_t cluster : {1U, 2U}) {
    uint32_t fewest = 100, most = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      KernelLaunch how = blackwell(64);
      how.blocks = 24;
      how.cluster = cluster;
      how.seed = seed;
      how.setup = " .reg .b128 %q;";
      const auto lines = cancelling(cluster == 2 ? ".multicast::cluster::all" : "",
                                    seed % 2 ? "get_first_ctaid.v4.b32" : "get_first_ctaid::x.b32");
      const KernelRun run(lines, how), again(lines, how);
      for (uint32_t tile = 0; tile < 24; ++tile) ASSERT_EQ(run.out[tile], 1U) << tile << ", seed " << seed;
      ASSERT_EQ(run.out[100], again.out[100]);
      fewest = std::min(fewest, run.out[100]);
      most = std::max(most, run.out[100]);
    }
    EXPECT_LT(fewest, 24U);
    EXPECT_GT(most, fewest);
  }
}

TEST(LaunchControl, MisuseIsReported) {
  KernelLaunch how = blackwell(64);
  how.blocks = 8;
  how.setup = " .reg .b128 %q;";
  std::vector<std::string> lines = cancelling("", "get_first_ctaid::x.b32");
  std::vector<std::string> faulty = lines;
  faulty[7] = "fence.proxy.async.shared::cta; " + cluster_barrier;  // it does not ask whether a cluster was cancelled
  expect_report(faulty, how, {"no cluster was cancelled: it has no first block", "test.cu:109"});
  faulty = lines;
  faulty[5] = "";
  faulty[6] = "";
  faulty[7] = "bra DONE;";
  expect_report(faulty, how,
                {"the block ends while this bulk copy into its shared memory is under way", "test.cu:104"});
  faulty = lines;
  faulty[5] = "bar.sync 0;";
  expect_report(faulty, how,
                {"of shared memory at 0xfa10 while the asynchronous copy into it", "test.cu:104", "test.cu:107"});
  faulty = lines;
  faulty[6] = "mov.b64 %d6, -1; mov.b128 %q, {%d6, %d6};";
  expect_report(faulty, how, {"no result of clusterlaunchcontrol.try_cancel", "test.cu:108"});
}

// --- scale factors -----------------------------------------------------------------------------------------------------------

const Format packed_format = {"mxf4", 1, 4, 4, 64, [](uint32_t b) { return small(b, 2, 1, 1); }};

struct Scaled {
  std::string kind = "mxf8f6f4", vector = ".scale_vec::1X";
  Format a = e4m3_format, b = e4m3_format;
  uint32_t factors = 1;  ///< of a row of A
  bool ue4m3 = false;
  uint32_t n = 64, a_id = 0, b_id = 0;
  uint32_t swizzle = 128;
  bool negate_a = false, negate_b = false, a_in_tensor_memory = false;
  uint32_t add_to_descriptor = 0;          ///< these bits change
  std::string a_at = "480", b_at = "488";  ///< columns of the scale factors
  std::string spoil = "", before_mma = "";
};
Scaled mxf4(uint32_t a_id, uint32_t b_id) {
  return {.kind = "mxf4",
          .vector = ".scale_vec::2X",
          .a = packed_format,
          .b = packed_format,
          .factors = 2,
          .a_id = a_id,
          .b_id = b_id};
}
Scaled nvfp4(bool ue4m3) {
  return {.kind = "mxf4nvf4",
          .vector = ".scale_vec::4X",
          .a = packed_format,
          .b = packed_format,
          .factors = 4,
          .ue4m3 = ue4m3};
}

/// The scale factors come to columns 480 (A) and 488 (B) in all four quarters, from byte `a_id` and `b_id` of each column on; what the other bytes
/// hold does not matter.
void expect_scaled_product(const Scaled& what) {
  std::mt19937_64 random(7);
  const uint32_t m = 128, k_size = what.a.k, n = what.n;
  const auto fill = [&](const Format& format, uint32_t extent) {
    std::vector<uint32_t> bits(extent * k_size);
    for (uint32_t& b : bits) b = uint32_t(random() & ((1U << format.bits) - 1)) & (format.bits == 8 ? 0xbf : 0xff);
    return bits;
  };
  const std::vector<uint32_t> a = fill(what.a, m), b = fill(what.b, n);
  KernelLaunch how = blackwell();
  how.in.resize(1 << 15);
  auto* const bytes = reinterpret_cast<uint8_t*>(how.in.data());
  const Layout a_layout{what.swizzle, m, 1, false}, b_layout{what.swizzle, n, 1, false};
  const auto put_bits = [](uint8_t* unit, const Format& format, uint32_t index, uint32_t bits) {
    for (uint32_t bit = 0; bit < format.bits; ++bit)
      if (bits >> bit & 1) unit[(index * format.bits + bit) / 8] |= uint8_t(1U << (index * format.bits + bit) % 8);
  };
  const auto put = [&](const Layout& layout, const Format& format, uint32_t base, const std::vector<uint32_t>& bits,
                       uint32_t extent) {
    const uint32_t per = 128 / format.container;
    for (uint32_t i = 0; i < extent; ++i)
      for (uint32_t k = 0; k < k_size; ++k)
        put_bits(bytes + base + layout.unit(i, k / per * 16), format, k % per, bits[i * k_size + k]);
  };
  if (!what.a_in_tensor_memory) put(a_layout, what.a, a_base, a, m);
  put(b_layout, what.b, b_base, b, n);
  const auto factors_of = [&](uint32_t extent) {
    std::vector<uint32_t> factors(extent * what.factors);
    for (uint32_t& e : factors) e = what.ue4m3 ? random() % 127 : 120 + random() % 16;
    return factors;
  };
  const std::vector<uint32_t> a_scale = factors_of(m), b_scale = factors_of(256);
  for (uint32_t c = 0; c < 16; ++c)  // words 16384 on: 16 columns of 128 lanes
    for (uint32_t lane = 0; lane < 128; ++lane) {
      const uint32_t byte = c < 8 ? what.a_id : what.b_id, i = 32 * (c % 8) + lane % 32;
      auto word = uint32_t(random());
      for (uint32_t f = 0; f < what.factors; ++f) {
        const uint32_t e = c >= 8 ? b_scale[i * what.factors + f] : i < m ? a_scale[i * what.factors + f] : 255;
        word = (word & ~(0xffU << 8 * (byte + f))) | e << 8 * (byte + f);
      }
      how.in[16384 + c * 128 + lane] = word;
    }
  std::vector<std::string> lines = body(prologue(), copy_in());
  const auto store_columns = [&](uint32_t word, uint32_t column) {
    std::string line;
    for (uint32_t i = 0; i < 8; ++i)
      line += "ld.global.u32 %r" + std::to_string(20 + i) + ", [%mine+" + std::to_string(4 * (word + i * 128)) + "]; ";
    lines.push_back(line + "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7+" + std::to_string(column) + "], " +
                    registers(8) + ";");
  };
  store_columns(16384, 480);
  store_columns(16384 + 8 * 128, 488);
  if (what.a_in_tensor_memory) {  // a row's 32 bytes at columns 464 on
    for (uint32_t row = 0; row < m; ++row) {
      uint8_t unit[32] = {};
      for (uint32_t k = 0; k < k_size; ++k) put_bits(unit, what.a, k, a[row * k_size + k]);
      for (uint32_t w = 0; w < 8; ++w) std::memcpy(&how.in[20480 + w * 128 + row], unit + 4 * w, 4);
    }
    store_columns(20480, 464);
  }
  lines.push_back(wait_store + before + " bar.sync 0; " + after + what.spoil);
  const uint32_t shape = what.a.code << 7 | what.b.code << 10 | what.b_id << 4 | what.negate_a << 13 |
                         what.negate_b << 14 | n / 8 << 17 | uint32_t(!what.ue4m3) << 23 | m / 16 << 24 |
                         what.a_id << 29;
  lines.push_back("mov.b64 %d1, " + immediate(a_layout.descriptor(a_base)) + "; mov.b64 %d2, " +
                  immediate(b_layout.descriptor(b_base)) + "; mov.u32 %r8, " +
                  std::to_string(int32_t(shape ^ what.add_to_descriptor)) + "; " + what.before_mma);
  lines.push_back("@%p7 tcgen05.mma.cta_group::1.kind::" + what.kind + ".block_scale" + what.vector + " [%r5], " +
                  (what.a_in_tensor_memory ? "[%r5+464]" : "%d1") + ", %d2, %r8, [%r5+" + what.a_at + "], [%r5+" +
                  what.b_at + "], 0;");
  lines.push_back(commit + wait_for(0) + " " + after);
  lines = body(lines, dump(n, 1 << 15));
  lines.push_back(dealloc());
  const KernelRun run(lines, how);
  const auto factor = [&](uint32_t bits) { return what.ue4m3 ? small(bits, 4, 3, 7) : std::pow(2.0, int(bits) - 127); };
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (uint32_t k = 0; k < k_size; ++k) {
        const uint32_t f = k * what.factors / k_size;
        sum += what.a.value(a[i * k_size + k]) * what.b.value(b[j * k_size + k]) *
               factor(a_scale[i * what.factors + f]) * factor(b_scale[j * what.factors + f]);
      }
      if (what.negate_a != what.negate_b) sum = -sum;
      ASSERT_EQ(std::bit_cast<float>(run.out[(1 << 15) + j * 128 + i]), float(sum))
          << i << ", " << j << " of " << what.kind << what.vector << " " << what.a_id << what.b_id;
    }
  EXPECT_EQ(run.counters.total.flops[3], uint64_t{2} * m * n * k_size);
  EXPECT_EQ(products_of(run.counters.total, what.kind), 1U);
  EXPECT_EQ(run.counters.total.mma_shared_bytes, 32 * (n + (what.a_in_tensor_memory ? 0 : m)));
  EXPECT_EQ(run.counters.total.tensor_store_bytes, (what.a_in_tensor_memory ? 24 : 16) * 128 * 4);
}

void expect_scaled_report(const Scaled& what, const std::vector<std::string>& parts) {
  try {
    expect_scaled_product(what);
    FAIL() << "no report: " << parts.front();
  } catch (const Error& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in\n" << error.what();
  }
}

TEST(Tcgen05, ScalesRowsAndColumns) {
  for (uint32_t id = 0; id < 4; ++id) expect_scaled_product({.a_id = id, .b_id = 3 - id});
  expect_scaled_product({.a = e5m2_format, .n = 96, .a_id = 3, .b_id = 1});
  expect_scaled_product({.a = e2m1_format, .b = e3m2_format, .n = 208, .a_id = 1, .b_id = 2});
  expect_scaled_product({.vector = ""});
  expect_scaled_product({.vector = ".block32", .n = 8});
}

TEST(Tcgen05, ScalesPackedFp4) {
  for (const uint32_t a_id : {0U, 2U})
    for (const uint32_t b_id : {0U, 2U}) expect_scaled_product(mxf4(a_id, b_id));
  for (const bool ue4m3 : {false, true})
    for (const uint32_t n : {8U, 40U, 128U, 192U, 256U}) {
      Scaled what = nvfp4(ue4m3);
      what.n = n;
      what.swizzle = n == 256 ? 32 : n == 40 ? 0 : n == 192 ? 64 : 128;
      what.vector = n == 128 ? ".block16" : what.vector;
      expect_scaled_product(what);
    }
  for (const char* const vector : {".scale_vec::2X", ".block32"}) {
    Scaled what = mxf4(2, 0);
    what.kind = "mxf4nvf4";
    what.vector = vector;
    expect_scaled_product(what);
  }
  for (const char* const vector : {"", ".block32"}) {
    Scaled what = mxf4(0, 2);
    what.vector = vector;
    expect_scaled_product(what);
  }
  Scaled what = nvfp4(true);
  what.a_in_tensor_memory = true;
  expect_scaled_product(what);
  what.negate_a = true;
  expect_scaled_product(what);
  what.negate_b = true;
  expect_scaled_product(what);
  what.a_in_tensor_memory = what.negate_a = false;
  expect_scaled_product(what);
}

/// Each block has its half of A's rows with their scale factors, half of B's columns, and the scale factors of all of B's columns.
TEST(Tcgen05, ScalesInPairsOfBlocks) {
  constexpr uint32_t m_size = 256, k_size = 64, rows = 128, factors = 4, block_words = 15360, scale_words = 32768,
                     d_words = 1 << 16;
  for (const uint32_t n_size : {32U, 128U, 256U}) {
    const uint32_t columns = n_size / 2;
    std::mt19937_64 random(n_size);
    const auto fill = [&](uint32_t count, uint32_t below) {
      std::vector<uint32_t> values(count);
      for (uint32_t& v : values) v = uint32_t(random() % below);
      return values;
    };
    const std::vector<uint32_t> a = fill(m_size * k_size, 16), b = fill(n_size * k_size, 16),
                                a_scale = fill(m_size * factors, 127), b_scale = fill(256 * factors, 127);
    KernelLaunch how = pair();
    how.in.resize(scale_words + 16 * 256);
    const Layout a_layout{128, rows, 1, false}, b_layout{128, columns, 1, false};
    const auto put = [&](uint32_t block, uint32_t base, const Layout& layout, uint32_t i, uint32_t k, uint32_t bits) {
      auto* const bytes = reinterpret_cast<uint8_t*>(&how.in[block * block_words]) + base;
      bytes[layout.unit(i, k / 32 * 16) + k % 32 / 2] |= uint8_t(bits << k % 2 * 4);
    };
    for (uint32_t k = 0; k < k_size; ++k) {
      for (uint32_t m = 0; m < m_size; ++m) put(m / rows, a_base, a_layout, m % rows, k, a[m * k_size + k]);
      for (uint32_t n = 0; n < n_size; ++n) put(n / columns, b_base, b_layout, n % columns, k, b[n * k_size + k]);
    }
    for (uint32_t c = 0; c < 16; ++c)
      for (uint32_t block = 0; block < 2; ++block)
        for (uint32_t lane = 0; lane < 128; ++lane) {
          const uint32_t i = 32 * (c % 8) + lane % 32;
          const uint32_t* const four = c >= 8 ? &b_scale[i * factors] : &a_scale[(block * rows + i % rows) * factors];
          for (uint32_t f = 0; f < factors; ++f) how.in[scale_words + c * 256 + block * 128 + lane] |= four[f] << 8 * f;
        }
    std::vector<std::string> lines =
        body(pair_prologue(),
             {"mov.u32 %r9, %rank; mul.lo.s32 %r9, %r9, 61440; cvt.u64.u32 %d6, %r9; add.u64 %out, %out, %d6;"});
    lines = body(lines, copy_in());
    for (uint32_t c = 0; c < 16; c += 8) {
      std::string line;
      for (uint32_t i = 0; i < 8; ++i)
        line += "ld.global.u32 %r" + std::to_string(20 + i) + ", [%mine+" +
                std::to_string(4 * (scale_words + (c + i) * 256)) + "]; ";
      lines.push_back(line + "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7+" + std::to_string(480 + c) + "], " +
                      registers(8) + ";");
    }
    lines.push_back(wait_store + before + cluster_barrier + after + "mov.b64 %d1, " +
                    immediate(a_layout.descriptor(a_base)) + "; mov.b64 %d2, " +
                    immediate(b_layout.descriptor(b_base)) + "; mov.u32 %r8, " +
                    std::to_string(1 << 7 | 1 << 10 | n_size / 8 << 17 | m_size / 128 << 27) + ";");
    lines.push_back(
        "@%p4 tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [%r5], %d1, %d2, %r8, [%r5+480], "
        "[%r5+488], 0; " +
        pair_commit);
    lines.push_back(wait_for(0) + after);
    for (uint32_t c = 0; c < n_size; c += 8) {
      std::string line =
          "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + registers(8) + ", [%r7+" + std::to_string(c) + "]; " + wait_load;
      for (uint32_t i = 0; i < 8; ++i)
        line += " st.global.u32 [%mine+" + std::to_string(4 * (d_words + (c + i) * 256)) + "], %r" +
                std::to_string(20 + i) + ";";
      lines.push_back(line);
    }
    lines.push_back(pair_dealloc);
    how.words = d_words + 256 * 256;
    const KernelRun run(lines, how);
    const auto scale = [](uint32_t bits) { return small(bits, 4, 3, 7); };
    for (uint32_t m = 0; m < m_size; ++m)
      for (uint32_t n = 0; n < n_size; ++n) {
        double sum = 0;
        for (uint32_t k = 0; k < k_size; ++k)
          sum += small(a[m * k_size + k], 2, 1, 1) * small(b[n * k_size + k], 2, 1, 1) *
                 scale(a_scale[m * factors + k / 16]) * scale(b_scale[n * factors + k / 16]);
        ASSERT_EQ(std::bit_cast<float>(run.out[d_words + n * 256 + m]), float(sum)) << m << ", " << n;
      }
  }
}

TEST(Tcgen05, MisuseOfScaleFactorsIsReported) {
  const auto expect = [](Scaled what, const std::function<void(Scaled&)>& change,
                         const std::vector<std::string>& parts) {
    change(what);
    expect_scaled_report(what, parts);
  };
  const auto descriptor = [&](const Scaled& what, uint32_t bits, const std::vector<std::string>& parts) {
    expect(
        what, [&](Scaled& s) { s.add_to_descriptor = bits; }, parts);
  };
  descriptor(nvfp4(true), 2U << 29, {"the scale factor ID 2 of A: with .scale_vec::4X it is 0", "tcgen05.mma"});
  descriptor(nvfp4(true), 1U << 4, {"the scale factor ID 1 of B: with .scale_vec::4X it is 0"});
  descriptor(mxf4(0, 0), 1U << 29, {"the scale factor ID 1 of A: with .scale_vec::2X it is 0 or 2"});
  descriptor(mxf4(0, 0), 1U << 23, {"scale factors of mxf4 are UE8M0 (bit 23)"});
  descriptor({}, 1U << 23, {"scale factors of mxf8f6f4 are UE8M0 (bit 23)"});
  expect(mxf4(0, 0), [](Scaled& s) { s.kind = "mxf4nvf4", s.add_to_descriptor = 1U << 23; },
         {"scale factors of mxf4nvf4 with .scale_vec::2X are UE8M0"});
  descriptor(nvfp4(true), 1U << 31, {"K 96 is not supported: sm_103a has it"});
  descriptor({}, 1U << 31, {"a reserved bit is set"});
  descriptor(nvfp4(true), 1U << 12, {"a reserved bit is set"});
  descriptor(nvfp4(true), 1U << 24, {"a reserved bit is set"});
  descriptor(nvfp4(true), 1U << 7, {"the type 0 of A is none of this kind"});
  descriptor(nvfp4(true), 1U << 15, {"E2M1 with M or N contiguous"});
  descriptor(nvfp4(true), 3U << 27, {"M is 256: with scale factors only 128 is supported"});
  // Where they lie.
  expect(nvfp4(true), [](Scaled& s) { s.b_at = "511"; }, {"column 512 of tensor memory: there are 512"});
  expect(nvfp4(true), [](Scaled& s) { s.a_at = "2097632"; }, {"scale factors of A at lane 32 of tensor memory"});
  expect(nvfp4(true), [](Scaled& s) { s.b_at = "440"; },
         {"a read of column 440, lane 0, of tensor memory, which nobody"});
  expect(nvfp4(true), [](Scaled& s) { s.a_at = "-1073741344"; },
         {"of scale factors of A: bits 30 and 31 are of no lane"});
  // Not yet written, or written by a warp that nothing orders.
  expect(nvfp4(true), [](Scaled& s) { s.before_mma = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7+483], {%t};"; },
         {"a read of column 483", "still writes", "tcgen05.wait::st"});
  expect(nvfp4(true),
         [](Scaled& s) { s.spoil = " tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7+483], {%t}; " + wait_store; },
         {"column 483 of tensor memory"});
}

/// Only the quarter that a row or a column of D lies in is looked at, so all four must have the scale factors; and the eighth bit of UE4M3.
TEST(Tcgen05, ScaleFactorsThatDifferByQuarter) {
  const auto product = [](uint32_t first, uint32_t second) {
    const Layout a{0, 128, 1, false}, b{0, 8, 1, false};
    const std::string fp4_ones =
        "mov.u32 %r2, %t; ONES: shl.b32 %r3, %r2, 2; mov.u32 %r4, 0x22222222; st.shared.u32 [%r3], %r4; "
        "add.u32 %r2, %r2, 128; setp.lt.u32 %p5, %r2, 15360; @%p5 bra ONES; fence.proxy.async.shared::cta;";
    std::string stores;
    for (uint32_t c = 480; c < 492; ++c)
      stores += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7+" + std::to_string(c) + "], {%r20};";
    const KernelRun run(
        body(body(prologue(),
                  {fp4_ones,
                   "mov.u32 %r20, " + std::to_string(int32_t(first)) +
                       "; setp.lt.u32 %p2, %t, 64; @%p2 mov.u32 %r20, " + std::to_string(int32_t(second)) + ";",
                   stores + wait_store + before + " bar.sync 0; " + after,
                   "mov.b64 %d1, " + immediate(a.descriptor(0)) + "; mov.b64 %d2, " + immediate(b.descriptor(b_base)) +
                       "; mov.u32 %r8, " + std::to_string(1 << 7 | 1 << 10 | 1 << 17 | 8 << 24) + ";",
                   "@%p7 tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r5], %d1, %d2, %r8, "
                   "[%r5+480], [%r5+484], 0;",
                   commit + wait_for(0) + " " + after}),
             body(dump(8, 1 << 15), {dealloc()})),
        blackwell());
    return std::pair(std::bit_cast<float>(run.out[1 << 15]), std::bit_cast<float>(run.out[(1 << 15) + 64]));
  };
  EXPECT_EQ(product(0x38383838, 0x38383838), std::pair(64.f, 64.f));  // 1
  EXPECT_EQ(product(0x38383838, 0x40404040), std::pair(256.f, 64.f));
  EXPECT_EQ(product(0x38383838, 0x38383840), std::pair(48.f + 64.f, 64.f));
  EXPECT_EQ(product(0x38383838, 0x01010101), std::pair(64.f / 512 / 512, 64.f));
  EXPECT_TRUE(std::isnan(product(0x38383838, 0x7f383838).first));
  EXPECT_TRUE(std::isnan(product(0x38383838, 0x383838b8).first));
}

// --- collector buffers -------------------------------------------------------------------------------------------------------

TEST(Tcgen05, CollectorBuffersHoldWhatWasFilled) {
  const auto of = [](const std::string& collector, bool add = true, const std::string& descriptor = "%d1") {
    return "@%p7 tcgen05.mma.cta_group::1.kind::f16.collector::a::" + collector + " [%r5], " + descriptor +
           ", %d2, %r8, " + (add ? "1;" : "0;");
  };
  const auto lines = [](const std::vector<std::string>& products) {
    return body(prologue(),
                body(body({ones, "mov.b64 %d3, " + immediate(plain_a.descriptor(a_base + 1024)) + ";"}, products),
                     {commit, wait_for(0) + after, load, "st.global.u32 [%mine], %r20;", dealloc()}));
  };
  const KernelRun run(lines({of("fill", false), of("use"), of("lastuse"), of("discard"), of("fill"), of("lastuse")}),
                      blackwell());
  for (uint32_t t = 0; t < 128; ++t) ASSERT_EQ(std::bit_cast<float>(run.out[t]), 96.f);
  const auto expect = [&](const std::vector<std::string>& products, const std::string& line) {
    expect_report(lines(products), blackwell(),
                  {"A is not in the collector buffer, because no tcgen05.mma before has filled it", line});
  };
  expect({of("use", false)}, "test.cu:107");
  expect({of("fill", false), of("lastuse"), of("use")}, "test.cu:109");
  expect({of("fill", false), multiply_add, of("use")}, "test.cu:109");
  expect({of("fill", false), of("use", true, "%d3")}, "test.cu:108");
  expect_product({.m = 32, .weight_stationary = true, .collector = ".collector::b2::fill"});
  const auto of_b = [&](const std::string& use, const std::string& b) {
    return "@%p7 tcgen05.mma.ws.cta_group::1.kind::f16.collector::" + use + " [%r5], %d1, " + b + ", %r8, 0;";
  };
  const KernelRun both(lines({of_b("b0::fill", "%d2"), of_b("b3::fill", "%d3"), of_b("b0::use", "%d2"),
                              of_b("b3::lastuse", "%d3"), of_b("b0::lastuse", "%d2")}),
                       blackwell());
  for (uint32_t t = 0; t < 128; ++t) ASSERT_EQ(std::bit_cast<float>(both.out[t]), 16.f);
  expect_report(lines({of_b("b0::fill", "%d2"), of_b("b1::use", "%d2")}), blackwell(),
                {"B is not in the collector buffer", "test.cu:108"});
}

TEST(Tcgen05, WhatIsMissingIsRefusedByName) {
  const auto expect = [](const std::string& line, const std::string& part, const std::string& target = "sm_100a") {
    KernelLaunch how = blackwell();
    how.target = target;
    expect_report({line}, how, {part, "test.cu:101"}, Fault::unsupported, 1);
  };
  expect("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r5], %d1, %d2, %r8, [%r6], [%r7], 0;",
         "no .scale_vec::2X or .scale_vec::4X");
  expect("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%r5], %d1, %d2, %r8, [%r6], [%r7], 0;",
         "scale_vec::4X");
  expect("tcgen05.mma.cta_group::1.kind::mxf4 [%r5], %d1, %d2, %r8, [%r6], [%r7], 0;", "no .block_scale");
  expect("tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale [%r5], %d1, %d2, %r8, [%r6], [%r7], 0;",
         "no .kind::mxf4 with .ws");
  expect("tcgen05.mma.cta_group::1.kind::f16.collector::b0::fill [%r5], %d1, %d2, %r8, 0;",
         "unknown modifier .collector::b0::fill");
  expect("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b4::fill [%r5], %d1, %d2, %r8, 0;",
         "unknown modifier .collector::b4::fill");
  expect("tcgen05.mma.cta_group::1.kind::i8 [%r5], %d1, %d2, %r8, 0, 1;", "scale-input-d is an immediate");
  expect("tcgen05.mma.cta_group::1.kind::f16.ashift [%r5], [%r6], %d2, %r8, 0;",
         "tcgen05.mma with .ashift is not supported");
  expect("tcgen05.mma.sp.cta_group::1.kind::f16 [%r5], %d1, %d2, [%r6], %r8, 0;",
         "tcgen05.mma with .sp is not supported");
  expect("tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%r5], %d1;",
         "tcgen05.cp that expands 4 or 6 bits to 8 is not supported");
  expect("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%f0, %f1}, %f2, [%r5];", "tcgen05.ld.red is not supported");
  const std::string tensor = "cp.async.bulk.tensor.4d.shared::cluster.global.";
  for (const std::string mode : {"im2col", "im2col::w", "im2col::w::128"})
    expect(tensor + mode + ".mbarrier::complete_tx::bytes [0], [%d3, {0, 0, 0, 0}], [%r10], {%h1, %h2};",
           "a tensor copy with ." + mode + " is not supported");
  expect("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%d3, {0, 0, 0, 0}], {%h1, %h2};",
         "a tensor copy with .im2col is not supported", "sm_90a");
  expect(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [0], [%d3, {0, 0, "
      "0, 0, 0}], [%r10];",
      "a tensor copy with .tile::gather4 is not supported");
  expect("tcgen05.fence::after_thread_sync;", "feature 'tcgen05' is not supported on .target sm_90a", "sm_90a");
  expect("tcgen05.fence::after_thread_sync;", "feature 'tcgen05' is not supported on .target sm_120a", "sm_120a");
}

}  // namespace
