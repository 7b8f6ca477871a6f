// What common/layout_warp.h and rung 08 say of their maps, counted with wavefronts() of common/layout.h.
#include "common/layout_warp.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

using namespace ladder;

namespace {

// The tile of kernels/08_warp_tiling.cu.
constexpr int BM = 128, BN = 256, BK = 8, WM = 64, WN = 64, TM = 16, TN = 8, THREADS = 256, WARPS_N = BN / WN;

Coord first_result(int thread) {
  const int warp = thread / 32;
  const Coord tile = lane_tile(thread % 32);
  return {warp / WARPS_N * WM + tile.row * 4, warp % WARPS_N * WN + tile.col * 4};
}

template <class Word>
int warp_wavefronts(int warp, int width_bytes, Word word_of_thread) {
  WarpAccess access{width_bytes / 4, {}};
  for (int lane = 0; lane < 32; ++lane) access.word[lane] = word_of_thread(warp * 32 + lane);
  return wavefronts(access).count;
}

TEST(LaneTile, GivesEachThreadTileToOneLane) {
  std::set<std::pair<int, int>> seen;
  for (int lane = 0; lane < 32; ++lane) {
    const Coord tile = lane_tile(lane);
    EXPECT_TRUE(tile.row >= 0 && tile.row < 4 && tile.col >= 0 && tile.col < 8) << "lane " << lane;
    seen.emplace(tile.row, tile.col);
  }
  EXPECT_EQ(seen.size(), 32U);
}

TEST(LaneTile, NeighboursShareNeitherRowNorColumn) {
  for (int lane = 0; lane < 32; ++lane) {
    for (const int mask : {1, 2}) {
      EXPECT_NE(lane_tile(lane).row, lane_tile(lane ^ mask).row) << "lanes " << lane << " and " << (lane ^ mask);
      EXPECT_NE(lane_tile(lane).col, lane_tile(lane ^ mask).col) << "lanes " << lane << " and " << (lane ^ mask);
    }
  }
}

TEST(WarpTile, ThreadsCoverTheBlockTileOnce) {
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < THREADS; ++thread) {
    for (int i = 0; i < TM; ++i) {
      for (int j = 0; j < TN; ++j) {
        const Coord at = first_result(thread);
        seen.emplace(at.row + i / 4 * WM / 4 + i % 4, at.col + j / 4 * WN / 2 + j % 4);
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(BM * BN));
  EXPECT_EQ(*seen.begin(), (std::pair{0, 0}));
  EXPECT_EQ(*seen.rbegin(), (std::pair{BM - 1, BN - 1}));
}

TEST(WarpTile, FragmentLoadsTakeFourWavefronts) {
  for (int warp = 0; warp < THREADS / 32; ++warp) {
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; i += 4) {
        const auto a_word = [&](int t) { return k * BM + first_result(t).row + swizzle(k, i * WM / TM, BK); };
        EXPECT_EQ(warp_wavefronts(warp, 16, a_word), 4) << "A, k " << k << ", i " << i;
      }
      for (int j = 0; j < TN; j += 4) {
        const auto b_word = [&](int t) { return k * BN + first_result(t).col + j * WN / TN; };
        EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 4) << "B, k " << k << ", j " << j;
      }
    }
  }
}

TEST(WarpTile, RowByRowLanesWouldMergeLoadsOfA) {
  const auto a_word = [](int t) { return t % 32 / 8 * 4; };
  EXPECT_EQ(warp_wavefronts(0, 16, a_word), 2);
}

// The fragment of rows i comes from column first + swizzle(k, i): right only where no carry or borrow crosses the sum.
TEST(WarpTile, FragmentsAreFoundWhereTheyWereStored) {
  for (int thread = 0; thread < THREADS; ++thread) {
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; i += 4) {
        const int m = first_result(thread).row;
        EXPECT_EQ(m + swizzle(k, i * WM / TM, BK), swizzle(k, m + i * WM / TM, BK))
            << "thread " << thread << ", k " << k;
      }
    }
  }
}

TEST(WarpTile, StoresOfTheTilesAreConflictFree) {
  for (int warp = 0; warp < THREADS / 32; ++warp) {
    for (int e = 0; e < 4; ++e) {
      const auto a_word = [&](int t) {
        const Coord a = row_major(t, BK / 4);
        return (a.col * 4 + e) * BM + swizzle(a.col * 4, a.row, BK);
      };
      EXPECT_EQ(warp_wavefronts(warp, 4, a_word), 1) << "A, element " << e;
    }
    const auto b_word = [](int t) { return row_major(t, BN / 4).row * BN + row_major(t, BN / 4).col * 4; };
    EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 4);
  }
}

}  // namespace
