// 04_thread_tile_2d · a square of results per thread
//
// Idea              A thread computes 8 x 8 results as a sum of outer products. For each k it loads 8 elements of A and
//                   8 of B into registers and multiplies each with each.
// Changed from 03   acc[TM][TN], fragments rA and rB; 256 threads cover 128 x 128 of C. A tile is 16 k deep, which
//                   halves the barriers; each thread loads eight elements of A and eight of B. The FMAs go through the
//                   square in serpentine order: consecutive FMAs share an operand, which the register file then
//                   delivers once
// Expect            0.77 of cuBLAS at most (03: 0.44): 16 floats from shared memory for 64 FMAs, where 03 loads 9 for 8
// Limiter now       bank conflicts: the lanes' columns of sB begin 8 words apart, so a 16-byte load takes 8 wavefronts
//                   instead of 4; and the wait for global memory, whose loads bring one element each
// New instructions  none
// Limits            f32; any architecture; any M, N, K and leading dimensions
// Run               ./run_all.sh run 04 4096 4096 4096
// Read              docs/04_thread_tile_2d.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;  // rows of C per block
  static constexpr int BN = 128;  // columns of C per block
  static constexpr int BK = 16;   // elements along k per tile
  static constexpr int TM = 8;    // rows of C per thread
  static constexpr int TN = 8;    // columns of C per thread
  static constexpr int THREADS = BM / TM * (BN / TN);
  static constexpr int A_ROWS = THREADS / BK;  // rows of A that the block loads at once
  static constexpr int A_LOADS = BM / A_ROWS;  // elements of A per thread and tile
  static constexpr int B_ROWS = THREADS / BN;  // rows of B that the block loads at once
  static constexpr int B_LOADS = BK / B_ROWS;  // elements of B per thread and tile
  static_assert(BM % A_ROWS == 0 && BK % B_ROWS == 0, "each thread loads the same number of elements");
};

__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks per SM: at most 128 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, TM = Tile::TM, TN = Tile::TN;
  __shared__ float sA[BM][BK];
  __shared__ float sB[BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const auto [row, col] = thread_tile(threadIdx.x, BN, TM, TN);  // my first result in the tile of C
  const auto [a_row, a_k] = row_major(threadIdx.x, BK);          // my first element of a tile of A
  const auto [b_k, b_col] = row_major(threadIdx.x, BN);          // my first element of a tile of B

  // 2. set up. Past the last row or column, read the last one: its results are not stored.
  const float* gA[Tile::A_LOADS];
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i)
    gA[i] = A + static_cast<size_t>(min(block_row + a_row + i * Tile::A_ROWS, M - 1)) * lda + a_k;
  const float* gB = B + static_cast<size_t>(b_k) * ldb + min(block_col + b_col, N - 1);
  float acc[TM][TN] = {};

  // 3. main loop
  for (int k_offset = 0; k_offset < K; k_offset += BK) {
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i) {
      sA[a_row + i * Tile::A_ROWS][a_k] = k_offset + a_k < K ? *gA[i] : 0.0F;  // zero past K: there may be NaN
      gA[i] += BK;
    }
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i) {
      const int k = b_k + i * Tile::B_ROWS;
      sB[k][b_col] = k_offset + k < K ? gB[static_cast<size_t>(i * Tile::B_ROWS) * ldb] : 0.0F;
    }
    gB += static_cast<size_t>(BK) * ldb;
    __syncthreads();  // the tile is complete

#pragma unroll 2  // unrolled in full, it would load A four k at a time and run out of registers
    for (int k = 0; k < BK; ++k) {
      // [outer-product]
      float rA[TM], rB[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) rA[i] = sA[row + i][k];
#pragma unroll
      for (int j = 0; j < TN; ++j) rB[j] = sB[k][col + j];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int j_serpentine = i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
          acc[i][j_serpentine] += rA[i] * rB[j_serpentine];
        }
      }
      // [/outer-product]
    }
    __syncthreads();  // everyone has read the tile
  }

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    if (block_row + row + i >= M) return;
    float* gC = C + static_cast<size_t>(block_row + row + i) * ldc + block_col + col;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      if (block_col + col + j >= N) break;
      gC[j] = beta == 0.0F ? alpha * acc[i][j] : alpha * acc[i][j] + beta * gC[j];  // beta = 0 must not read C
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
    .number = "04",
    .name = "thread_tile_2d",
    .idea = "a square of results per thread",
    .predecessor = "03",
    .types = {Type::f32},
    .arch = "sm_70",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 4,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, 0, {Tile::BM, Tile::BN, Tile::BK}};
        },
    .launch = launch,
}};

}  // namespace
