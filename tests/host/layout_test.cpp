// What headers and chapters say of the index maps in common/layout.h: every element once, and how many wavefronts.
#include "common/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ladder {
namespace {

/// A tile whose cells are counted as threads take them.
struct Cover {
  Cover(int rows, int columns) : columns(columns), times(static_cast<size_t>(rows * columns)) {}
  void take(Coord at) { ++times.at(static_cast<size_t>(at.row * columns + at.col)); }
  bool once() const {
    return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
  }
  int columns;
  std::vector<int> times;
};

struct Case {
  const char* rung;
  SharedTile tile;
  int a_store, b_store, a_load, b_load;  // wavefronts each takes
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.rung << " with BK = " << c.tile.BK; }

class SharedTileTest : public testing::TestWithParam<Case> {};

TEST_P(SharedTileTest, LoadsCoverEachTileOnce) {
  const SharedTile t = GetParam().tile;
  Cover a(t.BM, t.BK), b(t.BK, t.BN);
  for (int thread = 0; thread < t.THREADS; ++thread) {
    for (int pass = 0; pass < t.BM * t.BK / 4 / t.THREADS; ++pass) {
      const auto [m, k] = t.a_loaded(thread, pass);
      for (int i = 0; i < 4; ++i) a.take({m, k + i});
    }
    for (int pass = 0; pass < t.BN * t.BK / 4 / t.THREADS; ++pass) {
      const auto [k, n] = t.b_loaded(thread, pass);
      for (int i = 0; i < 4; ++i) b.take({k, n + i});
    }
  }
  EXPECT_TRUE(a.once());
  EXPECT_TRUE(b.once());
}

TEST_P(SharedTileTest, ThreadTilesCoverTheBlockOnce) {
  const SharedTile t = GetParam().tile;
  Cover c(t.BM, t.BN);
  for (int thread = 0; thread < t.THREADS; ++thread)
    for (int i = 0; i < t.TM; ++i)
      for (int j = 0; j < t.TN; ++j) c.take(t.result(thread, i, j));
  EXPECT_TRUE(c.once());
}

TEST_P(SharedTileTest, NoTwoElementsShareAWord) {
  const SharedTile t = GetParam().tile;
  Cover a(1, t.BK * (t.BM + t.padding));
  for (int m = 0; m < t.BM; ++m)
    for (int k = 0; k < t.BK; ++k) a.take({0, t.a_word(m, k)});
  EXPECT_EQ(std::count(a.times.begin(), a.times.end(), 1), t.BM * t.BK);
}

TEST_P(SharedTileTest, FragmentsLieInFourConsecutiveAlignedWords) {
  const SharedTile t = GetParam().tile;
  for (int thread = 0; thread < t.THREADS; ++thread) {
    for (int k = 0; k < t.BK; ++k) {
      for (int i = 0; i < t.TM; ++i) {
        const int first = t.a_word(t.result(thread, i / 4 * 4, 0).row, k);
        EXPECT_EQ(first % 4, 0);
        EXPECT_EQ(t.a_word(t.result(thread, i, 0).row, k), first + i % 4);
        const int first_b = t.b_word(k, t.result(thread, 0, i / 4 * 4).col);
        EXPECT_EQ(first_b % 4, 0);
        EXPECT_EQ(t.b_word(k, t.result(thread, 0, i).col), first_b + i % 4);
      }
    }
  }
}

TEST_P(SharedTileTest, WavefrontsOfEveryAccess) {
  const Case& c = GetParam();
  const SharedTile& t = c.tile;
  for (int warp = 0; warp < t.THREADS / 32; ++warp) {
    for (int pass = 0; pass < t.BM * t.BK / 4 / t.THREADS; ++pass)
      for (int i = 0; i < 4; ++i) EXPECT_EQ(wavefronts(t.a_store(warp, pass, i)).count, c.a_store);
    for (int pass = 0; pass < t.BN * t.BK / 4 / t.THREADS; ++pass)
      EXPECT_EQ(wavefronts(t.b_store(warp, pass)).count, c.b_store);
    for (int k = 0; k < t.BK; ++k) {
      for (int i = 0; i < t.TM; i += 4) {
        EXPECT_EQ(wavefronts(t.a_fragment(warp, k, i)).count, c.a_load);
        EXPECT_EQ(wavefronts(t.b_fragment(warp, k, i)).count, c.b_load);
      }
    }
  }
}

// Conflict-free is 1 wavefront for a scalar access and 4 for 16 bytes; the loads of rA take 2, for lanes 0 to 15 ask for the
// same four words, and so do lanes 16 to 31.
INSTANTIATE_TEST_SUITE_P(Rungs, SharedTileTest,
                         testing::Values(Case{"05", tile_05, 4, 4, 2, 8},               //
                                         Case{"06", tile_06, 1, 4, 2, 4},               //
                                         Case{"06b", tile_06b, 2, 4, 2, 4},             //
                                         Case{"05", {8, 0, false, false}, 2, 4, 2, 8},  // what a smaller BK does
                                         Case{"06", {8, 0, true, true}, 1, 4, 2, 4},    // to the swizzle
                                         Case{"06b", {8, 4, false, true}, 1, 4, 2, 4},  // and to the padding
                                         Case{"06", {32, 0, true, true}, 1, 4, 2, 4}));

// Rows of sA must begin at multiples of four words; with BK = 16, none of these paddings does better than 06b's.
TEST(Padding, OfFourMoreWordsNeverPartsAllFourLanes) {
  for (int padding = 0; padding < BANKS; padding += 4) {
    const SharedTile t{16, padding, false, true};
    EXPECT_GE(wavefronts(t.a_store(0, 0, 0)).count, wavefronts(tile_06b.a_store(0, 0, 0)).count) << padding;
  }
  const SharedTile unaligned{16, 2, false, true};  // parts them, but 16-byte loads of its rows are not aligned
  EXPECT_EQ(wavefronts(unaligned.a_store(0, 0, 0)).count, 1);
}

TEST(RowMajor, ThreadTilesOf03CoverTheBlockOnce) {
  Cover c(64, 64);
  for (int thread = 0; thread < 512; ++thread) {
    const auto [row, col] = row_major(thread, 64);
    for (int i = 0; i < 8; ++i) c.take({row * 8 + i, col});
  }
  EXPECT_TRUE(c.once());
}

template <class Word>
WarpAccess access(int width, const Word& word) {
  WarpAccess result{width, {}};
  for (int lane = 0; lane < 32; ++lane) result.word[lane] = word(lane);
  return result;
}

TEST(Wavefronts, ScalarAccess) {
  EXPECT_EQ(wavefronts(access(1, [](int lane) { return lane; })).count, 1);
  EXPECT_EQ(wavefronts(access(1, [](int) { return 7; })).count, 1);  // broadcast
  EXPECT_EQ(wavefronts(access(1, [](int lane) { return lane * 2; })).count, 2);
  EXPECT_EQ(wavefronts(access(1, [](int lane) { return lane * 32; })).count, 32);
  EXPECT_EQ(wavefronts(access(1, [](int lane) { return lane * 33; })).count, 1);
}

TEST(Wavefronts, WideAccess) {
  EXPECT_EQ(wavefronts(access(2, [](int lane) { return lane * 2; })).count, 2);
  EXPECT_EQ(wavefronts(access(4, [](int lane) { return lane * 4; })).count, 4);
  EXPECT_EQ(wavefronts(access(4, [](int lane) { return lane / 2 * 4; })).count, 2);   // as lane ^ 1: merged
  EXPECT_EQ(wavefronts(access(4, [](int lane) { return lane % 16 * 4; })).count, 4);  // as lane ^ 16: not
  EXPECT_EQ(wavefronts(access(4, [](int lane) { return lane * 8; })).count, 8);
}

TEST(Wavefronts, NamesTheWavefrontOfEachLane) {
  const Wavefronts served = wavefronts(access(1, [](int lane) { return lane * 16; }));
  EXPECT_EQ(served.count, 16);
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(served.of_lane[lane], lane / 2);
}

// 04 reads rB, 8 columns a lane, as two 16-byte loads, and rA two k at a time from rows 8 apart, 16 floats each.
TEST(Wavefronts, FragmentsOf04) {
  EXPECT_EQ(wavefronts(access(4, [](int lane) { return lane % 16 * 8; })).count, 8);
  EXPECT_EQ(wavefronts(access(2, [](int lane) { return lane / 16 * 8 * 16; })).count, 2);
}

TEST(MmaFragments, HoldEveryElementOnce) {
  Cover a(16, 8), b(8, 8), c(16, 8);  // words, words, floats
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) a.take(mma_a(lane, r)), c.take(mma_c(lane, r));
    for (int r = 0; r < 2; ++r) b.take(mma_b(lane, r));
  }
  EXPECT_TRUE(a.once());
  EXPECT_TRUE(b.once());
  EXPECT_TRUE(c.once());
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16", at a few places. A word of A or B holds elements 2 w and 2 w + 1.
TEST(MmaFragments, AreThoseOfThePtxIsa) {
  const auto is = [](Coord at, int row, int col) { return at.row == row && at.col == col; };
  EXPECT_TRUE(is(mma_a(0, 0), 0, 0) && is(mma_a(0, 1), 8, 0) && is(mma_a(0, 2), 0, 4) && is(mma_a(0, 3), 8, 4));
  EXPECT_TRUE(is(mma_a(31, 0), 7, 3) && is(mma_a(5, 1), 9, 1));
  EXPECT_TRUE(is(mma_b(0, 1), 0, 4) && is(mma_b(6, 0), 1, 2) && is(mma_b(31, 1), 7, 7));
  EXPECT_TRUE(is(mma_c(0, 1), 0, 1) && is(mma_c(0, 2), 8, 0) && is(mma_c(7, 0), 1, 6) && is(mma_c(31, 3), 15, 7));
}

// 09b to 11: rows of 128 bytes and a skew of 16, 36 words. 10b: rows of C of 136 floats.
TEST(MmaFragments, AreLoadedFromSkewedRowsWithoutConflicts) {
  for (int r = 0; r < 4; ++r) {
    const auto a = [&](int pitch) {
      return wavefronts(access(1, [&](int lane) { return mma_a(lane, r).row * pitch + mma_a(lane, r).col; })).count;
    };
    EXPECT_EQ(a(36), 1);
    EXPECT_EQ(a(32), 8) << "without the skew";
  }
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(wavefronts(access(1, [&](int lane) { return mma_b(lane, r).row * 36 + mma_b(lane, r).col; })).count, 1);
  for (int r = 0; r < 4; r += 2)
    EXPECT_EQ(wavefronts(access(2, [&](int lane) { return mma_c(lane, r).row * 136 + mma_c(lane, r).col; })).count, 2);
}

}  // namespace
}  // namespace ladder
