// 01b_uncoalesced · the same kernel with its threads along the wrong dimension
//
// Idea              A counter-example. Neighbouring threads take neighbouring rows of C. So the 32 lanes of a warp read
//                   A, and write C, in 32 different rows: they move 32 sectors of 32 bytes and use 4 bytes of each.
//                   Each thread does exactly what it did in 01.
// Changed from 01   the thread map: row and column are swapped, and so are BM and BN
// Expect            0.06 times 01: the 32 words of a warp's load of A lie in one bank of L1, where 01 wants one word
// Limiter now       L1: a warp's load of A takes a wavefront for each of its 32 rows
// New instructions  none
// Limits            f32; any architecture; any M, N, K and leading dimensions
// Run               ./run_all.sh run 01b 4096 4096 4096
// Read              docs/01_naive.md
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 64;  // rows of C per block: two warps high
  static constexpr int BN = 8;   // columns of C per block
  static constexpr int THREADS = BM * BN;
};

__global__ void __launch_bounds__(Tile::THREADS)
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  // 1. who am I
  const int tiles_n = ceil_div(N, Tile::BN);
  // [thread-map]
  const int row = blockIdx.x / tiles_n * Tile::BM + threadIdx.x % Tile::BM;
  const int col = blockIdx.x % tiles_n * Tile::BN + threadIdx.x / Tile::BM;
  // [/thread-map]

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
}

void launch(const Problem& p) {
  const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
  sgemm<<<blocks, Tile::THREADS, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<float>(), p.lda, p.B<float>(), p.ldb,
                                                p.beta, p.C<float>(), p.ldc);
  cuda_check(cudaGetLastError());
}

const Registration registration{{
    .number = "01b",
    .name = "uncoalesced",
    .idea = "threads along the wrong dimension",
    .predecessor = "01",
    .kind = Kind::counter_example,
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
