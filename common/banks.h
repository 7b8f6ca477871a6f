// The model of shared memory's banks: how many wavefronts one access of a warp takes. Tests and figures use it; kernels
// do not. Plain constexpr C++, without nvcc.
#pragma once

#include "common/layout.h"

namespace ladder {

/// Shared memory has 32 banks, each one 4-byte word wide.
inline constexpr int BANKS = 32;

/// One shared load or store of a warp.
struct WarpAccess {
  int width;     ///< words per lane, next to each other: 1, 2 or 4
  int word[32];  ///< each lane's first word
};

/// The wavefronts of an access. A wavefront is one pass through shared memory and takes one clock.
struct Wavefronts {
  int of_lane[32];  ///< number of the wavefront that serves the lane, from 0
  int count;
};

/// The model. In one wavefront a bank delivers one word, to all lanes that ask for it. Lanes are served in groups: all
/// 32 lanes for 4 bytes per lane, 16 lanes for 8 bytes, 8 lanes for 16 bytes. So an access without conflicts takes 1, 2
/// or 4 wavefronts. A group takes as many wavefronts as its busiest bank has different words. If every lane asks for
/// the same words as lane ^ 1, or every lane for the same as lane ^ 2, the groups of an 8- or 16-byte access are twice
/// as large. CUDA's documentation states the rule for 4 bytes. The rest is a model of what the hardware's counters
/// show.
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

/// The access of `width` words per lane whose first word is `word(lane)`.
template <class Word>
constexpr WarpAccess warp_access(int width, const Word& word) {
  WarpAccess access{width, {}};
  for (int lane = 0; lane < 32; ++lane) access.word[lane] = word(lane);
  return access;
}

/// The stores of 05 to 07 to sA: element `i` (0 to 3) of the lanes' four.
constexpr WarpAccess a_store(const SharedTile& tile, int warp, int pass, int i) {
  return warp_access(1, [&](int lane) {
    const auto [m, k] = tile.a_loaded(warp * 32 + lane, pass);
    return tile.a_word(m, k + i);
  });
}
/// The stores to sB: all four at once.
constexpr WarpAccess b_store(const SharedTile& tile, int warp, int pass) {
  return warp_access(4, [&](int lane) {
    const auto [k, n] = tile.b_loaded(warp * 32 + lane, pass);
    return tile.b_word(k, n);
  });
}

/// The loads of rA[i ... i + 3] and of rB[j ... j + 3] at step k.
constexpr WarpAccess a_fragment(const SharedTile& tile, int warp, int k, int i) {
  return warp_access(4, [&](int lane) { return tile.a_word(tile.result(warp * 32 + lane, i, 0).row, k); });
}
constexpr WarpAccess b_fragment(const SharedTile& tile, int warp, int k, int j) {
  return warp_access(4, [&](int lane) { return tile.b_word(k, tile.result(warp * 32 + lane, 0, j).col); });
}

}  // namespace ladder
