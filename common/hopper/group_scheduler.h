// How the blocks of a persistent kernel find their tiles in groups (problem.h). 44 writes it out; this is for the rungs after it.
#pragma once

#include "common/layout.h"
#include "common/rung.h"

namespace ladder {

/// A tile of C in a group.
struct GroupTile {
  int bm = 0;                ///< its rows, a multiple of Tile::WM; 0: there is no such tile
  int group = 0;             ///< whose B it multiplies by
  int row = 0, end_row = 0;  ///< of C; the last rows are not stored where the group has fewer
  int col = 0;
};

/// Finds a block's tiles by their number, in ascending order. They are counted group by group; in a group as raster() counts them, so
/// that tiles that read the same columns of B are neighbours. All lanes of a warp together.
template <class Tile>
class GroupScheduler {
 public:
  /// `first_row`: Problem::first_row, or null for one group of M rows.
  __device__ GroupScheduler(int M, int N, int groups, const int* first_row)
      : M_(M), tiles_n_(ceil_div(N, Tile::BN)), groups_(groups), first_row_(first_row) {}

  __device__ __forceinline__ GroupTile find(int c_tile) {
    const int lane = threadIdx.x % 32;
    for (; group_ < groups_; group_ += 32) {
      // Each lane looks at a group: how many tiles there are up to the end of it.
      const int first = row_of(group_ + lane), rows = row_of(group_ + lane + 1) - first;
      const RowTiles of_lane = row_tiles(rows, Tile::BM, Tile::WM);
      int up_to = of_lane.tiles * tiles_n_;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffff, up_to, distance);
        if (lane >= distance) up_to += below;
      }
      up_to += tiles_before_;
      const unsigned not_before = __ballot_sync(0xffffffff, up_to > c_tile);
      if (not_before != 0) {
        const int owner = __ffs(not_before) - 1;
        const auto of_owner = [&](int x) { return __shfl_sync(0xffffffff, x, owner); };
        group_ += owner;
        tiles_before_ = of_owner(up_to - of_lane.tiles * tiles_n_);
        const auto [i, j] = raster(c_tile - tiles_before_, of_owner(of_lane.tiles), tiles_n_, Tile::GROUP_SIZE_M);
        const int bm = of_owner(of_lane.rows), row = of_owner(first) + i * bm;
        return {bm, group_, row, min(row + bm, of_owner(first + rows)), j * Tile::BN};
      }
      tiles_before_ = __shfl_sync(0xffffffff, up_to, 31);
    }
    return {};
  }

  /// Tiles of all groups, once find() has found none.
  __device__ __forceinline__ int tiles() const { return tiles_before_; }

 private:
  /// The first row of a group; M after the last. One group has no list.
  __device__ __forceinline__ int row_of(int group) const {
    if (group >= groups_) return M_;
    return first_row_ == nullptr ? 0 : first_row_[group];
  }

  int M_, tiles_n_, groups_;
  const int* first_row_;
  int group_ = 0, tiles_before_ = 0;  // where the search goes on; tiles of the groups before that one
};

}  // namespace ladder
