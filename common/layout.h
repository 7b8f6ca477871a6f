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

/// Threads for which launch bounds may ask an SM: 2048 where it can hold so many, else 1024, which every SM can.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 700 && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && \
    __CUDA_ARCH__ != 1000 && __CUDA_ARCH__ != 1030
inline constexpr int THREADS_AN_SM = 1024;
#else
inline constexpr int THREADS_AN_SM = 2048;
#endif

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

/// Shared memory has 32 banks, each one 4-byte word wide.
inline constexpr int BANKS = 32;

/// One shared load or store of a warp.
struct WarpAccess {
  int width;     ///< words a lane: 1, 2 or 4, side by side
  int word[32];  ///< each lane's first word
};

/// In which wavefront (pass through shared memory, one clock each) each lane of an access is served, and how many there are.
struct Wavefronts {
  int of_lane[32];
  int count;
};

/// The model. In one wavefront a bank delivers one word, to all lanes that ask for it. A 4-byte access takes the 32
/// lanes at once, an 8-byte access 16, a 16-byte access 8, so conflict-free is 1, 2 and 4 wavefronts; each of these
/// groups needs as many as its busiest bank has different words. If all lanes ask for the same words as lane ^ 1, or all
/// as lane ^ 2, the groups of an 8- or 16-byte access are twice as large. CUDA's documentation states the rule for 4
/// bytes; the rest is a model of what the hardware's counters show.
constexpr Wavefronts wavefronts(const WarpAccess& access) {
  const auto in_pairs = [&](int mask) {
    for (int lane = 0; lane < 32; ++lane)
      if (access.word[lane] != access.word[lane ^ mask]) return false;
    return true;
  };
  const int group = access.width == 1 ? 32 : 32 / access.width * (in_pairs(1) || in_pairs(2) ? 2 : 1);
  Wavefronts result{};
  for (int first = 0; first < 32; first += group) {
    int seen[BANKS][32] = {}, different[BANKS] = {};  // the words asked of each bank, in lane order
    int busiest = 0;
    for (int lane = first; lane < first + group; ++lane) {
      int turn = 0;
      for (int word = access.word[lane]; word < access.word[lane] + access.width; ++word) {
        const int bank = word % BANKS;
        int i = 0;
        while (i < different[bank] && seen[bank][i] != word) ++i;
        if (i == different[bank]) seen[bank][different[bank]++] = word;
        turn = i > turn ? i : turn;
        busiest = different[bank] > busiest ? different[bank] : busiest;
      }
      result.of_lane[lane] = result.count + turn;
    }
    result.count += busiest;
  }
  return result;
}

/// How 05, 06 and 06b lay out their shared tiles and share out their block of 128 x 128 results; 07 is 06 twice over.
struct SharedTile {
  int BK;         ///< k held at a time
  int padding;    ///< unused floats after each row of sA
  bool swizzled;  ///< columns of sA by swizzle()
  bool halves;    ///< thread tiles by split(), otherwise 8 consecutive rows and columns

  static constexpr int BM = 128, BN = 128, TM = 8, TN = 8, THREADS = 256;

  /// Words of sA and sB that hold A[m][k] and B[k][n] of the tile.
  constexpr int a_word(int m, int k) const { return k * (BM + padding) + (swizzled ? swizzle(k, m, BK) : m); }
  constexpr int b_word(int k, int n) const { return k * BN + n; }

  /// First of the four elements, along k, of the tile of A that `thread` loads from global memory in pass `pass`.
  constexpr Coord a_loaded(int thread, int pass) const {
    const auto [row, k4] = row_major(pass * THREADS + thread, BK / 4);
    return {row, k4 * 4};
  }
  /// First of the four elements, along n, of the tile of B.
  constexpr Coord b_loaded(int thread, int pass) const {
    const auto [k, col4] = row_major(pass * THREADS + thread, BN / 4);
    return {k, col4 * 4};
  }

  /// Place in the block's tile of C of result acc[i][j] of `thread`.
  constexpr Coord result(int thread, int i, int j) const {
    const auto [row, col] = row_major(thread, BN / TN);
    return halves ? Coord{row * 4 + split(i, BM), col * 4 + split(j, BN)} : Coord{row * TM + i, col * TN + j};
  }

  /// The stores to sA: element `i` (0 to 3) of the lanes' four. The stores to sB: all four at once.
  constexpr WarpAccess a_store(int warp, int pass, int i) const {
    WarpAccess access{1, {}};
    for (int lane = 0; lane < 32; ++lane) {
      const auto [m, k] = a_loaded(warp * 32 + lane, pass);
      access.word[lane] = a_word(m, k + i);
    }
    return access;
  }
  constexpr WarpAccess b_store(int warp, int pass) const {
    WarpAccess access{4, {}};
    for (int lane = 0; lane < 32; ++lane) {
      const auto [k, n] = b_loaded(warp * 32 + lane, pass);
      access.word[lane] = b_word(k, n);
    }
    return access;
  }

  /// The loads of rA[i ... i + 3] and of rB[j ... j + 3] at step k.
  constexpr WarpAccess a_fragment(int warp, int k, int i) const {
    WarpAccess access{4, {}};
    for (int lane = 0; lane < 32; ++lane) access.word[lane] = a_word(result(warp * 32 + lane, i, 0).row, k);
    return access;
  }
  constexpr WarpAccess b_fragment(int warp, int k, int j) const {
    WarpAccess access{4, {}};
    for (int lane = 0; lane < 32; ++lane) access.word[lane] = b_word(k, result(warp * 32 + lane, 0, j).col);
    return access;
  }
};

inline constexpr SharedTile tile_05{.BK = 16, .padding = 0, .swizzled = false, .halves = false};
inline constexpr SharedTile tile_06{.BK = 16, .padding = 0, .swizzled = true, .halves = true};
inline constexpr SharedTile tile_06b{.BK = 16, .padding = 4, .swizzled = false, .halves = true};

// --- tiles of rows of 128 bytes (12) ---------------------------------------------------------------------------------

/// Byte of a tile at which chunk `chunk` (of 16 bytes along k) of row `row` lies. The XOR with the row's number sends the same
/// chunk of eight neighbouring rows to the eight different 16-byte columns of shared memory.
constexpr LADDER_HOST_DEVICE int swizzled(int row, int chunk) { return row * 128 + (chunk ^ row % 8) * 16; }

// --- fragments of mma.sync (PTX ISA, "Matrix Fragments for mma.m16n8k16"; 10) -----------------------------------------
//
// The registers of a fragment are 32-bit words: two 16-bit elements, or one TF32. In words the maps are the same for all
// types: every 8 x 4 words are one matrix, of which lane 4 g + t holds row g, word t.

/// Row and word along k of register `r` (0 to 3) of A, 16 rows of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_a(int lane, int r) { return {lane / 4 + r % 2 * 8, lane % 4 + r / 2 * 4}; }

/// Column and word along k of register `r` (0 or 1) of B, 8 columns of 8 words.
constexpr LADDER_HOST_DEVICE Coord mma_b(int lane, int r) { return {lane / 4, lane % 4 + r * 4}; }

/// Row and column of register `r` (0 to 3) of C and D, 16 x 8 elements of FP32.
constexpr LADDER_HOST_DEVICE Coord mma_c(int lane, int r) { return {lane / 4 + r / 2 * 8, lane % 4 * 2 + r % 2}; }

/// The column of B that lies in row `row` of its tile, so that a lane's results of `size / 2` mma beside each other are
/// `size` neighbouring columns of C (14). Of every 4 x size columns lane t of a quad gets the t-th `size`: its pair of
/// columns of the first mma, then of the second, and so on.
constexpr LADDER_HOST_DEVICE int dealt_column(int row, int size) {
  const int group = row / (4 * size) * (4 * size), mma = row % (4 * size) / 8, t = row % 8 / 2;
  return group + t * size + mma * 2 + row % 2;
}

}  // namespace ladder
