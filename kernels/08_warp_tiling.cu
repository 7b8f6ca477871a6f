// 08_warp_tiling · a warp owns a 64 x 64 tile of C; fragments are fetched one k step ahead
//
// Idea              Between the block's tile and the thread's stands the warp's: 64 x 64 results as 4 x 8 threads of
//                   16 x 8. The larger thread tile needs 6 shared loads for 128 FFMAs (07: 4 for 64), and the lane
//                   map decides what those loads cost. The fragments of step k + 1 are loaded into a second set of
//                   registers under the FFMAs of step k, so that no FFMA waits for shared memory.
// Changed from      07_double_buffer: 128 x 256 block tile, warp tile, register double buffering, lane map by XOR
// Expect            at least 1.0 of cuBLAS: FFMAs are 92 % of the instructions of the main loop
// Limiter now       the register file: two banks, and an FFMA reads three operands
// New instructions  none
// Limits            f32; any architecture; any M, N, K; rows of A, B and C aligned to 16 bytes
// Run               ./run_all.sh run 08 4096 4096 4096
// Read              docs/08_warp_tiling.md
#include "common/layout.h"
#include "common/layout_warp.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128, BN = 256, BK = 8;  // block tile
  static constexpr int WM = 64, WN = 64;            // warp tile: 4 x 8 thread tiles
  static constexpr int TM = 16, TN = 8;  // thread tile: groups of 4 rows and 4 columns, WM / 4 and WN / 2 apart
  static constexpr int WARPS_N = BN / WN;
  static constexpr int THREADS = BM / WM * WARPS_N * 32;
  static constexpr int B_ROWS = THREADS / (BN / 4);  // rows of B that the block loads at once
  static_assert(WM == 4 * TM && WN == 8 * TN, "lane_tile() spreads a warp over 4 x 8 thread tiles");
  static_assert(BM * BK == THREADS * 4, "each thread loads four elements of A");
  static_assert(BN * BK == THREADS * 8, "each thread loads eight elements of B");
};

__device__ __forceinline__ float4& four(float& first) { return reinterpret_cast<float4&>(first); }
__device__ __forceinline__ const float4& four(const float& first) { return reinterpret_cast<const float4&>(first); }

__global__ void __launch_bounds__(Tile::THREADS, 1)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int B_ROWS = Tile::B_ROWS;
  __shared__ float sA[2][BK][BM];  // transposed; columns by swizzle()
  __shared__ float sB[2][BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM, block_col = blockIdx.x % tiles_n * BN;
  // [lane-map]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int m = warp / Tile::WARPS_N * WM + lane_tile(lane).row * 4;  // first row of this thread in the block tile
  const int n = warp % Tile::WARPS_N * WN + lane_tile(lane).col * 4;
  // [/lane-map]
  const Coord a = row_major(threadIdx.x, BK / 4);  // the four elements of A that this thread loads: row, fours of k
  const Coord b = row_major(threadIdx.x, BN / 4);  // and of B: k, fours of columns

  // 2. set up
  // k is walked from its ragged end down to 0, so that only this first tile needs a mask. Rows and columns outside the
  // matrix repeat the last ones: they are loaded and multiplied, but never stored.
  const int tiles_k = ceil_div(K, BK), k_ragged = (tiles_k - 1) * BK;
  const float* gA = A + static_cast<size_t>(min(block_row + a.row, M - 1)) * lda + k_ragged + a.col * 4;
  const float* gB = B + static_cast<size_t>(k_ragged + b.row) * ldb + min(block_col + b.col * 4, (N - 1) / 4 * 4);
  const size_t b_rows = static_cast<size_t>(B_ROWS) * ldb;
  float4 nextA{}, nextB[2]{};
  const auto store_tile = [&](int buffer) {
    const int column = swizzle(a.col * 4, a.row, BK);
    sA[buffer][a.col * 4 + 0][column] = nextA.x;
    sA[buffer][a.col * 4 + 1][column] = nextA.y;
    sA[buffer][a.col * 4 + 2][column] = nextA.z;
    sA[buffer][a.col * 4 + 3][column] = nextA.w;
    four(sB[buffer][b.row][b.col * 4]) = nextB[0];
    four(sB[buffer][b.row + B_ROWS][b.col * 4]) = nextB[1];
  };
  const int k_left = K - k_ragged;  // 1 to BK
  if (a.col * 4 + 0 < k_left) nextA = four(*gA);
  if (a.col * 4 + 1 >= k_left) nextA.y = 0.0F;
  if (a.col * 4 + 2 >= k_left) nextA.z = 0.0F;
  if (a.col * 4 + 3 >= k_left) nextA.w = 0.0F;
  if (b.row < k_left) nextB[0] = four(*gB);
  if (b.row + B_ROWS < k_left) nextB[1] = four(*(gB + b_rows));
  store_tile(0);
  __syncthreads();

  float acc[TM][TN] = {};
  float rA[2][TM], rB[2][TN];
  // [fragments]
  const auto load_fragments = [&](int buffer, int k) {
#pragma unroll
    for (int i = 0; i < TM; i += 4) four(rA[k % 2][i]) = four(sA[buffer][k][m + swizzle(k, i * WM / TM, BK)]);
#pragma unroll
    for (int j = 0; j < TN; j += 4) four(rB[k % 2][j]) = four(sB[buffer][k][n + j * WN / TN]);
  };
  // [/fragments]
  load_fragments(0, 0);

  // [main-loop]
  // 3. main loop
  int buffer = 0;
#pragma unroll 1
  for (int k_tile = tiles_k - 1; k_tile >= 0; --k_tile) {
    if (k_tile > 0) {
      gA -= BK;
      gB -= 2 * b_rows;
      nextA = four(*gA);
      nextB[0] = four(*gB);
      nextB[1] = four(*(gB + b_rows));
    }
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      if (k == BK - 2) store_tile(buffer ^ 1);
      if (k == BK - 1) {
        __syncthreads();
        buffer ^= 1;
      }
      load_fragments(buffer, (k + 1) % BK);
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int snake = i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
          acc[i][snake] += rA[k % 2][i] * rB[k % 2][snake];
        }
      }
    }
  }
  // [/main-loop]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int row = block_row + m + i / 4 * WM / 4 + i % 4;
    if (row >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int col = block_col + n + j * WN / TN;
      float* gC = C + static_cast<size_t>(row) * ldc + col;
      if (col + 4 <= N) {
        float4 d{alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          const float4 c = four(*gC);
          d = {d.x + beta * c.x, d.y + beta * c.y, d.z + beta * c.z, d.w + beta * c.w};
        }
        four(*gC) = d;
      } else {
#pragma unroll
        for (int e = 0; e < 3; ++e) {
          if (col + e < N) gC[e] = beta == 0.0F ? alpha * acc[i][j + e] : alpha * acc[i][j + e] + beta * gC[e];
        }
      }
    }
  }
}

void launch(const Problem& p) {
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb,
                                                p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "08",
    .name = "warp_tiling",
    .idea = "warp tiles between block and thread tiles; fragments fetched one k step ahead",
    .types = {Type::f32},
    .layout_b = LayoutB::row_major,
    .min_sm = 70,
    .row_align_bytes = 16,
    .tile = {Tile::BM, Tile::BN, Tile::BK},
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS};
        },
    .launch = launch,
}};

}  // namespace
