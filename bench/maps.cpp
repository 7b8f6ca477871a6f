// Prints the index maps of common/layout.h as CSV; plots/ draws the chapters' figures from it.
//
//   map      sA_store, sB_store, sA_load, sB_load: the first warp's accesses to shared memory, one line for each word
//            that a lane touches. The scalar store of the first of a lane's four elements of A, the 16-byte store of B,
//            and the 16-byte loads of rA[0..3] and rB[0..3] at k = 0.
//            C: the owner of each result of a block's tile of C, one line a result
//   rung     05, 06, 06b for shared memory; 03, 04, 06 for C (05 has 04's map, 06b and 07 have 06's)
//   thread   in the block; the first 32 are the first warp's lanes
//   row,col  of the element in its tile: of A (m, k), of B (k, n), or of C (m, n)
//   word     4-byte word of the shared tile that holds it; bank = word mod 32; empty for C
//   wavefront  in which pass through shared memory the lane is served, from 0, by the model in layout.h; empty for C
#include "common/layout.h"

#include <cstdio>

using namespace ladder;

namespace {

/// One line a word. `first` gives the element that lane's first word holds; the next ones follow along the row, or, for A,
/// down the column.
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
      "sA_store", rung, tile.a_store(0, 0, 0), [&](int lane) { return tile.a_loaded(lane, 0); }, down);
  print(
      "sB_store", rung, tile.b_store(0, 0), [&](int lane) { return tile.b_loaded(lane, 0); }, right);
  print(
      "sA_load", rung, tile.a_fragment(0, 0, 0),
      [&](int lane) {
        return Coord{tile.result(lane, 0, 0).row, 0};
      },
      down);
  print(
      "sB_load", rung, tile.b_fragment(0, 0, 0),
      [&](int lane) {
        return Coord{0, tile.result(lane, 0, 0).col};
      },
      right);
}

template <class Owner>
void print_results(const char* rung, int threads, int TM, int TN, Owner result) {
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = 0; i < TM * TN; ++i) {
      const auto [row, col] = result(thread, i / TN, i % TN);
      std::printf("C,%s,%d,%d,%d,,,\n", rung, thread, row, col);
    }
  }
}

}  // namespace

int main() {
  std::puts("map,rung,thread,row,col,word,bank,wavefront");
  print_shared("05", tile_05);
  print_shared("06", tile_06);
  print_shared("06b", tile_06b);
  print_results("03", 512, 8, 1, [](int thread, int i, int) {
    const auto [row, col] = row_major(thread, 64);
    return Coord{row * 8 + i, col};
  });
  print_results("04", 256, 8, 8, [](int thread, int i, int j) { return tile_05.result(thread, i, j); });
  print_results("06", 256, 8, 8, [](int thread, int i, int j) { return tile_06.result(thread, i, j); });
}
