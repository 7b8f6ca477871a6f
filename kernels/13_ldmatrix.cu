// 13_ldmatrix · four 8 x 16-byte matrices an instruction
//
// Idea              ldmatrix reads matrices of 8 rows of 16 bytes, four at once, and gives each lane the word that mma
//                   wants of it. Each lane names one row: one chunk of the swizzle. It moves words, so TF32 may have
//                   it as well.
// Changed from 12   32 ldmatrix a k tile for 128 loads; two addresses a thread, computed before the loop, and an XOR
//                   for each step along k, for which shared memory is aligned to 128 bytes; swizzle_128b() from
//                   common/layout.h
// Expect            the same 192 wavefronts for the same mma, so no bound moves; but 233 instructions instead of 466,
//                   and a load brings four times as much. If half of the waiting goes with them, 1.3 times as fast
// Limiter now       waiting: for the first fragments of each step, at the barrier, and for the tile behind it
// New instructions  ldmatrix.sync.aligned.m8n8.x4.shared.b16
// Limits            tf32 (truncated), bf16, f16; sm_80 with 64 KB of shared memory a block; any M, N, K; rows
//                   a multiple of 16 bytes
// Run               ./run_all.sh run 13 4096 4096 4096 --type bf16
// Read              docs/13_ldmatrix.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/ldmatrix.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;   // rows of C a block
  static constexpr int BN = 128;   // columns of C a block
  static constexpr int WM = 64;    // rows of C a warp
  static constexpr int WN = 64;    // columns of C a warp
  static constexpr int ROW = 128;  // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int ROWS = THREADS / (ROW / 16);  // rows of A or B that the block loads at once, 16 bytes a thread
  static constexpr int STAGE_BYTES = (BM + BN) * ROW;
  static constexpr int SMEM_BYTES = 2 * STAGE_BYTES;
  static_assert(ROWS % 8 == 0, "a thread's rows are alike for the swizzle");
};

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks an SM
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  extern __shared__ __align__(128) unsigned char smem[];

  // 1. who am I
  const int tiles_n = ceil_div(N, BN);
  const int block_row = blockIdx.x / tiles_n * BM;
  const int block_col = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;  // in the tile of C
  const auto [copy_row, copy_chunk] = row_major(threadIdx.x, ROW / 16);          // my first 16 bytes of a tile

  // 2. set up. Past the last row or column, read the last one instead: nothing of it is stored. k_tile is in bytes; the
  // last one, which may be ragged, comes first.
  int k_tile = (K * static_cast<int>(sizeof(T)) - 1) / ROW * ROW;
  const unsigned char *gA[BM / ROWS], *gB[BN / ROWS];
#pragma unroll
  for (int i = 0; i < BM / ROWS; ++i)
    gA[i] = reinterpret_cast<const unsigned char*>(
                A + static_cast<size_t>(min(block_row + copy_row + i * ROWS, M - 1)) * lda) +
            k_tile + copy_chunk * 16;
#pragma unroll
  for (int i = 0; i < BN / ROWS; ++i)
    gB[i] = reinterpret_cast<const unsigned char*>(
                B + static_cast<size_t>(min(block_col + copy_row + i * ROWS, N - 1)) * ldb) +
            k_tile + copy_chunk * 16;
  float acc[WM / 16][WN / 8][4] = {};

  // Rows are copied up to `left` bytes behind this thread's first, and filled with zeros from there on.
  const uint32_t s_copy = shared_address(smem) + swizzle_128b(copy_row, copy_chunk);  // ROWS rows on: the same chunk
  const auto copy_tile = [&](int stage, int left) {
    const int bytes = min(max(left, 0), 16);
#pragma unroll
    for (int i = 0; i < BM / ROWS; ++i, gA[i - 1] -= ROW)
      cp_async_cg_16(s_copy + stage * Tile::STAGE_BYTES + i * ROWS * ROW, gA[i], bytes);
#pragma unroll
    for (int i = 0; i < BN / ROWS; ++i, gB[i - 1] -= ROW)
      cp_async_cg_16(s_copy + stage * Tile::STAGE_BYTES + (BM + i * ROWS) * ROW, gB[i], bytes);
    cp_async_commit_group();
  };
  copy_tile(0, K * static_cast<int>(sizeof(T)) - k_tile - copy_chunk * 16);
  // [addresses]
  // The rows that this lane names to ldmatrix, at k = 0: four 8 x 16-byte matrices each of A (two down, two along k) and
  // of B (two along k, two across). A step along k flips bits of the chunk, so it is an XOR here, too.
  const uint32_t s_a = shared_address(smem) + swizzle_128b(warp_row + lane % 16, lane / 16);
  const uint32_t s_b =
      shared_address(smem) + BM * ROW + swizzle_128b(warp_col + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  // [/addresses]
  int stage = 0;

  // [main-loop]
  // 3. main loop
  for (; k_tile >= 0; k_tile -= ROW) {
    cp_async_wait_group<0>();  // my copies have landed
    __syncthreads();           // everyone's have, and everyone is done with the other stage
    if (k_tile > 0) copy_tile(stage ^ 1, 16);

    const uint32_t sA = s_a + stage * Tile::STAGE_BYTES, sB = s_b + stage * Tile::STAGE_BYTES;
#pragma unroll
    for (int k = 0; k < ROW; k += 32) {  // bytes
      uint32_t rA[WM / 16][4], rB[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) ldmatrix_x4(rA[i], (sA ^ k) + i * 16 * ROW);
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) ldmatrix_x4(rB[j], (sB ^ k) + j * 16 * ROW);
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) {
          const uint32_t b[2] = {rB[j / 2][j % 2 * 2], rB[j / 2][j % 2 * 2 + 1]};
          Operand<type>::mma(acc[i][j], rA[i], b);
        }
    }
    stage ^= 1;
  }
  // [/main-loop]

  // 4. epilogue: a pair of neighbouring elements in each of rows g and g + 8 of every 16 x 8 results
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; r += 2) {
      const auto [row, col] = mma_c(lane, r);
      const int m = block_row + warp_row + i * 16 + row;
      if (m >= M) continue;
#pragma unroll
      for (int j = 0; j < WN / 8; ++j) {
        const int n = block_col + warp_col + j * 8 + col;
        TC* const gC = C + static_cast<size_t>(m) * ldc + n;
        float d[2] = {alpha * acc[i][j][r], alpha * acc[i][j][r + 1]};
        if (beta != 0.0F) {  // beta = 0 must not read C: it may hold NaN
          if (n < N) d[0] += beta * to_float(gC[0]);
          if (n + 1 < N) d[1] += beta * to_float(gC[1]);
        }
        if (n + 2 <= N)
          store2(gC, d);
        else if (n < N)
          *gC = from_float<TC>(d[0]);  // the padding of C is not ours to write
      }
    }
  }
}

void launch(const Problem& p) {
  for_types(p, [&]<Type type, class TC>() {
    using T = typename Operand<type>::Element;
    cuda_check(cudaFuncSetAttribute(gemm<type, TC>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::SMEM_BYTES));
    const int blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN);
    gemm<type, TC><<<blocks, Tile::THREADS, Tile::SMEM_BYTES, p.stream>>>(p.m, p.n, p.k, p.alpha, p.A<T>(), p.lda,
                                                                          p.B<T>(), p.ldb, p.beta, p.C<TC>(), p.ldc);
    cuda_check(cudaGetLastError());
  });
}

const Registration registration{{
    .number = "13",
    .name = "ldmatrix",
    .idea = "four 8 x 16-byte matrices an instruction, for TF32 too",
    .predecessor = "12",
    .types = {Type::bf16, Type::f16, Type::tf32},
    .arch = "sm_80",
    .unit = Unit::mma_sync,
    .layout_b = LayoutB::col_major,
    .row_align_bytes = 16,
    .resources =
        [](const Problem& p) {
          return for_types(p, [&]<Type type, class TC>() {
            return Resources{(const void*)gemm<type, TC>,
                             Tile::THREADS,
                             Tile::SMEM_BYTES,
                             {Tile::BM, Tile::BN, Tile::ROW / Operand<type>::BYTES}};
          });
        },
    .launch = launch,
}};

}  // namespace
