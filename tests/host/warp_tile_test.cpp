// What rung 08 and its chapter say of its maps: tile_08 and spread() of common/layout.h, counted with the model of banks.
#include "common/banks.h"
#include "common/layout.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

using namespace ladder;

namespace {

constexpr WarpTile t = tile_08;

template <class Word>
int warp_wavefronts(int warp, int width_bytes, Word word_of_thread) {
  return wavefronts(warp_access(width_bytes / 4, [&](int lane) { return word_of_thread(warp * 32 + lane); })).count;
}

TEST(WarpTile, ThreadsCoverTheBlockTileOnce) {
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < t.threads(); ++thread) {
    for (int i = 0; i < t.TM; ++i) {
      for (int j = 0; j < t.TN; ++j) {
        const auto [row, col] = t.result(thread, i, j);
        seen.emplace(row, col);
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(t.BM * t.BN));
  EXPECT_EQ(*seen.begin(), (std::pair{0, 0}));
  EXPECT_EQ(*seen.rbegin(), (std::pair{t.BM - 1, t.BN - 1}));
}

// The epilogue counts from the warp tile, the fragments from the thread's first result.
TEST(WarpTile, EpilogueAndFragmentsMeanTheSameResults) {
  for (int thread = 0; thread < t.threads(); ++thread) {
    const Coord first = t.first_result(thread);
    for (int i = 0; i < t.TM; ++i) EXPECT_EQ(t.result(thread, i, 0).row, first.row + spread(0, i, t.lane_rows()));
    for (int j = 0; j < t.TN; ++j) EXPECT_EQ(t.result(thread, 0, j).col, first.col + spread(0, j, t.lane_cols()));
  }
}

TEST(WarpTile, LoadsOfATakeFourWavefrontsAndOfBTwo) {
  for (int warp = 0; warp < t.threads() / 32; ++warp) {
    for (int k = 0; k < t.BK; ++k) {
      for (int i = 0; i < t.TM; i += 4) {
        const auto a_word = [&](int thread) {
          return k * t.BM + t.first_result(thread).row + swizzled_column(k, spread(0, i, t.lane_rows()), t.BK);
        };
        EXPECT_EQ(warp_wavefronts(warp, 16, a_word), 4) << "A, k " << k << ", i " << i;
      }
      for (int j = 0; j < t.TN; j += 4) {
        const auto b_word = [&](int thread) {
          return k * t.BN + t.first_result(thread).col + spread(0, j, t.lane_cols());
        };
        EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 2) << "B, k " << k << ", j " << j;
      }
    }
  }
}

// The other maps of lanes to the 4 x 8 thread tiles: row by row, and a diagonal one in which no lane shares a row or a
// column with lane ^ 1 or lane ^ 2.
TEST(WarpTile, OtherLaneMapsMergeOtherLoads) {
  const auto row_by_row_a = [](int thread) { return thread % 32 / 8 * 4; };
  const auto row_by_row_b = [](int thread) { return thread % 8 * 4; };
  EXPECT_EQ(warp_wavefronts(0, 16, row_by_row_a), 2);
  EXPECT_EQ(warp_wavefronts(0, 16, row_by_row_b), 4);
  const auto diagonal_b = [](int thread) { return (thread % 32 / 4 ^ thread % 4) * 4; };
  EXPECT_EQ(warp_wavefronts(0, 16, diagonal_b), 4);
}

// The fragment of rows i comes from column first + swizzled_column(k, i): right only where no carry or borrow crosses the
// sum.
TEST(WarpTile, FragmentsAreFoundWhereTheyWereStored) {
  for (int thread = 0; thread < t.threads(); ++thread) {
    for (int k = 0; k < t.BK; ++k) {
      for (int i = 0; i < t.TM; i += 4) {
        const int m = t.first_result(thread).row, down = spread(0, i, t.lane_rows());
        EXPECT_EQ(m + swizzled_column(k, down, t.BK), swizzled_column(k, m + down, t.BK))
            << "thread " << thread << ", k " << k;
      }
    }
  }
}

TEST(WarpTile, StoresOfTheTilesAreConflictFree) {
  for (int warp = 0; warp < t.threads() / 32; ++warp) {
    for (int e = 0; e < 4; ++e) {
      const auto a_word = [&](int thread) {
        const auto [m, k4] = row_major(thread, t.BK / 4);
        return (k4 * 4 + e) * t.BM + swizzled_column(k4 * 4, m, t.BK);
      };
      EXPECT_EQ(warp_wavefronts(warp, 4, a_word), 1) << "A, element " << e;
    }
    const auto b_word = [](int thread) {
      const auto [k, col4] = row_major(thread, t.BN / 4);
      return k * t.BN + col4 * 4;
    };
    EXPECT_EQ(warp_wavefronts(warp, 16, b_word), 4);
  }
}

}  // namespace
