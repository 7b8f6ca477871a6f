// Prints the index maps of common/layout.h as CSV; plots/ draws the chapters' figures from it. One line per:
//
//   sA_store, sB_store, sA_load, sB_load
//            word of shared memory that a lane of the first warp accesses: with the scalar store of the first of its four
//            elements of A, with the 16-byte store of B, with the 16-byte loads of rA[0..3] and rB[0..3] at k = 0
//   C        result in a block's tile of C, with the thread that owns it
//   row_load, row_copy
//            word that a lane accesses in a tile of A or B in rows of 128 bytes (Part II): with its load of a[0] in the
//            second step along k, chunk 2 (4 bytes per lane; an ldmatrix reads the same words), and with one cp.async
//            (16 bytes per lane)
//   row_place
//            chunk of 16 bytes of the first eight rows, with the place where it lies; col is the chunk's number
//   a, b, c  element of a fragment of mma.sync, with the lane that holds it
//   ldsm_a, ldsm_b
//            row of 16 bytes that a lane names to ldmatrix (13): row is the row of A or the column of B, col the chunk along k
//   wgmma_c  accumulator of wgmma (22), with the thread of the warpgroup that holds it: of the first 16 columns
//   descriptor
//            thread is the number of a bit of a matrix descriptor (22, 47); col 0: set whatever the address, 1: by the address
//   instruction_descriptor
//            the same of the instruction descriptor (47) of BF16, 128 x 256; col 0: set whatever is multiplied, 1 to 4: by the type of A,
//            the type of B, rows, columns
//   permuted row of B's tile, with the column of B in it and the lane of a quad that holds its results
//   raster, raster_4096
//            tile of C (Part II) at 8192 and at 4096 cubed, with its place in the order of the tiles
//   raster_25  the same at 4096 cubed for the tiles of clusters, 256 x 256
//   splits   work tile (17) at 128 x 4096 x 4096, 128 x 128 results per tile: row is the tile of C, col the first k tile of the
//            split, word the number of its k tiles
//
// Columns:
//
//   rung     05, 06, 06b for shared memory; 03, 04, 06, 08, 14 for C (05 has 04's map, 06b and 07 have 06's); for rows of 128
//            bytes "no skew", 11 (as 09b, 09c and 10) and 12 (as 13 to 16); for fragments the type, 16bit, tf32 or 8bit; for ldsm 13;
//            for wgmma_c 22; for permuted the results in 16 bytes, 4 or 8, or 2 for the order of 15; for raster group_size_m;
//            for splits their number
//   thread   number in the block; the first 32 are the lanes of the first warp. For raster the number of the tile, for splits
//            that of the work tile
//   row,col  of the element in its tile: of A (m, k), of B (k, n), or of C (m, n); in rows of 128 bytes, of the 4-byte
//            word
//   word     4-byte word of the shared tile that holds it; bank = word mod 32; empty for C. Of a fragment and of wgmma_c, its
//            register; of ldsm, the matrix: the register that receives it
//   wavefront  number of the wavefront that serves the lane, from 0, by the model of common/banks.h; empty for the rest
#include "common/banks.h"
#include "common/blackwell/descriptor.h"
#include "common/hopper/descriptor.h"
#include "common/layout.h"

#include <cstdio>

using namespace ladder;

namespace {

/// One line per word. `first` gives the element in the lane's first word; the next elements follow along the row, or, for
/// A, down the column.
template <class First>
void print(const char* map, const char* rung, const WarpAccess& access, First first, Coord step) {
  const Wavefronts served = wavefronts(access);
  for (int lane = 0; lane < 32; ++lane) {
    const auto [row, col] = first(lane);
    for (int i = 0; i < access.width; ++i) {
      const int word = access.word[lane] + i;
      std::printf("%s,%s,%d,%d,%d,%d,%d,%d\n", map, rung, lane, row + i * step.row, col + i * step.col, word,
                  word % BANKS, served.of_lane[lane]);
    }
  }
}

void print_shared(const char* rung, const SharedTile& tile) {
  const Coord down{1, 0}, right{0, 1};
  print(
      "sA_store", rung, a_store(tile, 0, 0, 0), [&](int lane) { return tile.a_loaded(lane, 0); }, down);
  print(
      "sB_store", rung, b_store(tile, 0, 0), [&](int lane) { return tile.b_loaded(lane, 0); }, right);
  print(
      "sA_load", rung, a_fragment(tile, 0, 0, 0),
      [&](int lane) {
        return Coord{tile.result(lane, 0, 0).row, 0};
      },
      down);
  print(
      "sB_load", rung, b_fragment(tile, 0, 0, 0),
      [&](int lane) {
        return Coord{0, tile.result(lane, 0, 0).col};
      },
      right);
}

template <class Tile>
void print_results(const char* rung, const Tile& tile) {
  for (int thread = 0; thread < tile.threads(); ++thread) {
    for (int i = 0; i < tile.TM * tile.TN; ++i) {
      const auto [row, col] = tile.result(thread, i / tile.TN, i % tile.TN);
      std::printf("C,%s,%d,%d,%d,,,\n", rung, thread, row, col);
    }
  }
}

/// The block's tile of C in 14 (its tile for 144 KB of shared memory): warps row by row, in a warp tile 16 x 8 results per
/// mma, of which a lane holds those of mma_c().
struct MmaTile {
  int BM, BN, WM, WN, TM, TN;  // TM x TN: as many results as a thread has, those of two rows side by side

  constexpr int threads() const { return BM / WM * (BN / WN) * 32; }

  constexpr Coord result(int thread, int i, int j) const {
    const auto [warp_row, warp_col] = row_major(thread / 32, BN / WN);
    const auto [row, col] = mma_c(thread % 32, i % 2 * 2 + j % 2);
    return {warp_row * WM + i / 2 * 16 + row, warp_col * WN + j / 2 * 8 + col};
  }
};

constexpr MmaTile tile_14{.BM = 256, .BN = 128, .WM = 64, .WN = 64, .TM = 8, .TN = 16};

/// Rows of 128 bytes along k, by `place(row, chunk)`: the byte at which a chunk of a row lies.
template <class Place>
void print_rows(const char* rung, Place place) {
  WarpAccess load{1, {}}, copy{4, {}};
  for (int lane = 0; lane < 32; ++lane) {
    const auto [row, word] = mma_a(lane, 0);
    load.word[lane] = place(row, 2) / 4 + word;
    const auto [copied, chunk] = row_major(lane, 8);
    copy.word[lane] = place(copied, chunk) / 4;
  }
  const Coord right{0, 1};
  print(
      "row_load", rung, load,
      [](int lane) {
        const auto [row, word] = mma_a(lane, 0);
        return Coord{row, 8 + word};
      },
      right);
  print(
      "row_copy", rung, copy,
      [](int lane) {
        const auto [row, chunk] = row_major(lane, 8);
        return Coord{row, chunk * 4};
      },
      right);
  for (int i = 0; i < 64; ++i) {
    const auto [row, chunk] = row_major(i, 8);
    const int word = place(row, chunk) / 4;
    std::printf("row_place,%s,%d,%d,%d,%d,%d,\n", rung, i % 32, row, chunk, word, word % BANKS);
  }
}

/// A word of A or B holds `each` elements, neighbours along k.
void print_fragments(const char* type, int each) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) {
      const auto [row, word] = mma_a(lane, r);
      for (int i = 0; i < each; ++i) std::printf("a,%s,%d,%d,%d,%d,,\n", type, lane, row, word * each + i, r);
    }
    for (int r = 0; r < 2; ++r) {
      const auto [col, word] = mma_b(lane, r);
      for (int i = 0; i < each; ++i) std::printf("b,%s,%d,%d,%d,%d,,\n", type, lane, word * each + i, col, r);
    }
    for (int r = 0; r < 4; ++r) {
      const auto [row, col] = mma_c(lane, r);
      std::printf("c,%s,%d,%d,%d,%d,,\n", type, lane, row, col, r);
    }
  }
}

/// What the lanes name to ldmatrix in 13, from the first row of the warp's tile and k step 0. No other rows bring mma its fragments, as
/// tests/plots finds.
void print_ldmatrix(const char* map, Coord (*named)(int lane)) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto [row, chunk] = named(lane);
    std::printf("%s,13,%d,%d,%d,%d,,\n", map, lane, row, chunk, lane / 8);
  }
}

/// The accumulators of a warpgroup, as PTX has them: acc[j][i] is register 4 j + i.
void print_wgmma() {
  for (int thread = 0; thread < 128; ++thread) {
    for (int r = 0; r < 8; ++r) {
      const auto [row, col] = wgmma_c(thread / 32, thread % 32, r);
      std::printf("wgmma_c,22,%d,%d,%d,%d,,\n", thread, row, col, r);
    }
  }
}

/// The bits of a matrix descriptor (22, 47) that are set for a tile at address 0, and those that an address of all ones sets: col is
/// 0 or 1.
template <class Descriptor>
void print_descriptor(const char* rung, const Descriptor& of) {
  for (int bit = 0; bit < 64; ++bit) {
    if (of(0) >> bit & 1) std::printf("descriptor,%s,%d,0,0,,,\n", rung, bit);
    if ((of(~0U) ^ of(0)) >> bit & 1) std::printf("descriptor,%s,%d,0,1,,,\n", rung, bit);
  }
}

/// Those of the instruction descriptor (47), by what sets them.
void print_instruction_descriptor() {
  using blackwell::instruction_descriptor;
  const uint32_t none = instruction_descriptor(0, 0, 0, 0);
  const uint32_t set[] = {none, instruction_descriptor(1, 0, 0, 0) ^ none, instruction_descriptor(0, 1, 0, 0) ^ none,
                          instruction_descriptor(0, 0, 128, 0) ^ none, instruction_descriptor(0, 0, 0, 256) ^ none};
  for (int by = 0; by < 5; ++by)
    for (int bit = 0; bit < 32; ++bit)
      if (set[by] >> bit & 1) std::printf("instruction_descriptor,47,%d,0,%d,,,\n", bit, by);
}

/// The columns of B in the rows of its tile, so that a lane has `size` neighbouring results; 2, those of one mma, as in 15.
void print_permuted(int size) {
  for (int row = 0; row < 32; ++row) {
    const int col = permuted_column(row, size);
    int lane = 0;
    while (mma_c(lane, 0).col != row % 8 / 2 * 2) ++lane;
    std::printf("permuted,%d,%d,%d,%d,,,\n", size, lane, row, col);
  }
}

/// The columns of B that eight rows of each ldmatrix matrix name, and where chunk 0 of their rows lies: in rows of B's tile that
/// hold the columns in order, `named_column` (21) beside `permuted_column` (which 16 uses for its copies).
template <class Column>
void print_named(const char* map, int size, const Column& column) {
  for (int row = 0; row < 4 * size; ++row) {
    const int col = column(row, size), word = swizzle_128b(col, 0) / 4;
    std::printf("%s,%d,%d,%d,%d,%d,%d,\n", map, size, row, row / 8, col, word, word % BANKS);
  }
}

/// The order of the tiles of C at `size` cubed, 256 x `columns` results each.
void print_raster(const char* map, int size, const char* rung, int group_size_m, int columns = 128) {
  const int tiles_m = size / 256, tiles_n = size / columns;
  for (int i = 0; i < tiles_m * tiles_n; ++i) {
    const auto [row, col] = raster(i, tiles_m, tiles_n, group_size_m);
    std::printf("%s,%s,%d,%d,%d,,,\n", map, rung, i, row, col);
  }
}

/// Units of work at 128 x 4096 x 4096, for tiles of 128 x 128 results and k tiles of 64.
void print_splits(int splits) {
  const int c_tiles = 4096 / 128;
  for (int work_tile = 0; work_tile < c_tiles * splits; ++work_tile) {
    const KTileRange of_split = k_tiles_of_split(work_tile % splits, splits, 4096 / 64);
    std::printf("splits,%d,%d,%d,%d,%d,,\n", splits, work_tile, work_tile / splits, of_split.first, of_split.k_tiles);
  }
}

}  // namespace

int main() {
  std::puts("map,rung,thread,row,col,word,bank,wavefront");
  print_shared("05", tile_05);
  print_shared("06", tile_06);
  print_shared("06b", tile_06b);
  print_results("03", tile_03);
  print_results("04", tile_04);
  print_results("06", tile_06);
  print_results("08", tile_08);
  print_results("14", tile_14);
  print_rows("no skew", [](int row, int chunk) { return row * 128 + chunk * 16; });
  print_rows("11", [](int row, int chunk) { return pitch_linear(row, chunk * 16, 128 + SKEW_BYTES); });
  print_rows("12", [](int row, int chunk) { return swizzle_128b(row, chunk); });
  print_fragments("16bit", 2);
  print_fragments("tf32", 1);
  print_fragments("8bit", 4);
  print_ldmatrix("ldsm_a", ldsm_a);
  print_ldmatrix("ldsm_b", ldsm_b);
  print_wgmma();
  print_descriptor("22", [](uint32_t tile) { return descriptor(tile); });
  print_descriptor("47", [](uint32_t tile) { return blackwell::descriptor(tile); });
  print_instruction_descriptor();
  for (int size = 2; size <= 8; size *= 2) print_permuted(size);
  for (int size = 4; size <= 8; size *= 2) {
    print_named("named", size, named_column);
    print_named("in_order_of_16", size, permuted_column);
  }
  print_raster("raster", 8192, "1", 1);
  print_raster("raster", 8192, "8", 8);
  print_raster("raster_4096", 4096, "1", 1);
  print_raster("raster_4096", 4096, "8", 8);
  print_raster("raster_25", 4096, "4", 4, 256);
  print_raster("raster_25", 4096, "8", 8, 256);
  print_splits(1);
  print_splits(4);
}
