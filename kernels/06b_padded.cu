// 06b_padded · padding against the same conflicts
//
// Idea              Four unused floats after each row of sA shift the next row by four banks. In 05 four lanes met in a
//                   bank, each four rows of sA from the next. Now only two and two of them meet, 16 banks apart.
// Changed from 06   sA[BK][BM + 4] with its columns in order, instead of swizzled_column(); split() comes from
//                   common/layout.h
// Expect            1.00 times 06: the same instructions except for a few addresses, and the same 12 wavefronts per k.
//                   A store to sA takes 2 wavefronts (06: 1), all stores of a tile 24 (06: 16). 256 more bytes of
//                   shared memory
// Limiter now       as 06. To separate all four lanes, rows would have to be 2 banks apart. 16-byte loads need rows
//                   that begin at multiples of 4 banks, and no such padding does better. With BK = 8, where two lanes
//                   meet, these four floats separate them
// New instructions  none
// Limits            f32; any architecture; any M, N, K; lda, ldb, ldc multiples of 4
// Run               ./run_all.sh run 06b 4096 4096 4096
// Read              docs/06_bank_conflict_free.md
#include "common/layout.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;  // rows of C per block
  static constexpr int BN = 128;  // columns of C per block
  static constexpr int BK = 16;   // elements along k per tile
  static constexpr int PAD = 4;   // unused floats after each row of sA
  static constexpr int TM = 8;    // rows of C per thread
  static constexpr int TN = 8;    // columns of C per thread
  static constexpr int THREADS = BM / TM * (BN / TN);
  static constexpr int A_ROWS = THREADS * 4 / BK;  // rows of A that the block loads at once
  static constexpr int A_LOADS = BM / A_ROWS;      // float4 of A per thread and tile
  static constexpr int B_ROWS = THREADS * 4 / BN;  // rows of B that the block loads at once
  static constexpr int B_LOADS = BK / B_ROWS;      // float4 of B per thread and tile
  static_assert(BM % A_ROWS == 0 && BK % B_ROWS == 0, "each thread loads the same number of float4");
  static_assert(PAD % 4 == 0, "rows of sA begin at multiples of 16 bytes");
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

__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks per SM: at most 128 registers
    sgemm(int M, int N, int K, float alpha, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
          float beta, float* __restrict__ C, int ldc) {
  constexpr int BM = Tile::BM, BN = Tile::BN, BK = Tile::BK, TM = Tile::TM, TN = Tile::TN;
  // [padded-tile]
  alignas(16) __shared__ float sA[BK][BM + Tile::PAD];
  alignas(16) __shared__ float sB[BK][BN];
  // [/padded-tile]

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const auto [row, col] = thread_tile(threadIdx.x, BN / 2, 4, 4);  // my first result in the tile of C
  const auto [a_row, a_k4] = row_major(threadIdx.x, BK / 4);
  const auto [b_k, b_col4] = row_major(threadIdx.x, BN / 4);
  const int a_k = a_k4 * 4, b_col = b_col4 * 4;  // my first four elements of a tile: A[a_row][a_k...], B[b_k][b_col...]

  // 2. set up. Past the last row or column, read the last one: its results are not stored.
  int k_offset = (K - 1) / BK * BK;
  const float* gA[Tile::A_LOADS];
#pragma unroll
  for (int i = 0; i < Tile::A_LOADS; ++i)
    gA[i] = A + static_cast<size_t>(min(block_row + a_row + i * Tile::A_ROWS, M - 1)) * lda + k_offset + a_k;
  const float* gB = B + static_cast<size_t>(k_offset + b_k) * ldb + min(block_col + b_col, (N - 1) / 4 * 4);
  float acc[TM][TN] = {};

  // 3. main loop
  for (; k_offset >= 0; k_offset -= BK) {
    float4 nextA[Tile::A_LOADS], nextB[Tile::B_LOADS];
    if (k_offset + BK <= K) {
#pragma unroll
      for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i]);
#pragma unroll
      for (int i = 0; i < Tile::B_LOADS; ++i) nextB[i] = load4(gB + static_cast<size_t>(i * Tile::B_ROWS) * ldb);
    } else {  // the residue tile: zeros past K, where there may be NaN
      const int k_left = K - k_offset;
#pragma unroll
      for (int i = 0; i < Tile::A_LOADS; ++i) nextA[i] = load4(gA[i], k_left - a_k);
#pragma unroll
      for (int i = 0; i < Tile::B_LOADS; ++i)
        nextB[i] = load4(gB + static_cast<size_t>(i * Tile::B_ROWS) * ldb, b_k + i * Tile::B_ROWS < k_left ? 4 : 0);
    }
#pragma unroll
    for (int i = 0; i < Tile::A_LOADS; ++i) {
      gA[i] -= BK;
      const int m = a_row + i * Tile::A_ROWS;
      sA[a_k + 0][m] = nextA[i].x;
      sA[a_k + 1][m] = nextA[i].y;
      sA[a_k + 2][m] = nextA[i].z;
      sA[a_k + 3][m] = nextA[i].w;
    }
#pragma unroll
    for (int i = 0; i < Tile::B_LOADS; ++i) store4(&sB[b_k + i * Tile::B_ROWS][b_col], nextB[i]);
    gB -= static_cast<size_t>(BK) * ldb;
    __syncthreads();  // the tile is complete

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      alignas(16) float rA[TM], rB[TN];
#pragma unroll
      for (int i = 0; i < TM; i += 4) store4(&rA[i], load4(&sA[k][row + split(i, BM)]));
#pragma unroll
      for (int j = 0; j < TN; j += 4) store4(&rB[j], load4(&sB[k][col + split(j, BN)]));
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int j_serpentine = i % 2 ? TN - 1 - j : j;  // consecutive FFMAs share an operand: fewer register reads
          acc[i][j_serpentine] += rA[i] * rB[j_serpentine];
        }
      }
    }
    __syncthreads();  // everyone has read the tile
  }

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
      } else {  // the padding of C must stay as it is
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
    .number = "06b",
    .name = "padded",
    .idea = "padding instead of the swizzle",
    .predecessor = "06",
    .kind = Kind::variant,
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
