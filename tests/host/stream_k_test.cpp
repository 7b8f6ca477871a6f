#include "common/stream_k.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ladder {
namespace {

/// A part of a tile: which k tiles of it, by which block, as what number of the block's work units.
struct Part {
  int block, number, first, k_tiles;
};

/// The work units of all blocks, by tile of C and split; checks that no block has more than `most`.
std::vector<std::vector<Part>> parts_of(const Schedule& s, int c_tiles, int most) {
  std::vector<std::vector<Part>> parts(c_tiles);
  for (int b = 0; b < s.blocks; ++b) {
    int i = 0;
    for (WorkUnit work_unit; (work_unit = work_unit_of(s, b, i)).k_tiles > 0; ++i) {
      EXPECT_LE(i, most) << "block " << b << " does not end";
      EXPECT_TRUE(work_unit.c_tile >= 0 && work_unit.c_tile < c_tiles) << work_unit.c_tile;
      if (i > most || work_unit.c_tile < 0 || work_unit.c_tile >= c_tiles) break;
      parts[work_unit.c_tile].push_back({b, i, work_unit.first, work_unit.k_tiles});
    }
  }
  return parts;
}

/// Calls `check(schedule, c_tiles, parts)` for schedules with stream-K tiles, and some without.
template <class F>
void for_schedules(F&& check) {
  for (const int blocks : {1, 2, 3, 4, 7, 16, 132})
    for (const int c_tiles : {1, 2, 5, 8, 31, 132, 133, 288})
      for (const int k_tiles : {1, 2, 5, 48, 64})
        for (int whole_waves = 0; whole_waves * blocks <= c_tiles; whole_waves += 1 + c_tiles / blocks / 4) {
          const Schedule s(blocks, c_tiles, k_tiles, 1, whole_waves * blocks);
          if (s.stream_k_tiles > 0 && s.stream_k.least == 0)
            continue;  // best_schedule() takes none with blocks that have none
          SCOPED_TRACE(std::to_string(c_tiles) + " tiles of " + std::to_string(k_tiles) + " k tiles, " +
                       std::to_string(blocks) + " blocks, " + std::to_string(whole_waves) + " whole waves");
          check(s, c_tiles, parts_of(s, c_tiles, s.work_tiles + s.stream_k_tiles));
        }
}

TEST(StreamK, ComputesEveryKTileOfEveryTileOnce) {
  for_schedules([](const Schedule& s, int, const std::vector<std::vector<Part>>& tiles) {
    for (const auto& parts : tiles) {
      std::vector<int> times(s.k_tiles);
      for (const Part& part : parts)
        for (int k = part.first; k < part.first + part.k_tiles; ++k) ++times.at(k);
      EXPECT_EQ(times, std::vector<int>(s.k_tiles, 1));
    }
  });
}

TEST(StreamK, ComputesEverySplitOfEveryTileOnce) {
  for (const int splits : {1, 2, 3, 8}) {
    const Schedule s(16, 21, 48, splits, 21);
    for (const auto& parts : parts_of(s, 21, s.work_tiles)) {
      ASSERT_EQ(parts.size(), static_cast<size_t>(splits));
      std::vector<int> times(48);
      for (const Part& part : parts)
        for (int k = part.first; k < part.first + part.k_tiles; ++k) ++times.at(k);
      EXPECT_EQ(times, std::vector<int>(48, 1));
    }
  }
}

TEST(StreamK, BlocksDifferByOneStreamKKTile) {
  for_schedules([](const Schedule& s, int, const std::vector<std::vector<Part>>& tiles) {
    std::vector<int> of_block(s.blocks);
    for (int tile = s.work_tiles; tile < s.work_tiles + s.stream_k_tiles; ++tile)
      for (const Part& part : tiles[tile]) of_block[part.block] += part.k_tiles;
    for (const int k_tiles : of_block)
      EXPECT_TRUE(k_tiles == s.stream_k.first(1) || k_tiles == s.stream_k.least) << k_tiles;
  });
}

TEST(StreamK, ABlockStoresPartialSumsOfOneTileAtMost) {  // else they would not fit into its place in the workspace
  for_schedules([](const Schedule& s, int, const std::vector<std::vector<Part>>& tiles) {
    std::vector<int> left(s.blocks);
    for (const auto& parts : tiles)
      for (const Part& part : parts) left[part.block] += part.first + part.k_tiles < s.k_tiles;
    for (const int parts : left) EXPECT_LE(parts, 1);
  });
}

TEST(StreamK, TheBlockThatAddsHasTheLargestNumberAndFindsTheOthers) {
  for_schedules([](const Schedule& s, int, const std::vector<std::vector<Part>>& tiles) {
    for (int tile = s.work_tiles; tile < s.work_tiles + s.stream_k_tiles; ++tile) {
      const auto& parts = tiles[tile];  // by block
      EXPECT_EQ(parts.back().first + parts.back().k_tiles, s.k_tiles);
      EXPECT_EQ(first_block_of(s, tile), parts.front().block);
      for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].block, parts.front().block + static_cast<int>(i));
    }
  });
}

TEST(StreamK, AWorkUnitThatIsWaitedForComesFirst) {
  for_schedules([](const Schedule& s, int, const std::vector<std::vector<Part>>& tiles) {
    for (const auto& parts : tiles)
      for (const Part& part : parts)
        if (part.first + part.k_tiles < s.k_tiles) {
          EXPECT_EQ(part.number, s.whole_waves) << "block " << part.block;
        }
  });
}

}  // namespace
}  // namespace ladder
