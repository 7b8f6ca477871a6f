// Index maps of the FP32 rungs: which element a thread takes, and which word of shared memory each lane touches.
// The kernels use them, tests/host/layout_test.cpp proves what the chapters say of them, and bench/maps.cpp prints
// them for the figures. Plain constexpr C++: compiles with or without nvcc.
#pragma once

#if defined(__CUDACC__)
#define LADDER_HOST_DEVICE __host__ __device__
#else
#define LADDER_HOST_DEVICE
#endif

namespace ladder {

/// A place in a matrix or in a tile.
struct Coord {
  int row, col;
};

/// Place number `i` of a grid `columns` wide, counted row by row. With i = threadIdx.x this is how every rung deals out
/// its tiles: neighbouring threads take neighbouring columns.
constexpr LADDER_HOST_DEVICE Coord row_major(int i, int columns) { return {i / columns, i % columns}; }

/// Split thread tile (06): element `i` of the thread's 8 rows or columns, as a distance from its first: four in the first
/// half of an extent (BM or BN), four in the second.
constexpr LADDER_HOST_DEVICE int split(int i, int extent) { return i / 4 * (extent / 2) + i % 4; }

/// XOR swizzle (06): the column of sA[k][...] that holds row m of A. One warp stores BK / 4 groups of four k from
/// 128 / BK rows each; flipping m by 128 / BK for each group sends them to different banks. It moves whole runs of
/// four floats or more, so 16-byte loads along m still work.
constexpr LADDER_HOST_DEVICE int swizzle(int k, int m, int BK) { return m ^ (k / 4 * (128 / BK)); }

// How a rung lays out and reads its shared tiles, with 05 to 07's block of 128 x 128 and 8 x 8 results a thread.

/// What distinguishes 05, 06 and 06b; 07 is 06 twice.
struct SharedTile {
  int BK;         ///< k a tile
  int padding;    ///< floats after each row of sA
  bool swizzled;  ///< columns of sA by swizzle()
  bool halves;    ///< thread tiles by split(), otherwise 8 consecutive rows and columns

  static constexpr int BM = 128, BN = 128, THREADS = 256;

  /// Word of sA that holds A[m][k] of the tile.
  constexpr int a_word(int k, int m) const { return k * (BM + padding) + (swizzled ? swizzle(k, m, BK) : m); }

  /// Word of sB that holds B[k][n] of the tile.
  constexpr int b_word(int k, int n) const { return k * BN + n; }

  /// First of the four elements of A (row m, column k) that `thread` loads in pass `pass`.
  constexpr Coord a_load(int thread, int pass = 0) const { return four(thread + pass * THREADS, BK); }

  /// First of the four elements of B (row k, column n) that `thread` loads in pass `pass`.
  constexpr Coord b_load(int thread, int pass = 0) const { return four(thread + pass * THREADS, BN); }

  /// Place in the block's tile of C of result (i, j) of `thread`.
  constexpr Coord result(int thread, int i, int j) const {
    const Coord at = row_major(thread, 16);
    return halves ? Coord{at.row * 4 + split(i, BM), at.col * 4 + split(j, BN)} : Coord{at.row * 8 + i, at.col * 8 + j};
  }

 private:
  static constexpr Coord four(int i, int columns) {
    const Coord at = row_major(i, columns / 4);
    return {at.row, at.col * 4};
  }
};

inline constexpr SharedTile tile_05{8, 0, false, false};
inline constexpr SharedTile tile_06{8, 0, true, true};
inline constexpr SharedTile tile_06b{8, 4, false, true};

/// Shared memory has 32 banks, each one 4-byte word wide.
inline constexpr int BANKS = 32;

/// First word that each lane of a warp touches in one shared load or store.
struct WarpAccess {
  int word[32];
};

/// Wavefronts (passes through shared memory, one clock each) of one warp's access of 4, 8 or 16 bytes a lane.
///
/// The model. In one wavefront each bank delivers one word, to as many lanes as ask for it. A 4-byte access takes the
/// 32 lanes at once, an 8-byte access 16, a 16-byte access 8, so that conflict-free is 1, 2 and 4 wavefronts. Each group
/// needs as many as its busiest bank has different words. If in an 8- or 16-byte access all lanes ask for the
/// same words as lane ^ 1, or all as lane ^ 2, the groups are twice as large. CUDA's documentation gives the rule for 4
/// bytes; the rest is what Nsight Compute counts on sm_80 and sm_90.
constexpr int wavefronts(const WarpAccess& access, int width_bytes) {
  const int width = width_bytes / 4;
  const auto pairs = [&](int mask) {
    for (int lane = 0; lane < 32; ++lane)
      if (access.word[lane] != access.word[lane ^ mask]) return false;
    return true;
  };
  const int lanes = width == 1 ? 32 : 32 / width * (pairs(1) || pairs(2) ? 2 : 1);
  int total = 0;
  for (int first = 0; first < 32; first += lanes) {
    int busiest = 0;
    for (int bank = 0; bank < BANKS; ++bank) {
      int seen[32 * 4] = {}, different = 0;
      for (int lane = first; lane < first + lanes; ++lane) {
        for (int i = 0; i < width; ++i) {
          const int word = access.word[lane] + i;
          bool known = word % BANKS != bank;
          for (int s = 0; s < different && !known; ++s) known = seen[s] == word;
          if (!known) seen[different++] = word;
        }
      }
      busiest = different > busiest ? different : busiest;
    }
    total += busiest;
  }
  return total;
}

}  // namespace ladder
