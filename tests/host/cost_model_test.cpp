#include "common/hopper/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ladder {
namespace {

// Round numbers, so that a reader can follow them.
constexpr CostConstants constants{.launch_us = 5,
                                  .cluster_clocks = 2000,
                                  .turn_clocks = 20,
                                  .received_per_clock = 64,
                                  .asked_unaligned = 16,
                                  .cooperative = 1.25,
                                  .epilogue_clocks = 0.125,
                                  .small_boxes = 1.5,
                                  .exposed = 0.25,
                                  .exchange_clocks = 3000,
                                  .exchange_per_result = 0.5};
constexpr Card card{.clocks_per_us = 1000, .dram_bytes_per_us = 0};

/// 256 x 256 results of 16 bits, 10 k tiles.
TiledProduct product() {
  return {.rows = 256, .columns = 256, .k_tiles = 10, .aligned = true, .bytes = 1e6, .result_size = 2};
}

/// 128 x 128 results: four tiles of product(), and room for as many blocks.
Tiling tiling() {
  return {.bm = 128,
          .bn = 128,
          .cluster_m = 1,
          .cluster_n = 1,
          .clusters = 4,
          .ping_pong = false,
          .splits = 1,
          .small_boxes = false};
}

constexpr double results = 128 * 128;
constexpr double epilogue = 0.125 * results;
/// Clocks of a k tile. To multiply takes 128 x 128 / 32 of them, to receive 256 rows of 128 bytes at 64 bytes per clock as many.
const double longest = 512 * std::pow(2, 0.25), k_tile = 1.25 * longest;

double clocks(const TiledProduct& product, const Tiling& tiling) {
  return (predicted_us(product, tiling, card, constants) - 5) * 1000;
}

TEST(CostModel, AddsUpWhatABlockDoes) {
  EXPECT_NEAR(predicted_us(product(), tiling(), card, constants), 5 + (10 * k_tile + epilogue) / 1000, 1e-9);
}

TEST(CostModel, ResultsOfTwiceTheSizeTakeTwiceTheEpilogue) {
  TiledProduct wide = product();
  wide.result_size = 4;
  EXPECT_NEAR(clocks(wide, tiling()) - clocks(product(), tiling()), epilogue, 1e-6);
}

TEST(CostModel, AWaveMoreCostsAsMuchAsTheFirst) {
  TiledProduct twice = product();
  twice.rows = 512;
  EXPECT_NEAR(clocks(twice, tiling()), 2 * clocks(product(), tiling()), 1e-6);
  double before = 0;
  for (int rows = 128; rows <= 2048; rows += 128) {
    twice.rows = rows;
    EXPECT_GE(clocks(twice, tiling()), before) << rows << " rows";
    before = clocks(twice, tiling());
  }
}

TEST(CostModel, FewBlocksReceiveFaster) {
  Tiling roomy = tiling();
  roomy.clusters = 8;  // half of them work
  EXPECT_NEAR(clocks(product(), roomy), 10 * (1.25 * 512 * std::pow(1 + 1 / 16.0, 0.25)) + epilogue, 1e-6);
  TiledProduct second_wave = product();
  second_wave.rows = 768;  // four blocks in a wave after others receive no faster
  EXPECT_NEAR(clocks(second_wave, roomy), 2 * (10 * k_tile + epilogue), 1e-6);
}

TEST(CostModel, RowsThatAreNotThereAreNotReceived) {
  TiledProduct low = product();
  low.rows = 64, low.columns = 512;  // one row of four tiles, each with half of its rows
  EXPECT_NEAR(clocks(low, tiling()), 10 * (1.25 * 512 * std::pow(1 + std::pow(0.75, 4), 0.25)) + epilogue, 1e-6);
}

TEST(CostModel, UnalignedRowsCostMore) {
  TiledProduct unaligned = product();
  unaligned.aligned = false;  // 256 rows of 128 bytes at 16 bytes per clock
  const double asked = 2048;
  EXPECT_NEAR(clocks(unaligned, tiling()),
              10 * (1.25 * std::pow(std::pow(512, 4) + std::pow(asked, 4), 0.25)) + epilogue, 1e-6);
  Tiling cluster = tiling();
  cluster.cluster_m = cluster.cluster_n = 2, cluster.clusters = 1;
  EXPECT_LT(clocks(unaligned, cluster), clocks(unaligned, tiling())) << "a block of four asks for half as much";
}

TEST(CostModel, ClustersBeginLater) {
  Tiling cluster = tiling();
  cluster.cluster_n = 2, cluster.clusters = 2;
  EXPECT_NEAR(clocks(product(), cluster) - clocks(product(), tiling()), 2000, 1e-6);
}

TEST(CostModel, SplitsAddTheExchange) {
  TiledProduct twice = product();
  twice.k_tiles = 20;
  Tiling split = tiling();
  split.splits = 2, split.clusters = 8;  // both halves at once
  const double exchange = 2 * 3000 + 0.5 * results;
  EXPECT_NEAR(clocks(twice, split) - clocks(product(), tiling()), exchange, 1e-6);
  Card stated = card;
  stated.dram_bytes_per_us = 1e5;  // the exchange comes after the copies, so DRAM hides none of it
  const auto with_dram = [&](const TiledProduct& product, const Tiling& tiling) {
    return predicted_us(product, tiling, stated, constants) * 1000;
  };
  split.clusters = 4, twice.rows = 128;  // as many blocks as without splits
  Tiling whole = tiling();
  TiledProduct as_long = product();
  as_long.bytes = twice.bytes;
  EXPECT_NEAR(with_dram(twice, split) - with_dram(as_long, whole), exchange, 1e-6);
}

TEST(CostModel, SmallBoxesMakeTheEpilogueLonger) {
  Tiling small = tiling();
  small.small_boxes = true;
  EXPECT_NEAR(clocks(product(), small) - clocks(product(), tiling()), 0.5 * epilogue, 1e-6);
}

TEST(CostModel, PingPongHidesMostOfAllEpiloguesButTheLast) {
  Tiling ping_pong = tiling();
  ping_pong.ping_pong = true;
  const double k_tile_of_one = 20 + longest;
  EXPECT_NEAR(clocks(product(), ping_pong), 10 * k_tile_of_one + epilogue, 1e-6);
  TiledProduct waves = product();
  waves.rows = 768;
  EXPECT_NEAR(clocks(waves, ping_pong), 3 * 10 * k_tile_of_one + (2 * 0.25 + 1) * epilogue, 1e-6);
}

TEST(CostModel, DramOverlapsWithTheRest) {
  const double busy = (10 * k_tile + epilogue) / 1000;
  Card stated = card;
  stated.dram_bytes_per_us = 1e5;  // 10 us
  EXPECT_NEAR(predicted_us(product(), tiling(), stated, constants),
              5 + std::pow(std::pow(busy, 2.5) + std::pow(10, 2.5), 0.4), 1e-9);
  stated.dram_bytes_per_us = 0;  // not stated
  EXPECT_NEAR(predicted_us(product(), tiling(), stated, constants), 5 + busy, 1e-9);
}

}  // namespace
}  // namespace ladder
