// 01_naive · one thread computes one element of C
//
// Idea              One row of A times one column of B, read from global memory. Neighbouring threads take neighbouring
//                   columns of C. So the 32 lanes of a warp read 32 consecutive elements of B with one 128-byte
//                   request, and one element of A serves all of them: the loads are coalesced.
// Changed from      nothing: this is the first rung. 01b swaps rows and columns in the thread map.
// Expect            0.16 of cuBLAS at most: every FMA needs two loads
// Limiter now       load instructions: each FMA waits for two of them, and L1 serves one per clock
// New instructions  none
// Limits            f32; any architecture; any M, N, K and leading dimensions
// Run               ./run_all.sh run 01 4096 4096 4096
// Read              docs/01_naive.md
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 8;   // rows of C per block
  static constexpr int BN = 64;  // columns of C per block: two warps wide
  static constexpr int THREADS = BM * BN;
};

__global__ void __launch_bounds__(Tile::THREADS)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  // 1. who am I
  const int tiles_n = ceil_div(N, Tile::BN);
  // [thread-map]
  const int row = blockIdx.x / tiles_n * Tile::BM + threadIdx.x / Tile::BN;
  const int col = blockIdx.x % tiles_n * Tile::BN + threadIdx.x % Tile::BN;
  // [/thread-map]

  // [main-loop]
  // 2. set up
  if (row >= M || col >= N) return;
  const float* gA = A + static_cast<size_t>(row) * lda;
  const float* gB = B + col;
  float acc = 0.0F;

  // 3. main loop
  for (int k = 0; k < K; ++k) acc += gA[k] * gB[static_cast<size_t>(k) * ldb];

  // 4. epilogue
  float* gC = C + static_cast<size_t>(row) * ldc + col;
  *gC = beta == 0.0F ? alpha * acc : alpha * acc + beta * *gC;  // beta = 0 must not read C: it may hold NaN
  // [/main-loop]
}

void launch(const Problem& p) {
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb,
                                                p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "01",
    .name = "naive",
    .idea = "one thread, one element of C; coalesced",
    .predecessor = "",
    .types = {Type::f32},
    .arch = "sm_70",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 4,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, 0, {Tile::BM, Tile::BN, 1}};
        },
    .launch = launch,
}};

}  // namespace
