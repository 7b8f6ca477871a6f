// How blocks that split K over the grid sum a tile. For tiles of any width, with operands in order or swapped; 31 explains it. 30 has the
// other way, in a cluster.
#pragma once

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/elect.h"
#include "common/ptx/semaphore.h"

namespace ladder {

/// f(i, j, owner, k) for each 64 rows i and 8 columns j of acc: the k-th of the columns that block `owner` owns.
template <class Tile, class F>
__device__ __forceinline__ void for_parts(int splits, F&& f) {
#pragma unroll
  for (int i = 0; i < Tile::WM / 64; ++i) {
    int owner = 0, k = 0;
#pragma unroll
    for (int j = 0; j < Tile::BN / 8; ++j) {
      f(i, j, owner, k);
      if (++owner == splits) owner = 0, ++k;
    }
  }
}

// [exchange]
/// Sums acc over `splits` blocks that have computed the same tile, each over its part of K. They may be anywhere on the grid; all of them
/// are resident. Block `split` gets the totals of its own columns: of every 8 columns j for which j % splits is `split`. `partials` is the
/// workspace of this tile, Tile::BM * Tile::BN floats for each split; `counters` has one for each warp that holds results, 0 before and
/// after.
template <class Tile>
__device__ __forceinline__ void sum_over_grid(float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                              float4* partials, unsigned* counters) {
  constexpr int THREADS = Tile::CONSUMERS / Tile::TURNS;
  const int thread = (threadIdx.x - 128) % THREADS, lane = threadIdx.x % 32;
  const auto part = [&](int from, int i, int j) -> float4& {
    return partials[((from * (Tile::WM / 64) + i) * (Tile::BN / 8) + j) * THREADS + thread];
  };
  for_parts<Tile>(splits, [&](int i, int j, int owner, int) {
    const auto& x = acc[i][j];
    if (owner != split) part(split, i, j) = {x[0], x[1], x[2], x[3]};
  });
  __syncwarp();
  unsigned* const counter = counters + thread / 32;  // this warp waits for the same warp of the other splits
  if (lane == 0) {
    atom_add_acq_rel_gpu(counter, 1);
    while (ld_acquire_gpu(counter) < splits) {
    }
  }
  __syncwarp();
  for_parts<Tile>(splits, [&](int i, int j, int owner, int) {
    if (owner != split) return;
#pragma unroll 8
    for (int from = 0; from < splits; ++from) {
      if (from == split) continue;
      const float4 x = __ldcg(&part(from, i, j));
      acc[i][j][0] += x.x, acc[i][j][1] += x.y, acc[i][j][2] += x.z, acc[i][j][3] += x.w;
    }
  });
  // The last that has seen all splits resets the counter for the next launch.
  if (lane == 0 && atom_add_acq_rel_gpu(counter, 1) == 2 * splits - 1) *counter = 0;
}
// [/exchange]

/// alpha * acc + beta * C into C, of the columns that split `split` owns: from registers, two results
/// at a time; with operands swapped one. Other arguments as store_results().
template <class Tile, class TC>
__device__ __forceinline__ void store_owned(const float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                            Coord first, int M, int N, float alpha, float beta, TC* __restrict__ C,
                                            int ldc) {
  const int warp = warp_index_sync(), lane = threadIdx.x % 32;
  for_parts<Tile>(splits, [&](int i, int j, int owner, int) {
    if (owner != split) return;
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const auto [c_row, c_col] = mma_c(lane, e);
      const int m = first.row + i * 64 + warp % 4 * 16 + c_row, n = first.col + j * 8 + c_col;
      TC* const c = C + (Tile::SWAP_AB ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n);
      const int next = Tile::SWAP_AB ? ldc : 1;  // from column n of D to column n + 1
      float d[2] = {alpha * acc[i][j][e], alpha * acc[i][j][e + 1]};
      for (int x = 0; x < 2; ++x)
        if (beta != 0.0F && m < M && n + x < N) d[x] += beta * to_float(c[x * next]);
      if (!Tile::SWAP_AB && m < M && n + 1 < N) {
        store2(c, d);
      } else {
        for (int x = 0; x < 2; ++x)
          if (m < M && n + x < N) c[x * next] = from_float<TC>(d[x]);
      }
    }
  });
}

}  // namespace ladder
