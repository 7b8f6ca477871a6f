// 03_thread_tile_1d · a column of results per thread
//
// Idea              A thread computes TM = 8 results, one above the other. An element of B that is in a register serves
//                   8 FMAs instead of one.
// Changed from 02   acc becomes acc[TM]; the 512 threads of a block cover 64 x 64 of C, and a tile is 8 k deep. The
//                   launch bounds ask for as many threads as an SM can hold, which is 4 blocks: while one block waits
//                   at a barrier or for global memory, the others compute. That leaves 65536 / 2048 = 32 registers per
//                   thread. gA and gB stay where they are, and k_offset moves: this takes fewer registers
// Expect            2.2 times 02, 0.44 of cuBLAS at most: shared loads per FMA fall from 1.25 to 0.375
// Limiter now       shared loads: 1 of B and 8 of A (four k at a time) for 8 FMAs
// New instructions  none
// Limits            f32; any architecture; any M, N, K and leading dimensions
// Run               ./run_all.sh run 03 4096 4096 4096
// Read              docs/03_thread_tile_1d.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 64;  // rows of C per block
  static constexpr int BN = 64;  // columns of C per block
  static constexpr int BK = 8;   // elements along k per tile
  static constexpr int TM = 8;   // rows of C per thread
  static constexpr int THREADS = BM / TM * BN;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "each thread loads one element of A and of B per tile");

  // [thread-map]
  // A thread's first result in the tile of C: neighbouring threads take neighbouring columns, TM rows of each.
  static constexpr __host__ __device__ Coord first_result(int thread) { return {thread / BN * TM, thread % BN}; }
  // [/thread-map]
};

// 04 and 05 take it from common/layout.h, where the tests and the figures find it: it is the same function.
static_assert([] {
  for (int thread = 0; thread < Tile::THREADS; ++thread)
    if (Tile::first_result(thread) != thread_tile(thread, Tile::BN, Tile::TM, 1)) return false;
  return true;
}());

__global__ void __launch_bounds__(Tile::THREADS, THREADS_PER_SM / Tile::THREADS)  // 4 per SM: at most 32 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, TM = Tile::TM;
  __shared__ float sA[BM][BK];
  __shared__ float sB[BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const auto [row, col] = Tile::first_result(threadIdx.x);
  const auto [a_row, a_k] = row_major(threadIdx.x, BK);  // my element of a tile of A
  const auto [b_k, b_col] = row_major(threadIdx.x, BN);  // my element of a tile of B

  // 2. set up. Past the last row or column, read the last one: its results are not stored.
  const float* gA = A + static_cast<size_t>(min(block_row + a_row, M - 1)) * lda + a_k;
  const float* gB = B + static_cast<size_t>(b_k) * ldb + min(block_col + b_col, N - 1);
  float acc[TM] = {};

  // 3. main loop
  for (int k_offset = 0; k_offset < K; k_offset += BK) {
    sA[a_row][a_k] = k_offset + a_k < K ? gA[k_offset] : 0.0F;  // both are zero past K, where there may be NaN
    sB[b_k][b_col] = k_offset + b_k < K ? gB[static_cast<size_t>(k_offset) * ldb] : 0.0F;
    __syncthreads();  // the tile is complete

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      // [inner-product]
      const float rB = sB[k][col];
#pragma unroll
      for (int i = 0; i < TM; ++i) acc[i] += sA[row + i][k] * rB;
      // [/inner-product]
    }
    __syncthreads();  // everyone has read the tile
  }

  // 4. epilogue
  if (block_col + col >= N) return;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    if (block_row + row + i >= M) return;
    float* gC = C + static_cast<size_t>(block_row + row + i) * ldc + block_col + col;
    *gC = beta == 0.0F ? alpha * acc[i] : alpha * acc[i] + beta * *gC;  // beta = 0 must not read C: it may hold NaN
  }
}

void launch(const Problem& p) {
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb,
                                                p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "03",
    .name = "thread_tile_1d",
    .idea = "a column of results per thread",
    .predecessor = "02",
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
