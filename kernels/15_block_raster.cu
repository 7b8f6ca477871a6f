// 15_block_raster · persistent blocks, and an L2-friendly rasterisation of the tiles
//
// Idea              One block per SM computes one tile of C after another, and its copies run ahead into the next tile of C:
//                   the tensor cores no longer rest while a block ends and another begins. Which tiles run side by side
//                   decides what L2 can serve. A row of tiles needs few rows of A and all columns of B; a square of tiles needs the
//                   fewest of both. So tiles are taken in groups of GROUP_SIZE_M tile rows, column by column within a group.
// Changed from 14   as many blocks as SMs, and a loop over tiles of C; the copies have a tile of C of their own; a second
//                   kernel for a K that ends in a residue tile, which may now come at any time; tile_at()
// Expect            the prologue, 2 % of the time of a tile of C at 4096, overlaps with the tile before for three tiles of
//                   four: 1.01 times 14. From DRAM as much as 14 at 4096, half at 8192, a quarter at 16384 x 16384 x 4096.
//                   That saves power, but no clocks: DRAM can deliver more than 14 asks for
// Limiter now       mma.sync and what interrupts it: copies, barriers, the epilogue
// New instructions  none
// Limits            as 14
// Run               ./run_all.sh run 15 8192 8192 8192 --type bf16
// Read              docs/15_block_raster.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/keep_in_register.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

template <int BLOCK_M, int WARP_N>
struct TileConfig {
  static constexpr int BM = BLOCK_M;      // rows of C per block
  static constexpr int BN = 128;          // columns of C per block
  static constexpr int WM = 64;           // rows of C per warp
  static constexpr int WN = WARP_N;       // columns of C per warp
  static constexpr int BK_BYTES = 128;    // bytes along k per tile: 64 elements of 16 bits, 32 of TF32
  static constexpr int MMA_K_BYTES = 32;  // bytes along k per mma
  static constexpr int K_STEPS = BK_BYTES / MMA_K_BYTES;
  static constexpr int STAGES = 3;        // k tiles in shared memory: one is multiplied, the others are being copied
  static constexpr int COPY_STEPS = 3;    // the copies of a k tile are spread over this many k steps
  static constexpr int GROUP_SIZE_M = 8;  // tile rows per group: 132 tiles are about 8 x 16
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int COPY_ROWS = THREADS / (BK_BYTES / 16);  // rows copied at once, 16 bytes per thread
  static constexpr int COPIES = (BM + BN) / COPY_ROWS;         // per thread and k tile
  static constexpr int STAGE_BYTES = (BM + BN) * BK_BYTES;
  static constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
  static_assert(BM % COPY_ROWS == 0 && BN % COPY_ROWS == 0, "one copy is of A or of B");
  static_assert(COPY_ROWS % 8 == 0, "all rows that a thread copies have the same row % 8");
  static_assert(K_STEPS % 2 == 0, "the fragments of a k tile's first step lie in rA[0] and rB[0]");
  static_assert(COPY_STEPS < K_STEPS, "all copies of a k tile are committed before the wait for the next one");
};
using Large = TileConfig<256, 64>;  // 144 KB of shared memory: A100, H100, H200
using Small = TileConfig<128, 32>;  // 96 KB: RTX 30, 40 and 50

// [raster]
/// Row and column, in tiles, of tile number `i` of C: column by column within a group of tile rows. The last group may have
/// fewer rows.
constexpr __host__ __device__ Coord tile_at(int i, int tiles_m, int tiles_n, int group_size_m) {
  const int group_tiles = group_size_m * tiles_n, first_row = i / group_tiles * group_size_m;
  const int rows = tiles_m - first_row < group_size_m ? tiles_m - first_row : group_size_m;
  return {first_row + i % group_tiles % rows, i % group_tiles / rows};
}
// [/raster]

// The rungs after this one take it from common/layout.h, which the tests and the figures use: the same function.
static_assert([] {
  for (int i = 0; i < 20 * 3; ++i) {
    const Coord here = tile_at(i, 20, 3, 8), there = raster(i, 20, 3, 8);
    if (here.row != there.row || here.col != there.col) return false;
  }
  return true;
}());

/// Stores a warp's tile of C, whose first element is C[row][col]. Of every 16 x 8 results a lane has a pair of neighbours in
/// row g and one in row g + 8.
template <class Tile, class TC>
__device__ void store_results(const float (&acc)[Tile::WM / 16][Tile::WN / 8][4], int row, int col, int M, int N,
                              float alpha, float beta, TC* C, int ldc) {
#pragma unroll
  for (int i = 0; i < Tile::WM / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; r += 2) {
      const auto [pair_row, pair_col] = mma_c(threadIdx.x % 32, r);
      const int m = row + i * 16 + pair_row;
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < Tile::WN / 8; ++j) {
        const int n = col + j * 8 + pair_col;
        TC* const gC = C + static_cast<size_t>(m) * ldc + n;
        float d[2] = {alpha * acc[i][j][r], alpha * acc[i][j][r + 1]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          if (n < N) d[0] += beta * to_float(gC[0]);
          if (n + 1 < N) d[1] += beta * to_float(gC[1]);
        }
        if (n + 2 <= N)
          store2(gC, d);
        else if (n < N)
          *gC = from_float<TC>(d[0]);  // the padding of C must stay as it is
      }
    }
  }
}

/// RESIDUE: the last k tile is a residue tile, so copies are predicated: each says how many of its bytes lie inside the matrix.
template <class Tile, Type type, class TC, bool RESIDUE>
__global__ void __launch_bounds__(Tile::THREADS, 1)
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, BK_BYTES = Tile::BK_BYTES;
  constexpr int COPY_ROWS = Tile::COPY_ROWS, COPIES = Tile::COPIES;
  constexpr int K_STEPS = Tile::K_STEPS, STAGES = Tile::STAGES;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), c_tiles = tiles_m * tiles_n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, BK_BYTES / 16);     // my first 16 bytes of a tile

  // 2. set up
  const int k_bytes = K * static_cast<int>(sizeof(T)), k_tiles = ceil_div(k_bytes, BK_BYTES);
  // [stream]
  // The copies run ahead of the mma: they have their own tile of C, and their own count of k tiles.
  int copy_c_tile = blockIdx.x, copy_k_tiles_left = k_tiles;
  const unsigned char* cp_async_src[COPIES];  // what this thread copies next: rows of A, then columns of B
  int copy_bytes = 16;                        // of each copy; the rest is filled with zeros
  const auto start_c_tile = [&] {
    // Past the last row or column, read the last one: its results are not stored. After the last tile of C, copy it once
    // more; the copies are never used. The tile at the end of K comes first; it may be a residue tile.
    const auto [tile_row, tile_col] = tile_at(min(copy_c_tile, c_tiles - 1), tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int block_row = tile_row * BM, block_col = tile_col * BN;
    const int k_offset_bytes = (k_tiles - 1) * BK_BYTES;
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      const T* const start = i < BM / COPY_ROWS
                                 ? A + static_cast<size_t>(min(block_row + copy_row + i * COPY_ROWS, M - 1)) * lda
                                 : B + static_cast<size_t>(min(block_col + copy_row + i * COPY_ROWS - BM, N - 1)) * ldb;
      cp_async_src[i] = reinterpret_cast<const unsigned char*>(start) + k_offset_bytes + copy_chunk * 16;
    }
    if (RESIDUE) copy_bytes = min(max(k_bytes - k_offset_bytes - copy_chunk * 16, 0), 16);
  };
  const auto next_k_tile = [&] {
    if (--copy_k_tiles_left > 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) cp_async_src[i] -= BK_BYTES;
      if (RESIDUE) copy_bytes = 16;
    } else {
      copy_k_tiles_left = k_tiles;
      copy_c_tile += gridDim.x;
      start_c_tile();
    }
  };
  // [/stream]

  // Copies this thread's 16-byte chunks [first, last) of a k tile. COPY_ROWS rows further down, a chunk has the same place in
  // its row.
  const uint32_t cp_async_dst = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);
  const auto copy = [&](uint32_t write_stage_bytes, int first, int last) {
#pragma unroll
    for (int i = first; i < last; ++i) {
      const uint32_t dst = cp_async_dst + write_stage_bytes + i * COPY_ROWS * BK_BYTES;
      if (RESIDUE)
        cp_async_cg_16(dst, cp_async_src[i], copy_bytes);
      else
        cp_async_cg_16(dst, cp_async_src[i]);
    }
  };

  // The row whose address this lane gives to ldmatrix, per k step, in stage 0. An ldmatrix loads four matrices of 8 rows of 16 bytes:
  // of A two below one another and two along k, of B two along k and two next to one another.
  uint32_t ldsm_a_addr[K_STEPS], ldsm_b_addr[K_STEPS];
#pragma unroll
  for (int k_step = 0; k_step < K_STEPS; ++k_step) {
    ldsm_a_addr[k_step] =
        shared_address(smem) + swizzle_128b(warp_row + ldsm_a(lane).row, k_step * 2 + ldsm_a(lane).col);
    ldsm_b_addr[k_step] =
        shared_address(smem) + BM * BK_BYTES + swizzle_128b(warp_col + ldsm_b(lane).row, k_step * 2 + ldsm_b(lane).col);
    keep_in_register(ldsm_a_addr[k_step]), keep_in_register(ldsm_b_addr[k_step]);
  }
  uint32_t rA[2][WM / 16][4];  // [k step % 2][16 rows][words of this lane: mma_a]
  uint32_t rB[2][WN / 16][4];  // [k step % 2][16 columns][words of this lane: mma_b of the first 8, then of the others]
  const auto load_fragments = [&](uint32_t stage_bytes, int k_step) {
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
      ldmatrix_x4(rA[k_step % 2][i], ldsm_a_addr[k_step] + stage_bytes + i * 16 * BK_BYTES);
#pragma unroll
    for (int j = 0; j < WN / 16; ++j)
      ldmatrix_x4(rB[k_step % 2][j], ldsm_b_addr[k_step] + stage_bytes + j * 16 * BK_BYTES);
  };

  start_c_tile();
#pragma unroll 1
  for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage > 0) next_k_tile();
    copy(stage * Tile::STAGE_BYTES, 0, COPIES);
    cp_async_commit_group();
  }
  cp_async_wait_group<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop: gmem -cp.async-> smem[write stage]     smem[read stage] -ldmatrix-> registers -mma-> acc
  // Consumes one stage; returns the next one's offset.
  const auto multiply_k_tile = [&](uint32_t read_stage_bytes, float(&acc)[WM / 16][WN / 8][4]) {
    const uint32_t next_stage_bytes =
        read_stage_bytes + Tile::STAGE_BYTES == Tile::SMEM_BYTES ? 0 : read_stage_bytes + Tile::STAGE_BYTES;
    const uint32_t write_stage_bytes =
        (read_stage_bytes == 0 ? Tile::SMEM_BYTES : read_stage_bytes) - Tile::STAGE_BYTES;
#pragma unroll
    for (int k_step = 0; k_step < K_STEPS; ++k_step) {
      if (k_step == K_STEPS - 1) {          // the next stage is needed
        cp_async_wait_group<STAGES - 2>();  // my copies into it have landed
        __syncthreads();                    // everyone's have, and everyone is done with this stage
      }
      load_fragments(k_step == K_STEPS - 1 ? next_stage_bytes : read_stage_bytes, (k_step + 1) % K_STEPS);
      if (k_step == 0) next_k_tile();
      if (k_step < Tile::COPY_STEPS)  // into the stage that everyone was done with at the last barrier
        copy(write_stage_bytes, COPIES * k_step / Tile::COPY_STEPS, COPIES * (k_step + 1) / Tile::COPY_STEPS);
      if (k_step == Tile::COPY_STEPS - 1) cp_async_commit_group();
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          const uint32_t b[2] = {rB[k_step % 2][j / 2][j % 2 * 2], rB[k_step % 2][j / 2][j % 2 * 2 + 1]};
          Operand<type>::mma(acc[i][j], rA[k_step % 2][i], b);
        }
    }
    return next_stage_bytes;
  };
  // [/main-loop]

  uint32_t read_stage_bytes = 0;
  for (int c_tile = blockIdx.x; c_tile < c_tiles; c_tile += gridDim.x) {
    float acc[WM / 16][WN / 8][4] = {};  // [16 rows][8 columns][results of this lane: mma_c]
#pragma unroll 1
    for (int k_tiles_left = k_tiles; k_tiles_left > 0; --k_tiles_left)
      read_stage_bytes = multiply_k_tile(read_stage_bytes, acc);

    // 4. epilogue
    const auto [tile_row, tile_col] = tile_at(c_tile, tiles_m, tiles_n, Tile::GROUP_SIZE_M);
    const int block_row = tile_row * BM, block_col = tile_col * BN;
    store_results<Tile>(acc, block_row + warp_row, block_col + warp_col, M, N, alpha, beta, C, ldc);
  }
}

/// Calls `f` with the tile that the GPU has the shared memory for, the types and the kernel.
template <class F>
auto for_kernel(const Problem& p, F&& f) {
  return for_types(p, [&]<Type type, class TC>() {
    const bool residue = p.k % (Large::BK_BYTES / Operand<type>::BYTES) != 0;
    return device_limits().smem_block_bytes >= Large::SMEM_BYTES
               ? f.template operator()<Large, type, TC>(residue ? gemm<Large, type, TC, true>
                                                                : gemm<Large, type, TC, false>)
               : f.template operator()<Small, type, TC>(residue ? gemm<Small, type, TC, true>
                                                                : gemm<Small, type, TC, false>);
  });
}

void launch(const Problem& p) {
  for_kernel(p, [&]<class Tile, Type type, class TC>(auto kernel) {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = min(ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), device_limits().sms);
    kernel<<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda, p.B<T>(),
                                                                  p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "15",
    .name = "block_raster",
    .idea = "persistent blocks; an L2-friendly rasterisation of the tiles of C",
    .predecessor = "14",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .instruction = MathInstruction::mma_sync,
    .layout_b = MatrixLayout::col_major,
    .row_align_bytes = 16,
    .refuses = refuses_mma_sync,
    .resources =
        [](const Problem& p) {
          return for_kernel(p, [&]<class Tile, Type type, class TC>(auto kernel) {
            return Resources{(const void*)kernel,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::BK_BYTES / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
    .constants = {{"Large", {{"BM", Large::BM}, {"BN", Large::BN}, {"GROUP_SIZE_M", Large::GROUP_SIZE_M}}}},
}};

}  // namespace
