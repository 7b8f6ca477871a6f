// 07_double_buffer · fetch the next tile while this one is computed
//
// Idea              Two copies of each shared tile. The loads of the next tile are issued before the inner product and
//                   wait in registers; after it they are stored into the copy that nobody reads. So the way to global
//                   memory hides behind 1024 FMAs a thread, and one barrier a tile is enough.
// Changed from 06   sA[2], sB[2]; the first tile is loaded before the loop, guarded because it may be ragged, so that
//                   the loads in the loop need no guard; split() and swizzled_column() come from common/layout.h
// Expect            06 stands still from a tile's barrier until its loads are back; with that hidden, 1.2 times as fast
// Limiter now       the register file and issue slots: 64 shared loads and 68 other instructions for 1024 FMAs, and all
//                   128 registers in use, so fragments are fetched just before the FMAs that need them
// New instructions  none
// Limits            f32; any architecture; any M, N, K; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 07 4096 4096 4096
// Read              docs/07_double_buffer.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;  // rows of C a block
  static constexpr int BN = 128;  // columns of C a block
  static constexpr int BK = 16;   // k held at a time
  static constexpr int TM = 8;    // rows of C a thread
  static constexpr int TN = 8;    // columns of C a thread
  static constexpr int THREADS = BM / TM * (BN / TN);
  static constexpr int A_ROWS = THREADS * 4 / BK;  // rows of A that the block loads at once
  static constexpr int A_LOADS = BM / A_ROWS;      // float4 of A a thread
  static constexpr int B_ROWS = THREADS * 4 / BN;  // rows of B that the block loads at once
  static constexpr int B_LOADS = BK / B_ROWS;      // float4 of B a thread
  static_assert(BM % A_ROWS == 0 && BK % B_ROWS == 0, "each thread loads the same number of float4");
  static_assert(TM == 8 && TN == 8, "a thread tile is split in two halves of four");
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

__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks an SM: at most 128 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, TM = Tile::TM, TN = Tile::TN;
  alignas(16) __shared__ float sA[2][BK][BM];
  alignas(16) __shared__ float sB[2][BK][BN];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const auto [c_row, c_col] = row_major(threadIdx.x, BN / TN);
  const int row = c_row * 4, col = c_col * 4;  // my first result in the tile of C
  const auto [a_row, a_k4] = row_major(threadIdx.x, BK / 4);
  const auto [b_k, b_col4] = row_major(threadIdx.x, BN / 4);
  const int a_k = a_k4 * 4, b_col = b_col4 * 4;  // my first four elements of a tile: A[a_row][a_k...], B[b_k][b_col...]

  // 2. set up. Past the last row or column, read the last one instead: nothing of it is stored.
  int k_tile = (K - 1) / BK * BK;
  const float* gA[Tile::A_LOADS];
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i)
    gA[i] = A + static_cast<size_t>(min(block_row + a_row + i * Tile::A_ROWS, M - 1)) * lda + k_tile + a_k;
  const float* gB = B + static_cast<size_t>(k_tile + b_k) * ldb + min(block_col + b_col, (N - 1) / 4 * 4);
  float4 nextA[Tile::A_LOADS], nextB[Tile::B_LOADS];  // a tile on its way from global to shared memory
  float acc[TM][TN] = {};

  const auto store_tile = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i) {
      const int m = swizzled_column(a_k, a_row + i * Tile::A_ROWS, BK);  // the same for all four k
      sA[buffer][a_k + 0][m] = nextA[i].x;
      sA[buffer][a_k + 1][m] = nextA[i].y;
      sA[buffer][a_k + 2][m] = nextA[i].z;
      sA[buffer][a_k + 3][m] = nextA[i].w;
    }
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i) store4(&sB[buffer][b_k + i * Tile::B_ROWS][b_col], nextB[i]);
  };
  // The last tile comes first. It may be ragged: zero past K, for beyond it may lie NaN.
  const int k_left = K - k_tile;
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i], k_left - a_k);
#pragma unroll
  for (int i = 0; i < Tile::B_LOADS; ++i)
    nextB[i] = load4(gB + static_cast<size_t>(i * Tile::B_ROWS) * ldb, b_k + i * Tile::B_ROWS < k_left ? 4 : 0);
  int buffer = 0;
  store_tile(buffer);
  __syncthreads();

  // [main-loop]
  // 3. main loop
#pragma unroll 1
  for (; k_tile >= 0; k_tile -= BK) {
    if (k_tile > 0) {  // the next tile sets out
#pragma unroll
      for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i] -= BK);
      gB -= static_cast<size_t>(BK) * ldb;
#pragma unroll
      for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB + static_cast<size_t>(i * Tile::B_ROWS) * ldb);
    }

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      alignas(16) float rA[TM], rB[TN];
#pragma unroll
      for (int i = 0; i < TM; i += 4) store4(&rA[i], load4(&sA[buffer][k][swizzled_column(k, row + split(i, BM), BK)]));
#pragma unroll
      for (int j = 0; j < TN; j += 4) store4(&rB[j], load4(&sB[buffer][k][col + split(j, BN)]));
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int snake = i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
          acc[i][snake] += rA[i] * rB[snake];
        }
      }
    }

    buffer ^= 1;
    if (k_tile > 0) store_tile(buffer);  // nobody has read this copy since the barrier before
    __syncthreads();                     // the next tile is complete, and this one used up
  }
  // [/main-loop]

  // 4. epilogue
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = block_row + row + split(i, BM);
    if (m >= M) return;
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int n = block_col + col + split(j, BN);
      float* gC = C + static_cast<size_t>(m) * ldc + n;
      const float4 c = beta == 0.0F ? float4{} : load4(gC, N - n);  // beta = 0 must not read C: it may hold NaN
      const float4 d = {alpha * acc[i][j] + beta * c.x, alpha * acc[i][j + 1] + beta * c.y,
                        alpha * acc[i][j + 2] + beta * c.z, alpha * acc[i][j + 3] + beta * c.w};
      if (n + 4 <= N) {
        store4(gC, d);
      } else {  // the padding of C is not ours to write
        if (n + 0 < N) gC[0] = d.x;
        if (n + 1 < N) gC[1] = d.y;
        if (n + 2 < N) gC[2] = d.z;
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
    .number = "07",
    .name = "double_buffer",
    .idea = "load the next tile while computing this one; one barrier a tile",
    .predecessor = "06",
    .types = {Type::f32},
    .arch = "sm_70",
    .unit = Unit::cuda_cores,
    .layout_b = LayoutB::row_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem&) {
          return Resources{(const void*)sgemm, Tile::THREADS, 0, {Tile::BM, Tile::BN, Tile::BK}};
        },
    .launch = launch,
}};

}  // namespace
