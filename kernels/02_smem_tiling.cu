// 02_smem_tiling · a block's tile of A and of B in shared memory
//
// Idea              The 1024 threads of a block need the same 32 rows of A and 32 columns of B. The block copies 32 x
//                   64 of A and 64 x 32 of B into shared memory once. Each thread then reads its row and column from
//                   there.
// Changed from 01   tile by tile along k, global loads fill sA and sB between two barriers; the product reads sA and sB
// Expect            1.23 times 01, 0.20 of cuBLAS: 1/32 of 01's global requests, but the shared loads take nearly as
//                   many wavefronts as 01's global loads did
// Limiter now       shared loads: 1.25 per FMA (those of A bring four k each)
// New instructions  none
// Limits            f32; any architecture; any M, N, K and leading dimensions
// Run               ./run_all.sh run 02 4096 4096 4096
// Read              docs/02_smem_tiling.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 32;  // rows of C per block
  static constexpr int BN = 32;  // columns of C per block
  static constexpr int BK = 64;  // elements along k per tile
  static constexpr int THREADS = BM * BN;
  static_assert(BM == BN && BK % BN == 0,
                "thread (row, col) loads A[row][col + i] and B[row + i][col], i = 0, 32, ...");
};

__global__ void __launch_bounds__(Tile::THREADS)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK;
  __shared__ float sA[BM][BK];
  __shared__ float sB[BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const auto [row, col] = row_major(threadIdx.x, BN);  // my result in the tile of C, and where I load

  // 2. set up. Past the last row or column, read the last one: its results are not stored.
  const float* gA = A + static_cast<size_t>(min(block_row + row, M - 1)) * lda + col;
  const float* gB = B + static_cast<size_t>(row) * ldb + min(block_col + col, N - 1);
  float acc = 0.0F;

  // [main-loop]
  // 3. main loop
  for (int k_offset = 0; k_offset < K; k_offset += BK) {
#pragma unroll
    for (int i = 0; i < BK; i += BN) {  // zeros past K: there may be NaN
      sA[row][col + i] = k_offset + col + i < K ? gA[i] : 0.0F;
      sB[row + i][col] = k_offset + row + i < K ? gB[static_cast<size_t>(i) * ldb] : 0.0F;
    }
    gA += BK;
    gB += static_cast<size_t>(BK) * ldb;
    __syncthreads();  // the tile is complete

#pragma unroll
    for (int k = 0; k < BK; ++k) acc += sA[row][k] * sB[k][col];
    __syncthreads();  // everyone has read the tile
  }
  // [/main-loop]

  // 4. epilogue
  if (block_row + row >= M || block_col + col >= N) return;
  float* gC = C + static_cast<size_t>(block_row + row) * ldc + block_col + col;
  *gC = beta == 0.0F ? alpha * acc : alpha * acc + beta * *gC;  // beta = 0 must not read C: it may hold NaN
}

void launch(const Problem& p) {
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb,
                                                p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "02",
    .name = "smem_tiling",
    .idea = "a block's tile of A and B in shared memory",
    .predecessor = "01",
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
