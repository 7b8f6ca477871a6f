// How a warpgroup's results get from registers into C: through a buffer in shared memory, by TMA. 25 writes it out for one tile; this is
// for tiles of any width, with operands in order or swapped (28).
#pragma once

#include <cuda.h>

#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/barrier.h"
#include "common/ptx/cp_async_bulk.h"
#include "common/ptx/elect.h"
#include "common/ptx/prefetch.h"
#include "common/ptx/shared_memory.h"
#include "common/ptx/stmatrix.h"
#include "common/types.h"

namespace ladder {

/// What TMA stores of C at a time, from a buffer that holds 64 rows of D and BUFFERED of its columns. In order: 64 rows of as many bytes
/// as TMA can swizzle that divide a tile's row. Swapped: a row of C for each column of D, 128 bytes at a time.
template <class Tile, class TC>
struct CBox {
  static constexpr int BUFFERED = 128 / sizeof(TC);
  static constexpr int ROW_BYTES = Tile::BN * sizeof(TC);
  static constexpr int BYTES = Tile::SWAP_AB || ROW_BYTES % 128 == 0 ? 128 : ROW_BYTES % 64 == 0 ? 64 : 32;
  static constexpr int MOST_ROWS = Tile::BN % 64 == 0   ? 64
                                   : Tile::BN % 32 == 0 ? 32
                                                        : 16;  // that divide a tile's columns
  static constexpr int ROWS = !Tile::SWAP_AB ? 64 : MOST_ROWS < BUFFERED ? MOST_ROWS : BUFFERED;
  static constexpr int COLUMNS = BYTES / sizeof(TC);
  static_assert(!Tile::SWAP_AB || Tile::BN % ROWS == 0);
};

/// The part of C that store_results() will read, into L2, one line of 128 bytes per prefetch: a block's tile, whose first result is in row
/// `first.row` and column `first.col` of D. All threads of the consumer warpgroups that share the tile.
template <class Tile, class TC>
__device__ __forceinline__ void prefetch_results(Coord first, int M, int N, const TC* C, int ldc) {
  constexpr int THREADS = Tile::CONSUMERS / Tile::TURNS;
  constexpr int ROWS = Tile::SWAP_AB ? Tile::BN : Tile::BM, COLUMNS = Tile::SWAP_AB ? Tile::BM : Tile::BN;  // of C
  constexpr int LINES = (COLUMNS * sizeof(TC) + 127) / 128;                                                 // of a row
  const int rows = Tile::SWAP_AB ? N : M, columns = Tile::SWAP_AB ? M : N;
  const int row = Tile::SWAP_AB ? first.col : first.row, col = Tile::SWAP_AB ? first.row : first.col;
#pragma unroll 1
  for (int i = (threadIdx.x - 128) % THREADS; i < ROWS * LINES; i += THREADS) {
    const int m = row + i / LINES, n = col + i % LINES * (128 / sizeof(TC));
    if (m < rows && n < columns) prefetch_global_l2(C + static_cast<size_t>(m) * ldc + n);
  }
}

/// alpha * acc + beta * C into C, 16 bytes of C per lane, by way of this warpgroup's first buffer: 64 rows and 32 columns of D at a time, as
/// floats. For what TMA cannot do: read C, and leave out some of the 16 bytes in which a row of C ends. Arguments as store_results().
template <class Tile, class TC>
__device__ __forceinline__ void store_without_tma(const float (&acc)[Tile::WM / 64][Tile::BN / 8][4], Coord first,
                                                  int M, int N, float alpha, float beta, TC* __restrict__ C, int ldc,
                                                  uint32_t buffers) {
  constexpr int BN = Tile::BN, CHUNK = 16 / sizeof(TC);
  constexpr int PARTS_OF_ROWS = (BN + 31) / 32, PARTS = Tile::WM / 64 * PARTS_OF_ROWS;
  constexpr bool SWAP_AB = Tile::SWAP_AB;
  const int thread = threadIdx.x % 128, warpgroup = threadIdx.x / 128 - 1;
  const auto place = [&](int r, int c) { return buffers + swizzle(r, c / 4, 128) + c % 4 * 4; };
  if (warp_index_sync() % 4 == 0 && elect_sync())
    cp_async_bulk_wait_group_read<0>();  // the stores of earlier tiles have read it
#pragma unroll 1
  for (int part = 0; part < PARTS; ++part) {
    const int i = part / PARTS_OF_ROWS, first_col = part % PARTS_OF_ROWS * 32;
    bar_sync(1 + warpgroup, 128);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {  // registers have no index
      if (p != part) continue;
#pragma unroll
      for (int j = p % PARTS_OF_ROWS * 4; j < BN / 8 && j < p % PARTS_OF_ROWS * 4 + 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          const float(&x)[4] = acc[p / PARTS_OF_ROWS][j];
          const auto [r, c] = mma_c(thread % 32, e);
          const uint32_t to = place(thread / 32 * 16 + r, c) ^ j % 4 * 32;  // 8 columns further, in one instruction
          store2_shared(to, {alpha * x[e], alpha * x[e + 1]});
        }
    }
    bar_sync(1 + warpgroup, 128);
#pragma unroll 1
    for (int chunk = thread; chunk < 64 * 32 / CHUNK; chunk += 128) {
      const int r = SWAP_AB ? chunk % (64 / CHUNK) * CHUNK : chunk / (32 / CHUNK);
      const int c = SWAP_AB ? chunk / (64 / CHUNK) : chunk % (32 / CHUNK) * CHUNK;
      const int m = first.row + i * 64 + r, n = first.col + first_col + c;
      const int left = SWAP_AB ? M - m : N - n;  // elements of this row of C, from here on
      if (first_col + c >= BN || m >= M || n >= N) continue;
      TC* const to = C + (SWAP_AB ? static_cast<size_t>(n) * ldc + m : static_cast<size_t>(m) * ldc + n);
      const auto result = [&](int x, const TC& c_x) {  // beta = 0 must not read C: it may hold NaN
        const float d = load_shared(SWAP_AB ? place(r + x, c) : place(r, c + x));
        return from_float<TC>(beta == 0.0F ? d : d + beta * to_float(c_x));
      };
      if (left >= CHUNK) {
        Vector<TC> v = {};
        if (beta != 0.0F) v.bits = *reinterpret_cast<const uint4*>(to);
#pragma unroll
        for (int x = 0; x < CHUNK; ++x) v.element[x] = result(x, v.element[x]);
        *reinterpret_cast<uint4*>(to) = v.bits;
      } else {
#pragma unroll 1
        for (int x = 0; x < left; ++x) to[x] = result(x, to[x]);
      }
    }
  }
}

// [epilogue]
/// alpha * acc + beta * C into C, by way of the BUFFERS buffers of this warpgroup, in parts of 64 rows of D and BUFFERED columns. The
/// results of acc begin in row `first.row` and column `first.col` of D, which has M rows and N columns. `part_number` counts the buffers
/// filled, which all stores of a kernel share. All threads of a consumer warpgroup, with named barrier 1 + its number. Its first warp
/// waits for its stores before shared memory goes: cp_async_bulk_wait_group_read<0>().
template <class Tile, class TC>
__device__ __forceinline__ void store_results(float (&acc)[Tile::WM / 64][Tile::BN / 8][4], Coord first, int M, int N,
                                              float alpha, float beta, TC* __restrict__ C, int ldc,
                                              const CUtensorMap& map_c, uint32_t buffers, int& part_number) {
  using Box = CBox<Tile, TC>;
  constexpr int BN = Tile::BN, CHUNK = 16 / sizeof(TC);
  constexpr bool SWAP_AB = Tile::SWAP_AB;
  const int warp = warp_index_sync(), lane = threadIdx.x % 32, warpgroup = warp / 4 - 1;
  if (beta != 0.0F || (SWAP_AB ? M % CHUNK != 0 && first.row + Tile::WM > M : N % CHUNK != 0 && first.col + BN > N)) {
    store_without_tma<Tile>(acc, first, M, N, alpha, beta, C, ldc, buffers);
    return;
  }
#pragma unroll
  for (int i = 0; i < Tile::WM / 64; ++i)
#pragma unroll
    for (int first_col = 0; first_col < BN; first_col += Box::BUFFERED) {
      const int row = first.row + i * 64, col = first.col + first_col;
      const int columns = BN - first_col < Box::BUFFERED ? BN - first_col : Box::BUFFERED;
#pragma unroll
      for (int j = 0; j < Box::BUFFERED / 8 && first_col + j * 8 < BN; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[i][first_col / 8 + j][e] *= alpha;
      const uint32_t buffer = buffers + part_number++ % Tile::BUFFERS * Tile::C_BYTES;
      if (warp % 4 == 0 && elect_sync())
        cp_async_bulk_wait_group_read<Tile::BUFFERS - 1>();  // the store from this buffer has read it
      bar_sync(1 + warpgroup, 128);
      // Where in the buffer 16 bytes of C lie that begin in row r and column c of D's part.
      const auto place = [&](int r, int c) {
        if constexpr (SWAP_AB)
          return r / Box::COLUMNS * (Box::BUFFERED * 128) + swizzle(c, r % Box::COLUMNS / CHUNK, 128);
        return c / Box::COLUMNS * (64 * Box::BYTES) + swizzle(r, c % Box::COLUMNS / CHUNK, Box::BYTES);
      };
#pragma unroll
      for (int j = 0; j < Box::BUFFERED / 8 && first_col + j * 8 < BN; j += 2) {
        const float(*const x)[4] = &acc[i][first_col / 8 + j];  // 8 columns, and the next 8
        if constexpr (sizeof(TC) == 2) {
          uint32_t r[4];  // of rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            union {
              TC element[2];
              uint32_t bits;
            } d = {{from_float<TC>(x[pair / 2][pair % 2 * 2]), from_float<TC>(x[pair / 2][pair % 2 * 2 + 1])}};
            r[pair] = d.bits;
          }
          const int matrix = lane / 8, first_row = warp % 4 * 16 + matrix % 2 * 8, c = (j + matrix / 2) * 8;
          if constexpr (SWAP_AB)
            stmatrix_x4_trans(buffer + place(first_row, c + lane % 8), r);
          else
            stmatrix_x4(buffer + place(first_row + lane % 8, c), r);
        } else {
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            const auto [c_row, c_col] = mma_c(lane, pair % 2 * 2);
            const int r = warp % 4 * 16 + c_row, c = (j + pair / 2) * 8 + c_col;
            const float d[2] = {x[pair / 2][pair % 2 * 2], x[pair / 2][pair % 2 * 2 + 1]};
            if constexpr (SWAP_AB) {
              store_shared(buffer + place(r, c) + r % CHUNK * 4, d[0]);
              store_shared(buffer + place(r, c + 1) + r % CHUNK * 4, d[1]);
            } else {
              store2_shared(buffer + place(r, c) + c % CHUNK * 4, d);
            }
          }
        }
      }
      fence_proxy_async_shared();
      bar_sync(1 + warpgroup, 128);
      if (warp % 4 == 0 && elect_sync()) {
        if constexpr (SWAP_AB) {
#pragma unroll
          for (int r = 0; r < 64; r += Box::COLUMNS)
#pragma unroll
            for (int c = 0; c < columns; c += Box::ROWS)
              cp_async_bulk_tensor_2d_store(map_c, row + r, col + c, buffer + place(r, c));
        } else {
#pragma unroll
          for (int c = 0; c < columns; c += Box::COLUMNS)
            cp_async_bulk_tensor_2d_store(map_c, col + c, row, buffer + place(0, c));
        }
        cp_async_bulk_commit_group();
      }
    }
}
// [/epilogue]

}  // namespace ladder
