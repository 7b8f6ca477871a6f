// Who computes what in 18 and 18f: whole tiles of C, or slices of them, and then a share of the k tiles of the tiles that are left.
// Plain C++, for host and device, with or without nvcc.
#pragma once

#include "common/layout.h"

namespace ladder {

/// A number of k tiles in parts that differ by one at most, the longer ones first: slice_of() with its divisions done before.
struct Parts {
  int least, longer;  ///< k tiles of a part; how many parts have one more

  constexpr Parts(int parts, int k_tiles) : least(k_tiles / parts), longer(k_tiles % parts) {}

  /// First k tile of part `i`.
  constexpr LADDER_HOST_DEVICE int first(int i) const { return i * least + (i < longer ? i : longer); }

  /// The part that has k tile `i`. There must be a k tile in every part.
  constexpr LADDER_HOST_DEVICE int part_of(int i) const {
    const int in_longer = longer * (least + 1);
    return i < in_longer ? i / (least + 1) : longer + (i - in_longer) / least;
  }
};

/// Block b first has the units b, b + blocks and so on, each a tile of C and a slice of K, as in 17. Then it has its share: the
/// k tiles of the other tiles of C, one tile after the other, are a row, and block b has part b of it.
struct Schedule {
  int blocks, k_tiles, slices;
  int units;         ///< of whole tiles of C: their number times `slices`
  int whole_waves;   ///< how many units every block has, where there are shares
  int shared_tiles;  ///< tiles of C that are shared; none where there is more than one slice
  Parts slice, share;

  /// Of c_tiles tiles the first whole_tiles are not shared: all of them, or a multiple of `blocks` and one slice.
  constexpr Schedule(int blocks, int c_tiles, int k_tiles, int slices, int whole_tiles)
      : blocks(blocks),
        k_tiles(k_tiles),
        slices(slices),
        units(whole_tiles * slices),
        whole_waves(units / blocks),
        shared_tiles(c_tiles - whole_tiles),
        slice(slices, k_tiles),
        share(blocks, shared_tiles * k_tiles) {}
};

/// Consecutive k tiles of one tile of C, the first counted from the end of K.
struct Segment {
  int c_tile, slice, first, k_tiles;
};

// [segment]
/// Segment number `i` of block `b`; it has no k tiles where the block has no more segments.
constexpr LADDER_HOST_DEVICE Segment segment_of(const Schedule& s, int b, int i) {
  if (const int unit = i * s.blocks + b; unit < s.units) {
    const int slice = unit % s.slices, first = s.slice.first(slice);
    return {unit / s.slices, slice, first, s.slice.first(slice + 1) - first};
  }
  if (s.shared_tiles == 0) return {};
  // Of the share, the last tile comes first: another block waits for its sums.
  const int begin = s.share.first(b), end = s.share.first(b + 1);
  const int tile = (end - 1) / s.k_tiles - (i - s.whole_waves), tile_begin = tile * s.k_tiles;
  const int first = begin > tile_begin ? begin : tile_begin;
  const int last = end < tile_begin + s.k_tiles ? end : tile_begin + s.k_tiles;
  return {s.units + tile, 0, first - tile_begin, last > first ? last - first : 0};
}
// [/segment]

/// The first block that has a part of `c_tile`, one of the shared tiles. The last one adds the sums of all.
constexpr LADDER_HOST_DEVICE int first_block_of(const Schedule& s, int c_tile) {
  return s.share.part_of((c_tile - s.units) * s.k_tiles);
}

}  // namespace ladder
