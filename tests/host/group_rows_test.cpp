// Groups: every row belongs to one, in order, whatever the distribution.
#include "common/harness/group_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

#include "common/layout.h"
#include "common/scales.h"

namespace ladder {
namespace {

std::vector<int> rows_of(int m, int groups, GroupRows rows, uint64_t seed = 1) {
  const std::vector<int> first = first_rows(m, groups, rows, seed);
  EXPECT_EQ(first.size(), groups + 1U);
  EXPECT_EQ(first.front(), 0);
  EXPECT_EQ(first.back(), m);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  std::vector<int> found;
  for (int group = 0; group < groups; ++group) found.push_back(first[group + 1] - first[group]);
  return found;
}

TEST(GroupRows, CoverAllRowsInOrder) {
  for (const GroupRows rows : {GroupRows::equal, GroupRows::random, GroupRows::one})
    for (const int m : {1, 2, 7, 49, 1000, 8192, 999'999'937})
      for (const int groups : {1, 2, 7, 49, 64, 1000})
        for (const uint64_t seed : {1, 2, 3}) rows_of(m, groups, rows, seed);
}

TEST(GroupRows, EqualOnesDifferByOne) {
  for (const int groups : {3, 49, 64}) {
    const std::vector<int> rows = rows_of(1000, groups, GroupRows::equal);
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
    EXPECT_LE(*most - *least, 1);
  }
  EXPECT_EQ(rows_of(8192, 64, GroupRows::equal), std::vector<int>(64, 128));
}

/// The example of chapter 44: its groups, and the rows of their tiles, with what the last one has too many.
TEST(GroupRows, ExampleOf44) {
  const std::vector<int> rows = rows_of(8192, 64, GroupRows::random);
  EXPECT_EQ(std::ranges::count(rows, 0), 7);
  EXPECT_EQ(std::ranges::max(rows), 318);
  EXPECT_EQ(std::ranges::min(rows | std::views::filter([](int of_group) { return of_group > 0; })), 22);
  const auto multiplied = [&](int most, int step) {
    int sum = 0;
    for (const int of_group : rows) sum += row_tiles(of_group, most, step).tiles * row_tiles(of_group, most, step).rows;
    return sum;
  };
  EXPECT_EQ(multiplied(256, 16), 8592);
  EXPECT_EQ(multiplied(256, 32), 9056);
  EXPECT_EQ(multiplied(128, 128), 11904);
  EXPECT_EQ(multiplied(256, 256), 16128);
  int tiles = 0;  // one above the other
  for (const int of_group : rows) tiles += row_tiles(of_group, 256, 32).tiles;
  EXPECT_EQ(tiles, 63);
}

/// The example of chapter 46: the same rows in tiles of up to 192, 64 for each warpgroup.
TEST(GroupRows, ExampleOf46) {
  int tiles = 0, multiplied = 0;
  std::vector<int> with(4);  // so many warpgroups have rows
  for (const int of_group : rows_of(8192, 64, GroupRows::random)) {
    const RowTiles of = row_tiles(of_group, 192, 64);
    tiles += of.tiles;
    for (int row = 0; row < of_group; row += of.rows) {
      const int warpgroups = (std::min(of.rows, of_group - row) + 63) / 64;
      ++with[warpgroups], multiplied += warpgroups * 64;
    }
  }
  EXPECT_EQ(tiles, 73);
  EXPECT_EQ(with, std::vector<int>({0, 13, 40, 20}));
  EXPECT_EQ(multiplied, 9792);
}

TEST(GroupRows, RandomOnesAreUpToAboutTwiceTheMeanAndSomeAreNone) {
  const std::vector<int> rows = rows_of(100'000, 1000, GroupRows::random);
  EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 220);
  const auto none = std::count(rows.begin(), rows.end(), 0);
  EXPECT_GT(none, 30);
  EXPECT_LT(none, 100);
  EXPECT_EQ(rows, rows_of(100'000, 1000, GroupRows::random));
  EXPECT_NE(rows, rows_of(100'000, 1000, GroupRows::random, 2));
}

TEST(GroupRows, OneHasAll) {
  EXPECT_EQ(rows_of(5, 4, GroupRows::one), std::vector<int>({0, 0, 5, 0}));
  EXPECT_EQ(rows_of(5, 1, GroupRows::one), std::vector<int>({5}));
}

TEST(Products, AreThoseOfTheGroupsThatHaveRows) {
  float a[6 * 3], b[3 * 4 * 3], c[6 * 4];
  Problem p{.m = 6, .n = 4, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 3, .c = c, .ldc = 4};
  p.layout_b = MatrixLayout::col_major;
  EXPECT_EQ(products(p).size(), 1U);
  EXPECT_EQ(products(p).front().m, 6);
  p.groups = 3;
  const std::vector<Problem> found = products(p, {0, 2, 2, 6});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].m, 2);
  EXPECT_EQ(found[0].b, b);
  EXPECT_EQ(found[1].m, 4);
  EXPECT_EQ(found[1].groups, 0);
  EXPECT_EQ(found[1].a, a + 2 * 3);
  EXPECT_EQ(found[1].b, b + 2 * 4 * 3);
  EXPECT_EQ(found[1].c, c + 2 * 4);
}

TEST(Products, HaveTheirScales) {
  float scale_a[2 * 8], scale_b[3 * 2 * 4];
  Problem p{.m = 6, .n = 200, .k = 200, .type = Type::e4m3, .lda = 200, .ldb = 200, .ldc = 200};
  p.layout_b = MatrixLayout::col_major;
  p.scale_a = scale_a, p.scale_b = scale_b, p.groups = 3;
  const auto last = [&](Scales scales) {
    p.scales = scales;
    return products(p, {0, 2, 2, 6})[1];
  };
  EXPECT_EQ(last(Scales::blocks).scale_a, scale_a + 2);  // row 2
  EXPECT_EQ(last(Scales::blocks).scale_b, scale_b + 2 * scale_floats_b(Scales::blocks, 200, 200));
  EXPECT_EQ(last(Scales::rows).scale_a, scale_a + 2);
  EXPECT_EQ(last(Scales::tensor).scale_a, scale_a);
  EXPECT_EQ(last(Scales::tensor).scale_b, scale_b);
}

}  // namespace
}  // namespace ladder
