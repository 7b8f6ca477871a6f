// Index maps of the warp tile and of the transposed A tile (rung 08 and whoever reuses them), constexpr so that
// a test can prove on the CPU that they cover every element once and cost no bank conflict.
#pragma once

namespace ladder {

/// Which thread tile of a warp tile a lane owns.
struct LaneTile {
  int m, n;
};

/// Spreads 32 lanes over LANES_M x (32 / LANES_M) thread tiles. The XOR leaves no lane with the row or the column of its
/// neighbour lane ^ 1 or lane ^ 2. Shared loads of 16 bytes therefore stay at one wavefront per 8 lanes, 4 a request: where all
/// lanes agree with lane ^ 1, or all with lane ^ 2, the hardware merges wavefronts by broadcast and returns two registers a
/// clock, which takes the register file's write port from the FFMAs.
template <int LANES_M>
constexpr LaneTile lane_in_warp_tile(int lane) {
  constexpr int LANES_N = 32 / LANES_M;
  static_assert((LANES_M == 4 && LANES_N == 8) || (LANES_M == 8 && LANES_N == 4),
                "the XOR needs two bits on both sides");
  if constexpr (LANES_M == 4)
    return {lane % 4, (lane / 4) ^ (lane % 4)};
  else
    return {(lane / 4) ^ (lane % 4), lane % 4};
}

/// Where element (m, k) of the A tile stands in shared memory: transposed, so that a thread reads 4 rows in 16 bytes.
/// A warp stores 16 rows of 8 k at a time. Two k that are 4 apart would meet in one bank if a row held a multiple of 32
/// words; 4 words of padding move them half the banks apart and keep 16-byte alignment.
template <int BM>
constexpr int a_transposed(int m, int k) {
  return k * (BM + 4) + m;
}

}  // namespace ladder
