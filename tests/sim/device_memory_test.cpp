#include "sim/device_memory.h"

#include <gtest/gtest.h>

#include <cstring>

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

}  // namespace
}  // namespace sim
