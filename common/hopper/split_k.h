// How blocks that split K over the grid sum a tile and store it. For tiles of any width, with operands in order or swapped; 31 explains
// it. 30 has the other way, in a cluster: for_parts() and store_owned() are from there.
#pragma once

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
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

/// alpha * sum + beta * C into C: the four results of a lane (mma_c) in 16 rows and 8 columns of D, the first of which is `first`. Two at a
/// time; with operands swapped one. D has M rows and N columns.
template <class Tile, class TC>
__device__ __forceinline__ void store_part(const float (&sum)[4], Coord first, int M, int N, float alpha, float beta,
                                           TC* __restrict__ C, int ldc) {
#pragma unroll
  for (int e = 0; e < 4; e += 2) {
    const auto [c_row, c_col] = mma_c(threadIdx.x % 32, e);
    const int m = first.row + c_row, n = first.col + c_col;
    TC* const c = C + (Tile::SWAP_AB ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n);
    const int next = Tile::SWAP_AB ? ldc : 1;  // from column n of D to column n + 1
    float d[2] = {alpha * sum[e], alpha * sum[e + 1]};
    for (int x = 0; x < 2; ++x)
      if (beta != 0.0F && m < M && n + x < N) d[x] += beta * to_float(c[x * next]);
    if (!Tile::SWAP_AB && m < M && n + 1 < N) {
      store2(c, d);
    } else {
      for (int x = 0; x < 2; ++x)
        if (m < M && n + x < N) c[x * next] = from_float<TC>(d[x]);
    }
  }
}

// [exchange]
constexpr int LOADS = 16;  // of partial sums that a lane has under way

/// Sums acc over `splits` blocks that have computed the same tile, each over its part of K, and stores alpha times the sums plus beta * C.
/// The blocks may be anywhere on the grid; all of them are resident. The tile begins at `first` in D, which has M rows and N columns.
/// `partials` is the workspace of this tile, Tile::BM * Tile::BN floats for each split; `counter` is 0 before and after. All threads that
/// hold results of the tile, with named barrier 1.
template <class Tile, class TC>
__device__ __forceinline__ void sum_over_grid(const float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                              float4* partials, unsigned* counter, Coord first, int M, int N,
                                              float alpha, float beta, TC* __restrict__ C, int ldc) {
  constexpr int THREADS = Tile::CONSUMERS / Tile::TURNS, WARPS = THREADS / 32, COLUMNS = Tile::BN / 8;
  constexpr int PARTS = Tile::WM / 64 * COLUMNS * WARPS;  // of a tile: 16 rows and 8 columns, four results per lane
  const int thread = (threadIdx.x - 128) % THREADS, warp = thread / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < Tile::WM / 64; ++i)
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      const auto& x = acc[i][j];
      partials[(split * (PARTS / WARPS) + i * COLUMNS + j) * THREADS + thread] = {x[0], x[1], x[2], x[3]};
    }
  bar_sync(1, THREADS);
  if (thread == 0) {
    red_add_release_gpu(counter, 1);
    while (ld_acquire_gpu(counter) < splits) {
    }
  }
  bar_sync(1, THREADS);
#pragma unroll 1
  for (int part = warp * splits + split; part < PARTS; part += WARPS * splits) {  // those that this warp owns
    float sum[4] = {};
#pragma unroll 1
    for (int from = 0; from < splits; from += LOADS) {
      float4 x[LOADS] = {};
#pragma unroll
      for (int i = 0; i < LOADS; ++i)
        if (from + i < splits) x[i] = __ldcg(&partials[((from + i) * PARTS + part) * 32 + lane]);
#pragma unroll
      for (int i = 0; i < LOADS; ++i) sum[0] += x[i].x, sum[1] += x[i].y, sum[2] += x[i].z, sum[3] += x[i].w;
    }
    const int of_warp = part % WARPS, i = part / WARPS / COLUMNS, j = part / WARPS % COLUMNS;
    const int row = of_warp / 4 * Tile::WM + i * 64 + of_warp % 4 * 16;
    store_part<Tile>(sum, {first.row + row, first.col + j * 8}, M, N, alpha, beta, C, ldc);
  }
  // The last that has seen all splits resets the counter for the next launch.
  if (thread == 0 && atom_add_relaxed_gpu(counter, 1) == 2 * splits - 1) *counter = 0;
}
// [/exchange]

/// alpha * acc + beta * C into C, of the columns that split `split` owns, from registers. Other arguments as store_results().
template <class Tile, class TC>
__device__ __forceinline__ void store_owned(const float (&acc)[Tile::WM / 64][Tile::BN / 8][4], int split, int splits,
                                            Coord first, int M, int N, float alpha, float beta, TC* __restrict__ C,
                                            int ldc) {
  for_parts<Tile>(splits, [&](int i, int j, int owner, int) {
    const Coord part{first.row + i * 64 + warp_index_sync() % 4 * 16, first.col + j * 8};
    if (owner == split) store_part<Tile>(acc[i][j], part, M, N, alpha, beta, C, ldc);
  });
}

}  // namespace ladder
