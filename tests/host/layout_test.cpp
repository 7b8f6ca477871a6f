// What headers and chapters say of the index maps in common/layout.h: every element once, and how many wavefronts.
#include "common/layout.h"

#include "common/banks.h"
#include "common/rung.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ladder {
namespace {

/// Tiles of A and B of 09b to 13: rows of the tile, bytes and chunks of 16 bytes per row.
constexpr int BM = 128, BK_BYTES = 128, CHUNKS = BK_BYTES / 16;

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

/// What a rung launches for its first type, whatever the size.
Resources resources_of(const std::string& number) {
  for (const Rung& rung : rungs())
    if (rung.number == number) return rung.resources({.m = 256, .n = 256, .k = 256, .type = rung.types.front()});
  ADD_FAILURE() << "no rung " << number;
  return {};
}

// The tiles of which the tests below speak are those that the kernels launch.
TEST(Tiles, AreThoseOfTheKernels) {
  for (const auto& [number, tile] : {std::pair{"03", tile_03}, {"04", tile_04}}) {
    const Resources launched = resources_of(number);
    EXPECT_EQ(launched.tile.m, tile.BM) << number;
    EXPECT_EQ(launched.tile.n, tile.BN) << number;
    EXPECT_EQ(launched.threads, tile.threads()) << number;
  }
  for (const auto& [number, tile] : {std::pair{"05", tile_05}, {"06", tile_06}, {"06b", tile_06b}, {"07", tile_06}}) {
    const Resources launched = resources_of(number);
    EXPECT_EQ(launched.tile.m, tile.BM) << number;
    EXPECT_EQ(launched.tile.n, tile.BN) << number;
    EXPECT_EQ(launched.tile.k, tile.BK) << number;
    EXPECT_EQ(launched.threads, tile.threads()) << number;
  }
  const Resources of_08 = resources_of("08");
  EXPECT_EQ(of_08.tile.m, tile_08.BM);
  EXPECT_EQ(of_08.tile.n, tile_08.BN);
  EXPECT_EQ(of_08.tile.k, tile_08.BK);
  EXPECT_EQ(of_08.threads, tile_08.threads());
  for (const char* number : {"09b", "09c", "10", "10b", "11", "12", "13"}) {
    const Resources launched = resources_of(number);
    EXPECT_EQ(launched.tile.m, BM) << number;
    EXPECT_EQ(launched.tile.k * 2, BK_BYTES) << number << ", whose first type has 16 bits";
  }
}

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
  for (int thread = 0; thread < t.threads(); ++thread) {
    for (int pass = 0; pass < t.BM * t.BK / 4 / t.threads(); ++pass) {
      const auto [m, k] = t.a_loaded(thread, pass);
      for (int i = 0; i < 4; ++i) a.take({m, k + i});
    }
    for (int pass = 0; pass < t.BN * t.BK / 4 / t.threads(); ++pass) {
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
  for (int thread = 0; thread < t.threads(); ++thread)
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
  for (int thread = 0; thread < t.threads(); ++thread) {
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
  for (int warp = 0; warp < t.threads() / 32; ++warp) {
    for (int pass = 0; pass < t.BM * t.BK / 4 / t.threads(); ++pass)
      for (int i = 0; i < 4; ++i) EXPECT_EQ(wavefronts(a_store(t, warp, pass, i)).count, c.a_store);
    for (int pass = 0; pass < t.BN * t.BK / 4 / t.threads(); ++pass)
      EXPECT_EQ(wavefronts(b_store(t, warp, pass)).count, c.b_store);
    for (int k = 0; k < t.BK; ++k) {
      for (int i = 0; i < t.TM; i += 4) {
        EXPECT_EQ(wavefronts(a_fragment(t, warp, k, i)).count, c.a_load);
        EXPECT_EQ(wavefronts(b_fragment(t, warp, k, i)).count, c.b_load);
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
    EXPECT_GE(wavefronts(a_store(t, 0, 0, 0)).count, wavefronts(a_store(tile_06b, 0, 0, 0)).count) << padding;
  }
  const SharedTile unaligned{16, 2, false, true};  // parts them, but 16-byte loads of its rows are not aligned
  EXPECT_EQ(wavefronts(a_store(unaligned, 0, 0, 0)).count, 1);
}

TEST(ThreadTile, CoversTheBlockOnce) {
  for (const ThreadTile& t : {tile_03, tile_04}) {
    Cover c(t.BM, t.BN);
    for (int thread = 0; thread < t.threads(); ++thread)
      for (int i = 0; i < t.TM; ++i)
        for (int j = 0; j < t.TN; ++j) c.take(t.result(thread, i, j));
    EXPECT_TRUE(c.once());
  }
}

TEST(Wavefronts, ScalarAccess) {
  EXPECT_EQ(wavefronts(warp_access(1, [](int lane) { return lane; })).count, 1);
  EXPECT_EQ(wavefronts(warp_access(1, [](int) { return 7; })).count, 1);  // broadcast
  EXPECT_EQ(wavefronts(warp_access(1, [](int lane) { return lane * 2; })).count, 2);
  EXPECT_EQ(wavefronts(warp_access(1, [](int lane) { return lane * 32; })).count, 32);
  EXPECT_EQ(wavefronts(warp_access(1, [](int lane) { return lane * 33; })).count, 1);
}

TEST(Wavefronts, WideAccess) {
  EXPECT_EQ(wavefronts(warp_access(2, [](int lane) { return lane * 2; })).count, 2);
  EXPECT_EQ(wavefronts(warp_access(4, [](int lane) { return lane * 4; })).count, 4);
  EXPECT_EQ(wavefronts(warp_access(4, [](int lane) { return lane / 2 * 4; })).count, 2);   // as lane ^ 1: merged
  EXPECT_EQ(wavefronts(warp_access(4, [](int lane) { return lane % 16 * 4; })).count, 4);  // as lane ^ 16: not
  EXPECT_EQ(wavefronts(warp_access(4, [](int lane) { return lane * 8; })).count, 8);
}

TEST(Wavefronts, NamesTheWavefrontOfEachLane) {
  const Wavefronts served = wavefronts(warp_access(1, [](int lane) { return lane * 16; }));
  EXPECT_EQ(served.count, 16);
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(served.of_lane[lane], lane / 2);
}

// 04 reads rB, 8 columns per lane, as two 16-byte loads, and rA two k at a time from rows 8 apart, 16 floats each.
TEST(Wavefronts, FragmentsOf04) {
  EXPECT_EQ(wavefronts(warp_access(4, [](int lane) { return lane % 16 * 8; })).count, 8);
  EXPECT_EQ(wavefronts(warp_access(2, [](int lane) { return lane / 16 * 8 * 16; })).count, 2);
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

// The formulas of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "... mma.m16n8k8", element
// by element. A word of A or B holds `each` elements, the first one in its lower half.
class Types : public testing::TestWithParam<int> {};

TEST_P(Types, FragmentsAreThoseOfThePtxIsa) {
  const int each = GetParam();
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 4 * each; ++i) {  // a_i
      const Coord at = mma_a(lane, i / each);
      if (each == 2) {
        EXPECT_EQ(at.row, (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8);
        EXPECT_EQ(at.col * each + i % each, in_group * 2 + (i & 1) + (i < 4 ? 0 : 8));
      } else {
        EXPECT_EQ(at.row, i == 0 || i == 2 ? group : group + 8);
        EXPECT_EQ(at.col, i == 0 || i == 1 ? in_group : in_group + 4);
      }
    }
    for (int i = 0; i < 2 * each; ++i) {  // b_i: mma_b names the column first
      const Coord at = mma_b(lane, i / each);
      EXPECT_EQ(at.row, group);
      EXPECT_EQ(at.col * each + i % each,
                each == 2 ? in_group * 2 + (i & 1) + (i < 2 ? 0 : 8) : in_group + (i == 0 ? 0 : 4));
    }
    for (int i = 0; i < 4; ++i) {  // c_i
      EXPECT_EQ(mma_c(lane, i).row, i < 2 ? group : group + 8);
      EXPECT_EQ(mma_c(lane, i).col, in_group * 2 + (i & 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MmaFragments, Types, testing::Values(1, 2),
                         [](const auto& each) { return each.param == 1 ? "Tf32" : "Of16Bits"; });

// 09b to 11: rows of sA and sB. 10b: rows of C of 136 floats.
TEST(MmaFragments, AreLoadedFromSkewedRowsWithoutConflicts) {
  const auto count = [](auto fragment, int r, int pitch) {
    return wavefronts(warp_access(1,
                                  [&](int lane) {
                                    const auto [row, word] = fragment(lane, r);
                                    return pitch_linear(row, word * 4, pitch) / 4;
                                  }))
        .count;
  };
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(count(mma_a, r, BK_BYTES + SKEW_BYTES), 1);
    EXPECT_EQ(count(mma_a, r, BK_BYTES), 8) << "without the skew";
  }
  for (int r = 0; r < 2; ++r) EXPECT_EQ(count(mma_b, r, BK_BYTES + SKEW_BYTES), 1);
  for (int r = 0; r < 4; r += 2)
    EXPECT_EQ(wavefronts(warp_access(2, [&](int lane) { return mma_c(lane, r).row * 136 + mma_c(lane, r).col; })).count,
              2);
}

// 14 to 16: vectors of C are `size` results, 4 in FP32 and 8 of 16 bits (16 deals in fours for its scratch in FP32).
class PermutedColumn : public testing::TestWithParam<int> {
 protected:
  static constexpr int WN = 64;                 // columns of C per warp
  int size() const { return GetParam(); }       // results of a lane side by side
  int quads() const { return 4 * GetParam(); }  // ... of the four lanes of a row
  /// Column of C, from the warp's first, of register `r` of the mma number `j`.
  int column(int lane, int j, int r) const { return permuted_column(j * 8 + mma_c(lane, r).col, size()); }
};

TEST_P(PermutedColumn, StaysInItsGroupAndIsThereOnce) {
  for (int group = 0; group < 256; group += quads()) {
    Cover columns(1, quads());
    for (int row = group; row < group + quads(); ++row) columns.take({0, permuted_column(row, size()) - group});
    EXPECT_TRUE(columns.once());
  }
}

TEST_P(PermutedColumn, GivesALaneNeighbouringResults) {
  for (int lane = 0; lane < 32; ++lane)
    for (int vector = 0; vector < 2 * WN / quads(); ++vector)  // by turns in rows g and g + 8, as the epilogue has them
      for (int e = 0; e < size(); ++e) {
        const int j = vector / 2 * size() / 2 + e / 2, r = vector % 2 * 2 + e % 2;
        EXPECT_EQ(mma_c(lane, r).row, lane / 4 + vector % 2 * 8);
        EXPECT_EQ(column(lane, j, r), vector / 2 * quads() + lane % 4 * size() + e);
      }
}

TEST_P(PermutedColumn, GivesTheFourLanesOfARowOneRun) {
  for (int lane = 0; lane < 32; lane += 4)
    for (int first = 0; first < WN / 8; first += size() / 2)  // mma
      for (int r = 0; r < 4; r += 2) {
        Cover run(1, quads());
        for (int t = 0; t < 4; ++t)
          for (int j = first; j < first + size() / 2; ++j)
            for (int q = r; q < r + 2; ++q) run.take({0, column(lane + t, j, q) - first * 8});
        EXPECT_TRUE(run.once());
      }
}

TEST_P(PermutedColumn, OfRowsAMultipleOfItsGroupApartIsThatFarApart) {  // so a thread's copies of B have one distance
  for (int row = 0; row < 128; ++row)
    for (int apart = 0; apart < 128; apart += 32)
      EXPECT_EQ(permuted_column(row + apart, size()), permuted_column(row, size()) + apart);
}

INSTANTIATE_TEST_SUITE_P(MmaFragments, PermutedColumn, testing::Values(4, 8));

// 15: tiles of C in groups of `group_size_m` tile rows; the last group may be lower.
TEST(Raster, GivesEveryTileOnce) {
  for (const int tiles_m : {1, 7, 8, 9, 32}) {
    for (const int tiles_n : {1, 5, 16}) {
      for (const int group_size_m : {1, 4, 8, 40}) {
        Cover c(tiles_m, tiles_n);
        for (int i = 0; i < tiles_m * tiles_n; ++i) c.take(raster(i, tiles_m, tiles_n, group_size_m));
        EXPECT_TRUE(c.once()) << tiles_m << " x " << tiles_n << " in groups of " << group_size_m;
      }
    }
  }
}

TEST(Raster, GoesDownAGroupThenOneToTheRight) {
  constexpr int M = 11, N = 6, GROUP = 4;  // groups of 4, 4 and 3 tile rows
  for (int i = 1; i < M * N; ++i) {
    const Coord last = raster(i - 1, M, N, GROUP), next = raster(i, M, N, GROUP);
    const int first_row = last.row / GROUP * GROUP, bottom = std::min(first_row + GROUP, M) - 1;
    if (last.row < bottom)
      EXPECT_EQ(next, (Coord{last.row + 1, last.col})) << i;
    else if (last.col < N - 1)
      EXPECT_EQ(next, (Coord{first_row, last.col + 1})) << i;
    else
      EXPECT_EQ(next, (Coord{bottom + 1, 0})) << i;
  }
  for (int i = 0; i < M * N; ++i) EXPECT_EQ(raster(i, M, N, 1), row_major(i, N)) << "groups of one row: row by row";
}

// 17: splits of K.
TEST(SliceOf, SlicesHaveEachKTileOnceAndAreEquallyLong) {
  for (const int k_tiles : {1, 2, 7, 64, 513})
    for (int splits = 1; splits <= std::min(k_tiles, 130); ++splits) {
      int next = 0;
      for (int i = 0; i < splits; ++i) {
        const KTileRange of_split = k_tiles_of_split(i, splits, k_tiles);
        EXPECT_EQ(of_split.first, next) << i << " of " << splits << " over " << k_tiles;
        EXPECT_GE(of_split.k_tiles, k_tiles / splits);
        EXPECT_LE(of_split.k_tiles, ceil_div(k_tiles, splits));
        next += of_split.k_tiles;
      }
      EXPECT_EQ(next, k_tiles);
    }
}

// 16: 16 rows of a warp's results as FP32.
class ScratchOffset : public testing::TestWithParam<int> {
 protected:
  int columns() const { return GetParam(); }
  /// Wavefronts of an access of 16 bytes per lane, to columns from `place(lane)` on.
  template <class Place>
  int count(Place place) const {
    return wavefronts(warp_access(4,
                                  [&](int lane) {
                                    const auto [row, col] = place(lane);
                                    return scratch_offset(row, col, columns()) / 4;
                                  }))
        .count;
  }
};

TEST_P(ScratchOffset, GivesEveryChunkAPlaceOfItsOwn) {
  Cover places(16, columns() / 4);
  for (int row = 0; row < 16; ++row) {
    for (int col = 0; col < columns(); col += 4) {
      const int byte = scratch_offset(row, col, columns());
      EXPECT_EQ(byte % 16, 0);
      EXPECT_EQ(byte / (columns() * 4), row);
      places.take({row, byte % (columns() * 4) / 16});
    }
  }
  EXPECT_TRUE(places.once());
}

TEST_P(ScratchOffset, IsWrittenAndReadWithoutConflicts) {
  for (int j = 0; j < columns() / 8; j += 2)  // two mma: with permuted columns, four neighbouring results of a lane
    for (int r = 0; r < 4; r += 2)
      EXPECT_EQ(count([&](int lane) { return Coord{mma_c(lane, r).row, j * 8 + lane % 4 * 4}; }), 4);
  for (const int size : {4, 8}) {  // results of 16 bytes of C: as many floats, four per load
    for (int first = 0; first < 16 * columns() / size; first += 32)
      for (int e = 0; e < size; e += 4)
        EXPECT_EQ(count([&](int lane) {
                    const auto [row, col] = row_major(first + lane, columns() / size);
                    return Coord{row, col * size + e};
                  }),
                  4)
            << size << " results per lane";
  }
}

INSTANTIATE_TEST_SUITE_P(Epilogue, ScratchOffset, testing::Values(32, 64, 128));

TEST(Swizzled, GivesEveryChunkAPlaceOfItsOwn) {
  Cover places(1, BM * CHUNKS);
  for (int row = 0; row < BM; ++row) {
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      const int byte = swizzle_128b(row, chunk);
      EXPECT_EQ(byte % 16, 0);
      EXPECT_EQ(byte / 128, row) << "a row stays one line";
      places.take({0, byte / 16});
    }
  }
  EXPECT_TRUE(places.once());
}

// 12: words of 4 bytes, each register of each fragment, at each of the 4 steps of 32 bytes along k, for all rows of a tile.
TEST(Swizzled, FragmentsAreLoadedWithoutConflicts) {
  for (int first = 0; first < BM; first += 8) {
    for (int k = 0; k < 128; k += 32) {
      const auto load = [&](auto fragment, int r) {
        return wavefronts(warp_access(1,
                                      [&](int lane) {
                                        const auto [row, word] = fragment(lane, r);
                                        return swizzle_128b(first + row, k / 16 + word / 4) / 4 + word % 4;
                                      }))
            .count;
      };
      for (int r = 0; r < 4 && first + 16 <= BM; ++r) EXPECT_EQ(load(mma_a, r), 1);
      for (int r = 0; r < 2; ++r) EXPECT_EQ(load(mma_b, r), 1);
    }
  }
}

// 11, 12: a warp copies 16 bytes per lane, four rows of 8 chunks. Free of conflicts by banks with the skew as with the XOR;
// but of 64 rows that a warp copies, 56 lie across two lines with the skew, and so chapter 12 counts 120 lines, not 64.
TEST(Swizzled, CopiesAreWrittenWithoutConflictsAndByWholeLines) {
  const auto skewed_chunk = [](int row, int chunk) { return pitch_linear(row, chunk * 16, BK_BYTES + SKEW_BYTES); };
  int lines_skewed = 0, lines_swizzled = 0;
  for (int first = 0; first < BM; first += 4) {
    const auto copy = [&](auto place) {
      return wavefronts(warp_access(4, [&](int lane) { return place(first + lane / 8, lane % 8) / 4; })).count;
    };
    EXPECT_EQ(copy(swizzle_128b), 4);
    EXPECT_EQ(copy(skewed_chunk), 4);
  }
  for (int row = 0; row < 64; ++row) {
    const auto lines = [&](auto place) {
      std::vector<bool> touched(144);
      for (int chunk = 0; chunk < CHUNKS; ++chunk) touched.at(static_cast<size_t>(place(row, chunk) / 128)) = true;
      return static_cast<int>(std::count(touched.begin(), touched.end(), true));
    };
    lines_skewed += lines(skewed_chunk), lines_swizzled += lines(swizzle_128b);
  }
  EXPECT_EQ(lines_skewed, 120);
  EXPECT_EQ(lines_swizzled, 64);
}

// 13: of A, matrices two down and two along k; of B, two along k and two across. Lane 8 i + g names row g of matrix i.
TEST(Ldmatrix, HandsOutFragmentsWithoutConflicts) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Coord a = ldsm_a(8 * i + lane / 4), b = ldsm_b(8 * i + lane / 4);  // whose word this lane receives
      EXPECT_EQ(a.row, mma_a(lane, i).row);
      EXPECT_EQ(a.col * 4 + lane % 4, mma_a(lane, i).col);
      EXPECT_EQ(b.row, i / 2 * 8 + mma_b(lane, i % 2).row);
      EXPECT_EQ(b.col * 4 + lane % 4, mma_b(lane, i % 2).col);
    }
  }
  for (int first = 0; first < BM; first += 16) {
    for (int k = 0; k < 128; k += 32) {
      const auto load = [&](auto row_of) {
        return wavefronts(warp_access(4,
                                      [&](int lane) {
                                        const auto [row, chunk] = row_of(lane);
                                        return (swizzle_128b(first + row, chunk) ^ k) / 4;
                                      }))
            .count;
      };
      EXPECT_EQ(load(ldsm_a), 4);
      EXPECT_EQ(load(ldsm_b), 4);
    }
  }
}

TEST(Ldmatrix, AStepAlongKIsAnXor) {
  for (int row = 0; row < BM; ++row)
    for (int chunk = 0; chunk < 2; ++chunk)
      for (int k = 0; k < 128; k += 32) EXPECT_EQ(swizzle_128b(row, chunk) ^ k, swizzle_128b(row, k / 16 + chunk));
}

TEST(RowTiles, CoverAGroupInAsFewTilesAsPossible) {
  for (const auto& [most, step] : {std::pair(256, 32), std::pair(192, 16), std::pair(128, 128)})
    for (int rows = 1; rows <= 1100; ++rows) {
      const auto [tiles, tile_rows] = row_tiles(rows, most, step);
      EXPECT_EQ(tiles, ceil_div(rows, most));
      EXPECT_LE(tile_rows, most);
      EXPECT_EQ(tile_rows % step, 0);
      EXPECT_GE(tiles * tile_rows, rows);
      EXPECT_LT((tiles - 1) * tile_rows, rows) << "the last tile begins inside of the group";
      EXPECT_LT(tiles * tile_rows - rows, tiles * step + tiles) << "what is computed in vain";
    }
  EXPECT_EQ(row_tiles(0, 256, 32), (RowTiles{0, 0}));
  EXPECT_EQ(row_tiles(257, 256, 32), (RowTiles{2, 160}));
}

}  // namespace
}  // namespace ladder
