// 11_cp_async · copies that go past the registers, one tile ahead
//
// Idea              cp.async moves 16 bytes from global to shared memory without a register in between, and the thread
//                   goes on at once. With two stages of shared memory, the next tile is on its way while this one is
//                   multiplied; it is waited for just before it is needed.
// Changed from 10   load16 and the 16-byte stores become cp.async; two stages; the first tile, ragged or not, is copied
//                   before the loop, zeros past K; one barrier a tile; TF32 is truncated, as the bytes meet no register
// Expect            10 takes 256 wavefronts while its mma take 193 clocks, and waits for global memory besides. Past
//                   L1 and the registers a copy takes 4 wavefronts, not 8: 192. 256 / 193 = 1.3 times as fast
// Limiter now       shared memory: a copy into skewed rows takes more wavefronts than a store (docs/11_cp_async.md)
// New instructions  cp.async.cg, cp.async.commit_group, cp.async.wait_group
// Limits            tf32 (truncated), bf16, f16; sm_80 with 72 KB of shared memory a block; any M, N, K; rows
//                   a multiple of 16 bytes
// Run               ./run_all.sh run 11 4096 4096 4096 --type bf16
// Read              docs/11_cp_async.md
#include "common/layout.h"
#include "common/operand_types.h"
#include "common/ptx/cp_async.h"
#include "common/ptx/shared_address.h"
#include "common/rung.h"

using namespace ladder;

namespace {

struct Tile {
  static constexpr int BM = 128;          // rows of C a block
  static constexpr int BN = 128;          // columns of C a block
  static constexpr int WM = 64;           // rows of C a warp
  static constexpr int WN = 64;           // columns of C a warp
  static constexpr int ROW = 128;         // bytes along k held at a time: 64 elements of 16 bits, 32 of TF32
  static constexpr int PITCH = ROW + 16;  // bytes from row to row: the skew sends 8 rows to different banks
  static constexpr int THREADS = BM / WM * (BN / WN) * 32;
  static constexpr int ROWS = THREADS / (ROW / 16);  // rows of A or B that the block loads at once, 16 bytes a thread
  static constexpr int STAGE_BYTES = (BM + BN) * PITCH;
  static constexpr int SMEM_BYTES = 2 * STAGE_BYTES;
};

template <Type type, class TC>
__global__ void __launch_bounds__(Tile::THREADS, 2)  // two blocks an SM
    gemm(int M, int N, int K, float alpha, const typename Operand<type>::Element* __restrict__ A, int lda,
         const typename Operand<type>::Element* __restrict__ B, int ldb, float beta, TC* __restrict__ C, int ldc) {
  using T = typename Operand<type>::Element;
  constexpr int BM = Tile::BM, BN = Tile::BN, WM = Tile::WM, WN = Tile::WN, ROW = Tile::ROW, ROWS = Tile::ROWS;
  extern __shared__ __align__(16) unsigned char smem[];

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

  // [copy]
  // Rows are copied up to `left` bytes behind this thread's first, and filled with zeros from there on.
  const uint32_t s_copy = shared_address(smem) + copy_row * Tile::PITCH + copy_chunk * 16;
  const auto copy_tile = [&](int stage, int left) {
    const int bytes = min(max(left, 0), 16);
#pragma unroll
    for (int i = 0; i < BM / ROWS; ++i, gA[i - 1] -= ROW)
      cp_async_cg_16(s_copy + stage * Tile::STAGE_BYTES + i * ROWS * Tile::PITCH, gA[i], bytes);
#pragma unroll
    for (int i = 0; i < BN / ROWS; ++i, gB[i - 1] -= ROW)
      cp_async_cg_16(s_copy + stage * Tile::STAGE_BYTES + (BM + i * ROWS) * Tile::PITCH, gB[i], bytes);
    cp_async_commit_group();
  };
  copy_tile(0, K * static_cast<int>(sizeof(T)) - k_tile - copy_chunk * 16);
  // [/copy]
  int stage = 0;

  // [main-loop]
  // 3. main loop
  for (; k_tile >= 0; k_tile -= ROW) {
    cp_async_wait_group<0>();  // my copies have landed
    __syncthreads();           // everyone's have, and everyone is done with the other stage
    if (k_tile > 0) copy_tile(stage ^ 1, 16);

    const unsigned char *const sA = smem + stage * Tile::STAGE_BYTES, *const sB = sA + BM * Tile::PITCH;
#pragma unroll
    for (int k = 0; k < ROW; k += 32) {  // bytes
      uint32_t rA[WM / 16][4], rB[WN / 8][2];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const auto [row, word] = mma_a(lane, r);
          rA[i][r] = *reinterpret_cast<const uint32_t*>(&sA[(warp_row + i * 16 + row) * Tile::PITCH + k + word * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto [col, word] = mma_b(lane, r);
          rB[j][r] = *reinterpret_cast<const uint32_t*>(&sB[(warp_col + j * 8 + col) * Tile::PITCH + k + word * 4]);
        }
#pragma unroll
      for (int j = 0; j < WN / 8; ++j)
#pragma unroll
        for (int i = 0; i < WM / 16; ++i) Operand<type>::mma(acc[i][j], rA[i], rB[j]);
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
    .number = "11",
    .name = "cp_async",
    .idea = "copies past the registers, the next tile under way while this one is multiplied",
    .predecessor = "10",
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
