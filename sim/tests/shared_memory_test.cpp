// How shared memory tracks asynchronous accesses. While a write is under way, nothing else may touch its bytes; while a
// read is, nothing may write them. Once an access has ended, it counts as one of the warp that waited for it.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "executor/shared_memory.h"

namespace sim {
namespace {

using Found = SharedMemory::Found;
constexpr unsigned whole = 0xf;

struct SharedMemoryTest : testing::Test {
  Clocks clocks{2};
  SharedMemory shared{64, clocks};
  SharedMemoryTest() {
    clocks.reset();
    shared.reset();
  }
  Found read(uint32_t word, uint32_t warp) { return shared.read(word, whole, warp, 100 + warp, false).found; }
  Found write(uint32_t word, uint32_t warp) { return shared.write(word, whole, warp, 200 + warp, false).found; }
  void barrier() {
    VectorClock clock;
    for (uint32_t w = 0; w < 2; ++w) clocks.arrive(w, clock);
    for (uint32_t w = 0; w < 2; ++w) clocks.leave(w, clock);
  }
};

/// Three warps read, and only the last two of them happen before the fourth.
TEST(ReadersOfAWord, AreAllRemembered) {
  for (uint32_t missing = 0; missing < 3; ++missing) {
    Clocks clocks{4};
    clocks.reset();
    SharedMemory shared{64, clocks};
    shared.reset();
    const auto meet = [&](uint32_t left_out) {
      VectorClock clock;
      for (uint32_t w = 0; w < 4; ++w)
        if (w != left_out) clocks.arrive(w, clock);
      for (uint32_t w = 0; w < 4; ++w)
        if (w != left_out) clocks.leave(w, clock);
    };
    ASSERT_EQ(shared.write(3, whole, 3, 100, false).found, Found::nothing);
    meet(4);
    for (uint32_t w = 0; w < 3; ++w) ASSERT_EQ(shared.read(3, whole, w, 200 + w, false).found, Found::nothing);
    meet(missing);
    const SharedMemory::Verdict verdict = shared.write(3, whole, 3, 101, false);
    EXPECT_EQ(verdict.found, Found::race_with_read);
    EXPECT_EQ(verdict.warp, missing);
    meet(4);
    EXPECT_EQ(shared.write(3, whole, 3, 101, false).found, Found::nothing);
  }
}

TEST_F(SharedMemoryTest, NobodyTouchesWhatIsBeingWritten) {
  ASSERT_EQ(shared.begin_async_write(3, 0, 7).found, Found::nothing);
  const SharedMemory::Verdict own = shared.read(3, 1, 0, 100, false);
  EXPECT_EQ(own.found, Found::write_under_way) << "not even the warp that issued it";
  EXPECT_EQ(own.warp, 0U);
  EXPECT_EQ(own.op, 7U);
  EXPECT_EQ(write(3, 0), Found::write_under_way);
  EXPECT_EQ(shared.begin_async_write(3, 1, 8).found, Found::write_under_way);
  EXPECT_EQ(shared.begin_async_read(3, 1, 8).found, Found::write_under_way);
  barrier();
  EXPECT_EQ(read(3, 1), Found::write_under_way) << "a barrier is no wait";
  EXPECT_EQ(write(2, 0), Found::nothing) << "the word before is free";
}

TEST_F(SharedMemoryTest, OthersNeedABarrierAfterTheWait) {
  ASSERT_EQ(shared.begin_async_write(3, 0, 7).found, Found::nothing);
  barrier();
  shared.end_async_write(3, 0, 7, clocks.now(0));
  EXPECT_EQ(read(3, 0), Found::nothing);
  const SharedMemory::Verdict other = shared.read(3, whole, 1, 101, false);
  EXPECT_EQ(other.found, Found::race_with_write);
  EXPECT_EQ(other.op, 7U);
  barrier();
  EXPECT_EQ(read(3, 1), Found::nothing);
}

TEST_F(SharedMemoryTest, AnAsynchronousWriteRacesWhenItIsIssued) {
  ASSERT_EQ(write(3, 1), Found::nothing);
  EXPECT_EQ(shared.begin_async_write(3, 0, 7).found, Found::race_with_write);
  barrier();
  ASSERT_EQ(read(3, 1), Found::nothing);
  EXPECT_EQ(shared.begin_async_write(3, 0, 7).found, Found::race_with_read);
  barrier();
  EXPECT_EQ(shared.begin_async_write(3, 0, 7).found, Found::nothing);
}

TEST_F(SharedMemoryTest, NobodyWritesWhatIsBeingRead) {
  EXPECT_EQ(shared.begin_async_read(3, 0, 7).found, Found::uninitialised);
  ASSERT_EQ(write(3, 0), Found::nothing);
  EXPECT_EQ(shared.begin_async_read(3, 1, 7).found, Found::race_with_write);
  barrier();
  ASSERT_EQ(shared.begin_async_read(3, 0, 7).found, Found::nothing);
  ASSERT_EQ(shared.begin_async_read(3, 1, 8).found, Found::nothing) << "several may read";
  EXPECT_EQ(read(3, 0), Found::nothing);
  EXPECT_EQ(write(3, 0), Found::read_under_way);
  shared.end_async_read(3, 0, 7, clocks.now(0));
  EXPECT_EQ(shared.begin_async_write(3, 0, 9).found, Found::read_under_way) << "one is left";
  shared.end_async_read(3, 1, 8, clocks.now(1));
  EXPECT_EQ(write(3, 0), Found::race_with_read) << "warp 0 does not know that warp 1's has ended";
  barrier();
  EXPECT_EQ(write(3, 0), Found::nothing);
}

/// Two memories see the same accesses at random, asynchronous ones of a unit at once and word by word.
TEST_F(SharedMemoryTest, AUnitFindsWhatItsWordsFind) {
  constexpr uint32_t units = 2;
  SharedMemory joined(16 * units, clocks), apart(16 * units, clocks);
  std::minstd_rand random(1);
  const auto below = [&](uint32_t n) { return uint32_t(random() / 64 % n); };
  struct Reader {
    uint32_t unit, warp, op;
  };
  std::vector<Reader> readers;
  std::array<bool, units> written{};  // or to be written
  std::map<Found, int> seen;
  for (uint32_t step = 0; step < 100000; ++step) {
    using Report = std::tuple<uint32_t, Found, uint32_t, uint32_t>;
    std::vector<Report> one, other;
    const auto to = [](std::vector<Report>& reports) {
      return [&reports](uint32_t word, const SharedMemory::Verdict& v) {
        reports.push_back({word, v.found, v.warp, v.op});
      };
    };
    const uint32_t unit = below(units), address = 16 * unit, warp = below(2), word = 4 * unit + below(4);
    const auto for_each_word = [&](uint32_t u, const auto& f) {
      for (uint32_t w = 4 * u; w < 4 * u + 4; ++w) f(w);
    };
    switch (below(step % 1000 < 500 ? 8 : 11)) {  // now with plain accesses, now without
      case 0:
      case 1:
        barrier();
        break;
      case 2:
        clocks.fence_proxy(warp);
        break;
      case 3:
      case 4:
        if (written[unit]) break;
        written[unit] = true;
        joined.begin_async_writes({&address, 1}, warp, step, to(one));
        for_each_word(unit, [&](uint32_t w) {
          const SharedMemory::Verdict v = apart.begin_async_write(w, warp, step);
          if (v.found == Found::nothing) return;
          to(other)(w, v);
          apart.begin_async_write(w, warp, step, true);
        });
        break;
      case 5:
        if (!written[unit]) break;
        written[unit] = false;
        joined.end_async_writes({&address, 1}, warp, step, clocks.now(warp));
        for_each_word(unit, [&](uint32_t w) { apart.end_async_write(w, warp, step, clocks.now(warp)); });
        break;
      case 6:
        readers.push_back({unit, warp, step});
        joined.begin_async_reads({&address, 1}, warp, step, to(one));
        for_each_word(unit, [&](uint32_t w) {
          const SharedMemory::Verdict v = apart.begin_async_read(w, warp, step);
          if (v.found != Found::nothing) {
            to(other)(w, v);
            apart.begin_async_read(w, warp, step, whole, true);
          } else if (!apart.visible_to_async(w, warp)) {
            to(other)(w, {Found::unfenced});
          }
        });
        break;
      case 7: {
        if (readers.empty()) break;
        const Reader reader = readers.back();
        readers.pop_back();
        const uint32_t at = 16 * reader.unit, time = clocks.now(reader.warp);
        joined.end_async_reads({&at, 1}, reader.warp, reader.op, time);
        for_each_word(reader.unit, [&](uint32_t w) { apart.end_async_read(w, reader.warp, reader.op, time); });
        break;
      }
      case 8:
        to(one)(word, joined.read(word, whole, warp, step, false));
        to(other)(word, apart.read(word, whole, warp, step, false));
        break;
      case 9:
        to(one)(word, joined.write(word, whole, warp, step, false));
        to(other)(word, apart.write(word, whole, warp, step, false));
        break;
      default:
        if (below(20)) break;
        joined.reset();
        apart.reset();
        clocks.reset();
        readers.clear();
        written = {};
    }
    ASSERT_EQ(one, other) << "step " << step;
    for (const Report& report : one) ++seen[std::get<Found>(report)];
    for (uint32_t w = 0; w < 4 * units; ++w)
      ASSERT_EQ(joined.visible_to_async(w, warp), apart.visible_to_async(w, warp)) << "step " << step;
  }
  for (const Found found : {Found::nothing, Found::uninitialised, Found::race_with_write, Found::race_with_read,
                            Found::write_under_way, Found::read_under_way, Found::unfenced})
    EXPECT_GT(seen[found], 20);
}

TEST_F(SharedMemoryTest, ANewBlockStartsAfresh) {
  ASSERT_EQ(shared.begin_async_write(3, 0, 7).found, Found::nothing);
  ASSERT_EQ(write(4, 0), Found::nothing);
  ASSERT_EQ(shared.begin_async_read(4, 0, 7).found, Found::nothing);
  shared.reset();
  EXPECT_EQ(read(3, 0), Found::uninitialised);
  EXPECT_EQ(write(3, 0), Found::nothing);
  EXPECT_EQ(write(4, 0), Found::nothing);
}

}  // namespace
}  // namespace sim
