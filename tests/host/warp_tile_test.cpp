// What rung 08 and its chapter say of its maps, counted with wavefronts() of common/banks.h.
#include "common/banks.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

using namespace ladder;

namespace {

// The tile of kernels/08_warp_tiling.cu.
constexpr int BM = 128, BN = 256, BK = 8, WM = 64, WN = 64, TM = 16, TN = 8, THREADS = 256;
constexpr int LANE_ROWS = WM / TM, LANE_COLS = WN / TN;

Coord first_result(int thread) {
  const auto [warp_row, warp_col] = row_major(thread / 32, BN / WN);
  const auto [lane_col, lane_row] = row_major(thread % 32, LANE_ROWS);
  return {warp_row * WM + lane_row * 4, warp_col * WN + lane_col * 4};
}

int spread(int lane, int i, int lanes) { return (i / 4 * lanes + lane) * 4 + i % 4; }

template <class Word>
int warp_wavefronts(int warp, int width_bytes, Word word_of_thread) {
  WarpAccess access{width_bytes / 4, {}};
  for (int lane = 0; lane < 32; ++lane) access.word[lane] = word_of_thread(warp * 32 + lane);
  return wavefronts(access).count;
}

TEST(WarpTile, ThreadsCoverTheBlockTileOnce) {
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < THREADS; ++thread) {
    for (int i = 0; i < TM; ++i) {
      for (int j = 0; j < TN; ++j) {
        const Coord at = first_result(thread);
        seen.emplace(at.row + spread(0, i, LANE_ROWS), at.col + spread(0, j, LANE_COLS));
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(BM * BN));
  EXPECT_EQ(*seen.begin(), (std::pair{0, 0}));
  EXPECT_EQ(*seen.rbegin(), (std::pair{BM - 1, BN - 1}));
}

// The epilogue counts from the warp's tile, the fragments from the thread's first result.
TEST(WarpTile, EpilogueAndFragmentsMeanTheSameResults) {
  for (int thread = 0; thread < THREADS; ++thread) {
    const auto [warp_row, warp_col] = row_major(thread / 32, BN / WN);
    const auto [lane_col, lane_row] = row_major(thread % 32, LANE_ROWS);
    const Coord first = first_result(thread);
    for (int i = 0; i < TM; ++i)
      EXPECT_EQ(warp_row * WM + spread(lane_row, i, LANE_ROWS), first.row + spread(0, i, LANE_ROWS));
    for (int j = 0; j < TN; ++j)
      EXPECT_EQ(warp_col * WN + spread(lane_col, j, LANE_COLS), first.col + spread(0, j, LANE_COLS));
  }
}

TEST(WarpTile, LoadsOfATakeFourWavefrontsAndOfBTwo) {
  for (int warp = 0; warp < THREADS / 32; ++warp) {
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; i += 4) {
        const auto a_word = [&](int t) {
          return k * BM + first_result(t).row + swizzled_column(k, spread(0, i, LANE_ROWS), BK);
        };
        EXPECT_EQ(warp_wavefronts(warp, 16, a_word), 4) << "A, k " << k << ", i " << i;
      }
      for (int j = 0; j < TN; j += 4) {
        const auto b_word = [&](int t) { return k * BN + first_result(t).col + spread(0, j, LANE_COLS); };
        EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 2) << "B, k " << k << ", j " << j;
      }
    }
  }
}

// The other maps of lanes to the 4 x 8 thread tiles: row by row, and a diagonal one in which no lane shares a row or a
// column with lane ^ 1 or lane ^ 2.
TEST(WarpTile, OtherLaneMapsMergeOtherLoads) {
  const auto row_by_row_a = [](int t) { return t % 32 / 8 * 4; };
  const auto row_by_row_b = [](int t) { return t % 8 * 4; };
  EXPECT_EQ(warp_wavefronts(0, 16, row_by_row_a), 2);
  EXPECT_EQ(warp_wavefronts(0, 16, row_by_row_b), 4);
  const auto diagonal_b = [](int t) { return (t % 32 / 4 ^ t % 4) * 4; };
  EXPECT_EQ(warp_wavefronts(0, 16, diagonal_b), 4);
}

// The fragment of rows i comes from column first + swizzled_column(k, i): right only where no carry or borrow crosses the sum.
TEST(WarpTile, FragmentsAreFoundWhereTheyWereStored) {
  for (int thread = 0; thread < THREADS; ++thread) {
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; i += 4) {
        const int m = first_result(thread).row;
        EXPECT_EQ(m + swizzled_column(k, spread(0, i, LANE_ROWS), BK),
                  swizzled_column(k, m + spread(0, i, LANE_ROWS), BK))
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
        return (a.col * 4 + e) * BM + swizzled_column(a.col * 4, a.row, BK);
      };
      EXPECT_EQ(warp_wavefronts(warp, 4, a_word), 1) << "A, element " << e;
    }
    const auto b_word = [](int t) { return row_major(t, BN / 4).row * BN + row_major(t, BN / 4).col * 4; };
    EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 4);
  }
}

}  // namespace
