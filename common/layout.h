// Index maps: which element a thread takes, and where an element lies in shared memory. Plain constexpr C++, for host
// and device, with or without nvcc. The kernels call these functions (or, where a rung introduces one, write it out and
// tie it to this one with a static_assert), tests/host proves what the chapters say about them, and bench/maps.cpp
// prints them for the figures. How many wavefronts an access takes is in common/banks.h.
#pragma once

#if defined(__CUDACC__)
#define LADDER_HOST_DEVICE __host__ __device__
#else
#define LADDER_HOST_DEVICE
#endif

namespace ladder {

/// Threads for which launch bounds may ask an SM: 2048 where it can hold so many, else 1024, which every SM can.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 700 && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && \
    __CUDA_ARCH__ != 1000 && __CUDA_ARCH__ != 1030
inline constexpr int THREADS_PER_SM = 1024;
#else
inline constexpr int THREADS_PER_SM = 2048;
#endif

/// A place in a matrix or in a tile.
struct Coord {
  int row, col;
  constexpr bool operator==(const Coord&) const = default;
};

// --- who takes what

/// Place number `i` of a grid with `columns` columns, counted row by row. With i = threadIdx.x, neighbouring threads
/// take neighbouring columns.
constexpr LADDER_HOST_DEVICE Coord row_major(int i, int columns) { return {i / columns, i % columns}; }

/// First result of `thread` in a tile of C with `BN` columns, where every thread owns TM x TN results (03 with TN = 1,
/// 04 and 05). In 06 and 07 a thread owns 4 x 4 results in each quarter of the tile: BN / 2, 4, 4 gives the first of
/// them.
constexpr LADDER_HOST_DEVICE Coord thread_tile(int thread, int BN, int TM, int TN) {
  return {thread / (BN / TN) * TM, thread % (BN / TN) * TN};
}

/// The block's tile of C in 03 and 04 (05 has 04's), where every thread owns TM x TN neighbouring results.
struct ThreadTile {
  int BM, BN, TM, TN;

  constexpr int threads() const { return BM / TM * (BN / TN); }

  /// Place in the block's tile of C of result acc[i][j] of `thread`.
  constexpr Coord result(int thread, int i, int j) const {
    const auto [row, col] = thread_tile(thread, BN, TM, TN);
    return {row + i, col + j};
  }
};

inline constexpr ThreadTile tile_03{.BM = 64, .BN = 64, .TM = 8, .TN = 1};
inline constexpr ThreadTile tile_04{.BM = 128, .BN = 128, .TM = 8, .TN = 8};

/// Split thread tile (06): element `i` of the thread's 8 rows or columns, as a distance from its first. Four lie in the
/// first half of an extent (BM or BN), four in the second.
constexpr LADDER_HOST_DEVICE int split(int i, int extent) { return i / 4 * (extent / 2) + i % 4; }

/// Thread tile in a warp tile (08): row or column in the warp tile of element `i` of a lane's rows or columns. Each
/// group of four neighbours belongs to one lane; neighbouring groups belong to neighbouring ones of the `lanes`.
constexpr LADDER_HOST_DEVICE int spread(int lane, int i, int lanes) { return (i / 4 * lanes + lane) * 4 + i % 4; }

/// The block's tile of C in 08: warps row by row, the lanes of a warp down its columns, thread tiles by spread().
struct WarpTile {
  int BM, BN, BK, WM, WN, TM, TN;

  constexpr int threads() const { return BM / TM * (BN / TN); }
  constexpr int lane_rows() const { return WM / TM; }
  constexpr int lane_cols() const { return WN / TN; }

  /// First result of the thread's warp; the lane's row and column in the grid of thread tiles; the thread's first
  /// result.
  constexpr Coord warp_tile(int thread) const {
    const auto [warp_row, warp_col] = row_major(thread / 32, BN / WN);
    return {warp_row * WM, warp_col * WN};
  }
  constexpr Coord lane(int thread) const {
    const auto [lane_col, lane_row] = row_major(thread % 32, lane_rows());
    return {lane_row, lane_col};
  }
  constexpr Coord first_result(int thread) const { return result(thread, 0, 0); }

  /// Place in the block's tile of C of result acc[i][j] of `thread`.
  constexpr Coord result(int thread, int i, int j) const {
    const auto [row, col] = warp_tile(thread);
    const auto [lane_row, lane_col] = lane(thread);
    return {row + spread(lane_row, i, lane_rows()), col + spread(lane_col, j, lane_cols())};
  }
};

inline constexpr WarpTile tile_08{.BM = 128, .BN = 256, .BK = 8, .WM = 64, .WN = 64, .TM = 16, .TN = 8};

/// Order of the tiles of C (15): row and column, in tiles, of tile number `i`. The grid of tiles_m x tiles_n tiles is
/// cut into groups of `group_size_m` tile rows. The groups follow one another from top to bottom; in a group the tiles
/// are counted column by column, down before across. The last group may have fewer rows.
constexpr LADDER_HOST_DEVICE Coord raster(int i, int tiles_m, int tiles_n, int group_size_m) {
  const int group = i / (group_size_m * tiles_n), i_in_group = i % (group_size_m * tiles_n);
  const int first_row = group * group_size_m, rows_left = tiles_m - first_row;
  const int rows = rows_left < group_size_m ? rows_left : group_size_m;
  return {first_row + i_in_group % rows, i_in_group / rows};
}

// [row_tiles]
/// How the rows of a group are cut into tiles of rows of C (44): as few as have at most `most` rows, and all alike. A tile has a multiple of
/// `step` rows, which divides `most`; the last one may run over the group's end, but begins before it.
struct RowTiles {
  int tiles, rows;
  constexpr bool operator==(const RowTiles&) const = default;
};
constexpr LADDER_HOST_DEVICE RowTiles row_tiles(int rows, int most, int step) {
  const int tiles = rows / most + (rows % most != 0);
  if (tiles == 0) return {0, 0};
  const int mean = rows / tiles + (rows % tiles != 0);
  return {tiles, (mean + step - 1) / step * step};
}
// [/row_tiles]

/// The k tiles of a split (17): the first, and how many.
struct KTileRange {
  int first, k_tiles;
  constexpr bool operator==(const KTileRange&) const = default;
};

// [split]
/// The k tiles of split `i` of `splits`. Splits differ by one k tile at most, and the longer ones come first. Each has at least one where
/// splits <= k_tiles.
constexpr LADDER_HOST_DEVICE KTileRange k_tiles_of_split(int i, int splits, int k_tiles) {
  const int least = k_tiles / splits, longer = k_tiles % splits;  // so many have one more
  return {i * least + (i < longer ? i : longer), least + (i < longer)};
}
// [/split]

// --- FP32 tiles in shared memory

/// XOR swizzle of sA (06 to 08): the column of sA[k][...] that holds row m of A. One warp stores BK / 4 groups of four
/// k, from 128 / BK rows each. Flipping m by 128 / BK per group sends the groups to different banks. Whole runs of four
/// floats or more move together, so 16-byte loads along m still work.
constexpr LADDER_HOST_DEVICE int swizzled_column(int k, int m, int BK) { return m ^ (k / 4 * (128 / BK)); }

/// The shared tiles of 05, 06 and 06b, and who stores and loads what, for 128 x 128 results per block (07 has 06's
/// twice).
struct SharedTile {
  int BK;         ///< elements along k per tile
  int padding;    ///< unused floats after each row of sA
  bool swizzled;  ///< columns of sA by swizzled_column()
  bool halves;    ///< thread tiles by split(), otherwise 8 consecutive rows and columns

  static constexpr int BM = 128, BN = 128, TM = 8, TN = 8;
  static constexpr int threads() { return BM / TM * (BN / TN); }

  /// Words of sA and sB that hold A[m][k] and B[k][n] of the tile.
  constexpr int a_word(int m, int k) const { return k * (BM + padding) + (swizzled ? swizzled_column(k, m, BK) : m); }
  constexpr int b_word(int k, int n) const { return k * BN + n; }

  /// First of the four elements, along k, of the tile of A that `thread` loads from global memory in pass `pass`.
  constexpr Coord a_loaded(int thread, int pass) const {
    const auto [row, k4] = row_major(pass * threads() + thread, BK / 4);
    return {row, k4 * 4};
  }
  /// First of the four elements, along n, of the tile of B.
  constexpr Coord b_loaded(int thread, int pass) const {
    const auto [k, col4] = row_major(pass * threads() + thread, BN / 4);
    return {k, col4 * 4};
  }

  /// Place in the block's tile of C of result acc[i][j] of `thread`.
  constexpr Coord result(int thread, int i, int j) const {
    const Coord first = halves ? thread_tile(thread, BN / 2, 4, 4) : thread_tile(thread, BN, TM, TN);
    return {first.row + (halves ? split(i, BM) : i), first.col + (halves ? split(j, BN) : j)};
  }
};

inline constexpr SharedTile tile_05{.BK = 16, .padding = 0, .swizzled = false, .halves = false};
inline constexpr SharedTile tile_06{.BK = 16, .padding = 0, .swizzled = true, .halves = true};
inline constexpr SharedTile tile_06b{.BK = 16, .padding = 4, .swizzled = false, .halves = true};

// --- tiles in rows of 128 bytes along k (09a to 16)
//
// A chunk is 16 bytes along k, 8 of them per row: what one thread copies, and what one lane names to ldmatrix.

/// Skew (09b to 11): unused bytes after each row. They let eight neighbouring rows begin in different banks.
inline constexpr int SKEW_BYTES = 16;

/// Byte of a tile at which byte `byte` of row `row` lies, in rows that are `pitch` bytes apart.
constexpr LADDER_HOST_DEVICE int pitch_linear(int row, int byte, int pitch) { return row * pitch + byte; }

// [swizzle]
/// 128-byte swizzle (12 on; "128B swizzle mode" in PTX): byte of a tile at which chunk `chunk` of row `row` lies. The
/// XOR with the row's number sends the same chunk of eight neighbouring rows to the eight different 16-byte columns of
/// shared memory.
constexpr LADDER_HOST_DEVICE int swizzle_128b(int row, int chunk) { return row * 128 + (chunk ^ row % 8) * 16; }
// [/swizzle]

/// The same of rows of `pitch` bytes, 128, 64 or 32, as TMA has it (37): fewer chunks in a row, each in as many rows.
constexpr LADDER_HOST_DEVICE int swizzle(int row, int chunk, int pitch) {
  return row * pitch + (chunk ^ row * pitch / 128 % (pitch / 16)) * 16;
}

// --- fragments of mma.sync (PTX ISA, "Matrix Fragments for mma.m16n8k16"; 10)
//
// The registers of a fragment are 32-bit words: two 16-bit elements, or one TF32. In words the maps are the same for
// all types: every 8 x 4 words are one matrix, of which lane 4 g + t holds row g, word t.

// [fragments]
/// Row and word along k of register `r` (0 to 3) of A, 16 rows of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_a(int lane, int r) { return {lane / 4 + r % 2 * 8, lane % 4 + r / 2 * 4}; }

/// Column and word along k of register `r` (0 or 1) of B, 8 columns of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_b(int lane, int r) { return {lane / 4, lane % 4 + r * 4}; }

/// Row and column of register `r` (0 to 3) of C and D, 16 x 8 elements of FP32.
constexpr LADDER_HOST_DEVICE Coord mma_c(int lane, int r) { return {lane / 4 + r / 2 * 8, lane % 4 * 2 + r % 2}; }
// [/fragments]

/// Row and column of register `r` of an accumulator of wgmma (22), which a warpgroup holds: each of its warps (0 to 3) 16 rows, a lane four
/// of every 8 columns, as mma_c() has them.
constexpr LADDER_HOST_DEVICE Coord wgmma_c(int warp, int lane, int r) {
  return {warp * 16 + mma_c(lane, r % 4).row, r / 4 * 8 + mma_c(lane, r % 4).col};
}

// [ldsm]
/// The row of 16 bytes that a lane names to ldmatrix (13): row of A and chunk along k. Lanes 8 i to 8 i + 7 name matrix i, which goes to
/// register i. Two matrices are below one another, then two along k.
constexpr LADDER_HOST_DEVICE Coord ldsm_a(int lane) { return {lane % 16, lane / 16}; }

/// The same of B: column of B and chunk along k. Two matrices are along k, then two across: the two words of mma_b() of the first 8
/// columns, and those of the other 8.
constexpr LADDER_HOST_DEVICE Coord ldsm_b(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }
// [/ldsm]

/// Permuted columns of B (16): the column of B that lies in row `row` of its tile, so that the results of a lane in
/// `size` / 2 neighbouring mma are `size` neighbouring columns of C. Of every 4 x size columns, lane t of a quad gets
/// the t-th `size`: its pair of columns of the first mma, then of the second, and so on.
constexpr LADDER_HOST_DEVICE int permuted_column(int row, int size) {
  const int group = row / (4 * size) * (4 * size), mma = row % (4 * size) / 8, t = row % 8 / 2;
  return group + t * size + mma * 2 + row % 2;
}

/// Columns of B in the order in which ldmatrix names them (21): as permuted_column(), but lane t's pairs are taken in an order of
/// its own, by an XOR with t. Then the eight columns of an mma lie in rows of the tile that differ in row % 8, so that reading them
/// from a tile in the order of B takes one wavefront.
constexpr LADDER_HOST_DEVICE int pair_xor(int t, int size) { return t * size / 8; }
constexpr LADDER_HOST_DEVICE int named_column(int row, int size) {
  const int group = row / (4 * size) * (4 * size), mma = row % (4 * size) / 8, t = row % 8 / 2;
  return group + t * size + (mma ^ pair_xor(t, size)) * 2 + row % 2;
}

/// Scratch of an epilogue (16b): byte at which columns `col` to `col` + 3 of row `row` lie, as four floats; `col` is a
/// multiple of 4. The scratch has `columns` floats per row, a power of two from 32 on. Of eight lanes that access 16
/// bytes each at once, no two meet in a bank: not where they write four chunks in each of two rows, as lanes hold
/// permuted columns, nor where they read a row from end to end, every chunk of it (FP32) or every second one (results
/// of 16 bits).
constexpr LADDER_HOST_DEVICE int scratch_offset(int row, int col, int columns) {
  const int chunk = col / 4;  // of 16 bytes
  return row * columns * 4 + (chunk ^ chunk / 8 ^ row % 2 * 5) * 16;
}

}  // namespace ladder
