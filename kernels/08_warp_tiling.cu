// 08_warp_tiling · a warp owns a 64 x 64 tile of C; fragments are loaded one k step ahead
//
// Idea              A level between the block's tile and the thread's: the warp tile, 64 x 64 results as 4 x 8 thread
//                   tiles of 16 x 8. A k step takes 6 shared loads for 128 FMAs (07: 4 for 64). During the FMAs of one
//                   step, the fragments of the next are loaded into a second set of registers: no FMA waits for them.
// Changed from 07   128 x 256 tile, 16 x 8 results per thread, warp tiles, spread() instead of split(); rA[2], rB[2]
//                   are loaded one step ahead; the next tile is stored two steps before the barrier; gB[] like gA[]
// Expect            1.15 of cuBLAS at most, by issue slots: 92 % of the main loop's instructions are FMAs
// Limiter now       the register file: its two banks deliver the three operands of an FMA and take the results of FMAs
//                   and of shared loads. The compiler chooses the registers and their order. So lines that only look
//                   different, even in the epilogue, change the rate by some per cent (bench/sweep.py)
// New instructions  none
// Limits            f32; any architecture; any M, N, K; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 08 4096 4096 4096
// Read              docs/08_warp_tiling.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = TUNABLE(BM, 128);                     // rows of C per block
  static constexpr int BN = TUNABLE(BN, 256);                     // columns of C per block
  static constexpr int BK = TUNABLE(BK, 8);                       // elements along k per tile
  static constexpr int WM = 64;                                   // rows of C per warp
  static constexpr int WN = 64;                                   // columns of C per warp
  static constexpr int TM = TUNABLE(TM, 16);                      // rows of C per thread
  static constexpr int TN = TUNABLE(TN, 8);                       // columns of C per thread
  static constexpr int STORE_STEP = TUNABLE(STORE_STEP, BK - 3);  // of k: the next tile is stored before it
  static constexpr int THREADS = BM / TM * (BN / TN);
  static constexpr int A_ROWS = THREADS * 4 / BK;  // rows of A that the block loads at once
  static constexpr int A_LOADS = BM / A_ROWS;      // float4 of A per thread and tile
  static constexpr int B_ROWS = THREADS * 4 / BN;  // rows of B that the block loads at once
  static constexpr int B_LOADS = BK / B_ROWS;      // float4 of B per thread and tile
  static constexpr int LANE_ROWS = WM / TM;        // lanes down a warp tile
  static constexpr int LANE_COLS = WN / TN;        // lanes across it
  static_assert(BM % A_ROWS == 0 && BK % B_ROWS == 0, "each thread loads the same number of float4");
  static_assert(BM % WM == 0 && BN % WN == 0 && LANE_ROWS * LANE_COLS == 32, "whole warps of 32 lanes");
  static_assert(BK % 2 == 0, "the fragments after a tile's last step go into rA[0] and rB[0]");
  static_assert(128 / BK % (LANE_ROWS * 4) == 0 && WM % 32 == 0, "no carry where `row` is added to swizzled_column()");
};

/// Four floats with one 16-byte instruction; `p` is a multiple of 16 bytes.
__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

/// The first `count` of four floats, zeros after them. Reads nothing where count < 1.
__device__ float4 load4(const float* p, int count) {
  if (count < 1) return {};
  const float4 v = load4(p);
  return {v.x, count > 1 ? v.y : 0.0F, count > 2 ? v.z : 0.0F, count > 3 ? v.w : 0.0F};
}

/// Row or column in the warp tile of element `i` of a lane's rows or columns. Each group of four neighbours belongs to
/// one lane; neighbouring groups belong to neighbouring ones of the `lanes`.
__host__ __device__ constexpr int spread(int lane, int i, int lanes) { return (i / 4 * lanes + lane) * 4 + i % 4; }

// The tests take it from common/layout.h: it is the same function.
static_assert([] {
  for (int lane = 0; lane < Tile::LANE_ROWS; ++lane)
    for (int i = 0; i < Tile::TM; ++i)
      if (spread(lane, i, Tile::LANE_ROWS) != ladder::spread(lane, i, Tile::LANE_ROWS)) return false;
  return true;
}());

__global__ void __launch_bounds__(Tile::THREADS, TUNABLE(BLOCKS_PER_SM, 1))  // one block per SM: up to 255 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, WM = Tile::WM, WN = Tile::WN, TM = Tile::TM, TN = Tile::TN;
  constexpr int LANE_ROWS = Tile::LANE_ROWS, LANE_COLS = Tile::LANE_COLS;
  alignas(16) __shared__ float sA[2][BK][BM];
  alignas(16) __shared__ float sB[2][BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  // [lane-map]
  // Lanes go down the columns: four neighbours load the same columns of B. So a load of B takes 2 wavefronts, and one of
  // A takes 4.
  const auto [warp_row, warp_col] = row_major(threadIdx.x / 32, BN / WN);
  const auto [lane_col, lane_row] = row_major(threadIdx.x % 32, LANE_ROWS);
  const int row = warp_row * WM + lane_row * 4, col = warp_col * WN + lane_col * 4;  // my first result in the tile of C
  // [/lane-map]
  const auto [a_row, a_k4] = row_major(threadIdx.x, BK / 4);
  const auto [b_k, b_col4] = row_major(threadIdx.x, BN / 4);
  const int a_k = a_k4 * 4, b_col = b_col4 * 4;  // my first four elements of a tile: A[a_row][a_k...], B[b_k][b_col...]

  // 2. set up. Past the last row or column, read the last one: its results are not stored.
  int k_offset = (K - 1) / BK * BK;
  const float* gA[Tile::A_LOADS];
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i)
    gA[i] = A + static_cast<size_t>(min(block_row + a_row + i * Tile::A_ROWS, M - 1)) * lda + k_offset + a_k;
  const float* gB[Tile::B_LOADS];
#pragma unroll
  for (int i = 0; i < Tile::B_LOADS; ++i)
    gB[i] = B + static_cast<size_t>(k_offset + b_k + i * Tile::B_ROWS) * ldb + min(block_col + b_col, (N - 1) / 4 * 4);
  float4 nextA[Tile::A_LOADS], nextB[Tile::B_LOADS];  // the next tile, between global and shared memory
  float acc[TM][TN] = {};

  const auto store_tile = [&](int write_stage) {
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i) {
      const int m = swizzled_column(a_k, a_row + i * Tile::A_ROWS, BK);  // the same for all four k
      sA[write_stage][a_k + 0][m] = nextA[i].x;
      sA[write_stage][a_k + 1][m] = nextA[i].y;
      sA[write_stage][a_k + 2][m] = nextA[i].z;
      sA[write_stage][a_k + 3][m] = nextA[i].w;
    }
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i) store4(&sB[write_stage][b_k + i * Tile::B_ROWS][b_col], nextB[i]);
  };
  // The last tile comes first. It may be a residue tile: zeros past K, where there may be NaN.
  const int k_left = K - k_offset;
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i], k_left - a_k);
#pragma unroll
  for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB[i], b_k + i * Tile::B_ROWS < k_left ? 4 : 0);
  int read_stage = 0;
  store_tile(read_stage);
  __syncthreads();

  // [fragments]
  alignas(16) float rA[2][TM], rB[2][TN];  // [k % 2][row or column]: fragments of this k step and of the next
  const auto load_fragments = [&](int k) {
#pragma unroll
    for (int i = 0; i < TM; i += 4)
      store4(&rA[k % 2][i], load4(&sA[read_stage][k][row + swizzled_column(k, spread(0, i, LANE_ROWS), BK)]));
#pragma unroll
    for (int j = 0; j < TN; j += 4) store4(&rB[k % 2][j], load4(&sB[read_stage][k][col + spread(0, j, LANE_COLS)]));
  };
  // [/fragments]
  load_fragments(0);

  // [main-loop]
  // 3. main loop: gmem -loads-> nextA, nextB -stores-> smem[1 - read_stage]     smem[read_stage] -loads-> rA, rB -> acc
#pragma unroll 1
  for (; k_offset >= 0; k_offset -= BK) {
    if (k_offset > 0) {  // the next tile's loads
#pragma unroll
      for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i] -= BK);
#pragma unroll
      for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB[i] -= static_cast<size_t>(BK) * ldb);
    }

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      if (k == Tile::STORE_STEP) store_tile(1 - read_stage);  // no thread has read this stage since the last barrier
      if (k == BK - 1) {
        __syncthreads();  // the next tile is complete, and everyone has read this one
        read_stage = 1 - read_stage;
      }
      load_fragments((k + 1) % BK);
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int j_serpentine = i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
          acc[i][j_serpentine] += rA[k % 2][i] * rB[k % 2][j_serpentine];
        }
      }
    }
  }
  // [/main-loop]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_row + warp_row * WM + spread(lane_row, i, LANE_ROWS);
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int n = block_col + warp_col * WN + spread(lane_col, j, LANE_COLS);
      float* gC = C + static_cast<size_t>(m) * ldc + n;
      if (n + 4 <= N) {
        float4 d = {alpha * acc[i][j], alpha * acc[i][j + 1], alpha * acc[i][j + 2], alpha * acc[i][j + 3]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          const float4 c = load4(gC);
          d = {d.x + beta * c.x, d.y + beta * c.y, d.z + beta * c.z, d.w + beta * c.w};
        }
        store4(gC, d);
      } else {  // the padding of C must stay as it is
#pragma unroll
        for (int e = 0; e < 3; ++e)
          if (n + e < N) gC[e] = beta == 0.0F ? alpha * acc[i][j + e] : alpha * acc[i][j + e] + beta * gC[e];
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
    .idea = "warp tiles between block and thread tiles; fragments loaded one k step ahead",
    .predecessor = "07",
    .types = {Type::f32},
    .arch = "sm_70",
    .instruction = MathInstruction::ffma,
    .layout_b = MatrixLayout::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, 0, {Tile::BM, Tile::BN, Tile::BK}};
        },
    .launch = launch,
}};

}  // namespace
