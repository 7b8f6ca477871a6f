// How long a product takes with a tile, predicted from counts: what 33 chooses by. For the host; bench/fit_cost_model.py fits the
// constants.
#pragma once

#include <algorithm>
#include <cmath>

#include "common/rung.h"

namespace ladder {

/// A product D = A B as tiles see it: D is C, or with operands swapped its transpose.
struct TiledProduct {
  int rows, columns;   ///< of D
  int k_tiles;         ///< of 128 bytes along K
  bool aligned;        ///< no row of either operand crosses a line of 128 bytes that it does not fill
  double bytes;        ///< of A, B and C, each once
  double result_size;  ///< bytes per result
};

/// How a kernel computes the tiles of D.
struct Tiling {
  int bm, bn;                ///< rows and columns of a block's tile
  int cluster_m, cluster_n;  ///< blocks of a cluster: one above the other they share B's tile, side by side A's
  int clusters;              ///< that can be resident at once
  bool ping_pong;    ///< one warpgroup multiplies while the other stores: most of all epilogues but the last is hidden
  int splits;        ///< of K over the grid, by different blocks; 1: none
  bool small_boxes;  ///< TMA stores C in boxes of 32 bytes per row, or of FP32 with operands swapped
};

/// What a kernel reaches on a card.
struct Card {
  double clocks_per_us;      ///< of the SMs
  double dram_bytes_per_us;  ///< 0: not stated
};

// [cost]
/// Fitted to times on an H100 and an H200 by bench/fit_cost_model.py. Chosen are the powers below, 4 and 2.5, and the clock
/// (CLOCK_REACHED in 33). All else are counts, and what the driver says of the card.
struct CostConstants {
  double launch_us = 5.11;             ///< from event to event, of a product of nearly nothing
  double cluster_clocks = 1499;        ///< until the blocks of a cluster can begin
  double turn_clocks = 33.7;           ///< of each k tile, where one warpgroup multiplies
  double received_per_clock = 69.1;    ///< bytes that an SM gets into shared memory while all SMs do
  double asked_unaligned = 33.4;       ///< bytes per clock that it asks L2 for, where rows cross lines of 128 bytes
  double cooperative = 1.080;          ///< times the clocks of a k tile, where warpgroups share it
  double epilogue_clocks = 0.0915;     ///< per result of 16 bits
  double small_boxes = 1.38;           ///< times these, where TMA stores small boxes
  double exposed = 0.277;              ///< part of an epilogue that the other warpgroup's k tiles do not hide
  double exchange_clocks = 14.0;       ///< of partial sums over the grid, for each split
  double exchange_per_result = 0.583;  ///< likewise, for each result of a tile
};

/// Microseconds of the product with this tiling.
inline double predicted_us(const TiledProduct& product, const Tiling& tiling, const Card& card,
                           const CostConstants& cost = {}) {
  const int tiles_m = ceil_div(product.rows, tiling.cluster_m * tiling.bm);
  const int tiles_n = ceil_div(product.columns, tiling.cluster_n * tiling.bn);
  const int work = tiles_m * tiles_n * tiling.splits;  // of clusters
  const int full_waves = (work - 1) / tiling.clusters;
  const double filled = static_cast<double>(work - full_waves * tiling.clusters) / tiling.clusters;  // of the last
  const int k_tiles = ceil_div(product.k_tiles, tiling.splits);

  const double results = static_cast<double>(tiling.bm) * tiling.bn;
  const double multiply = results / 32;  // 2048 multiply-adds of 16 bits per clock, and 64 of them along K
  const int rows = std::min(tiling.bm, product.rows), columns = std::min(tiling.bn, product.columns);
  const double receive = (rows + columns) * 128 / cost.received_per_clock;
  const double ask =
      product.aligned ? 0 : (rows / tiling.cluster_n + columns / tiling.cluster_m) * 128 / cost.asked_unaligned;
  const auto fourth = [](double x) { return x * x * x * x; };
  const auto k_tile =
      [&](double busy) {  // clocks, with this part of the SMs at work: about those of what takes longest
        const double longest = std::sqrt(std::sqrt(fourth(multiply) + fourth(std::max(receive * busy, ask))));
        return tiling.ping_pong ? cost.turn_clocks + longest : cost.cooperative * longest;
      };
  const double epilogue =
      cost.epilogue_clocks * product.result_size / 2 * results * (tiling.small_boxes ? cost.small_boxes : 1);
  const double clocks = full_waves * (k_tiles * k_tile(1) + (tiling.ping_pong ? cost.exposed : 1) * epilogue) +
                        k_tiles * k_tile(full_waves > 0 ? 1 : filled) + epilogue +
                        (tiling.cluster_m * tiling.cluster_n > 1 ? cost.cluster_clocks : 0);
  // The exchange comes after the last copy, so it does not overlap with DRAM.
  const double exchange =
      tiling.splits > 1 ? tiling.splits * cost.exchange_clocks + cost.exchange_per_result * results : 0;

  const double computing = clocks / card.clocks_per_us;
  const double dram =
      card.dram_bytes_per_us > 0 ? product.bytes / card.dram_bytes_per_us : 0;  // 0: its rate is not stated
  const auto power = [](double x) { return x * x * std::sqrt(x); };
  return cost.launch_us + std::pow(power(computing) + power(dram), 0.4) + exchange / card.clocks_per_us;
}
// [/cost]

}  // namespace ladder
