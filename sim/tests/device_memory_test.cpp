#include "device_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "text.h"

namespace sim {
namespace {

TEST(DeviceMemory, KnowsWhichBytesAreAllocated) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(100);
  const uint64_t b = memory.allocate(1);
  EXPECT_EQ(a % DeviceMemory::alignment, 0u);
  EXPECT_TRUE(memory.contains(a, 100));
  EXPECT_TRUE(memory.contains(a + 99, 1));
  EXPECT_FALSE(memory.contains(a + 99, 2));
  EXPECT_FALSE(memory.contains(a + 100, 1));
  EXPECT_FALSE(memory.contains(a - 1, 1));
  EXPECT_FALSE(memory.contains(a, SIZE_MAX));
  EXPECT_TRUE(memory.contains(b, 1));
  std::memset(reinterpret_cast<void*>(a), 7, 100);
  EXPECT_EQ(memory.find(a + 50)->base, a);
  EXPECT_EQ(memory.find(0), nullptr);
  EXPECT_EQ(memory.find(shared_window), nullptr);
}

TEST(DeviceMemory, AnIndexThatIsOffHitsNothing) {
  DeviceMemory memory;
  for (int i = 0; i < 50; ++i) {
    const uint64_t address = memory.allocate(256);
    EXPECT_EQ(memory.find(address + 256), nullptr);
    EXPECT_EQ(memory.find(address - 4), nullptr);
    EXPECT_EQ(memory.find(address + 256 + 512), nullptr);
  }
}

TEST(DeviceMemory, FreesTheFirstByteOfAnAllocationOnly) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(64);
  EXPECT_FALSE(memory.free(a + 1));
  EXPECT_FALSE(memory.free(a, MemoryKind::pinned_host));
  EXPECT_TRUE(memory.free(a));
  EXPECT_FALSE(memory.free(a));
  EXPECT_EQ(memory.find(a), nullptr);
}

TEST(DeviceMemory, EndsAtItsCapacity) {
  DeviceMemory memory(1000);
  EXPECT_NE(memory.allocate(600), 0u);
  EXPECT_EQ(memory.allocate(401), 0u);
  EXPECT_NE(memory.allocate(400), 0u);
  EXPECT_EQ(memory.used(), 1000u);
  EXPECT_EQ(memory.allocate(SIZE_MAX), 0u);
}

TEST(DeviceMemory, SaysWhereAnAddressLies) {
  DeviceMemory memory;
  EXPECT_NE(memory.describe(0x10).find("null pointer"), std::string::npos);
  const uint64_t a = memory.allocate(400);
  EXPECT_NE(memory.describe(a + 404).find("4 bytes past the end of the allocation of 400 bytes"), std::string::npos);
  EXPECT_NE(memory.describe(a - 8).find("8 bytes before the allocation"), std::string::npos);
  EXPECT_NE(memory.describe(a + (uint64_t{1} << 40)).find("nowhere near"), std::string::npos);
  const uint64_t b = memory.allocate(8, MemoryKind::constant, "weights");
  EXPECT_NE(memory.describe(b + 8).find("variable 'weights'"), std::string::npos);
}

TEST(DeviceMemory, VariablesBelongToTheirModule) {
  DeviceMemory memory;
  const int one = 0, other = 0;
  memory.define_variable(&one, "x", 16);
  EXPECT_EQ(memory.variable(&one, "x"), 16u);
  EXPECT_EQ(memory.variable(&other, "x"), 0u);
  EXPECT_EQ(memory.variable(&one, "y"), 0u);
}

TEST(DeviceMemory, ClearKeepsManagedVariables) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(8), b = memory.allocate(8, MemoryKind::managed);
  const uint64_t variable = memory.allocate(8, MemoryKind::managed, "shared_with_the_host");
  memory.clear();
  EXPECT_FALSE(memory.find(a));
  EXPECT_FALSE(memory.find(b));
  EXPECT_TRUE(memory.find(variable));
  EXPECT_EQ(memory.used(), 8u);
}

/// Of any size: small ones keep their bytes, large ones give them back.
TEST(DeviceMemory, AFreedAddressIsNotGivenOutAgain) {
  DeviceMemory memory;
  for (const size_t bytes : {size_t{400}, size_t{4} << 20}) {
    const uint64_t freed = memory.allocate(bytes);
    ASSERT_TRUE(memory.free(freed));
    for (int i = 0; i < 100; ++i) {
      const uint64_t other = memory.allocate(bytes);
      EXPECT_TRUE(other + bytes <= freed || freed + bytes <= other);
      ASSERT_TRUE(memory.free(other));
    }
    EXPECT_FALSE(memory.find(freed));
    EXPECT_EQ(memory.describe(freed + 4), formatted("{:#x} is byte 4 of an allocation of {} bytes at {:#x}, which has "
                                                    "been freed",
                                                    freed + 4, bytes, freed));
  }
  EXPECT_EQ(memory.used(), 0u);
}

/// Bytes that hold a value are those that somebody has written, or that were copied from such.
TEST(DeviceMemory, KnowsWhichBytesHoldAValue) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(64), b = memory.allocate(64);
  Contents &from = *memory.find(a)->contents, &to = *memory.find(b)->contents;
  EXPECT_EQ(from.find_unwritten(0, 64), 0u);
  memory.wrote(a + 8, 8);
  memory.begin_launch();
  from.kernel_wrote(20, 4, memory.launch());
  EXPECT_EQ(from.find_unwritten(8, 56), 8u);
  EXPECT_EQ(from.find_written_by(memory.launch(), 0, 64), 20u);
  memory.copied(b, a, 64);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(to.find_unwritten(i, 1) == 1, (i >= 8 && i < 16) || (i >= 20 && i < 24)) << i;
  memory.wrote(b, 64);
  EXPECT_TRUE(to.complete());
  const int host[4] = {};
  memory.copied(a, reinterpret_cast<uint64_t>(host), 16);
  EXPECT_EQ(from.find_unwritten(0, 64), 16u);
}

/// Memory that kernels have filled bit by bit is complete from the next launch on, and not before; a gap of one byte keeps it open.
TEST(DeviceMemory, IsCompleteWhenKernelsHaveFilledIt) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(100);
  Contents& contents = *memory.find(a)->contents;
  for (const size_t first : {50, 0, 76, 26}) {
    memory.begin_launch();
    EXPECT_FALSE(contents.complete());
    contents.kernel_wrote(first, first == 76 ? 23 : 26, memory.launch());
    EXPECT_FALSE(contents.may_be_read(0, 100, false, memory.launch()));
  }
  memory.begin_launch();
  EXPECT_FALSE(contents.complete());
  EXPECT_EQ(contents.find_unwritten(0, 100), 99u);
  memory.wrote(a + 99, 1);
  EXPECT_TRUE(contents.may_be_read(0, 100, true, memory.launch()));
  memory.begin_launch();
  EXPECT_TRUE(contents.complete());
}

/// A gap is found wherever it lies in an access, of each size that accesses have.
TEST(DeviceMemory, FindsAGapOfOneByte) {
  for (const size_t size : {1, 2, 4, 8, 16, 32, 128})
    for (size_t gap = 0; gap < size; ++gap) {
      DeviceMemory memory;
      const uint64_t a = memory.allocate(size + 1);
      Contents& contents = *memory.find(a)->contents;
      memory.begin_launch();
      contents.kernel_wrote(0, gap, memory.launch());
      contents.kernel_wrote(gap + 1, size - gap, memory.launch());
      EXPECT_EQ(contents.find_unwritten(0, size), gap) << size;
      EXPECT_FALSE(contents.may_be_read(0, size, false, memory.launch()));
      memory.begin_launch();
      EXPECT_EQ(contents.find_written_by(memory.launch(), 0, size), size);
      contents.kernel_wrote(gap, 1, memory.launch());
      EXPECT_EQ(contents.find_written_by(memory.launch(), 0, size), gap) << size;
      EXPECT_TRUE(contents.may_be_read(0, size, false, memory.launch()));
      EXPECT_FALSE(contents.may_be_read(0, size, true, memory.launch()));
    }
}

/// There are fewer marks than launches: what an earlier launch wrote is not taken for this one's.
TEST(DeviceMemory, MarksOfLaunchesComeRound) {
  DeviceMemory memory;
  const uint64_t a = memory.allocate(16);
  Contents& contents = *memory.find(a)->contents;
  memory.begin_launch();
  contents.kernel_wrote(0, 4, memory.launch());
  for (int i = 0; i < 1000; ++i) {
    memory.begin_launch();
    ASSERT_EQ(contents.find_written_by(memory.launch(), 0, 16), 16u) << i;
  }
  EXPECT_EQ(contents.find_unwritten(0, 16), 4u);
}

}  // namespace
}  // namespace sim
