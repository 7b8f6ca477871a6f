// Who computes what in 18, 18f and 37. Data-parallel work tiles, as in 17, come first: whole tiles of C, or splits of them. The k tiles
// of the remaining tiles of C are stream-K: every block gets an equal number of them. Plain C++, for host and device, with or without nvcc.
#pragma once

#include "common/layout.h"

namespace ladder {

/// A number of k tiles in parts that differ by one at most, the longer ones first: k_tiles_of_split() with its divisions done before.
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

/// Block b first has the work tiles b, b + blocks and so on. Then it has its part of the stream-K k tiles: those of the remaining tiles of
/// C, one tile after the other, are numbered through, and block b has part b.
struct Schedule {
  int blocks, k_tiles, splits;
  int work_tiles;      ///< data-parallel ones: tiles of C times `splits`
  int whole_waves;     ///< how many work tiles every block has, where there are stream-K tiles
  int stream_k_tiles;  ///< tiles of C whose k tiles are dealt out; none where there is more than one split
  Parts split, stream_k;

  /// Of c_tiles tiles the first whole_tiles are data-parallel: all of them, or a multiple of `blocks` and one split.
  constexpr Schedule(int blocks, int c_tiles, int k_tiles, int splits, int whole_tiles)
      : blocks(blocks),
        k_tiles(k_tiles),
        splits(splits),
        work_tiles(whole_tiles * splits),
        whole_waves(work_tiles / blocks),
        stream_k_tiles(c_tiles - whole_tiles),
        split(splits, k_tiles),
        stream_k(blocks, stream_k_tiles * k_tiles) {}
};

/// What a block computes at a time: consecutive k tiles of one tile of C, the first counted from the end of K.
struct WorkUnit {
  int c_tile, split, first, k_tiles;
};

// [work-unit]
/// Work unit number `i` of block `b`; it has no k tiles where the block has no more work units.
constexpr LADDER_HOST_DEVICE WorkUnit work_unit_of(const Schedule& s, int b, int i) {
  if (const int work_tile = i * s.blocks + b; work_tile < s.work_tiles) {
    const int split = work_tile % s.splits, first = s.split.first(split);
    return {work_tile / s.splits, split, first, s.split.first(split + 1) - first};
  }
  if (s.stream_k_tiles == 0) return {};
  // Of the block's stream-K k tiles those of the last tile come first: another block waits for their partial sums.
  const int begin = s.stream_k.first(b), end = s.stream_k.first(b + 1);
  const int tile = (end - 1) / s.k_tiles - (i - s.whole_waves), tile_begin = tile * s.k_tiles;
  const int first = begin > tile_begin ? begin : tile_begin;
  const int last = end < tile_begin + s.k_tiles ? end : tile_begin + s.k_tiles;
  return {s.work_tiles + tile, 0, first - tile_begin, last > first ? last - first : 0};
}
// [/work-unit]

/// The first block that has k tiles of `c_tile`, one of the stream-K tiles. The last such block adds the partial sums of all.
constexpr LADDER_HOST_DEVICE int first_block_of(const Schedule& s, int c_tile) {
  return s.stream_k.part_of((c_tile - s.work_tiles) * s.k_tiles);
}

}  // namespace ladder
